/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk - the walk of a user stack by unwind tables, over a copy of registers
 * and memory.
 *
 * The rules are those of bpf/unwind.bpf.h. Where no row covers the code, a step
 * needs the code itself. A snapshot that BPF made has only that at the PC: where
 * code cannot be read, the walk ends.
 */
#ifndef STACKTOOLS_UNWIND_WALK_H
#define STACKTOOLS_UNWIND_WALK_H

#include "base/base.h"
#include "offcpu_abi.h"

/* What is known about the code at an address. */
enum snapwalk_code {
	SNAPWALK_TABLE =
		1, /* it has a table: the rule is that of the row; NULL or UNWIND_CFA_NONE = no row */
	SNAPWALK_NO_TABLE, /* it is mapped, and no table will come */
	SNAPWALK_NO_MAPPING, /* nothing executable was mapped there */
	SNAPWALK_NOT_READY, /* its table is not ready yet */
	SNAPWALK_DROPPED, /* there was no memory for its table */
	SNAPWALK_UNKNOWN, /* it is not known, and will not be, what was mapped there */
};

struct snapwalk_area {
	const uint8_t *bytes; /* the LEN bytes at FROM */
	uint64_t from, len;
};

struct snapwalk_memory {
	const struct snapwalk_area *areas;
	size_t n;
	uint64_t bottom; /* where the main thread's stack begins; 0 = not known */
};

struct snapwalk_opts {
	uint32_t depth; /* maximum number of frames; FRAMES has room for them */
	uint64_t tls; /* base address of the thread's local storage; 0 = not known */
	uint32_t unknown; /* bit N: DWARF register N is not in REGS; never set for SP and PC */
	enum snapwalk_code (*find)(void *ctx, uint64_t pc, const struct unwind_rule **rule);
	/* Reads the eight bytes of the process's code at ADDR, as a word; NULL = no steps without a row */
	bool (*code)(void *ctx, uint64_t addr, uint64_t *word);
	bool no_fp; /* no steps by frame pointer */
	void *ctx;
};

struct snapwalk_end {
	uint32_t len; /* frames */
	/*
	 * enum cap_verdict: complete, truncated, stopped, or, if a frame pointer
	 * was used, unverified; enum cap_reason. REASON_REGISTER: a register is
	 * missing, for instance because it is unknown.
	 */
	uint8_t verdict, reason;
	bool last_exact; /* the last frame is the first byte of a function, which nothing has called */
	bool missed; /* the last frame needed memory that no area has */
	uint64_t wanted; /* its first missing address */
	enum snapwalk_code
		code; /* of the frame where it stopped because a mapping, table or row is missing; else 0 */
	uint64_t stop_pc; /* of a walk that stopped */
};

/*
 * Walk from REGS, the OFFCPU_SNAPSHOT_REGS words of struct pt_regs at the
 * thread's kernel entry. FRAMES are PCs, with OFFCPU_EXACT as in struct
 * offcpu_ev_stack. The contents of MEMORY are untrusted.
 */
void snapwalk(const struct snapwalk_opts *opts, const __u64 *regs, const struct snapwalk_memory *memory,
	__u64 *frames, struct snapwalk_end *ret);

#endif
