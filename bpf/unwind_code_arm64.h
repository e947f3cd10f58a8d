/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a few bytes of arm64 code prove. Part of unwind_code.h. Instructions have
 * four bytes; a word of code has two, the first one lower.
 *
 * Source of the encodings: Arm Architecture Reference Manual for A-profile,
 * chapter C6. NARROW is for i386 code, which is not here.
 */
#ifndef STACKTOOLS_UNWIND_CODE_ARM64_H
#define STACKTOOLS_UNWIND_CODE_ARM64_H

#define CODE_FIRST(code) ((__u32)(code))
#define CODE_SECOND(code) ((__u32)((code) >> 32))

/*
 * An address of code without the signature of pointer authentication, which
 * begins at bit 48 or 52. Bit 55 says which half of the addresses it is: that of
 * a program is zero. A program has code above 2^48 only if it asks mmap(2) for
 * such an address.
 */
static inline __u64 code_address(__u64 address)
{
	return address & 0x0000ffffffffffff;
}

/* bl; blr; blraa, blrab; blraaz, blrabz */
static inline bool code_after_call(__u64 before)
{
	const __u32 insn = CODE_SECOND(before);

	return (insn & 0xfc000000) == 0x94000000 || (insn & 0xfffffc1f) == 0xd63f0000 ||
	       (insn & 0xfffff800) == 0xd73f0800 || (insn & 0xfffff81f) == 0xd63f081f;
}

/* No jump leaves a return address. */
static inline bool code_after_jump(__u64 before)
{
	(void)before;
	return false;
}

/* svc #0 */
static inline bool code_after_syscall(__u64 before, bool narrow)
{
	(void)narrow;
	return CODE_SECOND(before) == 0xd4000001;
}

/* x30 may be left over from a call that the function has made itself: that proves nothing. */
static inline bool code_calls(__u64 before, __u64 ra, __u64 pc)
{
	(void)before, (void)ra, (void)pc;
	return false;
}

/*
 * The kernel's own trampoline, in the vdso, has no row. At SP is its rt_sigframe:
 * 128 bytes of siginfo, then the ucontext, whose registers begin at byte 184
 * (arch/arm64/include/uapi/asm/sigcontext.h and ucontext.h).
 */
#define CODE_UCONTEXT_REGS (128 + 184)
#define CODE_SIGRETURN_RULES                                                                                 \
	{                                                                                                    \
		.cfa = UNWIND_CFA_DEREF, .reg = 31, .fp = UNWIND_FP_AT_SP, .ra = UNWIND_RA_AT_SP,            \
		.flags = UNWIND_SIGNAL, .cfa_off = CODE_UCONTEXT_REGS + 8 * 31,                              \
		.fp_off = CODE_UCONTEXT_REGS + 8 * 29, .ra_off = CODE_UCONTEXT_REGS + 8 * 32                 \
	}

static inline enum code_sigreturn code_sigreturn(__u64 code, bool narrow)
{
	(void)narrow;
	return code == 0xd4000001d2801168 ? CODE_SIGRETURN : CODE_NO_SIGRETURN;
}

/* ret; retaa, retab */
static inline bool code_is_ret(__u32 insn)
{
	return insn == 0xd65f03c0 || (insn & 0xfffffbff) == 0xd65f0bff;
}

/*
 * [add sp, sp, #SKIP] ret: the return address is in x30. ldp x29, x30, [sp], #SKIP;
 * ret: both are at SP. Nothing in between can be jumped over, so this is what the
 * frame will do.
 */
static inline enum code_return code_return(__u64 code, __u32 *skip)
{
	const __u32 insn = CODE_FIRST(code);

	*skip = 0;
	if (code_is_ret(insn))
		return CODE_RETURNS;
	if (!code_is_ret(CODE_SECOND(code)))
		return CODE_GOES_ON;
	if ((insn & 0xff8003ff) == 0x910003ff) {
		*skip = (insn >> 10 & 0xfff) << (insn >> 22 & 1 ? 12 : 0);
		return *skip <= CODE_FRAME_BYTES ? CODE_RETURNS : CODE_GOES_ON;
	}
	/* of the seven bits of the offset the upper one is its sign */
	if ((insn & 0xffe07fff) == 0xa8c07bfd) {
		*skip = (insn >> 15 & 0x3f) * 8;
		return CODE_POPS_FP;
	}
	return CODE_GOES_ON;
}

static inline enum code_return code_return32(__u64 code, struct code_pops *p)
{
	(void)code;
	p->skip = p->more = 0;
	p->bx = false;
	return CODE_GOES_ON;
}

#define CODE_PUSHES_LINK 0xa9bf7bf0 /* stp x16, x30, [sp, #-16]!: only the first entry of a PLT */

/*
 * The frame of an entry of a PLT: it has pushed nothing, the return address is in
 * x30. Linkers give it no row. [bti c] adrp x16; ldr x17, [x16, #n]; add x16, x16,
 * #n; br x17: before one of the first three, where it may wait for a page.
 */
static inline bool code_in_plt(__u64 before, __u64 after)
{
	const __u32 next = CODE_FIRST(after), second = CODE_SECOND(after), last = CODE_SECOND(before);

	if (next == 0xd503245f) /* bti c */
		return (second & 0x9f00001f) == 0x90000010;
	if ((next & 0x9f00001f) == 0x90000010) /* adrp x16 */
		return last && last != CODE_PUSHES_LINK && (second & 0xffc003ff) == 0xf9400211;
	return (next & 0xffc003ff) == 0xf9400211 && (second & 0xffc003ff) == 0x91000210 &&
	       (last & 0x9f00001f) == 0x90000010 && CODE_FIRST(before) &&
	       CODE_FIRST(before) != CODE_PUSHES_LINK;
}

#endif
