/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/x86.h"
#include "unwind_code.h"

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

/* What differs between the two kinds of code. */
struct kind {
	uint8_t word, word_shift; /* bytes of a word */
	uint8_t sp, fp, ra, bx; /* DWARF numbers in the file */
	uint8_t general; /* number of general registers, which come first */
	uint8_t number[UNWINDX86_REGS]; /* in rules */
};

static const struct kind wide = { 8, 3, UNWINDX86_SP, UNWINDX86_FP, UNWINDX86_RA, UNWINDX86_BX,
	UNWINDX86_REGS, { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 } };

/* eax, ecx, edx, ebx, esp, ebp, esi, edi; eip is 8 */
static const struct kind narrow32 = { 4, 2, 4, 5, 8, 3, 8, { 0, 2, 1, 3, 7, 6, 4, 5 } };

static const struct kind *kind_of(bool narrow)
{
	return narrow ? &narrow32 : &wide;
}

struct cfarun_regs unwindx86_columns(uint64_t ra, bool narrow)
{
	const struct kind *k = kind_of(narrow);

	return (struct cfarun_regs){ .sp = k->sp, .fp = k->fp, .ra = ra, .bx = k->bx };
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

static bool parse_shape(const struct kind *k, const struct cfarule *rule, struct shape *s)
{
	struct rd r = rd_init(rule->expr, rule->reg);
	uint8_t op = rd_u8(&r);

	*s = (struct shape){ 0 };
	if (op < OP_BREG0 || op >= OP_BREG0 + k->general)
		return false;
	s->reg = k->number[op - OP_BREG0];
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
static bool parse_plt(const struct kind *k, const struct cfarule *rule, uint8_t *limit)
{
	const uint8_t *p = rule->expr;
	uint8_t want[] = { (uint8_t)(OP_BREG0 + k->sp), k->word, (uint8_t)(OP_BREG0 + k->ra), 0, OP_LIT0 + 15,
		OP_AND, 0, OP_GE, (uint8_t)(OP_LIT0 + k->word_shift), OP_SHL, OP_PLUS };

	if (rule->reg != sizeof(want))
		return false;
	want[6] = p[6];
	*limit = (uint8_t)(p[6] - OP_LIT0);
	return memcmp(p, want, sizeof(want)) == 0 && *limit < 16;
}

/* Set *RET to the number in rules of register REG. False if it is not a general one. */
static bool general(const struct kind *k, uint32_t reg, unsigned int *ret)
{
	if (reg >= k->general)
		return false;
	*ret = k->number[reg];
	return true;
}

static bool cfa_by_register(const struct kind *k, const struct cfarule *c, struct unwind_rule *ret)
{
	unsigned int reg;

	if (!general(k, c->reg, &reg))
		return false;
	ret->cfa = UNWIND_CFA_REG;
	ret->reg = (uint8_t)reg;
	ret->cfa_off = (int32_t)c->off;
	return fits(c->off);
}

static bool cfa_by_expression(const struct kind *k, const struct cfarule *c, struct unwind_rule *ret)
{
	struct shape s;
	uint8_t limit;

	if (parse_plt(k, c, &limit)) {
		ret->cfa = UNWIND_CFA_PLT;
		ret->reg = UNWINDX86_SP;
		ret->cfa_off = k->word;
		ret->ra_off = limit;
		return true;
	}
	if (!parse_shape(k, c, &s))
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

static bool return_address(const struct kind *k, const struct cfarule *c, struct unwind_rule *ret)
{
	unsigned int reg;
	struct shape s;

	if (ra_is_implied(ret))
		return c->kind == CFARULE_OFFSET && c->off == -k->word;
	switch (c->kind) {
	case CFARULE_OFFSET:
		ret->ra = UNWIND_RA_CFA;
		ret->ra_off = (int32_t)c->off;
		return fits(c->off);
	case CFARULE_UNDEFINED:
		ret->ra = UNWIND_RA_END;
		return true;
	case CFARULE_REGISTER:
		if (!general(k, c->reg, &reg))
			return false;
		ret->ra = UNWIND_RA_REG;
		ret->ra_off = (int32_t)reg;
		return true;
	case CFARULE_EXPRESSION:
		ret->ra = UNWIND_RA_AT_SP;
		if (!parse_shape(k, c, &s) || s.deref || s.reg != UNWINDX86_SP)
			return false;
		ret->ra_off = (int32_t)s.off;
		return true;
	default:
		return false;
	}
}

/* Where the caller's RBX (EBX) is, as UNWIND_RA_CALL stores it in ra_off. */
static int32_t second_register(const struct kind *k, const struct cfarule *c)
{
	switch (c->kind) {
	case CFARULE_UNSPECIFIED: /* callee-saved: unchanged */
	case CFARULE_SAME:
		return UNWIND_BX_SAME;
	case CFARULE_OFFSET:
		return c->off < 0 && c->off % k->word == 0 && fits(c->off) ? (int32_t)c->off
									   : UNWIND_BX_UNKNOWN;
	case CFARULE_REGISTER:
		return c->reg == k->bx ? UNWIND_BX_SAME : UNWIND_BX_UNKNOWN;
	default:
		return UNWIND_BX_UNKNOWN;
	}
}

/* A return address where a call leaves it needs no offset: ra_off is used for RBX. */
static void add_second(const struct kind *k, const struct cfarule *c, struct unwind_rule *ret)
{
	if (ra_is_implied(ret) || ret->ra != UNWIND_RA_CFA || ret->ra_off != -k->word)
		return;
	ret->ra = UNWIND_RA_CALL;
	ret->ra_off = second_register(k, c);
}

static bool fp_at(const struct kind *k, const struct cfarule *c, struct unwind_rule *ret)
{
	struct shape s;

	if (!parse_shape(k, c, &s) || s.deref || (s.reg != UNWINDX86_SP && s.reg != UNWINDX86_FP))
		return false;
	ret->fp = s.reg == UNWINDX86_SP ? UNWIND_FP_AT_SP : UNWIND_FP_AT_FP;
	ret->fp_off = (int32_t)s.off;
	return true;
}

static bool frame_pointer(const struct kind *k, const struct cfarule *c, struct unwind_rule *ret)
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
		if (!general(k, c->reg, &reg))
			return false;
		ret->fp = reg == UNWINDX86_FP ? UNWIND_FP_SAME : UNWIND_FP_REG;
		ret->fp_off = reg == UNWINDX86_FP ? 0 : (int32_t)reg;
		return true;
	case CFARULE_EXPRESSION:
		return fp_at(k, c, ret);
	default:
		return false;
	}
}

/*
 * The caller's stack pointer is the CFA unless a rule gives another value. Some
 * rules give the CFA in another form.
 */
static bool sp_is_cfa(const struct kind *k, const struct cfarules *rules)
{
	const struct cfarule *sp = &rules->col[CFARUN_SP], *cfa = &rules->col[CFARUN_CFA];
	struct shape s, c;

	if (sp->kind == CFARULE_UNSPECIFIED)
		return true;
	if (sp->kind == CFARULE_VAL_OFFSET)
		return sp->off == 0;
	/* as in a signal frame: the CFA is the word at X, and the stack pointer is saved at X */
	return sp->kind == CFARULE_EXPRESSION && cfa->kind == CFARULE_EXPRESSION && parse_shape(k, sp, &s) &&
	       parse_shape(k, cfa, &c) && !s.deref && c.deref && !c.added && s.reg == c.reg && s.off == c.off;
}

static bool frame(const struct kind *k, const struct cfarules *rules, struct unwind_rule *ret)
{
	const struct cfarule *c = &rules->col[CFARUN_CFA];

	if (c->kind == CFARULE_OFFSET ? !cfa_by_register(k, c, ret)
				      : c->kind != CFARULE_EXPRESSION || !cfa_by_expression(k, c, ret))
		return false;
	if (!return_address(k, &rules->col[CFARUN_RA], ret) || !sp_is_cfa(k, rules))
		return false;
	add_second(k, &rules->col[CFARUN_BX], ret);
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
		cfa->reg >= UNWINDX86_REGS || rules->col[CFARUN_SP].kind != CFARULE_UNSPECIFIED ||
		(fp->kind != CFARULE_UNSPECIFIED && fp->kind != CFARULE_OFFSET) || !fits(cfa->off) ||
		!fits(fp->off))
		return false;
	words[0] = UNWIND_CFA_REG | cfa->reg << 8 |
		   (uint32_t)(fp->kind == CFARULE_OFFSET ? UNWIND_FP_CFA : UNWIND_FP_SAME) << 16 |
		   (uint32_t)UNWIND_RA_CALL << 20;
	words[1] = (uint32_t)cfa->off;
	words[2] = (uint32_t)fp->off;
	words[3] = (uint32_t)second_register(&wide, &rules->col[CFARUN_BX]);
	memcpy(ret, words, sizeof(*ret));
	return true;
}

_Static_assert(offsetof(struct unwind_rule, reg) == 1 && offsetof(struct unwind_rule, cfa_off) == 4 &&
		       offsetof(struct unwind_rule, fp_off) == 8,
	"as usual() puts it together");

bool unwindx86_is_syscall(const uint8_t *code, bool narrow)
{
	return code_after_syscall((uint64_t)code[0] << 48 | (uint64_t)code[1] << 56, narrow);
}

unsigned int unwindx86_rule(const struct cfarules *rules, bool narrow, bool signal, struct unwind_rule *ret)
{
	const struct kind *k = kind_of(narrow);

	if (!signal && !narrow && usual(rules, ret))
		return 0;
	*ret = (struct unwind_rule){ .flags = (uint8_t)((signal ? UNWIND_SIGNAL : 0) |
							(narrow ? UNWIND_WORD4 : 0)) };
	if (!frame(k, rules, ret)) {
		*ret = (struct unwind_rule){ .cfa = UNWIND_CFA_UNSUPPORTED, .ra = UNWIND_RA_UNSUPPORTED };
		return UNWINDX86_CFA;
	}
	if (ret->ra == UNWIND_RA_END || frame_pointer(k, &rules->col[CFARUN_FP], ret))
		return 0;
	ret->fp = UNWIND_FP_UNKNOWN;
	ret->fp_off = 0;
	return UNWINDX86_LOST_FP;
}

const char *unwindx86_register(unsigned int reg, bool narrow)
{
	static const char *const narrow_names[] = { "eax", "edx", "ecx", "ebx", "esi", "edi", "ebp", "esp" };
	static const char *const names[] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
		"r9", "r10", "r11", "r12", "r13", "r14", "r15" };

	if (narrow)
		return reg < ARRAY_LEN(narrow_names) ? narrow_names[reg] : NULL;
	return reg < ARRAY_LEN(names) ? names[reg] : NULL;
}

uint64_t unwindx86_saved(const __u64 *pt_regs, unsigned int reg)
{
	static const uint8_t word[UNWINDX86_REGS + 1] = { 10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1,
		0, 16 };

	return pt_regs[word[reg]];
}

unsigned int unwindx86_ucontext(unsigned int reg, bool narrow)
{
	static const uint8_t narrow_at[] = { 44, 36, 40, 32, 20, 16, 24, 28 };
	static const uint8_t at[UNWINDX86_REGS] = { 144, 136, 152, 128, 112, 104, 120, 160, 40, 48, 56, 64,
		72, 80, 88, 96 };

	return narrow ? narrow_at[reg & 7] : at[reg];
}

bool unwindx86_is_narrow(const __u64 *pt_regs)
{
	return pt_regs[UNWINDX86_CS] == UNWINDX86_USER32_CS;
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
