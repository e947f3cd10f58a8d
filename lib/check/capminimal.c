/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/capminimal.h"

struct search {
	uint64_t set, keep;
	capminimal_fn works;
	void *ctx;
};

/* Take BITS away if it works without them. */
static bool take_away(struct search *s, uint64_t bits)
{
	uint64_t less = s->set & ~(bits & ~s->keep);

	if (less == s->set || !s->works(s->ctx, less))
		return false;
	s->set = less;
	return true;
}

static bool once_through(struct search *s, const int *order, size_t n, uint64_t others)
{
	bool changed = take_away(s, others);

	for (int cap = 0; cap < 64; cap++)
		if (others & UINT64_C(1) << cap)
			changed = take_away(s, UINT64_C(1) << cap) || changed;
	for (size_t i = 0; i < n; i++)
		changed = take_away(s, UINT64_C(1) << order[i]) || changed;
	return changed;
}

bool capminimal_find(uint64_t from, uint64_t keep, const int *order, size_t n, capminimal_fn works, void *ctx,
	uint64_t *ret)
{
	struct search s = { .set = from, .keep = keep, .works = works, .ctx = ctx };
	uint64_t others = ~UINT64_C(0);

	for (size_t i = 0; i < n; i++)
		others &= ~(UINT64_C(1) << order[i]);
	if (!works(ctx, from))
		return false;
	/* what could not be spared may be sparable once something else is gone */
	while (once_through(&s, order, n, others))
		;
	*ret = s.set;
	return true;
}
