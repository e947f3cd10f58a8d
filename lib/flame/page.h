/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * page - self-contained HTML pages: what those of a flame graph, a heat map and a thread time line share.
 *
 * A page is page.html with page.css, page.js, and a view: its own HTML, perhaps a style, a script, and
 * data as JSON, which is written so that no name can end it: see frame_put_json(). The policy of the page
 * (Content-Security-Policy) allows these scripts and styles by their SHA-256 and nothing else.
 */
#ifndef STACKTOOLS_FLAME_PAGE_H
#define STACKTOOLS_FLAME_PAGE_H

#include "base/out.h"
#include "base/result.h"

struct page_source {
	const char *text; /* NULL: none */
	const char *sha256; /* in base64 */
};

struct page_view {
	const char *html; /* parts that each begin with "@tools@", "@body@" or "@keys@" */
	struct page_source style, script;
	void (*put_data)(struct out *o, const void *ctx); /* put a JSON value */
};

extern const struct result_type page_type;

/* The out keeps errors of writing. */
void page_put(struct out *o, const char *title, const struct page_view *view, const void *ctx);

/* Put "KEY": and TEXT as a JSON string, a comma, and a newline. */
void page_put_text(struct out *o, const char *key, const char *text);

/* Base64 of bytes that come one after the other. Zeroed but for the out; flush it at the end. */
struct page_base64 {
	struct out *o;
	uint32_t bits;
	unsigned int n; /* bytes in BITS */
};

void page_base64_byte(struct page_base64 *b, uint8_t byte);
void page_base64_uleb(struct page_base64 *b, uint64_t v); /* unsigned LEB128 */
void page_base64_flush(struct page_base64 *b);

#endif
