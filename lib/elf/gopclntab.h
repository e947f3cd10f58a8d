/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gopclntab - the table of functions that every Go program carries, stripped or
 * not: names, source lines, and the size of the frame at each PC.
 *
 * Go's runtime unwinds, prints tracebacks and collects garbage by it, so it is
 * exact and cannot be stripped. Format: the comments and types of Go's
 * src/runtime/symtab.go and src/cmd/link/internal/ld/pcln.go, of the four
 * versions that a magic number tells apart: Go 1.2, 1.16, 1.18 and 1.20 (to 1.26).
 *
 * The table is untrusted. Opening it checks the header and that the functions
 * ascend; every other offset is checked when it is used. Only tables of
 * little-endian 64-bit programs whose instructions begin at any byte (x86-64)
 * are read.
 */
#ifndef STACKTOOLS_ELF_GOPCLNTAB_H
#define STACKTOOLS_ELF_GOPCLNTAB_H

#include "base/bytes.h"
#include "elf/file.h"

struct gopclntab;

enum gopclntab_flag { /* of a function; since Go 1.17 */
	GOPCLNTAB_TOP_FRAME = 1, /* the outermost frame of a stack */
	GOPCLNTAB_SP_WRITE = 2, /* sets the stack pointer: its frame sizes hold only before that */
	GOPCLNTAB_ASSEMBLY = 4,
};

struct gopclntab_function {
	uint64_t start, end; /* virtual addresses, end exclusive; padding included */
	const char *name; /* owned by the table; "" = not readable */
	uint8_t flags; /* enum gopclntab_flag; 0 before Go 1.17 */
	/* offsets in the table, for the functions below */
	uint32_t sp, file, line, inlined, unit;
};

/*
 * Find and check the table of F, which must outlive *RET. It is the section
 * .gopclntab; in a Go program whose linker merged it into another section, it is
 * searched for in .data.rel.ro. Returns 1 and sets *RET (release it with
 * gopclntab_close()), 0 if F has none, -EINVAL with the message if it is
 * malformed or of an unknown version, -E2BIG above 1 GiB.
 */
int gopclntab_open(const struct elffile *f, struct gopclntab **ret, struct err *e);
void gopclntab_close(struct gopclntab *t); /* NULL is fine */

size_t gopclntab_count(const struct gopclntab *t); /* functions */

/* The addresses of function I (below the count). */
void gopclntab_range(const struct gopclntab *t, size_t i, uint64_t *start, uint64_t *end);

/* Function I, in order of address. Returns false if its record lies outside the table. */
bool gopclntab_get(const struct gopclntab *t, size_t i, struct gopclntab_function *ret);

/* The function that contains VADDR. Returns false if there is none. */
bool gopclntab_find(const struct gopclntab *t, uint64_t vaddr, struct gopclntab_function *ret);

/*
 * A run over one of a function's tables of values by PC. VALUE is valid from
 * START to END (exclusive), which gopclntab_next() advances.
 */
struct gopclntab_run {
	struct rd in;
	uint64_t start, end;
	int32_t value;
	bool begun;
};

/* Begin with the frame sizes of FN: the bytes between the stack pointer and the return address. */
void gopclntab_frames(
	const struct gopclntab *t, const struct gopclntab_function *fn, struct gopclntab_run *ret);

/* Returns false at the end, or if the rest is malformed. */
bool gopclntab_next(struct gopclntab_run *r);

/*
 * The source line of VADDR, which FN contains. Returns false if it has none, if
 * it belongs to an inlined call (whose function this table does not name), or
 * before Go 1.16. *FILE is owned by the table.
 */
bool gopclntab_line(const struct gopclntab *t, const struct gopclntab_function *fn, uint64_t vaddr,
	const char **file, uint32_t *line);

#endif
