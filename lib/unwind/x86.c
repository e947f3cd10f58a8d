/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/x86.h"

enum {
	LAST_GENERAL = 15,
	WORD = 8,

	OP_DEREF = 0x06,
	OP_AND = 0x1a,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_GE = 0x2a,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
	OP_BREG_SP = OP_BREG0 + UNWINDX86_SP,
	OP_BREG_RA = OP_BREG0 + UNWINDX86_RA,
	OP_BREG_LAST = OP_BREG0 + LAST_GENERAL,
};

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

static bool parse_shape(const struct cfarule *rule, struct shape *s)
{
	struct rd r = rd_init(rule->expr, rule->reg);
	uint8_t op = rd_u8(&r);

	*s = (struct shape){ .reg = op - OP_BREG0 };
	if (op < OP_BREG0 || op > OP_BREG_LAST)
		return false;
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
 * 15) >= LIMIT) << 3.
 */
static bool parse_plt(const struct cfarule *rule, uint8_t *limit)
{
	const uint8_t *p = rule->expr;
	uint8_t want[] = { OP_BREG_SP, WORD, OP_BREG_RA, 0, OP_LIT0 + 15, OP_AND, 0, OP_GE, OP_LIT0 + 3,
		OP_SHL, OP_PLUS };

	if (rule->reg != sizeof(want))
		return false;
	want[6] = p[6];
	*limit = (uint8_t)(p[6] - OP_LIT0);
	return memcmp(p, want, sizeof(want)) == 0 && *limit < 16;
}

static bool cfa_by_register(const struct cfarule *c, struct unwind_rule *ret)
{
	ret->cfa = UNWIND_CFA_REG;
	ret->reg = (uint8_t)c->reg;
	ret->cfa_off = (int32_t)c->off;
	return c->reg <= LAST_GENERAL && fits(c->off);
}

static bool cfa_by_expression(const struct cfarule *c, struct unwind_rule *ret)
{
	struct shape s;
	uint8_t limit;

	if (parse_plt(c, &limit)) {
		ret->cfa = UNWIND_CFA_PLT;
		ret->reg = UNWINDX86_SP;
		ret->cfa_off = WORD;
		ret->ra_off = limit;
		return true;
	}
	if (!parse_shape(c, &s))
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

static bool return_address(const struct cfarule *c, struct unwind_rule *ret)
{
	struct shape s;

	if (ra_is_implied(ret))
		return c->kind == CFARULE_OFFSET && c->off == -WORD;
	switch (c->kind) {
	case CFARULE_OFFSET:
		ret->ra = UNWIND_RA_CFA;
		ret->ra_off = (int32_t)c->off;
		return fits(c->off);
	case CFARULE_UNDEFINED:
		ret->ra = UNWIND_RA_END;
		return true;
	case CFARULE_REGISTER:
		ret->ra = UNWIND_RA_REG;
		ret->ra_off = (int32_t)c->reg;
		return c->reg <= LAST_GENERAL;
	case CFARULE_EXPRESSION:
		ret->ra = UNWIND_RA_AT_SP;
		if (!parse_shape(c, &s) || s.deref || s.reg != UNWINDX86_SP)
			return false;
		ret->ra_off = (int32_t)s.off;
		return true;
	default:
		return false;
	}
}

/* Where the caller's RBX is, as UNWIND_RA_CALL stores it in ra_off. */
static int32_t second_register(const struct cfarule *c)
{
	switch (c->kind) {
	case CFARULE_UNSPECIFIED: /* callee-saved: unchanged */
	case CFARULE_SAME:
		return UNWIND_BX_SAME;
	case CFARULE_OFFSET:
		return c->off < 0 && c->off % WORD == 0 && fits(c->off) ? (int32_t)c->off : UNWIND_BX_UNKNOWN;
	case CFARULE_REGISTER:
		return c->reg == UNWINDX86_BX ? UNWIND_BX_SAME : UNWIND_BX_UNKNOWN;
	default:
		return UNWIND_BX_UNKNOWN;
	}
}

/* A return address where a call leaves it needs no offset: ra_off is used for RBX. */
static void add_second(const struct cfarule *c, struct unwind_rule *ret)
{
	if (ra_is_implied(ret) || ret->ra != UNWIND_RA_CFA || ret->ra_off != -WORD)
		return;
	ret->ra = UNWIND_RA_CALL;
	ret->ra_off = second_register(c);
}

static bool fp_at(const struct cfarule *c, struct unwind_rule *ret)
{
	struct shape s;

	if (!parse_shape(c, &s) || s.deref || (s.reg != UNWINDX86_SP && s.reg != UNWINDX86_FP))
		return false;
	ret->fp = s.reg == UNWINDX86_SP ? UNWIND_FP_AT_SP : UNWIND_FP_AT_FP;
	ret->fp_off = (int32_t)s.off;
	return true;
}

static bool frame_pointer(const struct cfarule *c, struct unwind_rule *ret)
{
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
		ret->fp = c->reg == UNWINDX86_FP ? UNWIND_FP_SAME : UNWIND_FP_REG;
		ret->fp_off = c->reg == UNWINDX86_FP ? 0 : (int32_t)c->reg;
		return c->reg <= LAST_GENERAL;
	case CFARULE_EXPRESSION:
		return fp_at(c, ret);
	default:
		return false;
	}
}

/*
 * The caller's stack pointer is the CFA unless a rule gives another value. Some
 * rules give the CFA in another form.
 */
static bool sp_is_cfa(const struct cfarules *rules)
{
	const struct cfarule *sp = &rules->col[CFARUN_SP], *cfa = &rules->col[CFARUN_CFA];
	struct shape s, c;

	if (sp->kind == CFARULE_UNSPECIFIED)
		return true;
	if (sp->kind == CFARULE_VAL_OFFSET)
		return sp->off == 0;
	/* as in a signal frame: the CFA is the word at X, and the stack pointer is saved at X */
	return sp->kind == CFARULE_EXPRESSION && cfa->kind == CFARULE_EXPRESSION && parse_shape(sp, &s) &&
	       parse_shape(cfa, &c) && !s.deref && c.deref && !c.added && s.reg == c.reg && s.off == c.off;
}

static bool frame(const struct cfarules *rules, struct unwind_rule *ret)
{
	const struct cfarule *c = &rules->col[CFARUN_CFA];

	if (c->kind == CFARULE_OFFSET ? !cfa_by_register(c, ret)
				      : c->kind != CFARULE_EXPRESSION || !cfa_by_expression(c, ret))
		return false;
	if (!return_address(&rules->col[CFARUN_RA], ret) || !sp_is_cfa(rules))
		return false;
	add_second(&rules->col[CFARUN_BX], ret);
	return true;
}

/*
 * A fast path for all but a few rows: CFA by register, everything saved where
 * calls and pushes leave it. Assembled as words, because the rule is read as
 * words at once, and a CPU stalls if it was written as bytes.
 */
static bool usual(const struct cfarules *rules, struct unwind_rule *ret)
{
	const struct cfarule *cfa = &rules->col[CFARUN_CFA], *fp = &rules->col[CFARUN_FP];
	const struct cfarule *ra = &rules->col[CFARUN_RA];
	uint32_t words[4];

	if (cfa->kind != CFARULE_OFFSET || ra->kind != CFARULE_OFFSET || ra->off != -WORD ||
		cfa->reg > LAST_GENERAL || rules->col[CFARUN_SP].kind != CFARULE_UNSPECIFIED ||
		(fp->kind != CFARULE_UNSPECIFIED && fp->kind != CFARULE_OFFSET) || !fits(cfa->off) ||
		!fits(fp->off))
		return false;
	words[0] = UNWIND_CFA_REG | cfa->reg << 8 |
		   (uint32_t)(fp->kind == CFARULE_OFFSET ? UNWIND_FP_CFA : UNWIND_FP_SAME) << 16 |
		   (uint32_t)UNWIND_RA_CALL << 20;
	words[1] = (uint32_t)cfa->off;
	words[2] = (uint32_t)fp->off;
	words[3] = (uint32_t)second_register(&rules->col[CFARUN_BX]);
	memcpy(ret, words, sizeof(*ret));
	return true;
}

_Static_assert(offsetof(struct unwind_rule, reg) == 1 && offsetof(struct unwind_rule, cfa_off) == 4 &&
		       offsetof(struct unwind_rule, fp_off) == 8,
	"as usual() puts it together");

bool unwindx86_is_syscall(const uint8_t *code)
{
	return code[0] == 0x0f && code[1] == 0x05;
}

unsigned int unwindx86_rule(const struct cfarules *rules, bool signal, struct unwind_rule *ret)
{
	if (!signal && usual(rules, ret))
		return 0;
	*ret = (struct unwind_rule){ .flags = signal ? UNWIND_SIGNAL : 0 };
	if (!frame(rules, ret)) {
		*ret = (struct unwind_rule){ .cfa = UNWIND_CFA_UNSUPPORTED, .ra = UNWIND_RA_UNSUPPORTED };
		return UNWINDX86_CFA;
	}
	if (ret->ra == UNWIND_RA_END || frame_pointer(&rules->col[CFARUN_FP], ret))
		return 0;
	ret->fp = UNWIND_FP_UNKNOWN;
	ret->fp_off = 0;
	return UNWINDX86_LOST_FP;
}

const char *unwindx86_register(unsigned int reg)
{
	static const char *const names[] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
		"r9", "r10", "r11", "r12", "r13", "r14", "r15" };

	return reg < ARRAY_LEN(names) ? names[reg] : NULL;
}

uint64_t unwindx86_saved(const __u64 *pt_regs, unsigned int reg)
{
	static const uint8_t word[UNWINDX86_REGS + 1] = { 10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1,
		0, 16 };

	return pt_regs[word[reg]];
}

unsigned int unwindx86_ucontext(unsigned int reg)
{
	static const uint8_t at[UNWINDX86_REGS] = { 144, 136, 152, 128, 112, 104, 120, 160, 40, 48, 56, 64,
		72, 80, 88, 96 };

	return at[reg];
}

bool unwindx86_in_syscall(const __u64 *pt_regs)
{
	enum { AX = 10, ORIG_AX = 15 }; /* words */

	/* the system call entry stores -ENOSYS where the result will be */
	return (int64_t)pt_regs[ORIG_AX] >= 0 && (int64_t)pt_regs[AX] == -38;
}
