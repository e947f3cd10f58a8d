/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proto - a writer of protocol buffers' encoding into a buf, field by field.
 *
 *	proto_u64(&b, 3, 42);
 *	at = proto_begin(&b, 4);
 *	proto_str(&b, 1, "name", 4);
 *	proto_end(&b, at);
 *
 * Fields are written also if they are 0 or empty: proto3 would leave them out, and readers take both.
 */
#ifndef STACKTOOLS_EXPORT_PROTO_H
#define STACKTOOLS_EXPORT_PROTO_H

#include "base/bytes.h"

void proto_u64(struct buf *b, uint32_t field, uint64_t v); /* also int64, bool and enum */
void proto_fixed64(struct buf *b, uint32_t field, uint64_t v);
void proto_str(struct buf *b, uint32_t field, const void *p, size_t len); /* also bytes and packed numbers */

/* A message in the message; it ends with proto_end() of what this returns. */
size_t proto_begin(struct buf *b, uint32_t field);
void proto_end(struct buf *b, size_t at);

#endif
