/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cfarun.h"

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

/* The column of register REG; NULL for one that no walk needs. */
static struct cfarule *column(struct cfarun *r, uint64_t reg)
{
	if (reg == r->regs.fp)
		return &r->now.col[CFARUN_FP];
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

static void set_kind(struct cfarun *r, uint64_t reg, enum cfarule_kind kind)
{
	set(r, reg, (struct cfarule){ .kind = kind });
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

static void set_register(struct cfarun *r)
{
	uint64_t reg = rd_uleb(&r->insns);

	set(r, reg, (struct cfarule){ .kind = CFARULE_REGISTER, .reg = rd_uleb32(&r->insns) });
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
	if (change_reg)
		c->reg = reg;
	else
		c->off = off;
	r->changed = true;
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
		def_cfa(r, reg, (int64_t)rd_uleb(in));
		return true;
	case OP_DEF_CFA_SF:
		reg = rd_uleb32(in);
		def_cfa(r, reg, factored(r, (uint64_t)rd_sleb(in)));
		return true;
	case OP_DEF_CFA_REGISTER:
		return change_cfa(r, true, rd_uleb32(in), 0);
	case OP_DEF_CFA_OFFSET:
		return change_cfa(r, false, 0, (int64_t)rd_uleb(in));
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

/* Instructions about one register. False for those that are not. */
static bool run_register(struct cfarun *r, uint8_t op)
{
	struct rd *in = &r->insns;
	uint64_t reg;

	if (op == OP_REGISTER) {
		set_register(r);
		return true;
	}
	if (op < OP_OFFSET_EXTENDED || (op > OP_SAME_VALUE && op < OP_EXPRESSION) ||
		(op > OP_VAL_EXPRESSION && op != OP_GNU_NEGATIVE_OFFSET_EXTENDED) || op == OP_DEF_CFA_SF ||
		op == OP_DEF_CFA_OFFSET_SF)
		return false;
	reg = rd_uleb(in);
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
		set_kind(r, reg, CFARULE_UNDEFINED);
		break;
	case OP_SAME_VALUE:
		set_kind(r, reg, CFARULE_SAME);
		break;
	case OP_EXPRESSION:
		set(r, reg, read_expression(r, CFARULE_EXPRESSION));
		break;
	default:
		set(r, reg, read_expression(r, CFARULE_VAL_EXPRESSION));
		break;
	}
	return true;
}

static bool read_location(struct cfarun *r, uint64_t *delta)
{
	uint64_t to = cfi_pointer(&r->insns, r->section, r->cie);

	if (to < r->loc)
		r->insns.bad = true;
	*delta = to - r->loc;
	return true;
}

/* How far OP advances the location, into *DELTA. False where it is no such instruction. */
static bool read_advance(struct cfarun *r, uint8_t op, uint64_t *delta)
{
	struct rd *in = &r->insns;

	switch (op) {
	case OP_ADVANCE_LOC1:
		*delta = rd_u8(in);
		break;
	case OP_ADVANCE_LOC2:
		*delta = rd_u16(in);
		break;
	case OP_ADVANCE_LOC4:
		*delta = rd_u32(in);
		break;
	case OP_MIPS_ADVANCE_LOC8:
		*delta = rd_u64(in);
		break;
	case OP_SET_LOC:
		return read_location(r, delta);
	default:
		if ((op & OP_HIGH) != OP_ADVANCE_LOC)
			return false;
		*delta = op & OP_LOW;
		break;
	}
	if (__builtin_mul_overflow(*delta, r->cie->code_align, delta))
		r->insns.bad = true;
	return true;
}

/* What is no advance: true where it made sense. */
static bool run_other(struct cfarun *r, uint8_t op)
{
	switch (op & OP_HIGH) {
	case OP_OFFSET:
		set_offset(r, CFARULE_OFFSET, op & OP_LOW, rd_uleb(&r->insns));
		break;
	case OP_RESTORE:
		restore(r, op & OP_LOW);
		break;
	default:
		if (!run_register(r, op) && !run_cfa(r, op))
			return false;
	}
	return !r->insns.bad;
}

bool cfarun_initial(const struct cfi_section *s, const struct cfi_cie *cie, const struct cfarun_regs *regs,
	struct cfarules *ret)
{
	struct cfarun r = { .cie = cie, .section = s, .regs = *regs };

	r.insns = rd_init(s->p + cie->insns, cie->insns_end - cie->insns);
	while (rd_left(&r.insns))
		if (!run_other(&r, rd_u8(&r.insns)))
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
	r->fresh = true;
	r->changed = false;
	r->bad = false;
	r->depth = 0;
}

/* Run to where the location moves on by *DELTA; false at the end of the instructions. */
static bool run_row(struct cfarun *r, uint64_t *delta)
{
	while (rd_left(&r->insns)) {
		uint8_t op = *r->insns.p++;

		if (read_advance(r, op, delta)) {
			r->bad = r->insns.bad;
			return !r->bad;
		}
		if (!run_other(r, op)) {
			r->bad = true;
			return false;
		}
	}
	return false;
}

bool cfarun_next(struct cfarun *r, uint64_t *start)
{
	while (r->loc < r->end) {
		uint64_t delta = 0;
		bool row;

		if (!run_row(r, &delta) || delta > r->end - r->loc)
			delta = r->end - r->loc;
		row = delta && (r->changed || r->fresh || r->bad);
		*start = r->loc;
		r->loc += delta;
		if (row) {
			r->changed = r->fresh = false;
			return true;
		}
	}
	return false;
}
