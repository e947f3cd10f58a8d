/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fold/table.h"
#include "base/hash.h"

#include <string.h>

void foldtab_init(struct foldtab *t, uint64_t seed)
{
	*t = (struct foldtab){ .names.seed = seed, .stacks.seed = ~seed };
}

void foldtab_free(struct foldtab *t)
{
	intern_free(&t->names);
	intern_free(&t->stacks);
	free(t->pairs);
	hashtable_free(&t->by_pair);
	*t = (struct foldtab){ 0 };
}

uint32_t foldtab_pair(struct foldtab *t, uint32_t name, uint32_t stack)
{
	uint64_t hash = hash_mul((uint64_t)name << 32 | stack, HASH_K0);
	uint32_t at =
		HASHTABLE_FIND(&t->by_pair, hash, i, t->pairs[i].stack == stack && t->pairs[i].name == name);

	if (at != HASHTABLE_NONE)
		return at;
	if (hashtable_reserve(&t->by_pair, 1) != 0 ||
		base_grow(&t->pairs, &t->cap, t->n + 1, sizeof(*t->pairs)) != 0)
		return FOLDTAB_NONE;
	t->pairs[t->n] = (struct foldtab_pair){ .name = name, .stack = stack };
	hashtable_add(&t->by_pair, hash, (uint32_t)t->n);
	return (uint32_t)t->n++;
}

size_t foldtab_digits(foldtab_sum v, char buf[40])
{
	char digits[40];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + (int)(v % 10));
	while (v /= 10);
	memcpy(buf, digits + at, sizeof(digits) - at);
	return sizeof(digits) - at;
}

/* A line as up to three pieces, and the position of the comparison in them. */
struct walk {
	struct foldtab_sum_text piece[3];
	size_t at;
};

static int compare_walks(struct walk *x, struct walk *y)
{
	for (;;) {
		struct foldtab_sum_text *a, *b;
		size_t n;
		int c;

		while (x->at < ARRAY_LEN(x->piece) && !x->piece[x->at].len)
			x->at++;
		while (y->at < ARRAY_LEN(y->piece) && !y->piece[y->at].len)
			y->at++;
		if (x->at == ARRAY_LEN(x->piece) || y->at == ARRAY_LEN(y->piece))
			return (y->at == ARRAY_LEN(y->piece)) - (x->at == ARRAY_LEN(x->piece));
		a = &x->piece[x->at];
		b = &y->piece[y->at];
		n = MIN(a->len, b->len);
		c = a->p == b->p ? 0 : memcmp(a->p, b->p, n);
		if (c)
			return c;
		a->p += n, a->len -= n;
		b->p += n, b->len -= n;
	}
}

/* Fast path: most lines compared share the first part, which is stored once. 0 if more must be compared. */
static int compare_second(const struct foldtab_line *x, const struct foldtab_line *y)
{
	const struct foldtab_sum_text *p = &x->part[1], *q = &y->part[1];
	size_t n = MIN(p->len, q->len);

	if (!n || x->part[0].p != y->part[0].p || x->part[0].len != y->part[0].len)
		return 0;
	return memcmp(p->p, q->p, n);
}

/* By text alone. */
static int by_text(const void *a, const void *b)
{
	const struct foldtab_line *x = a, *y = b;
	int c = compare_second(x, y);
	struct walk wx = { { x->part[0], x->part[1] }, 0 }, wy = { { y->part[0], y->part[1] }, 0 };

	return c ? c : compare_walks(&wx, &wy);
}

/* As printed, with the values: this differs from by_text() for blanks in names. */
static int by_line(const void *a, const void *b)
{
	const struct foldtab_line *x = a, *y = b;
	char tx[41] = " ", ty[41] = " ";
	struct walk wx = { { x->part[0], x->part[1], { tx, 1 + foldtab_digits(x->value, tx + 1) } }, 0 };
	struct walk wy = { { y->part[0], y->part[1], { ty, 1 + foldtab_digits(y->value, ty + 1) } }, 0 };

	return compare_walks(&wx, &wy);
}

static int by_sum(const void *a, const void *b)
{
	const struct foldtab_line *x = a, *y = b;
	int c = CMP(y->sum, x->sum);

	return c ? c : by_line(a, b);
}

static void merge_equal(struct foldtab_lines *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (n && by_text(&l->lines[n - 1], &l->lines[i]) == 0)
			l->lines[n - 1].sum += l->lines[i].sum;
		else
			l->lines[n++] = l->lines[i];
	}
	l->n = n;
}

static void apply_query(struct foldtab_lines *l, const struct foldtab_query *q)
{
	uint64_t divide = q->divide ? q->divide : 1;
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		struct foldtab_line *line = &l->lines[i];

		if (line->sum < q->min)
			continue;
		line->value = line->sum / divide + (line->sum % divide >= divide - divide / 2 && divide > 1);
		if (!line->value && line->sum)
			l->vanished++;
		else
			l->lines[n++] = *line;
	}
	l->n = n;
}

static void sort_lines(struct foldtab_lines *l)
{
	for (size_t i = 1; i < l->n; i++) {
		if (by_line(&l->lines[i - 1], &l->lines[i]) > 0) {
			qsort(l->lines, l->n, sizeof(*l->lines), by_line);
			return;
		}
	}
}

static struct foldtab_sum_text text_of(const struct intern *t, uint32_t id)
{
	struct foldtab_sum_text s;

	s.p = intern_text(t, id, &s.len);
	return s;
}

int foldtab_lines(
	const struct foldtab *t, const struct foldtab_query *q, struct foldtab_lines *ret, struct err *e)
{
	*ret = (struct foldtab_lines){ .lines = calloc(t->n + 1, sizeof(*ret->lines)), .n = t->n };
	if (!ret->lines)
		return err_nomem(e, "the folded lines");
	for (size_t i = 0; i < t->n; i++) {
		struct foldtab_line *line = &ret->lines[i];

		line->part[q->reverse] = text_of(&t->names, t->pairs[i].name);
		line->part[!q->reverse] = text_of(&t->stacks, t->pairs[i].stack);
		line->sum = t->pairs[i].sum;
	}
	qsort(ret->lines, ret->n, sizeof(*ret->lines), by_text);
	merge_equal(ret);
	apply_query(ret, q);
	if (q->top && q->top < ret->n) {
		qsort(ret->lines, ret->n, sizeof(*ret->lines), by_sum);
		ret->n = q->top;
	}
	sort_lines(ret);
	return 0;
}
