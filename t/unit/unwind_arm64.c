/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The arm64 half of the walk, on any machine: what code proves about its frame,
 * and walks of made-up memory. The encodings are those that GNU as makes.
 */
#define UNWIND_ARM64
#include "base/tap.h"
#include "unwind/walk.c"

enum {
	BL = 0x94000040,
	BL_BACK = 0x97ffffc0,
	BLR = 0xd63f0060,
	BLRAA = 0xd73f0864,
	BLRAB = 0xd73f0c7f,
	BLRAAZ = 0xd63f08bf,
	BLRABZ = 0xd63f0cbf,
	BR = 0xd61f0220, /* br x17 */
	B = 0x14000002,
	SVC = 0xd4000001,
	MOV_139 = 0xd2801168, /* mov x8, #139 */
	RET = 0xd65f03c0,
	RETAA = 0xd65f0bff,
	RETAB = 0xd65f0fff,
	RET_X3 = 0xd65f0060,
	ADD_64 = 0x910103ff, /* add sp, sp, #64 */
	ADD_8192 = 0x91400bff, /* add sp, sp, #2, lsl #12 */
	ADD_16M = 0x917fffff,
	SUB_64 = 0xd10103ff,
	ADD_X29 = 0x910103fd, /* add x29, sp, #64 */
	LDP_64 = 0xa8c47bfd, /* ldp x29, x30, [sp], #64 */
	LDP_BELOW = 0xa8fc7bfd, /* ldp x29, x30, [sp], #-64 */
	LDP_OFFSET = 0xa9447bfd, /* ldp x29, x30, [sp, #64] */
	LDP_X28 = 0xa8c473fd, /* ldp x29, x28, [sp], #64 */
	STP_LINK = 0xa9bf7bf0, /* stp x16, x30, [sp, #-16]! */
	ADRP = 0x90000010, /* adrp x16, . */
	LDR = 0xf9400611, /* ldr x17, [x16, #8] */
	ADD_X16 = 0x91002210, /* add x16, x16, #8 */
	BTI = 0xd503245f,
	NOP = 0xd503201f,
};

static uint64_t pair(uint32_t first, uint32_t second)
{
	return first | (uint64_t)second << 32;
}

/* --- code --- */

static void test_calls(struct tap *t)
{
	static const struct {
		uint32_t insn;
		bool is_call;
		const char *name;
	} insns[] = { { BL, true, "bl" }, { BL_BACK, true, "bl backwards" }, { BLR, true, "blr" },
		{ BLRAA, true, "blraa" }, { BLRAB, true, "blrab" }, { BLRAAZ, true, "blraaz" },
		{ BLRABZ, true, "blrabz" }, { BR, false, "br" }, { B, false, "b" }, { RET, false, "ret" },
		{ SVC, false, "svc" }, { NOP, false, "nop" }, { 0, false, "nothing" } };

	for (size_t i = 0; i < ARRAY_LEN(insns); i++) {
		tap_ok(t, code_after_call(pair(NOP, insns[i].insn)) == insns[i].is_call, "%s is %sa call",
			insns[i].name, insns[i].is_call ? "" : "not ");
		tap_ok(t, !code_after_call(pair(insns[i].insn, NOP)), "%s, and then a nop, is not one",
			insns[i].name);
	}
	tap_ok(t, code_after_syscall(pair(NOP, SVC), false) && !code_after_syscall(pair(SVC, NOP), false),
		"svc is a system call");
	tap_ok(t,
		code_sigreturn(pair(MOV_139, SVC), false) == CODE_SIGRETURN &&
			!code_sigreturn(pair(SVC, MOV_139), false) && !code_sigreturn(pair(NOP, SVC), false),
		"the trampoline of signals is known");
	tap_ok(t,
		code_address(UINT64_C(0x002affff12345678)) == UINT64_C(0xffff12345678) &&
			code_address(UINT64_C(0xffff12345678)) == UINT64_C(0xffff12345678),
		"the signature of a return address is removed");
}

static void test_returns(struct tap *t)
{
	static const struct {
		uint32_t first, second;
		enum code_return way;
		uint32_t skip;
		const char *name;
	} codes[] = { { RET, NOP, CODE_RETURNS, 0, "ret" }, { RETAA, NOP, CODE_RETURNS, 0, "retaa" },
		{ RETAB, NOP, CODE_RETURNS, 0, "retab" }, { ADD_64, RET, CODE_RETURNS, 64, "add; ret" },
		{ ADD_64, RETAA, CODE_RETURNS, 64, "add; retaa" },
		{ ADD_8192, RET, CODE_RETURNS, 8192, "add of pages; ret" },
		{ LDP_64, RET, CODE_POPS_FP, 64, "ldp; ret" }, { RET_X3, NOP, CODE_GOES_ON, 0, "ret x3" },
		{ NOP, RET, CODE_GOES_ON, 0, "nop; ret" }, { ADD_64, NOP, CODE_GOES_ON, 0, "add" },
		{ ADD_16M, RET, CODE_GOES_ON, 0, "add of 16 MB; ret" },
		{ SUB_64, RET, CODE_GOES_ON, 0, "sub; ret" },
		{ ADD_X29, RET, CODE_GOES_ON, 0, "add x29; ret" }, { LDP_64, B, CODE_GOES_ON, 0, "ldp; b" },
		{ LDP_BELOW, RET, CODE_GOES_ON, 0, "ldp with a negative offset; ret" },
		{ LDP_OFFSET, RET, CODE_GOES_ON, 0, "ldp that does not pop; ret" },
		{ LDP_X28, RET, CODE_GOES_ON, 0, "ldp of other registers; ret" } };

	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		uint32_t skip;
		enum code_return way = code_return(pair(codes[i].first, codes[i].second), &skip);

		tap_ok(t, way == codes[i].way && (way == CODE_GOES_ON || skip == codes[i].skip),
			"%s: way %d, %u bytes", codes[i].name, way, skip);
	}
}

static void test_plt(struct tap *t)
{
	static const struct {
		uint32_t code[4]; /* two before, two from there on */
		bool is;
		const char *name;
	} codes[] = { { { ADD_X16, BR, ADRP, LDR }, true, "before adrp" },
		{ { BR, ADRP, LDR, ADD_X16 }, true, "before ldr" },
		{ { ADD_X16, BR, BTI, ADRP }, true, "before bti" },
		{ { BR, BTI, ADRP, LDR }, true, "behind bti" },
		{ { ADRP, LDR, ADD_X16, BR }, false, "before add, where the first entry looks the same," },
		{ { LDR, ADD_X16, BR, ADRP }, false, "before br" },
		{ { NOP, STP_LINK, ADRP, LDR }, false, "before adrp of the first entry, which has pushed," },
		{ { STP_LINK, ADRP, LDR, ADD_X16 }, false, "before ldr of the first entry" },
		{ { NOP, NOP, STP_LINK, ADRP }, false, "before the first entry" },
		{ { BR, NOP, LDR, ADD_X16 }, false, "ldr without adrp" },
		{ { ADD_X16, BR, ADRP, NOP }, false, "adrp without ldr" },
		{ { 0, 0, ADRP, LDR }, false, "where nothing before it can be read" },
		{ { NOP, NOP, BTI, NOP }, false, "a bti of a function" } };

	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		tap_ok(t,
			code_in_plt(pair(codes[i].code[0], codes[i].code[1]),
				pair(codes[i].code[2], codes[i].code[3])) == codes[i].is,
			"PLT, %s: %s", codes[i].name, codes[i].is ? "has pushed nothing" : "not known");
}

/* --- walks --- */

#define FN(n) (0x10000 + 0x1000 * (uint64_t)(n)) /* where function N begins */
#define STACK 0x700000
#define DEPTH 16

/* What is known of each function, and its words of code at 0x100; others are nop. */
enum { LEAF, FRAME, BY_FP, OUTER, SAVED_IN_X20, NO_ROW, JIT, JIT_OUTER, FUNCTIONS };

static const struct unwind_rule rules[FUNCTIONS] = {
	[LEAF] = { .cfa = UNWIND_CFA_REG, .reg = 31, .ra = UNWIND_RA_REG, .ra_off = 30 },
	[FRAME] = { .cfa = UNWIND_CFA_REG,
		.reg = 31,
		.cfa_off = 32,
		.fp = UNWIND_FP_CFA,
		.fp_off = -32,
		.ra = UNWIND_RA_CFA,
		.ra_off = -24 },
	[BY_FP] = { .cfa = UNWIND_CFA_REG,
		.reg = 29,
		.cfa_off = 32,
		.fp = UNWIND_FP_CFA,
		.fp_off = -32,
		.ra = UNWIND_RA_CFA,
		.ra_off = -24 },
	[OUTER] = { .cfa = UNWIND_CFA_REG, .reg = 31, .ra = UNWIND_RA_END },
	[SAVED_IN_X20] = { .cfa = UNWIND_CFA_REG, .reg = 31, .ra = UNWIND_RA_REG, .ra_off = 20 },
};

struct scene {
	__u64 regs[OFFCPU_SNAPSHOT_REGS];
	uint64_t stack[256];
	uint64_t before, after; /* words of code at FN(NO_ROW) + 0x100 */
	__u64 frames[DEPTH];
	struct snapwalk_end end;
	bool pc_only; /* of the registers, PC and SP alone are known */
};

static enum snapwalk_code find_made_up(void *ctx, uint64_t pc, const struct unwind_rule **rule)
{
	uint64_t n = (pc - FN(0)) / 0x1000;

	(void)ctx;
	if (pc < FN(0) || n >= FUNCTIONS)
		return SNAPWALK_NO_MAPPING;
	if (n == JIT || n == JIT_OUTER)
		return SNAPWALK_NO_TABLE;
	*rule = n == NO_ROW ? NULL : &rules[n];
	return SNAPWALK_TABLE;
}

static bool made_up_code(void *ctx, uint64_t addr, uint64_t *word)
{
	const struct scene *s = ctx;

	*word = addr == FN(NO_ROW) + 0xf8    ? s->before
		: addr == FN(NO_ROW) + 0x100 ? s->after
		: (addr & 0xfff) == 0x1f8    ? pair(NOP, BL) /* return addresses are at 0x200 */
					     : pair(NOP, NOP);
	return true;
}

/* In function N, which was interrupted: return address X30 and frame pointer FP. */
static struct scene begin(unsigned int n, uint64_t x30, uint64_t fp)
{
	struct scene s = { .before = pair(NOP, NOP), .after = pair(NOP, NOP) };

	s.regs[30] = x30;
	s.regs[29] = fp;
	s.regs[31] = STACK;
	s.regs[32] = FN(n) + 0x100;
	s.regs[35] = (uint32_t)-1;
	return s;
}

static void put(struct scene *s, uint64_t addr, uint64_t value)
{
	s->stack[(addr - STACK) / 8] = value;
}

static void run(struct scene *s)
{
	const struct snapwalk_area area = { (const uint8_t *)s->stack, STACK, sizeof(s->stack) };
	const struct snapwalk_memory memory = { .areas = &area, .n = 1 };
	const struct snapwalk_opts opts = { .depth = DEPTH,
		.unknown = s->pc_only ? 0x7fffffff : 0,
		.find = find_made_up,
		.code = made_up_code,
		.ctx = s };

	snapwalk(&opts, s->regs, &memory, s->frames, &s->end);
}

/* "0x10100 0x11200 complete" */
static void is_walk(struct tap *t, struct scene *s, const char *want, const char *name)
{
	static const char *const verdicts[] = { [VERDICT_COMPLETE] = "complete",
		[VERDICT_TRUNCATED] = "truncated",
		[VERDICT_STOPPED] = "stopped",
		[VERDICT_UNVERIFIED] = "unverified" };
	char text[512];
	size_t n = 0;

	run(s);
	for (uint32_t i = 0; i < s->end.len; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%x%s ",
			(unsigned int)(s->frames[i] & ~OFFCPU_EXACT), s->frames[i] & OFFCPU_EXACT ? "!" : "");
	snprintf(text + n, sizeof(text) - n, "%s %u", verdicts[s->end.verdict], s->end.reason);
	tap_eq_str(t, text, want, name);
}

#define RA(n) (FN(n) + 0x200)

static void test_tables(struct tap *t)
{
	struct scene s = begin(LEAF, RA(FRAME), 0x1234);

	/* the frame of FRAME begins at STACK: the leaf has pushed nothing */
	put(&s, STACK, STACK + 0x100);
	put(&s, STACK + 8, RA(OUTER));
	is_walk(t, &s, "10100 11200 13200 complete 0", "a leaf function returns to x30");
	put(&s, STACK + 8, RA(OUTER) | UINT64_C(0x0035000000000000));
	is_walk(t, &s, "10100 11200 13200 complete 0", "a signed return address on the stack");
	s.regs[30] |= UINT64_C(0x007f000000000000);
	is_walk(t, &s, "10100 11200 13200 complete 0", "a signed return address in x30");
	put(&s, STACK + 8, RA(BY_FP));
	put(&s, STACK + 0x108, RA(OUTER));
	is_walk(t, &s, "10100 11200 12200 13200 complete 0", "a CFA by the caller's frame pointer");
	put(&s, STACK + 8, RA(LEAF));
	is_walk(t, &s, "10100 11200 10200 stopped 14", "x30 is known only in the innermost frame");
	s = begin(SAVED_IN_X20, 0, 0);
	s.regs[20] = RA(OUTER);
	is_walk(t, &s, "14100 13200 complete 0", "a return address in another register");
	s = begin(LEAF, RA(FRAME), 0);
	s.pc_only = true;
	is_walk(t, &s, "10100 stopped 14", "without its registers a leaf function is not left");
	s = begin(LEAF, RA(OUTER), 0);
	s.regs[UNWINDARM64_PSTATE_WORD] = 0x10;
	is_walk(t, &s, "10100 stopped 8", "32-bit code is not walked");
}

static void test_signals(struct tap *t)
{
	/* a handler, which the trampoline called at the end of the code of NO_ROW */
	struct scene s = begin(LEAF, FN(NO_ROW) + 0x100, 0);
	const uint64_t uc = STACK + 128 + 184;

	s.before = pair(NOP, NOP);
	s.after = pair(MOV_139, SVC);
	put(&s, uc + 8 * 32, FN(LEAF) + 0x300); /* pc */
	put(&s, uc + 8 * 31, STACK + 0x600); /* sp */
	put(&s, uc + 8 * 30, RA(FRAME));
	put(&s, uc + 8 * 29, 0x5555);
	put(&s, STACK + 0x608, RA(OUTER));
	is_walk(t, &s, "10100 15100! 10300! 11200 13200 complete 0",
		"a signal interrupted a leaf function: its x30 is in the ucontext");
	put(&s, uc + 8 * 32, FN(SAVED_IN_X20) + 0x300);
	put(&s, uc + 8 * 20, RA(OUTER));
	is_walk(t, &s, "10100 15100! 14300! 13200 complete 0", "and so are the other registers");
	put(&s, uc + 8 * 32, 0);
	is_walk(t, &s, "10100 15100! 11200 13200 complete 0",
		"a call through a null pointer: x30 has the caller, and nothing was pushed");
	s.after = pair(NOP, NOP);
	is_walk(t, &s, "10100 15100 stopped 12", "without the trampoline's code the walk stops");
}

static void test_code(struct tap *t)
{
	struct scene s = begin(NO_ROW, RA(OUTER), 0);

	s.after = pair(RET, NOP);
	is_walk(t, &s, "15100 13200 complete 0", "a ret is next: x30 has the caller");
	s.after = pair(NOP, NOP);
	is_walk(t, &s, "15100 stopped 12", "a nop is next: x30 proves nothing");
	s.regs[35] = 63;
	s.before = pair(NOP, SVC);
	is_walk(t, &s, "15100 stopped 12", "nor does it behind a system call");
	s.after = pair(ADD_64, RET);
	s.regs[30] = RA(FRAME);
	put(&s, STACK + 64 + 8, RA(OUTER));
	is_walk(t, &s, "15100 11200 13200 complete 0", "add and ret: the caller's stack is above");
	s.after = pair(LDP_64, RET);
	put(&s, STACK, STACK + 0x200);
	put(&s, STACK + 8, RA(BY_FP) | UINT64_C(0x0011000000000000));
	put(&s, STACK + 0x208, RA(OUTER));
	is_walk(t, &s, "15100 12200 13200 complete 0", "ldp and ret: both are at SP");
	s.before = pair(ADD_X16, BR);
	s.after = pair(ADRP, LDR);
	s.regs[30] = RA(OUTER);
	is_walk(t, &s, "15100 13200 complete 0", "an entry of a PLT");
	s.before = pair(NOP, STP_LINK);
	is_walk(t, &s, "15100 stopped 12", "the first entry of a PLT has moved SP");
}

static void test_frame_pointers(struct tap *t)
{
	struct scene s = begin(JIT, 0, STACK + 0x40);

	put(&s, STACK + 0x40, STACK + 0x80);
	put(&s, STACK + 0x48, RA(JIT_OUTER) | UINT64_C(0x0003000000000000));
	put(&s, STACK + 0x80, 0);
	put(&s, STACK + 0x88, 0);
	is_walk(t, &s, "16100 17200 unverified 0", "code without a table, by frame pointer");
	/* FRAME has a row by SP, but where its frame ends is not known: what a walk by it would read is wrong
	 */
	put(&s, STACK + 0x48, RA(FRAME));
	put(&s, STACK + 0x50 + 8, RA(BY_FP));
	put(&s, STACK + 0x88, RA(OUTER));
	is_walk(t, &s, "16100 11200 13200 unverified 0", "behind such a step no row by SP is believed");
	put(&s, STACK + 0x48, RA(BY_FP));
	put(&s, STACK + 0x80, STACK + 0x100);
	put(&s, STACK + 0x88, RA(FRAME));
	put(&s, STACK + 0x80 + 32 + 8, RA(OUTER));
	is_walk(t, &s, "16100 12200 11200 13200 unverified 0",
		"a row by the frame pointer is, and says where the frame ends");
	put(&s, STACK + 0x48, RA(JIT_OUTER) + 0x100);
	is_walk(t, &s, "16100 stopped 18", "a return address that follows no call is not believed");
}

int main(void)
{
	struct tap t = { 0 };

	test_calls(&t);
	test_returns(&t);
	test_plt(&t);
	test_tables(&t);
	test_signals(&t);
	test_code(&t);
	test_frame_pointers(&t);
	return tap_done(&t);
}
