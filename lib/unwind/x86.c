/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/x86.h"
#include "base/bytes.h"

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

void unwindx86_set_narrow(__u64 *pt_regs)
{
	pt_regs[UNWINDX86_CS] = UNWINDX86_USER32_CS;
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
