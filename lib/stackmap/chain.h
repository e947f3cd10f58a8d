/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * chain - call chains with known frames: what a stack walk by frame pointer has to find.
 *
 * A walk runs root -> outer -> middle -> inner -> trigger. Each function keeps a frame pointer regardless of
 * compiler flags, is never inlined, and records its return address, so the expected stack is known to the
 * byte. While the root (chain_run()) runs, it replaces the frame pointer that it saved for its caller, so
 * that the stack walk ends there, or continues through frames that the test made, and does not go on into
 * code compiled without frame pointers.
 *
 * The leaf: a trigger that makes a system call uses libc's syscall(), which sets up no frame. The stack then
 * has the PC in syscall(), followed by the trigger's return address into the inner function; the trigger
 * itself does not appear. Other triggers are the leaf themselves, so every stack has the same shape:
 *
 *	frame 0   in syscall(), or in the trigger
 *	frame 1   inner     (the trigger's return address)
 *	frame 2   middle
 *	frame 3   outer
 *	frame 4   root
 *	frame 5   the caller of chain_run()
 *	...       the tail, if there is one
 */
#ifndef STACKTOOLS_STACKMAP_CHAIN_H
#define STACKTOOLS_STACKMAP_CHAIN_H

#include "base/err.h"

enum chain_family { CHAIN_NORTH, CHAIN_EAST, CHAIN_SOUTH, CHAIN_WEST, CHAIN_DEEP, CHAIN_FAMILIES };

enum chain_trigger {
	CHAIN_GETPGID, /* getpgid(0): a system call that never blocks */
	CHAIN_SLEEP, /* nanosleep() of 1 ms: leaves the CPU, interruptible */
	CHAIN_SPIN, /* user code that loops until *spin.stop, or for about a second */
	CHAIN_PROBE, /* calls nothing: the target of a uprobe at chain_probe_address() */
};

#define CHAIN_FRAMES 6 /* frames of each family except CHAIN_DEEP, without a tail */
#define CHAIN_DEEP_FRAMES 200 /* calls of chain_deep() in CHAIN_DEEP */

/* A frame as laid out by the calling convention: what a stack walk follows. */
struct chain_frame {
	const volatile struct chain_frame *next;
	uint64_t ret;
};

struct chain_walk {
	enum chain_family family;
	enum chain_trigger trigger;
	const volatile struct chain_frame *tail; /* NULL: the walk ends at frame 5 */
	struct {
		volatile uint64_t *stop; /* the loop runs while it is 0 */
		volatile uint32_t *armed; /* set to `arm` while the loop runs; NULL = not used */
		uint32_t arm;
	} spin;

	/* recorded while it runs: frames 1 to CHAIN_FRAMES - 1; not usable for CHAIN_DEEP */
	uint64_t frames[CHAIN_FRAMES];
	uint32_t depth; /* functions entered and not yet left */
};

void chain_run(struct chain_walk *w);

/* The number of the trigger's system call; 0 if it makes none. */
uint64_t chain_syscall_nr(enum chain_trigger t);

/* The start address of the CHAIN_PROBE trigger. */
uint64_t chain_probe_address(void);

/*
 * The function of a chain that contains ADDR, or "syscall" for libc's; NULL for any other address. OFFSET may
 * be NULL.
 */
const char *chain_name(uint64_t addr, uint64_t *offset);

/* The expected function of frame N of the walk W, for N < CHAIN_FRAMES - 1. */
const char *chain_expect(const struct chain_walk *w, size_t n);

/*
 * The hash that the kernel's stack map computes of N frames since 4.6: jhash2 with seed 0 over 32-bit words
 * (include/linux/jhash.h, kernel/bpf/stackmap.c). It is not part of any interface: use it to find collisions,
 * not to check an id.
 */
uint32_t chain_hash(const uint64_t *frames, size_t n);

#endif
