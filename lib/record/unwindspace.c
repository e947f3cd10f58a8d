/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/unwindspace.h"
#include "base/clock.h"

#include "record/bitrun.h"
#include "record/chunks.h"
#include "record/ruleset.h"
#include "record/sharedarray.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#define SEGS_DEFAULT 65536
#define PROCS_DEFAULT 16384

struct table {
	uint32_t seg, n_segs;
	uint32_t n_rules; /* that it holds, their numbers in `rules` */
	uint16_t *rules;
	uint64_t rows;
	bool live;
};

/* What waits until BPF is done with it: a table, or (table 0) a block of mappings. */
struct left {
	uint32_t table, chunk, grain, grains;
};

struct leaving {
	struct left *v;
	size_t n, cap;
};

struct unwindspace {
	struct chunks *chunks;
	struct ruleset *rules;
	struct sharedarray seg_array, used_array;
	uint64_t *segs; /* struct unwind_seg, written as one word */
	uint64_t *used;
	struct bitrun seg_runs, numbers;
	int procs_fd;
	struct table *tables; /* UNWIND_TABLES_MAX */
	uint64_t n_rows, n_tables;
	size_t held; /* tables and blocks of mappings, leaving ones too */
	struct leaving now, before; /* since the last quiet; before it */
};

/* The table's segments while they are copied: rule numbers, its own to the recording's. */
struct copying {
	const struct unwindtab *tab;
	const uint16_t *rules;
};

static uint32_t seg_grains(const void *ctx, uint32_t i)
{
	const struct unwindtab_seg *segs = ctx;

	return segs[i].rows ? CHUNKS_GRAINS_OF(UNWIND_SEG_BYTES(segs[i].rows)) : 0;
}

static struct unwind_seg seg_at(const struct unwindspace *s, uint32_t i)
{
	struct unwind_seg seg;

	memcpy(&seg, &s->segs[i], sizeof(seg));
	return seg;
}

/* Whatever the segment refers to is in place before it is seen. */
static void seg_publish(struct unwindspace *s, uint32_t i, struct unwind_seg seg)
{
	uint64_t word;

	memcpy(&word, &seg, sizeof(word));
	__atomic_store_n(&s->segs[i], word, __ATOMIC_RELEASE);
}

static int make_arrays(struct unwindspace *s, uint32_t segs, struct err *e)
{
	int rc = sharedarray_open(&s->seg_array, "unwind_segs", sizeof(struct unwind_seg), segs, e);

	if (rc == 0)
		rc = sharedarray_open(&s->used_array, "unwind_used", sizeof(uint64_t), UNWIND_TABLES_MAX, e);
	s->segs = s->seg_array.p;
	s->used = s->used_array.p;
	return rc;
}

static int make_procs(struct unwindspace *s, uint32_t n, bool at_once, struct err *e)
{
	/* room for all of them at once takes the kernel milliseconds */
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = at_once ? 0 : BPF_F_NO_PREALLOC);

	s->procs_fd = bpf_map_create(
		BPF_MAP_TYPE_HASH, "unwind_procs", sizeof(uint32_t), sizeof(struct unwind_proc), n, &opts);
	return s->procs_fd < 0 ? err_sys(e, s->procs_fd, "cannot create the map 'unwind_procs'") : 0;
}

static int make_books(struct unwindspace *s, uint32_t segs, struct err *e)
{
	uint32_t zero;

	s->tables = calloc(UNWIND_TABLES_MAX, sizeof(*s->tables));
	if (!s->tables || bitrun_open(&s->seg_runs, segs) != 0 ||
		bitrun_open(&s->numbers, UNWIND_TABLES_MAX) != 0)
		return err_nomem(e, "unwind tables");
	bitrun_take(&s->numbers, 1, &zero);
	return 0;
}

DEFINE_CLEANUP(struct unwindspace *, unwindspace_close);

int unwindspace_open(const struct unwindspace_opts *opts, struct unwindspace **ret, struct err *e)
{
	CLEANUP(unwindspace_close_p) struct unwindspace *s = calloc(1, sizeof(*s));
	uint32_t segs = opts->segs ? opts->segs : SEGS_DEFAULT;
	int rc;

	if (!s)
		return err_nomem(e, "unwind tables");
	s->procs_fd = -1;
	/* first, for its thread works while the rest is made */
	rc = chunks_open((uint32_t)MIN(opts->bytes / UNWIND_CHUNK_BYTES, UINT32_MAX), opts->first_chunks,
		opts->opener, &s->chunks, e);
	if (rc == 0)
		rc = make_arrays(s, segs, e);
	if (rc == 0)
		rc = ruleset_open(&s->rules, e);
	if (rc == 0)
		rc = make_procs(s, opts->procs ? opts->procs : PROCS_DEFAULT, opts->procs_at_once, e);
	if (rc == 0)
		rc = make_books(s, segs, e);
	if (rc == 0)
		*ret = TAKE_PTR(s);
	return rc;
}

void unwindspace_close(struct unwindspace *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->tables && i < UNWIND_TABLES_MAX; i++)
		free(s->tables[i].rules);
	free(s->tables);
	free(s->now.v);
	free(s->before.v);
	bitrun_close(&s->seg_runs);
	bitrun_close(&s->numbers);
	sharedarray_close(&s->seg_array);
	sharedarray_close(&s->used_array);
	ruleset_close(s->rules);
	chunks_close(s->chunks);
	if (s->procs_fd >= 0)
		close(s->procs_fd);
	free(s);
}

void unwindspace_fds(const struct unwindspace *s, struct unwindspace_fds *ret)
{
	ret->chunks = chunks_fd(s->chunks);
	ret->segs = s->seg_array.fd;
	ret->rules = ruleset_fd(s->rules);
	ret->used = s->used_array.fd;
	ret->procs = s->procs_fd;
}

/* Room in both lists for one more to leave: leaving itself cannot fail. */
static int hold_one(struct unwindspace *s, struct err *e)
{
	if (base_grow(&s->now.v, &s->now.cap, s->held + 1, sizeof(*s->now.v)) != 0 ||
		base_grow(&s->before.v, &s->before.cap, s->held + 1, sizeof(*s->before.v)) != 0)
		return err_nomem(e, "unwind tables");
	s->held++;
	return 0;
}

/* Everything that table T has, so far as it came, at once. */
static void release(struct unwindspace *s, uint32_t number)
{
	struct table *t = &s->tables[number];

	for (uint32_t i = t->seg; i < t->seg + t->n_segs; i++) {
		struct unwind_seg seg = seg_at(s, i);

		if (seg.rows)
			chunks_give(s->chunks, seg.chunk, seg.grain,
				CHUNKS_GRAINS_OF(UNWIND_SEG_BYTES(seg.rows)));
		seg_publish(s, i, (struct unwind_seg){ 0 });
	}
	if (t->n_segs)
		bitrun_give(&s->seg_runs, t->seg, t->n_segs);
	for (uint32_t i = 0; i < t->n_rules; i++)
		ruleset_give(s->rules, t->rules[i]);
	free(t->rules);
	*t = (struct table){ 0 };
	bitrun_give(&s->numbers, number, 1);
	s->held--;
}

static int take_rules(struct unwindspace *s, struct table *t, const struct unwindtab *tab, struct err *e)
{
	uint32_t n = tab->head->n_rules;

	t->rules = calloc(n ? n : 1, sizeof(*t->rules));
	if (!t->rules)
		return err_nomem(e, "unwind rules");
	for (; t->n_rules < n; t->n_rules++)
		if (ruleset_take(s->rules, &tab->rules[t->n_rules], &t->rules[t->n_rules]) != 0)
			return err_set(
				e, -ENOSPC, "more than %d distinct unwind rules", UNWIND_RULES_MAX - 1);
	return 0;
}

static void copy_rows(uint8_t *to, const uint8_t *from, uint32_t rows, const uint16_t *rules)
{
	const size_t first = (UNWIND_SEG_PAGES + 1) * sizeof(uint16_t), numbers = rows * sizeof(uint16_t);
	const uint16_t *own = (const uint16_t *)(const void *)(from + first);
	uint16_t *theirs = (uint16_t *)(void *)(to + first);

	memcpy(to, from, first);
	for (uint32_t i = 0; i < rows; i++)
		theirs[i] = rules[own[i]];
	memcpy(to + first + numbers, from + first + numbers, rows);
}

static int add_seg(struct unwindspace *s, uint32_t at, const struct copying *c, uint32_t i, struct err *e)
{
	const struct unwindtab_seg *seg = &c->tab->segs[i];
	struct chunks_block block;
	int rc;

	if (seg->rows == 0)
		return 0;
	rc = chunks_take(s->chunks, seg_grains(c->tab->segs, i), &block, e);
	if (rc)
		return rc;
	copy_rows(block.p, c->tab->bytes + seg->at, seg->rows, c->rules);
	seg_publish(s, at,
		(struct unwind_seg){
			.chunk = block.chunk, .grain = (uint16_t)block.grain, .rows = (uint16_t)seg->rows });
	return 0;
}

static int add_segs(struct unwindspace *s, struct table *t, const struct unwindtab *tab, struct err *e)
{
	const struct copying c = { .tab = tab, .rules = t->rules };
	uint64_t grains = 0;
	int rc;

	for (uint32_t i = 0; i < tab->head->n_segs; i++)
		grains += seg_grains(tab->segs, i);
	rc = chunks_reserve(s->chunks, grains, e);
	for (uint32_t i = 0; rc == 0 && i < tab->head->n_segs; i++)
		rc = add_seg(s, t->seg + i, &c, i, e);
	return rc;
}

static int add_parts(struct unwindspace *s, struct table *t, const struct unwindtab *tab, struct err *e)
{
	int rc;

	if (!bitrun_take(&s->seg_runs, tab->head->n_segs, &t->seg))
		return err_set(e, -ENOSPC, "no room is left for segments of unwind tables");
	t->n_segs = tab->head->n_segs;
	rc = take_rules(s, t, tab, e);
	return rc ? rc : add_segs(s, t, tab, e);
}

static int check(const struct unwindspace *s, const struct unwindtab *tab, struct err *e)
{
	if (tab->head->n_segs == 0)
		return err_set(e, -EINVAL, "an unwind table of no segments");
	if (tab->head->n_segs > s->seg_runs.bits)
		return err_set(e, -E2BIG, "an unwind table of %u segments, more than the %u there are",
			tab->head->n_segs, s->seg_runs.bits);
	for (uint32_t i = 0; i < tab->head->n_segs; i++)
		if (tab->segs[i].rows > UNWIND_ROWS_MAX)
			return err_set(
				e, -EINVAL, "an unwind table with %u rows in a segment", tab->segs[i].rows);
	return 0;
}

static void go_live(struct unwindspace *s, uint32_t number, uint64_t rows)
{
	struct table *t = &s->tables[number];

	t->live = true;
	t->rows = rows;
	s->n_rows += rows;
	s->n_tables++;
	__atomic_store_n(&s->used[number], now_ns(), __ATOMIC_RELAXED);
}

static int too_big(const struct unwindspace *s, const struct unwindtab *tab, struct err *e)
{
	if (chunks_ever_fit(s->chunks, seg_grains, tab->segs, tab->head->n_segs))
		return e ? e->code : -ENOSPC;
	return err_set(e, -E2BIG, "an unwind table of %llu rows, larger than all the memory for them",
		(unsigned long long)tab->head->n_rows);
}

int unwindspace_add(
	struct unwindspace *s, const struct unwindtab *tab, uint32_t *table, uint32_t *seg, struct err *e)
{
	uint32_t number;
	int rc = check(s, tab, e);

	if (rc == 0)
		rc = hold_one(s, e);
	if (rc)
		return rc;
	if (!bitrun_take(&s->numbers, 1, &number)) {
		s->held--;
		return err_set(e, -ENOSPC, "more than %d unwind tables", UNWIND_TABLES_MAX - 1);
	}
	rc = add_parts(s, &s->tables[number], tab, e);
	if (rc) {
		release(s, number);
		return rc == -ENOSPC ? too_big(s, tab, e) : rc;
	}
	go_live(s, number, tab->head->n_rows);
	*table = number;
	*seg = s->tables[number].seg;
	return 0;
}

static void leave(struct unwindspace *s, struct left what)
{
	s->now.v[s->now.n++] = what;
}

void unwindspace_remove(struct unwindspace *s, uint32_t table)
{
	struct table *t = &s->tables[table % UNWIND_TABLES_MAX];

	if (table >= UNWIND_TABLES_MAX || !t->live)
		return;
	t->live = false;
	s->n_rows -= t->rows;
	s->n_tables--;
	leave(s, (struct left){ .table = table });
}

const struct unwind_rule *unwindspace_rule(
	const struct unwindspace *s, uint32_t seg, uint32_t segs, uint64_t at)
{
	uint64_t i = at >> UNWIND_SEG_SHIFT;
	struct unwind_seg place;

	if (i >= segs || seg + i >= s->seg_runs.bits)
		return NULL;
	place = seg_at(s, seg + (uint32_t)i);
	if (!place.rows)
		return NULL;
	return ruleset_at(s->rules, unwindtab_rule_at(chunks_at(s->chunks, place.chunk, place.grain),
					    place.rows, at & ((1u << UNWIND_SEG_SHIFT) - 1)));
}

uint64_t unwindspace_used_ns(const struct unwindspace *s, uint32_t table)
{
	return __atomic_load_n(&s->used[table % UNWIND_TABLES_MAX], __ATOMIC_RELAXED);
}

int unwindspace_maps_new(struct unwindspace *s, uint32_t n, struct unwindspace_maps *ret, struct err *e)
{
	size_t bytes = (size_t)n * sizeof(struct unwind_map);
	struct chunks_block block;
	int rc;

	*ret = (struct unwindspace_maps){ .n = n };
	if (n == 0)
		return 0;
	if (n > UNWIND_MAPS_MAX)
		return err_set(
			e, -E2BIG, "%u executable mappings in a process, more than %d", n, UNWIND_MAPS_MAX);
	rc = hold_one(s, e);
	if (rc)
		return rc;
	rc = chunks_take(s->chunks, CHUNKS_GRAINS_OF(bytes), &block, e);
	if (rc) {
		s->held--;
		return rc;
	}
	ret->maps = memset(block.p, 0, bytes);
	ret->chunk = block.chunk;
	ret->grain = block.grain;
	return 0;
}

void unwindspace_maps_drop(struct unwindspace *s, const struct unwindspace_maps *m)
{
	if (m->n)
		leave(s, (struct left){ .chunk = m->chunk,
				 .grain = m->grain,
				 .grains = CHUNKS_GRAINS_OF(m->n * sizeof(struct unwind_map)) });
}

int unwindspace_commit(struct unwindspace *s, struct err *e)
{
	return chunks_commit(s->chunks, e);
}

int unwindspace_proc_set(struct unwindspace *s, uint32_t tgid, const struct unwind_proc *p, struct err *e)
{
	int rc = bpf_map_update_elem(s->procs_fd, &tgid, p, BPF_ANY);

	if (rc == -E2BIG)
		return err_set(e, -ENOSPC, "no room is left for the mappings of process %u", tgid);
	return rc ? err_sys(e, rc, "cannot show BPF the mappings of process %u", tgid) : 0;
}

bool unwindspace_proc_get(const struct unwindspace *s, uint32_t tgid, struct unwind_proc *ret)
{
	return bpf_map_lookup_elem(s->procs_fd, &tgid, ret) == 0;
}

void unwindspace_procs_sweep(
	struct unwindspace *s, bool (*keep)(void *ctx, uint32_t tgid, const struct unwind_proc *p), void *ctx)
{
	struct unwind_proc p;
	uint32_t key, next;
	bool more = bpf_map_get_next_key(s->procs_fd, NULL, &next) == 0;

	while (more) {
		key = next;
		/* before KEY goes: without it the search would begin again */
		more = bpf_map_get_next_key(s->procs_fd, &key, &next) == 0;
		if (unwindspace_proc_get(s, key, &p) && !keep(ctx, key, &p))
			unwindspace_proc_drop(s, key);
	}
}

void unwindspace_proc_drop(struct unwindspace *s, uint32_t tgid)
{
	bpf_map_delete_elem(s->procs_fd, &tgid);
}

void unwindspace_quiet(struct unwindspace *s)
{
	struct leaving free_now = s->before;

	for (size_t i = 0; i < free_now.n; i++) {
		const struct left *l = &free_now.v[i];

		if (l->table) {
			release(s, l->table);
		} else {
			chunks_give(s->chunks, l->chunk, l->grain, l->grains);
			s->held--;
		}
	}
	s->before = s->now;
	s->now = free_now;
	s->now.n = 0;
}

void unwindspace_stats(const struct unwindspace *s, struct unwindspace_stats *ret)
{
	struct chunks_stats c;

	chunks_stats(s->chunks, &c);
	*ret = (struct unwindspace_stats){ .bytes_used = c.bytes_used,
		.rows = s->n_rows,
		.tables = s->n_tables,
		.rules = ruleset_count(s->rules) };
	ret->bytes = c.bytes + ruleset_bytes() + sharedarray_bytes(sizeof(uint64_t), s->seg_runs.bits) +
		     sharedarray_bytes(sizeof(uint64_t), UNWIND_TABLES_MAX);
}
