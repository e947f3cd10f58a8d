/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jitnames - the code of JIT compilers that a capture keeps, by process,
 * address and time.
 */
#ifndef STACKTOOLS_JITNAMES_H
#define STACKTOOLS_JITNAMES_H

#include "capture/reader.h"

struct jitnames;

/* C stays the caller's and must outlive *RET, which is released with jitnames_free(). -ENOMEM. */
int jitnames_new(const struct capread *c, struct jitnames **ret, struct err *e);
void jitnames_free(struct jitnames *n); /* NULL is fine */

/*
 * The code that was at ADDR of process PROC at FIRST_NS; where none was there
 * yet, the first that came until LAST_NS; or NULL. What a jitdump file told is
 * preferred to a perf map, which tells no times. *UNSURE (may be NULL) is set
 * where other code was there as well at some time in [first_ns, last_ns]: that
 * of the caller's sample. ADDR is the byte that executes: of a return address
 * the one before. The byte is addr - jit->start + jit->offset bytes into the
 * function. The name is anybody's bytes.
 */
const struct cap_jit *jitnames_find(const struct jitnames *n, uint32_t proc, uint64_t addr, uint64_t first_ns,
	uint64_t last_ns, bool *unsure);

#endif
