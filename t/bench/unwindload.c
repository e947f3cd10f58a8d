/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwindload ROWS [FILE...] - fills the memory of unwind tables with ROWS rows.
 * Adds the tables of the ELF files in order until there are enough rows, or,
 * without files, hand-made tables as dense as those of real files: one row for
 * each 58 bytes of text, 300 rules a table, 1 to 500 segments a table.
 *
 * Prints: rows, tables, bytes that the kernel holds, bytes used of the chunks, ms
 * to open, ms to add all tables with a commit after each, and ms for the slowest
 * table.
 */
#include "../lib/unwind-made.h"
#include "unwind/compile.h"

#include <fcntl.h>
#include <time.h>

#define ROWS_OF_SEG (65536 / 58)

struct load {
	struct unwindspace *s;
	double open_ms, add_ms, worst_ms;
	struct err e;
};

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static uint64_t rows(const struct load *l)
{
	struct unwindspace_stats st;

	unwindspace_stats(l->s, &st);
	return st.rows;
}

static int put(struct load *l, const struct unwindtab *tab)
{
	double t0 = now_ms();
	uint32_t table, seg;
	int rc = unwindspace_add(l->s, tab, &table, &seg, &l->e);

	if (rc == 0)
		rc = unwindspace_commit(l->s, &l->e);
	t0 = now_ms() - t0;
	l->add_ms += t0;
	l->worst_ms = MAX(l->worst_ms, t0);
	return rc;
}

/* A file without a table is skipped. */
static int put_file(struct load *l, const char *path)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct elffile *f = NULL;
	struct unwindtab tab;
	size_t len;
	int rc = elffile_open(AT_FDCWD, path, false, &f, NULL);

	if (rc == 0)
		rc = unwindcomp(f, &bytes, &len, NULL);
	elffile_close(f);
	if (rc || unwindtab_view(bytes, len, &tab, NULL) != 0 || tab.head->n_segs == 0)
		return 0;
	return put(l, &tab);
}

/* Add a table of 1 to 500 segments, mostly small, but with no more segments than LEFT rows need. */
static int put_made(struct load *l, uint64_t left)
{
	uint32_t n_segs = 1 + pick(1 + pick(500));
	struct made *m =
		make((uint32_t)MIN(n_segs, left / ROWS_OF_SEG + 1), ROWS_OF_SEG, false, 300, pick(100));
	const struct unwindtab tab = {
		.head = &m->head, .segs = m->segs, .rules = m->rules, .bytes = m->bytes
	};
	int rc = put(l, &tab);

	unmake(m);
	return rc;
}

static int fill(struct load *l, uint64_t want, char **files, int n_files)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < n_files && rows(l) < want; i++)
		rc = put_file(l, files[i]);
	while (rc == 0 && n_files == 0 && rows(l) < want)
		rc = put_made(l, want - rows(l));
	return rc;
}

int main(int argc, char **argv)
{
	const struct unwindspace_opts opts = { .bytes = 1 << 30, .procs = 4096, .first_chunks = 16 };
	struct load l = { .open_ms = now_ms() };
	struct unwindspace_stats st;
	uint64_t want = argc >= 2 ? strtoull(argv[1], NULL, 10) : 0;
	int rc;

	if (!want)
		return 64;
	rc = unwindspace_open(&opts, &l.s, &l.e);
	l.open_ms = now_ms() - l.open_ms;
	/* a thread makes the first chunks in the meantime, as while a recorder loads its BPF programs */
	usleep(20000);
	if (rc == 0)
		rc = fill(&l, want, argv + 2, argc - 2);
	if (rc) {
		fprintf(stderr, "unwindload: %s\n", l.e.msg);
		return 2;
	}
	unwindspace_stats(l.s, &st);
	printf("%llu %llu %llu %llu %.2f %.2f %.2f\n", (unsigned long long)st.rows,
		(unsigned long long)st.tables, (unsigned long long)st.bytes,
		(unsigned long long)st.bytes_used, l.open_ms, l.add_ms, l.worst_ms);
	unwindspace_close(l.s);
	return 0;
}
