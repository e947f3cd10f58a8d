/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/jitnames.h"

#define STEPS_MAX 4096 /* a capture whose pieces lie over each other more than that is no recorder's */

struct jitnames {
	const struct capread *c;
	uint64_t *reach; /* where the code of the process, up to this piece, ends at the farthest */
};

int jitnames_new(const struct capread *c, struct jitnames **ret, struct err *e)
{
	struct jitnames *n = calloc(1, sizeof(*n));
	uint64_t *reach = malloc((c->n_jits + 1) * sizeof(*reach));

	if (!n || !reach) {
		free(n);
		free(reach);
		return err_nomem(e, "the names of JIT code");
	}
	for (size_t i = 0; i < c->n_jits; i++) {
		bool first = i == 0 || c->jits[i - 1].proc != c->jits[i].proc;

		reach[i] = first ? c->jits[i].end : MAX(reach[i - 1], c->jits[i].end);
	}
	*n = (struct jitnames){ .c = c, .reach = reach };
	*ret = n;
	return 0;
}

void jitnames_free(struct jitnames *n)
{
	if (!n)
		return;
	free(n->reach);
	free(n);
}

/* How many pieces come up to ADDR of PROC. */
static size_t pieces_until(const struct capread *c, uint32_t proc, uint64_t addr)
{
	size_t low = 0, high = c->n_jits;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct cap_jit *j = &c->jits[mid];

		if (j->proc < proc || (j->proc == proc && j->start <= addr))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Is A, rather than B (NULL = nothing), what was there at FIRST_NS or came first after it? */
static bool is_better(const struct cap_jit *a, const struct cap_jit *b, uint64_t first_ns)
{
	if (!b)
		return true;
	if (a->from_ns > first_ns && b->from_ns > first_ns)
		return a->from_ns < b->from_ns;
	/* the newest of those that were there */
	return a->from_ns <= first_ns && (b->from_ns > first_ns || a->from_ns > b->from_ns);
}

/* Of the pieces around ADDR, those of KIND that were there at some time of the sample: the best, and how
 * many. */
static const struct cap_jit *look(const struct jitnames *n, uint8_t kind, uint32_t proc, uint64_t addr,
	uint64_t first_ns, uint64_t last_ns, size_t *found)
{
	const struct cap_jit *best = NULL, *all = n->c->jits;
	size_t at = pieces_until(n->c, proc, addr), steps = 0;

	*found = 0;
	while (at-- > 0 && all[at].proc == proc && n->reach[at] > addr) {
		const struct cap_jit *j = &all[at];

		if (++steps > STEPS_MAX)
			return NULL;
		if (j->kind != kind || j->end <= addr || j->to_ns <= first_ns || j->from_ns > last_ns)
			continue;
		++*found;
		if (is_better(j, best, first_ns))
			best = j;
	}
	return best;
}

const struct cap_jit *jitnames_find(const struct jitnames *n, uint32_t proc, uint64_t addr, uint64_t first_ns,
	uint64_t last_ns, bool *unsure)
{
	const struct cap_jit *best;
	size_t found;

	best = look(n, CAP_JIT_JITDUMP, proc, addr, first_ns, last_ns, &found);
	if (!best)
		best = look(n, CAP_JIT_PERFMAP, proc, addr, first_ns, last_ns, &found);
	if (unsure)
		*unsure = best && (found > 1 || best->to_ns <= last_ns);
	return best;
}
