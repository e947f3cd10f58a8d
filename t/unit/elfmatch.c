/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of elfmatch_*() of elf/symbols.h: the results are those of the index,
 * elfsym_*(), for random tables and for those of real files. With --time it
 * compares the CPU time of both, for N random addresses of a file's code:
 *
 *   elfmatch --time ELF N
 */
#include "base/tap.h"
#include "elf/symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#define TEXT 0x1000
#define TEXT_SIZE 0x200
#define SYMS 200 /* in a table; one pass matches at most a quarter as many addresses */

/* A file in memory: two adjacent executable sections, .symtab and .dynsym. */
struct image {
	Elf64_Ehdr eh;
	Elf64_Shdr sh[6];
	Elf64_Sym syms[2][SYMS];
	char strings[65536];
};

static struct image img;
static uint64_t seed = 1;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

static void start_image(void)
{
	memset(&img, 0, sizeof(img));
	memcpy(img.eh.e_ident, "\177ELF\2\1\1", 7);
	img.eh.e_type = ET_DYN;
	img.eh.e_shoff = offsetof(struct image, sh);
	img.eh.e_shentsize = sizeof(Elf64_Shdr);
	img.eh.e_shnum = ARRAY_LEN(img.sh);
	for (size_t i = 0; i < 2; i++)
		img.sh[1 + i] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS,
			.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			.sh_addr = TEXT + i * TEXT_SIZE,
			.sh_size = TEXT_SIZE };
	img.sh[3] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
		.sh_offset = offsetof(struct image, strings),
		.sh_size = sizeof(img.strings) };
}

static void set_table(size_t k, size_t n)
{
	img.sh[4 + k] = (Elf64_Shdr){ .sh_type = k == 0 ? SHT_SYMTAB : SHT_DYNSYM,
		.sh_link = 3,
		.sh_offset = offsetof(struct image, syms) + k * sizeof(img.syms[0]),
		.sh_size = n * sizeof(Elf64_Sym),
		.sh_entsize = sizeof(Elf64_Sym) };
}

/* Names are "s1", "_s2", "__s3" ..., with HOLES about 3% of them empty. */
static void random_table(size_t k, size_t n, uint64_t size_max, bool holes)
{
	static const unsigned char types[] = { STT_FUNC, STT_FUNC, STT_NOTYPE, STT_GNU_IFUNC, STT_OBJECT };

	for (size_t i = 1; i < n; i++) {
		uint64_t size = next_random() % 4 ? next_random() % size_max : 0;

		snprintf(img.strings + 8 * i, 8, "%ss%zu", "__" + i % 3, i);
		if (holes && next_random() % 100 < 3)
			img.strings[8 * i] = 0;
		img.syms[k][i] = (Elf64_Sym){ .st_name = (Elf64_Word)(8 * i),
			.st_info = (unsigned char)((next_random() % 3) << 4 |
						   types[next_random() % ARRAY_LEN(types)]),
			.st_shndx = next_random() % 20 ? 1 : SHN_UNDEF,
			.st_value = TEXT - 8 + next_random() % (2 * TEXT_SIZE + 16),
			.st_size = size };
	}
	set_table(k, n);
}

static bool same(const struct elfsym *s, uint64_t vaddr, const struct elfmatch_hit *h)
{
	struct elfsym_hit want;

	if (!elfsym_find(s, vaddr, &want))
		return !h->name;
	return h->name && h->index == want.index && h->start == want.start && h->sized == want.sized &&
	       h->dynamic == want.dynamic && strcmp(h->name, want.name) == 0;
}

/* The number of differences from the index for VADDRS; N + 1 if either one fails. */
static size_t differences(const struct elffile *f, const uint64_t *vaddrs, size_t n)
{
	struct elfmatch *m = NULL;
	struct elfsym *s = NULL;
	size_t wrong = 0;

	if (elfsym_load(f, &s, NULL) != 0 || elfmatch_run(f, vaddrs, n, &m, NULL) != 0)
		wrong = n + 1;
	for (size_t i = 0; i < n && !wrong; i++)
		wrong += !same(s, vaddrs[i], &elfmatch_hits(m)[i]);
	if (m && s)
		wrong += elfmatch_symbols(m) != elfsym_count(s) ||
			 (n && elfmatch_any(m) != (elfsym_ranges(s) > 0));
	elfmatch_free(m);
	elfsym_free(s);
	return wrong;
}

static size_t image_differences(const uint64_t *vaddrs, size_t n)
{
	struct elffile *f = NULL;
	size_t wrong = 1;

	if (elffile_image(&img, sizeof(img), &f, NULL) == 0)
		wrong = differences(f, vaddrs, n);
	elffile_close(f);
	return wrong;
}

static void test_random(
	struct tap *t, const char *name, bool symtab, bool dynsym, uint64_t size_max, bool holes)
{
	uint64_t all[2 * TEXT_SIZE + 32], some[SYMS / 2];
	size_t wrong = 0;

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		all[i] = TEXT - 16 + i;
	for (int round = 0; round < 2000; round++) {
		size_t n = 2 + next_random() % (SYMS - 2), n_some = 0;

		start_image();
		if (symtab)
			random_table(0, n, size_max, holes);
		if (dynsym)
			random_table(1, n, size_max, holes);
		n = (symtab && dynsym ? 2 * n : n) / 4;
		for (size_t i = next_random() % 900; i < ARRAY_LEN(all) && n_some < n;
			i += 1 + next_random() % 8)
			some[n_some++] = all[i];
		wrong += image_differences(some, n_some) != 0;
		if (round % 10 == 0)
			wrong += image_differences(all, ARRAY_LEN(all)) != 0;
	}
	tap_eq_u64(t, wrong, 0, name);
}

/* Tables that are made to be slow or malformed. */
static void test_hostile(struct tap *t)
{
	uint64_t all[2 * TEXT_SIZE];
	struct elffile *f = NULL;
	struct elfmatch *m = NULL;
	struct err e = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		all[i] = TEXT + i;
	start_image();
	for (size_t i = 1; i < SYMS; i++)
		img.syms[0][i] = (Elf64_Sym){ .st_name = (Elf64_Word)i,
			.st_info = STT_FUNC,
			.st_shndx = 1,
			.st_value = TEXT + i % 2,
			.st_size = TEXT_SIZE - i };
	memset(img.strings, 'n', sizeof(img.strings) - 1);
	set_table(0, SYMS);
	tap_eq_u64(t, image_differences(all, SYMS / 4), 0,
		"symbols that all overlap give the results of the index");
	memset(img.strings, 'n', sizeof(img.strings));
	tap_eq_u64(t, image_differences(all + 30, 1), 0,
		"names without a terminating NUL give the results of the index");
	for (size_t i = 1; i < SYMS; i++)
		img.syms[0][i].st_value = TEXT + i, img.syms[0][i].st_size = 1;
	tap_eq_u64(t, image_differences(all, SYMS / 4), 0,
		"many names without a terminating NUL give the results of the index");
	start_image();
	set_table(0, 10);
	img.sh[4].sh_offset = UINT64_MAX - 8;
	tap_ok(t,
		elffile_image(&img, sizeof(img), &f, NULL) == 0 &&
			elfmatch_run(f, all, 1, &m, &e) == -EINVAL && !m && strstr(e.msg, ".symtab"),
		"a symbol table outside the file is an error that names it");
	elffile_close(f);
	f = NULL;
	start_image();
	set_table(0, 10);
	img.sh[3].sh_size = UINT64_MAX - 8;
	tap_ok(t,
		elffile_image(&img, sizeof(img), &f, NULL) == 0 &&
			elfmatch_run(f, all, 1, &m, &e) == -EINVAL && !m,
		"a string table outside the file is an error");
	elffile_close(f);
	f = NULL;
	start_image();
	random_table(0, 40, 16, false);
	img.sh[3].sh_flags = SHF_COMPRESSED;
	tap_ok(t,
		elffile_image(&img, sizeof(img), &f, NULL) == 0 &&
			elfmatch_run(f, all, 1, &m, &e) == -EINVAL && !m && strstr(e.msg, "compressed"),
		"a compressed string table is an error");
	elffile_close(f);
	start_image();
	tap_eq_u64(t, image_differences(all, 5), 0,
		"a file without symbol tables gives the results of the index");
	start_image();
	set_table(0, 10);
	tap_eq_u64(t, image_differences(all, 0), 0, "an empty list of addresses is valid");
}

/* Both give the same results, or both refuse the file. */
static bool damaged_agrees(size_t len, const uint64_t *vaddrs, size_t n)
{
	struct elffile *f = NULL;
	struct elfmatch *m = NULL;
	struct elfsym *s = NULL;
	bool fine = true;

	if (elffile_image(&img, len, &f, NULL) != 0)
		return true;
	if (elfmatch_run(f, vaddrs, n, &m, NULL) != 0)
		fine = elfsym_load(f, &s, NULL) != 0;
	else
		fine = differences(f, vaddrs, n) == 0;
	elfmatch_free(m);
	elfsym_free(s);
	elffile_close(f);
	return fine;
}

static void test_damaged(struct tap *t)
{
	const size_t head = offsetof(struct image, syms) + 10 * sizeof(Elf64_Sym);
	uint64_t all[2 * TEXT_SIZE];
	size_t wrong = 0;

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		all[i] = TEXT + i;
	start_image();
	random_table(0, 40, 30, false);
	for (size_t len = 0; len < sizeof(img); len += len < head ? 1 : 97)
		wrong += !damaged_agrees(len, all + 5, 8);
	tap_eq_u64(t, wrong, 0, "a file cut anywhere gives the results of the index, or both refuse it");
	for (size_t bit = 0; bit < 8 * head; bit++) {
		((uint8_t *)&img)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		wrong += !damaged_agrees(sizeof(img), all + 5, 8);
		((uint8_t *)&img)[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	tap_eq_u64(
		t, wrong, 0, "a file with any bit changed gives the results of the index, or both refuse it");
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return CMP(*x, *y);
}

/* N random addresses in executable sections, ascending. */
static uint64_t *random_addresses(const struct elffile *f, size_t n)
{
	uint64_t *p = calloc(n + 1, sizeof(*p)), code = 0;

	for (size_t i = 0; i < f->n_sections; i++)
		code += f->sections[i].flags & SHF_EXECINSTR ? f->sections[i].size : 0;
	for (size_t i = 0; p && code && i < n; i++) {
		uint64_t at = next_random() % code;

		for (size_t k = 0; k < f->n_sections && !p[i]; k++) {
			const struct elffile_section *s = &f->sections[k];

			if (!(s->flags & SHF_EXECINSTR))
				continue;
			if (at < s->size)
				p[i] = s->addr + at;
			else
				at -= s->size;
		}
	}
	if (p)
		qsort(p, n, sizeof(*p), by_value);
	return p;
}

static void test_file(struct tap *t, const char *path)
{
	static const size_t sizes[] = { 1, 7, 300, 20000 };
	struct elffile *f = NULL;
	size_t wrong = 0;

	if (elffile_open(AT_FDCWD, path, false, &f, NULL) != 0) {
		tap_skip(t, path, "no such file");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		uint64_t *p = random_addresses(f, sizes[i]);

		wrong += p ? differences(f, p, sizes[i]) : 1;
		free(p);
	}
	tap_ok(t, wrong == 0, "one, some and many addresses of %s give the results of the index", path);
	elffile_close(f);
}

static double cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static int time_both(const char *path, size_t n)
{
	double best[2] = { 1e9, 1e9 };
	struct elffile *f = NULL;
	uint64_t *p;

	if (elffile_open(AT_FDCWD, path, false, &f, NULL) != 0 || !(p = random_addresses(f, n)))
		return 2;
	for (int round = 0; round < 7; round++) {
		struct elfmatch *m = NULL;
		struct elfsym *s = NULL;
		struct elfsym_hit hit;
		double from = cpu_ms();

		if (elfmatch_run(f, p, n, &m, NULL) != 0)
			return 2;
		elfmatch_free(m);
		best[0] = MIN(best[0], cpu_ms() - from);
		from = cpu_ms();
		if (elfsym_load(f, &s, NULL) != 0)
			return 2;
		for (size_t i = 0; i < n; i++)
			elfsym_find(s, p[i], &hit);
		elfsym_free(s);
		best[1] = MIN(best[1], cpu_ms() - from);
	}
	printf("%s, %zu addresses: %.3f ms in one pass, %.3f ms by the index\n", path, n, best[0], best[1]);
	free(p);
	elffile_close(f);
	return 0;
}

int main(int argc, char **argv)
{
	struct tap t = { 0 };

	if (argc == 4 && strcmp(argv[1], "--time") == 0)
		return time_both(argv[2], strtoull(argv[3], NULL, 10));
	test_random(&t, "small functions give the results of the index", true, false, 16, false);
	test_random(&t, "overlapping functions give the results of the index", true, false, 300, false);
	test_random(
		&t, "functions of .symtab and .dynsym give the results of the index", true, true, 40, false);
	test_random(&t, "functions of a stripped file give the results of the index", false, true, 20, false);
	test_random(&t, "overlapping functions of a stripped file give the results of the index", false, true,
		200, false);
	test_random(&t, "tables with empty names give the results of the index", true, true, 40, true);
	test_hostile(&t);
	test_damaged(&t);
	test_file(&t, "/proc/self/exe");
	test_file(&t, "/usr/lib/x86_64-linux-gnu/libc.so.6");
	test_file(&t, "/bin/bash");
	return tap_done(&t);
}
