/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chain - call chains whose every frame is known: what a stack walk by frame
 * pointer has to find.
 *
 * A walk runs root -> outer -> middle -> inner -> trigger. Each function
 * keeps a frame pointer whatever the compiler's flags, is never inlined, and
 * notes its return address, so the expected stack is known to the byte.
 * The root replaces the frame pointer it saved for its caller while it runs,
 * so that the walk ends there (or goes on through frames of our making)
 * instead of wandering into code compiled without frame pointers.
 *
 * The leaf: a trigger that makes a system call does so in libc's syscall(),
 * which sets up no frame; the walk has the PC in there, then the trigger's
 * return address into the inner function: the trigger itself is not seen.
 * The other triggers are their own leaf, so every stack has the same shape:
 *
 *	frame 0   in syscall(), or in the trigger
 *	frame 1   inner     (the trigger's return address)
 *	frame 2   middle
 *	frame 3   outer
 *	frame 4   root
 *	frame 5   whoever called chain_run()
 *	...       the tail, where one was given
 */
#ifndef STACKTOOLS_STACKMAP_CHAIN_H
#define STACKTOOLS_STACKMAP_CHAIN_H

#include "base/err.h"

enum chain_family { CHAIN_NORTH, CHAIN_EAST, CHAIN_SOUTH, CHAIN_WEST, CHAIN_DEEP, CHAIN_FAMILIES };

enum chain_trigger {
	CHAIN_GETPGID, /* getpgid(0): a system call that never waits */
	CHAIN_SLEEP, /* nanosleep() of 1 ms: leaves the CPU, interruptible */
	CHAIN_SPIN, /* user code until *spin.stop or a second's worth of turns */
	CHAIN_PROBE, /* calls nothing: the target of a uprobe at chain_probe_address() */
};

#define CHAIN_FRAMES 6 /* frames of every family but CHAIN_DEEP, without a tail */
#define CHAIN_DEEP_FRAMES 200 /* CHAIN_DEEP calls itself as often */

/* A frame as the CPU's calling convention lays it out: what a walk follows. */
struct chain_frame {
	const volatile struct chain_frame *next;
	uint64_t ret;
};

struct chain_walk {
	enum chain_family family;
	enum chain_trigger trigger;
	const volatile struct chain_frame *tail; /* NULL: the walk ends at frame 5 */
	struct {
		volatile uint64_t *stop; /* spins while it is 0 */
		volatile uint32_t *armed; /* set to `arm` while it spins, NULL = nothing */
		uint32_t arm;
	} spin;

	/* noted while it runs: frames 1 to CHAIN_FRAMES - 1, not for CHAIN_DEEP */
	uint64_t frames[CHAIN_FRAMES];
	uint32_t depth; /* functions entered */
};

void chain_run(struct chain_walk *w);

/* The number of the trigger's system call, 0 when it makes none. */
uint64_t chain_syscall_nr(enum chain_trigger t);

/* Where the CHAIN_PROBE trigger begins. */
uint64_t chain_probe_address(void);

/*
 * The function of ours or of libc that covers ADDR, "syscall" for libc's;
 * NULL when it is none that a walk can meet. *OFFSET may be NULL.
 */
const char *chain_name(uint64_t addr, uint64_t *offset);

/* What frame N of a walk of this family is called, for N < CHAIN_FRAMES - 1. */
const char *chain_expect(const struct chain_walk *w, size_t n);

/*
 * The hash the kernel's stack map has taken of N frames since 4.6: jhash2 with
 * seed 0 over 32-bit words (include/linux/jhash.h, kernel/bpf/stackmap.c).
 * No interface promises it: use it to find collisions, not to check an id.
 */
uint32_t chain_hash(const uint64_t *frames, size_t n);

#endif
