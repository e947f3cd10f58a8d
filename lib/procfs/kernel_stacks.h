/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel_stacks - the stacks of a thread as far as /proc shows them, as entries
 * of the table of stacks.
 *
 * The kernel's, best first: /proc/TID/stack, whose functions are addresses
 * where kallsyms has them and names else; the wait channel and the system call;
 * the state. What is a name and no address becomes a frame with a number of
 * its own, see CAPTURE_SYNTHETIC_START. The user's: the PC of the system call.
 */
#ifndef STACKTOOLS_PROCFS_KERNEL_STACKS_H
#define STACKTOOLS_PROCFS_KERNEL_STACKS_H

#include "base/base.h"
#include "procfs/sampler.h"
#include "record/stacks.h"

/*
 * sysname - the names of system calls of this machine's architecture.
 * Source: <asm/unistd.h>, read when the program was built.
 */

/* The name of system call NR; NULL for one that the headers do not have. */
const char *sysname_find(int32_t nr);

struct kernel_stacks;

struct kernel_stacks_opts {
	bool no_kernel, no_user; /* -U, -K */
	const struct kallsyms *ks; /* NULL = not to be had; has to stay */
};

/* Stacks go to TAB, which stays the caller's. */
int kernel_stacks_new(const struct kernel_stacks_opts *o, struct stack_table *tab, struct kernel_stacks **ret,
	struct err *e);
void kernel_stacks_free(struct kernel_stacks *p); /* NULL is fine */

/* The identity of the kernel stack of what was seen: of a thread that waits. */
void kernel_stacks_kernel(struct kernel_stacks *p, const struct sampler_seen *s, struct offcpu_stack_id *ret);

/* The same of the user stack; ERROR, -errno: why the system call could not be read, 0 = it could. */
void kernel_stacks_user(struct kernel_stacks *p, const struct sampler_seen *s, bool kthread, int error,
	struct offcpu_stack_id *ret);

/* A user stack that somebody else has walked. */
void kernel_stacks_walked(
	struct kernel_stacks *p, const struct cap_stack *stack, struct offcpu_stack_id *ret);

/* A kernel stack of one frame with this name, and a user stack that was not seen. */
void kernel_stacks_named(struct kernel_stacks *p, const char *name, struct offcpu_stack_id *ret);
void kernel_stacks_between(struct kernel_stacks *p, struct offcpu_stack_id *ret);

/* The symbols of names that came since the last call: before the stacks are read again, so in the same flush.
 */
void kernel_stacks_write(struct kernel_stacks *p, struct cap_writer *w);

/* Names that had no number left to stand for them: counted, they are "[other]". */
uint64_t kernel_stacks_overflow(const struct kernel_stacks *p);

#endif
