/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/difference.h"
#include "base/hash.h"
#include "fold/table.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define AMOUNT_MAX ((wait_sum)1 << 126)

/* --- amounts --- */

wait_sum difference_amount(const struct difference_scale *s, int side, wait_sum v)
{
	const uint64_t by = s->by_time ? s->elapsed_ns[side] : 1;
	wait_sum whole, rest;

	if (__builtin_mul_overflow(s->by_time ? (wait_sum)s->of_ns : 1, (wait_sum)s->parts, &rest) ||
		__builtin_mul_overflow(v / by, rest, &whole) || whole > AMOUNT_MAX ||
		__builtin_mul_overflow(v % by, rest, &rest))
		return AMOUNT_MAX;
	return MIN(whole + (rest + by / 2) / by, AMOUNT_MAX);
}

/* --- significance --- */

struct spread {
	double variance; /* of the sum of the totals */
	double freedom;
};

/* Of the totals of the threads of G. */
static struct spread spread_of(const struct ranking *r, const struct ranking_group *g)
{
	const struct ranking_member *m = r->members + g->first_member;
	const double n = (double)g->threads;
	double mean = 0, squares = 0;

	for (size_t i = 0; i < g->threads; i++)
		mean += (double)m[i].total / n;
	for (size_t i = 0; i < g->threads; i++)
		squares += ((double)m[i].total - mean) * ((double)m[i].total - mean);
	return (struct spread){ .variance = n * squares / (n - 1), .freedom = n - 1 };
}

/* The number of standard errors of a normal distribution that are as unlikely as Student's T. */
static double normal_of_student(double t, double freedom)
{
	double z = sqrt(freedom * log1p(t * t / freedom)) * (8 * freedom + 1) / (8 * freedom + 3);

	return t < 0 ? -z : z;
}

/* The change in standard errors, by the variation between threads. */
static double errors_by_threads(
	const struct difference *d, const struct difference_row *row, const double times[2], double change)
{
	double variance = 0, weights = 0;

	for (int i = 0; i < DIFFERENCE_SIDES; i++) {
		struct spread s = spread_of(&d->ranking[i], row->group[i]);
		double v = s.variance / (times[i] * times[i]);

		variance += v;
		weights += v * v / s.freedom;
	}
	if (!(variance > 0) || !(weights > 0))
		return HUGE_VAL; /* all alike: the waits decide */
	return normal_of_student(change / sqrt(variance), variance * variance / weights);
}

/* The same, by the waits as independent events. */
static double errors_by_waits(const struct difference_row *row, const double times[2], double change)
{
	double squares[DIFFERENCE_SIDES], apart, pooled, variance;

	for (int i = 0; i < DIFFERENCE_SIDES; i++)
		squares[i] = row->group[i] ? row->group[i]->stats.squares : 0;
	apart = squares[0] / (times[0] * times[0]) + squares[1] / (times[1] * times[1]);
	pooled = (squares[0] + squares[1]) / (times[0] + times[1]) * (1 / times[0] + 1 / times[1]);
	variance = MAX(apart, pooled);
	return variance > 0 ? change / sqrt(variance) : 0;
}

static void judge(const struct difference *d, struct difference_row *row)
{
	double times[DIFFERENCE_SIDES] = { 1, 1 }, change, by_threads;
	bool has_threads = true, has_waits = false;

	for (int i = 0; i < DIFFERENCE_SIDES; i++) {
		const struct ranking_group *g = row->group[i];

		if (d->scale.by_time)
			times[i] = (double)d->scale.elapsed_ns[i];
		has_waits |= g && g->stats.count >= 2;
		has_threads &= g && g->threads >= DIFFERENCE_THREADS;
	}
	row->is_judged = has_waits && !d->waits[0]->folded && !d->waits[1]->folded;
	if (!row->is_judged)
		return;
	change = (row->group[1] ? (double)row->group[1]->stats.total / times[1] : 0) -
		 (row->group[0] ? (double)row->group[0]->stats.total / times[0] : 0);
	row->errors = errors_by_waits(row, times, change);
	by_threads = has_threads ? errors_by_threads(d, row, times, change) : HUGE_VAL;
	if (fabs(by_threads) < fabs(row->errors))
		row->errors = by_threads;
}

bool difference_is_significant(const struct difference_row *r)
{
	return r->is_judged && fabs(r->errors) > DIFFERENCE_SIGNIFICANT;
}

/* --- names, by which the sides are matched --- */

/* Append the string and a newline, which no name has. */
static void put_part(struct buf *b, const struct waits *w, uint32_t id)
{
	size_t len;
	const char *p = waits_string(w, id, &len);

	buf_put(b, p, len);
	buf_put(b, "\n", 1);
}

static void put_place(struct buf *b, const struct waits *w, uint32_t index, uint32_t kind)
{
	const struct wait_path *path = &w->paths[index];

	for (uint32_t i = 0; i < path->n; i++)
		put_part(b, w, w->functions[path->first + i]);
	buf_put(b, "\n", 1);
	put_part(b, w, path->call);
	put_part(b, w, kind);
	buf_put(b, path->kernel ? "k" : "u", 1);
}

/* The places that a side ranks. */
struct places {
	struct intern names;
	struct buf text;
	bool any_kind;
};

static bool put_places(struct places *p, const struct waits *w, const struct ranking *r)
{
	for (size_t i = 0; i < r->groups.n; i++) {
		buf_reset(&p->text);
		put_place(&p->text, w, r->groups.p[i].key, p->any_kind ? 0 : r->groups.p[i].kind);
		if (p->text.failed || intern_put(&p->names, p->text.p, p->text.len) == INTERN_NONE)
			return false;
	}
	return true;
}

/* For ranking_opts: does the other side rank this place? */
static bool is_ranked(void *ctx, const struct waits *w, uint32_t path, uint32_t kind)
{
	struct places *p = ctx;

	buf_reset(&p->text);
	put_place(&p->text, w, path, p->any_kind ? 0 : kind);
	return !p->text.failed && intern_find(&p->names, p->text.p, p->text.len,
					  intern_hash(&p->names, p->text.p, p->text.len)) != INTERN_NONE;
}

/* --- both rankings --- */

/* A ranking that may have no wait of the kinds. */
static int rank(struct difference *d, int side, const struct ranking_opts *o, bool *any, struct err *e)
{
	const struct waits *w = d->waits[side];
	int code = ranking_make(&d->ranking[side], w, o, e);

	/* where no wait has a kind, no match is not an answer */
	if (code != -ENOENT || !w->has_kind)
		*any |= !code;
	else
		code = 0;
	return code;
}

static int rank_both(struct difference *d, const struct difference_opts *opts, struct err *e)
{
	struct ranking_opts o = {
		.idle = opts->idle || d->any_kind, .kinds = opts->kinds, .any_kind = d->any_kind
	};
	struct places places[DIFFERENCE_SIDES] = { 0 };
	bool any = false, again = false;
	int code = 0;

	for (int i = 0; i < DIFFERENCE_SIDES && !code; i++) {
		places[i].any_kind = d->any_kind;
		code = rank(d, i, &o, &any, e);
		if (!code && !put_places(&places[i], d->waits[i], &d->ranking[i]))
			code = err_nomem(e, "the places");
		ranking_free(&d->ranking[i]);
	}
	if (!code && !any)
		code = -ENOENT; /* the message is that of the last side */
	o.by = opts->by;
	o.members = true;
	o.rank_once = is_ranked;
	for (int i = 0; i < DIFFERENCE_SIDES && !code; i++) {
		o.ctx = &places[!i];
		code = rank(d, i, &o, &again, e);
	}
	for (int i = 0; i < DIFFERENCE_SIDES; i++) {
		if (places[i].text.failed && !code)
			code = err_nomem(e, "the places");
		intern_free(&places[i].names);
		buf_free(&places[i].text);
	}
	return code;
}

/* --- rows --- */

static int add_rows(struct difference *d, int side, enum ranking_by by, struct buf *text)
{
	const struct ranking_groups *g = &d->ranking[side].groups;

	for (size_t i = 0; i < g->n; i++) {
		struct difference_row *row;
		uint32_t name;

		buf_reset(text);
		if (by == RANKING_STACK)
			put_place(text, d->waits[side], g->p[i].key, g->p[i].kind);
		else
			put_part(text, d->waits[side], g->p[i].key);
		name = text->failed ? INTERN_NONE : intern_put(&d->names, text->p, text->len);
		if (name == INTERN_NONE ||
			base_grow(&d->rows, &d->cap, (size_t)name + 1, sizeof(*d->rows)) != 0)
			return -ENOMEM;
		d->n = MAX(d->n, (size_t)name + 1);
		row = &d->rows[name];
		row->name = name;
		row->group[side] = &g->p[i];
		row->amount[side] = difference_amount(&d->scale, side, g->p[i].stats.total);
	}
	return 0;
}

static wait_sum change_of(const struct difference_row *r)
{
	return r->amount[0] > r->amount[1] ? r->amount[0] - r->amount[1] : r->amount[1] - r->amount[0];
}

static int compare_texts(const struct intern *t, uint32_t a, uint32_t b)
{
	size_t x, y;
	const char *p = intern_text(t, a, &x), *q = intern_text(t, b, &y);
	int c = MIN(x, y) ? memcmp(p, q, MIN(x, y)) : 0;

	return c ? c : CMP(x, y);
}

/* The greatest change first; of equal ones by name, so that the order is the same each time. */
static int by_change(const void *a, const void *b, void *names)
{
	const struct difference_row *x = a, *y = b;
	int c = CMP(change_of(y), change_of(x));

	return c ? c : compare_texts(names, x->name, y->name);
}

int difference_make(struct difference *d, const struct waits *const waits[DIFFERENCE_SIDES],
	const struct difference_opts *opts, struct err *e)
{
	struct buf text = { 0 };
	int code;

	*d = (struct difference){ .waits = { waits[0], waits[1] } };
	d->any_kind = waits[0]->has_kind != waits[1]->has_kind;
	d->scale = (struct difference_scale){ .of_ns = 1000000000,
		.elapsed_ns = { waits[0]->elapsed_ns, waits[1]->elapsed_ns },
		.by_time = !opts->absolute && waits[0]->elapsed_ns && waits[1]->elapsed_ns,
		.parts = 1 };
	if (d->scale.by_time && !waits[0]->is_time)
		d->scale.parts = 1000;
	code = rank_both(d, opts, e);
	if (code)
		return code;
	for (int i = 0; i < DIFFERENCE_SIDES && !code; i++)
		code = add_rows(d, i, opts->by, &text);
	buf_free(&text);
	if (code)
		return err_nomem(e, "the comparison");
	for (size_t i = 0; i < d->n; i++)
		judge(d, &d->rows[i]);
	if (d->n)
		qsort_r(d->rows, d->n, sizeof(*d->rows), by_change, &d->names);
	return 0;
}

void difference_free(struct difference *d)
{
	for (int i = 0; i < DIFFERENCE_SIDES; i++)
		ranking_free(&d->ranking[i]);
	free(d->rows);
	intern_free(&d->names);
	*d = (struct difference){ 0 };
}

/* --- folded --- */

struct folded {
	struct intern texts;
	struct folded_sum {
		uint32_t text;
		wait_sum sum[DIFFERENCE_SIDES];
	} * sums; /* index = text, until they are sorted */
	size_t cap;
};

static int by_text(const void *a, const void *b, void *texts)
{
	const struct folded_sum *x = a, *y = b;

	return compare_texts(texts, x->text, y->text);
}

static int add_lines(struct folded *f, int side, const struct foldtab_lines *lines)
{
	struct buf text = { 0 };
	int code = 0;

	for (size_t i = 0; i < lines->n && !code; i++) {
		const struct foldtab_line *line = &lines->lines[i];
		uint32_t id;

		buf_reset(&text);
		buf_put(&text, line->part[0].p, line->part[0].len);
		buf_put(&text, line->part[1].p, line->part[1].len);
		id = text.failed ? INTERN_NONE : intern_put(&f->texts, text.p, text.len);
		if (id == INTERN_NONE || base_grow(&f->sums, &f->cap, (size_t)id + 1, sizeof(*f->sums)) != 0)
			code = -ENOMEM;
		else
			f->sums[id].sum[side] += line->sum;
	}
	buf_free(&text);
	return code;
}

int difference_fold(struct out *o, const struct waits_stacks *const stacks[DIFFERENCE_SIDES],
	const struct difference_scale *scale, struct err *e)
{
	struct folded f = { 0 };
	int code = 0;

	for (int i = 0; i < DIFFERENCE_SIDES && !code; i++)
		code = add_lines(&f, i, &stacks[i]->lines);
	for (uint32_t i = 0; i < f.texts.n; i++)
		f.sums[i].text = i;
	if (!code && f.texts.n)
		qsort_r(f.sums, f.texts.n, sizeof(*f.sums), by_text, &f.texts);
	for (size_t i = 0; i < f.texts.n && !code; i++) {
		size_t len;
		const char *text = intern_text(&f.texts, f.sums[i].text, &len);

		out_put(o, text, len);
		for (int side = 0; side < DIFFERENCE_SIDES; side++) {
			char digits[40];

			out_char(o, ' ');
			out_put(o, digits,
				foldtab_digits(difference_amount(scale, side, f.sums[i].sum[side]), digits));
		}
		out_char(o, '\n');
	}
	free(f.sums);
	intern_free(&f.texts);
	return code ? err_nomem(e, "the stacks of both sides") : 0;
}
