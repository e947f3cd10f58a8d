/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/print.h"
#include "report/format.h"

#include <string.h>

static const char called_by[] = "called by";

#define LIVE_WIDE 92 /* columns for those of --live and all others */

/* --- the table --- */

/* The numbers of group G, or their titles if it is NULL. */
static void put_cells(struct buf *b, const struct report_print *p, const struct ranking_group *g, size_t rank,
	wait_sum ranked, bool self, bool threads, bool p99)
{
	const struct waits *w = p->waits;
	const bool by_last = p->last && p->opts->by_last;
	char text[FORMAT_NUMBER_MAX];

	if (g)
		snprintf(text, sizeof(text), "%zu.", rank);
	format_cell(b, g ? text : "#", 4);
	if (p->last) {
		format_cell(b, g ? format_amount(text, w, g->last.total) : "last", 9);
		if (by_last)
			format_cell(b, g ? format_percent(text, g->last.total, ranked) : "%", 7);
		format_cell(b, g ? format_digits(text, g->last.count) : "ended", 8);
	}
	format_cell(b,
		g                             ? format_amount(text, w, g->stats.total)
		: w->is_time                  ? "time"
		: w->unit == WAITS_UNIT_COUNT ? "waits"
					      : "period",
		9);
	if (!by_last)
		format_cell(b, g ? format_percent(text, g->stats.total, ranked) : "%", 7);
	if (self)
		format_cell(b, g ? format_amount(text, w, g->self) : "self", 9);
	if (!w->folded) {
		format_cell(b, g ? format_digits(text, g->stats.count) : "count", 8);
		if (!p->last)
			format_cell(b, g ? format_amount(text, w, wait_stats_mean(&g->stats)) : "mean", 9);
	}
	if (p99)
		format_cell(b, !g ? "p99" : g->has_p99 ? format_time(text, g->p99_ns) : "-", 9);
	if (w->has_max)
		format_cell(b,
			!g                 ? "longest"
			: g->stats.has_max ? format_time(text, g->stats.max_ns)
					   : "-",
			9);
	if (threads && w->n_threads)
		format_cell(b, g ? format_digits(text, g->threads) : "threads", 8);
}

/* Of one wait, the 99th percentile says nothing. */
static bool has_percentiles(const struct ranking_groups *groups, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (groups->p[i].has_p99 && groups->p[i].stats.count > 1)
			return true;
	}
	return false;
}

/* TITLE is that of the last column; callers without a key are none. */
static void put_groups(struct buf *b, const struct report_print *p, const struct ranking_groups *groups,
	enum ranking_by by, wait_sum all, const char *title, bool self)
{
	const struct waits *w = p->waits;
	const bool wide = !p->last || p->width >= LIVE_WIDE;
	const bool threads = by != RANKING_THREAD && !self && wide;
	const bool callers = title == called_by;
	size_t n = p->top ? MIN(p->top, groups->n) : groups->n, from = b->len;
	const bool p99 = has_percentiles(groups, n);
	struct buf name = { 0 };

	put_cells(b, p, NULL, 0, all, self, threads, p99);
	if (by != RANKING_STACK || w->has_kind) {
		buftext_str(b, "  ");
		buftext_str(b, title);
	}
	buftext_str(b, "\n");
	for (size_t i = 0; i < n; i++) {
		const struct ranking_group *g = &groups->p[i];
		size_t used;

		from = b->len;
		put_cells(b, p, g, i + 1, all, self, threads, p99);
		used = format_columns(b->p + from, b->len - from) + 2;
		buf_reset(&name);
		if (by == RANKING_STACK)
			format_string(&name, w, g->kind);
		else if (callers && !g->key)
			buftext_str(&name, "(outermost)");
		else
			format_group(&name, w, by, g);
		if (name.len) {
			buftext_str(b, "  ");
			format_cut(b, name.p, name.len, p->width > used + 12 ? p->width - used : 12);
		}
		buftext_str(b, "\n");
		if (by != RANKING_STACK)
			continue;
		buftext_printf(b, "%*s", FORMAT_INDENT, "");
		format_path(b, w, &w->paths[g->key], p->width - FORMAT_INDENT);
		buftext_str(b, "\n");
	}
	b->failed |= name.failed;
	buf_free(&name);
}

static void put_parts(struct buf *b, const struct waits *w, const struct ranking *r)
{
	char text[FORMAT_NUMBER_MAX];
	wait_sum rest = r->all.total - r->idle - r->blocked - r->runnable;

	if (!w->has_kind && !w->has_split)
		return;
	buftext_str(b, "of it      ");
	if (w->has_kind) {
		buftext_str(b, "idle ");
		buftext_str(b, format_amount(text, w, r->idle));
	}
	if (w->has_split) {
		buftext_str(b, w->has_kind ? ", blocked " : "blocked ");
		buftext_str(b, format_amount(text, w, r->blocked));
		buftext_str(b, ", runnable ");
		buftext_str(b, format_amount(text, w, r->runnable));
		if (rest) {
			buftext_str(b, ", not known ");
			buftext_str(b, format_amount(text, w, rest));
		}
	}
	buftext_str(b, "\n");
}

/* Else records are samples, of a clock or a counter. */
static bool is_of_waits(const struct waits *w)
{
	static const char event[] = "offcpu-time";
	size_t len;
	const char *p = waits_string(w, w->event, &len);

	return !len || (len == sizeof(event) - 1 && memcmp(p, event, len) == 0);
}

/* What ended since the flush before. */
static void put_last(struct buf *b, const struct waits *w, const struct ranking *r)
{
	char text[FORMAT_NUMBER_MAX];

	buftext_str(b, "last       ");
	buftext_str(b, format_time(text, w->last_ns));
	buftext_str(b, ": ");
	buftext_str(b, format_digits(text, r->last.count));
	buftext_str(b, ", ");
	format_sum(b, w, r->last.total);
	buftext_str(b, " in all\n");
}

static void put_summary(struct buf *b, const struct report_print *p, const struct ranking *r)
{
	const struct waits *w = p->waits;
	char text[FORMAT_NUMBER_MAX];

	buftext_str(b, "recorded   ");
	if (w->elapsed_ns) {
		buftext_str(b, format_time(text, w->elapsed_ns));
		buftext_str(b, " of ");
	}
	format_counted(b, r->n_processes, "process", "processes");
	if (r->n_threads) {
		buftext_str(b, " with ");
		format_counted(b, r->n_threads, "thread", "threads");
	}
	buftext_str(b, w->folded ? "\nsum        " : is_of_waits(w) ? "\nwaits      " : "\nsamples    ");
	if (!w->folded) {
		buftext_str(b, format_digits(text, r->all.count));
		buftext_str(b, ", ");
	}
	format_sum(b, w, r->all.total);
	buftext_str(b, " in all, ");
	if (!w->folded) {
		buftext_str(b, "mean ");
		buftext_str(b, format_amount(text, w, wait_stats_mean(&r->all)));
		buftext_str(b, ", ");
	}
	format_counted(b, w->n_stacks, "distinct stack", "distinct stacks");
	buftext_str(b, "\n");
	if (p->last)
		put_last(b, w, r);
	put_parts(b, w, r);
	if (w->n_on_cpu) {
		buftext_str(b, "on CPU     ");
		buftext_str(b, format_time(text, w->on_cpu_ns));
		buftext_str(b, ", by ");
		format_counted(b, w->n_on_cpu, "sample", "samples");
		buftext_str(b, "; --event cpu-clock ranks them\n");
	}
	if (p->opts->kinds) {
		buftext_str(b, "only kind  ");
		format_clean(b, p->opts->kinds, strlen(p->opts->kinds));
		buftext_str(b, "\n");
	}
	format_lost(b, w, 0);
}

static void put_rest(struct buf *b, const struct report_print *p, const struct ranking_rest *rest,
	const char *what, const char *option)
{
	if (!rest->places)
		return;
	buftext_str(b, what);
	format_sum(b, p->waits, rest->stats.total);
	buftext_str(b, " in ");
	format_counted(b, rest->places, "place", "places");
	if (rest->threads) {
		buftext_str(b, " of ");
		format_counted(b, rest->threads, "thread", "threads");
	}
	buftext_str(b, option);
}

static void put_set_aside(struct buf *b, const struct report_print *p, const struct ranking *r)
{
	if (r->set_aside_idle.places || r->set_aside_once.places)
		buftext_str(b, r->groups.n ? "\n" : "");
	put_rest(b, p, &r->set_aside_idle, "idle: ", "; --idle ranks them too\n");
	put_rest(b, p, &r->set_aside_once, "waited once, all the time: ", "; --all ranks them too\n");
}

void report_table(struct buf *b, const struct report_print *p, const struct ranking *r)
{
	const struct ranking_groups *g = &r->groups;
	enum ranking_by by = p->opts->by;
	const bool by_last = p->last && p->opts->by_last;
	const wait_sum ranked = by_last ? r->ranked_last.total : r->ranked;
	size_t n = p->top ? MIN(p->top, g->n) : g->n;

	put_summary(b, p, r);
	buftext_str(b, "\n");
	if (format_heading(b, by, n, g->n, "", "", "nothing to rank:\n")) {
		buftext_str(b, "; % of ");
		format_sum(b, p->waits, ranked);
		buftext_str(b, ranked == (by_last ? r->last.total : r->all.total)
				       ? ", all of it\n"
				       : ", without what is set aside below\n");
		put_groups(b, p, g, by, ranked, format_title(by == RANKING_STACK ? RANKING_KIND : by),
			by == RANKING_FUNCTION);
	}
	put_set_aside(b, p, r);
}

/* --- TSV --- */

static void put_tsv_head(struct buf *b, const struct report_print *p, enum ranking_by by, bool self)
{
	const char *unit = p->waits->is_time ? "_ns" : "";

	buftext_printf(b, "rank\ttotal%s\t", unit);
	if (self)
		buftext_printf(b, "self%s\t", unit);
	if (p->last)
		buftext_printf(b, "last_total%s\tlast_count\t", unit);
	buftext_printf(b, "count\tmean%s\tp99%s\tmax%s\tthreads\t", unit, unit, unit);
	buftext_str(b, format_tsv_title(by));
	buftext_str(b, "\n");
}

/* With SELF_FIELD, the time SELF is among them; NULL: it is not known, nor is P99. LAST, if not NULL, too. */
static void put_tsv_numbers(struct buf *b, const struct waits *w, const struct wait_stats *s, size_t threads,
	const uint64_t *p99, bool self_field, const wait_sum *self, const struct wait_last *last)
{
	format_tsv_number(b, s->total, true);
	if (self_field)
		format_tsv_number(b, self ? *self : 0, self);
	if (last) {
		format_tsv_number(b, last->total, true);
		format_tsv_number(b, last->count, !w->folded);
	}
	format_tsv_number(b, s->count, !w->folded);
	format_tsv_number(b, wait_stats_mean(s), !w->folded);
	format_tsv_number(b, p99 ? *p99 : 0, p99);
	format_tsv_number(b, s->max_ns, s->has_max);
	format_tsv_number(b, threads, w->n_threads);
}

static const uint64_t *known_p99(const struct ranking_group *g)
{
	return g->has_p99 ? &g->p99_ns : NULL;
}

static void put_tsv(
	struct out *o, struct buf *b, const struct report_print *p, const struct ranking_groups *g)
{
	const enum ranking_by by = p->opts->by;
	const bool self = by == RANKING_FUNCTION;
	size_t n = p->top ? MIN(p->top, g->n) : g->n;

	put_tsv_head(b, p, by, self);
	for (size_t i = 0; i < n; i++) {
		format_tsv_number(b, i + 1, true);
		put_tsv_numbers(b, p->waits, &g->p[i].stats, g->p[i].threads, known_p99(&g->p[i]), self,
			&g->p[i].self, p->last ? &g->p[i].last : NULL);
		format_tsv_group(b, p->waits, by, &g->p[i]);
		format_pass(o, b);
	}
	format_pass(o, b);
}

/* --- JSON --- */

static void json_last(struct format_json *wr, const struct wait_last *last)
{
	format_json_amount(wr, "last_total", last->total);
	if (!wr->w->folded)
		format_json_sum(wr, "last_count", last->count);
}

static void json_group(struct format_json *wr, enum ranking_by by, const struct ranking_group *g, bool self)
{
	const struct waits *w = wr->w;

	format_json_line(wr, 4);
	json_begin(&wr->j, NULL, '{');
	format_json_group(wr, by, g);
	format_json_stats(wr, &g->stats);
	if (wr->last)
		json_last(wr, &g->last);
	if (g->has_p99)
		json_u64(&wr->j, "p99_ns", g->p99_ns);
	else
		json_null(&wr->j, "p99_ns");
	if (self)
		format_json_amount(wr, "self", g->self);
	if (w->n_threads)
		json_u64(&wr->j, "threads", g->threads);
	json_end(&wr->j, '}');
}

static void json_groups(struct format_json *wr, const char *key, const struct report_print *p,
	const struct ranking_groups *g, enum ranking_by by, bool self)
{
	size_t n = p->top ? MIN(p->top, g->n) : g->n;

	format_json_line(wr, 2);
	json_begin(&wr->j, key, '[');
	for (size_t i = 0; i < n; i++)
		json_group(wr, by, &g->p[i], self);
	json_end(&wr->j, ']');
}

static void put_json(struct format_json *wr, const struct report_print *p, const struct ranking *r)
{
	json_begin(&wr->j, NULL, '{');
	json_str(&wr->j, "by", format_title(p->opts->by));
	format_json_summary(wr, r);
	if (p->last) {
		json_u64(&wr->j, "last_elapsed_ns", p->waits->last_ns);
		json_last(wr, &r->last);
	}
	json_groups(wr, "rows", p, &r->groups, p->opts->by, p->opts->by == RANKING_FUNCTION);
	json_end(&wr->j, '}');
}

int report_ranking(struct out *o, const struct report_print *p, const struct ranking *r, struct err *e)
{
	struct format_json wr = {
		.j = { .o = o, .spaced = true }, .w = p->waits, .last = p->last, .one_line = p->one_line
	};
	struct buf b = { 0 };
	bool failed;

	if (p->format == REPORT_JSON) {
		put_json(&wr, p, r);
		out_char(o, '\n');
	} else if (p->format == REPORT_TSV) {
		put_tsv(o, &b, p, &r->groups);
	} else {
		report_table(&b, p, r);
		format_pass(o, &b);
	}
	failed = b.failed || wr.failed;
	buf_free(&b);
	buf_free(&wr.text);
	return failed ? err_nomem(e, "the report") : 0;
}

/* --- callers and callees --- */

static void put_around(
	struct buf *b, const struct report_print *p, const struct ranking_function *r, const char *name)
{
	const struct waits *w = p->waits;
	char text[FORMAT_NUMBER_MAX];

	buftext_str(b, "function   ");
	format_clean(b, name, strlen(name));
	buftext_str(b, "\ntotal      ");
	format_sum(b, w, r->total.total);
	if (!w->folded) {
		buftext_str(b, " in ");
		format_counted(b, r->total.count, "wait", "waits");
	}
	if (r->threads) {
		buftext_str(b, " of ");
		format_counted(b, r->threads, "thread", "threads");
	}
	buftext_str(b, "\nself       ");
	buftext_str(b, format_amount(text, w, r->self));
	buftext_str(b, " (");
	buftext_str(b, format_percent(text, r->self, r->total.total));
	buftext_str(b, " %): it is the innermost user function\n\n");
	put_groups(b, p, &r->callers, RANKING_FUNCTION, r->total.total, called_by, false);
	if (r->callees.n) {
		buftext_str(b, "\n");
		put_groups(b, p, &r->callees, RANKING_FUNCTION, r->total.total, "calls", false);
	}
}

static void put_around_tsv(struct out *o, struct buf *b, const struct report_print *p,
	const struct ranking_groups *g, const char *what)
{
	size_t n = p->top ? MIN(p->top, g->n) : g->n;

	for (size_t i = 0; i < n; i++) {
		buftext_str(b, g->p[i].is_call ? "syscall" : what);
		buftext_str(b, "\t");
		put_tsv_numbers(
			b, p->waits, &g->p[i].stats, g->p[i].threads, known_p99(&g->p[i]), true, NULL, NULL);
		format_tsv_group(b, p->waits, RANKING_FUNCTION, &g->p[i]);
		format_pass(o, b);
	}
}

int report_function(struct out *o, const struct report_print *p, const struct ranking_function *r,
	const char *name, struct err *e)
{
	struct format_json wr = { .j = { .o = o, .spaced = true }, .w = p->waits };
	const char *unit = p->waits->is_time ? "_ns" : "";
	struct buf b = { 0 };
	bool failed;

	if (p->format == REPORT_JSON) {
		json_begin(&wr.j, NULL, '{');
		json_str(&wr.j, "function", name);
		format_json_stats(&wr, &r->total);
		format_json_amount(&wr, "self", r->self);
		json_u64(&wr.j, "threads", r->threads);
		json_groups(&wr, "callers", p, &r->callers, RANKING_FUNCTION, false);
		json_groups(&wr, "callees", p, &r->callees, RANKING_FUNCTION, false);
		json_end(&wr.j, '}');
		out_char(o, '\n');
	} else if (p->format == REPORT_TSV) {
		buftext_printf(&b,
			"relation\ttotal%s\tself%s\tcount\tmean%s\tp99%s\tmax%s\tthreads\tfunction\n", unit,
			unit, unit, unit, unit);
		buftext_str(&b, "function\t");
		put_tsv_numbers(&b, p->waits, &r->total, r->threads, NULL, true, &r->self, NULL);
		format_clean(&b, name, strlen(name));
		buftext_str(&b, "\n");
		put_around_tsv(o, &b, p, &r->callers, "caller");
		put_around_tsv(o, &b, p, &r->callees, "callee");
		format_pass(o, &b);
	} else {
		put_around(&b, p, r, name);
		format_pass(o, &b);
	}
	failed = b.failed || wr.failed;
	buf_free(&b);
	buf_free(&wr.text);
	return failed ? err_nomem(e, "the report") : 0;
}

/* --- intervals --- */

static void put_interval(struct buf *b, const struct report_print *p, const struct intervals *t, size_t i)
{
	const struct interval *v = &t->p[i];
	const struct waits *w = p->waits;
	char text[FORMAT_NUMBER_MAX];
	size_t from = b->len, used;
	struct buf kind = { 0 };

	format_cell(b, format_time(text, (wait_sum)i * t->interval_ns), 9);
	format_cell(b, format_time(text, v->total), 10);
	if (w->has_split)
		format_cell(b, format_time(text, v->runnable), 9);
	format_cell(b, format_digits(text, v->count), 8);
	format_cell(b, v->count ? format_time(text, v->len_ns / v->count) : "-", 9);
	format_cell(b, v->count ? format_time(text, v->max_ns) : "-", 9);
	format_cell(b, v->path == WAITS_NONE ? "-" : format_percent(text, v->greatest, v->total), 7);
	used = format_columns(b->p + from, b->len - from) + 2;
	if (v->kind) {
		format_string(&kind, w, v->kind);
		buftext_str(b, "  ");
		format_cut(b, kind.p, kind.len, p->width > used + 12 ? p->width - used : 12);
	}
	buftext_str(b, "\n");
	b->failed |= kind.failed;
	buf_free(&kind);
	if (v->path == WAITS_NONE)
		return;
	buftext_printf(b, "%*s", FORMAT_INDENT, "");
	format_path(b, w, &w->paths[v->path], p->width - FORMAT_INDENT);
	buftext_str(b, "\n");
}

static void put_intervals(struct out *o, struct buf *b, const struct report_print *p, const struct ranking *r,
	const struct intervals *t, size_t n)
{
	char text[FORMAT_NUMBER_MAX];

	put_summary(b, p, r);
	buftext_str(b, "\n");
	if (n < t->n)
		buftext_printf(b, "the %zu first of ", n);
	format_counted(b, t->n, "interval", "intervals");
	buftext_str(b, " of ");
	buftext_str(b, format_time(text, t->interval_ns));
	buftext_str(b, "; the greatest place of each below it, and its share as %\n");
	format_cell(b, "from", 9);
	format_cell(b, "time", 10);
	if (p->waits->has_split)
		format_cell(b, "runnable", 9);
	format_cell(b, "count", 8);
	format_cell(b, "mean", 9);
	format_cell(b, "longest", 9);
	format_cell(b, "%", 7);
	buftext_str(b, p->waits->has_kind ? "  kind\n" : "\n");
	for (size_t i = 0; i < n; i++) {
		put_interval(b, p, t, i);
		format_pass(o, b);
	}
	put_set_aside(b, p, r);
}

static void put_intervals_tsv(
	struct out *o, struct buf *b, const struct report_print *p, const struct intervals *t, size_t n)
{
	buftext_str(b, "from_ns\ttotal_ns\tblocked_ns\trunnable_ns\tcount\tmean_ns\tmax_ns\tgreatest_ns\t");
	buftext_str(b, format_tsv_title(RANKING_STACK));
	buftext_str(b, "\n");
	for (size_t i = 0; i < n; i++) {
		const struct interval *v = &t->p[i];
		const struct ranking_group g = { .key = v->path, .kind = v->kind };

		format_tsv_number(b, (wait_sum)i * t->interval_ns, true);
		format_tsv_number(b, v->total, true);
		format_tsv_number(b, v->blocked, p->waits->has_split);
		format_tsv_number(b, v->runnable, p->waits->has_split);
		format_tsv_number(b, v->count, true);
		format_tsv_number(b, v->count ? v->len_ns / v->count : 0, v->count);
		format_tsv_number(b, v->max_ns, v->count);
		format_tsv_number(b, v->greatest, v->path != WAITS_NONE);
		if (v->path == WAITS_NONE)
			buftext_str(b, "\t\t\n");
		else
			format_tsv_group(b, p->waits, RANKING_STACK, &g);
		format_pass(o, b);
	}
}

static void json_intervals(
	struct format_json *wr, const struct ranking *r, const struct intervals *t, size_t n)
{
	json_begin(&wr->j, NULL, '{');
	json_u64(&wr->j, "interval_ns", t->interval_ns);
	json_u64(&wr->j, "start_mono_ns", t->start_ns);
	format_json_summary(wr, r);
	json_line(&wr->j, 2);
	json_begin(&wr->j, "rows", '[');
	for (size_t i = 0; i < n; i++) {
		const struct interval *v = &t->p[i];
		const struct ranking_group g = { .key = v->path, .kind = v->kind };

		json_line(&wr->j, 4);
		json_begin(&wr->j, NULL, '{');
		format_json_sum(wr, "from_ns", (wait_sum)i * t->interval_ns);
		format_json_sum(wr, "total_ns", v->total);
		if (wr->w->has_split) {
			format_json_sum(wr, "blocked_ns", v->blocked);
			format_json_sum(wr, "runnable_ns", v->runnable);
		}
		json_u64(&wr->j, "count", v->count);
		if (v->count) {
			format_json_sum(wr, "mean_ns", v->len_ns / v->count);
			json_u64(&wr->j, "max_ns", v->max_ns);
		}
		if (v->path != WAITS_NONE) {
			json_begin(&wr->j, "greatest", '{');
			format_json_sum(wr, "total_ns", v->greatest);
			format_json_group(wr, RANKING_STACK, &g);
			json_end(&wr->j, '}');
		}
		json_end(&wr->j, '}');
	}
	json_end(&wr->j, ']');
	json_end(&wr->j, '}');
}

int report_intervals(struct out *o, const struct report_print *p, const struct ranking *r,
	const struct intervals *t, struct err *e)
{
	struct format_json wr = { .j = { .o = o, .spaced = true }, .w = p->waits };
	const size_t n = p->top ? MIN(p->top, t->n) : t->n;
	struct buf b = { 0 };
	bool failed;

	if (p->format == REPORT_JSON) {
		json_intervals(&wr, r, t, n);
		out_char(o, '\n');
	} else if (p->format == REPORT_TSV) {
		put_intervals_tsv(o, &b, p, t, n);
	} else {
		put_intervals(o, &b, p, r, t, n);
	}
	format_pass(o, &b);
	failed = b.failed || wr.failed;
	buf_free(&b);
	buf_free(&wr.text);
	return failed ? err_nomem(e, "the report") : 0;
}
