/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/machine.h"

#include <elf.h>
#include <string.h>

enum {
	OP_DEREF = 0x06,
	OP_AND = 0x1a,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_GE = 0x2a,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
};

static const struct unwindmachine x86_64 = {
	.elf = EM_X86_64,
	.word = 8,
	.word_shift = 3,
	.sp = 7,
	.fp = 6,
	.ra = 16,
	.bx = 3,
	.general = 16,
	.number = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
	.name = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12",
		"r13", "r14", "r15" },
};

/* eax, ecx, edx, ebx, esp, ebp, esi, edi; eip is 8 */
static const struct unwindmachine i386 = {
	.elf = EM_386,
	.word = 4,
	.word_shift = 2,
	.sp = 4,
	.fp = 5,
	.ra = 8,
	.bx = 3,
	.general = 8,
	.number = { 0, 2, 1, 3, 7, 6, 4, 5 },
	.name = { "eax", "edx", "ecx", "ebx", "esi", "edi", "ebp", "esp" },
};

/*
 * DW_CFA_AARCH64_negate_ra_state: from here on the return address is signed, or no
 * longer. Walks remove the signature of every return address, which needs no row.
 */
#define OP_NEGATE_RA_STATE 0x2d

static const struct unwindmachine arm64 = {
	.elf = EM_AARCH64,
	.word = 8,
	.word_shift = 3,
	.sp = 31,
	.fp = 29,
	.ra = 30,
	.bx = UNWINDMACHINE_NO_REG,
	.general = 32,
	.link = true,
	.nop = OP_NEGATE_RA_STATE,
	.number = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
		25, 26, 27, 28, 29, 30, 31 },
	.name = { "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13",
		"x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26",
		"x27", "x28", "x29", "x30", "sp" },
};

const struct unwindmachine *unwindmachine_find(uint16_t elf, bool is64)
{
	if (is64)
		return elf == EM_X86_64 ? &x86_64 : elf == EM_AARCH64 ? &arm64 : NULL;
	return elf == EM_386 ? &i386 : NULL;
}

const struct unwindmachine *unwindmachine_of(uint32_t elf)
{
	return elf == EM_386 ? &i386 : elf == EM_AARCH64 ? &arm64 : &x86_64;
}

bool unwindmachine_is_here(uint32_t elf)
{
#if defined(__aarch64__)
	return elf == EM_AARCH64;
#else
	return elf == EM_X86_64 || elf == EM_386;
#endif
}

bool unwindmachine_columns(const struct unwindmachine *m, uint64_t ra, struct cfarun_regs *ret)
{
	*ret = (struct cfarun_regs){ .sp = m->sp, .fp = m->fp, .ra = ra, .bx = m->bx, .nop = m->nop };
	return !m->link || ra == m->ra;
}

/* An expression of the form "register + off", "word at that", "that + plus". */
struct shape {
	unsigned int reg;
	int64_t off;
	bool deref, added;
	uint64_t plus;
};

static bool fits(int64_t v)
{
	return v >= INT32_MIN && v <= INT32_MAX;
}

static bool parse_shape(const struct unwindmachine *m, const struct cfarule *rule, struct shape *s)
{
	struct rd r = rd_init(rule->expr, rule->reg);
	uint8_t op = rd_u8(&r);

	*s = (struct shape){ 0 };
	if (op < OP_BREG0 || op >= OP_BREG0 + m->general)
		return false;
	s->reg = m->number[op - OP_BREG0];
	s->off = rd_sleb(&r);
	if (rd_left(&r)) {
		s->deref = rd_u8(&r) == OP_DEREF;
		if (!s->deref)
			return false;
	}
	if (rd_left(&r)) {
		s->added = rd_u8(&r) == OP_PLUS_UCONST;
		s->plus = rd_uleb(&r);
		if (!s->added || s->plus > INT32_MAX)
			return false;
	}
	return !r.bad && !rd_left(&r) && fits(s->off);
}

/*
 * The linkers' rule for a whole PLT, with entries of 16 bytes. From byte LIMIT
 * of an entry on, the word that it pushes is on the stack: rsp + 8 + ((rip &
 * 15) >= LIMIT) << 3; esp + 4 + ((eip & 15) >= LIMIT) << 2.
 */
static bool parse_plt(const struct unwindmachine *m, const struct cfarule *rule, uint8_t *limit)
{
	const uint8_t *p = rule->expr;
	uint8_t want[] = { (uint8_t)(OP_BREG0 + m->sp), m->word, (uint8_t)(OP_BREG0 + m->ra), 0, OP_LIT0 + 15,
		OP_AND, 0, OP_GE, (uint8_t)(OP_LIT0 + m->word_shift), OP_SHL, OP_PLUS };

	if (rule->reg != sizeof(want))
		return false;
	want[6] = p[6];
	*limit = (uint8_t)(p[6] - OP_LIT0);
	return memcmp(p, want, sizeof(want)) == 0 && *limit < 16;
}

/* Set *RET to the number in rules of register REG. False if it is not a general one. */
static bool general(const struct unwindmachine *m, uint32_t reg, unsigned int *ret)
{
	if (reg >= m->general)
		return false;
	*ret = m->number[reg];
	return true;
}

static bool cfa_by_register(const struct unwindmachine *m, const struct cfarule *c, struct unwind_rule *ret)
{
	unsigned int reg;

	if (!general(m, c->reg, &reg))
		return false;
	ret->cfa = UNWIND_CFA_REG;
	ret->reg = (uint8_t)reg;
	ret->cfa_off = (int32_t)c->off;
	return fits(c->off);
}

static bool cfa_by_expression(const struct unwindmachine *m, const struct cfarule *c, struct unwind_rule *ret)
{
	struct shape s;
	uint8_t limit;

	if (!m->link && parse_plt(m, c, &limit)) {
		ret->cfa = UNWIND_CFA_PLT;
		ret->reg = m->number[m->sp];
		ret->cfa_off = m->word;
		ret->ra_off = limit;
		return true;
	}
	/* DEREF_PLUS: the return address is on the stack, in a fixed place */
	if (!parse_shape(m, c, &s) || (s.plus && m->link))
		return false;
	ret->cfa = !s.deref ? UNWIND_CFA_REG : s.plus ? UNWIND_CFA_DEREF_PLUS : UNWIND_CFA_DEREF;
	ret->reg = (uint8_t)s.reg;
	ret->cfa_off = (int32_t)s.off;
	ret->ra_off = (int32_t)s.plus;
	return true;
}

/* PLT and DEREF_PLUS rules use ra_off: the return address is where a call leaves it. */
static bool ra_is_implied(const struct unwind_rule *rule)
{
	return rule->cfa == UNWIND_CFA_PLT || rule->cfa == UNWIND_CFA_DEREF_PLUS;
}

static bool return_address(const struct unwindmachine *m, const struct cfarule *c, struct unwind_rule *ret)
{
	unsigned int reg;
	struct shape s;

	if (ra_is_implied(ret))
		return c->kind == CFARULE_OFFSET && c->off == -m->word;
	switch (c->kind) {
	case CFARULE_UNSPECIFIED: /* where a call leaves it */
	case CFARULE_SAME:
		ret->ra = UNWIND_RA_REG;
		ret->ra_off = m->ra;
		return m->link;
	case CFARULE_OFFSET:
		ret->ra = UNWIND_RA_CFA;
		ret->ra_off = (int32_t)c->off;
		return fits(c->off);
	case CFARULE_UNDEFINED:
		ret->ra = UNWIND_RA_END;
		return true;
	case CFARULE_REGISTER:
		if (!general(m, c->reg, &reg))
			return false;
		ret->ra = UNWIND_RA_REG;
		ret->ra_off = (int32_t)reg;
		return true;
	case CFARULE_EXPRESSION:
		ret->ra = UNWIND_RA_AT_SP;
		if (!parse_shape(m, c, &s) || s.deref || s.reg != m->number[m->sp])
			return false;
		ret->ra_off = (int32_t)s.off;
		return true;
	default:
		return false;
	}
}

/* Where the caller's RBX (EBX) is, as UNWIND_RA_CALL stores it in ra_off. */
static int32_t second_register(const struct unwindmachine *m, const struct cfarule *c)
{
	switch (c->kind) {
	case CFARULE_UNSPECIFIED: /* callee-saved: unchanged */
	case CFARULE_SAME:
		return UNWIND_BX_SAME;
	case CFARULE_OFFSET:
		return c->off < 0 && c->off % m->word == 0 && fits(c->off) ? (int32_t)c->off
									   : UNWIND_BX_UNKNOWN;
	case CFARULE_REGISTER:
		return c->reg == m->bx ? UNWIND_BX_SAME : UNWIND_BX_UNKNOWN;
	default:
		return UNWIND_BX_UNKNOWN;
	}
}

/* A return address where a call leaves it needs no offset: ra_off is used for RBX. */
static void add_second(const struct unwindmachine *m, const struct cfarule *c, struct unwind_rule *ret)
{
	if (m->link || ra_is_implied(ret) || ret->ra != UNWIND_RA_CFA || ret->ra_off != -m->word)
		return;
	ret->ra = UNWIND_RA_CALL;
	ret->ra_off = second_register(m, c);
}

static bool fp_at(const struct unwindmachine *m, const struct cfarule *c, struct unwind_rule *ret)
{
	const unsigned int sp = m->number[m->sp], fp = m->number[m->fp];
	struct shape s;

	if (!parse_shape(m, c, &s) || s.deref || (s.reg != sp && s.reg != fp))
		return false;
	ret->fp = s.reg == sp ? UNWIND_FP_AT_SP : UNWIND_FP_AT_FP;
	ret->fp_off = (int32_t)s.off;
	return true;
}

static bool frame_pointer(const struct unwindmachine *m, const struct cfarule *c, struct unwind_rule *ret)
{
	unsigned int reg;

	switch (c->kind) {
	case CFARULE_UNSPECIFIED: /* callee-saved: unchanged */
	case CFARULE_SAME:
		ret->fp = UNWIND_FP_SAME;
		return true;
	case CFARULE_OFFSET:
		ret->fp = UNWIND_FP_CFA;
		ret->fp_off = (int32_t)c->off;
		return fits(c->off);
	case CFARULE_REGISTER:
		if (!general(m, c->reg, &reg))
			return false;
		ret->fp = reg == m->number[m->fp] ? UNWIND_FP_SAME : UNWIND_FP_REG;
		ret->fp_off = reg == m->number[m->fp] ? 0 : (int32_t)reg;
		return true;
	case CFARULE_EXPRESSION:
		return fp_at(m, c, ret);
	default:
		return false;
	}
}

/*
 * The caller's stack pointer is the CFA unless a rule gives another value. Some
 * rules give the CFA in another form.
 */
static bool sp_is_cfa(const struct unwindmachine *m, const struct cfarules *rules)
{
	const struct cfarule *sp = &rules->col[CFARUN_SP], *cfa = &rules->col[CFARUN_CFA];
	struct shape s, c;

	if (sp->kind == CFARULE_UNSPECIFIED)
		return true;
	if (sp->kind == CFARULE_VAL_OFFSET)
		return sp->off == 0;
	/* as in a signal frame: the CFA is the word at X, and the stack pointer is saved at X */
	return sp->kind == CFARULE_EXPRESSION && cfa->kind == CFARULE_EXPRESSION && parse_shape(m, sp, &s) &&
	       parse_shape(m, cfa, &c) && !s.deref && c.deref && !c.added && s.reg == c.reg && s.off == c.off;
}

static bool frame(const struct unwindmachine *m, const struct cfarules *rules, struct unwind_rule *ret)
{
	const struct cfarule *c = &rules->col[CFARUN_CFA];

	if (c->kind == CFARULE_OFFSET ? !cfa_by_register(m, c, ret)
				      : c->kind != CFARULE_EXPRESSION || !cfa_by_expression(m, c, ret))
		return false;
	if (!return_address(m, &rules->col[CFARUN_RA], ret) || !sp_is_cfa(m, rules))
		return false;
	add_second(m, &rules->col[CFARUN_BX], ret);
	return true;
}

/*
 * A fast path for all but a few rows of x86-64: CFA by register, everything saved where
 * calls and pushes leave it. Assembled as words, because the rule is read as
 * words at once, and a CPU stalls if it was written as bytes.
 */
static bool usual(const struct cfarules *rules, struct unwind_rule *ret)
{
	const struct cfarule *cfa = &rules->col[CFARUN_CFA], *fp = &rules->col[CFARUN_FP];
	const struct cfarule *ra = &rules->col[CFARUN_RA];
	uint32_t words[4];

	if (cfa->kind != CFARULE_OFFSET || ra->kind != CFARULE_OFFSET || ra->off != -8 ||
		cfa->reg >= x86_64.general || rules->col[CFARUN_SP].kind != CFARULE_UNSPECIFIED ||
		(fp->kind != CFARULE_UNSPECIFIED && fp->kind != CFARULE_OFFSET) || !fits(cfa->off) ||
		!fits(fp->off))
		return false;
	words[0] = UNWIND_CFA_REG | cfa->reg << 8 |
		   (uint32_t)(fp->kind == CFARULE_OFFSET ? UNWIND_FP_CFA : UNWIND_FP_SAME) << 16 |
		   (uint32_t)UNWIND_RA_CALL << 20;
	words[1] = (uint32_t)cfa->off;
	words[2] = (uint32_t)fp->off;
	words[3] = (uint32_t)second_register(&x86_64, &rules->col[CFARUN_BX]);
	memcpy(ret, words, sizeof(*ret));
	return true;
}

_Static_assert(offsetof(struct unwind_rule, reg) == 1 && offsetof(struct unwind_rule, cfa_off) == 4 &&
		       offsetof(struct unwind_rule, fp_off) == 8,
	"as usual() puts it together");

unsigned int unwindmachine_rule(
	const struct unwindmachine *m, const struct cfarules *rules, bool signal, struct unwind_rule *ret)
{
	const bool narrow = m->word == 4;

	if (!signal && m == &x86_64 && usual(rules, ret))
		return 0;
	*ret = (struct unwind_rule){ .flags = (uint8_t)((signal ? UNWIND_SIGNAL : 0) |
							(narrow ? UNWIND_WORD4 : 0)) };
	if (!frame(m, rules, ret)) {
		*ret = (struct unwind_rule){ .cfa = UNWIND_CFA_UNSUPPORTED, .ra = UNWIND_RA_UNSUPPORTED };
		return UNWINDMACHINE_LOST_CFA;
	}
	if (ret->ra == UNWIND_RA_END || frame_pointer(m, &rules->col[CFARUN_FP], ret))
		return 0;
	ret->fp = UNWIND_FP_UNKNOWN;
	ret->fp_off = 0;
	return UNWINDMACHINE_LOST_FP;
}

unsigned int unwindmachine_syscall_bytes(const struct unwindmachine *m)
{
	return m->link ? 4 : 2;
}

/* syscall; int $0x80; svc #0 */
bool unwindmachine_is_syscall(const struct unwindmachine *m, const uint8_t *code)
{
	static const uint8_t insns[][UNWINDMACHINE_SYSCALL_MAX] = { { 0x0f, 0x05 }, { 0xcd, 0x80 },
		{ 0x01, 0x00, 0x00, 0xd4 } };

	return memcmp(code, insns[m->link ? 2 : m->word == 4], unwindmachine_syscall_bytes(m)) == 0;
}

const char *unwindmachine_register(const struct unwindmachine *m, unsigned int reg)
{
	return reg < ARRAY_LEN(m->name) ? m->name[reg] : NULL;
}
