/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "flame/page.h"
#include "base/bytes.h"
#include "flame/frame.h"

#include <errno.h>
#include <string.h>

/* Sources as strings, one a line; the hashes of script and style in base64. */
static const char html[] = ""
#include <page.html.h>
	;
static const char css[] = ""
#include <page.css.h>
	;
static const char js[] = ""
#include <page.js.h>
	;
static const char css_sha256[] = ""
#include <page.css.sha256.h>
	;
static const char js_sha256[] = ""
#include <page.js.sha256.h>
	;

static const char begin[] = "<!DOCTYPE html>\n<!-- stacktools flame -->\n";
const struct result_type page_type = { "a page of flame", begin, sizeof(begin) - 1 };

/* Base64 of bytes that come one after the other. */
struct base64 {
	struct out *o;
	uint32_t bits;
	unsigned int n; /* bytes in BITS */
};

static void base64_flush(struct base64 *b)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = b->bits << 8 * (3 - b->n);
	char text[4];

	if (!b->n)
		return;
	for (unsigned int i = 0; i < 4; i++)
		text[i] = i > b->n ? '=' : digits[bits >> (18 - 6 * i) & 63];
	out_put(b->o, text, 4);
	b->bits = b->n = 0;
}

static void base64_byte(struct base64 *b, uint8_t byte)
{
	b->bits = b->bits << 8 | byte;
	if (++b->n == 3)
		base64_flush(b);
}

static void base64_uleb(struct base64 *b, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		base64_byte(b, (uint8_t)(v | 0x80));
	base64_byte(b, (uint8_t)v);
}

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

static void put_text(struct out *o, const char *key, const char *text)
{
	out_printf(o, "\"%s\":\"", key);
	frame_put_json(o, text, strlen(text));
	out_str(o, "\",\n");
}

static void put_names(struct out *o, const struct flametree *t, const struct ranking *r)
{
	struct base64 b = { .o = o };

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

		base64_byte(&b, (uint8_t)(frame_class(name, len) << 5 | frame_tone(name, len)));
	}
	base64_flush(&b);
	out_str(o, "\",\n");
}

static void put_data(
	struct out *o, const struct flametree *t, const struct ranking *r, const struct flame_opts *opts)
{
	struct base64 b = { .o = o };
	uint32_t next_depth = 0;

	out_str(o, "{");
	put_text(o, "title", opts->title);
	put_text(o, "unit", opts->unit);
	out_printf(o, "\"differential\":%s,\n\"icicle\":%s,\n", opts->differential ? "true" : "false",
		opts->icicle ? "true" : "false");
	out_printf(o, "\"sum\":\"%llu\",\n\"sumBefore\":\"%llu\",\n\"nodes\":%lu,\n",
		(unsigned long long)t->nodes[0].sum, (unsigned long long)t->nodes[0].sum_before,
		(unsigned long)t->n);
	put_names(o, t, r);
	out_str(o, "\"tree\":\"");
	for (uint32_t i = 0; i < t->n; i++) {
		const struct flametree_node *node = &t->nodes[i];

		base64_uleb(&b, next_depth - node->depth);
		base64_uleb(&b, i ? r->rank[node->name] : 0);
		base64_uleb(&b, node->self);
		if (opts->differential)
			base64_uleb(&b, node->self_before);
		next_depth = node->depth + 1;
	}
	base64_flush(&b);
	out_str(o, "\"}");
}

/* Put what the word between two '@' stands for. */
static void put_part(struct out *o, const char *word, size_t len, const struct flametree *t,
	const struct ranking *r, const struct flame_opts *opts)
{
	if (len == 5 && memcmp(word, "title", len) == 0)
		frame_put_xml(o, opts->title, strlen(opts->title));
	else if (len == 6 && memcmp(word, "policy", len) == 0)
		out_printf(o,
			"default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; base-uri 'none'; "
			"form-action 'none'",
			js_sha256, css_sha256);
	else if (len == 5 && memcmp(word, "style", len) == 0)
		out_str(o, css);
	else if (len == 6 && memcmp(word, "script", len) == 0)
		out_str(o, js);
	else if (len == 4 && memcmp(word, "data", len) == 0)
		put_data(o, t, r, opts);
}

int page_put(struct out *o, const struct flametree *t, const struct flame_opts *opts, struct err *e)
{
	struct ranking r = { 0 };

	if (rank_names(t, &r) != 0)
		return err_nomem(e, "the names");
	out_str(o, begin);
	for (const char *p = html, *at; *p; p = at) {
		at = strchrnul(p, '@');
		out_put(o, p, (size_t)(at - p));
		if (*at) {
			const char *word = at + 1;

			at = strchrnul(word, '@');
			put_part(o, word, (size_t)(at - word), t, &r, opts);
			at += *at != '\0';
		}
	}
	free(r.order);
	free(r.rank);
	return 0;
}
