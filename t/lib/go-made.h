/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hand-made Go programs in memory: a table of functions in each of its four
 * versions, and the code of the functions.
 */
#ifndef STACKTOOLS_T_GO_MADE_H
#define STACKTOOLS_T_GO_MADE_H

#include "base/bytes.h"

#include <elf.h>
#include <string.h>

#define GO_TEXT UINT64_C(0x400000) /* where functions are */
#define GO_FUNCTION 64 /* bytes of each function */

enum go_version { GO_MADE_1_2, GO_MADE_1_16, GO_MADE_1_18, GO_MADE_1_20 };

struct go_function {
	const char *name;
	uint8_t flags;
	const char *frames; /* table of frame sizes: pairs of zigzag change and length */
	const char *lines;
	const char *inlined; /* NULL = the function has no such table */
	const char *code; /* up to GO_FUNCTION bytes; the rest is int3 */
	size_t len;
};

static inline void go_patch(struct buf *b, size_t at, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		b->p[at + i] = (uint8_t)(v >> (8 * i));
}

/* Append S with its NUL; returns its offset from BASE. */
static inline uint32_t go_string(struct buf *b, size_t base, const char *s)
{
	size_t at = b->len;

	buf_put(b, s, strlen(s) + 1);
	return (uint32_t)(at - base);
}

/* The record of function I. */
static inline void go_record(struct buf *b, enum go_version v, size_t i, const struct go_function *fn,
	uint32_t name, const uint32_t *tables)
{
	buf_fixed(
		b, v < GO_MADE_1_18 ? GO_TEXT + i * GO_FUNCTION : i * GO_FUNCTION, v < GO_MADE_1_18 ? 8 : 4);
	buf_fixed(b, name, 4);
	buf_fixed(b, 0, 8);
	buf_fixed(b, tables[0], 4);
	buf_fixed(b, tables[1], 4);
	buf_fixed(b, tables[2], 4);
	buf_fixed(b, v == GO_MADE_1_2 ? 0 : 3, 4);
	if (v == GO_MADE_1_2) {
		buf_fixed(b, 0, 4);
		return;
	}
	buf_fixed(b, 0, 4); /* unit */
	if (v == GO_MADE_1_20)
		buf_fixed(b, 1, 4);
	buf_fixed(b, 0, 1);
	buf_fixed(b, fn->flags, 1);
	buf_fixed(b, 0, 2);
	buf_fixed(b, 0, 8);
	buf_fixed(b, tables[3], 4);
}

/* A table of N functions (at most 32), all in the file "dir/made.go", in *B (empty at first). */
static inline void go_table(struct buf *b, enum go_version v, const struct go_function *fns, size_t n)
{
	static const uint32_t magics[] = { 0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1 };
	const size_t entry = v < GO_MADE_1_18 ? 16 : 8;
	uint32_t names[32] = { 0 }, tables[32][4] = { { 0 } };
	size_t parts, base, functions = 0;

	buf_fixed(b, magics[v], 4);
	buf_put(b, "\0\0\1\10", 4);
	buf_fixed(b, n, 8);
	if (v > GO_MADE_1_2)
		buf_fixed(b, 1, 8);
	if (v >= GO_MADE_1_18)
		buf_fixed(b, GO_TEXT, 8);
	parts = b->len;
	if (v == GO_MADE_1_2) {
		functions = b->len;
		for (size_t i = 0; i < n * 16 + 8 + 4; i++)
			buf_fixed(b, 0, 1);
	} else {
		for (size_t i = 0; i < 5; i++)
			buf_fixed(b, 0, 8);
		go_patch(b, parts, b->len, 8);
	}
	base = v == GO_MADE_1_2 ? 0 : b->len;
	for (size_t i = 0; i < n; i++)
		names[i] = go_string(b, base, fns[i].name);
	if (v > GO_MADE_1_2) {
		go_patch(b, parts + 8, b->len, 8); /* units: file 0 is at 0 */
		buf_fixed(b, 0, 4);
		go_patch(b, parts + 16, b->len, 8);
		buf_put(b, "dir/made.go", 12);
		go_patch(b, parts + 24, b->len, 8);
		base = b->len;
	}
	buf_fixed(b, 0, 1); /* no table is at 0 */
	for (size_t i = 0; i < n; i++) {
		const char *const all[4] = { fns[i].frames, "\x02\x40", fns[i].lines, fns[i].inlined };

		for (size_t k = 0; k < 4; k++)
			tables[i][k] = all[k] ? go_string(b, base, all[k]) : 0;
	}
	while (b->len % 8)
		buf_fixed(b, 0, 1);
	base = 0;
	if (v > GO_MADE_1_2) {
		go_patch(b, parts + 32, b->len, 8);
		base = functions = b->len;
		for (size_t i = 0; i < n * entry + entry / 2; i++)
			buf_fixed(b, 0, 1);
	}
	for (size_t i = 0; i <= n; i++)
		go_patch(b, functions + i * entry, (v < GO_MADE_1_18 ? GO_TEXT : 0) + i * GO_FUNCTION,
			entry / 2);
	for (size_t i = 0; i < n; i++) {
		go_patch(b, functions + i * entry + entry / 2, b->len - base, entry / 2);
		go_record(b, v, i, &fns[i], names[i], tables[i]);
	}
}

static inline void go_code(struct buf *b, const struct go_function *fns, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		buf_put(b, fns[i].code, fns[i].len);
		for (size_t k = fns[i].len; k < GO_FUNCTION; k++)
			buf_fixed(b, 0xcc, 1);
	}
}

static inline void go_section(
	struct buf *b, uint32_t name, uint32_t type, uint64_t flags, uint64_t addr, uint64_t at, uint64_t n)
{
	Elf64_Shdr s = { .sh_name = name,
		.sh_type = type,
		.sh_flags = flags,
		.sh_addr = addr,
		.sh_offset = at,
		.sh_size = n };

	buf_put(b, &s, sizeof(s));
}

/* A section beside those of every program, at GO_MORE. */
struct go_more {
	const char *name; /* NULL = none */
	uint32_t type;
	uint64_t entsize;
	const void *bytes;
	size_t len;
};

#define GO_MORE UINT64_C(0x20000000)

/* Where the table is in a program with N_CODE bytes of code. */
static inline uint64_t go_table_vaddr(size_t n_code)
{
	return UINT64_C(0x10000000) + (4096 + n_code) % 4096;
}

/* An ELF file in *RET (empty at first) with N_CODE bytes of code at GO_TEXT and the table. */
static inline void go_file(struct buf *ret, const void *table, size_t n, const void *code, size_t n_code,
	const struct go_more *more)
{
	char names[64] = "\0.text\0.gopclntab\0.shstrtab";
	const uint64_t code_at = 4096, table_at = code_at + n_code, more_at = table_at + n;
	const uint64_t names_at = more_at + more->len, table_vaddr = go_table_vaddr(n_code);
	Elf64_Ehdr h = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_phoff = sizeof(h),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
		.e_shoff = 512,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 5,
		.e_shstrndx = 3 };
	Elf64_Phdr loads[2] = { { .p_type = PT_LOAD,
					.p_flags = PF_R | PF_X,
					.p_offset = code_at,
					.p_vaddr = GO_TEXT,
					.p_filesz = n_code,
					.p_memsz = n_code },
		{ .p_type = PT_LOAD,
			.p_flags = PF_R,
			.p_offset = table_at,
			.p_vaddr = table_vaddr,
			.p_filesz = n,
			.p_memsz = n } };

	if (more->name)
		snprintf(names + 28, sizeof(names) - 28, "%s", more->name);
	buf_put(ret, &h, sizeof(h));
	buf_put(ret, loads, sizeof(loads));
	while (ret->len < 512)
		buf_fixed(ret, 0, 1);
	go_section(ret, 0, SHT_NULL, 0, 0, 0, 0);
	go_section(ret, 1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, GO_TEXT, code_at, n_code);
	go_section(ret, 7, SHT_PROGBITS, SHF_ALLOC, table_vaddr, table_at, n);
	go_section(ret, 18, SHT_STRTAB, 0, 0, names_at, sizeof(names));
	go_section(ret, 28, more->name ? more->type : SHT_NULL, SHF_ALLOC, GO_MORE, more_at, more->len);
	go_patch(ret, ret->len - 8, more->entsize, 8);
	while (ret->len < code_at)
		buf_fixed(ret, 0, 1);
	buf_put(ret, code, n_code);
	buf_put(ret, table, n);
	buf_put(ret, more->bytes, more->len);
	buf_put(ret, names, sizeof(names));
}

/* The whole file of N functions in version V, in *RET (empty at first). */
static inline void go_program(struct buf *ret, enum go_version v, const struct go_function *fns, size_t n)
{
	struct buf table = { 0 }, code = { 0 };

	go_table(&table, v, fns, n);
	go_code(&code, fns, n);
	go_file(ret, table.p, table.len, code.p, code.len, &(struct go_more){ 0 });
	buf_free(&table);
	buf_free(&code);
}

#endif
