/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/elfsym.h"

#include "elf/elfcode.h"

#include <elf.h>
#include <errno.h>

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
};

struct funcs {
	struct func *p;
	size_t n;
};

/* I is in range. */
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
				.typed = y.type != STT_NOTYPE };
		}
	}
	return 0;
}

/* Stable, least significant byte first; bytes in which no key differs cost nothing. */
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

/* Of two with the same start: which one is to be seen where both cover. */
static bool better(const struct func *a, const struct func *b)
{
	if (a->typed != b->typed)
		return a->typed;
	if (a->end != b->end)
		return a->end < b->end;
	return a->index < b->index;
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
 * Room for the ranges of N functions: a new one begins only where a function
 * starts, where one ends, or where a section ends behind one without a size.
 */
static int alloc_ranges(struct elfsym *s, size_t n)
{
	s->starts = malloc((3 * n + 1) * sizeof(*s->starts));
	s->owners = malloc((3 * n + 1) * sizeof(*s->owners));
	return s->starts && s->owners ? 0 : -ENOMEM;
}

/* The sweep over the sorted functions: what covers the current address, innermost last. */
struct sweep {
	struct elfsym *s;
	struct func *stack;
	size_t depth, cap;
	const struct func *label; /* the last one without a size */
	uint64_t at; /* everything below is decided */
};

/* Decide all addresses from sw->at up to END, where the next function starts. */
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
 * ends on top. N is mostly 1; where a hostile table makes it huge, only the
 * best one counts, which keeps this linear.
 */
static int sweep_push(struct sweep *sw, const struct func *from, size_t n)
{
	size_t first = sw->depth;
	const struct func *label = NULL, *best = NULL;

	for (size_t i = 0; i < n; i++) {
		if (from[i].end == from[i].start)
			label = !label || better(&from[i], label) ? &from[i] : label;
		else
			best = !best || better(&from[i], best) ? &from[i] : best;
	}
	if (label || best)
		sw->label = label; /* a sized symbol ends the reach of a label before it */
	if (!best)
		return 0;
	if (base_grow(&sw->stack, &sw->cap, sw->depth + n, sizeof(*sw->stack)) != 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		size_t k;

		if (from[i].end == from[i].start || (n > 64 && &from[i] != best))
			continue;
		for (k = sw->depth++; k > first && better(&sw->stack[k - 1], &from[i]); k--)
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
	ret->dynamic = t == &s->tables[1];
}

/* The range VADDR is in; false before the first. */
static bool find_range(const struct elfsym *s, uint64_t vaddr, size_t *ret)
{
	const uint64_t *base = s->starts;
	size_t n = s->n;

	if (!n || vaddr < base[0])
		return false;
	while (n > 1) { /* no branch depends on the data: the compiler makes this a conditional move */
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

bool elfsym_before(const struct elfsym *s, uint64_t vaddr, struct elfsym_hit *ret, uint64_t *beyond)
{
	const struct elfcode_span *in;
	size_t i;

	if (s->tables[0].n || !find_range(s, vaddr, &i) || s->owners[i] != GAP || !i)
		return false;
	in = elfcode_spans_find(&s->spans, vaddr);
	if (!in || s->starts[i] <= in->start)
		return false;
	fill_hit(s, s->owners[i - 1], ret);
	*beyond = vaddr - s->starts[i] + 1;
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
