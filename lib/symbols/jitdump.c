/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code is stored as loads: a range of addresses, valid from a time on. The ends of all ranges cut
 * the address space into cells, and each cell has its loads sorted by time. The last load before a
 * time is the code at that time. If that load has moved away, there is no code: what it had
 * overwritten does not come back.
 */
#include "symbols/jitdump.h"
#include "base/fs.h"
#include "base/intern.h"
#include "base/search.h"

#include <errno.h>
#include <string.h>

#define MAGIC 0x4A695444u
#define MAGIC_SWAPPED 0x4454694Au
#define HEADER_BYTES 40
#define FLAG_ARCH_TIMESTAMP 1u
#define RECORD_BYTES 16
#define NAME_MAX_BYTES 65536
#define SAME_FILE "\xff" /* as the file of a line: the same file as in the line before */

enum record_id { LOAD = 0, MOVE = 1, DEBUG_INFO = 2, CLOSE = 3 };

struct load {
	uint64_t start, end, from_ns, to_ns;
	uint64_t base; /* address that its lines refer to: where the code was before it moved */
	const char *name;
	size_t first_line, n_lines;
};

struct line {
	uint64_t addr;
	const char *file;
	uint32_t line;
};

struct jitdump {
	char *bytes; /* holds the names */
	bool swapped, timeless;
	struct load *loads; /* in file order */
	size_t n, cap;
	struct line *lines;
	size_t n_lines, max_lines;
	uint64_t *edges; /* cell i is from edges[i] to edges[i + 1] */
	size_t n_edges;
	size_t *first; /* start of each cell in `at`, and one more */
	uint32_t *at; /* loads of the cells, oldest first */
	uint64_t bad;
};

/* State that is needed only while reading the records. */
struct parse {
	struct jitdump *j;
	struct idmap by_index; /* code_index -> newest load */
	uint64_t lines_addr; /* code that the last lines belong to */
	size_t lines_first, n_lines;
};

/* --- numbers and names --- */

static uint32_t u32(const struct jitdump *j, const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return j->swapped ? __builtin_bswap32(v) : v;
}

static uint64_t u64(const struct jitdump *j, const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return j->swapped ? __builtin_bswap64(v) : v;
}

/* The name at P, or NULL if it does not end before END. */
static const char *name_at(const char *p, const char *end)
{
	size_t room = MIN((size_t)(end - p), (size_t)NAME_MAX_BYTES);

	return room && memchr(p, '\0', room) ? p : NULL;
}

/* --- records --- */

static int add_load(struct jitdump *j, const struct load *l)
{
	if (j->n == JITDUMP_LOADS_MAX)
		return -EFBIG;
	if (base_grow(&j->loads, &j->cap, j->n + 1, sizeof(*j->loads)) != 0)
		return -ENOMEM;
	j->loads[j->n++] = *l;
	return 0;
}

/* Returns 0, 1 if the record is malformed, or -errno. So do the other functions that take a record. */
static int take_load(struct parse *p, const char *at, const char *end, uint64_t time_ns)
{
	struct jitdump *j = p->j;
	struct load l = { .from_ns = time_ns, .to_ns = UINT64_MAX };
	uint64_t size;
	int rc;

	if (end - at < 40)
		return 1;
	/* vma and code_addr are equal for code that did not move */
	l.start = l.base = u64(j, at + 16);
	size = u64(j, at + 24);
	l.name = name_at(at + 40, end);
	if (!l.name || !*l.name || !size || size > UINT64_MAX - l.start)
		return 1;
	l.end = l.start + size;
	if (p->n_lines && p->lines_addr == l.start) {
		l.first_line = p->lines_first;
		l.n_lines = p->n_lines;
	}
	p->n_lines = 0;
	rc = add_load(j, &l);
	if (rc)
		return rc;
	idmap_put(&p->by_index, 0, u64(j, at + 32), 0, NULL);
	if (!idmap_find(&p->by_index, 0, u64(j, at + 32)))
		return -ENOMEM;
	idmap_find(&p->by_index, 0, u64(j, at + 32))->value = (uint32_t)(j->n - 1);
	return 0;
}

static int take_move(struct parse *p, const char *at, const char *end, uint64_t time_ns)
{
	struct jitdump *j = p->j;
	struct idmap_slot *slot;
	struct load l;
	uint64_t from, size;
	int rc;

	if (end - at < 48)
		return 1;
	from = u64(j, at + 16);
	slot = idmap_find(&p->by_index, 0, u64(j, at + 40));
	if (!slot || j->loads[slot->value].start != from)
		return 1;
	l = j->loads[slot->value];
	l.start = u64(j, at + 24);
	size = u64(j, at + 32);
	if (!size || size > UINT64_MAX - l.start)
		return 1;
	l.end = l.start + size;
	l.from_ns = time_ns;
	rc = add_load(j, &l);
	if (rc)
		return rc;
	if (!j->timeless)
		j->loads[slot->value].to_ns = time_ns;
	slot->value = (uint32_t)(j->n - 1);
	return 0;
}

static int add_line(struct parse *p, const char *at, const char *file)
{
	struct jitdump *j = p->j;

	if (base_grow(&j->lines, &j->max_lines, j->n_lines + 1, sizeof(*j->lines)) != 0)
		return -ENOMEM;
	j->lines[j->n_lines++] = (struct line){ u64(j, at), file, u32(j, at + 8) };
	p->n_lines++;
	return 0;
}

static int line_cmp(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return CMP(x->addr, y->addr);
}

static int take_lines(struct parse *p, const char *at, const char *end)
{
	struct jitdump *j = p->j;
	const char *file = NULL;
	uint64_t n;
	int rc = 0;

	p->n_lines = 0;
	p->lines_first = j->n_lines;
	if (end - at < 16)
		return 1;
	p->lines_addr = u64(j, at);
	n = u64(j, at + 8);
	for (at += 16; n && !rc; n--) {
		const char *name = end - at > 16 ? name_at(at + 16, end) : NULL;

		if (!name)
			return 1; /* the lines before it are valid */
		file = strcmp(name, SAME_FILE) == 0 ? file : name;
		if (file)
			rc = add_line(p, at, file);
		at = name + strlen(name) + 1;
	}
	if (p->n_lines)
		qsort(j->lines + p->lines_first, p->n_lines, sizeof(*j->lines), line_cmp);
	return rc;
}

static int take_record(struct parse *p, const char *at, const char *end)
{
	uint64_t time_ns = p->j->timeless ? 0 : u64(p->j, at + 8);

	switch (u32(p->j, at)) {
	case LOAD:
		return take_load(p, at + RECORD_BYTES, end, time_ns);
	case MOVE:
		return take_move(p, at + RECORD_BYTES, end, time_ns);
	case DEBUG_INFO:
		return take_lines(p, at + RECORD_BYTES, end);
	default:
		return 0;
	}
}

/* Stops at a record with an invalid size: the start of the next record is unknown. */
static int take_records(struct parse *p, const char *at, const char *end)
{
	while (end - at >= RECORD_BYTES && u32(p->j, at) != CLOSE) {
		uint32_t size = u32(p->j, at + 4);
		int rc;

		if (size < RECORD_BYTES) {
			p->j->bad++;
			return 0;
		}
		if (size > (size_t)(end - at))
			return 0;
		rc = take_record(p, at, at + size);
		if (rc < 0)
			return rc;
		p->j->bad += rc == 1;
		at += size;
	}
	return 0;
}

static int take_header(struct jitdump *j, size_t len, size_t *header, struct err *e)
{
	uint32_t magic = 0;

	if (len >= HEADER_BYTES)
		memcpy(&magic, j->bytes, sizeof(magic));
	if (magic != MAGIC && magic != MAGIC_SWAPPED)
		return err_set(e, -EINVAL, "not a jitdump file");
	j->swapped = magic == MAGIC_SWAPPED;
	if (u32(j, j->bytes + 4) != 1)
		return err_set(e, -EINVAL, "a jitdump file of version %u", u32(j, j->bytes + 4));
	*header = u32(j, j->bytes + 8);
	if (*header < HEADER_BYTES || *header > len)
		return err_set(e, -EINVAL, "a jitdump file whose header has %zu bytes", *header);
	j->timeless = u64(j, j->bytes + 32) & FLAG_ARCH_TIMESTAMP;
	return 0;
}

/* --- cells --- */

static int edge_cmp(const void *a, const void *b)
{
	return CMP(*(const uint64_t *)a, *(const uint64_t *)b);
}

static int make_edges(struct jitdump *j)
{
	size_t n = 0;

	j->edges = malloc((2 * j->n + 1) * sizeof(*j->edges));
	if (!j->edges)
		return -ENOMEM;
	for (size_t i = 0; i < j->n; i++) {
		j->edges[n++] = j->loads[i].start;
		j->edges[n++] = j->loads[i].end;
	}
	if (n)
		qsort(j->edges, n, sizeof(*j->edges), edge_cmp);
	for (size_t i = 0; i < n; i++)
		if (!j->n_edges || j->edges[i] != j->edges[j->n_edges - 1])
			j->edges[j->n_edges++] = j->edges[i];
	return 0;
}

/* The number of edges up to ADDR. */
static size_t edges_until(const struct jitdump *j, uint64_t addr)
{
	size_t low = PARTITION_POINT(0, j->n_edges, mid, j->edges[mid] <= addr);

	return low;
}

/* Loads by time; those of the same time in file order. */
struct by_time {
	uint64_t from_ns;
	uint32_t load;
};

static int time_cmp(const void *a, const void *b)
{
	const struct by_time *x = a, *y = b;

	return x->from_ns != y->from_ns ? CMP(x->from_ns, y->from_ns) : CMP(x->load, y->load);
}

static struct by_time *sort_by_time(const struct jitdump *j)
{
	struct by_time *order = malloc((j->n + 1) * sizeof(*order));

	for (size_t i = 0; order && i < j->n; i++)
		order[i] = (struct by_time){ j->loads[i].from_ns, (uint32_t)i };
	if (order)
		qsort(order, j->n, sizeof(*order), time_cmp);
	return order;
}

/* Set `first` from the number of loads in each cell. -EFBIG if there are too many. */
static int count_cells(struct jitdump *j)
{
	size_t sum = 0;

	j->first = calloc(j->n_edges + 2, sizeof(*j->first));
	if (!j->first)
		return -ENOMEM;
	for (size_t i = 0; i < j->n; i++) {
		size_t cell = edges_until(j, j->loads[i].start) - 1;

		for (; j->edges[cell] < j->loads[i].end; cell++) {
			if (++sum > JITDUMP_CELLS_MAX)
				return -EFBIG;
			j->first[cell + 2]++;
		}
	}
	for (size_t i = 2; i < j->n_edges + 2; i++)
		j->first[i] += j->first[i - 1];
	return 0;
}

/* first[i + 1] runs from the start of cell i to its end, which is the start of cell i + 1. */
static int fill_cells(struct jitdump *j)
{
	_cleanup_free_ struct by_time *order = sort_by_time(j);

	j->at = malloc((j->first[j->n_edges + 1] + 1) * sizeof(*j->at));
	if (!order || !j->at)
		return -ENOMEM;
	for (size_t i = 0; i < j->n; i++) {
		const struct load *l = &j->loads[order[i].load];

		for (size_t cell = edges_until(j, l->start) - 1; j->edges[cell] < l->end; cell++)
			j->at[j->first[cell + 1]++] = order[i].load;
	}
	return 0;
}

static int make_cells(struct jitdump *j, struct err *e)
{
	int rc = make_edges(j);

	rc = rc ? rc : count_cells(j);
	rc = rc ? rc : fill_cells(j);
	if (rc == -EFBIG)
		return err_set(e, rc, "a jitdump file whose code overlaps too much");
	return rc ? err_nomem(e, "the code of a jitdump file") : 0;
}

/* --- the module --- */

/* The jitdump owns BYTES from now on. */
static int parse(char *bytes, size_t len, struct jitdump **ret, struct err *e)
{
	struct jitdump *j = calloc(1, sizeof(*j));
	struct parse p = { .j = j };
	size_t header = 0;
	int rc;

	if (!j) {
		free(bytes);
		return err_nomem(e, "a jitdump file");
	}
	j->bytes = bytes;
	rc = take_header(j, len, &header, e);
	if (!rc) {
		rc = take_records(&p, bytes + header, bytes + len);
		idmap_free(&p.by_index);
		if (rc)
			err_sys(e, rc, "the code of a jitdump file");
	}
	rc = rc ? rc : make_cells(j, e);
	if (rc) {
		jitdump_free(j);
		return rc;
	}
	*ret = j;
	return 0;
}

int jitdump_parse(const void *bytes, size_t len, struct jitdump **ret, struct err *e)
{
	char *copy;

	if (len > JITDUMP_BYTES_MAX)
		return err_set(e, -EFBIG, "a jitdump file of more than %llu bytes",
			(unsigned long long)JITDUMP_BYTES_MAX);
	copy = malloc(len + 1);
	if (!copy)
		return err_nomem(e, "a jitdump file");
	if (len)
		memcpy(copy, bytes, len);
	return parse(copy, len, ret, e);
}

int jitdump_load(int fd, struct jitdump **ret, struct err *e)
{
	char *bytes;
	size_t len;
	int rc = readfd_all(fd, JITDUMP_BYTES_MAX, &bytes, &len, e);

	return rc ? rc : parse(bytes, len, ret, e);
}

void jitdump_free(struct jitdump *j)
{
	if (!j)
		return;
	free(j->bytes);
	free(j->loads);
	free(j->lines);
	free(j->edges);
	free(j->first);
	free(j->at);
	free(j);
}

/* Add the source line of ADDR and narrow the piece to it. Lines refer to the first place of the code. */
static void add_source(const struct jitdump *j, const struct load *l, uint64_t addr, struct jitdump_hit *hit)
{
	uint64_t there = addr - l->start + l->base;
	size_t low;
	const struct line *line;

	low = PARTITION_POINT(0, l->n_lines, mid, j->lines[l->first_line + mid].addr <= there);
	line = &j->lines[l->first_line + low];
	if (low < l->n_lines)
		hit->piece_end = addr + MIN(hit->piece_end - addr, line->addr - there);
	if (!low)
		return;
	line--;
	hit->piece_start = MAX(hit->piece_start, addr - MIN(there - line->addr, addr));
	hit->file = line->file;
	hit->line = line->line;
}

/* The number of loads of CELL up to TIME_NS. */
static size_t loads_until(const struct jitdump *j, size_t cell, uint64_t time_ns)
{
	size_t low = PARTITION_POINT(
		j->first[cell], j->first[cell + 1], mid, j->loads[j->at[mid]].from_ns <= time_ns);

	return low - j->first[cell];
}

/* Fill in load number I of CELL at ADDR. */
static void fill_hit(const struct jitdump *j, size_t cell, size_t i, uint64_t addr, struct jitdump_hit *ret)
{
	size_t at = j->first[cell] + i;
	const struct load *l = &j->loads[j->at[at]];
	uint64_t to_ns = l->to_ns;

	/* without times, the last load was there all the time */
	if (at + 1 < j->first[cell + 1])
		to_ns = MIN(to_ns, j->loads[j->at[at + 1]].from_ns);
	*ret = (struct jitdump_hit){ .start = l->start,
		.end = l->end,
		.piece_start = j->edges[cell],
		.piece_end = j->edges[cell + 1],
		.from_ns = l->from_ns,
		.to_ns = to_ns,
		.name = l->name };
	add_source(j, l, addr, ret);
}

/* Find the cell of ADDR; false if it has no loads. */
static bool cell_at(const struct jitdump *j, uint64_t addr, size_t *ret)
{
	size_t cell = edges_until(j, addr);

	*ret = cell - 1;
	return cell && cell < j->n_edges && j->first[cell - 1] < j->first[cell];
}

bool jitdump_find(const struct jitdump *j, uint64_t addr, uint64_t time_ns, struct jitdump_hit *ret)
{
	size_t cell, n;

	if (!cell_at(j, addr, &cell))
		return false;
	n = loads_until(j, cell, time_ns);
	if (!n)
		return false;
	fill_hit(j, cell, n - 1, addr, ret);
	return time_ns < ret->to_ns || ret->to_ns == UINT64_MAX;
}

bool jitdump_each(const struct jitdump *j, uint64_t addr, size_t i, struct jitdump_hit *ret)
{
	size_t cell;

	if (!cell_at(j, addr, &cell) || i >= j->first[cell + 1] - j->first[cell])
		return false;
	fill_hit(j, cell, j->first[cell + 1] - j->first[cell] - 1 - i, addr, ret);
	return true;
}

size_t jitdump_count(const struct jitdump *j)
{
	return j->n;
}

uint64_t jitdump_bad(const struct jitdump *j)
{
	return j->bad;
}
