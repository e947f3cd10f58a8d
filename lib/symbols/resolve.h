/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * resolve - from a recorded address to a frame: (process, time, address) ->
 * mapping -> file -> symbol; kernel addresses by the capture's own symbols.
 *
 * In two phases. First every address is put, and gets the number of its
 * frame: what the capture itself knows of it is there at once. Then
 * resolve_run() reads the symbols of all files that addresses fell into
 * (modules.h), and the frames have their names. Files are used only
 * when they are proven to be those that were mapped (symfile.h). A return
 * address belongs to the call before it, so it is looked up one byte back;
 * offsets are those of the address itself.
 *
 * Each distinct address is resolved once. Frames are numbered from 0 and stay
 * until resolve_close(), so a caller can keep what it derives from them (a
 * line of text) in an array by that number.
 */
#ifndef STACKTOOLS_RESOLVE_H
#define STACKTOOLS_RESOLVE_H

#include "capture/reader.h"
#include "symbols/frame.h"
#include "symbols/modules.h"

#define RESOLVE_FAILED UINT32_MAX /* out of memory */

struct resolve;

struct resolve_opts {
	struct modules_opts files;
};

/* C must stay until resolve_close(). On success *RET is the caller's. */
int resolve_open(const struct capread *c, const struct resolve_opts *o, struct resolve **ret, struct err *e);
void resolve_close(struct resolve *r); /* NULL is fine */

/* The number of the frame, or RESOLVE_FAILED. ADDR is a return address. */
uint32_t resolve_kernel(struct resolve *r, uint64_t addr);

/*
 * The same for an address of PROC that was on a stack during [first_ns,
 * last_ns]. EXACT: it is the PC of a leaf frame, not a return address.
 */
uint32_t resolve_user(
	struct resolve *r, uint32_t proc, uint64_t addr, bool exact, uint64_t first_ns, uint64_t last_ns);

/*
 * ADDR, a return address, will be asked for soon: starts to bring its entry
 * into the cache. No other effect.
 */
void resolve_prefetch(const struct resolve *r, uint32_t proc, uint64_t addr);

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

#endif
