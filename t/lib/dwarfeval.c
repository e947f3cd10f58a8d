/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "dwarfeval.h"
#include "base/hash.h"

#include <dwarf.h>

#define DEPTH 16

struct stack {
	uint64_t v[DEPTH];
	size_t n;
	bool bad;
};

static void push(struct stack *s, uint64_t v)
{
	if (s->n == DEPTH)
		s->bad = true;
	else
		s->v[s->n++] = v;
}

static uint64_t pop(struct stack *s)
{
	if (!s->n) {
		s->bad = true;
		return 0;
	}
	return s->v[--s->n];
}

uint64_t dwarfeval_register(const struct dwarfeval *m, uint64_t reg)
{
	uint64_t key[2] = { reg, 1 };

	return reg == m->pc_reg ? m->pc : hash_bytes(key, sizeof(key), m->seed);
}

uint64_t dwarfeval_memory(const struct dwarfeval *m, uint64_t addr)
{
	uint64_t key[2] = { addr, 2 };

	return hash_bytes(key, sizeof(key), m->seed);
}

/* Operations on the two topmost values; false for other operations. */
static bool binary(struct stack *s, unsigned int op)
{
	uint64_t b, a;

	if (op != DW_OP_plus && op != DW_OP_minus && op != DW_OP_and && op != DW_OP_or && op != DW_OP_mul &&
		op != DW_OP_ge && op != DW_OP_gt && op != DW_OP_le && op != DW_OP_lt && op != DW_OP_eq &&
		op != DW_OP_ne && op != DW_OP_shl && op != DW_OP_shr)
		return false;
	b = pop(s);
	a = pop(s);
	switch (op) {
	case DW_OP_plus:
		push(s, a + b);
		break;
	case DW_OP_minus:
		push(s, a - b);
		break;
	case DW_OP_and:
		push(s, a & b);
		break;
	case DW_OP_or:
		push(s, a | b);
		break;
	case DW_OP_mul:
		push(s, a * b);
		break;
	case DW_OP_ge:
		push(s, (int64_t)a >= (int64_t)b);
		break;
	case DW_OP_gt:
		push(s, (int64_t)a > (int64_t)b);
		break;
	case DW_OP_le:
		push(s, (int64_t)a <= (int64_t)b);
		break;
	case DW_OP_lt:
		push(s, (int64_t)a < (int64_t)b);
		break;
	case DW_OP_eq:
		push(s, a == b);
		break;
	case DW_OP_ne:
		push(s, a != b);
		break;
	case DW_OP_shl:
		push(s, b < 64 ? a << b : 0);
		break;
	default:
		push(s, b < 64 ? a >> b : 0);
		break;
	}
	return true;
}

/* Constants and registers; false for other operations. */
static bool literal(const struct dwarfeval *m, struct stack *s, const Dwarf_Op *op)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
		push(s, op->atom - DW_OP_lit0);
		return true;
	}
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		push(s, dwarfeval_register(m, op->atom - DW_OP_breg0) + op->number);
		return true;
	}
	switch (op->atom) {
	case DW_OP_bregx:
		push(s, dwarfeval_register(m, op->number) + op->number2);
		return true;
	case DW_OP_call_frame_cfa:
		push(s, m->cfa);
		return true;
	case DW_OP_addr:
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		push(s, op->number);
		return true;
	default:
		return false;
	}
}

static bool step(const struct dwarfeval *m, struct stack *s, const Dwarf_Op *op)
{
	uint64_t v;

	if (literal(m, s, op) || binary(s, op->atom))
		return true;
	switch (op->atom) {
	case DW_OP_deref:
		push(s, dwarfeval_memory(m, pop(s)));
		return true;
	case DW_OP_plus_uconst:
		push(s, pop(s) + op->number);
		return true;
	case DW_OP_drop:
		pop(s);
		return true;
	case DW_OP_dup:
		v = pop(s);
		push(s, v);
		push(s, v);
		return true;
	default:
		return op->atom == DW_OP_nop;
	}
}

bool dwarfeval_value(const struct dwarfeval *m, const Dwarf_Op *ops, size_t n, uint64_t *ret)
{
	struct stack s = { .n = 0 };

	for (size_t i = 0; i < n && !s.bad; i++)
		if (!step(m, &s, &ops[i]))
			return false;
	*ret = pop(&s);
	return !s.bad;
}

bool dwarfeval_location(const struct dwarfeval *m, const Dwarf_Op *ops, size_t n, uint64_t *ret)
{
	uint64_t addr;

	if (n == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) {
		*ret = dwarfeval_register(m, ops[0].atom - DW_OP_reg0);
		return true;
	}
	if (n == 1 && ops[0].atom == DW_OP_regx) {
		*ret = dwarfeval_register(m, ops[0].number);
		return true;
	}
	if (n && ops[n - 1].atom == DW_OP_stack_value)
		return dwarfeval_value(m, ops, n - 1, ret);
	if (!dwarfeval_value(m, ops, n, &addr))
		return false;
	*ret = dwarfeval_memory(m, addr);
	return true;
}
