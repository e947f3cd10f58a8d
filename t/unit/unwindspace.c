/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Puts hand-made tables into the maps, reads them back through the kernel, as
 * BPF would see them, and compares them row by row.
 */
#include "base/tap.h"
#include "../lib/unwind-made.h"
#include "unwind/compile.h"

#include <errno.h>
#include <fcntl.h>

#define CHUNKS(n) ((uint64_t)(n)*UNWIND_CHUNK_BYTES)

static struct unwindspace *space(uint64_t bytes, uint32_t segs)
{
	const struct unwindspace_opts opts = { .bytes = bytes, .segs = segs, .procs = 64 };
	struct unwindspace *s = NULL;

	return unwindspace_open(&opts, &s, NULL) == 0 ? s : NULL;
}

DEFINE_CLEANUP(struct unwindspace *, unwindspace_close);
#define _cleanup_space_ CLEANUP(unwindspace_close_p)

static struct unwindspace_stats stats(const struct unwindspace *s)
{
	struct unwindspace_stats st;

	unwindspace_stats(s, &st);
	return st;
}

static void test_table(struct tap *t)
{
	_cleanup_space_ struct unwindspace *s = space(CHUNKS(64), 0);
	_cleanup_made_ struct made *a = make(20, 1100, true, 300, 0), *b = make(3, 5, false, 280, 50);
	struct err e;

	tap_eq_u64(t, (uint64_t)-add(s, a, &e), 0, "a table is added");
	tap_ok(t, a->number > 0 && a->number < UNWIND_TABLES_MAX, "a table has a valid number other than 0");
	tap_ok(t, unwindspace_used_ns(s, a->number) > 0, "adding a table counts as a use");
	tap_eq_u64(t, (uint64_t)-add(s, b, &e), 0, "a second table is added");
	tap_ok(t, b->number != a->number && (b->seg >= a->seg + 20 || b->seg + 3 <= a->seg),
		"the two tables have distinct numbers and segments");
	tap_eq_u64(t, (uint64_t)-unwindspace_commit(s, &e), 0, "added tables are committed");
	tap_ok(t, seen_once(s, a) && seen_once(s, b), "BPF sees every row of both with its rule");
	tap_eq_u64(t, stats(s).rules, 329, "rules that both tables have are stored once");
	tap_eq_u64(t, stats(s).rows, a->head.n_rows + b->head.n_rows, "rows are counted");
	tap_eq_u64(t, stats(s).tables, 2, "tables are counted");
}

/* The table of this program, made by the compiler. */
static struct made *own_table(void)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct elffile *f = NULL;
	struct unwindtab tab;
	struct made *m = NULL;
	size_t len;

	if (elffile_open(AT_FDCWD, "/proc/self/exe", false, &f, NULL) == 0 &&
		unwindcomp(f, &bytes, &len, NULL) == 0 && unwindtab_view(bytes, len, &tab, NULL) == 0) {
		m = calloc(1, sizeof(*m));
		m->head = *tab.head;
		m->segs = calloc(tab.head->n_segs, sizeof(*m->segs));
		m->rules = calloc(tab.head->n_rules, sizeof(*m->rules));
		memcpy(m->segs, tab.segs, tab.head->n_segs * sizeof(*m->segs));
		memcpy(m->rules, tab.rules, tab.head->n_rules * sizeof(*m->rules));
		m->bytes = TAKE_PTR(bytes);
	}
	elffile_close(f);
	return m;
}

static void test_own(struct tap *t)
{
	_cleanup_space_ struct unwindspace *s = space(CHUNKS(64), 0);
	_cleanup_made_ struct made *other = make(30, 700, false, 900, 0), *own = own_table();

	tap_ok(t, own && own->head.n_rows > 100, "this program has unwind information");
	tap_ok(t,
		own && add(s, other, NULL) == 0 && add(s, own, NULL) == 0 &&
			unwindspace_commit(s, NULL) == 0 && seen_once(s, own),
		"BPF sees every row of this program's table");
}

static void test_quiet(struct tap *t)
{
	_cleanup_space_ struct unwindspace *s = space(CHUNKS(4), 64);
	_cleanup_made_ struct made *a = make(3, 60000, false, 200, 0), *b = make(3, 60000, false, 200, 1000);

	tap_ok(t, add(s, a, NULL) == 0 && unwindspace_commit(s, NULL) == 0,
		"a table that fills the space is added");
	unwindspace_remove(s, a->number);
	tap_eq_u64(t, stats(s).tables + stats(s).rows, 0, "a removed table is no longer counted");
	tap_ok(t, add(s, b, NULL) == -ENOSPC, "the memory of a removed table is not reused at once");
	unwindspace_quiet(s);
	tap_ok(t, add(s, b, NULL) == -ENOSPC,
		"the memory of a removed table is not reused after one quiet period");
	tap_ok(t, seen_once(s, a), "BPF sees all of a removed table until its memory is free");
	unwindspace_quiet(s);
	tap_ok(t, !seen_once(s, a), "after two quiet periods a removed table is gone");
	tap_ok(t, add(s, b, NULL) == 0 && unwindspace_commit(s, NULL) == 0 && seen_once(s, b),
		"another table can take the memory of a removed one");
	unwindspace_remove(s, UNWIND_TABLES_MAX + b->number);
	tap_eq_u64(t, stats(s).tables, 1, "removing a number beyond all tables changes nothing");
	unwindspace_remove(s, b->number);
	unwindspace_remove(s, b->number);
	unwindspace_remove(s, UNWIND_TABLES_MAX - 1);
	unwindspace_quiet(s);
	unwindspace_quiet(s);
	tap_eq_u64(t, stats(s).bytes_used + stats(s).rules, 0,
		"removing a table twice, or one that never existed, changes nothing");
}

static bool unchanged(const struct unwindspace_stats *a, const struct unwindspace_stats *b)
{
	return a->bytes_used == b->bytes_used && a->rows == b->rows && a->tables == b->tables &&
	       a->rules == b->rules;
}

/* Adding M fails with CODE and a message that contains WORD, and changes nothing. */
static void refused(
	struct tap *t, struct unwindspace *s, struct made *m, int code, const char *word, const char *name)
{
	struct unwindspace_stats before = stats(s), after;
	struct err e = { 0 };
	int rc = add(s, m, &e);

	after = stats(s);
	if (!tap_ok(t, rc == code && e.code == code && strstr(e.msg, word) && unchanged(&before, &after),
		    "%s", name))
		tap_diag("%d %s", rc, e.msg);
}

static void test_refusals(struct tap *t)
{
	_cleanup_space_ struct unwindspace *s = space(CHUNKS(3), 40);
	_cleanup_made_ struct made *one = make(1, 40000, false, 10, 0), *two = make(2, 40000, false, 10, 100),
				   *wide = make(3, 45000, false, 10, 0),
				   *large = make(40, 9000, false, 10, 0), *many = make(41, 1, false, 2, 0),
				   *none = make(1, 1, false, 2, 0), *spread = make(39, 1, false, 2, 0),
				   *wrong = make(1, 9, false, 2, 0);

	none->head.n_segs = 0;
	wrong->segs[0].rows = UNWIND_ROWS_MAX + 1;
	refused(t, s, none, -EINVAL, "no segments", "a table without segments is refused");
	refused(t, s, wrong, -EINVAL, "65536 rows", "a table with a segment of too many rows is refused");
	refused(t, s, many, -E2BIG, "41 segments",
		"a table with more segments than the space has is refused");
	refused(t, s, large, -E2BIG, "360000 rows",
		"a table with more rows than the memory holds is refused");
	refused(t, s, wide, -E2BIG, "135000 rows",
		"a table whose segments cannot be packed into chunks is refused");
	tap_ok(t, add(s, two, NULL) == 0 && add(s, one, NULL) == 0, "smaller tables are added");
	refused(t, s, two, -ENOSPC, "no room", "a table that would fit without the others has no room");
	refused(t, s, spread, -ENOSPC, "segments",
		"a table for whose segments no numbers are left is refused");
	unwindspace_commit(s, NULL);
	tap_ok(t, seen_once(s, one) && seen_once(s, two), "refused tables leave the others unchanged");
	tap_ok(t, add(s, wide, NULL) == -E2BIG, "the error may be NULL");
}

static void test_hostile_rules(struct tap *t)
{
	_cleanup_space_ struct unwindspace *s = space(CHUNKS(16), 64);
	struct made *m[5];
	bool all = true;

	for (uint32_t i = 0; i < 5; i++)
		m[i] = make(1, 20000, false, UNWINDTAB_RULES_MAX, i * 20000);
	for (int i = 0; i < 4; i++)
		all &= add(s, m[i], NULL) == 0;
	unwindspace_commit(s, NULL);
	tap_ok(t, all && stats(s).rules == 4 * 16383,
		"four tables of 16,383 rules each fill the set of rules");
	refused(t, s, m[4], -ENOSPC, "65535 distinct", "a fifth table of 16,383 rules has no room");
	for (int i = 0; i < 4; i++)
		all &= seen_once(s, m[i]);
	tap_ok(t, all, "BPF sees every row of the four tables with its rule");
	unwindspace_remove(s, m[1]->number);
	unwindspace_quiet(s);
	tap_ok(t, add(s, m[4], NULL) == -ENOSPC && seen_once(s, m[1]),
		"the rules of a removed table stay until two quiet periods have passed");
	unwindspace_quiet(s);
	tap_eq_u64(t, stats(s).rules, 3 * 16383, "rules of a removed table are free after two quiet periods");
	tap_ok(t, add(s, m[4], NULL) == 0 && seen_once(s, m[4]) && seen_once(s, m[0]) && seen_once(s, m[3]),
		"the fifth table takes the place of the removed one and the others stay unchanged");
	for (int i = 0; i < 5; i++)
		if (i != 1)
			unwindspace_remove(s, m[i]->number);
	unwindspace_quiet(s);
	unwindspace_quiet(s);
	tap_eq_u64(
		t, stats(s).rules + stats(s).bytes_used, 0, "without tables no memory and no rule is used");
	for (int i = 0; i < 5; i++)
		unmake(m[i]);
}

static void test_numbers(struct tap *t)
{
	_cleanup_space_ struct unwindspace *s = space(CHUNKS(64), 0);
	_cleanup_made_ struct made *m = make(1, 1, false, 2, 0);
	_cleanup_free_ uint8_t *taken = calloc(UNWIND_TABLES_MAX, 1);
	uint32_t n = 0;

	while (add(s, m, NULL) == 0 && m->number < UNWIND_TABLES_MAX && !taken[m->number]) {
		taken[m->number] = 1;
		n++;
	}
	tap_eq_u64(t, n, UNWIND_TABLES_MAX - 1, "16,383 tables get distinct numbers");
	refused(t, s, m, -ENOSPC, "16383 unwind tables", "no number is left for one more table");
	unwindspace_remove(s, 77);
	unwindspace_quiet(s);
	unwindspace_quiet(s);
	tap_ok(t, add(s, m, NULL) == 0 && m->number == 77, "the number of a removed table is reused");
}

static void test_maps(struct tap *t)
{
	_cleanup_space_ struct unwindspace *s = space(CHUNKS(3), 8);
	struct unwindspace_maps most, few, none, more;
	struct sight v;
	struct err e;
	const uint8_t *p;

	tap_ok(t, unwindspace_maps_new(s, UNWIND_MAPS_MAX + 1, &most, &e) == -E2BIG && strstr(e.msg, "8193"),
		"8,193 mappings are refused as too many");
	tap_ok(t, unwindspace_maps_new(s, UNWIND_MAPS_MAX, &most, NULL) == 0 && most.maps,
		"8,192 mappings fit");
	tap_ok(t, unwindspace_maps_new(s, 3, &few, NULL) == 0 && few.n == 3,
		"three mappings fit beside 8,192 others");
	tap_ok(t, unwindspace_maps_new(s, 0, &none, NULL) == 0 && !none.maps, "zero mappings take no memory");
	most.maps[UNWIND_MAPS_MAX - 1].start = 12345;
	few.maps[2].word = 678;
	unwindspace_commit(s, NULL);
	sight_open(&v, s);
	p = look(&v, most.chunk, most.grain);
	tap_ok(t, p && ((const struct unwind_map *)(const void *)p)[8191].start == 12345,
		"BPF sees the last of 8,192 mappings");
	p = look(&v, few.chunk, few.grain);
	tap_ok(t, p && ((const struct unwind_map *)(const void *)p)[2].word == 678,
		"BPF sees the last of three mappings");
	sight_close(&v);
	tap_ok(t, unwindspace_maps_new(s, UNWIND_MAPS_MAX, &more, &e) == -ENOSPC && strstr(e.msg, "no room"),
		"another 8,192 mappings have no room");
	unwindspace_maps_drop(s, &most);
	unwindspace_maps_drop(s, &none);
	unwindspace_quiet(s);
	tap_ok(t, unwindspace_maps_new(s, UNWIND_MAPS_MAX, &more, NULL) == -ENOSPC,
		"dropped mappings keep their memory for one quiet period");
	unwindspace_quiet(s);
	tap_ok(t, unwindspace_maps_new(s, UNWIND_MAPS_MAX, &more, NULL) == 0 && more.maps[8191].start == 0,
		"after two quiet periods the memory of dropped mappings is reused and zeroed");
	tap_eq_u64(t, stats(s).bytes_used, CHUNKS(1) + 2 * UNWIND_GRAIN, "mappings count as used memory");
}

static void test_procs(struct tap *t)
{
	_cleanup_space_ struct unwindspace *s = space(CHUNKS(2), 8);
	struct unwind_proc p = { .start_boot_ns = 1, .maps = 3 }, q = { .start_boot_ns = 2, .exec_id = 9 }, r;
	struct unwindspace_fds fds;
	uint32_t tgid = 4711;
	struct err e;

	unwindspace_fds(s, &fds);
	tap_ok(t, unwindspace_proc_set(s, tgid, &p, NULL) == 0, "a process is added");
	tap_ok(t, bpf_map_lookup_elem(fds.procs, &tgid, &r) == 0 && memcmp(&p, &r, sizeof(r)) == 0,
		"BPF sees an added process");
	tap_ok(t,
		unwindspace_proc_set(s, tgid, &q, NULL) == 0 &&
			bpf_map_lookup_elem(fds.procs, &tgid, &r) == 0 && memcmp(&q, &r, sizeof(r)) == 0,
		"a process can be replaced by another image");
	unwindspace_proc_drop(s, tgid);
	unwindspace_proc_drop(s, tgid);
	tap_ok(t, bpf_map_lookup_elem(fds.procs, &tgid, &r) == -ENOENT, "a dropped process is gone");
	for (tgid = 1; tgid <= 64; tgid++)
		unwindspace_proc_set(s, tgid, &p, NULL);
	tap_ok(t, unwindspace_proc_set(s, tgid, &p, &e) == -ENOSPC && strstr(e.msg, "process 65"),
		"beyond the limit of processes the message names the one without room");
	tap_ok(t, unwindspace_proc_set(s, 64, &q, NULL) == 0,
		"a process can be replaced when the limit is reached");
}

/* Keeps processes with an even TGID, counts the requests for each, and checks their data. */
struct sweep {
	unsigned int requested[200];
	bool wrong;
};

static bool keep_even(void *ctx, uint32_t tgid, const struct unwind_proc *p)
{
	struct sweep *w = ctx;

	w->wrong = w->wrong || tgid >= 200 || p->start_boot_ns != 1000 + tgid;
	if (tgid < 200)
		w->requested[tgid]++;
	return tgid % 2 == 0;
}

static bool keep_all(void *ctx, uint32_t tgid, const struct unwind_proc *p)
{
	(void)tgid, (void)p;
	++*(unsigned int *)ctx;
	return true;
}

static void test_sweep(struct tap *t)
{
	_cleanup_space_ struct unwindspace *s = space(CHUNKS(2), 8);
	struct unwind_proc p = { .exec_id = 3 }, r = { 0 };
	struct sweep w = { .wrong = false };
	unsigned int n = 0;
	bool fine = true;

	unwindspace_procs_sweep(s, keep_all, &n);
	tap_eq_u64(t, n, 0, "a sweep without processes calls nothing");
	tap_ok(t, !unwindspace_proc_get(s, 7, &r), "an unknown process cannot be read");
	for (uint32_t tgid = 100; tgid < 160; tgid++) {
		p.start_boot_ns = 1000 + tgid;
		unwindspace_proc_set(s, tgid, &p, NULL);
	}
	tap_ok(t, unwindspace_proc_get(s, 107, &r) && r.start_boot_ns == 1107 && r.exec_id == 3,
		"a known process can be read");
	unwindspace_procs_sweep(s, keep_even, &w);
	for (uint32_t tgid = 0; tgid < 200; tgid++) {
		bool was = tgid >= 100 && tgid < 160;

		fine = fine && w.requested[tgid] == was;
		fine = fine && unwindspace_proc_get(s, tgid, &r) == (was && tgid % 2 == 0);
	}
	tap_ok(t, fine && !w.wrong,
		"a sweep asks about each process once and drops those that are not wanted");
	unwindspace_procs_sweep(s, keep_all, &n);
	tap_eq_u64(t, n, 30, "processes that a sweep keeps stay");
}

int main(void)
{
	const struct unwindspace_opts opts = { .bytes = CHUNKS(2) };
	struct unwindspace *s = NULL;
	struct tap t = { 0 };
	struct err e;
	int rc;

	rc = unwindspace_open(&opts, &s, &e);
	if (rc == -EPERM)
		tap_skip(&t, "unwind tables", "%s", e.msg);
	else if (rc)
		tap_ok(&t, false, "unwind tables: %s", e.msg);
	if (rc)
		return tap_done(&t);
	unwindspace_close(s);
	unwindspace_close(NULL);
	test_table(&t);
	test_own(&t);
	test_quiet(&t);
	test_refusals(&t);
	test_hostile_rules(&t);
	test_numbers(&t);
	test_maps(&t);
	test_procs(&t);
	test_sweep(&t);
	return tap_done(&t);
}
