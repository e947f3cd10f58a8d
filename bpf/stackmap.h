/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stackmap - the data shared by stackmap-test and its BPF programs.
 *
 * One structure in the programs' .bss, mapped by user space. User space writes
 * the first part while `armed` is off; a program writes the second part once
 * and disarms itself, so nothing is read while it can change.
 */
#ifndef STACKTOOLS_BPF_STACKMAP_H
#define STACKTOOLS_BPF_STACKMAP_H

#include <stddef.h>
#include <linux/types.h>

#define STACKMAP_WORDS 128 /* room for bpf_get_stack(): 128 frames, or 32 build IDs with offsets */

enum stackmap_half { STACKMAP_KERNEL, STACKMAP_USER, STACKMAP_HALVES };

enum stackmap_armed {
	STACKMAP_OFF,
	STACKMAP_ONCE, /* the next match fills the result and disarms */
	STACKMAP_COUNT, /* each match adds one to `counts` under its user stack's id */
	STACKMAP_KTHREAD, /* like ONCE, for the next kernel thread that leaves a CPU */
};

struct stackmap_state {
	/* the request */
	__u64 ns_dev, ns_ino; /* of the PID namespace that tgid and tid belong to */
	__u32 tgid;
	__u32 tid; /* 0 = every thread of tgid */
	__u32 armed; /* enum stackmap_armed */
	__u32 halves; /* bits 1 << enum stackmap_half */
	__u64 id_flags[STACKMAP_HALVES]; /* for bpf_get_stackid() */
	__u64 get_flags[STACKMAP_HALVES]; /* for bpf_get_stack() */
	__u32 get_bytes; /* room given to bpf_get_stack() */
	__u32 pad;
	__u64 nr; /* the system call to match */

	/* the result */
	__u64 hits; /* written last */
	__s64 id[STACKMAP_HALVES]; /* what bpf_get_stackid() returned */
	__s64 got[STACKMAP_HALVES]; /* what bpf_get_stack() returned: bytes or -errno */
	__u64 frames[STACKMAP_HALVES][STACKMAP_WORDS];
};

_Static_assert(sizeof(enum stackmap_armed) == 4, "both compilers use 4-byte enums");
_Static_assert(offsetof(struct stackmap_state, tgid) == 16, "no hidden padding before tgid");
_Static_assert(offsetof(struct stackmap_state, id_flags) == 32, "no hidden padding before id_flags");
_Static_assert(offsetof(struct stackmap_state, nr) == 72, "no hidden padding before nr");
_Static_assert(offsetof(struct stackmap_state, hits) == 80, "no hidden padding before hits");
_Static_assert(offsetof(struct stackmap_state, frames) == 120, "no hidden padding before frames");
_Static_assert(sizeof(struct stackmap_state) == 120 + 2 * 8 * STACKMAP_WORDS, "no hidden padding");

#endif
