/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a few bytes of x86-64 or i386 code prove. Part of unwind_code.h. NARROW: it
 * is i386 code.
 *
 * Source of the encodings: Intel's Software Developer's Manual, volume 2.
 */
#ifndef STACKTOOLS_UNWIND_CODE_X86_H
#define STACKTOOLS_UNWIND_CODE_X86_H

/* Nothing is added to an address of code. */
static inline __u64 code_address(__u64 address)
{
	return address;
}

#define CODE_BYTE(code, i) ((code) >> (8 * (i)) & 0xff)
/* ff /OP with any addressing mode, I bytes from the beginning of a word */
#define CODE_FF(code, i, op) (CODE_BYTE(code, i) == 0xff && (CODE_BYTE(code, (i) + 1) >> 3 & 7) == (op))
#define CODE_FF_BEFORE(code, op)                                                                             \
	(CODE_FF(code, 6, op) || CODE_FF(code, 5, op) || CODE_FF(code, 4, op) || CODE_FF(code, 2, op) ||     \
		CODE_FF(code, 1, op))

/* Does BEFORE end in a call: e8 with a 32-bit displacement, or ff /2 of 2, 3, 4, 6 or 7 bytes? */
static inline bool code_after_call(__u64 before)
{
	return CODE_BYTE(before, 3) == 0xe8 || CODE_FF_BEFORE(before, 2);
}

/*
 * Does BEFORE end in an indirect jump, ff /4? An interpreter may push the return
 * address itself: HotSpot's dispatches a bytecode by a jump right before the
 * code that its callees return to.
 */
static inline bool code_after_jump(__u64 before)
{
	return CODE_FF_BEFORE(before, 4);
}

/* syscall; int $0x80. An i386 program's sysenter comes back behind an int $0x80. */
static inline bool code_after_syscall(__u64 before, bool narrow)
{
	return before >> 48 == (narrow ? 0x80cd : 0x050f);
}

/* Is BEFORE a direct call, returning to RA, of the function that PC is in? */
static inline bool code_calls(__u64 before, __u64 ra, __u64 pc)
{
	return CODE_BYTE(before, 3) == 0xe8 &&
	       pc - (ra + (__u64)(__s64)(__s32)(before >> 32)) < CODE_LEAF_BYTES;
}

/*
 * Their rules. Offsets from SP to the saved registers: arch/x86/include/uapi/asm/sigcontext.h
 * and arch/x86/include/asm/sigframe.h (sigframe_ia32, rt_sigframe_ia32).
 */
#define CODE_SIGRETURN_RULE(more, sp, bp, ip)                                                                \
	{                                                                                                    \
		.cfa = UNWIND_CFA_DEREF, .reg = 7, .fp = UNWIND_FP_AT_SP, .ra = UNWIND_RA_AT_SP,             \
		.flags = UNWIND_SIGNAL | (more), .cfa_off = (sp), .fp_off = (bp), .ra_off = (ip)             \
	}
#define CODE_SIGRETURN_RULES                                                                                 \
	CODE_SIGRETURN_RULE(0, 160, 120, 168), CODE_SIGRETURN_RULE(UNWIND_WORD4, 4 + 28, 4 + 24, 4 + 56),    \
		CODE_SIGRETURN_RULE(UNWIND_WORD4, 160 + 28, 160 + 24, 160 + 56)

static inline enum code_sigreturn code_sigreturn(__u64 code, bool narrow)
{
	const __u64 seven = code & 0x00ffffffffffffff;

	if (narrow)
		return code == 0x80cd00000077b858    ? CODE_SIGRETURN32
		       : seven == 0x0080cd000000adb8 ? CODE_RT_SIGRETURN32
						     : CODE_NO_SIGRETURN;
	return code == 0x0f0000000fc0c748 || seven == 0x00050f0000000fb8 ? CODE_SIGRETURN : CODE_NO_SIGRETURN;
}

/*
 * [add $SKIP, %rsp] [pop %rbp] ret, or leave; ret: nothing in between can be
 * jumped over, so this is what the frame will do.
 */
static inline enum code_return code_return(__u64 code, __u32 *skip)
{
	bool pops;

	*skip = 0;
	if ((code & 0xffff) == 0xc3c9)
		return CODE_LEAVES;
	if ((code & 0xffffff) == 0xc48348) {
		*skip = code >> 24 & 0xff;
		if (*skip > 0x7f) /* it is signed */
			return CODE_GOES_ON;
		code >>= 32;
	} else if ((code & 0xffffff) == 0xc48148) {
		*skip = (__u32)(code >> 24);
		if (*skip > CODE_FRAME_BYTES)
			return CODE_GOES_ON;
		code >>= 56;
	}
	pops = (code & 0xff) == 0x5d;
	if (pops)
		code >>= 8;
	if ((code & 0xff) != 0xc3 && (code & 0xffff) != 0xc3f3)
		return CODE_GOES_ON;
	return pops ? CODE_POPS_FP : CODE_RETURNS;
}

/* 1 if A is B, else 0; of bytes. As a comparison, the BPF verifier would follow both, eight times in turn. */
static inline __u32 code_same(__u32 a, __u32 b)
{
	__u32 below = (a ^ b) - 1;

	__asm__ volatile("" : "+r"(below)); /* the compiler makes no comparison of it */
	return below >> 31;
}

/*
 * The same of i386 code: [add $SKIP, %esp] [pop ...] ret, or leave; ret. The
 * kernel's code for system calls is such.
 */
static inline enum code_return code_return32(__u64 code, struct code_pops *p)
{
	__u32 has_fp = 0, has_bx = 0;

	p->skip = p->more = 0;
	p->bx = false;
	if ((code & 0xffff) == 0xc3c9)
		return CODE_LEAVES;
	if ((code & 0xffff) == 0xc483) {
		p->skip = code >> 16 & 0xff;
		if (p->skip > 0x7f)
			return CODE_GOES_ON;
		code >>= 24;
	} else if ((code & 0xffff) == 0xc481) {
		p->skip = (__u32)(code >> 16);
		if (p->skip > CODE_FRAME_BYTES)
			return CODE_GOES_ON;
		code >>= 48;
	}
	for (int i = 0; i < 8; i++, code >>= 8) {
		__u32 op = code & 0xff, fp = code_same(op, 0x5d);

		if (op == 0xc3) {
			p->bx = has_bx;
			return CODE_RETURNS + has_fp * (CODE_POPS_FP - CODE_RETURNS);
		}
		/* 58 to 5f: pop of a register; 5c is that of ESP */
		if ((op & 0xf8) != 0x58 || op == 0x5c || (fp & has_fp))
			return CODE_GOES_ON;
		has_bx |= code_same(op, 0x5b);
		p->more += 4 * has_fp;
		has_fp |= fp;
		p->skip += 4 * (has_fp ^ 1);
	}
	return CODE_GOES_ON;
}

/* Linkers describe the whole PLT by rows. */
static inline bool code_in_plt(__u64 before, __u64 after)
{
	(void)before, (void)after;
	return false;
}

#endif
