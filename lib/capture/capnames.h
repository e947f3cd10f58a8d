/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capnames - the bytes of the records that name code (strings, JIT code,
 * names), and these records gathered. docs/capture.5 describes the format.
 *
 * Names and paths repeat much. Each is written once, as a string record with
 * an id; the others refer to it: 0 is "", else the id plus one.
 */
#ifndef STACKTOOLS_CAPNAMES_H
#define STACKTOOLS_CAPNAMES_H

#include "base/bytes.h"
#include "capture/capture.h"

/* --- writing: fields without the length before them --- */

/* REF gives the number that stands for TEXT (CTX is its own). */
typedef uint64_t capnames_ref(void *ctx, const char *text);

void capnames_put_string(struct buf *b, uint32_t id, const char *text);
void capnames_put_jit(struct buf *b, const struct cap_jit *j, capnames_ref *ref, void *ctx);
void capnames_put_name(struct buf *b, const struct cap_name *n, capnames_ref *ref, void *ctx);

/* --- reading --- */

struct capnames_counts {
	size_t strings, jits, names, frames;
};

/* Zero it. What `n` counts is taken: to forget a block, put the old `n` back. */
struct capnames {
	struct capnames_counts n, room;
	const char **strings; /* where they were read */
	struct cap_jit *jits;
	struct cap_name *names;
	struct cap_name_frame *frames; /* of all names, in the order they came in */
};

void capnames_free(struct capnames *c);

/*
 * Take the record of R; N_PROCS and N_FILES are known so far. NULL, or what is
 * wrong: a constant, "" where memory ran out.
 */
const char *capnames_take_string(struct capnames *c, struct rd *r);
const char *capnames_take_jit(struct capnames *c, struct rd *r, size_t n_procs);
const char *capnames_take_name(struct capnames *c, struct rd *r, size_t n_files);

/*
 * After the last record: JIT code sorted by process, start, from_ns and kind, names by
 * file and offset, the last of each key alone. 0 or -ENOMEM.
 */
int capnames_settle(struct capnames *c);

#endif
