/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a stack ended, in the numbers of the capture format. Part of offcpu.bpf.c. */
#ifndef STACKTOOLS_OFFCPU_VERDICT_BPF_H
#define STACKTOOLS_OFFCPU_VERDICT_BPF_H

/* enum cap_stack_kind, cap_verdict, cap_reason: lib/record/bpf.c asserts that these agree */
enum { KIND_KERNEL = 1, KIND_USER = 2 };
enum { VERDICT_COMPLETE = 1, VERDICT_UNVERIFIED = 2, VERDICT_TRUNCATED = 3, VERDICT_STOPPED = 4 };
enum {
	REASON_ERRNO = 1,
	REASON_KTHREAD = 2,
	REASON_EXEC = 3,
	REASON_NOT_RECORDED = 4,
	REASON_NOT_SEEN = 5,
	REASON_EXITING = 7,
	REASON_COMPAT = 8,
	REASON_EMPTY = 9,
	REASON_MEMORY = 10,
	REASON_NO_MAPPING = 11,
	REASON_NO_ROW = 12,
	REASON_EXPRESSION = 13,
	REASON_REGISTER = 14,
	REASON_LOOP = 15,
	REASON_NOT_READY = 16,
	REASON_DROPPED = 17,
	REASON_NO_FRAME_POINTER = 18,
	REASON_DEPTH = 22,
	REASON_USER_MODE = 23,
};

const volatile __u32 depth = 127; /* maximum number of frames */

#endif
