/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "flame/graph.h"
#include "base/bytes.h"
#include "flame/frame.h"
#include "flame/kinds.h"
#include "flame/page.h"

#include <errno.h>
#include <string.h>

static const char html[] = ""
#include <graph.html.h>
	;
static const char js[] = ""
#include <graph.js.h>
	;
static const char js_sha256[] = ""
#include <graph.js.sha256.h>
	;

/* The names, the most frequent first. */
struct ranking {
	uint32_t *order; /* ids by rank */
	uint32_t *rank; /* ranks by id */
};

struct use {
	uint32_t times, name;
	struct intern_entry text;
};

/* Equal ones by their bytes, so that the page does not depend on the order of the lines. */
static int by_times(const void *a, const void *b)
{
	const struct use *x = a, *y = b;
	int order = CMP(y->times, x->times);

	if (!order)
		order = memcmp(x->text.text, y->text.text, MIN(x->text.len, y->text.len));
	return order ? order : CMP(x->text.len, y->text.len);
}

static int rank_names(const struct flametree *t, struct ranking *ret)
{
	size_t n = t->names.n;
	_cleanup_free_ struct use *uses = calloc(n + 1, sizeof(*uses));
	_cleanup_free_ uint32_t *order = malloc((n + 1) * sizeof(*order));
	_cleanup_free_ uint32_t *rank = malloc((n + 1) * sizeof(*rank));

	if (!uses || !order || !rank)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		uses[i] = (struct use){ .name = (uint32_t)i, .text = t->names.entries[i] };
	for (uint32_t i = 1; i < t->n; i++)
		uses[t->nodes[i].name].times++;
	qsort(uses, n, sizeof(*uses), by_times);
	for (size_t i = 0; i < n; i++) {
		order[i] = uses[i].name;
		rank[uses[i].name] = (uint32_t)i;
	}
	ret->order = TAKE_PTR(order);
	ret->rank = TAKE_PTR(rank);
	return 0;
}

struct graph {
	const struct flametree *tree;
	const struct flame_opts *opts;
	struct ranking ranking;
	uint8_t *kinds; /* by node; NULL unless requested */
};

static void put_names(struct out *o, const struct flametree *t, const struct ranking *r)
{
	struct page_base64 b = { .o = o };

	out_str(o, "\"names\":[");
	for (size_t i = 0; i < t->names.n; i++) {
		size_t len;
		const char *name = intern_text(&t->names, r->order[i], &len);

		out_str(o, i ? ",\n\"" : "\n\"");
		frame_put_json(o, name, len);
		out_char(o, '"');
	}
	out_str(o, "],\n\"looks\":\"");
	for (size_t i = 0; i < t->names.n; i++) {
		size_t len;
		const char *name = intern_text(&t->names, r->order[i], &len);

		page_base64_byte(&b, (uint8_t)frame_class(name, len));
		page_base64_byte(&b, (uint8_t)frame_tone(name, len));
	}
	page_base64_flush(&b);
	out_str(o, "\",\n");
}

static void put_kinds(struct out *o, const struct graph *g)
{
	struct page_base64 b = { .o = o };

	out_str(o, "\"families\":[");
	for (size_t i = 0; i < KIND_FAMILIES; i++)
		out_printf(o, "%s[\"%s\",%u,%u]", i ? "," : "", kind_families[i].name, kind_families[i].hue,
			kind_families[i].saturation);
	out_str(o, "],\n\"kinds\":\"");
	for (uint32_t i = 0; i < g->tree->n; i++)
		page_base64_byte(&b, g->kinds[i]);
	page_base64_flush(&b);
	out_str(o, "\",\n");
}

static void put_data(struct out *o, const void *ctx)
{
	const struct graph *g = ctx;
	const struct flametree *t = g->tree;
	const struct flame_opts *opts = g->opts;
	const struct ranking *r = &g->ranking;
	struct page_base64 b = { .o = o };
	uint32_t next_depth = 0;

	out_str(o, "{");
	page_put_text(o, "title", opts->title);
	page_put_text(o, "unit", opts->unit);
	out_printf(o, "\"differential\":%s,\n\"icicle\":%s,\n", opts->differential ? "true" : "false",
		opts->icicle ? "true" : "false");
	out_printf(o, "\"sum\":\"%llu\",\n\"sumBefore\":\"%llu\",\n\"nodes\":%lu,\n",
		(unsigned long long)t->nodes[0].sum, (unsigned long long)t->nodes[0].sum_before,
		(unsigned long)t->n);
	put_names(o, t, r);
	if (g->kinds)
		put_kinds(o, g);
	out_str(o, "\"tree\":\"");
	for (uint32_t i = 0; i < t->n; i++) {
		const struct flametree_node *node = &t->nodes[i];

		page_base64_uleb(&b, next_depth - node->depth);
		page_base64_uleb(&b, i ? r->rank[node->name] : 0);
		page_base64_uleb(&b, node->self);
		if (opts->differential)
			page_base64_uleb(&b, node->self_before);
		next_depth = node->depth + 1;
	}
	page_base64_flush(&b);
	out_str(o, "\"}");
}

int graph_put(struct out *o, const struct flametree *t, const struct flame_opts *opts, struct err *e)
{
	static const struct page_view view = {
		.html = html, .script = { js, js_sha256 }, .put_data = put_data
	};
	struct graph g = { .tree = t, .opts = opts };

	int code = rank_names(t, &g.ranking);

	if (!code && opts->kinds) {
		g.kinds = kind_families_of(t);
		code = g.kinds ? 0 : -ENOMEM;
	}
	if (!code)
		page_put(o, opts->title, &view, &g);
	free(g.ranking.order);
	free(g.ranking.rank);
	free(g.kinds);
	return code ? err_nomem(e, "the names") : 0;
}
