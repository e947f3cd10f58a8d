/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel_stacks - the stacks of a thread as far as /proc shows them, as entries
 * of the table of stacks.
 *
 * Sources of a kernel stack, best first: /proc/TID/stack, whose functions become
 * addresses if kallsyms has them, else names; the wait channel and the system
 * call; the state. A name without an address becomes a frame with a number of its
 * own, see CAPTURE_SYNTHETIC_START. A user stack is the PC of the system call.
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

/* The name of system call NR; NULL if the headers do not have it. */
const char *sysname_find(int32_t nr);

struct kernel_stacks;

struct kernel_stacks_opts {
	bool no_kernel, no_user; /* -U, -K */
	const struct kallsyms *ks; /* NULL = unavailable; must outlive the kernel_stacks */
};

/* Stacks are added to TAB, which the caller owns. */
int kernel_stacks_new(const struct kernel_stacks_opts *o, struct stack_table *tab, struct kernel_stacks **ret,
	struct err *e);
void kernel_stacks_free(struct kernel_stacks *p); /* NULL is fine */

/* The identity of the kernel stack of a waiting thread, by the sample S. */
void kernel_stacks_kernel(struct kernel_stacks *p, const struct sampler_seen *s, struct offcpu_stack_id *ret);

/* Likewise of the user stack. ERROR (-errno) says why the system call could not be read; 0 = it could. */
void kernel_stacks_user(struct kernel_stacks *p, const struct sampler_seen *s, bool kthread, int error,
	struct offcpu_stack_id *ret);

/* A user stack that was walked elsewhere. */
void kernel_stacks_walked(
	struct kernel_stacks *p, const struct cap_stack *stack, struct offcpu_stack_id *ret);

/* A kernel stack of one frame with this name, and a user stack that was not seen. */
void kernel_stacks_named(struct kernel_stacks *p, const char *name, struct offcpu_stack_id *ret);
void kernel_stacks_between(struct kernel_stacks *p, struct offcpu_stack_id *ret);

/* Write the symbols of names added since the last call. Call it in the flush that writes their stacks. */
void kernel_stacks_write(struct kernel_stacks *p, struct cap_writer *w);

/* How often there was no number left for a name. These frames share the last number, which has no symbol. */
uint64_t kernel_stacks_overflow(const struct kernel_stacks *p);

#endif
