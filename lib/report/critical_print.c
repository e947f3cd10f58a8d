/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/critical_print.h"
#include "report/format.h"

#include <string.h>

#define THREAD_COLUMNS 18

static const char *const whats[] = { [CRITICAL_RUNNING] = "running",
	[CRITICAL_RUNNABLE] = "runnable",
	[CRITICAL_BLOCKED] = "blocked",
	[CRITICAL_OUTSIDE] = "no-wait" };

static const char *const ends[] = { [CRITICAL_BY_INTERRUPT] = "interrupt",
	[CRITICAL_NOT_ENDED] = "not-ended",
	[CRITICAL_NO_WAKER] = "no-waker",
	[CRITICAL_HIDDEN] = "hidden",
	[CRITICAL_NOT_RECORDED] = "not-recorded",
	[CRITICAL_CONTRADICTION] = "contradiction" };

static const struct critical_path *segments_of(const struct critical_print *p)
{
	return p->mark ? p->slowest_path : p->path;
}

static bool has_place(const struct critical_part *part)
{
	return part->what == CRITICAL_BLOCKED || part->sampled;
}

/* Why a part is one of its own. */
static const char *why_of(const struct critical_part *part)
{
	return part->what == CRITICAL_BLOCKED ? ends[part->end] : part->sampled ? "samples" : "";
}

/* A segment as a part, for what both print alike. */
static struct critical_part part_of(const struct waits *w, const struct critical_segment *s)
{
	struct critical_part part = {
		.thread = s->thread, .what = s->what, .end = s->end, .total = s->to_ns - s->from_ns
	};

	if (s->what == CRITICAL_BLOCKED) {
		const struct wait_event *event = &w->events[s->event];

		part.path = w->rows[event->row].path;
		part.kind = w->rows[event->row].kind;
		part.waker = event->waker == WAITS_NONE ? 0 : w->wakers[event->waker].name;
	}
	return part;
}

/* As what is ranked by thread. */
static struct ranking_group group_of(const struct waits *w, uint32_t thread)
{
	return (struct ranking_group){ .key = thread, .kind = w->threads[thread].name };
}

/* --- the table --- */

/* "3.001234 s", as --from takes it */
static void put_seconds(struct buf *b, uint64_t ns)
{
	buftext_printf(b, "%llu.%06llu s", (unsigned long long)(ns / 1000000000),
		(unsigned long long)(ns % 1000000000 / 1000));
}

static void put_thread(struct buf *b, const struct waits *w, uint32_t thread)
{
	const struct ranking_group g = group_of(w, thread);

	format_group(b, w, RANKING_THREAD, &g);
}

/* "disk-read by [disk]", in full. */
static void put_what(struct buf *b, const struct waits *w, const struct critical_part *part)
{
	if (part->what == CRITICAL_OUTSIDE)
		buftext_str(b, "no wait recorded");
	else if (part->what != CRITICAL_BLOCKED)
		buftext_str(b, whats[part->what]);
	else if (part->kind)
		format_string(b, w, part->kind);
	else
		buftext_str(b, whats[CRITICAL_BLOCKED]);
	if (part->sampled)
		buftext_str(b, " (by samples)");
	if (part->what != CRITICAL_BLOCKED)
		return;
	if (part->end == CRITICAL_NOT_ENDED) {
		buftext_str(b, ", not ended");
		return;
	}
	buftext_str(b, " by ");
	format_string(b, w, part->waker);
	if (part->end == CRITICAL_NO_WAKER || part->end == CRITICAL_CONTRADICTION)
		buftext_str(b, "?");
}

/* The rest of a row that began at FROM: who and what, and below it where. */
static void put_names(
	struct buf *b, const struct critical_print *p, const struct critical_part *part, size_t from)
{
	const struct waits *w = p->waits;
	struct buf name = { 0 }, what = { 0 };
	size_t used;

	put_thread(&name, w, part->thread);
	put_what(&what, w, part);
	buftext_str(b, "  ");
	used = b->len;
	format_cut(b, name.p, name.len, THREAD_COLUMNS);
	for (used = format_columns(b->p + used, b->len - used); used < THREAD_COLUMNS; used++)
		buftext_str(b, " ");
	buftext_str(b, "  ");
	used = format_columns(b->p + from, b->len - from);
	format_cut(b, what.p, what.len, p->width > used + 12 ? p->width - used : 12);
	buftext_str(b, "\n");
	b->failed |= name.failed || what.failed;
	buf_free(&name);
	buf_free(&what);
	if (!has_place(part))
		return;
	buftext_printf(b, "%*s", FORMAT_INDENT, "");
	format_path(b, w, &w->paths[part->path], p->width - FORMAT_INDENT);
	buftext_str(b, "\n");
}

static void put_titles(struct buf *b)
{
	buftext_printf(b, "  %-*s  what\n", THREAD_COLUMNS, "thread");
}

static void put_parts(
	struct out *o, struct buf *b, const struct critical_print *p, const struct critical_path *path)
{
	const size_t n = p->top ? MIN(p->top, path->n) : path->n;
	char text[FORMAT_NUMBER_MAX];

	buftext_str(b, "\n");
	if (n < path->n)
		format_greatest(b, n, "", "");
	format_counted(b, path->n, "part of the path", "parts of the path");
	buftext_str(b, "; % of ");
	buftext_str(b, format_time(text, path->total));
	buftext_str(b, "\n   #     time      %   count  longest");
	put_titles(b);
	for (size_t i = 0; i < n; i++) {
		const struct critical_part *part = &path->parts[i];
		const size_t from = b->len;

		snprintf(text, sizeof(text), "%zu.", i + 1);
		format_cell(b, text, 4);
		format_cell(b, format_time(text, part->total), 9);
		format_cell(b, format_percent(text, part->total, path->total), 7);
		format_cell(b, format_digits(text, part->count), 8);
		format_cell(b, format_time(text, part->max_ns), 9);
		put_names(b, p, part, from);
	}
	format_pass(o, b);
}

static void put_segments(struct out *o, struct buf *b, const struct critical_print *p)
{
	const struct critical_path *path = segments_of(p);
	const uint64_t start = waits_start(p->waits);
	char text[FORMAT_NUMBER_MAX];

	buftext_str(b, "\nthe path in order of time\n       from     time");
	put_titles(b);
	for (size_t i = 0; i < path->n_segments; i++) {
		const struct critical_part part = part_of(p->waits, &path->segments[i]);
		const size_t from = b->len;
		struct buf at = { 0 };

		put_seconds(&at, path->segments[i].from_ns - start);
		buf_put(&at, "", 1);
		if (!at.failed)
			format_cell(b, (const char *)at.p, 11);
		b->failed |= at.failed;
		buf_free(&at);
		format_cell(b, format_time(text, part.total), 9);
		put_names(b, p, &part, from);
		format_pass(o, b);
	}
}

/* What blocked parts are explained by, or why they are not. */
static void put_blocked(struct buf *b, const struct critical_path *path)
{
	static const char *const texts[] = { [CRITICAL_BY_INTERRUPT] = "ended by interrupts",
		[CRITICAL_NOT_ENDED] = "not ended",
		[CRITICAL_NO_WAKER] = "no waker recorded",
		[CRITICAL_HIDDEN] = "waker hidden",
		[CRITICAL_NOT_RECORDED] = "waker without a recorded wait",
		[CRITICAL_CONTRADICTION] = "waker blocked itself" };
	char text[FORMAT_NUMBER_MAX];
	bool any = false;

	for (size_t i = 0; i < CRITICAL_ENDS; i++) {
		if (!path->blocked[i])
			continue;
		buftext_str(b, any ? ", " : "blocked    ");
		buftext_str(b, texts[i]);
		buftext_str(b, " ");
		buftext_str(b, format_time(text, path->blocked[i]));
		any = true;
	}
	buftext_str(b, any ? "\n" : "");
}

/* How much of what is running has a place. */
static void put_sampled(struct buf *b, const struct waits *w, const struct critical_path *path)
{
	char text[FORMAT_NUMBER_MAX];

	if (!w->n_samples)
		return;
	buftext_str(b, "sampled    ");
	format_counted(b, path->n_samples, "sample", "samples");
	buftext_str(b, " in ");
	buftext_str(b, format_time(text, path->sampled));
	buftext_str(b, " of what is running\n");
}

static void put_summary(struct buf *b, const struct critical_print *p)
{
	static const char *const texts[] = { "running ", "runnable ", "blocked ", "no wait recorded " };
	const struct critical_path *path = p->path;
	char text[FORMAT_NUMBER_MAX];
	bool any = false;

	buftext_str(b, "thread     ");
	put_thread(b, p->waits, p->thread);
	buftext_str(b, "\nwindow     ");
	put_seconds(b, p->window.from_ns);
	buftext_str(b, " to ");
	put_seconds(b, p->window.to_ns);
	if (p->mark) {
		buftext_str(b, "\nrequests   ");
		format_counted(b, p->n_requests, "request", "requests");
		buftext_str(b, " between waits in ");
		format_clean(b, p->mark, strlen(p->mark));
		buftext_str(b, ", mean ");
		buftext_str(b, format_time(text, path->total / p->n_requests));
		buftext_str(b, ", longest ");
		buftext_str(b, format_time(text, p->slowest_path->total));
	}
	buftext_str(b, "\npath       ");
	buftext_str(b, format_time(text, path->total));
	for (size_t i = 0; i < CRITICAL_WHATS; i++) {
		if (!path->of[i])
			continue;
		buftext_str(b, any ? ", " : ": ");
		buftext_str(b, texts[i]);
		any = true;
		buftext_str(b, format_time(text, path->of[i]));
	}
	buftext_str(b, "\n");
	put_sampled(b, p->waits, path);
	put_blocked(b, path);
	if (!p->waits->n_wakers)
		buftext_str(b, "wakers     none recorded, so waits are not followed: record with --wakers\n");
	format_lost(b, p->waits, 0);
}

static void put_table(struct out *o, struct buf *b, const struct critical_print *p)
{
	put_summary(b, p);
	put_parts(o, b, p, p->path);
	if (p->mark && p->n_requests > 1) {
		buftext_str(b, "\nthe slowest request: ");
		put_seconds(b, p->slowest.from_ns);
		buftext_str(b, " to ");
		put_seconds(b, p->slowest.to_ns);
		put_parts(o, b, p, p->slowest_path);
	}
	if (p->segments)
		put_segments(o, b, p);
}

/* --- TSV --- */

static void put_tsv_names(struct buf *b, const struct waits *w, const struct critical_part *part)
{
	const bool blocked = part->what == CRITICAL_BLOCKED;
	const struct ranking_group g = group_of(w, part->thread);
	struct buf line = { 0 };

	format_tsv_group(&line, w, RANKING_THREAD, &g);
	/* without its newline */
	buf_put(b, line.p, line.len - (line.len > 0));
	b->failed |= line.failed;
	buf_free(&line);
	buftext_printf(b, "\t%s\t", whats[part->what]);
	format_string(b, w, blocked ? part->waker : 0);
	buftext_printf(b, "\t%s\t", why_of(part));
	if (has_place(part))
		format_tsv_group(b, w, RANKING_STACK,
			&(struct ranking_group){ .key = part->path, .kind = part->kind });
	else
		buftext_str(b, "\t\t\n");
}

static void put_tsv(struct out *o, struct buf *b, const struct critical_print *p)
{
	const struct critical_path *path = p->segments ? segments_of(p) : p->path;
	const size_t n = p->segments ? path->n_segments : p->top ? MIN(p->top, path->n) : path->n;
	const uint64_t start = waits_start(p->waits);

	buftext_str(b, p->segments ? "from_ns\ttotal_ns\t" : "rank\ttotal_ns\tcount\tmax_ns\t");
	buftext_printf(b, "%s\twhat\twaker\twhy\t%s\n", format_tsv_title(RANKING_THREAD),
		format_tsv_title(RANKING_STACK));
	for (size_t i = 0; i < n; i++) {
		struct critical_part part =
			p->segments ? part_of(p->waits, &path->segments[i]) : path->parts[i];

		format_tsv_number(b, p->segments ? path->segments[i].from_ns - start : i + 1, true);
		format_tsv_number(b, part.total, true);
		if (!p->segments) {
			format_tsv_number(b, part.count, true);
			format_tsv_number(b, part.max_ns, true);
		}
		put_tsv_names(b, p->waits, &part);
		format_pass(o, b);
	}
	format_pass(o, b);
}

/* --- JSON --- */

static void json_names(struct format_json *wr, const struct critical_part *part)
{
	const struct ranking_group g = group_of(wr->w, part->thread);

	format_json_group(wr, RANKING_THREAD, &g);
	json_str(&wr->j, "what", whats[part->what]);
	if (!has_place(part))
		return;
	if (part->what == CRITICAL_BLOCKED)
		format_json_text(wr, "waker", part->waker);
	json_str(&wr->j, "why", why_of(part));
	format_json_group(
		wr, RANKING_STACK, &(struct ranking_group){ .key = part->path, .kind = part->kind });
}

static void json_path(
	struct format_json *wr, const struct critical_print *p, const struct critical_path *path)
{
	const size_t n = p->top ? MIN(p->top, path->n) : path->n;

	format_json_sum(wr, "total_ns", path->total);
	format_json_sum(wr, "running_ns", path->of[CRITICAL_RUNNING]);
	if (wr->w->n_samples) {
		format_json_sum(wr, "sampled_ns", path->sampled);
		json_u64(&wr->j, "samples", path->n_samples);
	}
	format_json_sum(wr, "runnable_ns", path->of[CRITICAL_RUNNABLE]);
	format_json_sum(wr, "blocked_ns", path->of[CRITICAL_BLOCKED]);
	format_json_sum(wr, "no_wait_ns", path->of[CRITICAL_OUTSIDE]);
	json_begin(&wr->j, "blocked_why_ns", '{');
	for (size_t i = 0; i < CRITICAL_ENDS; i++)
		format_json_sum(wr, ends[i], path->blocked[i]);
	json_end(&wr->j, '}');
	json_line(&wr->j, 2);
	json_begin(&wr->j, "rows", '[');
	for (size_t i = 0; i < n; i++) {
		json_line(&wr->j, 4);
		json_begin(&wr->j, NULL, '{');
		format_json_sum(wr, "total_ns", path->parts[i].total);
		json_u64(&wr->j, "count", path->parts[i].count);
		json_u64(&wr->j, "max_ns", path->parts[i].max_ns);
		json_names(wr, &path->parts[i]);
		json_end(&wr->j, '}');
	}
	json_end(&wr->j, ']');
}

static void put_json(struct format_json *wr, const struct critical_print *p)
{
	const struct critical_path *path = segments_of(p);
	const struct ranking_group g = group_of(p->waits, p->thread);
	const uint64_t start = waits_start(p->waits);

	json_begin(&wr->j, NULL, '{');
	format_json_group(wr, RANKING_THREAD, &g);
	json_u64(&wr->j, "start_mono_ns", start);
	json_u64(&wr->j, "from_ns", p->window.from_ns);
	json_u64(&wr->j, "to_ns", p->window.to_ns);
	if (p->mark) {
		json_str(&wr->j, "mark", p->mark);
		json_u64(&wr->j, "requests", p->n_requests);
	}
	json_bool(&wr->j, "wakers", p->waits->n_wakers);
	json_path(wr, p, p->path);
	if (p->mark) {
		json_line(&wr->j, 2);
		json_begin(&wr->j, "slowest", '{');
		json_u64(&wr->j, "from_ns", p->slowest.from_ns);
		json_u64(&wr->j, "to_ns", p->slowest.to_ns);
		json_path(wr, p, p->slowest_path);
		json_end(&wr->j, '}');
	}
	if (p->segments) {
		json_line(&wr->j, 2);
		json_begin(&wr->j, "segments", '[');
		for (size_t i = 0; i < path->n_segments; i++) {
			const struct critical_part part = part_of(p->waits, &path->segments[i]);

			json_line(&wr->j, 4);
			json_begin(&wr->j, NULL, '{');
			json_u64(&wr->j, "from_ns", path->segments[i].from_ns - start);
			format_json_sum(wr, "total_ns", part.total);
			json_names(wr, &part);
			json_end(&wr->j, '}');
		}
		json_end(&wr->j, ']');
	}
	json_end(&wr->j, '}');
}

int critical_print(struct out *o, const struct critical_print *p, struct err *e)
{
	struct format_json wr = { .j = { .o = o, .spaced = true }, .w = p->waits };
	struct buf b = { 0 };
	bool failed;

	if (p->format == REPORT_JSON) {
		put_json(&wr, p);
		out_char(o, '\n');
	} else if (p->format == REPORT_TSV) {
		put_tsv(o, &b, p);
	} else {
		put_table(o, &b, p);
	}
	format_pass(o, &b);
	failed = b.failed || wr.failed;
	buf_free(&b);
	buf_free(&wr.text);
	return failed ? err_nomem(e, "the path") : 0;
}
