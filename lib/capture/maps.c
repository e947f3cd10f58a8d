/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/maps.h"
#include "base/search.h"

#include <errno.h>
#include <string.h>

/* Compare at most this many later mappings of a node; with more, the answer is unsure. */
#define COMPARE_MAX 16

/*
 * The tree of one process. With L parts, node I has the children 2I and 2I+1, and
 * part P is node L + P. The mappings of node I are at[list[I] .. list[I+1]).
 */
struct tree {
	uint64_t *bounds; /* sorted; part P is [bounds[P], bounds[P + 1]) */
	size_t n_bounds;
	uint32_t *list;
	const struct cap_map **at;
};

struct cap_map_index {
	struct tree *trees; /* by process */
	size_t n_trees;
};

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return CMP(x, y);
}

/* By process, then time, then file order. */
static int by_proc_and_time(const void *a, const void *b)
{
	const struct cap_map *x = *(const struct cap_map *const *)a, *y = *(const struct cap_map *const *)b;
	int c = CMP(x->proc, y->proc);

	c = c ? c : CMP(x->from_ns, y->from_ns);
	return c ? c : CMP(x, y);
}

/* The part that holds ADDR, or -1. */
static ssize_t find_part(const struct tree *t, uint64_t addr)
{
	size_t lo = PARTITION_POINT(0, t->n_bounds, mid, t->bounds[mid] <= addr);

	return lo == 0 || lo == t->n_bounds ? -1 : (ssize_t)lo - 1;
}

static int set_bounds(struct tree *t, const struct cap_map **maps, size_t n)
{
	size_t kept = 0;

	t->bounds = calloc(n, 2 * sizeof(*t->bounds));
	if (!t->bounds)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		t->bounds[2 * i] = maps[i]->start;
		t->bounds[2 * i + 1] = maps[i]->end;
	}
	qsort(t->bounds, 2 * n, sizeof(*t->bounds), by_value);
	for (size_t i = 0; i < 2 * n; i++)
		if (!kept || t->bounds[kept - 1] != t->bounds[i])
			t->bounds[kept++] = t->bounds[i];
	t->n_bounds = kept;
	return 0;
}

/*
 * Visit the nodes that together cover MAP. With PUT, add the map at each and
 * advance list[I]; without, count the needed room in list[I].
 */
static void cover(struct tree *t, const struct cap_map *map, bool put)
{
	size_t parts = t->n_bounds - 1;
	size_t l = (size_t)find_part(t, map->start) + parts;
	size_t r = (size_t)find_part(t, map->end - 1) + 1 + parts;

	for (; l < r; l /= 2, r /= 2) {
		size_t node[2], n = 0;

		if (l & 1)
			node[n++] = l++;
		if (r & 1)
			node[n++] = --r;
		while (n--) {
			if (put)
				t->at[t->list[node[n]]] = map;
			t->list[node[n]]++;
		}
	}
}

/* MAPS are the N mappings of one process, sorted by time. */
static int plant(struct tree *t, const struct cap_map **maps, size_t n)
{
	size_t nodes;
	uint64_t sum = 0;

	if (set_bounds(t, maps, n) != 0)
		return -ENOMEM;
	if (t->n_bounds < 2)
		return 0;
	nodes = 2 * (t->n_bounds - 1);
	t->list = calloc(nodes + 1, sizeof(*t->list));
	if (!t->list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		cover(t, maps[i], false);
	for (size_t i = 0; i <= nodes; i++) {
		uint32_t count = t->list[i];

		t->list[i] = (uint32_t)sum;
		sum += count;
	}
	if (sum > UINT32_MAX)
		return -ENOMEM;
	t->at = calloc(sum, sizeof(const struct cap_map *));
	if (!t->at)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		cover(t, maps[i], true);
	/* each entry has advanced to where the next one began: shift them back */
	memmove(t->list + 1, t->list, nodes * sizeof(*t->list));
	t->list[0] = 0;
	return 0;
}

static int plant_all(struct cap_map_index *m, const struct cap_map *maps, size_t n)
{
	_cleanup_free_ const struct cap_map **sorted = calloc(n + 1, sizeof(const struct cap_map *));

	if (!sorted || !m->trees)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &maps[i];
	qsort(sorted, n, sizeof(const struct cap_map *), by_proc_and_time);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && sorted[end]->proc == sorted[i]->proc; end++)
			;
		if (plant(&m->trees[sorted[i]->proc], sorted + i, end - i) != 0)
			return -ENOMEM;
	}
	return 0;
}

int cap_map_index_new(const struct cap_map *maps, size_t n, size_t n_procs, struct cap_map_index **ret)
{
	struct cap_map_index *m = calloc(1, sizeof(*m));
	int code;

	if (!m)
		return -ENOMEM;
	m->n_trees = n_procs;
	m->trees = calloc(n_procs + 1, sizeof(*m->trees));
	code = plant_all(m, maps, n);
	if (code)
		cap_map_index_free(m);
	else
		*ret = m;
	return code;
}

void cap_map_index_free(struct cap_map_index *m)
{
	if (!m)
		return;
	for (size_t i = 0; m->trees && i < m->n_trees; i++) {
		free(m->trees[i].bounds);
		free(m->trees[i].list);
		free(m->trees[i].at);
	}
	free(m->trees);
	free(m);
}

/* The first of the mappings in [LO, HI) that began after TIME_NS; HI if none did. */
static uint32_t after(const struct tree *t, uint32_t lo, uint32_t hi, uint64_t time_ns)
{
	return (uint32_t)PARTITION_POINT(lo, hi, mid, t->at[mid]->from_ns <= time_ns);
}

static bool newer(const struct cap_map *a, const struct cap_map *b)
{
	return !b || a->from_ns > b->from_ns || (a->from_ns == b->from_ns && a > b);
}

/* Do A and B map the same part of the same file at the addresses they share? */
static bool agree(const struct cap_map *a, const struct cap_map *b)
{
	return a->file == b->file && a->file != CAPTURE_NONE && a->offset - a->start == b->offset - b->start;
}

/* Did a mapping that does not agree with BEST appear in (FIRST_NS, LAST_NS]? */
static bool changed(
	const struct tree *t, size_t part, const struct cap_map *best, uint64_t first_ns, uint64_t last_ns)
{
	for (size_t node = part + t->n_bounds - 1; node; node /= 2) {
		uint32_t end = t->list[node + 1], i = after(t, t->list[node], end, first_ns);

		for (uint32_t seen = 0; i < end && t->at[i]->from_ns <= last_ns; i++)
			if (++seen > COMPARE_MAX || !agree(t->at[i], best))
				return true;
	}
	return false;
}

const struct cap_map *cap_map_index_find(const struct cap_map_index *m, uint32_t proc, uint64_t addr,
	uint64_t first_ns, uint64_t last_ns, bool *unsure)
{
	const struct tree *t = proc < m->n_trees ? &m->trees[proc] : NULL;
	const struct cap_map *best = NULL, *later = NULL;
	ssize_t part = t ? find_part(t, addr) : -1;

	if (unsure)
		*unsure = false;
	if (part < 0)
		return NULL;
	for (size_t node = (size_t)part + t->n_bounds - 1; node; node /= 2) {
		uint32_t begin = t->list[node], end = t->list[node + 1];
		uint32_t i = begin < end ? after(t, begin, end, first_ns) : end;

		if (i > begin && newer(t->at[i - 1], best))
			best = t->at[i - 1];
		if (i < end && t->at[i]->from_ns <= last_ns && (!later || newer(later, t->at[i])))
			later = t->at[i];
	}
	if (unsure && later)
		*unsure = !best || changed(t, (size_t)part, best, first_ns, last_ns);
	return best ? best : later;
}
