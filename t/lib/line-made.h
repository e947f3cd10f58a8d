/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Line number programs, written byte by byte: begin(), file tables,
 * end_heading(), opcodes, finish().
 */
#ifndef STACKTOOLS_T_LINE_MADE_H
#define STACKTOOLS_T_LINE_MADE_H

#include "base/base.h"

#include <string.h>

struct prog {
	uint8_t b[4096];
	size_t n;
	size_t heading_at;
};

static inline void put(struct prog *p, uint64_t v, size_t size)
{
	for (size_t i = 0; i < size; i++)
		p->b[p->n++] = (uint8_t)(i < 8 ? v >> 8 * i : 0);
}

static inline void put_str(struct prog *p, const char *s)
{
	memcpy(p->b + p->n, s, strlen(s) + 1);
	p->n += strlen(s) + 1;
}

#define PUT(p, ...) put_all((p), (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static inline void put_all(struct prog *p, const uint8_t *bytes, size_t n)
{
	memcpy(p->b + p->n, bytes, n);
	p->n += n;
}

static inline void put_length(struct prog *p, size_t at)
{
	uint64_t v = p->n - at - 4;

	memcpy(p->b + at, &v, 4); /* little-endian, like every machine that runs this */
}

/* Everything before the file tables: line_base -3, line_range 12, as in gcc. */
static inline struct prog begin(uint16_t version, uint8_t min_inst, uint8_t max_ops, uint8_t opcode_base)
{
	static const uint8_t lengths[] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 2, 3, 0, 1 };
	struct prog p = { .n = 4 };

	put(&p, version, 2);
	if (version >= 5)
		PUT(&p, 8, 0);
	p.heading_at = p.n;
	p.n += 4;
	put(&p, min_inst, 1);
	if (version >= 4)
		put(&p, max_ops, 1);
	PUT(&p, 1, (uint8_t)-3, 12, opcode_base);
	put_all(&p, lengths, opcode_base - 1U);
	return p;
}

static inline void end_heading(struct prog *p)
{
	put_length(p, p->heading_at);
}

/* One directory "inc", and the file "a.c" in it. */
static inline struct prog usual(uint16_t version, uint8_t opcode_base)
{
	struct prog p = begin(version, 1, 1, opcode_base);

	put_str(&p, "inc");
	PUT(&p, 0);
	put_str(&p, "a.c");
	PUT(&p, 1, 0, 0, 0);
	end_heading(&p);
	return p;
}

static inline void set_address(struct prog *p, uint64_t address, uint8_t size)
{
	PUT(p, 0, size + 1, 2);
	put(p, address, size);
}

/* Rows at ADDRESS and ADDRESS + 16 with lines LINE and LINE + 1; the end is 16 bytes further. */
static inline void sequence(struct prog *p, uint64_t address, uint8_t size, uint8_t line)
{
	set_address(p, address, size);
	PUT(p, 3, line - 1, 1, 2, 16, 3, 1, 1, 2, 16, 0, 1, 1);
}

static inline struct prog *finish(struct prog *p)
{
	put_length(p, 0);
	return p;
}

#endif
