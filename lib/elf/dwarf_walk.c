/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/dwarf_walk.h"
#include "base/search.h"

#include <dwarf.h>
#include <errno.h>

#define DEPTH_MAX 65536
#define PADDING 16 /* alignment of functions: code up to it is padding */

static const struct dwarf_shape *shape_of(const struct dwarf_walk *w)
{
	return &w->bases->unit->shape;
}

static uint64_t read_code(struct rd *r)
{
	if (r->p < r->end && *r->p < 0x80)
		return *r->p++;
	return rd_uleb(r);
}

/* --- skipping --- */

/*
 * Jump behind the children of this entry, if DW_AT_sibling gives the position.
 * Only forwards, so that the walk ends.
 */
static bool jump(const struct dwarf_walk *w, const struct dwarf_abbrev *a, struct rd *r)
{
	struct dwarf_value v = dwarf_abbrev_value(w->table, a, &a->sibling, shape_of(w), r);
	size_t here = (size_t)(r->p - w->unit.p);

	if (v.kind != DWARF_VALUE_REF || v.u <= here || v.u > rd_left(&w->unit))
		return false;
	r->p = w->unit.p + v.u;
	return true;
}

/* Skip an entry and all its descendants; R is behind its code. */
static void skip_subtree(struct dwarf_walk *w, const struct dwarf_abbrev *a, struct rd *r)
{
	size_t depth = 0;

	for (;;) {
		if (!a->children) {
			dwarf_abbrev_step(w->table, a, shape_of(w), r);
		} else if (!dwarf_abbrev_has(&a->sibling) || !jump(w, a, r)) {
			dwarf_abbrev_step(w->table, a, shape_of(w), r);
			depth++;
		}
		while (depth && r->p < r->end && !*r->p) {
			r->p++;
			depth--;
		}
		if (!depth || r->bad || r->p >= r->end)
			return;
		w->entries++;
		a = dwarf_abbrev_find(w->table, read_code(r));
		if (!a) {
			r->bad = true;
			return;
		}
	}
}

/* --- which entry covers which address --- */

/* The first address that is not below LOW. Entries mostly ascend, so it is often the same as last time. */
static size_t first_from(struct dwarf_walk *w, uint64_t low)
{
	size_t lo;

	if ((!w->cursor || w->addrs[w->cursor - 1] < low) &&
		(w->cursor == w->n || w->addrs[w->cursor] >= low))
		return w->cursor;
	lo = PARTITION_POINT(0, w->n, mid, w->addrs[mid] < low);
	return w->cursor = lo;
}

static int read_spans(struct dwarf_walk *w, const struct dwarf_abbrev *a, const struct rd *r)
{
	struct dwarf_value low = dwarf_abbrev_value(w->table, a, &a->low_pc, shape_of(w), r);
	struct dwarf_value high = dwarf_abbrev_value(w->table, a, &a->high_pc, shape_of(w), r);
	struct dwarf_value ranges = dwarf_abbrev_value(w->table, a, &a->ranges, shape_of(w), r);

	return dwarf_range_read(w->bases, &low, &high, &ranges, &w->spans, NULL);
}

/* Do the spans contain an address? */
static bool any_covered(struct dwarf_walk *w)
{
	for (size_t s = 0; s < w->spans.n; s++) {
		size_t i = first_from(w, w->spans.v[s].low);

		if (i < w->n && w->addrs[i] < w->spans.v[s].high)
			return true;
	}
	return false;
}

/* One entry may cover every address, and so may the next one: limit how often a unit may do this. */
static bool count_mark(struct dwarf_walk *w, struct rd *r)
{
	if (w->marks_left) {
		w->marks_left--;
		return true;
	}
	r->bad = true;
	return false;
}

static uint32_t add_node(struct dwarf_walk *w, size_t at, uint32_t parent, struct rd *r)
{
	struct dwarf_walk_node *node;

	if (at > UINT32_MAX || w->n_nodes >= DWARF_WALK_NONE ||
		base_grow(&w->nodes, &w->nodes_cap, w->n_nodes + 1, sizeof(*w->nodes)) != 0) {
		r->bad = true;
		return DWARF_WALK_NONE;
	}
	node = &w->nodes[w->n_nodes];
	*node = (struct dwarf_walk_node){ .at = (uint32_t)at, .parent = parent };
	if (parent == DWARF_WALK_NONE && w->spans.n)
		node->low = w->spans.v[0].low;
	return (uint32_t)w->n_nodes++;
}

static uint64_t sum_of_spans(const struct dwarf_span_list *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += s->v[i].high - s->v[i].low;
	return sum;
}

/* Make NODE the function of the addresses in SPAN, unless a smaller one covers them. */
static void mark_function(
	struct dwarf_walk *w, const struct dwarf_span *span, uint64_t size, uint32_t node, struct rd *r)
{
	uint64_t padded = (span->high + PADDING - 1) & ~(uint64_t)(PADDING - 1);
	size_t i = first_from(w, span->low);

	for (; node != DWARF_WALK_NONE && i < w->n && w->addrs[i] < span->high && count_mark(w, r); i++)
		if (size < w->places[i].size)
			w->places[i] =
				(struct dwarf_walk_place){ .size = size, .node = node, .function = node };
	for (; i < w->n && w->addrs[i] < padded && w->addrs[i] >= span->high; i++)
		w->places[i].padding = true;
}

static void mark_inlined(
	struct dwarf_walk *w, const struct dwarf_span *span, uint32_t function, uint32_t node, struct rd *r)
{
	for (size_t i = first_from(w, span->low); i < w->n && w->addrs[i] < span->high && count_mark(w, r);
		i++)
		if (w->places[i].function == function)
			w->places[i].node = node;
}

/* --- entries --- */

/* Enter a function: LEVEL becomes that of its children. Returns false to skip its children. */
static bool enter_function(struct dwarf_walk *w, const struct dwarf_abbrev *a, struct rd *r, size_t at,
	struct dwarf_walk_level *level)
{
	uint64_t size;
	uint32_t node = DWARF_WALK_NONE;

	if (!a->code_range)
		return w->thorough;
	if (read_spans(w, a, r) == -ENOMEM)
		r->bad = true;
	if (any_covered(w)) {
		node = add_node(w, at, DWARF_WALK_NONE, r);
		*level = (struct dwarf_walk_level){ node, node };
	}
	size = sum_of_spans(&w->spans);
	for (size_t s = 0; s < w->spans.n; s++)
		mark_function(w, &w->spans.v[s], size, node, r);
	return node != DWARF_WALK_NONE || w->thorough;
}

static bool enter_inlined(struct dwarf_walk *w, const struct dwarf_abbrev *a, struct rd *r, size_t at,
	struct dwarf_walk_level *level)
{
	if (level->node == DWARF_WALK_NONE)
		return w->thorough;
	w->spans.n = 0;
	if (a->code_range && read_spans(w, a, r) == -ENOMEM)
		r->bad = true;
	level->node = add_node(w, at, level->node, r);
	for (size_t s = 0; s < w->spans.n && !r->bad; s++)
		mark_inlined(w, &w->spans.v[s], level->function, level->node, r);
	return true;
}

/* Must the children of the entry at AT be visited? */
static bool enter(struct dwarf_walk *w, const struct dwarf_abbrev *a, struct rd *r, size_t at,
	struct dwarf_walk_level *level)
{
	switch (a->kind) {
	case DWK_THROUGH:
		return true;
	case DWK_FUNCTION:
		return enter_function(w, a, r, at, level);
	case DWK_INLINED:
		return enter_inlined(w, a, r, at, level);
	case DWK_BLOCK:
		/* the ranges of blocks and calls do not always contain those of their children */
		return w->thorough || level->node != DWARF_WALK_NONE;
	default:
		return w->thorough;
	}
}

static int push(struct dwarf_walk *w, size_t depth, const struct dwarf_walk_level *level)
{
	if (depth >= DEPTH_MAX || base_grow(&w->levels, &w->levels_cap, depth + 1, sizeof(*w->levels)) != 0)
		return -ENOMEM;
	w->levels[depth] = *level;
	return 0;
}

/* Visit the entry at R, which is at DEPTH. 0 or -errno. */
static int visit(struct dwarf_walk *w, struct rd *r, uint64_t code, size_t at, size_t *depth)
{
	const struct dwarf_abbrev *a = dwarf_abbrev_find(w->table, code);
	struct dwarf_walk_level level = w->levels[*depth];

	if (!a)
		return -EINVAL;
	w->entries++;
	if (!enter(w, a, r, at, &level)) {
		skip_subtree(w, a, r);
		return 0;
	}
	dwarf_abbrev_step(w->table, a, shape_of(w), r);
	if (!a->children)
		return 0;
	++*depth;
	return push(w, *depth, &level);
}

int dwarf_walk_run(struct dwarf_walk *w, struct err *e)
{
	const struct dwarf_walk_level outside = { DWARF_WALK_NONE, DWARF_WALK_NONE };
	struct rd r = w->unit;
	size_t depth = 0;
	int rc;

	w->n_nodes = w->cursor = 0;
	for (size_t i = 0; i < w->n; i++)
		w->places[i] = (struct dwarf_walk_place){
			.size = UINT64_MAX, .node = DWARF_WALK_NONE, .function = DWARF_WALK_NONE
		};
	rd_bytes(&r, w->bases->unit->first);
	rc = push(w, 0, &outside);
	while (!rc && !r.bad && r.p < r.end) {
		size_t at = (size_t)(r.p - w->unit.p);
		uint64_t code = read_code(&r);

		if (code)
			rc = visit(w, &r, code, at, &depth);
		else if (depth)
			depth--;
		if (!depth)
			break;
	}
	if (rc == -ENOMEM)
		return err_nomem(e, "a unit of debug information");
	return rc || r.bad ? err_set(e, -EINVAL, "a unit of debug information is malformed") : 0;
}

void dwarf_walk_free(struct dwarf_walk *w)
{
	free(w->nodes);
	free(w->spans.v);
	free(w->levels);
}

int dwarf_call_table_reset(struct dwarf_call_table *c, size_t n)
{
	c->n = 0;
	if (base_grow(&c->list, &c->cap, n, sizeof(*c->list)) != 0)
		return -ENOMEM;
	if (n)
		memset(c->list, 0, n * sizeof(*c->list));
	c->n = n;
	return 0;
}

void dwarf_call_table_free(struct dwarf_call_table *c)
{
	free(c->list);
}

const struct dwarf_call_table_one *dwarf_call_table_get(struct dwarf_call_table *c, size_t i, size_t at)
{
	struct dwarf_call_table_one *one = &c->list[i];
	const struct dwarf_abbrev *a;
	struct rd r = c->bytes;

	if (one->known)
		return one;
	one->known = true;
	rd_bytes(&r, at);
	a = dwarf_abbrev_find(c->table, rd_uleb(&r));
	if (a && !r.bad)
		dwarf_name_table_of_entry(c->names, c->info, c->unit, c->table, a, r, &one->name, &one->call);
	return one;
}
