/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "flame/tree.h"
#include "base/bytes.h"
#include "base/hash.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define NONE UINT32_MAX

/* A node while lines are read, in order of arrival; then also its place among its siblings. */
struct sprout {
	uint32_t name, parent;
	uint32_t first, next; /* child, sibling: the latest first */
	uint32_t n; /* children */
	uint64_t self, self_before;
};

struct frame {
	size_t end; /* in the line */
	uint32_t node;
};

/* What is known while lines are read. */
struct growth {
	struct flametree *t;
	struct sprout *sprouts;
	size_t n, cap;
	struct hashtable by_name; /* children by parent and name, of parents with more than FEW */
	uint64_t seed;
	uint64_t sum, sum_before;
	/* the line before, whose first frames the next one often has too: fold's output is sorted */
	struct buf line;
	struct frame *path;
	size_t depth, path_cap;
};

static void growth_free(struct growth *g)
{
	free(g->sprouts);
	hashtable_free(&g->by_name);
	buf_free(&g->line);
	free(g->path);
}

/* Take a number, and the blank before it, from the end of the line. NULL, or why it is malformed. */
static const char *take_value(const char *line, size_t *len, uint64_t *ret)
{
	size_t at = *len;
	uint64_t v = 0;

	while (at && line[at - 1] >= '0' && line[at - 1] <= '9')
		at--;
	if (at == *len || !at || (line[at - 1] != ' ' && line[at - 1] != '\t'))
		return "no whole number at its end";
	for (size_t i = at; i < *len; i++) {
		if (__builtin_mul_overflow(v, 10, &v) ||
			__builtin_add_overflow(v, (uint64_t)(line[i] - '0'), &v) || v > FLAMETREE_SUM_MAX)
			return "a number beyond 2^63";
	}
	*len = at - 1;
	*ret = v;
	return NULL;
}

/* Most nodes have so few children that a list is faster than a table. */
#define FEW 6

static uint64_t child_hash(const struct growth *g, uint32_t i)
{
	return hash_mul(((uint64_t)g->sprouts[i].parent << 32 | g->sprouts[i].name) ^ g->seed, HASH_K1);
}

static uint32_t find_child(const struct growth *g, uint32_t parent, uint32_t name)
{
	uint32_t i = g->sprouts[parent].first;

	if (g->sprouts[parent].n > FEW && g->sprouts[i].name != name) {
		uint64_t hash = hash_mul(((uint64_t)parent << 32 | name) ^ g->seed, HASH_K1);

		return HASHTABLE_FIND(&g->by_name, hash, at,
			g->sprouts[at].parent == parent && g->sprouts[at].name == name);
	}
	while (i != NONE && g->sprouts[i].name != name)
		i = g->sprouts[i].next;
	return i;
}

/* Put the children of PARENT that are not there yet into the table. */
static int tabulate(struct growth *g, uint32_t parent)
{
	uint32_t n = g->sprouts[parent].n, i = g->sprouts[parent].first;

	if (n <= FEW)
		return 0;
	if (hashtable_reserve(&g->by_name, FEW + 1) != 0)
		return -ENOMEM;
	for (uint32_t left = n == FEW + 1 ? n : 1; left--; i = g->sprouts[i].next)
		hashtable_add(&g->by_name, child_hash(g, i), i);
	return 0;
}

/* The child NAME of PARENT, a new one if there is none; NONE when memory or indexes run out. */
static uint32_t child(struct growth *g, uint32_t parent, uint32_t name)
{
	uint32_t i = find_child(g, parent, name);

	if (i != NONE)
		return i;
	if (g->n >= HASHTABLE_MAX - 1 || base_grow(&g->sprouts, &g->cap, g->n + 1, sizeof(*g->sprouts)) != 0)
		return NONE;
	i = (uint32_t)g->n++;
	g->sprouts[i] = (struct sprout){
		.name = name, .parent = parent, .first = NONE, .next = g->sprouts[parent].first
	};
	g->sprouts[parent].first = i;
	g->sprouts[parent].n++;
	return tabulate(g, parent) == 0 ? i : NONE;
}

/* Cut the path to the frames that the stack shares with the line before. */
static void cut_path(struct growth *g, const char *stack, size_t len)
{
	const char *before = (const char *)g->line.p;
	size_t most = MIN(len, g->line.len), same = 0;

	while (same + 8 <= most && memcmp(before + same, stack + same, 8) == 0)
		same += 8;
	while (same < most && before[same] == stack[same])
		same++;
	for (; g->depth; g->depth--) {
		size_t end = g->path[g->depth - 1].end;

		if (end <= same && (end == len || stack[end] == ';'))
			break;
	}
	g->line.len = g->depth ? g->path[g->depth - 1].end : 0;
}

static int add_stack(struct growth *g, const char *stack, size_t len, uint64_t v, uint64_t before)
{
	size_t at;
	uint32_t node;

	cut_path(g, stack, len);
	at = g->line.len + (g->depth ? 1 : 0);
	buf_put(&g->line, stack + g->line.len, len - g->line.len);
	if (g->line.failed)
		return -ENOMEM;
	node = g->depth ? g->path[g->depth - 1].node : 0;
	while (at <= len && !(g->depth && g->path[g->depth - 1].end == len)) {
		const char *semicolon = memchr(stack + at, ';', len - at);
		size_t end = semicolon ? (size_t)(semicolon - stack) : len;
		uint32_t name = intern_put(&g->t->names, stack + at, end - at);

		node = name == INTERN_NONE ? NONE : child(g, node, name);
		if (node == NONE || base_grow(&g->path, &g->path_cap, g->depth + 1, sizeof(*g->path)) != 0)
			return -ENOMEM;
		g->path[g->depth++] = (struct frame){ .end = end, .node = node };
		at = end + 1;
	}
	g->sprouts[node].self += v;
	g->sprouts[node].self_before += before;
	return 0;
}

/* NULL, or why the line is malformed; *CODE if it is the end. */
static const char *add_line(struct growth *g, const char *line, size_t len, bool differential, int *code)
{
	uint64_t v = 0, before = 0;
	const char *why;

	if (len && line[len - 1] == '\r')
		len--;
	if (!len)
		return NULL;
	why = take_value(line, &len, &v);
	if (!why && differential) {
		why = take_value(line, &len, &before);
		if (why && why[0] == 'n')
			why = "one number, where --diff takes two";
	}
	if (why)
		return why;
	if (!len)
		return "no stack before its number";
	g->sum += v;
	g->sum_before += before;
	*code = MAX(g->sum, g->sum_before) > FLAMETREE_SUM_MAX ? -EOVERFLOW
							       : add_stack(g, line, len, v, before);
	g->t->stacks++;
	return NULL;
}

static int read_lines(struct growth *g, struct paragraphs *in, bool differential, struct err *e)
{
	struct paragraph p = { 0 };
	int rc;

	while ((rc = paragraphs_next(in, &p, e)) > 0) {
		const char *end = p.text + p.len;
		int code = 0;

		for (const char *line = p.text, *next; line < end && !code; line = next) {
			const char *nl = memchr(line, '\n', (size_t)(end - line));
			const char *why;

			next = nl ? nl + 1 : end;
			if (p.end == PARAGRAPH_CUT_LINE)
				why = "a line of more than 16 MiB";
			else
				why = add_line(
					g, line, (size_t)((nl ? nl : end) - line), differential, &code);
			if (why && !g->t->malformed++) {
				paragraphs_where(in, line, &g->t->bad_path, &g->t->bad_line);
				g->t->bad_why = why;
			}
		}
		if (code == -EOVERFLOW) {
			err_set(e, code, "the sum of all values is beyond 2^63");
			err_hint(e, "fold with a larger --unit");
		}
		if (code)
			return code == -ENOMEM ? err_nomem(e, "the stacks") : code;
	}
	return rc;
}

static int by_bytes(const void *a, const void *b, void *names)
{
	const struct intern_entry *entries = names;
	const struct intern_entry *x = &entries[*(const uint32_t *)a], *y = &entries[*(const uint32_t *)b];
	int order = memcmp(x->text, y->text, MIN(x->len, y->len));

	return order ? order : CMP(x->len, y->len);
}

/* A child and the rank of its name among all names. */
struct ranked {
	uint32_t rank, node;
};

static int by_rank(const void *a, const void *b)
{
	return CMP(((const struct ranked *)a)->rank, ((const struct ranked *)b)->rank);
}

/* Link siblings in the order of their names. */
static int link_siblings(struct growth *g)
{
	size_t n_names = g->t->names.n, room = 0;
	_cleanup_free_ uint32_t *order = malloc((n_names + 1) * sizeof(*order));
	_cleanup_free_ uint32_t *rank = malloc((n_names + 1) * sizeof(*rank));
	_cleanup_free_ struct ranked *children = NULL;

	if (!order || !rank)
		return -ENOMEM;
	for (size_t i = 0; i < n_names; i++)
		order[i] = (uint32_t)i;
	if (n_names)
		qsort_r(order, n_names, sizeof(*order), by_bytes, g->t->names.entries);
	for (size_t i = 0; i < n_names; i++)
		rank[order[i]] = (uint32_t)i;
	for (size_t i = 0; i < g->n; i++) {
		uint32_t n = 0;

		if (g->sprouts[i].n < 2)
			continue;
		if (base_grow(&children, &room, g->sprouts[i].n, sizeof(*children)) != 0)
			return -ENOMEM;
		for (uint32_t c = g->sprouts[i].first; c != NONE; c = g->sprouts[c].next)
			children[n++] = (struct ranked){ .rank = rank[g->sprouts[c].name], .node = c };
		qsort(children, n, sizeof(*children), by_rank);
		g->sprouts[i].first = children[0].node;
		for (uint32_t k = 0; k < n; k++)
			g->sprouts[children[k].node].next = k + 1 < n ? children[k + 1].node : NONE;
	}
	return 0;
}

/* The nodes in preorder. A sprout's `name` becomes its index among them, which its children need. */
static int arrange(struct growth *g)
{
	struct flametree *t = g->t;
	uint32_t at = 0, depth = 0;

	if (link_siblings(g) != 0)
		return -ENOMEM;
	t->nodes = calloc(g->n, sizeof(*t->nodes));
	if (!t->nodes)
		return -ENOMEM;
	while (at != NONE) {
		struct sprout *s = &g->sprouts[at];

		t->nodes[t->n] = (struct flametree_node){ .name = s->name,
			.parent = at ? g->sprouts[s->parent].name : 0,
			.depth = depth,
			.end = t->n + 1,
			.self = s->self,
			.self_before = s->self_before };
		s->name = t->n++;
		t->depth = MAX(t->depth, depth);
		if (s->first != NONE) {
			at = s->first;
			depth++;
			continue;
		}
		while (at && g->sprouts[at].next == NONE) {
			at = g->sprouts[at].parent;
			depth--;
		}
		at = g->sprouts[at].next;
	}
	for (uint32_t i = t->n; i-- > 0;) {
		struct flametree_node *node = &t->nodes[i], *parent = &t->nodes[node->parent];

		node->sum += node->self;
		node->sum_before += node->self_before;
		if (!i)
			break;
		parent->sum += node->sum;
		parent->sum_before += node->sum_before;
		parent->end = MAX(parent->end, node->end);
	}
	return 0;
}

int flametree_read(struct flametree *t, struct paragraphs *in, bool differential, struct err *e)
{
	struct growth g = { .t = t };
	int rc;

	*t = (struct flametree){ 0 };
	/* unpredictable if the kernel has random bytes; the result is the same with a fixed seed */
	if (getrandom(&g.seed, sizeof(g.seed), GRND_NONBLOCK) != (ssize_t)sizeof(g.seed))
		g.seed = HASH_K3;
	t->names.seed = g.seed;
	/* the root; it has no parent and so is not in the table */
	if (base_grow(&g.sprouts, &g.cap, 1, sizeof(*g.sprouts)) != 0)
		return err_nomem(e, "the stacks");
	g.sprouts[g.n++] = (struct sprout){ .first = NONE, .next = NONE };
	rc = read_lines(&g, in, differential, e);
	if (!rc && arrange(&g) != 0)
		rc = err_nomem(e, "the stacks");
	growth_free(&g);
	return rc;
}

void flametree_free(struct flametree *t)
{
	intern_free(&t->names);
	free(t->nodes);
	*t = (struct flametree){ 0 };
}
