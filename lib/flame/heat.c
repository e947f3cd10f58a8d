/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "flame/heat.h"
#include "flame/page.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static const char html[] = ""
#include <heat.html.h>
	;
static const char css[] = ""
#include <time.css.h>
	;
static const char css_sha256[] = ""
#include <time.css.sha256.h>
	;
static const char js[] = ""
#include <heat.js.h>
	;
static const char js_sha256[] = ""
#include <heat.js.sha256.h>
	;

#define ROWS_A_DECADE 8
#define ROWS_MAX (13 * ROWS_A_DECADE) /* from 1 us to 2^53 ns */
#define OTHER 0 /* in place of a thread or a stack, which are counted from 1 */

struct entry {
	uint32_t cell, thread, kind, stack;
	uint64_t count, sum;
};

struct heat {
	const struct timeline *t;
	const char *title;
	uint64_t bin_ns;
	uint32_t columns, rows;
	uint64_t edges[ROWS_MAX + 1];
	struct entry *entries;
	size_t n;
	uint32_t *threads; /* of the page, in its order */
	size_t n_threads;
	uint32_t *stacks;
	size_t n_stacks;
	uint32_t *scratch;
};

/* The least of 1, 2, 5, 10, 20 ... us that is not below NS. */
static uint64_t round_up(uint64_t ns)
{
	uint64_t v = 1000;

	for (unsigned int i = 0; v < ns; i++)
		v = i % 3 == 1 ? v / 2 * 5 : v * 2;
	return v;
}

/* Rows begin at the decade of the shortest wait, at 1 us at least: shorter ones are in the first row. */
static void make_rows(struct heat *h, uint64_t shortest)
{
	unsigned int from = 0;

	while (pow(10, 3 + from / ROWS_A_DECADE + 1) <= (double)shortest)
		from += ROWS_A_DECADE;
	h->edges[0] = (uint64_t)llround(pow(10, 3 + from / (double)ROWS_A_DECADE));
	for (h->rows = 1; h->rows <= ROWS_MAX; h->rows++) {
		h->edges[h->rows] = (uint64_t)llround(pow(10, 3 + (from + h->rows) / (double)ROWS_A_DECADE));
		if (h->edges[h->rows] > h->t->longest_ns)
			break;
	}
}

static uint32_t row_of(const struct heat *h, uint64_t ns)
{
	uint32_t low = 0, high = h->rows;

	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (h->edges[middle] <= ns)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static int by_key(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = CMP(x->cell, y->cell);

	if (!order)
		order = CMP(x->thread, y->thread);
	if (!order)
		order = CMP(x->kind, y->kind);
	return order ? order : CMP(x->stack, y->stack);
}

/* Within a cell, the greatest sums first. */
static int by_sum(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = CMP(x->cell, y->cell);

	if (!order)
		order = CMP(y->sum, x->sum);
	return order ? order : by_key(a, b);
}

static void merge(struct heat *h)
{
	size_t n = 0;

	qsort(h->entries, h->n, sizeof(*h->entries), by_key);
	for (size_t i = 0; i < h->n; i++) {
		if (n && by_key(&h->entries[n - 1], &h->entries[i]) == 0) {
			h->entries[n - 1].count += h->entries[i].count;
			h->entries[n - 1].sum += h->entries[i].sum;
		} else {
			h->entries[n++] = h->entries[i];
		}
	}
	h->n = n;
}

/* Keep stacks, and if not THREADS too, of the MOST entries of each cell. */
static void reduce(struct heat *h, size_t most, bool threads)
{
	uint32_t cell = UINT32_MAX;
	size_t nth = 0;

	qsort(h->entries, h->n, sizeof(*h->entries), by_sum);
	for (size_t i = 0; i < h->n; i++) {
		struct entry *entry = &h->entries[i];

		nth = entry->cell == cell ? nth + 1 : 0;
		cell = entry->cell;
		if (nth < most)
			continue;
		entry->stack = OTHER;
		if (!threads)
			entry->thread = OTHER;
	}
	merge(h);
}

/* Fill the cells. Threads beyond HEAT_THREADS_MAX are other ones. */
static int fill(struct heat *h)
{
	const struct timeline *t = h->t;
	_cleanup_free_ uint32_t *number = calloc(t->n_threads + 1, sizeof(*number));

	h->entries = calloc(t->waits.n + 1, sizeof(*h->entries));
	h->threads = timeline_order(t);
	if (!number || !h->entries || !h->threads)
		return -ENOMEM;
	h->n_threads = MIN(t->n_threads, (size_t)HEAT_THREADS_MAX);
	for (uint32_t i = 0; i < h->n_threads; i++)
		number[h->threads[i]] = i + 1;
	for (h->n = 0; h->n < t->waits.n; h->n++) {
		const struct timeline_event *event = &t->waits.p[h->n];
		const struct timeline_what *what = &t->waits.whats[event->what];

		h->entries[h->n] = (struct entry){ .cell = row_of(h, event->total_ns) * h->columns +
							   (uint32_t)(event->begin_ns / h->bin_ns),
			.thread = number[what->thread],
			.kind = what->kind,
			.stack = what->stack + 1,
			.count = 1,
			.sum = event->total_ns };
	}
	merge(h);
	for (size_t most = 64; h->n > HEAT_ENTRIES_MAX && most; most /= 2)
		reduce(h, most, true);
	for (size_t most = 64; h->n > HEAT_ENTRIES_MAX && most; most /= 2)
		reduce(h, most, false);
	return 0;
}

/* Number the stacks that are left. */
static int choose_stacks(struct heat *h)
{
	_cleanup_free_ uint32_t *number_1 = calloc(h->t->n_stacks + 1, sizeof(*number_1));

	h->stacks = calloc(h->t->n_stacks + 1, sizeof(*h->stacks));
	h->scratch = calloc(h->t->strings.n + 1, sizeof(*h->scratch));
	if (!number_1 || !h->stacks || !h->scratch)
		return -ENOMEM;
	for (size_t i = 0; i < h->n; i++) {
		uint32_t *stack = &h->entries[i].stack;

		if (*stack == OTHER)
			continue;
		if (!number_1[*stack]) {
			h->stacks[h->n_stacks] = *stack - 1;
			number_1[*stack] = (uint32_t)++h->n_stacks;
		}
		*stack = number_1[*stack];
	}
	return 0;
}

enum field { CELL, THREAD, KIND, STACK, COUNT, SUM, FIELDS };

static uint64_t field(const struct heat *h, size_t i, enum field f)
{
	const struct entry *entry = &h->entries[i];

	switch (f) {
	case CELL:
		return entry->cell - (i ? h->entries[i - 1].cell : 0);
	case THREAD:
		return entry->thread;
	case KIND:
		return entry->kind;
	case STACK:
		return entry->stack;
	case COUNT:
		return entry->count;
	default:
		return entry->sum;
	}
}

static void put_data(struct out *o, const void *ctx)
{
	static const char *const keys[FIELDS] = { "cell", "thread", "kind", "stack", "count", "sum" };
	const struct heat *h = ctx;

	out_char(o, '{');
	timeline_put_head(o, h->t, h->title);
	timeline_put_kinds(o, h->t);
	timeline_put_threads(o, h->t, h->threads, h->n_threads);
	timeline_put_stacks(o, h->t, h->stacks, h->n_stacks, h->scratch);
	out_printf(o, "\"binNs\":%llu,\n\"columns\":%u,\n\"otherThreads\":%zu,\n\"edges\":[",
		(unsigned long long)h->bin_ns, h->columns, h->t->n_threads - h->n_threads);
	for (uint32_t i = 0; i <= h->rows; i++)
		out_printf(o, "%s%llu", i ? "," : "", (unsigned long long)h->edges[i]);
	out_printf(o, "],\n\"entries\":%zu", h->n);
	for (enum field f = 0; f < FIELDS; f++) {
		struct page_base64 b = { .o = o };

		out_printf(o, ",\n\"%s\":\"", keys[f]);
		for (size_t i = 0; i < h->n; i++)
			page_base64_uleb(&b, field(h, i, f));
		page_base64_flush(&b);
		out_char(o, '"');
	}
	out_char(o, '}');
}

int heat_put(struct out *o, const struct timeline *t, const char *title, struct err *e)
{
	static const struct page_view view = {
		.html = html, .style = { css, css_sha256 }, .script = { js, js_sha256 }, .put_data = put_data
	};
	struct heat h = { .t = t, .title = title };
	uint64_t shortest = UINT64_MAX, last = 0;
	int code;

	for (size_t i = 0; i < t->waits.n; i++) {
		shortest = MIN(shortest, t->waits.p[i].total_ns);
		last = MAX(last, t->waits.p[i].begin_ns);
	}
	h.bin_ns = round_up(last / HEAT_COLUMNS + 1);
	h.columns = (uint32_t)(last / h.bin_ns) + 1;
	make_rows(&h, shortest);
	code = fill(&h);
	if (!code)
		code = choose_stacks(&h);
	if (!code)
		page_put(o, title, &view, &h);
	else
		err_nomem(e, "the cells");
	free(h.entries);
	free(h.threads);
	free(h.stacks);
	free(h.scratch);
	return code;
}
