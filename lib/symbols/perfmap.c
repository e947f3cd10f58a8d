/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Entries are sorted by address, with a radix sort: maps of long-lived processes have millions, in
 * no order. A sweep over them cuts them into disjoint pieces; its heap holds the entries that cover
 * the current address, newest on top.
 */
#include "symbols/perfmap.h"
#include "base/fs.h"
#include "base/search.h"

#include <errno.h>
#include <string.h>

#define NAME_MAX_BYTES 65536 /* no function has a longer name: the line is malformed */

struct entry {
	uint64_t start, end;
	uint32_t name; /* offset into the text */
	uint32_t order; /* highest = newest */
};

struct piece {
	uint64_t start, end;
	uint32_t entry;
};

struct perfmap {
	char *text; /* names end in NUL */
	struct entry *entries; /* sorted by start */
	size_t n, cap;
	struct piece *pieces; /* sorted by address, disjoint */
	size_t n_pieces, max_pieces;
	uint64_t bad;
};

/* --- lines --- */

static int digit(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parse the number at *P and move *P behind it and the blanks after it. HotSpot writes 0x before it. */
static bool take_number(const char **p, const char *end, uint64_t *ret)
{
	const char *at = *p;
	uint64_t v = 0;
	int d;

	if (end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
		at += 2;
	if (at == end || digit((unsigned char)*at) < 0)
		return false;
	for (; at < end && (d = digit((unsigned char)*at)) >= 0; at++) {
		if (v >> 60)
			return false;
		v = v << 4 | (uint64_t)d;
	}
	if (at == end || (*at != ' ' && *at != '\t'))
		return false;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	*p = at;
	*ret = v;
	return true;
}

/* Parse the line from P to END, where a NUL has replaced its newline. */
static bool take_line(const struct perfmap *m, const char *p, const char *end, struct entry *ret)
{
	uint64_t size;

	if (!take_number(&p, end, &ret->start) || !take_number(&p, end, &size))
		return false;
	if (p == end || end - p > NAME_MAX_BYTES || memchr(p, '\0', (size_t)(end - p)))
		return false;
	if (!size || size > UINT64_MAX - ret->start)
		return false;
	ret->end = ret->start + size;
	ret->name = (uint32_t)(p - m->text);
	ret->order = (uint32_t)m->n;
	return true;
}

/* A last line without a newline is malformed: it is still being written, and its name may be incomplete. */
static int take_lines(struct perfmap *m, size_t len, struct err *e)
{
	char *p = m->text, *end = m->text + len;

	while (p < end) {
		char *newline = memchr(p, '\n', (size_t)(end - p));
		struct entry entry;

		if (newline)
			*newline = '\0';
		if (!newline || !take_line(m, p, newline, &entry)) {
			m->bad += !newline || newline != p;
		} else {
			if (m->n == PERFMAP_ENTRIES_MAX)
				return err_set(
					e, -EFBIG, "a perf map of more than %u entries", PERFMAP_ENTRIES_MAX);
			if (base_grow(&m->entries, &m->cap, m->n + 1, sizeof(*m->entries)) != 0)
				return err_nomem(e, "the entries of a perf map");
			m->entries[m->n++] = entry;
		}
		p = newline ? newline + 1 : end;
	}
	return 0;
}

/* --- order --- */

static bool is_sorted(const struct perfmap *m)
{
	for (size_t i = 1; i < m->n; i++)
		if (m->entries[i - 1].start > m->entries[i].start)
			return false;
	return true;
}

/* One stable pass by the byte of `start` at SHIFT; false if all have the same byte. */
static bool sort_pass(const struct entry *from, struct entry *to, size_t n, unsigned int shift)
{
	size_t at[256] = { 0 }, sum = 0;

	for (size_t i = 0; i < n; i++)
		at[from[i].start >> shift & 0xff]++;
	if (at[from[0].start >> shift & 0xff] == n)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		size_t count = at[i];

		at[i] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[at[from[i].start >> shift & 0xff]++] = from[i];
	return true;
}

static int sort_entries(struct perfmap *m, struct err *e)
{
	struct entry *other, *swap;

	if (is_sorted(m))
		return 0;
	other = malloc(m->n * sizeof(*other));
	if (!other)
		return err_nomem(e, "sorting a perf map");
	for (unsigned int shift = 0; shift < 64; shift += 8)
		if (sort_pass(m->entries, other, m->n, shift)) {
			swap = m->entries;
			m->entries = other;
			other = swap;
			m->cap = m->n;
		}
	free(other);
	return 0;
}

/* --- pieces --- */

/* A heap of entries (indexes into `entries`), newest first. */
struct heap {
	uint32_t *at;
	size_t n, cap;
};

static bool newer(const struct perfmap *m, uint32_t a, uint32_t b)
{
	return m->entries[a].order > m->entries[b].order;
}

static int heap_push(const struct perfmap *m, struct heap *h, uint32_t entry)
{
	size_t i;

	if (base_grow(&h->at, &h->cap, h->n + 1, sizeof(*h->at)) != 0)
		return -ENOMEM;
	for (i = h->n++; i && newer(m, entry, h->at[(i - 1) / 2]); i = (i - 1) / 2)
		h->at[i] = h->at[(i - 1) / 2];
	h->at[i] = entry;
	return 0;
}

static void heap_pop(const struct perfmap *m, struct heap *h)
{
	uint32_t last = h->at[--h->n];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < h->n) {
		if (child + 1 < h->n && newer(m, h->at[child + 1], h->at[child]))
			child++;
		if (!newer(m, h->at[child], last))
			break;
		h->at[i] = h->at[child];
		i = child;
	}
	h->at[i] = last;
}

static int add_piece(struct perfmap *m, uint64_t start, uint64_t end, uint32_t entry)
{
	struct piece *last = m->n_pieces ? &m->pieces[m->n_pieces - 1] : NULL;

	if (last && last->entry == entry && last->end == start) {
		last->end = end;
		return 0;
	}
	if (base_grow(&m->pieces, &m->max_pieces, m->n_pieces + 1, sizeof(*m->pieces)) != 0)
		return -ENOMEM;
	m->pieces[m->n_pieces++] = (struct piece){ start, end, entry };
	return 0;
}

/* Each iteration adds or removes an entry: at most 2n iterations. */
static int sweep(struct perfmap *m, struct heap *h)
{
	uint64_t at = 0, to;
	size_t next = 0;
	int rc = 0;

	while (!rc && (next < m->n || h->n)) {
		while (h->n && m->entries[h->at[0]].end <= at)
			heap_pop(m, h);
		if (!h->n && next < m->n)
			at = MAX(at, m->entries[next].start);
		for (; !rc && next < m->n && m->entries[next].start <= at; next++)
			rc = heap_push(m, h, (uint32_t)next);
		if (rc || !h->n)
			continue;
		to = m->entries[h->at[0]].end;
		if (next < m->n)
			to = MIN(to, m->entries[next].start);
		if (to > at) {
			rc = add_piece(m, at, to, h->at[0]);
			at = to;
		}
	}
	return rc;
}

static int cut(struct perfmap *m, struct err *e)
{
	struct heap h = { 0 };
	int rc = sort_entries(m, e);

	if (rc)
		return rc;
	rc = sweep(m, &h);
	free(h.at);
	return rc ? err_nomem(e, "the ranges of a perf map") : 0;
}

/* --- the module --- */

/* The map owns TEXT (LEN bytes) from now on. */
static int parse(char *text, size_t len, struct perfmap **ret, struct err *e)
{
	struct perfmap *m = calloc(1, sizeof(*m));
	int rc;

	if (!m) {
		free(text);
		return err_nomem(e, "a perf map");
	}
	m->text = text;
	rc = take_lines(m, len, e);
	rc = rc ? rc : cut(m, e);
	if (rc) {
		perfmap_free(m);
		return rc;
	}
	*ret = m;
	return 0;
}

int perfmap_parse(const char *text, size_t len, struct perfmap **ret, struct err *e)
{
	char *copy;

	if (len > PERFMAP_BYTES_MAX)
		return err_set(e, -EFBIG, "a perf map of more than %llu bytes",
			(unsigned long long)PERFMAP_BYTES_MAX);
	copy = malloc(len + 1);
	if (!copy)
		return err_nomem(e, "a perf map");
	if (len)
		memcpy(copy, text, len);
	return parse(copy, len, ret, e);
}

int perfmap_load(int fd, struct perfmap **ret, uint64_t *size, struct err *e)
{
	char *text;
	size_t len;
	int rc = readfd_all(fd, PERFMAP_BYTES_MAX, &text, &len, e);

	if (rc)
		return rc;
	*size = len;
	return parse(text, len, ret, e);
}

void perfmap_free(struct perfmap *m)
{
	if (!m)
		return;
	free(m->text);
	free(m->entries);
	free(m->pieces);
	free(m);
}

bool perfmap_find(const struct perfmap *m, uint64_t addr, struct perfmap_hit *ret)
{
	size_t low;
	const struct entry *entry;
	const struct piece *p;

	low = PARTITION_POINT(0, m->n_pieces, mid, m->pieces[mid].end <= addr);
	p = &m->pieces[low];
	if (low == m->n_pieces || addr < p->start)
		return false;
	entry = &m->entries[p->entry];
	*ret = (struct perfmap_hit){ .start = entry->start,
		.end = entry->end,
		.piece_start = p->start,
		.piece_end = p->end,
		.name = m->text + entry->name };
	return true;
}

size_t perfmap_count(const struct perfmap *m)
{
	return m->n;
}

uint64_t perfmap_bad(const struct perfmap *m)
{
	return m->bad;
}
