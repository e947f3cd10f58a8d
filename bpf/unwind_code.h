/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_code - what a few bytes of code prove about the frame that executes
 * them. Shared by BPF and user space. An architecture has a header with the same
 * functions.
 *
 * Eight bytes of code are a word, the first byte lowest.
 */
#ifndef STACKTOOLS_UNWIND_CODE_H
#define STACKTOOLS_UNWIND_CODE_H

#include "unwind_abi.h"

#include <linux/types.h>
#include <stdbool.h>

/* The words of code around an address. */
struct unwind_code {
	__u64 at; /* the address; 0 = none */
	__u64 before, after; /* the eight bytes up to it, and those from it on; 0 = not readable */
};

#define CODE_LEAF_BYTES 4096 /* a function that makes a system call is not longer */
#define CODE_FRAME_BYTES (1 << 20) /* no frame is larger */

/* How the code that is executed next leaves the frame. */
enum code_return {
	CODE_GOES_ON = 0, /* not within these bytes */
	CODE_RETURNS =
		1, /* the return address is SKIP bytes above SP; on arm64 in x30, and SP will be there */
	/* the frame pointer is there, and the return address above it; on arm64 both are at SP, see below */
	CODE_POPS_FP = 2,
	CODE_LEAVES = 3, /* both are where the frame pointer points to */
};

/* The frames that a signal handler returns to. */
enum code_sigreturn {
	CODE_NO_SIGRETURN = 0,
	CODE_SIGRETURN = 1, /* mov $15, %rax (or %eax); syscall. mov x8, #139; svc #0 */
	CODE_SIGRETURN32 = 2, /* pop %eax; mov $119, %eax; int $0x80: SP points to the signal's number */
	CODE_RT_SIGRETURN32 = 3, /* mov $173, %eax; int $0x80 */
};

/* What i386 code pops before it returns. */
struct code_pops {
	__u32 skip, more; /* bytes before the frame pointer, or else the return address; and behind it */
	bool bx; /* the second callee-saved register is among them */
};

/* A reader of x86-64 files on any machine defines UNWIND_CODE_X86. */
#if defined(UNWIND_ARM64) && !defined(UNWIND_CODE_X86)
#include "unwind_code_arm64.h"
#else
#include "unwind_code_x86.h"
#endif

#endif
