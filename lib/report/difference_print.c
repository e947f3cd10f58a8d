/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/difference.h"
#include "report/format.h"

#include <math.h>
#include <string.h>

static const char *const sides[] = { "before", "after" };

/* What all formats need of a row. */
struct change {
	wait_sum size;
	bool is_less;
	bool has_factor;
	double factor;
};

static struct change change_between(wait_sum before, wait_sum after)
{
	return (struct change){ .size = after < before ? before - after : after - before,
		.is_less = after < before,
		.has_factor = before != 0 || after == 0,
		.factor = before ? (double)after / (double)before : 1 };
}

static const char *put_amount(char text[FORMAT_NUMBER_MAX], const struct difference *d, wait_sum v)
{
	uint32_t parts = d->scale.parts;

	format_amount(text, d->waits[0], v / parts);
	if (parts > 1) {
		size_t len = strlen(text);

		snprintf(text + len, FORMAT_NUMBER_MAX - len, ".%03u", (unsigned int)(v % parts));
	}
	return text;
}

/* --- the table --- */

static const char *put_change(
	char text[FORMAT_NUMBER_MAX], const struct difference *d, const struct change *c)
{
	char amount[FORMAT_NUMBER_MAX];

	snprintf(text, FORMAT_NUMBER_MAX, "%s%.*s",
		!c->size     ? ""
		: c->is_less ? "-"
			     : "+",
		FORMAT_NUMBER_MAX - 2, put_amount(amount, d, c->size));
	return text;
}

static const char *put_factor(char text[FORMAT_NUMBER_MAX], const struct change *c)
{
	if (!c->has_factor)
		return "new";
	if (c->is_less && c->factor <= 0)
		return "gone";
	if (c->factor >= 999.5)
		return ">999";
	snprintf(text, FORMAT_NUMBER_MAX, "%.*f",
		c->factor < 9.995   ? 2
		: c->factor < 99.95 ? 1
				    : 0,
		c->factor);
	return text;
}

static const char *mark_of(const struct difference_row *r)
{
	return !r->is_judged ? "?" : difference_is_significant(r) ? "*" : "";
}

static const char *put_errors(char text[FORMAT_NUMBER_MAX], const struct difference_row *r)
{
	const char *mark = mark_of(r);

	if (!r->is_judged)
		return "?";
	if (fabs(r->errors) >= 999.95)
		snprintf(text, FORMAT_NUMBER_MAX, "%s %s", r->errors < 0 ? "<-999" : ">999", mark);
	else
		snprintf(text, FORMAT_NUMBER_MAX, "%.1f %s", fabs(r->errors) < 0.05 ? 0 : r->errors,
			*mark ? mark : " ");
	return text;
}

/* "5.006 s of 1 process with 11 threads: 21613 waits, 54.38 s" */
static void put_side(struct buf *b, const struct difference *d, int side)
{
	const struct waits *w = d->waits[side];
	const struct ranking *r = &d->ranking[side];
	char text[FORMAT_NUMBER_MAX];

	buftext_printf(b, "%-11s", sides[side]);
	if (w->elapsed_ns) {
		buftext_str(b, format_time(text, w->elapsed_ns));
		buftext_str(b, " of ");
	}
	format_counted(b, r->n_processes, "process", "processes");
	if (r->n_threads) {
		buftext_str(b, " with ");
		format_counted(b, r->n_threads, "thread", "threads");
	}
	buftext_str(b, ": ");
	if (!w->folded && (w->is_time || w->unit != WAITS_UNIT_COUNT)) {
		format_counted(b, r->all.count, "wait", "waits");
		buftext_str(b, ", ");
	}
	format_sum(b, w, r->all.total);
	buftext_str(b, "\n");
	format_lost(b, w, 2);
}

/* "2.010 s before, 545.0 ms after: -1.465 s, factor 0.27", of sums as they are */
static void put_compared(
	struct buf *b, const struct difference *d, const char *title, wait_sum before, wait_sum after)
{
	const wait_sum total[] = { difference_amount(&d->scale, 0, before),
		difference_amount(&d->scale, 1, after) };
	const struct change c = change_between(total[0], total[1]);
	char text[FORMAT_NUMBER_MAX];

	buftext_printf(b, "%-11s", title);
	buftext_str(b, put_amount(text, d, total[0]));
	buftext_str(b, " before, ");
	buftext_str(b, put_amount(text, d, total[1]));
	buftext_str(b, " after: ");
	buftext_str(b, put_change(text, d, &c));
	if (c.has_factor && c.factor > 0) {
		buftext_str(b, ", factor ");
		buftext_str(b, put_factor(text, &c));
	}
	buftext_str(b, "\n");
}

static void put_head(struct buf *b, const struct difference_print *p, const struct difference *d)
{
	const struct waits *before = d->waits[0], *after = d->waits[1];

	for (int i = 0; i < DIFFERENCE_SIDES; i++)
		put_side(b, d, i);
	put_compared(b, d, "compared", d->ranking[0].ranked, d->ranking[1].ranked);
	if (before->n_on_cpu && after->n_on_cpu)
		put_compared(b, d, "on CPU", before->on_cpu_ns, after->on_cpu_ns);
	buftext_printf(b, "%-11s", "numbers");
	if (d->scale.by_time) {
		buftext_str(b, "normalised: of each second that was recorded\n");
	} else if (p->absolute) {
		buftext_str(b, "absolute, whatever the times of the recordings\n");
	} else {
		const char *path = waits_file_name(p->paths[d->waits[0]->elapsed_ns ? 1 : 0]);

		buftext_str(b, "absolute: the time of the recording is not known of '");
		format_clean(b, path, strlen(path));
		buftext_str(b, "'\n");
	}
	if (p->by != RANKING_STACK || !d->any_kind)
		return;
	buftext_printf(b, "%-11s", "kinds");
	buftext_str(b, "not compared, and idle waits not set aside: one side has none\n");
}

static const struct ranking_group *group_of(
	const struct difference *d, const struct difference_row *r, const struct waits **w)
{
	const int side = r->group[DIFFERENCE_AFTER] ? DIFFERENCE_AFTER : DIFFERENCE_BEFORE;

	*w = d->waits[side];
	return r->group[side];
}

static void put_row(struct buf *b, const struct difference_print *p, const struct difference *d, size_t i)
{
	const struct difference_row *r = &d->rows[i];
	const struct change c = change_between(r->amount[0], r->amount[1]);
	char text[FORMAT_NUMBER_MAX];
	struct buf name = { 0 };
	const struct waits *w;
	const struct ranking_group *g = group_of(d, r, &w);
	size_t from = b->len, used;

	snprintf(text, sizeof(text), "%zu.", i + 1);
	format_cell(b, text, 4);
	format_cell(b, put_amount(text, d, r->amount[0]), 9);
	format_cell(b, put_amount(text, d, r->amount[1]), 9);
	format_cell(b, put_change(text, d, &c), 10);
	format_cell(b, put_factor(text, &c), 7);
	format_cell(b, put_errors(text, r), 9);
	used = format_columns(b->p + from, b->len - from) + 2;
	if (p->by == RANKING_STACK)
		format_string(&name, w, g->kind);
	else
		format_group(&name, w, p->by, g);
	if (name.len) {
		buftext_str(b, "  ");
		format_cut(b, name.p, name.len, p->width > used + 12 ? p->width - used : 12);
	}
	buftext_str(b, "\n");
	b->failed |= name.failed;
	buf_free(&name);
	if (p->by != RANKING_STACK)
		return;
	buftext_printf(b, "%*s", FORMAT_INDENT, "");
	format_path(b, w, &w->paths[g->key], p->width - FORMAT_INDENT);
	buftext_str(b, "\n");
}

/* "idle: 4.998 s before, 1.002 s after, in 2 places; --idle compares them too": as they are, not normalised
 */
static void put_rest(struct buf *b, const struct difference *d, const struct ranking_rest *before,
	const struct ranking_rest *after, const char *what, const char *option)
{
	char text[FORMAT_NUMBER_MAX];
	const struct ranking_rest *rest[] = { before, after };

	if (!before->places && !after->places)
		return;
	buftext_str(b, what);
	for (int i = 0; i < DIFFERENCE_SIDES; i++) {
		buftext_str(b, put_amount(text, d, difference_amount(&d->scale, i, rest[i]->stats.total)));
		buftext_printf(b, " %s in ", sides[i]);
		format_counted(b, rest[i]->places, "place", "places");
		buftext_str(b, i ? option : ", ");
	}
}

static void put_table(struct buf *b, const struct difference_print *p, const struct difference *d)
{
	const bool by_stack = p->by == RANKING_STACK;
	const struct ranking *before = &d->ranking[0], *after = &d->ranking[1];
	size_t n = p->top ? MIN(p->top, d->n) : d->n;

	put_head(b, p, d);
	buftext_str(b, "\n");
	if (format_heading(b, p->by, n, d->n, " change", " changes", "nothing to compare\n")) {
		buftext_str(b, "\n   #   before    after    change factor   errors");
		if (!by_stack || after->groups.n + before->groups.n == 0 ||
			(d->waits[0]->has_kind && d->waits[1]->has_kind))
			buftext_printf(b, "  %s", by_stack ? "kind" : format_title(p->by));
		buftext_str(b, "\n");
		for (size_t i = 0; i < n; i++)
			put_row(b, p, d, i);
		buftext_str(
			b, "\nerrors: the change in standard errors; * more than 3, ? cannot be judged\n");
	}
	put_rest(b, d, &before->set_aside_idle, &after->set_aside_idle,
		"idle: ", "; --idle compares them too\n");
	put_rest(b, d, &before->set_aside_once, &after->set_aside_once, "waited once, all the time: ", "\n");
}

/* --- TSV --- */

static void put_tsv_amount(struct buf *b, const struct difference *d, wait_sum v, bool is_less)
{
	char text[FORMAT_NUMBER_MAX];

	buftext_str(b, is_less ? "-" : "");
	buftext_str(b, d->scale.parts > 1 ? put_amount(text, d, v) : format_digits(text, v));
	buftext_str(b, "\t");
}

static void put_tsv_head(struct buf *b, const struct difference *d, enum ranking_by by)
{
	const char *unit = d->waits[0]->is_time ? "_ns" : "";

	buftext_printf(b, "rank\tbefore%s\tafter%s\tchange%s\tfactor\terrors\tmark\t", unit, unit, unit);
	buftext_printf(b, "before_total%s\tafter_total%s\tbefore_count\tafter_count\t", unit, unit);
	buftext_printf(b, "before_max%s\tafter_max%s\tbefore_threads\tafter_threads\t", unit, unit);
	buftext_str(b, format_tsv_title(by));
	buftext_str(b, "\n");
}

static void put_tsv_row(struct buf *b, const struct difference_print *p, const struct difference *d, size_t i)
{
	static const struct ranking_group none;
	const struct difference_row *r = &d->rows[i];
	const struct change c = change_between(r->amount[0], r->amount[1]);
	const struct ranking_group *g, *side[DIFFERENCE_SIDES];
	const struct waits *w;

	format_tsv_number(b, i + 1, true);
	put_tsv_amount(b, d, r->amount[0], false);
	put_tsv_amount(b, d, r->amount[1], false);
	put_tsv_amount(b, d, c.size, c.is_less);
	if (c.has_factor)
		buftext_printf(b, "%.6g", c.factor);
	buftext_str(b, "\t");
	if (r->is_judged)
		buftext_printf(b, "%.3f", r->errors);
	buftext_printf(b, "\t%s\t", mark_of(r));
	for (int s = 0; s < DIFFERENCE_SIDES; s++) {
		side[s] = r->group[s] ? r->group[s] : &none;
		format_tsv_number(b, side[s]->stats.total, true);
	}
	for (int s = 0; s < DIFFERENCE_SIDES; s++)
		format_tsv_number(b, side[s]->stats.count, !d->waits[s]->folded);
	for (int s = 0; s < DIFFERENCE_SIDES; s++)
		format_tsv_number(b, side[s]->stats.max_ns, side[s]->stats.has_max);
	for (int s = 0; s < DIFFERENCE_SIDES; s++)
		format_tsv_number(b, side[s]->threads, d->waits[s]->n_threads);
	g = group_of(d, r, &w);
	format_tsv_group(b, w, p->by, g);
}

/* --- JSON --- */

static void json_amount(
	struct format_json *wr, const struct difference *d, const char *name, wait_sum v, bool is_less)
{
	char text[FORMAT_NUMBER_MAX + 1] = "-", key[32];
	char *digits = text + is_less;

	snprintf(key, sizeof(key), "%s%s", name, wr->w->is_time ? "_ns" : "");
	if (d->scale.parts > 1)
		put_amount(digits, d, v);
	else
		format_digits(digits, v);
	json_number(&wr->j, key, text, strlen(text));
}

static void json_double(struct format_json *wr, const char *key, double v, bool known)
{
	char text[FORMAT_NUMBER_MAX];

	snprintf(text, sizeof(text), "%.6g", v);
	if (known)
		json_number(&wr->j, key, text, strlen(text));
	else
		json_null(&wr->j, key);
}

static void json_row(struct format_json *wr, const struct difference_print *p, const struct difference *d,
	const struct difference_row *r)
{
	const struct change c = change_between(r->amount[0], r->amount[1]);
	const struct ranking_group *g = group_of(d, r, &wr->w);

	json_line(&wr->j, 4);
	json_begin(&wr->j, NULL, '{');
	format_json_group(wr, p->by, g);
	json_amount(wr, d, "change", c.size, c.is_less);
	json_double(wr, "factor", c.factor, c.has_factor);
	json_double(wr, "errors", r->errors, r->is_judged);
	if (r->is_judged)
		json_bool(&wr->j, "significant", difference_is_significant(r));
	else
		json_null(&wr->j, "significant");
	for (int s = 0; s < DIFFERENCE_SIDES; s++) {
		wr->w = d->waits[s];
		json_begin(&wr->j, sides[s], '{');
		json_amount(wr, d, "amount", r->amount[s], false);
		if (r->group[s]) {
			format_json_stats(wr, &r->group[s]->stats);
			if (wr->w->n_threads)
				json_u64(&wr->j, "threads", r->group[s]->threads);
		}
		json_end(&wr->j, '}');
	}
	json_end(&wr->j, '}');
}

static void put_json(struct format_json *wr, const struct difference_print *p, const struct difference *d)
{
	size_t n = p->top ? MIN(p->top, d->n) : d->n;

	json_begin(&wr->j, NULL, '{');
	json_str(&wr->j, "by", format_title(p->by));
	json_bool(&wr->j, "normalised", d->scale.by_time);
	for (int i = 0; i < DIFFERENCE_SIDES; i++) {
		wr->w = d->waits[i];
		json_line(&wr->j, 2);
		json_begin(&wr->j, sides[i], '{');
		format_json_summary(wr, &d->ranking[i]);
		json_end(&wr->j, '}');
	}
	json_line(&wr->j, 2);
	json_begin(&wr->j, "rows", '[');
	for (size_t i = 0; i < n; i++)
		json_row(wr, p, d, &d->rows[i]);
	json_end(&wr->j, ']');
	json_end(&wr->j, '}');
}

int difference_print(
	struct out *o, const struct difference_print *p, const struct difference *d, struct err *e)
{
	struct format_json wr = { .j = { .o = o, .spaced = true } };
	size_t n = p->top ? MIN(p->top, d->n) : d->n;
	struct buf b = { 0 };
	bool failed;

	if (p->format == DIFFERENCE_JSON) {
		put_json(&wr, p, d);
		out_char(o, '\n');
	} else if (p->format == DIFFERENCE_TSV) {
		put_tsv_head(&b, d, p->by);
		for (size_t i = 0; i < n; i++) {
			put_tsv_row(&b, p, d, i);
			format_pass(o, &b);
		}
	} else {
		put_table(&b, p, d);
	}
	format_pass(o, &b);
	failed = b.failed || wr.failed;
	buf_free(&b);
	buf_free(&wr.text);
	return failed ? err_nomem(e, "the comparison") : 0;
}
