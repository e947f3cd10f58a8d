/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * resolve - from a recorded address to a frame: (process, time, address) ->
 * mapping -> file -> symbol; kernel addresses by the capture's own symbols.
 *
 * In two phases. First every address is put, and gets the number of its
 * frame: what the capture itself knows of it is there at once. Then
 * resolve_run() reads the symbols of all files that addresses fell into
 * (symbols/files.h), and the frames have their names. Files are used only
 * when they are proven to be those that were mapped (symbols/files.h). A return
 * address belongs to the call before it, so it is looked up one byte back;
 * offsets are those of the address itself.
 *
 * Each distinct address is resolved once. Frames are numbered from 0 and stay
 * until resolve_close(), so a caller can keep what it derives from them (a
 * line of text) in an array by that number.
 */
#ifndef STACKTOOLS_SYMBOLS_RESOLVE_H
#define STACKTOOLS_SYMBOLS_RESOLVE_H

#include "capture/reader.h"
#include "symbols/files.h"
#include "symbols/frame.h"

/*
 * jitnames - the code of JIT compilers that a capture keeps, by process,
 * address and time.
 */

struct jitnames;

/* C stays the caller's and must outlive *RET, which is released with jitnames_free(). -ENOMEM. */
int jitnames_new(const struct cap_reader *c, struct jitnames **ret, struct err *e);
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

#define RESOLVE_FAILED UINT32_MAX /* out of memory */

struct resolve;

struct resolve_opts {
	struct modules_opts files;
};

/* C must stay until resolve_close(). On success *RET is the caller's. */
int resolve_open(
	const struct cap_reader *c, const struct resolve_opts *o, struct resolve **ret, struct err *e);
void resolve_close(struct resolve *r); /* NULL is fine */

/*
 * The same for an address of PROC that was on a stack during [first_ns,
 * last_ns]. EXACT: it is the PC of a leaf frame, not a return address.
 */
uint32_t resolve_user(
	struct resolve *r, uint32_t proc, uint64_t addr, bool exact, uint64_t first_ns, uint64_t last_ns);

/*
 * From FIRST_NS on, no address of PROC changes its meaning: stacks of its
 * samples that begin there need to be resolved only once.
 */
bool resolve_steady(const struct resolve *r, uint32_t proc, uint64_t first_ns);

/*
 * Name what was put since the last run. 0 or -ENOMEM: a file that cannot be
 * used costs its frames their names, and they say why.
 */
int resolve_run(struct resolve *r, struct err *e);

size_t resolve_count(const struct resolve *r);

/* Valid until the next frame is made. */
const struct frame *resolve_frame(const struct resolve *r, uint32_t id);

/* What became of file FILE of the capture (a cap_file id; n_files and above are the kernel's parts): false
 * when no address asked for it. */
bool resolve_file(const struct resolve *r, uint32_t file, struct modules_file *ret);

/* As modules_kernel_part(). */
const char *resolve_kernel_part(const struct resolve *r, size_t i);
void resolve_stats(const struct resolve *r, struct modules_stats *ret);

/*
 * stackids - each stack of a capture as frame numbers, resolved once.
 *
 * A kernel stack means the same everywhere; a user stack is kept by process,
 * and resolved anew for each sample where the process's mappings changed
 * under it (resolve_steady()).
 */

struct stackids;

/* A resolved stack: its frames are the numbers [first, first + len) of stackids_at(). */
struct stackids_span {
	size_t first;
	uint32_t len; /* 0 for a stack that failed */
	bool done;
};

/* C and R must stay. 0 or -ENOMEM; release *RET with stackids_free(). */
int stackids_new(const struct cap_reader *c, struct resolve *r, struct stackids **ret);
void stackids_free(struct stackids *s); /* NULL is fine */

/* The kernel and the user stack of sample A. 0 or -ENOMEM. */
int stackids_kernel(struct stackids *s, const struct cap_sample *a, struct stackids_span *ret);
int stackids_user(struct stackids *s, const struct cap_sample *a, struct stackids_span *ret);

/* The frame numbers; valid until the next stack is resolved. */
const uint32_t *stackids_at(const struct stackids *s, const struct stackids_span *span);

#endif
