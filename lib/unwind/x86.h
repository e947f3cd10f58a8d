/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * x86 - the x86-64 part of the compiler of rows: register numbers, and which
 * rules of call frame information a row can hold.
 *
 * System V ABI for x86-64, section 3.7.2 (registers), 3.4 and figure 3.36
 * (DWARF numbers); arch/x86/include/uapi/asm/ptrace.h and sigcontext.h for
 * where the kernel saves registers. Another architecture needs another such
 * file.
 */
#ifndef STACKTOOLS_UNWIND_X86_H
#define STACKTOOLS_UNWIND_X86_H

#include "unwind/cfi.h"
#include "unwind_abi.h"

enum { UNWINDX86_BX = 3, UNWINDX86_FP = 6, UNWINDX86_SP = 7, UNWINDX86_RA = 16 };
#define UNWINDX86_REGS 16 /* general registers */

/* What a rule cannot express. */
enum unwindx86_lost {
	UNWINDX86_CFA = 1, /* the frame or the return address: the rule is UNWIND_CFA_UNSUPPORTED */
	UNWINDX86_LOST_FP = 2, /* the frame pointer: UNWIND_FP_UNKNOWN */
};

/*
 * libc ends the unwind information of clone and clone3 right before their
 * system call, because it would be wrong in the child. The parent blocks there
 * (as after vfork), and for it the last row is still valid. Are the
 * UNWINDX86_SYSCALL bytes at CODE, where an FDE ends, a system call?
 */
#define UNWINDX86_SYSCALL 2
bool unwindx86_is_syscall(const uint8_t *code);

/*
 * Convert RULES to *RET; SIGNAL: the frame is that of a signal handler. Returns
 * what was lost, 0 = nothing.
 */
unsigned int unwindx86_rule(const struct cfarules *rules, bool signal, struct unwind_rule *ret);

/*
 * The value of DWARF register REG (below UNWINDX86_REGS, or UNWINDX86_RA for
 * the PC) in the words of a struct pt_regs.
 */
uint64_t unwindx86_saved(const __u64 *pt_regs, unsigned int reg);

/* The offset from SP in a signal frame to register REG (below UNWINDX86_REGS) in its ucontext. */
unsigned int unwindx86_ucontext(unsigned int reg);

/* Is a thread with these registers inside a system call? */
bool unwindx86_in_syscall(const __u64 *pt_regs);

/* The name of DWARF register REG ("rbp"); NULL if it is not a general register. */
const char *unwindx86_register(unsigned int reg);

#endif
