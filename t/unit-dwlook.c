/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of dwlook.h. With --look it is a symbolizer of debug information alone:
 *
 *   unit-dwlook --look [-a ALT] [-w DWP] [-s] [-n] ELF [DWO...]
 *
 * reads virtual addresses in hex from standard input and writes for each one
 * what llvm-symbolizer --inlines --no-demangle does, in ascending order: each frame's
 * linkage name or name, then path:line:column; an empty line. -s tells the statistics
 * on standard error, -n writes nothing.
 */
#include "dwlook.h"
#include "now.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

struct told {
	char **text; /* of each address */
	bool quiet;
	uint64_t hits, frames;
};

static void tell(void *ctx, const struct dwlook_hit *hit)
{
	struct told *told = ctx;
	char *text = NULL;
	size_t len;
	FILE *f;

	told->hits++;
	told->frames += hit->n;
	if (told->quiet)
		return;
	f = open_memstream(&text, &len);
	for (size_t i = 0; i < hit->n; i++) {
		const struct dwlook_frame *at = &hit->frames[i];
		const char *name = at->linkage ? at->linkage : at->name;

		fprintf(f, "%s\n%s:%u:%u\n", name ? name : "??", at->file ? at->file : "??", at->line,
			at->column);
	}
	if (hit->error)
		fprintf(f, "error %s\n", err_name(hit->error));
	if (told->text[hit->index])
		fprintf(f, "twice\n");
	fclose(f);
	free(told->text[hit->index]);
	told->text[hit->index] = text;
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

static int look_at(const struct dwlook_opts *o, bool stats, bool quiet)
{
	_cleanup_free_ uint64_t *v = NULL;
	size_t n = read_addresses(&v);
	struct told told = { .text = calloc(n + 1, sizeof(char *)), .quiet = quiet };
	struct dwlook_stats s = { 0 };
	struct dwlook *d = NULL;
	struct err e = { 0 };
	uint64_t from = now_on(CLOCK_PROCESS_CPUTIME_ID);
	int rc = dwlook_open(o, &d, &e);

	if (!rc) {
		rc = dwlook_run(d, v, n, tell, miss, &told, &e);
		dwlook_stats(d, &s);
		dwlook_close(d);
	}
	if (e.code)
		fprintf(stderr, "%s\n", e.msg);
	if (stats)
		fprintf(stderr,
			"%zu addresses, %" PRIu64 " hits, %" PRIu64 " frames; units %" PRIu64 " of %" PRIu64
			", entries %" PRIu64 "; cpu %" PRIu64 " us, units %" PRIu64 " us, lines %" PRIu64
			" us; %" PRIu64 " KB\n",
			n, told.hits, told.frames, s.units_read, s.units, s.entries,
			(now_on(CLOCK_PROCESS_CPUTIME_ID) - from) / 1000, s.ns_units / 1000, s.ns_lines / 1000,
			s.peak_bytes / 1024);
	for (size_t i = 0; i < n; i++) {
		if (!quiet)
			printf("%s\n", told.text[i] ? told.text[i] : "??\n??:0:0\n");
		free(told.text[i]);
	}
	free(told.text);
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
	struct dwlook_opts o = { .inlines = true, .lines = true, .max_bytes = UINT64_C(1) << 30 };
	struct dwlook_dwo dwos[64];
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
	/* ID=PATH */
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

int main(int argc, char **argv)
{
	struct tap t = { 0 };

	if (argc > 2 && strcmp(argv[1], "--look") == 0)
		return look_main(argc - 1, argv + 1);
	return tap_done(&t);
}
