/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * x86 - where the kernel saves the registers of x86-64 and i386 code, and their
 * instructions.
 *
 * arch/x86/include/uapi/asm/ptrace.h and sigcontext.h. NARROW: of i386 code. In
 * rules, its registers have the numbers of x86-64.
 */
#ifndef STACKTOOLS_UNWIND_X86_H
#define STACKTOOLS_UNWIND_X86_H

#include "base/base.h"
#include "unwind_abi.h"

enum { UNWINDX86_BX = 3, UNWINDX86_FP = 6, UNWINDX86_SP = 7, UNWINDX86_RA = 16 };
#define UNWINDX86_REGS 16 /* general registers */

/*
 * The value of DWARF register REG (below UNWINDX86_REGS, or UNWINDX86_RA for
 * the PC) in the words of a struct pt_regs.
 */
uint64_t unwindx86_saved(const __u64 *pt_regs, unsigned int reg);

/*
 * The offset from SP in a signal frame to register REG (below UNWINDX86_REGS) in
 * its ucontext; NARROW: from the sigcontext.
 */
unsigned int unwindx86_ucontext(unsigned int reg, bool narrow);

#define UNWINDX86_CS 17 /* of the words of a struct pt_regs */
#define UNWINDX86_USER32_CS 0x23

/* Does a thread with these registers execute i386 code? */
bool unwindx86_is_narrow(const __u64 *pt_regs);
void unwindx86_set_narrow(__u64 *pt_regs);

/*
 * One instruction, as far as code that switches stacks needs it. Not decoded:
 * EVEX and XOP, and what 64-bit mode has not.
 */
struct unwindx86_insn {
	uint8_t len;
	uint16_t op; /* the opcode; 0x100 + its second byte after 0f, 0x200 in other maps */
	bool fs; /* the memory operand is relative to FS */
	bool wide; /* 64-bit operands */
	bool has_modrm, memory, indexed; /* indexed: the address has an index, or an unusual segment */
	/* numbers of the encoding, not of DWARF: of modrm (rm: of a register operand), or of the opcode */
	uint8_t reg, rm;
	uint8_t base; /* of a memory operand; UNWINDX86_NO_BASE, or UNWINDX86_RIP */
	int32_t disp, imm;
};

enum { UNWINDX86_RSP = 4, UNWINDX86_RBP = 5, UNWINDX86_NO_BASE = 16, UNWINDX86_RIP = 17 };

/* Decode the instruction at P, of at most N bytes. Returns false if it is unknown or cut. */
bool unwindx86_decode(const uint8_t *p, size_t n, struct unwindx86_insn *ret);

/* The DWARF number of the encoding's register N (below 16). */
unsigned int unwindx86_dwarf(unsigned int n);

/*
 * Does the instruction set the stack pointer in another way than by a constant
 * distance (push, pop, call, return, add, sub and lea with constants)?
 */
bool unwindx86_sets_sp(const struct unwindx86_insn *i);

/* Is a thread with these registers inside a system call? */
bool unwindx86_in_syscall(const __u64 *pt_regs);

#endif
