/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The x86-64 part of the walk: where registers are saved. What code proves is
 * in unwind_code.h. Another architecture needs other files of this form.
 *
 * Sources: System V ABI for x86-64, figure 3.36 (DWARF register numbers);
 * arch/x86/include/uapi/asm/ptrace.h and sigcontext.h.
 */
#ifndef STACKTOOLS_UNWIND_X86_BPF_H
#define STACKTOOLS_UNWIND_X86_BPF_H

#include "unwind_code.h"

enum { ARCH_BX = 3, ARCH_FP = 6, ARCH_SP = 7 }; /* DWARF numbers */
#define ARCH_LR 0 /* the register in which a call leaves the return address; 0 = it is on the stack */

#define ARCH_REGS 16
#define ARCH_NARROW 16
#define ARCH_USER32_CS 0x23

/*
 * By DWARF number: offset in struct pt_regs, and in the ucontext at SP in a signal
 * frame, in bytes. From ARCH_NARROW on: in the sigcontext of i386.
 */
const __u8 arch_pt_regs[ARCH_REGS] = { 80, 96, 88, 40, 104, 112, 32, 152, 72, 64, 56, 48, 24, 16, 8, 0 };
const __u8 arch_ucontext[2 * ARCH_NARROW] = { 144, 136, 152, 128, 112, 104, 120, 160, 40, 48, 56, 64, 72, 80,
	88, 96, 44, 36, 40, 32, 20, 16, 24, 28 };

static __always_inline __u64 arch_in_pt_regs(__u32 reg)
{
	return arch_pt_regs[reg];
}

static __always_inline __u64 arch_in_ucontext(__u32 reg, __u32 bytes)
{
	__u32 at = reg | (bytes & 4) << 2;

	/* the mask is for the verifier of Linux 6.1, which does not know what an "or" can be */
	barrier_var(at);
	return arch_ucontext[at & (2 * ARCH_NARROW - 1)];
}

/* Are REGS, those of a perf event, of user mode? They can be read as whole words only. */
static __always_inline bool arch_is_user(const __u64 *regs)
{
	__u64 cs = regs[17];

	barrier_var(cs);
	return (cs & 3) == 3;
}

static __always_inline bool arch_walks_32bit(void)
{
	return true;
}

static __always_inline bool arch_is_32bit(const struct pt_regs *regs)
{
	return regs->cs == ARCH_USER32_CS;
}

/* Inside a system call the entry code has stored -ENOSYS where the result will be. */
static __always_inline bool arch_in_syscall(const struct pt_regs *regs)
{
	return (long)regs->orig_rax >= 0 && (long)regs->rax == -38;
}

static __always_inline __u32 arch_syscall(const struct pt_regs *regs)
{
	return regs->orig_rax;
}

/* The frames that a signal handler returns to, if no row describes them, by enum code_sigreturn. */
const struct unwind_rule arch_sigreturn[4] = { {}, CODE_SIGRETURN_RULES };

#endif
