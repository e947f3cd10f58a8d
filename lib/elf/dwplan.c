/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/dwplan.h"

#include <elf.h>
#include <errno.h>

/* code is in one unit; folded identical code and odd producers make that a few */
#define COVERS_MIN (UINT64_C(16) << 20)
#define COVERS_EACH 64

uint64_t dwplan_lowest(const struct elffile *f)
{
	uint64_t low = UINT64_MAX;

	for (size_t i = 0; i < f->n_sections; i++)
		if ((f->sections[i].flags & SHF_EXECINSTR) && f->sections[i].size)
			low = MIN(low, f->sections[i].addr);
	return low == UINT64_MAX ? 0 : low;
}

static size_t first_from(const uint64_t *vaddrs, size_t n, uint64_t low)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (vaddrs[mid] < low)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int by_from(const void *a, const void *b)
{
	const struct dwplan_part *x = a, *y = b;

	return CMP(x->from, y->from);
}

static int add_part(struct dwplan *p, uint32_t unit, size_t from, size_t to)
{
	if (base_grow(&p->parts, &p->parts_cap, p->n_parts + 1, sizeof(*p->parts)) != 0)
		return -ENOMEM;
	p->parts[p->n_parts++] = (struct dwplan_part){ unit, (uint32_t)from, (uint32_t)to };
	return 0;
}

/*
 * The parts from FIRST on are one unit's: sort them, join those that touch,
 * count what they cover. Every unit may claim every address; beyond all measure they are left out.
 */
static bool settle(struct dwplan *p, size_t first)
{
	size_t n = first;
	uint64_t sum = 0;

	if (p->n_parts == first)
		return true;
	qsort(p->parts + first, p->n_parts - first, sizeof(*p->parts), by_from);
	for (size_t i = first + 1; i < p->n_parts; i++) {
		if (p->parts[i].from <= p->parts[n].to)
			p->parts[n].to = MAX(p->parts[n].to, p->parts[i].to);
		else
			p->parts[++n] = p->parts[i];
	}
	p->n_parts = n + 1;
	for (size_t i = first; i < p->n_parts; i++)
		sum += p->parts[i].to - p->parts[i].from;
	if (sum > p->covers_left) {
		p->n_parts = first;
		return false;
	}
	p->covers_left -= sum;
	for (size_t i = first; i < p->n_parts; i++)
		for (uint32_t k = p->parts[i].from; k < p->parts[i].to; k++)
			p->covers[k]++;
	return true;
}

/* 1: unit I of D tells where all of its code is, 0: it does not. */
static int spans_of(struct dwplan *p, struct dwinfo *d, size_t i, uint64_t lowest, struct err *e)
{
	struct dwbases b = { .info = d, .main = d, .unit = &d->units[i], .lowest = lowest };
	struct dwroot root;
	int rc;

	p->spans.n = 0;
	rc = dwinfo_root(d, b.unit, &root, e);
	if (rc)
		return rc;
	if (root.str_base != DWINFO_UNKNOWN)
		b.unit->str_base = root.str_base;
	p->skeleton = root.dwo_name.kind != DWV_NONE;
	dwrange_bases(&b, &root, false);
	rc = dwrange_read(&b, &root.low, &root.high, &root.ranges, &p->spans, e);
	if (rc || root.ranges.kind != DWV_NONE || (!root.children && !p->skeleton))
		return rc ? rc : 1;
	/* DWARF 2 has no ranges: code in other sections is not told of */
	return root.high.kind != DWV_NONE && b.unit->shape.version > 2;
}

/* 0, -ENOMEM; -EINVAL: too many units cover the same. */
static int plan_unit(struct dwplan *p, size_t i, const uint64_t *vaddrs, size_t n)
{
	size_t first = p->n_parts;
	int rc = 0;

	for (size_t s = 0; s < p->spans.n && !rc; s++) {
		size_t from = first_from(vaddrs, n, p->spans.v[s].low);
		size_t to = from;

		if (from < n && vaddrs[from] < p->spans.v[s].high)
			to = first_from(vaddrs, n, p->spans.v[s].high);
		if (to > from)
			rc = add_part(p, (uint32_t)i, from, to);
	}
	return rc ? rc : settle(p, first) ? 0 : -EINVAL;
}

static int plan_open(struct dwplan *p, struct dwinfo *d, size_t i)
{
	if (!p->skeleton && !dwinfo_has_functions(d, &d->units[i]))
		return 0;
	if (base_grow(&p->open, &p->open_cap, p->n_open + 1, sizeof(*p->open)) != 0)
		return -ENOMEM;
	p->open[p->n_open++] = (uint32_t)i;
	return 0;
}

int dwplan_make(struct dwplan *p, struct dwinfo *d, uint64_t lowest, const uint64_t *vaddrs, size_t n,
	uint64_t *bad, struct err *e)
{
	int rc = 0;

	*p = (struct dwplan){ .covers_left = COVERS_MIN + COVERS_EACH * (uint64_t)n,
		.covers = calloc(n ? n : 1, sizeof(*p->covers)) };
	if (!p->covers || n > UINT32_MAX || d->n > UINT32_MAX)
		return err_nomem(e, "a plan of debug information");
	for (size_t i = 0; i < d->n && rc != -ENOMEM; i++) {
		struct err one = { 0 };
		int told = spans_of(p, d, i, lowest, &one);

		rc = told == -ENOMEM ? told : plan_unit(p, i, vaddrs, n);
		if (!rc && !told)
			rc = plan_open(p, d, i);
		if (rc == -EINVAL)
			told = err_set(
				&one, rc, "too many units of debug information cover the same addresses");
		if (told < 0 && !(*bad)++ && e)
			*e = one;
	}
	return rc == -ENOMEM ? err_nomem(e, "a plan of debug information") : 0;
}

void dwplan_free(struct dwplan *p)
{
	free(p->parts);
	free(p->open);
	free(p->covers);
	free(p->spans.v);
	*p = (struct dwplan){ 0 };
}
