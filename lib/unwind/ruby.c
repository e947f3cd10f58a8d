/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/ruby.h"
#include "base/base.h"
#include "elf/symbols.h"
#include "runtime_abi.h"
#include "unwind/fde.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTION_MAX (UINT64_C(64) << 20)
#define CODE_MAX 256 /* bytes of the small functions that are read */
#define LABELS_MIN                                                                                           \
	180 /* 2.7 to 3.3 have 202 to 206 instructions; the regular expressions' table has 98 labels */

/* A pointer in the file's data to its own code. */
struct pointer {
	uint64_t at, to;
};

struct pointers {
	struct pointer *p;
	size_t n, max;
};

static bool in_code(const struct elffile *f, uint64_t addr)
{
	for (size_t i = 0; i < f->n_loads; i++)
		if (f->loads[i].exec && addr - f->loads[i].vaddr < f->loads[i].filesz)
			return true;
	return false;
}

/* List what relative relocations make point to code, in the order in which linkers write them: by place. */
static int list_pointers(const struct elffile *f, struct pointers *ret)
{
	for (size_t i = 0; i < f->n_sections; i++) {
		const struct elffile_section *s = &f->sections[i];
		_cleanup_free_ uint8_t *bytes = NULL;
		size_t len;

		if (s->type != SHT_RELA || !(s->flags & SHF_ALLOC) || s->size > SECTION_MAX ||
			elffile_read(f, s, &bytes, &len, NULL) != 0)
			continue;
		for (size_t at = 0; at + sizeof(Elf64_Rela) <= len; at += sizeof(Elf64_Rela)) {
			Elf64_Rela r;

			memcpy(&r, bytes + at, sizeof(r));
			if (ELF64_R_TYPE(r.r_info) != R_X86_64_RELATIVE || !in_code(f, (uint64_t)r.r_addend))
				continue;
			if (base_grow(&ret->p, &ret->max, ret->n + 1, sizeof(*ret->p)) != 0)
				return -1;
			ret->p[ret->n++] = (struct pointer){ r.r_offset, (uint64_t)r.r_addend };
		}
	}
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The range of the function that the address ADDR, one of the N, lies in. */
static const struct fde_range *range_of(
	const uint64_t *addrs, const struct fde_range *ranges, size_t n, uint64_t addr)
{
	const uint64_t *found = bsearch(&addr, addrs, n, sizeof(*addrs), by_address);

	return found ? &ranges[found - addrs] : NULL;
}

/* The function that the most pointers next to each other point into. */
static bool find_labels(const struct elffile *f, uint64_t eval[2])
{
	struct pointers list = { 0 };
	_cleanup_free_ uint64_t *addrs = NULL;
	_cleanup_free_ struct fde_range *ranges = NULL;
	size_t best = 0, run = 0;
	uint64_t function = 0;

	if (list_pointers(f, &list) == 0 && list.n) {
		addrs = malloc(list.n * sizeof(*addrs));
		ranges = calloc(list.n, sizeof(*ranges));
	}
	if (!addrs || !ranges) {
		free(list.p);
		return false;
	}
	for (size_t i = 0; i < list.n; i++)
		addrs[i] = list.p[i].to;
	qsort(addrs, list.n, sizeof(*addrs), by_address);
	if (fde_ranges(f, NULL, addrs, list.n, SECTION_MAX, ranges, NULL) == 0)
		for (size_t i = 0; i < list.n; i++) {
			const struct fde_range *r = range_of(addrs, ranges, list.n, list.p[i].to);
			bool same = r && r->end && r->start == function && i &&
				    list.p[i].at == list.p[i - 1].at + 8;

			run = same ? run + 1 : 1;
			function = r && r->end ? r->start : 0;
			if (!function || run <= best)
				continue;
			best = run;
			eval[0] = r->start;
			eval[1] = r->end;
		}
	free(list.p);
	return best >= LABELS_MIN;
}

/* The code of a small function; its bytes behind the end are 0. */
static size_t read_code(const struct elffile *f, uint64_t addr, uint64_t n, uint8_t code[CODE_MAX + 16])
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t len = 0;

	memset(code, 0, CODE_MAX + 16);
	if (elffile_read_vaddr(f, addr, n < CODE_MAX ? n : CODE_MAX, &bytes, &len, NULL) != 0)
		return 0;
	memcpy(code, bytes, len);
	return len;
}

static int32_t number(const uint8_t *p)
{
	return (int32_t)elfcode_le32(p);
}

/* "cmpq $0,N(%rax)" at or behind P. */
static bool compared(const uint8_t *p, const uint8_t *end, int32_t *ret)
{
	for (; p < end; p++) {
		if (p[0] != 0x48 || p[1] != 0x83)
			continue;
		if (p[2] == 0xb8 && !p[7])
			*ret = number(p + 3);
		else if (p[2] == 0x78 && !p[4])
			*ret = (int8_t)p[3];
		else if (p[2] == 0x38 && !p[3])
			*ret = 0;
		else
			continue;
		return true;
	}
	return false;
}

/*
 * ruby_native_thread_p() asks whether the thread's structure is there. One of
 *	mov key(%rip),%edi; call pthread_getspecific
 *	lea block(%rip),%rdi; call __tls_get_addr; cmpq $0,offset(%rax)
 *	cmpq $0,%fs:offset
 *	mov %fs:0,%rax; cmpq $0,offset(%rax)
 */
static bool find_thread(
	const struct elffile *f, const struct ruby_exports *x, struct unwindtab_interpreter *ret)
{
	static const uint8_t pointer[] = { 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0 };
	uint8_t code[CODE_MAX + 16];
	const size_t n = read_code(f, x->thread, x->thread_bytes, code);
	const uint8_t *end = code + n;

	for (const uint8_t *p = code; p < end; p++) {
		uint64_t next = x->thread + (uint64_t)(p - code);

		if (p[0] == 0x8b && p[1] == 0x3d && p[6] == 0xe8) {
			ret->thread_way = RUBY_THREAD_KEY;
			ret->state = next + 6 + (uint64_t)(int64_t)number(p + 2);
			return true;
		}
		if (p[0] == 0x48 && p[1] == 0x8d && p[2] == 0x3d && compared(p + 7, end, &ret->thread_at)) {
			ret->thread_way = RUBY_THREAD_MODULE;
			ret->state = next + 7 + (uint64_t)(int64_t)number(p + 3);
			return true;
		}
		if (p[0] == 0x64 && p[1] == 0x48 && p[2] == 0x83 && p[3] == 0x3c && p[4] == 0x25 && !p[9]) {
			ret->thread_way = RUBY_THREAD_FIXED;
			ret->thread_at = number(p + 5);
			ret->state = x->thread;
			return true;
		}
		if (memcmp(p, pointer, sizeof(pointer)) == 0 &&
			compared(p + sizeof(pointer), end, &ret->thread_at)) {
			ret->thread_way = RUBY_THREAD_FIXED;
			ret->state = x->thread;
			return true;
		}
	}
	return false;
}

/* The only variable whose value rb_sym_all_symbols() loads twice: "mov variable(%rip),register". */
static uint64_t find_symbols(const struct elffile *f, const struct ruby_exports *x)
{
	uint8_t code[CODE_MAX + 16];
	const size_t n = read_code(f, x->symbols, x->symbols_bytes, code);
	uint64_t loaded[8];
	size_t n_loaded = 0;

	for (const uint8_t *p = code; p < code + n; p++) {
		uint64_t at = x->symbols + (uint64_t)(p - code) + 7 + (uint64_t)(int64_t)number(p + 3);

		if ((p[0] & 0xfb) != 0x48 || p[1] != 0x8b || (p[2] & 0xc7) != 0x05)
			continue;
		for (size_t i = 0; i < n_loaded; i++)
			if (loaded[i] == at)
				return at;
		if (n_loaded < ARRAY_LEN(loaded))
			loaded[n_loaded++] = at;
	}
	return 0;
}

static uint32_t read_version(const struct elffile *f, uint64_t addr)
{
	_cleanup_free_ uint8_t *text = NULL;
	unsigned int major, minor, micro;
	size_t len = 0;

	if (elffile_read_vaddr(f, addr, 16, &text, &len, NULL) != 0 || !memchr(text, 0, len) ||
		sscanf((char *)text, "%3u.%3u.%3u", &major, &minor, &micro) != 3 || major > 127 ||
		minor > 255 || micro > 255)
		return 0;
	return major << 24 | minor << 16 | micro << 8;
}

void ruby_read(const struct elffile *f, const struct ruby_exports *x, struct unwindtab_interpreter *ret)
{
	uint64_t eval[2] = { 0, 0 };

	ret->kind = RUNTIME_RUBY;
	if (!find_labels(f, eval) || !find_thread(f, x, ret))
		return;
	ret->eval[0] = eval[0];
	ret->eval[1] = eval[1];
	ret->names = find_symbols(f, x);
	ret->version = read_version(f, x->version);
}
