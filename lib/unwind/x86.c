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

/* --- instructions --- */

/* What follows an opcode of one byte: an operand (modrm), and an immediate number. */
enum shape_of { BAD, NONE, M, M1, M4, I1, I2, I3, I4, I8, F6, F7 };

#define ROW4(a) a, a, a, a
#define ROW8(a) ROW4(a), ROW4(a)
#define ARITH M, M, M, M, I1, I4, BAD, BAD

static const uint8_t one_byte[256] = {
	ARITH, ARITH, ARITH, ARITH, ARITH, ARITH, ARITH, ARITH, /* 00 to 3f */
	ROW8(BAD), ROW8(BAD), /* 40: REX, handled before */
	ROW8(NONE), ROW8(NONE), /* 50: push, pop */
	BAD, BAD, BAD, M, BAD, BAD, BAD, BAD, I4, M4, I1, M1, ROW4(NONE), /* 60 */
	ROW8(I1), ROW8(I1), /* 70: jcc */
	M1, M4, BAD, M1, M, M, M, M, M, M, M, M, M, M, M, M, /* 80 */
	ROW8(NONE), NONE, NONE, BAD, NONE, ROW4(NONE), /* 90 */
	I8, I8, I8, I8, ROW4(NONE), I1, I4, NONE, NONE, ROW4(NONE), /* a0 */
	ROW8(I1), ROW8(I4), /* b0: mov */
	M1, M1, I2, NONE, BAD, BAD, M1, M4, I3, NONE, I2, NONE, NONE, I1, BAD, NONE, /* c0 */
	M, M, M, M, BAD, BAD, BAD, NONE, ROW8(M), /* d0 */
	ROW8(I1), I4, I4, BAD, I1, ROW4(NONE), /* e0 */
	BAD, NONE, BAD, BAD, NONE, NONE, F6, F7, NONE, NONE, NONE, NONE, NONE, NONE, M, M, /* f0 */
};

static enum shape_of shape_0f(uint8_t op)
{
	if (op >= 0x80 && op <= 0x8f)
		return I4;
	if ((op >= 0x05 && op <= 0x0b && op != 0x0a) || (op >= 0x30 && op <= 0x37) || op == 0x77 ||
		(op >= 0xa0 && op <= 0xa2) || (op >= 0xa8 && op <= 0xaa) || (op >= 0xc8 && op <= 0xcf))
		return NONE;
	if ((op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 ||
		(op >= 0xc4 && op <= 0xc6))
		return M1;
	return M;
}

struct decoding {
	struct rd r;
	uint8_t rex;
	bool narrow; /* 16-bit operands */
	bool segment; /* another segment than FS */
};

static int32_t signed_byte(struct rd *r)
{
	return (int8_t)rd_u8(r);
}

static void decode_operand(struct decoding *d, struct unwindx86_insn *i)
{
	uint8_t modrm = rd_u8(&d->r), mod = modrm >> 6, rm = modrm & 7;

	i->has_modrm = true;
	i->reg = (uint8_t)((modrm >> 3 & 7) | (d->rex & 4) << 1);
	i->rm = i->base = (uint8_t)(rm | (d->rex & 1) << 3);
	i->memory = mod != 3;
	if (!i->memory)
		return;
	i->indexed = d->segment;
	if (rm == 4) {
		uint8_t sib = rd_u8(&d->r);

		i->indexed |= (sib >> 3 & 7) != 4 || (d->rex & 2);
		rm = sib & 7;
		i->base = (uint8_t)(rm | (d->rex & 1) << 3);
		if (mod == 0 && rm == 5) {
			i->base = UNWINDX86_NO_BASE;
			i->disp = (int32_t)rd_u32(&d->r);
			return;
		}
	} else if (mod == 0 && rm == 5) {
		i->base = UNWINDX86_RIP;
		i->disp = (int32_t)rd_u32(&d->r);
		return;
	}
	i->disp = mod == 1 ? signed_byte(&d->r) : mod == 2 ? (int32_t)rd_u32(&d->r) : 0;
}

static void decode_immediate(struct decoding *d, struct unwindx86_insn *i, enum shape_of s)
{
	bool test = (i->reg & 7) < 2; /* f6 and f7: only test has a number */

	if (s == M1 || s == I1 || (s == F6 && test))
		i->imm = signed_byte(&d->r);
	else if (s == I2)
		i->imm = (int32_t)rd_u16(&d->r);
	else if (s == I3)
		rd_bytes(&d->r, 3);
	else if (s == I8 || (s == I4 && i->wide && i->op >= 0xb8 && i->op <= 0xbf))
		rd_bytes(&d->r, 8);
	else if ((s == M4 || s == I4 || (s == F7 && test)) && d->narrow && i->op < 0xe0)
		i->imm = (int16_t)rd_u16(&d->r);
	else if (s == M4 || s == I4 || (s == F7 && test))
		i->imm = (int32_t)rd_u32(&d->r);
}

/* VEX: the map of its opcodes is 1 (0f), 2 (0f 38) or 3 (0f 3a). */
static enum shape_of decode_vex(struct decoding *d, struct unwindx86_insn *i, bool three)
{
	uint8_t first = rd_u8(&d->r), map = three ? first & 31 : 1, op;

	if (d->rex)
		return BAD;
	d->rex = (uint8_t)(~first >> 5 & (three ? 7 : 4));
	if (three)
		rd_u8(&d->r);
	op = rd_u8(&d->r);
	i->op = (uint16_t)(0x200 + op);
	return map == 1 ? shape_0f(op) : map == 2 ? M : map == 3 ? M1 : BAD;
}

static bool decode_prefix(struct decoding *d, struct unwindx86_insn *i, uint8_t b)
{
	if (b == 0x64)
		i->fs = true;
	else if (b == 0x65)
		d->segment = true;
	else if (b == 0x66)
		d->narrow = true;
	else if (b == 0x67)
		d->segment = true; /* 32-bit addresses: as unusual */
	else
		return b == 0x26 || b == 0x2e || b == 0x36 || b == 0x3e || b == 0xf0 || b == 0xf2 ||
		       b == 0xf3;
	return true;
}

static enum shape_of decode_opcode(struct decoding *d, struct unwindx86_insn *i)
{
	uint8_t b = rd_u8(&d->r);

	while (decode_prefix(d, i, b) && !d->r.bad)
		b = rd_u8(&d->r);
	if ((b & 0xf0) == 0x40) {
		d->rex = b;
		i->wide = b & 8;
		b = rd_u8(&d->r);
	}
	if (b == 0xc4 || b == 0xc5)
		return decode_vex(d, i, b == 0xc4);
	i->op = b;
	if (b != 0x0f)
		return one_byte[b];
	b = rd_u8(&d->r);
	if (b == 0x38 || b == 0x3a) {
		i->op = (uint16_t)(0x200 + rd_u8(&d->r));
		return b == 0x38 ? M : M1;
	}
	i->op = (uint16_t)(0x100 + b);
	return shape_0f(b);
}

bool unwindx86_decode(const uint8_t *p, size_t n, struct unwindx86_insn *ret)
{
	struct decoding d = { .r = rd_init(p, MIN(n, (size_t)15)) };
	enum shape_of s;

	*ret = (struct unwindx86_insn){ 0 };
	s = decode_opcode(&d, ret);
	if (s == BAD)
		return false;
	if (s == M || s == M1 || s == M4 || s == F6 || s == F7)
		decode_operand(&d, ret);
	else
		ret->reg = (uint8_t)((ret->op & 7) | (d.rex & 1) << 3);
	decode_immediate(&d, ret, s);
	ret->len = (uint8_t)(d.r.p - p);
	return !d.r.bad;
}

unsigned int unwindx86_dwarf(unsigned int n)
{
	static const uint8_t numbers[] = { 0, 2, 1, 3, 7, 6, 4,
		5 }; /* rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi */

	return n < ARRAY_LEN(numbers) ? numbers[n] : n;
}

bool unwindx86_sets_sp(const struct unwindx86_insn *i)
{
	bool to_rm = i->has_modrm && !i->memory && i->rm == UNWINDX86_RSP;
	bool to_reg = i->has_modrm && i->reg == UNWINDX86_RSP; /* if REG is not a part of the opcode */

	switch (i->op) {
	case 0x81: /* add, or, adc, sbb, and, sub, xor, cmp with a number */
	case 0x83:
		return to_rm && i->reg % 8 != 0 && i->reg % 8 != 5 && i->reg % 8 != 7;
	case 0x8d:
		return to_reg && (i->base != UNWINDX86_RSP || i->indexed);
	case 0x5c: /* pop, mov with a number; else it is R12 */
	case 0xbc:
		return i->reg == UNWINDX86_RSP;
	case 0xc9: /* leave */
		return true;
	case 0x38: /* cmp, test */
	case 0x39:
	case 0x3a:
	case 0x3b:
	case 0x84:
	case 0x85:
	case 0xf6:
	case 0xf7:
	case 0xff:
		return false;
	case 0x87: /* xchg */
		return to_rm || to_reg;
	default:
		break;
	}
	if (i->op < 0x40 && i->op % 8 < 4)
		return i->op & 2 ? to_reg : to_rm;
	if (i->op == 0x8b || i->op == 0x63 || (i->op >= 0x140 && i->op <= 0x14f)) /* also cmov */
		return to_reg;
	return (i->op == 0x89 || i->op == 0xc7) && to_rm;
}
