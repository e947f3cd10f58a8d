/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "flame/page.h"
#include "flame/frame.h"

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
static const struct page_source style = { css, css_sha256 }, script = { js, js_sha256 };

static const char begin[] = "<!DOCTYPE html>\n<!-- stacktools flame -->\n";
const struct result_type page_type = { "a page of flame", begin, sizeof(begin) - 1 };

void page_base64_flush(struct page_base64 *b)
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

void page_base64_byte(struct page_base64 *b, uint8_t byte)
{
	b->bits = b->bits << 8 | byte;
	if (++b->n == 3)
		page_base64_flush(b);
}

void page_base64_uleb(struct page_base64 *b, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		page_base64_byte(b, (uint8_t)(v | 0x80));
	page_base64_byte(b, (uint8_t)v);
}

void page_put_text(struct out *o, const char *key, const char *text)
{
	out_printf(o, "\"%s\":\"", key);
	frame_put_json(o, text, strlen(text));
	out_str(o, "\",\n");
}

static bool is(const char *word, size_t len, const char *what)
{
	return len == strlen(what) && memcmp(word, what, len) == 0;
}

/* Put the part of a view's HTML that begins with the WORD between two '@'. */
static void put_section(struct out *o, const char *from, const char *word, size_t len)
{
	for (const char *p = strchr(from, '@'); p; p = strchr(p, '@')) {
		const char *name = p + 1, *end = strchrnul(name, '@');

		p = *end ? end + 1 : end;
		if ((size_t)(end - name) == len && memcmp(name, word, len) == 0) {
			p += *p == '\n';
			out_put(o, p, (size_t)(strchrnul(p, '@') - p));
			return;
		}
	}
}

static void put_sources(struct out *o, const char *tag, const struct page_source sources[2])
{
	for (int i = 0; i < 2; i++) {
		if (sources[i].text)
			out_printf(o, "<%s>", tag), out_str(o, sources[i].text),
				out_printf(o, "</%s>\n", tag);
	}
}

static void put_policy(struct out *o, const char *name, const struct page_source sources[2])
{
	out_str(o, name);
	for (int i = 0; i < 2; i++) {
		if (sources[i].text)
			out_printf(o, " 'sha256-%s'", sources[i].sha256);
	}
	out_str(o, "; ");
}

/* Put what the word between two '@' stands for. */
static void put_part(struct out *o, const char *word, size_t len, const char *title,
	const struct page_view *view, const void *ctx)
{
	const struct page_source styles[] = { style, view->style }, scripts[] = { script, view->script };

	if (is(word, len, "title")) {
		frame_put_xml(o, title, strlen(title));
	} else if (is(word, len, "policy")) {
		out_str(o, "default-src 'none'; ");
		put_policy(o, "script-src", scripts);
		put_policy(o, "style-src", styles);
		out_str(o, "base-uri 'none'; form-action 'none'");
	} else if (is(word, len, "style")) {
		put_sources(o, "style", styles);
	} else if (is(word, len, "script")) {
		put_sources(o, "script", scripts);
	} else if (is(word, len, "data")) {
		view->put_data(o, ctx);
	} else {
		put_section(o, view->html, word, len);
	}
}

void page_put(struct out *o, const char *title, const struct page_view *view, const void *ctx)
{
	out_str(o, begin);
	for (const char *p = html, *at; *p; p = at) {
		at = strchrnul(p, '@');
		out_put(o, p, (size_t)(at - p));
		if (*at) {
			const char *word = at + 1;

			at = strchrnul(word, '@');
			put_part(o, word, (size_t)(at - word), title, view, ctx);
			at += *at != '\0';
		}
	}
}
