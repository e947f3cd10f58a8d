/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "fold/table.h"

#include <string.h>

static struct tap t;

static void add(struct foldtab *tab, const char *name, const char *stack, uint64_t weight)
{
	uint32_t pair = foldtab_pair(tab, intern_put(&tab->names, name, strlen(name)),
		intern_put(&tab->stacks, stack, strlen(stack)));

	tab->pairs[pair].sum += weight;
}

static void expect(const struct foldtab *tab, struct foldtab_query q, const char *want, const char *name)
{
	struct foldtab_lines l;
	char got[1024] = "", digits[40];
	size_t n = 0;

	if (foldtab_lines(tab, &q, &l, NULL) != 0)
		exit(99);
	for (size_t i = 0; i < l.n; i++) {
		size_t d = foldtab_digits(l.lines[i].value, digits);

		n += (size_t)snprintf(got + n, sizeof(got) - n, "%.*s%.*s %.*s\n",
			(int)l.lines[i].part[0].len, l.lines[i].part[0].p, (int)l.lines[i].part[1].len,
			l.lines[i].part[1].p, (int)d, digits);
	}
	if (l.vanished)
		snprintf(got + n, sizeof(got) - n, "(%zu)", l.vanished);
	tap_eq_str(&t, got, want, name);
	free(l.lines);
}

int main(void)
{
	struct foldtab tab;

	foldtab_init(&tab, 1);
	expect(&tab, (struct foldtab_query){ 0 }, "", "an empty table has no lines");
	add(&tab, "b", ";x", 1499);
	add(&tab, "a", ";x;y", 1500);
	add(&tab, "a", ";x", 499);
	add(&tab, "a;x", ";y", 1);
	add(&tab, "a", "", 0);
	add(&tab, "b", ";x", 1);
	expect(&tab, (struct foldtab_query){ 0 }, "a 0\na;x 499\na;x;y 1501\nb;x 1500\n",
		"equal lines are merged, even if made of different names and stacks");
	expect(&tab, (struct foldtab_query){ .divide = 1000 }, "a 0\na;x;y 2\nb;x 2\n(1)",
		"values are rounded, halves up; a line that rounds to 0 is dropped, one with sum 0 is not");
	expect(&tab, (struct foldtab_query){ .min = 1500 }, "a;x;y 1501\nb;x 1500\n",
		"min keeps a line with an equal sum");
	expect(&tab, (struct foldtab_query){ .top = 1 }, "a;x;y 1501\n",
		"top keeps the line with the greatest sum");
	expect(&tab, (struct foldtab_query){ .top = 9 }, "a 0\na;x 499\na;x;y 1501\nb;x 1500\n",
		"top may be larger than the number of lines");
	foldtab_free(&tab);
	foldtab_init(&tab, 1);
	add(&tab, "a", "", 2);
	add(&tab, "a 1", "", 3);
	add(&tab, "a", "\tz", 4);
	add(&tab, "a", ";b", 5);
	expect(&tab, (struct foldtab_query){ 0 }, "a\tz 4\na 1 3\na 2\na;b 5\n",
		"lines are sorted as text, including their sums");
	add(&tab, "m", "", UINT64_MAX);
	add(&tab, "m", "", UINT64_MAX);
	expect(&tab, (struct foldtab_query){ .top = 1 }, "m 36893488147419103230\n",
		"a sum may exceed 64 bits");
	foldtab_free(&tab);
	return tap_done(&t);
}
