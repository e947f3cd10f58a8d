/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What bpf/peek.bpf.c and lib/record/task_layout.c share. */
#ifndef STACKTOOLS_PEEK_H
#define STACKTOOLS_PEEK_H

#include <linux/types.h>

#define PEEK_MAX 16384
#define PEEK_PIECE 64

struct peek {
	__u64 task; /* address of the current task */
	__u64 pid_tgid; /* its IDs in the initial PID namespace: tgid in the upper half */
	__u64 len; /* bytes that were readable */
	__u64 left, left_state; /* the watched thread's task when it left, and the bits of its states */
	__u8 bytes[PEEK_MAX];
};

_Static_assert(sizeof(struct peek) == 40 + PEEK_MAX, "peek");

#endif
