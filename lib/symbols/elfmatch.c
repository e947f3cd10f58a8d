/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elfmatch.h"
#include "elfcode.h"
#include "elfsym.h"

#include <errno.h>

#define NONE UINT32_MAX
#define PIECE (24 * 4096) /* bytes of a table in memory: whole entries of both classes */
#define NAME_STEP 256 /* bytes of a name that are read at first */
#define NAME_COST 1024 /* bytes of a string table that are read as fast as one name alone */
#define VISITS_PER_ADDR 16 /* symbols that cover one address, on average, before it is taken as hostile */

/* A symbol that may name an address. */
struct cand {
	uint64_t start, end; /* end == start: no size */
	uint32_t name, index; /* NONE = no symbol */
	bool typed;
};

/*
 * What is known of an address, and of the room between it and the one
 * before: where symbols begin there (`latest`), and where they end.
 */
struct query {
	struct cand in; /* covers the address */
	struct cand label; /* without a size, at `latest` */
	struct cand before; /* ends last, at or before the address; for files without .symtab */
	uint64_t latest; /* start of the last symbol at or before the address */
	uint64_t limit; /* of the label: end of its section */
	bool any; /* `latest` is set */
};

struct elfmatch {
	struct elfmatch_hit *hits;
	size_t n, symbols;
	bool any;
	char *names;
	struct elfsym *slow; /* has the names instead */
};

struct match {
	struct elfcode code;
	const uint64_t *vaddrs;
	size_t n;
	struct query *queries;
	uint32_t *buckets; /* first address of each, and of the one behind them all */
	size_t n_buckets;
	unsigned int shift;
	uint64_t visits;
	bool any, give_up;
};

/* --- where an address is among those asked for --- */

/* A table over the high bits, about two buckets an address, so that few steps of a search are left. */
static int make_buckets(struct match *m)
{
	uint64_t range = m->vaddrs[m->n - 1] - m->vaddrs[0];
	size_t at = 0;

	while (range >> m->shift > 2 * m->n)
		m->shift++;
	m->n_buckets = (size_t)(range >> m->shift) + 1;
	m->buckets = malloc((m->n_buckets + 1) * sizeof(*m->buckets));
	if (!m->buckets)
		return -ENOMEM;
	for (size_t b = 0; b < m->n_buckets; b++) {
		while (at < m->n && (m->vaddrs[at] - m->vaddrs[0]) >> m->shift < b)
			at++;
		m->buckets[b] = (uint32_t)at;
	}
	m->buckets[m->n_buckets] = (uint32_t)m->n;
	return 0;
}

/* The first address that is not below V; n when all are. */
static size_t first_from(const struct match *m, uint64_t v)
{
	size_t lo, hi, b;

	if (v <= m->vaddrs[0])
		return 0;
	if (v > m->vaddrs[m->n - 1])
		return m->n;
	b = (size_t)((v - m->vaddrs[0]) >> m->shift);
	lo = m->buckets[b];
	hi = m->buckets[b + 1];
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->vaddrs[mid] < v)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* --- which symbol is to be seen --- */

/* Of two with the same start; those of the first table come first. */
static bool better(const struct cand *a, const struct cand *b)
{
	if (b->index == NONE)
		return true;
	if (a->typed != b->typed)
		return a->typed;
	if (a->end != b->end)
		return a->end < b->end;
	return a->index < b->index;
}

/* The one that starts later is nested in the other. */
static bool is_inner(const struct cand *a, const struct cand *b)
{
	if (b->index == NONE || a->start != b->start)
		return b->index == NONE || a->start > b->start;
	return better(a, b);
}

static void take_label(struct query *q, const struct cand *c, uint64_t limit)
{
	if (better(c, &q->label)) {
		q->label = *c;
		q->limit = limit;
	}
}

/* The last start before an address decides which label, if any, reaches to it. */
static void take_start(struct query *q, const struct cand *c, uint64_t limit)
{
	if (!q->any || c->start > q->latest) {
		q->any = true;
		q->latest = c->start;
		q->label.index = NONE;
	}
	if (c->start == q->latest && c->end == c->start)
		take_label(q, c, limit);
}

static void take_end(struct match *m, const struct cand *c)
{
	size_t i = first_from(m, c->end);
	struct cand *b;

	if (i == m->n)
		return;
	b = &m->queries[i].before;
	if (b->index == NONE || c->end > b->end || (c->end == b->end && is_inner(c, b)))
		*b = *c;
}

static void take(struct match *m, const struct cand *c, uint64_t limit, size_t first)
{
	take_start(&m->queries[first], c, limit);
	if (c->end == c->start)
		return;
	for (size_t i = first; i < m->n && m->vaddrs[i] < c->end; i++, m->visits++)
		if (is_inner(c, &m->queries[i].in))
			m->queries[i].in = *c;
	if (!m->code.tables[0].n)
		take_end(m, c);
}

/* --- the pass --- */

static void match_piece(struct match *m, size_t k, const uint8_t *p, size_t n, uint32_t index)
{
	const size_t strings_len = m->code.tables[k].strings->size, size = elfcode_symbol_size(m->code.f->is64);
	const uint64_t last = m->vaddrs[m->n - 1];
	const struct elfcode_span *in = NULL;

	for (size_t i = 0; i < n; i++, index++) {
		struct elfcode_symbol y = elfcode_symbol(m->code.f->is64, p + i * size);
		struct cand c = { .start = y.value, .name = y.name, .index = index };

		if (!y.name || !elfcode_names_code(&y, strings_len) || (m->any && y.value > last))
			continue;
		if (!in || y.value < in->start || y.value >= in->end)
			in = elfcode_spans_find(&m->code.spans, y.value);
		if (!in)
			continue;
		m->any = true;
		if (y.value > last)
			continue;
		c.end = y.value + MIN(y.size, in->end - y.value);
		c.typed = y.type != STT_NOTYPE;
		take(m, &c, in->end, first_from(m, y.value));
	}
}

static int match_table(struct match *m, size_t k, uint32_t index, uint8_t *piece, struct err *e)
{
	const struct elfcode_table *t = &m->code.tables[k];
	const size_t size = elfcode_symbol_size(m->code.f->is64), most = PIECE / size;

	if (!t->n)
		return 0;
	if (t->syms->type == SHT_NOBITS || t->syms->flags & SHF_COMPRESSED ||
		t->strings->offset > m->code.f->size ||
		t->strings->size > m->code.f->size - t->strings->offset)
		return err_set(e, -EINVAL, "the string table of its %s points outside the file",
			elfcode_table_name(k));
	for (size_t done = 0, n; done < t->n && !m->give_up; done += n) {
		int rc;

		n = MIN(t->n - done, most);
		rc = elffile_read_at(m->code.f, t->syms->offset + done * size, piece, n * size, e);
		if (rc)
			return err_prefix(e, "its %s", elfcode_table_name(k)), rc;
		match_piece(m, k, piece, n, index + (uint32_t)done);
		m->give_up = m->visits > VISITS_PER_ADDR * (m->n + m->code.tables[0].n + m->code.tables[1].n);
	}
	return 0;
}

static int match_all(struct match *m, struct err *e)
{
	_cleanup_free_ uint8_t *piece = malloc(PIECE);
	int rc;

	if (!piece)
		return err_nomem(e, "a symbol table");
	rc = match_table(m, 0, 0, piece, e);
	return rc ? rc : match_table(m, 1, (uint32_t)m->code.tables[0].n, piece, e);
}

/* --- the winners --- */

static void put_hit(struct match *m, struct elfmatch *ret, size_t i, const struct cand *c, uint64_t beyond)
{
	ret->hits[i].start = c->start;
	ret->hits[i].index = c->index;
	ret->hits[i].beyond = beyond;
	ret->hits[i].dynamic = c->index >= m->code.tables[0].n;
}

/* What begins or ends before an address does so before the next one too. */
static void decide(struct match *m, struct elfmatch *ret)
{
	const struct query *label = NULL;
	const struct cand *before = NULL;

	for (size_t i = 0; i < m->n; i++) {
		struct query *q = &m->queries[i];
		const uint64_t at = m->vaddrs[i];

		ret->hits[i].index = NONE;
		if (q->any)
			label = q->label.index != NONE ? q : NULL;
		if (q->before.index != NONE)
			before = &q->before;
		if (q->in.index != NONE)
			put_hit(m, ret, i, &q->in, 0);
		else if (label && at < label->limit)
			put_hit(m, ret, i, &label->label, 0);
		else if (before && elfcode_spans_find(&m->code.spans, at) ==
					   elfcode_spans_find(&m->code.spans, before->end - 1))
			put_hit(m, ret, i, before, at - before->end + 1);
		q->in.name = q->in.index != NONE ? q->in.name : label ? label->label.name : 0;
		if (ret->hits[i].beyond)
			q->in.name = before->name;
	}
}

/* The name at OFFSET of strings S, alone, into B behind what it has. */
static int read_name(const struct match *m, const struct elfcode_table *t, uint32_t offset, char **names,
	size_t *len, size_t *cap, struct err *e)
{
	uint64_t left = t->strings->size - offset, at = t->strings->offset + offset;
	size_t from = *len;

	for (size_t step = NAME_STEP; left; step *= 2) {
		size_t n = MIN(step, left);
		char *nul;
		int rc;

		if (base_grow(names, cap, *len + n + 1, 1) != 0)
			return err_nomem(e, "symbol names");
		rc = elffile_read_at(m->code.f, at, *names + *len, n, e);
		if (rc)
			return err_prefix(e, "the names of its symbols"), rc;
		nul = memchr(*names + *len, 0, n);
		if (nul) {
			*len = (size_t)(nul - *names) + 1;
			return *len - 1 > from ? 0 : -ENODATA;
		}
		*len += n;
		at += n;
		left -= n;
	}
	(*names)[(*len)++] = '\0';
	return 0;
}
