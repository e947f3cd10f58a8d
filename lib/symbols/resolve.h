/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * resolve - from a recorded address to a frame: (process, time, address) -> mapping -> file ->
 * symbol; kernel addresses use the capture's own symbols.
 *
 * It works in two phases. First, the caller adds every address and gets the number of its frame,
 * which has what the capture itself knows. Then resolve_run() reads the symbols of all files with
 * such addresses (symbols/files.h) and names the frames. Only files that are proven to be the
 * mapped ones are used. A return address belongs to the call before it, so it is looked up one byte
 * back; offsets are those of the address itself.
 *
 * Each distinct address is resolved once. Frames are numbered from 0 and stay until
 * resolve_close(), so a caller can store what it derives from them (a line of text) in an array
 * indexed by that number.
 */
#ifndef STACKTOOLS_SYMBOLS_RESOLVE_H
#define STACKTOOLS_SYMBOLS_RESOLVE_H

#include "capture/reader.h"
#include "symbols/files.h"
#include "symbols/frame.h"

/* jitnames - the JIT code in a capture, by process, address and time. */

struct jitnames;

/* C stays the caller's and must outlive *RET; release that with jitnames_free(). -ENOMEM. */
int jitnames_new(const struct cap_reader *c, struct jitnames **ret, struct err *e);
void jitnames_free(struct jitnames *n); /* NULL is fine */

/*
 * The code at ADDR of process PROC at FIRST_NS; if there was none yet, the first one up to LAST_NS;
 * or NULL. A jitdump file is preferred to a perf map, which has no times. FIRST_NS and LAST_NS are
 * those of the caller's sample; *UNSURE (may be NULL) is set if other code may have been at ADDR at
 * some time between them. ADDR is the byte that executes: for a return address, the one before it.
 * The byte is addr - jit->start + jit->offset bytes into the function. The name is untrusted input.
 */
const struct cap_jit *jitnames_find(const struct jitnames *n, uint32_t proc, uint64_t addr, uint64_t first_ns,
	uint64_t last_ns, bool *unsure);

#define RESOLVE_FAILED UINT32_MAX /* out of memory */

struct resolve;

struct resolve_opts {
	struct modules_opts files;
};

/* C must outlive *RET. On success *RET is the caller's. */
int resolve_open(
	const struct cap_reader *c, const struct resolve_opts *o, struct resolve **ret, struct err *e);
void resolve_close(struct resolve *r); /* NULL is fine */

/*
 * The number of the frame for ADDR, an address of PROC that was on a stack during [first_ns,
 * last_ns]; RESOLVE_FAILED when out of memory. EXACT: ADDR is a PC (frame 0, or listed in
 * cap_stack's `exact`), not a return address.
 */
uint32_t resolve_user(
	struct resolve *r, uint32_t proc, uint64_t addr, bool exact, uint64_t first_ns, uint64_t last_ns);

/*
 * True if no address of PROC changes its meaning from FIRST_NS on: stacks of samples that begin
 * there need to be resolved only once.
 */
bool resolve_steady(const struct resolve *r, uint32_t proc, uint64_t first_ns);

/*
 * Name the frames added since the last run. 0, -ENOMEM, or the error of a kernel file that the user
 * named. The frames of any other unusable file stay without names and give the reason.
 */
int resolve_run(struct resolve *r, struct err *e);

size_t resolve_count(const struct resolve *r);

/* Valid until the next frame is added. */
const struct frame *resolve_frame(const struct resolve *r, uint32_t id);

/*
 * The result for file FILE of the capture (a cap_file id; the kernel's parts start at n_files).
 * False if no address needed it.
 */
bool resolve_file(const struct resolve *r, uint32_t file, struct modules_file *ret);

/* As modules_kernel_part(). */
const char *resolve_kernel_part(const struct resolve *r, size_t i);
void resolve_stats(const struct resolve *r, struct modules_stats *ret);

/*
 * stackids - the stacks of a capture as frame numbers, each resolved once.
 *
 * A kernel stack means the same in all processes. A user stack is resolved once for each process,
 * but anew for each sample for which resolve_steady() is false.
 */

struct stackids;

/* A resolved stack: its frame numbers are [first, first + len) of stackids_at(). */
struct stackids_span {
	size_t first;
	uint32_t len; /* 0 for a failed stack */
	bool done;
};

/* C and R must outlive *RET. 0 or -ENOMEM; release *RET with stackids_free(). */
int stackids_new(const struct cap_reader *c, struct resolve *r, struct stackids **ret);
void stackids_free(struct stackids *s); /* NULL is fine */

/* The kernel and the user stack of sample A. 0 or -ENOMEM. */
int stackids_kernel(struct stackids *s, const struct cap_sample *a, struct stackids_span *ret);
int stackids_user(struct stackids *s, const struct cap_sample *a, struct stackids_span *ret);

/* The frame numbers; valid until the next stack is resolved. */
const uint32_t *stackids_at(const struct stackids *s, const struct stackids_span *span);

#endif
