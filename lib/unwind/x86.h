/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * x86 - the x86-64 side of the compiler of rows: register numbers, and
 * which rules of call frame information a row can hold.
 *
 * System V ABI for x86-64, section 3.7.2 (registers), 3.4 and figure 3.36
 * (DWARF numbers); where the kernel saves registers is as in
 * arch/x86/include/uapi/asm/ptrace.h and sigcontext.h. Another architecture is
 * one more such file.
 */
#ifndef STACKTOOLS_UNWIND_X86_H
#define STACKTOOLS_UNWIND_X86_H

#include "unwind/cfi.h"
#include "unwind_abi.h"

enum { UNWINDX86_BX = 3, UNWINDX86_FP = 6, UNWINDX86_SP = 7, UNWINDX86_RA = 16 };
#define UNWINDX86_REGS 16 /* general registers */

/* What a rule could not say. */
enum unwindx86_lost {
	UNWINDX86_CFA = 1, /* where the frame or the return address is: the rule is UNWIND_CFA_UNSUPPORTED */
	UNWINDX86_LOST_FP = 2, /* where the frame pointer is: UNWIND_FP_UNKNOWN */
};

/*
 * libc ends the unwind information of clone and clone3 right before their
 * system call, as it would be wrong in the child. The parent waits there (for
 * vfork's sake), and for it the last row holds on. UNWINDX86_SYSCALL bytes at
 * CODE, where an FDE ended: is this a system call?
 */
#define UNWINDX86_SYSCALL 2
bool unwindx86_is_syscall(const uint8_t *code);

/* The rule for RULES into *RET, SIGNAL for a frame of a signal handler. Returns what was lost, 0 = nothing.
 */
unsigned int unwindx86_rule(const struct cfarules *rules, bool signal, struct unwind_rule *ret);

/* DWARF register REG (below UNWINDX86_REGS, or UNWINDX86_RA for the PC) of the words of a struct pt_regs. */
uint64_t unwindx86_saved(const __u64 *pt_regs, unsigned int reg);

/* Bytes from SP in a signal frame to where register REG (below UNWINDX86_REGS) is in its ucontext. */
unsigned int unwindx86_ucontext(unsigned int reg);

/*
 * Do the eight bytes of code before a return address, as a word, end in a call? e8 with 32 bits of distance,
 * or ff /2 with any addressing mode: 2, 3, 4, 6 or 7 bytes.
 */
bool unwindx86_after_call(uint64_t before);

/* Did a thread enter the kernel by a system call, which is not over? */
bool unwindx86_in_syscall(const __u64 *pt_regs);

/* The name of DWARF register REG ("rbp"), NULL for one that is not a general register. */
const char *unwindx86_register(unsigned int reg);

#endif
