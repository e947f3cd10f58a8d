/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/symbols.h"
#include "base/search.h"

#include <elf.h>
#include <errno.h>

#define SYMBOLS_MAX (UINT32_MAX / 4)
#define RANK_BYTES 7 /* of a name decide which alias is taken */

const char *elfcode_table_name(size_t k)
{
	return k == 0 ? ".symtab" : ".dynsym";
}

static int find_table(const struct elffile *f, size_t k, struct elfcode_table *t, struct err *e)
{
	const char *what = elfcode_table_name(k);
	const struct elffile_section *sec = NULL;

	for (size_t i = 0; i < f->n_sections && !sec; i++)
		if (f->sections[i].type == (k == 0 ? SHT_SYMTAB : SHT_DYNSYM))
			sec = &f->sections[i];
	if (!sec) /* a debug file keeps the header of .dynsym as NOBITS: also absent */
		return 0;
	if (sec->entsize != elfcode_symbol_size(f->is64))
		return err_set(e, -EINVAL, "its %s has entries of %llu bytes", what,
			(unsigned long long)sec->entsize);
	if (sec->link >= f->n_sections || f->sections[sec->link].type != SHT_STRTAB)
		return err_set(e, -EINVAL, "its %s has no string table", what);
	if (sec->size / sec->entsize > SYMBOLS_MAX)
		return err_set(e, -EINVAL, "its %s claims too many symbols", what);
	*t = (struct elfcode_table){ sec, &f->sections[sec->link], sec->size / sec->entsize };
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct elfcode_span *x = a, *y = b;

	return CMP(x->start, y->start);
}

static int find_spans(const struct elffile *f, struct elfcode_spans *ret, struct err *e)
{
	ret->p = calloc(f->n_sections + 1, sizeof(*ret->p));
	if (!ret->p)
		return err_nomem(e, "sections");
	for (size_t i = 0; i < f->n_sections; i++) {
		const struct elffile_section *s = &f->sections[i];

		if ((s->flags & SHF_ALLOC) && (s->flags & SHF_EXECINSTR) && s->size &&
			s->addr <= UINT64_MAX - s->size)
			ret->p[ret->n++] = (struct elfcode_span){ s->addr, s->addr + s->size };
	}
	qsort(ret->p, ret->n, sizeof(*ret->p), by_start);
	for (size_t i = 1; i < ret->n; i++) /* make them disjoint */
		ret->p[i - 1].end = MIN(ret->p[i - 1].end, ret->p[i].start);
	return 0;
}

int elfcode_open(const struct elffile *f, struct elfcode *ret, struct err *e)
{
	int rc = 0;

	*ret = (struct elfcode){ .f = f };
	for (size_t k = 0; k < ARRAY_LEN(ret->tables) && rc == 0; k++)
		rc = find_table(f, k, &ret->tables[k], e);
	return rc ? rc : find_spans(f, &ret->spans, e);
}

void elfcode_spans_free(struct elfcode_spans *s)
{
	free(s->p);
	*s = (struct elfcode_spans){ 0 };
}

/* The section that contains ADDR, or NULL. O(log n). */
static const struct elfcode_span *elfcode_spans_find(const struct elfcode_spans *s, uint64_t addr)
{
	size_t lo = PARTITION_POINT(0, s->n, mid, s->p[mid].start <= addr);

	return lo && addr < s->p[lo - 1].end ? &s->p[lo - 1] : NULL;
}

#define GAP UINT32_MAX

/* One symbol table with its strings, as in the file. */
struct table {
	uint8_t *syms;
	char *strings;
	size_t n, strings_len;
};

struct elfsym {
	struct table tables[2]; /* .symtab, .dynsym */
	struct elfcode_spans spans;
	bool is64;
	uint64_t *starts; /* of the ranges, ascending; a range ends where the next one starts */
	uint32_t *owners; /* index of the symbol that names it, or GAP */
	size_t n;
};

/* A symbol that can name code, while the ranges are built. */
struct func {
	uint64_t start, end; /* end == start: no size */
	uint64_t limit; /* end of its section */
	uint32_t index;
	bool typed; /* a function, not just a label */
	bool local;
};

struct funcs {
	struct func *p;
	size_t n;
};

/* I must be in range. */
static struct elfcode_symbol get_symbol(const struct elfsym *s, const struct table *t, size_t i)
{
	return elfcode_symbol(s->is64, t->syms + i * elfcode_symbol_size(s->is64));
}

static const struct table *table_of(const struct elfsym *s, uint32_t *index)
{
	if (*index < s->tables[0].n)
		return &s->tables[0];
	*index -= (uint32_t)s->tables[0].n;
	return &s->tables[1];
}

static int load_table(const struct elfcode *c, size_t k, struct table *t, struct err *e)
{
	const struct elfcode_table *from = &c->tables[k];
	size_t len;
	int rc;

	if (!from->n)
		return 0;
	rc = elffile_read(c->f, from->syms, &t->syms, &len, e);
	if (rc)
		return err_prefix(e, "its %s", elfcode_table_name(k)), rc;
	rc = elffile_read(c->f, from->strings, (uint8_t **)&t->strings, &t->strings_len, e);
	if (rc)
		return err_prefix(e, "the string table of its %s", elfcode_table_name(k)), rc;
	t->n = from->n;
	return 0;
}

static int collect(const struct elfsym *s, const struct elffile *f, struct funcs *out)
{
	const struct elfcode_span *in = NULL;
	uint32_t index = 0;

	out->p = malloc((elfsym_count(s) + 1) * sizeof(*out->p));
	if (!out->p)
		return -ENOMEM;
	for (size_t k = 0; k < 2; k++) {
		const struct table *t = &s->tables[k];

		for (size_t i = 0; i < t->n; i++, index++) {
			struct elfcode_symbol y = get_symbol(s, t, i);

			if (!elfcode_names_code(f, &y, t->strings_len))
				continue;
			if (!in || y.value < in->start || y.value >= in->end)
				in = elfcode_spans_find(&s->spans, y.value);
			if (!in)
				continue;
			out->p[out->n++] = (struct func){ .start = y.value,
				.end = y.value + MIN(y.size, in->end - y.value),
				.limit = in->end,
				.index = index,
				.typed = y.type != STT_NOTYPE,
				.local = y.local };
		}
	}
	return 0;
}

/* Stable radix sort, least significant byte first. Bytes that are the same in all keys are skipped. */
static int sort_by_start(struct funcs *fs)
{
	uint64_t all_or = 0, all_and = UINT64_MAX;
	struct func *from = fs->p, *to;

	if (!fs->n)
		return 0;

	for (size_t i = 0; i < fs->n; i++) {
		all_or |= from[i].start;
		all_and &= from[i].start;
	}
	if (all_or == all_and)
		return 0;
	to = malloc(fs->n * sizeof(*to));
	if (!to)
		return -ENOMEM;
	for (unsigned int shift = 0; shift < 64; shift += 8) {
		size_t at[257] = { 0 };

		if (!((all_or ^ all_and) >> shift & 255))
			continue;
		for (size_t i = 0; i < fs->n; i++)
			at[(from[i].start >> shift & 255) + 1]++;
		for (size_t b = 1; b < 256; b++)
			at[b] += at[b - 1];
		for (size_t i = 0; i < fs->n; i++)
			to[at[from[i].start >> shift & 255]++] = from[i];
		struct func *swap = from;

		from = to;
		to = swap;
	}
	free(to);
	fs->p = from;
	return 0;
}

/* I must be an index of S. */
static const char *name_of(const struct elfsym *s, uint32_t i)
{
	const struct table *t = table_of(s, &i);

	return t->strings + get_symbol(s, t, i).name;
}

/*
 * Of aliases the one with the lowest rank is the public one: "select" before "__select", but the vdso's own
 * names before those that libc has too. Reads at most RANK_BYTES of NAME.
 */
static unsigned int alias_rank(const char *name)
{
	static const char vdso[] = "__vdso_";
	unsigned int n = 0;

	if (strncmp(name, vdso, sizeof(vdso) - 1) == 0)
		return 0;
	while (n < RANK_BYTES && name[n] == '_')
		n++;
	return n + 1;
}

/* Of two with the same start: does A win where both cover an address? */
static bool better(const struct elfsym *s, const struct func *a, const struct func *b)
{
	unsigned int x, y;

	if (a->typed != b->typed)
		return a->typed;
	if (a->end != b->end)
		return a->end < b->end;
	if (a->local != b->local)
		return b->local;
	x = alias_rank(name_of(s, a->index));
	y = alias_rank(name_of(s, b->index));
	return x != y ? x < y : a->index < b->index;
}

static void put_range(struct elfsym *s, uint64_t start, uint32_t owner)
{
	if (s->n && s->owners[s->n - 1] == owner)
		return;
	if (s->n && s->starts[s->n - 1] == start)
		s->n--;
	s->starts[s->n] = start;
	s->owners[s->n++] = owner;
}

/*
 * Allocate the ranges of N functions: a new range begins only where a function
 * starts, where one ends, or where a section ends behind one without a size.
 */
static int alloc_ranges(struct elfsym *s, size_t n)
{
	s->starts = malloc((3 * n + 1) * sizeof(*s->starts));
	s->owners = malloc((3 * n + 1) * sizeof(*s->owners));
	return s->starts && s->owners ? 0 : -ENOMEM;
}

/* A sweep over the sorted functions: what covers the current address, innermost last. */
struct sweep {
	struct elfsym *s;
	struct func *stack;
	size_t depth, cap;
	const struct func *label; /* the last one without a size */
	uint64_t at; /* all addresses below have their range */
};

/* Set the ranges from sw->at up to END, where the next function starts. */
static void sweep_to(struct sweep *sw, uint64_t end)
{
	while (sw->at < end) {
		const struct func *top;
		uint64_t until = end;
		uint32_t owner = GAP;

		while (sw->depth && sw->stack[sw->depth - 1].end <= sw->at)
			sw->depth--;
		top = sw->depth ? &sw->stack[sw->depth - 1] : NULL;
		if (top) {
			until = MIN(end, top->end);
			owner = top->index;
		} else if (sw->label && sw->at < sw->label->limit) {
			until = MIN(end, sw->label->limit);
			owner = sw->label->index;
		}
		put_range(sw->s, sw->at, owner);
		sw->at = until;
	}
}

/*
 * Push the functions [from, from + n) that share a start, so that the best one
 * ends on top. N is mostly 1. If a hostile table makes it huge, only the best
 * one is pushed, which keeps this linear.
 */
static int sweep_push(struct sweep *sw, const struct func *from, size_t n)
{
	size_t first = sw->depth;
	const struct func *label = NULL, *best = NULL;

	for (size_t i = 0; i < n; i++) {
		if (from[i].end == from[i].start)
			label = !label || better(sw->s, &from[i], label) ? &from[i] : label;
		else
			best = !best || better(sw->s, &from[i], best) ? &from[i] : best;
	}
	if (label || best)
		sw->label = label; /* a symbol with a size ends the range of a label before it */
	if (!best)
		return 0;
	if (base_grow(&sw->stack, &sw->cap, sw->depth + n, sizeof(*sw->stack)) != 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		size_t k;

		if (from[i].end == from[i].start || (n > 64 && &from[i] != best))
			continue;
		for (k = sw->depth++; k > first && better(sw->s, &sw->stack[k - 1], &from[i]); k--)
			sw->stack[k] = sw->stack[k - 1];
		sw->stack[k] = from[i];
	}
	return 0;
}

static int build_ranges(struct elfsym *s, const struct funcs *fs)
{
	struct sweep sw = { .s = s };
	int rc = alloc_ranges(s, fs->n);

	for (size_t i = 0, n; i < fs->n && rc == 0; i += n) {
		for (n = 1; i + n < fs->n && fs->p[i + n].start == fs->p[i].start; n++)
			;
		if (i == 0)
			sw.at = fs->p[0].start;
		sweep_to(&sw, fs->p[i].start);
		rc = sweep_push(&sw, &fs->p[i], n);
	}
	if (fs->n && rc == 0)
		sweep_to(&sw, UINT64_MAX);
	free(sw.stack);
	return rc;
}

static int build(struct elfsym *s, const struct elffile *f, struct err *e)
{
	struct funcs fs = { 0 };
	int rc = collect(s, f, &fs);

	rc = rc ? rc : sort_by_start(&fs);
	rc = rc ? rc : build_ranges(s, &fs);
	free(fs.p);
	return rc ? err_nomem(e, "a symbol index") : 0;
}

DEFINE_CLEANUP(struct elfsym *, elfsym_free);

int elfsym_load(const struct elffile *f, struct elfsym **ret, struct err *e)
{
	CLEANUP(elfsym_free_p) struct elfsym *s = calloc(1, sizeof(*s));
	struct elfcode code = { 0 };
	int rc;

	if (!s)
		return err_nomem(e, "a symbol index");
	s->is64 = f->is64;
	rc = elfcode_open(f, &code, e);
	for (size_t k = 0; k < ARRAY_LEN(s->tables) && rc == 0; k++)
		rc = load_table(&code, k, &s->tables[k], e);
	s->spans = code.spans;
	rc = rc ? rc : build(s, f, e);
	if (rc)
		return rc;
	*ret = TAKE_PTR(s);
	return 0;
}

void elfsym_free(struct elfsym *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < ARRAY_LEN(s->tables); i++) {
		free(s->tables[i].syms);
		free(s->tables[i].strings);
	}
	free(s->starts);
	free(s->owners);
	elfcode_spans_free(&s->spans);
	free(s);
}

static void fill_hit(const struct elfsym *s, uint32_t owner, struct elfsym_hit *ret)
{
	uint32_t i = owner;
	const struct table *t = table_of(s, &i);
	struct elfcode_symbol y = get_symbol(s, t, i);

	ret->start = y.value;
	ret->name = t->strings + y.name;
	ret->index = owner;
	ret->sized = y.size != 0;
	ret->dynamic = t == &s->tables[1];
}

/* Find the range that contains VADDR; false before the first range. */
static bool find_range(const struct elfsym *s, uint64_t vaddr, size_t *ret)
{
	const uint64_t *base = s->starts;
	size_t n = s->n;

	if (!n || vaddr < base[0])
		return false;
	while (n > 1) { /* no branch depends on the data: the compiler generates a conditional move */
		size_t half = n / 2;

		base = base[half] <= vaddr ? base + half : base;
		n -= half;
	}
	*ret = (size_t)(base - s->starts);
	return true;
}

bool elfsym_find(const struct elfsym *s, uint64_t vaddr, struct elfsym_hit *ret)
{
	size_t i;

	if (!find_range(s, vaddr, &i) || s->owners[i] == GAP)
		return false;
	fill_hit(s, s->owners[i], ret);
	return *ret->name;
}

size_t elfsym_count(const struct elfsym *s)
{
	return s->tables[0].n + s->tables[1].n;
}

size_t elfsym_ranges(const struct elfsym *s)
{
	return s->n;
}

bool elfsym_range(const struct elfsym *s, size_t i, uint64_t *start, uint64_t *end, struct elfsym_hit *ret)
{
	if (i >= s->n)
		return false;
	*start = s->starts[i];
	*end = i + 1 < s->n ? s->starts[i + 1] : UINT64_MAX;
	*ret = (struct elfsym_hit){ .index = GAP };
	if (s->owners[i] != GAP)
		fill_hit(s, s->owners[i], ret);
	return true;
}

#define NONE UINT32_MAX
#define PIECE (24 * 4096) /* bytes of a table in memory: whole entries of both classes */
#define NAME_STEP 256 /* size of the first read of a name */
#define NAME_COST 1024 /* reading so many bytes of a string table takes as long as reading one name alone */
#define SYMBOLS_PER_ADDR 4 /* with fewer symbols for each address the index is faster */
#define VISITS_PER_ADDR 16 /* symbols over one address, on average, above which a file is hostile */

/* A symbol that may name an address. */
struct cand {
	uint64_t start, end; /* end == start: no size */
	uint32_t name, index; /* NONE = no symbol */
	bool typed, local;
	uint8_t rank; /* alias_rank() plus one; 0 = not read yet */
};

/* State of one address, and of the gap between it and the address before: where symbols begin in it
 * (`latest`). */
struct query {
	struct cand in; /* covers the address */
	struct cand label; /* without a size, at `latest` */
	uint64_t latest; /* start of the last symbol at or before the address */
	uint64_t limit; /* of the label: end of its section */
	bool any; /* `latest` is set */
};

struct elfmatch {
	struct elfmatch_hit *hits;
	size_t symbols;
	bool any;
	uint8_t *strings[2]; /* the names: whole string tables, or */
	char *names; /* only the needed names, or */
	struct elfsym *index; /* an index, which has the names itself */
};

struct match {
	struct elfcode code;
	const uint64_t *vaddrs;
	size_t n;
	struct query *queries;
	uint32_t *winners; /* names, as offsets in their table */
	uint32_t *buckets; /* first address of each bucket, and of the end */
	size_t n_buckets;
	unsigned int shift;
	uint64_t visits;
	bool any, give_up;
};

/* --- the position among the requested addresses --- */

/* A table over the high bits, about two buckets for each address, so that few steps of a search remain. */
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

/* The first address that is not below V; n if all are. */
static size_t first_from(const struct match *m, uint64_t v)
{
	size_t b;

	if (v <= m->vaddrs[0])
		return 0;
	if (v > m->vaddrs[m->n - 1])
		return m->n;
	b = (size_t)((v - m->vaddrs[0]) >> m->shift);
	return PARTITION_POINT(m->buckets[b], m->buckets[b + 1], mid, m->vaddrs[mid] < v);
}

/* --- which symbol wins --- */

/* Only aliases are compared by their names, so only the first bytes of these are read during the pass. */
static uint8_t read_rank(const struct match *m, struct cand *c)
{
	const struct elfcode_table *t = &m->code.tables[c->index >= m->code.tables[0].n];
	char name[RANK_BYTES + 1] = "";

	if (c->rank)
		return c->rank;
	elffile_read_at(m->code.f, t->strings->offset + c->name, name,
		MIN(t->strings->size - c->name, (uint64_t)RANK_BYTES), NULL);
	return c->rank = (uint8_t)(alias_rank(name) + 1);
}

/* Of two with the same start: does A win? Those of .symtab have lower indexes. */
static bool better_match(const struct match *m, struct cand *a, struct cand *b)
{
	if (b->index == NONE)
		return true;
	if (a->typed != b->typed)
		return a->typed;
	if (a->end != b->end)
		return a->end < b->end;
	if (a->local != b->local)
		return b->local;
	if (read_rank(m, a) != read_rank(m, b))
		return a->rank < b->rank;
	return a->index < b->index;
}

/* Is A nested in B: does it start later? */
static bool is_inner(const struct match *m, struct cand *a, struct cand *b)
{
	if (b->index == NONE || a->start != b->start)
		return b->index == NONE || a->start > b->start;
	return better_match(m, a, b);
}

static void take_label(const struct match *m, struct query *q, struct cand *c, uint64_t limit)
{
	if (better_match(m, c, &q->label)) {
		q->label = *c;
		q->limit = limit;
	}
}

/* The last symbol that starts before an address decides which label, if any, covers it. */
static void take_start(const struct match *m, struct query *q, struct cand *c, uint64_t limit)
{
	if (!q->any || c->start > q->latest) {
		q->any = true;
		q->latest = c->start;
		q->label.index = NONE;
	}
	if (c->start == q->latest && c->end == c->start)
		take_label(m, q, c, limit);
}

static void take(struct match *m, struct cand *c, uint64_t limit, size_t first)
{
	take_start(m, &m->queries[first], c, limit);
	if (c->end == c->start)
		return;
	for (size_t i = first; i < m->n && m->vaddrs[i] < c->end; i++, m->visits++)
		if (is_inner(m, c, &m->queries[i].in))
			m->queries[i].in = *c;
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
		c.local = y.local;
		take(m, &c, in->end, first_from(m, y.value));
	}
}

static int match_table(struct match *m, size_t k, uint32_t index, uint8_t *piece, struct err *e)
{
	const struct elfcode_table *t = &m->code.tables[k];
	const size_t size = elfcode_symbol_size(m->code.f->is64), most = PIECE / size;

	if (!t->n)
		return 0;
	/* whose bytes are not symbols or names */
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

static void put_hit(struct match *m, struct elfmatch *ret, size_t i, const struct cand *c)
{
	ret->hits[i] = (struct elfmatch_hit){ .start = c->start,
		.index = c->index,
		.sized = c->end != c->start,
		.dynamic = c->index >= m->code.tables[0].n };
	m->winners[i] = c->name;
}

/* A symbol that begins before an address does so before the next one too. */
static void decide(struct match *m, struct elfmatch *ret)
{
	const struct query *label = NULL;

	for (size_t i = 0; i < m->n; i++) {
		const struct query *q = &m->queries[i];
		const uint64_t at = m->vaddrs[i];

		ret->hits[i] = (struct elfmatch_hit){ .index = NONE };
		if (q->any)
			label = q->label.index != NONE ? q : NULL;
		if (q->in.index != NONE)
			put_hit(m, ret, i, &q->in);
		else if (label && at < label->limit)
			put_hit(m, ret, i, &label->label);
	}
}

/* --- their names --- */

/* Names that are read one by one, identified by offsets until all are read, because P moves. */
struct names {
	char *p;
	size_t len, cap;
};

/* Append the name at OFFSET of a string table, with its NUL. */
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

/* Of neighbours with the same symbol, only the first one reads the name. */
static bool is_new(const struct elfmatch *r, size_t i)
{
	return r->hits[i].index != NONE && (i == 0 || r->hits[i].index != r->hits[i - 1].index);
}

/* Read a whole string table if that costs less than its names alone. */
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

/*
 * Read the names of winners whose string table is not in memory, and store
 * their offsets in PLACES. -EFBIG if the names take more than the file.
 */
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

/* --- the search --- */

static int answer_by_index(const struct match *m, struct elfmatch *ret, struct err *e)
{
	int rc = elfsym_load(m->code.f, &ret->index, e);

	if (rc)
		return rc;
	ret->any = elfsym_ranges(ret->index) > 0;
	for (size_t i = 0; i < m->n; i++) {
		struct elfsym_hit hit;

		ret->hits[i] = (struct elfmatch_hit){ .index = NONE };
		if (!elfsym_find(ret->index, m->vaddrs[i], &hit))
			continue;
		ret->hits[i] = (struct elfmatch_hit){ .name = hit.name,
			.start = hit.start,
			.sized = hit.sized,
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
		m->queries[i].in.index = m->queries[i].label.index = NONE;
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
