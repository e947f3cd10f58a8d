/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Adds and removes tables and mappings at random, and keeps a model of them.
 * The kernel must see every row, with its rule, of all that is present or was
 * removed less than two quiet periods ago.
 */
#include "base/tap.h"
#include "../lib/unwind-made.h"

#include <errno.h>

#define SPACE_CHUNKS 24
#define STEPS 3000
#define THINGS 400
#define LOOK_EVERY 100

enum kind { NONE, TABLE, MAPPINGS };

struct thing {
	enum kind kind;
	struct made *table;
	struct unwindspace_maps maps;
	uint64_t mark; /* identifies its mappings */
	bool leaving;
	int quiets; /* since it was removed */
};

struct soak {
	struct unwindspace *s;
	struct thing things[THINGS];
	uint32_t added, refused, wrong, looks, looked_at;
};

/* A random table, from the size of a few functions up to three chunks. */
static struct made *some_table(void)
{
	static const uint32_t most[] = { 3, 30, 200 };
	uint32_t n_segs = 1 + pick(most[pick(3)]), rows = 1 + pick(n_segs > 30 ? 1500 : 12000);

	return make(n_segs, rows, pick(2), 2 + pick(400), pick(500));
}

static void put_table(struct soak *k, struct thing *th)
{
	struct unwindspace_stats before, after;
	int rc;

	th->table = some_table();
	unwindspace_stats(k->s, &before);
	rc = add(k->s, th->table, NULL);
	unwindspace_stats(k->s, &after);
	if (rc == 0) {
		th->kind = TABLE;
		k->added++;
		return;
	}
	k->refused++;
	k->wrong += rc != -ENOSPC || before.bytes_used != after.bytes_used || before.rules != after.rules ||
		    before.rows != after.rows || before.tables != after.tables;
	unmake(th->table);
	th->table = NULL;
}

static void put_maps(struct soak *k, struct thing *th)
{
	if (unwindspace_maps_new(k->s, 1 + pick(pick(10) ? 60 : 6000), &th->maps, NULL) != 0) {
		k->refused++;
		return;
	}
	th->kind = MAPPINGS;
	th->mark = (uint64_t)pick(1 << 30) + 1;
	for (uint32_t i = 0; i < th->maps.n; i++)
		th->maps.maps[i] = (struct unwind_map){ .start = th->mark + i, .word = th->mark ^ i };
	k->added++;
}

static void drop(struct soak *k, struct thing *th)
{
	th->leaving = true;
	th->quiets = 0;
	if (th->kind == TABLE)
		unwindspace_remove(k->s, th->table->number);
	else
		unwindspace_maps_drop(k->s, &th->maps);
}

static void quiet(struct soak *k)
{
	unwindspace_quiet(k->s);
	for (struct thing *th = k->things; th < k->things + THINGS; th++) {
		if (!th->leaving || ++th->quiets < 2)
			continue;
		unmake(th->table);
		*th = (struct thing){ 0 };
	}
}

static bool same_maps(struct sight *v, const struct thing *th)
{
	const struct unwind_map *m = (const void *)look(v, th->maps.chunk, th->maps.grain);

	for (uint32_t i = 0; m && i < th->maps.n; i++)
		if (m[i].start != th->mark + i || m[i].word != (th->mark ^ i))
			return false;
	return m;
}

static void look_at_all(struct soak *k)
{
	struct unwindspace_stats st;
	uint64_t rows = 0, tables = 0;
	struct sight v;

	k->wrong += unwindspace_commit(k->s, NULL) != 0;
	sight_open(&v, k->s);
	for (struct thing *th = k->things; th < k->things + THINGS; th++) {
		if (th->kind == NONE)
			continue;
		k->looked_at++;
		k->wrong += !(th->kind == TABLE ? seen(&v, th->table) : same_maps(&v, th));
		if (th->kind == TABLE && !th->leaving) {
			rows += th->table->head.n_rows;
			tables++;
		}
	}
	sight_close(&v);
	unwindspace_stats(k->s, &st);
	k->wrong += st.rows != rows || st.tables != tables;
	k->looks++;
}

static void step(struct soak *k)
{
	struct thing *th = &k->things[pick(THINGS)];

	if (pick(12) == 0)
		quiet(k);
	else if (th->kind == NONE && pick(4))
		put_table(k, th);
	else if (th->kind == NONE)
		put_maps(k, th);
	else if (!th->leaving)
		drop(k, th);
}

static void test_random(struct tap *t, struct soak *k)
{
	struct unwindspace_stats st;

	for (int i = 1; i <= STEPS; i++) {
		step(k);
		if (i % LOOK_EVERY == 0)
			look_at_all(k);
	}
	tap_eq_u64(
		t, k->wrong, 0, "BPF sees every row that it may use while tables and mappings come and go");
	if (!tap_ok(t, k->added > 500 && k->refused > 50 && k->looked_at > 1000,
		    "the space was full at times and had room at others"))
		tap_diag("added %u, refused %u, looked at %u", k->added, k->refused, k->looked_at);
	for (struct thing *th = k->things; th < k->things + THINGS; th++)
		if (th->kind != NONE && !th->leaving)
			drop(k, th);
	quiet(k);
	quiet(k);
	unwindspace_stats(k->s, &st);
	tap_eq_u64(t, st.bytes_used + st.rules + st.rows + st.tables, 0,
		"when everything is removed no memory is used");
	tap_ok(t, st.bytes <= (uint64_t)SPACE_CHUNKS * (UNWIND_CHUNK_BYTES + 4096) + (2 << 20),
		"the kernel's memory stays within the limit plus the arrays");
}

/* Fill the empty space with the same tables again and again, in another order each time. */
static void test_again(struct tap *t, struct soak *k)
{
	struct made *set[60];
	uint64_t total = 0;
	uint32_t n = 0, failed = 0;

	while (n < ARRAY_LEN(set) && total < (uint64_t)(SPACE_CHUNKS - 4) * UNWIND_CHUNK_BYTES) {
		set[n] = some_table();
		for (uint32_t i = 0; i < set[n]->head.n_segs; i++)
			total += UNWIND_SEG_BYTES(set[n]->segs[i].rows) + UNWIND_GRAIN;
		n++;
	}
	/* the last one may have exceeded the total that leaves four chunks free */
	unmake(set[--n]);
	for (int round = 0; round < 30; round++) {
		for (uint32_t i = n - 1; i > 0; i--) {
			uint32_t j = pick(i + 1);
			struct made *m = set[i];

			set[i] = set[j];
			set[j] = m;
		}
		for (uint32_t i = 0; i < n; i++)
			failed += add(k->s, set[i], NULL) != 0;
		for (uint32_t i = 0; i < n; i++)
			unwindspace_remove(k->s, set[i]->number);
		quiet(k);
		quiet(k);
	}
	tap_ok(t, n > 3 && failed == 0,
		"a set of tables that fits with a little free space fits in every order");
	while (n--)
		unmake(set[n]);
}

/* Thousands of processes; each group of five shares its mappings, as after a fork. */
static void test_processes(struct tap *t)
{
	const struct unwindspace_opts opts = { .bytes = 40 * UNWIND_CHUNK_BYTES, .segs = 8, .procs = 5000 };
	_cleanup_free_ struct unwindspace_maps *maps = calloc(5000, sizeof(*maps));
	struct unwindspace_fds fds;
	struct unwindspace *s;
	uint32_t wrong = 0;
	struct sight v;

	if (!maps || unwindspace_open(&opts, &s, NULL) != 0)
		return;
	for (uint32_t i = 0; i < 5000; i++) {
		struct unwind_proc p = { .start_boot_ns = i, .exec_id = 1 };

		maps[i] = maps[i - i % 5];
		if (i % 5 == 0) {
			wrong += unwindspace_maps_new(s, 1 + pick(100), &maps[i], NULL) != 0;
			maps[i].maps[maps[i].n - 1].start = i;
		}
		p.chunk = maps[i].chunk;
		p.grain = (__u16)maps[i].grain;
		p.maps = (__u16)maps[i].n;
		wrong += unwindspace_commit(s, NULL) != 0 || unwindspace_proc_set(s, i + 1, &p, NULL) != 0;
	}
	unwindspace_fds(s, &fds);
	sight_open(&v, s);
	for (uint32_t i = 0; i < 5000; i++) {
		uint32_t tgid = i + 1;
		struct unwind_proc p = { 0 };
		const struct unwind_map *m = NULL;

		if (bpf_map_lookup_elem(fds.procs, &tgid, &p) == 0)
			m = (const void *)look(&v, p.chunk, p.grain);
		wrong += !m || p.start_boot_ns != i || m[p.maps - 1].start != i - i % 5;
	}
	tap_eq_u64(t, wrong, 0, "each of 5,000 processes has its mappings");
	sight_close(&v);
	unwindspace_close(s);
}

int main(void)
{
	const struct unwindspace_opts opts = {
		.bytes = SPACE_CHUNKS * UNWIND_CHUNK_BYTES, .procs = 8, .first_chunks = 2
	};
	static struct soak k;
	struct tap t = { 0 };
	struct err e;
	int rc;

	rc = unwindspace_open(&opts, &k.s, &e);
	if (rc == -EPERM)
		tap_skip(&t, "unwind tables", "%s", e.msg);
	else if (rc)
		tap_ok(&t, false, "unwind tables: %s", e.msg);
	if (rc)
		return tap_done(&t);
	test_random(&t, &k);
	test_again(&t, &k);
	test_processes(&t);
	unwindspace_close(k.s);
	return tap_done(&t);
}
