/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/cfarun.h"

/* The upper two bits are an opcode of their own, with its operand in the others. */
enum {
	OP_HIGH = 0xc0,
	OP_LOW = 0x3f,
	OP_ADVANCE_LOC = 0x40,
	OP_OFFSET = 0x80,
	OP_RESTORE = 0xc0,

	OP_NOP = 0x00,
	OP_SET_LOC = 0x01,
	OP_ADVANCE_LOC1 = 0x02,
	OP_ADVANCE_LOC2 = 0x03,
	OP_ADVANCE_LOC4 = 0x04,
	OP_OFFSET_EXTENDED = 0x05,
	OP_RESTORE_EXTENDED = 0x06,
	OP_UNDEFINED = 0x07,
	OP_SAME_VALUE = 0x08,
	OP_REGISTER = 0x09,
	OP_REMEMBER_STATE = 0x0a,
	OP_RESTORE_STATE = 0x0b,
	OP_DEF_CFA = 0x0c,
	OP_DEF_CFA_REGISTER = 0x0d,
	OP_DEF_CFA_OFFSET = 0x0e,
	OP_DEF_CFA_EXPRESSION = 0x0f,
	OP_EXPRESSION = 0x10,
	OP_OFFSET_EXTENDED_SF = 0x11,
	OP_DEF_CFA_SF = 0x12,
	OP_DEF_CFA_OFFSET_SF = 0x13,
	OP_VAL_OFFSET = 0x14,
	OP_VAL_OFFSET_SF = 0x15,
	OP_VAL_EXPRESSION = 0x16,
	OP_MIPS_ADVANCE_LOC8 = 0x1d,
	OP_GNU_ARGS_SIZE = 0x2e,
	OP_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

/* Nearly every number is one byte. */
static inline uint64_t read_uleb(struct rd *in)
{
	if (in->p < in->end && !(*in->p & 0x80))
		return *in->p++;
	return rd_uleb(in);
}

/* The column of register REG; NULL for one that no walk needs. */
static struct cfarule *column(struct cfarun *r, uint64_t reg)
{
	if (reg == r->regs.fp)
		return &r->now.col[CFARUN_FP];
	if (reg == r->regs.bx)
		return &r->now.col[CFARUN_BX];
	if (reg == r->regs.ra)
		return &r->now.col[CFARUN_RA];
	if (reg == r->regs.sp)
		return &r->now.col[CFARUN_SP];
	return NULL;
}

static void set(struct cfarun *r, uint64_t reg, struct cfarule rule)
{
	struct cfarule *c = column(r, reg);

	if (!c)
		return;
	*c = rule;
	r->changed = true;
}

/* Offsets are factored; one that overflows is as wrong as any other wild one. */
static int64_t factored(const struct cfarun *r, uint64_t n)
{
	return (int64_t)(n * (uint64_t)r->cie->data_align);
}

static void set_offset(struct cfarun *r, enum cfarule_kind kind, uint64_t reg, uint64_t n)
{
	set(r, reg, (struct cfarule){ .kind = kind, .off = factored(r, n) });
}

static void restore(struct cfarun *r, uint64_t reg)
{
	struct cfarule *c = column(r, reg);

	if (!c)
		return;
	if (r->initial)
		*c = r->initial->col[c - r->now.col];
	else
		*c = (struct cfarule){ .kind = CFARULE_UNSPECIFIED };
	r->changed = true;
}

static struct cfarule read_expression(struct cfarun *r, enum cfarule_kind kind)
{
	uint32_t len = rd_uleb32(&r->insns);
	const uint8_t *p = rd_bytes(&r->insns, len);

	return (struct cfarule){ .kind = kind, .reg = len, .expr = p };
}

static void def_cfa(struct cfarun *r, uint32_t reg, int64_t off)
{
	r->now.col[CFARUN_CFA] = (struct cfarule){ .kind = CFARULE_OFFSET, .reg = reg, .off = off };
	r->changed = true;
}

/* Change half of a rule that has to be "register and offset". */
static bool change_cfa(struct cfarun *r, bool change_reg, uint32_t reg, int64_t off)
{
	struct cfarule *c = &r->now.col[CFARUN_CFA];

	if (c->kind != CFARULE_OFFSET)
		return false;
	if (change_reg) {
		c->reg = reg;
		r->changed = true;
	} else {
		c->off = off;
		r->moved = true;
	}
	return true;
}

static bool remember(struct cfarun *r)
{
	if (r->depth == CFARUN_DEPTH)
		return false;
	r->saved[r->depth++] = r->now;
	return true;
}

static bool recall(struct cfarun *r)
{
	if (!r->depth)
		return false;
	r->now = r->saved[--r->depth];
	r->changed = true;
	return true;
}

/* Instructions about the CFA and the state; false where they make no sense. */
static bool run_cfa(struct cfarun *r, uint8_t op)
{
	struct rd *in = &r->insns;
	uint32_t reg;

	switch (op) {
	case OP_DEF_CFA:
		reg = rd_uleb32(in);
		def_cfa(r, reg, (int64_t)read_uleb(in));
		return true;
	case OP_DEF_CFA_SF:
		reg = rd_uleb32(in);
		def_cfa(r, reg, factored(r, (uint64_t)rd_sleb(in)));
		return true;
	case OP_DEF_CFA_REGISTER:
		return change_cfa(r, true, rd_uleb32(in), 0);
	case OP_DEF_CFA_OFFSET:
		return change_cfa(r, false, 0, (int64_t)read_uleb(in));
	case OP_DEF_CFA_OFFSET_SF:
		return change_cfa(r, false, 0, factored(r, (uint64_t)rd_sleb(in)));
	case OP_DEF_CFA_EXPRESSION:
		r->now.col[CFARUN_CFA] = read_expression(r, CFARULE_EXPRESSION);
		r->changed = true;
		return true;
	case OP_REMEMBER_STATE:
		return remember(r);
	case OP_RESTORE_STATE:
		return recall(r);
	case OP_GNU_ARGS_SIZE: /* of interest to exceptions only */
		rd_uleb(in);
		return true;
	default:
		return op == OP_NOP;
	}
}

/* Instructions about one register. */
static void run_register(struct cfarun *r, uint8_t op)
{
	struct rd *in = &r->insns;
	uint64_t reg = rd_uleb(in);

	switch (op) {
	case OP_OFFSET_EXTENDED:
		set_offset(r, CFARULE_OFFSET, reg, rd_uleb(in));
		break;
	case OP_OFFSET_EXTENDED_SF:
		set_offset(r, CFARULE_OFFSET, reg, (uint64_t)rd_sleb(in));
		break;
	case OP_GNU_NEGATIVE_OFFSET_EXTENDED:
		set_offset(r, CFARULE_OFFSET, reg, -rd_uleb(in));
		break;
	case OP_VAL_OFFSET:
		set_offset(r, CFARULE_VAL_OFFSET, reg, rd_uleb(in));
		break;
	case OP_VAL_OFFSET_SF:
		set_offset(r, CFARULE_VAL_OFFSET, reg, (uint64_t)rd_sleb(in));
		break;
	case OP_RESTORE_EXTENDED:
		restore(r, reg);
		break;
	case OP_UNDEFINED:
		set(r, reg, (struct cfarule){ .kind = CFARULE_UNDEFINED });
		break;
	case OP_SAME_VALUE:
		set(r, reg, (struct cfarule){ .kind = CFARULE_SAME });
		break;
	case OP_REGISTER:
		set(r, reg, (struct cfarule){ .kind = CFARULE_REGISTER, .reg = rd_uleb32(in) });
		break;
	case OP_EXPRESSION:
		set(r, reg, read_expression(r, CFARULE_EXPRESSION));
		break;
	default:
		set(r, reg, read_expression(r, CFARULE_VAL_EXPRESSION));
		break;
	}
}

/* The location moves on by N units; true always. */
static bool advance(struct cfarun *r, uint64_t n, uint64_t *delta)
{
	if (__builtin_mul_overflow(n, r->cie->code_align, delta))
		r->insns.bad = true;
	return true;
}

/* DW_CFA_set_loc: never back. */
static bool set_location(struct cfarun *r, uint64_t *delta)
{
	uint64_t to = cfi_pointer(&r->insns, r->section, r->cie);

	if (to < r->loc)
		r->insns.bad = true;
	*delta = to - r->loc;
	return true;
}

/* Instructions that move the location on by *DELTA; true always. */
static bool run_location(struct cfarun *r, uint8_t op, uint64_t *delta)
{
	struct rd *in = &r->insns;

	switch (op) {
	case OP_ADVANCE_LOC1:
		return advance(r, rd_u8(in), delta);
	case OP_ADVANCE_LOC2:
		return advance(r, rd_u16(in), delta);
	case OP_ADVANCE_LOC4:
		return advance(r, rd_u32(in), delta);
	case OP_MIPS_ADVANCE_LOC8:
		return advance(r, rd_u64(in), delta);
	default:
		return set_location(r, delta);
	}
}

/* What an opcode without operand bits is about. */
enum class { UNKNOWN, ABOUT_LOCATION, ABOUT_REGISTER, ABOUT_CFA };

static const uint8_t class_of[OP_LOW + 1] = {
	[OP_NOP] = ABOUT_CFA,
	[OP_SET_LOC] = ABOUT_LOCATION,
	[OP_ADVANCE_LOC1] = ABOUT_LOCATION,
	[OP_ADVANCE_LOC2] = ABOUT_LOCATION,
	[OP_ADVANCE_LOC4] = ABOUT_LOCATION,
	[OP_MIPS_ADVANCE_LOC8] = ABOUT_LOCATION,
	[OP_OFFSET_EXTENDED] = ABOUT_REGISTER,
	[OP_RESTORE_EXTENDED] = ABOUT_REGISTER,
	[OP_UNDEFINED] = ABOUT_REGISTER,
	[OP_SAME_VALUE] = ABOUT_REGISTER,
	[OP_REGISTER] = ABOUT_REGISTER,
	[OP_EXPRESSION] = ABOUT_REGISTER,
	[OP_OFFSET_EXTENDED_SF] = ABOUT_REGISTER,
	[OP_VAL_OFFSET] = ABOUT_REGISTER,
	[OP_VAL_OFFSET_SF] = ABOUT_REGISTER,
	[OP_VAL_EXPRESSION] = ABOUT_REGISTER,
	[OP_GNU_NEGATIVE_OFFSET_EXTENDED] = ABOUT_REGISTER,
	[OP_REMEMBER_STATE] = ABOUT_CFA,
	[OP_RESTORE_STATE] = ABOUT_CFA,
	[OP_DEF_CFA] = ABOUT_CFA,
	[OP_DEF_CFA_REGISTER] = ABOUT_CFA,
	[OP_DEF_CFA_OFFSET] = ABOUT_CFA,
	[OP_DEF_CFA_EXPRESSION] = ABOUT_CFA,
	[OP_DEF_CFA_SF] = ABOUT_CFA,
	[OP_DEF_CFA_OFFSET_SF] = ABOUT_CFA,
	[OP_GNU_ARGS_SIZE] = ABOUT_CFA,
};

/*
 * Run to where the location moves on by *DELTA. False at the end of the
 * instructions, or with R->bad where one makes no sense.
 */
static bool run_row(struct cfarun *r, uint64_t *delta)
{
	bool good = true, moved = false;

	while (good && !moved && rd_left(&r->insns)) {
		uint8_t op = *r->insns.p++;

		if ((op & OP_HIGH) == OP_ADVANCE_LOC)
			moved = advance(r, op & OP_LOW, delta);
		else if ((op & OP_HIGH) == OP_OFFSET)
			set_offset(r, CFARULE_OFFSET, op & OP_LOW, read_uleb(&r->insns));
		else if ((op & OP_HIGH) == OP_RESTORE)
			restore(r, op & OP_LOW);
		else if (class_of[op] == ABOUT_CFA)
			good = run_cfa(r, op);
		else if (class_of[op] == ABOUT_REGISTER)
			run_register(r, op);
		else if (class_of[op] == ABOUT_LOCATION)
			moved = run_location(r, op, delta);
		else
			good = false;
	}
	r->bad = !good || r->insns.bad;
	return moved && !r->bad;
}

bool cfarun_initial(const struct cfi_section *s, const struct cfi_cie *cie, const struct cfarun_regs *regs,
	struct cfarules *ret)
{
	struct cfarun r = { .cie = cie, .section = s, .regs = *regs };
	uint64_t delta;

	r.insns = rd_init(s->p + cie->insns, cie->insns_end - cie->insns);
	if (run_row(&r, &delta) || r.bad) /* the location of a CIE is nowhere: it does not move */
		return false;
	*ret = r.now;
	return true;
}

void cfarun_begin(struct cfarun *r, const struct cfi_section *s, const struct cfi_cie *cie,
	const struct cfi_fde *f, const struct cfarun_regs *regs, const struct cfarules *initial)
{
	r->cie = cie;
	r->section = s;
	r->initial = initial;
	r->regs = *regs;
	r->insns = rd_init(s->p + f->insns, f->insns_end - f->insns);
	r->loc = f->pc;
	r->end = f->end;
	r->now = *initial;
	r->changed = true;
	r->moved = false;
	r->bad = false;
	r->depth = 0;
}

bool cfarun_next(struct cfarun *r, uint64_t *start)
{
	while (r->loc < r->end) {
		uint64_t delta = 0;
		bool row;

		if (!run_row(r, &delta) || delta > r->end - r->loc)
			delta = r->end - r->loc;
		row = delta && (r->changed || r->moved || r->bad);
		*start = r->loc;
		r->loc += delta;
		if (row) {
			r->same = !r->changed;
			r->changed = r->moved = false;
			return true;
		}
	}
	return false;
}
