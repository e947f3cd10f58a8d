/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "flame/threads.h"
#include "flame/page.h"

#include <errno.h>

static const char html[] = ""
#include <threads.html.h>
	;
static const char css[] = ""
#include <time.css.h>
	;
static const char css_sha256[] = ""
#include <time.css.sha256.h>
	;
static const char js[] = ""
#include <threads.js.h>
	;
static const char js_sha256[] = ""
#include <threads.js.sha256.h>
	;

struct lines {
	const struct timeline *t;
	const char *title;
	uint32_t *order; /* threads by row */
	uint32_t *row; /* rows by thread */
	uint32_t *stacks; /* 0, 1, 2 ... */
	uint32_t *scratch;
};

static void put_wakers(struct out *o, const struct lines *l)
{
	const struct timeline *t = l->t;

	out_str(o, "\"wakers\":[");
	for (size_t i = 0; i < t->n_wakers; i++) {
		uint32_t thread = t->wakers[i].thread;

		out_str(o, i ? ",[" : "[");
		timeline_put_string(o, t, t->wakers[i].name);
		out_printf(o, ",%ld]", thread == TIMELINE_NONE ? -1L : (long)l->row[thread]);
	}
	out_str(o, "],\n");
}

static void put_whats(struct page_base64 *b, const struct lines *l, const struct timeline_events *events)
{
	for (size_t i = 0; i < events->n_whats; i++) {
		const struct timeline_what *what = &events->whats[i];

		page_base64_uleb(b, l->row[what->thread]);
		page_base64_uleb(b, what->kind == TIMELINE_NONE ? 0 : what->kind);
		page_base64_uleb(b, what->waker == TIMELINE_NONE ? 0 : what->waker + UINT64_C(1));
		page_base64_uleb(b, what->stack);
		page_base64_uleb(b, what->flags);
	}
}

enum field { BEGIN, TOTAL, RUNNABLE, WHAT };

static void put_column(struct out *o, const char *key, const struct timeline_events *events, enum field field,
	size_t first_what)
{
	struct page_base64 b = { .o = o };
	uint64_t before = 0;

	out_printf(o, ",\n\"%s\":\"", key);
	for (size_t i = 0; i < events->n; i++) {
		const struct timeline_event *event = &events->p[i];

		if (field == BEGIN)
			page_base64_uleb(&b, event->begin_ns - before);
		else if (field == TOTAL)
			page_base64_uleb(&b, event->total_ns);
		else if (field == RUNNABLE)
			page_base64_uleb(&b, event->runnable_ns == UINT64_MAX ? 0 : event->runnable_ns + 1);
		else
			page_base64_uleb(&b, first_what + event->what);
		before = event->begin_ns;
	}
	page_base64_flush(&b);
	out_char(o, '"');
}

static void put_data(struct out *o, const void *ctx)
{
	const struct lines *l = ctx;
	const struct timeline *t = l->t;
	struct page_base64 b = { .o = o };
	size_t idle = 0;

	for (size_t i = 0; i < t->n_threads; i++)
		idle += t->threads[i].idle;
	out_char(o, '{');
	timeline_put_head(o, t, l->title);
	timeline_put_kinds(o, t);
	timeline_put_threads(o, t, l->order, t->n_threads);
	out_printf(o, "\"idleThreads\":%zu,\n", idle);
	put_wakers(o, l);
	timeline_put_stacks(o, t, l->stacks, t->n_stacks, l->scratch);
	out_printf(o, "\"samples\":%zu,\n\"nWhats\":%zu,\n\"whats\":\"", t->samples.n,
		t->waits.n_whats + t->samples.n_whats);
	put_whats(&b, l, &t->waits);
	put_whats(&b, l, &t->samples);
	page_base64_flush(&b);
	out_char(o, '"');
	put_column(o, "begin", &t->waits, BEGIN, 0);
	put_column(o, "duration", &t->waits, TOTAL, 0);
	put_column(o, "runnable", &t->waits, RUNNABLE, 0);
	put_column(o, "what", &t->waits, WHAT, 0);
	put_column(o, "sampleBegin", &t->samples, BEGIN, 0);
	put_column(o, "samplePeriod", &t->samples, TOTAL, 0);
	put_column(o, "sampleWhat", &t->samples, WHAT, t->waits.n_whats);
	out_char(o, '}');
}

int threads_put(struct out *o, const struct timeline *t, const char *title, struct err *e)
{
	static const struct page_view view = {
		.html = html, .style = { css, css_sha256 }, .script = { js, js_sha256 }, .put_data = put_data
	};
	_cleanup_free_ uint32_t *order = timeline_order(t);
	_cleanup_free_ uint32_t *row = calloc(t->n_threads + 1, sizeof(*row));
	_cleanup_free_ uint32_t *stacks = calloc(t->n_stacks + 1, sizeof(*stacks));
	_cleanup_free_ uint32_t *scratch = calloc(t->strings.n + 1, sizeof(*scratch));
	const struct lines l = {
		.t = t, .title = title, .order = order, .row = row, .stacks = stacks, .scratch = scratch
	};

	if (!order || !row || !stacks || !scratch)
		return err_nomem(e, "the threads");
	for (uint32_t i = 0; i < t->n_threads; i++)
		row[order[i]] = i;
	for (uint32_t i = 0; i < t->n_stacks; i++)
		stacks[i] = i;
	page_put(o, title, &view, &l);
	return 0;
}
