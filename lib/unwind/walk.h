/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk - the walk of a user stack by unwind tables, over a copy of registers
 * and memory.
 *
 * The rules are those of bpf/unwind.bpf.h. A step by frame pointer, where no
 * row covers the code, needs the code before the return address: where that
 * cannot be read, as of a snapshot that BPF made, the walk ends there, and all
 * that it finds was found by table.
 */
#ifndef STACKTOOLS_UNWIND_WALK_H
#define STACKTOOLS_UNWIND_WALK_H

#include "base/base.h"
#include "offcpu_abi.h"

/* What is known of the code at an address. */
enum snapwalk_code {
	SNAPWALK_TABLE =
		1, /* it has a table: the rule is its row's, NULL or UNWIND_CFA_NONE where there is none */
	SNAPWALK_NO_TABLE, /* it is mapped, and no table will come */
	SNAPWALK_NO_MAPPING, /* nothing executable was mapped there */
	SNAPWALK_NOT_READY, /* a table is on its way */
	SNAPWALK_DROPPED, /* there was no memory for its table */
	SNAPWALK_UNKNOWN, /* what was mapped there then cannot be told, now or later */
};

struct snapwalk_area {
	const uint8_t *bytes; /* what was at FROM; LEN of them */
	uint64_t from, len;
};

struct snapwalk_memory {
	const struct snapwalk_area *areas;
	size_t n;
	uint64_t bottom; /* where the main thread's stack begins; 0 = not known */
};

struct snapwalk_opts {
	uint32_t depth; /* frames at most; FRAMES has room for them */
	uint32_t unknown; /* bit N: DWARF register N is not in REGS; never so of SP and PC */
	enum snapwalk_code (*find)(void *ctx, uint64_t pc, const struct unwind_rule **rule);
	/* The eight bytes of the process's code at ADDR, as a word; NULL = no step is taken by frame pointer
	 */
	bool (*code)(void *ctx, uint64_t addr, uint64_t *word);
	void *ctx;
};

struct snapwalk_end {
	uint32_t len; /* frames */
	/*
	 * enum cap_verdict: complete, unverified where a frame pointer led to a return address of zero,
	 * truncated or stopped; enum cap_reason. REASON_REGISTER where a register is missing, one that is
	 * unknown for instance.
	 */
	uint8_t verdict, reason;
	bool last_exact; /* the last frame is a function's first byte, which nothing has called */
	bool missed; /* the last frame took memory that no area has: */
	uint64_t wanted; /* there, first of all */
	enum snapwalk_code
		code; /* of the frame where it stopped for want of a mapping, table or row; else 0 */
	uint64_t stop_pc; /* of a walk that stopped */
};

/*
 * Walk from REGS, the OFFCPU_SNAPSHOT_REGS words of struct pt_regs, which the
 * thread entered the kernel with. FRAMES are PCs, with OFFCPU_EXACT as in
 * struct offcpu_ev_stack. Nothing in MEMORY is believed to make sense.
 */
void snapwalk(const struct snapwalk_opts *opts, const __u64 *regs, const struct snapwalk_memory *memory,
	__u64 *frames, struct snapwalk_end *ret);

#endif
