/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/elfmatch.h"
#include "elf/elfcode.h"
#include "elf/elfsym.h"

#include <errno.h>

#define NONE UINT32_MAX
#define PIECE (24 * 4096) /* bytes of a table in memory: whole entries of both classes */
#define NAME_STEP 256 /* bytes of a name that are read at first */
#define NAME_COST 1024 /* bytes of a string table that are read as fast as one name alone */
#define SYMBOLS_PER_ADDR 4 /* fewer symbols than that for each address: the index is faster */
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
	size_t symbols;
	bool any;
	uint8_t *strings[2]; /* whole tables of names, or */
	char *names; /* those alone that are wanted, or */
	struct elfsym *index; /* which has the names itself */
};

struct match {
	struct elfcode code;
	const uint64_t *vaddrs;
	size_t n;
	struct query *queries;
	uint32_t *winners; /* names, as offsets in their table */
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
	const size_t strings_len = m->code.tables[k].strings->size,
		     size = elfcode_symbol_size(m->code.f->is64);
	const uint64_t last = m->vaddrs[m->n - 1];
	const struct elfcode_span *in = NULL;

	for (size_t i = 0; i < n; i++, index++) {
		struct elfcode_symbol y = elfcode_symbol(m->code.f->is64, p + i * size);
		struct cand c = { .start = y.value, .name = y.name, .index = index };

		if (!y.name || !elfcode_names_code(m->code.f, &y, strings_len) || (m->any && y.value > last))
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
	/* whose bytes are no symbols, and no names */
	if ((t->syms->flags | t->strings->flags) & SHF_COMPRESSED)
		return err_set(e, -EINVAL, "its %s is compressed", elfcode_table_name(k));
	if (t->strings->offset > m->code.f->size || t->strings->size > m->code.f->size - t->strings->offset)
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
	ret->hits[i] = (struct elfmatch_hit){ .start = c->start,
		.index = c->index,
		.beyond = beyond,
		.dynamic = c->index >= m->code.tables[0].n };
	m->winners[i] = c->name;
}

static bool same_section(const struct match *m, uint64_t a, uint64_t b)
{
	return elfcode_spans_find(&m->code.spans, a) == elfcode_spans_find(&m->code.spans, b);
}

/* What begins or ends before an address does so before the next one too. */
static void decide(struct match *m, struct elfmatch *ret)
{
	const struct query *label = NULL;
	const struct cand *before = NULL;

	for (size_t i = 0; i < m->n; i++) {
		const struct query *q = &m->queries[i];
		const uint64_t at = m->vaddrs[i];

		ret->hits[i] = (struct elfmatch_hit){ .index = NONE };
		if (q->any)
			label = q->label.index != NONE ? q : NULL;
		if (q->before.index != NONE)
			before = &q->before;
		if (q->in.index != NONE)
			put_hit(m, ret, i, &q->in, 0);
		else if (label && at < label->limit)
			put_hit(m, ret, i, &label->label, 0);
		else if (before && same_section(m, at, before->end - 1))
			put_hit(m, ret, i, before, at - before->end + 1);
	}
}

/* --- their names --- */

/* Names that are read one by one: where they begin, until all of them are there. */
struct names {
	char *p;
	size_t len, cap;
};

/* The name at OFFSET of a string table, with its NUL. */
static int read_name(const struct match *m, const struct elffile_section *strings, uint32_t offset,
	struct names *to, struct err *e)
{
	uint64_t left = strings->size - offset, at = strings->offset + offset;

	for (size_t step = NAME_STEP; left; step *= 2) {
		const size_t n = MIN(step, left);
		const char *nul;
		int rc;

		if (base_grow(&to->p, &to->cap, to->len + n + 1, 1) != 0)
			return err_nomem(e, "symbol names");
		rc = elffile_read_at(m->code.f, at, to->p + to->len, n, e);
		if (rc)
			return err_prefix(e, "the names of its symbols"), rc;
		nul = memchr(to->p + to->len, 0, n);
		to->len = nul ? (size_t)(nul - to->p) : to->len + n;
		if (nul)
			break;
		at += n;
		left -= n;
	}
	to->p[to->len++] = '\0';
	return 0;
}

/* Of neighbours with the same symbol the first one has the name read. */
static bool is_new(const struct elfmatch *r, size_t i)
{
	return r->hits[i].index != NONE && (i == 0 || r->hits[i].index != r->hits[i - 1].index);
}

/* The whole table where that costs less than the names alone. */
static int read_tables(struct match *m, struct elfmatch *ret, struct err *e)
{
	uint64_t wanted[2] = { 0 };

	for (size_t i = 0; i < m->n; i++)
		wanted[ret->hits[i].dynamic] += is_new(ret, i);
	for (size_t k = 0; k < 2; k++) {
		const struct elfcode_table *t = &m->code.tables[k];
		size_t len;

		if (!wanted[k] || wanted[k] * NAME_COST < t->strings->size)
			continue;
		if (elffile_read(m->code.f, t->strings, &ret->strings[k], &len, e) != 0)
			return err_prefix(e, "the string table of its %s", elfcode_table_name(k)), -EINVAL;
	}
	return 0;
}

/* Where the names of winners are that have no table in memory. -EFBIG for names without end. */
static int read_alone(struct match *m, struct elfmatch *ret, size_t *places, struct err *e)
{
	struct names alone = { 0 };
	int rc = 0;

	for (size_t i = 0; i < m->n && rc == 0; i++) {
		const bool dynamic = ret->hits[i].dynamic;

		if (ret->hits[i].index == NONE || ret->strings[dynamic])
			continue;
		places[i] = is_new(ret, i) ? alone.len : places[i - 1];
		if (is_new(ret, i))
			rc = read_name(m, m->code.tables[dynamic].strings, m->winners[i], &alone, e);
		if (rc == 0 && alone.len > m->code.f->size)
			rc = -EFBIG;
	}
	ret->names = alone.p;
	return rc;
}

static int read_names(struct match *m, struct elfmatch *ret, struct err *e)
{
	_cleanup_free_ size_t *places = malloc((m->n + 1) * sizeof(*places));
	int rc = places ? read_tables(m, ret, e) : err_nomem(e, "symbol names");

	rc = rc ? rc : read_alone(m, ret, places, e);
	for (size_t i = 0; i < m->n && rc == 0; i++) {
		struct elfmatch_hit *h = &ret->hits[i];
		const char *table = (const char *)ret->strings[h->dynamic];

		if (h->index == NONE)
			continue;
		h->name = table ? table + m->winners[i] : ret->names + places[i];
		if (!*h->name)
			*h = (struct elfmatch_hit){ .index = NONE };
	}
	return rc;
}

/* --- all of it --- */

static int answer_by_index(const struct match *m, struct elfmatch *ret, struct err *e)
{
	int rc = elfsym_load(m->code.f, &ret->index, e);

	if (rc)
		return rc;
	ret->any = elfsym_ranges(ret->index) > 0;
	for (size_t i = 0; i < m->n; i++) {
		struct elfsym_hit hit;
		uint64_t beyond = 0;

		ret->hits[i] = (struct elfmatch_hit){ .index = NONE };
		if (!elfsym_find(ret->index, m->vaddrs[i], &hit) &&
			!elfsym_before(ret->index, m->vaddrs[i], &hit, &beyond))
			continue;
		ret->hits[i] = (struct elfmatch_hit){ .name = hit.name,
			.start = hit.start,
			.beyond = beyond,
			.index = hit.index,
			.dynamic = hit.dynamic };
	}
	return 0;
}

static int alloc_queries(struct match *m)
{
	m->queries = calloc(m->n + 1, sizeof(*m->queries));
	m->winners = calloc(m->n + 1, sizeof(*m->winners));
	if (!m->queries || !m->winners)
		return -ENOMEM;
	for (size_t i = 0; i < m->n; i++)
		m->queries[i].in.index = m->queries[i].label.index = m->queries[i].before.index = NONE;
	return make_buckets(m);
}

static int run(struct match *m, struct elfmatch *ret, struct err *e)
{
	int rc = elfcode_open(m->code.f, &m->code, e);

	if (rc)
		return rc;
	ret->symbols = m->code.tables[0].n + m->code.tables[1].n;
	if (!m->n)
		return 0;
	ret->hits = malloc(m->n * sizeof(*ret->hits));
	if (!ret->hits)
		return err_nomem(e, "addresses");
	if (ret->symbols / SYMBOLS_PER_ADDR < m->n)
		return answer_by_index(m, ret, e);
	if (alloc_queries(m) != 0)
		return err_nomem(e, "addresses");
	rc = match_all(m, e);
	ret->any = m->any;
	if (rc)
		return rc;
	if (m->give_up)
		return answer_by_index(m, ret, e);
	decide(m, ret);
	rc = read_names(m, ret, e);
	return rc == -EFBIG ? answer_by_index(m, ret, e) : rc;
}

int elfmatch_run(
	const struct elffile *f, const uint64_t *vaddrs, size_t n, struct elfmatch **ret, struct err *e)
{
	struct match m = { .code.f = f, .vaddrs = vaddrs, .n = n };
	struct elfmatch *r = calloc(1, sizeof(*r));
	int rc = r && n <= UINT32_MAX / 4 ? run(&m, r, e) : err_nomem(e, "addresses");

	elfcode_spans_free(&m.code.spans);
	free(m.queries);
	free(m.winners);
	free(m.buckets);
	if (rc) {
		elfmatch_free(r);
		return rc;
	}
	*ret = r;
	return 0;
}

void elfmatch_free(struct elfmatch *m)
{
	if (!m)
		return;
	free(m->hits);
	free(m->strings[0]);
	free(m->strings[1]);
	free(m->names);
	elfsym_free(m->index);
	free(m);
}

const struct elfmatch_hit *elfmatch_hits(const struct elfmatch *m)
{
	return m->hits;
}

size_t elfmatch_symbols(const struct elfmatch *m)
{
	return m->symbols;
}

bool elfmatch_any(const struct elfmatch *m)
{
	return m->any;
}
