/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * arm64 - where the kernel saves the registers of arm64 code.
 *
 * arch/arm64/include/asm/ptrace.h; arch/arm64/include/uapi/asm/sigcontext.h and
 * ucontext.h. The functions are those of unwind/x86.h.
 */
#ifndef STACKTOOLS_UNWIND_ARM64_H
#define STACKTOOLS_UNWIND_ARM64_H

#include "base/base.h"
#include "unwind_abi.h"

/* DWARF numbers. BX: there is no such register. PC is only of a struct pt_regs. */
enum { UNWINDARM64_FP = 29, UNWINDARM64_SP = 31, UNWINDARM64_PC = 32, UNWINDARM64_BX = 255 };
#define UNWINDARM64_REGS 32 /* general registers */

/* The words of a struct pt_regs behind the registers. */
enum { UNWINDARM64_PSTATE_WORD = 33, UNWINDARM64_CALL_WORD = 35 };

uint64_t unwindarm64_saved(const __u64 *pt_regs, unsigned int reg);
unsigned int unwindarm64_ucontext(unsigned int reg, bool narrow);

/* Does a thread with these registers execute 32-bit Arm code? */
bool unwindarm64_is_narrow(const __u64 *pt_regs);
void unwindarm64_set_narrow(__u64 *pt_regs);

bool unwindarm64_in_syscall(const __u64 *pt_regs);

#endif
