/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/dwrows.h"

#include <errno.h>

enum { /* DW_LNS_* */
	LNS_COPY = 1,
	LNS_ADVANCE_PC,
	LNS_ADVANCE_LINE,
	LNS_SET_FILE,
	LNS_SET_COLUMN,
	LNS_NEGATE_STMT,
	LNS_SET_BASIC_BLOCK,
	LNS_CONST_ADD_PC,
	LNS_FIXED_ADVANCE_PC,
	LNS_SET_PROLOGUE_END,
	LNS_SET_EPILOGUE_BEGIN,
	LNS_SET_ISA
};

/*
 * Addresses that one sequence after the other covers: a few functions that the linker folded, or a
 * program made to take its time.
 */
#define OVERLAPS_MAX 64
#define OVERLAPS_PER_BYTE 8

enum { LNE_END_SEQUENCE = 1, LNE_SET_ADDRESS, LNE_DEFINE_FILE }; /* DW_LNE_* */

/*
 * Most bytes of a program are special opcodes, and most rows have none of the
 * addresses: a row costs two additions and one comparison with `trigger`.
 */
struct run {
	const struct dwrows_program *p;
	const uint64_t *vaddrs;
	size_t n, next; /* vaddrs[next] is the first one that is not below the last row */
	struct dwline_row *rows;
	uint64_t *starts; /* of the sequence that gave rows[i], plus one; 0 = none did */
	uint64_t settled, settled_max; /* rows given */
	uint64_t trigger; /* a row at this address or above has something to do */
	uint64_t start; /* of the sequence */
	bool begun, dead; /* it has a row; it is code that was discarded */
	uint64_t at; /* address of the last row, and the row */
	struct dwline_row row;
	uint64_t address; /* the registers */
	uint32_t op_index;
	struct dwline_row now;
	uint32_t address_of[256]; /* advances of the special opcodes, when max_ops is 1 */
	int32_t line_of[256];
};

/* Most operands are one byte. */
static inline uint64_t uleb(struct rd *r)
{
	return r->p < r->end && *r->p < 0x80 ? *r->p++ : rd_uleb(r);
}

static inline int64_t sleb(struct rd *r)
{
	return r->p < r->end && *r->p < 0x80 ? (*r->p++ ^ 0x40) - 0x40 : rd_sleb(r);
}

static void set_trigger(struct run *x)
{
	if (x->dead)
		x->trigger = UINT64_MAX;
	else if (!x->begun)
		x->trigger = 0;
	else if (x->next < x->n && x->vaddrs[x->next] < UINT64_MAX)
		x->trigger = x->vaddrs[x->next] + 1;
	else
		x->trigger = UINT64_MAX;
}

/* The last row holds for the addresses below END. */
static void settle(struct run *x, uint64_t end)
{
	for (; x->next < x->n && x->vaddrs[x->next] < end; x->next++) {
		x->settled++;
		if (x->starts[x->next] > x->start)
			continue;
		x->rows[x->next] = x->row;
		x->starts[x->next] = x->start + 1;
	}
}

static void begin(struct run *x)
{
	size_t low = 0, high = x->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (x->vaddrs[mid] < x->address)
			low = mid + 1;
		else
			high = mid;
	}
	x->next = low;
	x->start = x->address;
	x->begun = true;
}

static __attribute__((noinline)) void triggered(struct run *x)
{
	if (x->dead)
		return;
	if (x->begun)
		settle(x, x->address);
	else
		begin(x);
	set_trigger(x);
}

static inline void add_row(struct run *x)
{
	if (x->address >= x->trigger)
		triggered(x);
	x->at = x->address;
	x->row = x->now;
}

/* The rows so far end here, without an end that is known. */
static void interrupt(struct run *x)
{
	x->begun = false;
	set_trigger(x);
}

static void set_address(struct run *x, uint64_t address)
{
	x->dead = address >= x->p->top - 1 || (address == 0 && !x->p->zero_ok);
	if (x->dead || (x->begun && address < x->at))
		x->begun = false;
	x->address = address;
	x->op_index = 0;
	set_trigger(x);
}

static void reset(struct run *x)
{
	x->begun = false;
	x->now = (struct dwline_row){ .file = 1, .line = 1 };
	set_address(x, 0);
}

static void move(struct run *x, uint64_t bytes)
{
	x->address += bytes;
	if (x->begun && x->address < x->at)
		interrupt(x);
}

/* By COUNT operations: instructions, or slots of them where one holds several. */
static void advance(struct run *x, uint64_t count)
{
	if (x->p->max_ops > 1) {
		count += x->op_index;
		x->op_index = (uint32_t)(count % x->p->max_ops);
		count /= x->p->max_ops;
	}
	move(x, count * x->p->min_inst);
}

static void one_special(struct run *x, uint8_t op)
{
	unsigned int adjusted = (unsigned int)op - x->p->opcode_base;

	advance(x, adjusted / x->p->line_range);
	x->now.line += (uint32_t)x->line_of[op];
	add_row(x);
}

/* One special opcode after the other. */
static void specials(struct run *x, struct rd *r)
{
	const uint8_t *p = r->p, base = x->p->opcode_base;
	uint64_t address = x->address;
	uint32_t line = x->now.line, last = x->row.line;

	for (; p < r->end && *p >= base; p++) {
		address += x->address_of[*p];
		line += (uint32_t)x->line_of[*p];
		if (address >= x->trigger) {
			x->address = address;
			x->row.line = last;
			triggered(x);
		}

		x->row.file = x->now.file;
		x->row.column = x->now.column;
		last = line;
	}
	x->at = x->address = address;
	x->row.line = x->now.line = line;
	r->p = p;
}

static int extended(struct run *x, struct rd *r)
{
	uint64_t len = uleb(r);
	const uint8_t *bytes = rd_bytes(r, len);
	struct rd in = rd_init(bytes, bytes ? len : 0);

	if (!bytes || !len)
		return bytes ? 0 : -EINVAL;
	switch (rd_u8(&in)) {
	case LNE_END_SEQUENCE:
		if (x->begun && !x->dead)
			settle(x, x->address);
		reset(x);
		return 0;
	case LNE_SET_ADDRESS:
		if (rd_left(&in) == 0 || rd_left(&in) > 8)
			return -EINVAL;
		set_address(x, rd_fixed(&in, rd_left(&in)));
		return 0;
	case LNE_DEFINE_FILE:
		return x->p->define_file(x->p->ctx, &in);
	default: /* discriminators, and what others have added */
		return 0;
	}
}

static uint32_t clamp(uint64_t v)
{
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static void standard(struct run *x, uint8_t op, struct rd *r)
{
	switch (op) {
	case LNS_COPY:
		add_row(x);
		break;
	case LNS_ADVANCE_PC:
		advance(x, uleb(r));
		break;
	case LNS_ADVANCE_LINE:
		x->now.line += (uint32_t)sleb(r);
		break;
	case LNS_SET_FILE:
		x->now.file = clamp(uleb(r));
		break;
	case LNS_SET_COLUMN:
		x->now.column = clamp(uleb(r));
		break;
	case LNS_CONST_ADD_PC:
		advance(x, (255U - x->p->opcode_base) / x->p->line_range);
		break;
	case LNS_FIXED_ADVANCE_PC:
		x->op_index = 0;
		move(x, rd_u16(r));
		break;
	case LNS_NEGATE_STMT:
	case LNS_SET_BASIC_BLOCK:
	case LNS_SET_PROLOGUE_END:
	case LNS_SET_EPILOGUE_BEGIN:
		break;
	case LNS_SET_ISA:
		uleb(r);
		break;
	default:
		for (uint8_t i = 0; i < x->p->lengths[op - 1]; i++)
			uleb(r);
	}
}

static int run(struct run *x)
{
	struct rd r = x->p->ops;

	while (rd_left(&r)) {
		uint8_t op = *r.p;
		int rc = 0;

		if (op >= x->p->opcode_base && x->p->max_ops <= 1) {
			specials(x, &r);
			continue;
		}
		r.p++;
		if (op >= x->p->opcode_base)
			one_special(x, op);
		else if (op == 0)
			rc = extended(x, &r);
		else
			standard(x, op, &r);
		if (rc || r.bad || x->settled > x->settled_max)
			return rc ? rc : -EINVAL;
	}
	return 0;
}

static void set_advances(struct run *x)
{
	const struct dwrows_program *p = x->p;

	for (unsigned int op = p->opcode_base; op < 256; op++) {
		unsigned int adjusted = op - p->opcode_base;

		x->address_of[op] = adjusted / p->line_range * p->min_inst;
		x->line_of[op] = p->line_base + (int32_t)(adjusted % p->line_range);
	}
}

int dwrows_run(const struct dwrows_program *p, const uint64_t *vaddrs, size_t n, struct dwline_row *rows)
{
	_cleanup_free_ uint64_t *starts = calloc(n ? n : 1, sizeof(*starts));
	struct run x = { .p = p, .vaddrs = vaddrs, .n = n, .rows = rows, .starts = starts };

	if (!starts)
		return -ENOMEM;
	x.settled_max = OVERLAPS_MAX * (uint64_t)n + OVERLAPS_PER_BYTE * (uint64_t)rd_left(&p->ops);
	set_advances(&x);
	reset(&x);
	return run(&x);
}
