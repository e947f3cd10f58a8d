/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The x86-64 part of the walk: where registers are saved, and how to recognize
 * a call. Another architecture needs another file of this form.
 *
 * Sources: System V ABI for x86-64, figure 3.36 (DWARF register numbers);
 * arch/x86/include/uapi/asm/ptrace.h and sigcontext.h.
 */
#ifndef STACKTOOLS_UNWIND_X86_BPF_H
#define STACKTOOLS_UNWIND_X86_BPF_H

enum { ARCH_BX = 3, ARCH_FP = 6, ARCH_SP = 7 }; /* DWARF numbers */

#define ARCH_REGS 16
#define ARCH_USER32_CS 0x23
#define ARCH_STACK_ALIGN 8

/* By DWARF number: offset in struct pt_regs, and in the ucontext at SP in a signal frame, in bytes. */
const __u8 arch_pt_regs[ARCH_REGS] = { 80, 96, 88, 40, 104, 112, 32, 152, 72, 64, 56, 48, 24, 16, 8, 0 };
const __u8 arch_ucontext[ARCH_REGS] = { 144, 136, 152, 128, 112, 104, 120, 160, 40, 48, 56, 64, 72, 80, 88,
	96 };

static __always_inline bool arch_is_32bit(const struct pt_regs *regs)
{
	return regs->cs == ARCH_USER32_CS;
}

/* Inside a system call the entry code has stored -ENOSYS where the result will be. */
static __always_inline bool arch_in_syscall(const struct pt_regs *regs)
{
	return (long)regs->orig_rax >= 0 && (long)regs->rax == -38;
}

/*
 * Do the eight bytes before a return address end in a call? e8 with a 32-bit
 * displacement, or ff /2 with any addressing mode: 2, 3, 4, 6 or 7 bytes.
 */
static __always_inline bool arch_after_call(__u64 before)
{
#define BYTE(i) ((before >> (8 * (i))) & 0xff)
#define CALL_AT(i) (BYTE(i) == 0xff && ((BYTE((i) + 1) >> 3) & 7) == 2)
	return BYTE(3) == 0xe8 || CALL_AT(6) || CALL_AT(5) || CALL_AT(4) || CALL_AT(2) || CALL_AT(1);
#undef CALL_AT
#undef BYTE
}

#endif
