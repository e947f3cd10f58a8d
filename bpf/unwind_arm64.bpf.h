/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The arm64 part of the walk: where registers are saved. What code proves is in
 * unwind_code_arm64.h.
 *
 * Sources: DWARF for the Arm 64-bit Architecture, section 4.1 (register numbers);
 * arch/arm64/include/uapi/asm/ptrace.h, sigcontext.h and ucontext.h.
 */
#ifndef STACKTOOLS_UNWIND_ARM64_BPF_H
#define STACKTOOLS_UNWIND_ARM64_BPF_H

#include "unwind_code.h"

/* DWARF numbers. There is no second callee-saved register: no number of a rule is ARCH_BX. */
enum { ARCH_BX = 255, ARCH_FP = 29, ARCH_SP = 31 };
#define ARCH_LR 30 /* the register in which a call leaves the return address */

#define ARCH_REGS 32
#define ARCH_USER32 0x10 /* of pstate: PSR_MODE32_BIT */

/* In struct pt_regs, by DWARF number: x0 to x30, sp. */
static __always_inline __u64 arch_in_pt_regs(__u32 reg)
{
	return 8 * reg;
}

/* The same from SP in a signal frame. */
static __always_inline __u64 arch_in_ucontext(__u32 reg, __u32 bytes)
{
	return CODE_UCONTEXT_REGS + 8 * reg;
}

/* Are REGS, those of a perf event, of user mode? They can be read as whole words only. */
static __always_inline bool arch_is_user(const __u64 *regs)
{
	__u64 pstate = regs[33];

	barrier_var(pstate);
	return !(pstate & 0xf); /* PSR_MODE_EL0t */
}

static __always_inline bool arch_is_32bit(const struct pt_regs *regs)
{
	return regs->user.pstate & ARCH_USER32;
}

/* There are no unwind tables of 32-bit Arm code here. */
static __always_inline bool arch_walks_32bit(void)
{
	return false;
}

static __always_inline bool arch_in_syscall(const struct pt_regs *regs)
{
	return regs->syscallno >= 0;
}

static __always_inline __u32 arch_syscall(const struct pt_regs *regs)
{
	return regs->syscallno;
}

/* The frames that a signal handler returns to, if no row describes them, by enum code_sigreturn. */
const struct unwind_rule arch_sigreturn[4] = { {}, CODE_SIGRETURN_RULES };

#endif
