/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of elf/dwarf.h. With --lookup it is a symbolizer that uses only debug information:
 *
 *   dwarf_lookup --lookup [-a ALT] [-w DWP] [-s] [-n] ELF [DWO...]
 *
 * reads virtual addresses in hex from standard input, sorts them, and prints for each
 * one what llvm-symbolizer --inlines --no-demangle does: for each frame its linkage
 * name or its name, then path:line:column; after the last frame an empty line. -s
 * prints statistics on standard error, -n does not print frames. A DWO is ID=PATH.
 *
 *   dwarf_lookup --hostile truncate|flip ELF
 *
 * looks up addresses with each debug section truncated, or with bytes changed.
 */
#include "base/clock.h"
#include "elf/dwarf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

struct reported {
	char **text; /* of each address */
	bool quiet;
	uint64_t hits, frames;
};

static void print_hit(void *ctx, const struct dwarf_lookup_hit *hit)
{
	struct reported *reported = ctx;
	char *text = NULL;
	size_t len;
	FILE *f;

	reported->hits++;
	reported->frames += hit->n;
	if (reported->quiet)
		return;
	f = open_memstream(&text, &len);
	for (size_t i = 0; i < hit->n; i++) {
		const struct dwarf_lookup_frame *at = &hit->frames[i];
		const char *name = at->linkage ? at->linkage : at->name;

		fprintf(f, "%s\n%s:%u:%u\n", name ? name : "??", at->file ? at->file : "??", at->line,
			at->column);
	}
	if (hit->error)
		fprintf(f, "error %s\n", err_name(hit->error));
	if (reported->text[hit->index])
		fprintf(f, "twice\n");
	fclose(f);
	free(reported->text[hit->index]);
	reported->text[hit->index] = text;
}

static void miss(void *ctx, uint64_t id, const char *path)
{
	(void)ctx;
	fprintf(stderr, "want %016" PRIx64 " %s\n", id, path);
}

static int by_value(const void *a, const void *b)
{
	return CMP(*(const uint64_t *)a, *(const uint64_t *)b);
}

static size_t read_addresses(uint64_t **ret)
{
	uint64_t *v = NULL;
	size_t n = 0, cap = 0, distinct = 0;
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		if (base_grow(&v, &cap, n + 1, sizeof(*v)) != 0)
			break;
		v[n++] = strtoull(line, NULL, 16);
	}
	if (n)
		qsort(v, n, sizeof(*v), by_value);
	for (size_t i = 0; i < n; i++)
		if (!i || v[i] != v[i - 1])
			v[distinct++] = v[i];
	*ret = v;
	return distinct;
}

static int look_at(const struct dwarf_lookup_opts *o, bool stats, bool quiet)
{
	_cleanup_free_ uint64_t *v = NULL;
	size_t n = read_addresses(&v);
	struct reported reported = { .text = calloc(n + 1, sizeof(char *)), .quiet = quiet };
	struct dwarf_lookup_stats s = { 0 };
	struct dwarf_lookup *d = NULL;
	struct err e = { 0 };
	uint64_t from = now_on(CLOCK_PROCESS_CPUTIME_ID);
	int rc = dwarf_lookup_open(o, &d, &e);

	if (!rc) {
		rc = dwarf_lookup_run(d, v, n, print_hit, miss, &reported, &e);
		dwarf_lookup_stats(d, &s);
		dwarf_lookup_close(d);
	}
	if (e.code)
		fprintf(stderr, "%s\n", e.msg);
	if (stats)
		fprintf(stderr,
			"%zu addresses, %" PRIu64 " hits, %" PRIu64 " frames; units %" PRIu64 " of %" PRIu64
			", entries %" PRIu64 "; cpu %" PRIu64 " us, units %" PRIu64 " us, lines %" PRIu64
			" us; %" PRIu64 " KB\n",
			n, reported.hits, reported.frames, s.units_read, s.units, s.entries,
			(now_on(CLOCK_PROCESS_CPUTIME_ID) - from) / 1000, s.ns_units / 1000,
			s.ns_lines / 1000, s.peak_bytes / 1024);
	for (size_t i = 0; i < n; i++) {
		if (!quiet)
			printf("%s\n", reported.text[i] ? reported.text[i] : "??\n??:0:0\n");
		free(reported.text[i]);
	}
	free(reported.text);
	return rc ? 1 : 0;
}

static struct elffile *open_elf(const char *path)
{
	struct elffile *f = NULL;
	struct err e = { 0 };

	if (path && elffile_open(AT_FDCWD, path, false, &f, &e) != 0) {
		fprintf(stderr, "%s\n", e.msg);
		exit(2);
	}
	return f;
}

static int look_main(int argc, char **argv)
{
	struct dwarf_lookup_opts o = { .inlines = true, .lines = true, .max_bytes = UINT64_C(1) << 30 };
	struct dwarf_lookup_dwo dwos[64];
	struct elffile *opened[66];
	size_t n_opened = 0;
	bool stats = false, quiet = false;
	int opt, rc;

	while ((opt = getopt(argc, argv, "a:w:sn")) != -1) {
		stats |= opt == 's';
		quiet |= opt == 'n';
		if (opt == 'a')
			o.alt = opened[n_opened++] = open_elf(optarg);
		if (opt == 'w')
			o.dwp = opened[n_opened++] = open_elf(optarg);
	}
	o.elf = opened[n_opened++] = open_elf(argv[optind++]);
	for (; optind < argc && o.n_dwos < ARRAY_LEN(dwos) && n_opened < ARRAY_LEN(opened); optind++) {
		char *path;

		dwos[o.n_dwos].id = strtoull(argv[optind], &path, 16);
		dwos[o.n_dwos++].file = opened[n_opened++] = open_elf(path + 1);
	}
	o.dwos = dwos;
	rc = look_at(&o, stats, quiet);
	while (n_opened)
		elffile_close(opened[--n_opened]);
	return rc;
}

/* --- hostile input --- */

static void count(void *ctx, const struct dwarf_lookup_hit *hit)
{
	struct reported *reported = ctx;

	reported->hits++;
	for (size_t i = 0; i < hit->n; i++)
		reported->frames += 1 + (hit->frames[i].file ? strlen(hit->frames[i].file) : 0);
}

/* Look up 256 addresses from 0x1000, 16 bytes apart. Returns the number of hits. */
static uint64_t run_image(const struct elffile *f)
{
	const struct dwarf_lookup_opts o = { .elf = f, .inlines = true, .lines = true, .max_bytes = 1 << 26 };
	struct reported reported = { 0 };
	struct dwarf_lookup *d = NULL;
	uint64_t at[256];

	for (size_t i = 0; i < ARRAY_LEN(at); i++)
		at[i] = 0x1000 + i * 16;
	if (dwarf_lookup_open(&o, &d, NULL) == 0)
		dwarf_lookup_run(d, at, ARRAY_LEN(at), count, NULL, &reported, NULL);
	dwarf_lookup_close(d);
	return reported.hits;
}

static bool is_debug(const struct elffile *f, const uint8_t *image, const struct elffile_section *s)
{
	return s->type != SHT_NOBITS &&
	       strncmp((const char *)image + f->sections[f->names].offset + s->name, ".debug_", 7) == 0;
}

/* Look up with section I truncated: at every byte if it is small, else at every seventh. */
static void truncate_section(struct elffile *f, size_t i)
{
	uint64_t size = f->sections[i].size;

	for (uint64_t n = 0; n<size; n += size> 4096 ? 7 : 1) {
		f->sections[i].size = n;
		run_image(f);
	}
	f->sections[i].size = size;
}

static void flip_section(struct elffile *f, uint8_t *image, size_t i, unsigned int times)
{
	uint8_t *at = image + f->sections[i].offset;
	unsigned int seed = 1;

	for (unsigned int k = 0; k < times && f->sections[i].size; k++) {
		uint8_t *b = &at[(size_t)rand_r(&seed) % f->sections[i].size], was = *b;

		*b = (uint8_t)(k % 2 ? was ^ (1 << (rand_r(&seed) % 8)) : rand_r(&seed));
		run_image(f);
		*b = was;
	}
}

/*
 * Returns 0 if the image without damage gives the same hits as before. The caller
 * of the program detects a crash, a hang and a sanitizer's report.
 */
static int hostile_main(const char *how, const char *path)
{
	_cleanup_free_ uint8_t *image = NULL;
	struct elffile *f = NULL;
	FILE *file = fopen(path, "r");
	size_t len;
	uint64_t whole;

	if (!file)
		return 2;
	image = malloc(1 << 22);
	len = fread(image, 1, 1 << 22, file);
	fclose(file);
	if (elffile_image(image, len, &f, NULL) != 0 || f->names >= f->n_sections)
		return 2;
	whole = run_image(f);
	for (size_t i = 0; i < f->n_sections; i++) {
		if (!is_debug(f, image, &f->sections[i]))
			continue;
		if (strcmp(how, "truncate") == 0)
			truncate_section(f, i);
		else
			flip_section(f, image, i, 3000);
	}
	printf("%" PRIu64 " hits\n", whole);
	len = run_image(f) == whole && whole > 4;
	elffile_close(f);
	return len ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "--lookup") == 0)
		return look_main(argc - 1, argv + 1);
	if (argc == 4 && strcmp(argv[1], "--hostile") == 0)
		return hostile_main(argv[2], argv[3]);
	fprintf(stderr, "dwarf_lookup: t/unit/dwarf_lookup.t runs it\n");
	return 64;
}
