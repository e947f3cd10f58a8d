/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/stackids.h"

#include <errno.h>

#define AHEAD 8 /* frames whose entries are fetched before they are needed */

/* The user stacks, by process and stack; open addressing. */
struct seen {
	uint64_t key;
	struct stackids_span span;
};

struct stackids {
	const struct capread *c;
	struct resolve *r;
	uint32_t *ids;
	size_t n_ids, ids_cap;
	struct stackids_span *kernel; /* by stack id */
	struct seen *seen;
	size_t n_seen, seen_cap; /* seen_cap is a power of two */
};

int stackids_new(const struct capread *c, struct resolve *r, struct stackids **ret)
{
	struct stackids *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->c = c;
	s->r = r;
	/* enough where each stack is resolved once */
	for (size_t i = 0; i < c->n_stacks; i++)
		s->ids_cap += c->stacks[i].len;
	s->ids_cap++;
	s->ids = malloc(s->ids_cap * sizeof(*s->ids));
	s->seen_cap = 1024;
	s->seen = calloc(s->seen_cap, sizeof(*s->seen));
	s->kernel = calloc(c->n_stacks + 1, sizeof(*s->kernel));
	if (!s->ids || !s->seen || !s->kernel) {
		stackids_free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void stackids_free(struct stackids *s)
{
	if (!s)
		return;
	free(s->ids);
	free(s->kernel);
	free(s->seen);
	free(s);
}

/* Room for the frames of STACK; a stack that failed has none. */
static int start(struct stackids *s, const struct cap_stack *stack, struct stackids_span *ret)
{
	uint32_t len = stack->verdict != CAP_FAILED ? stack->len : 0;

	*ret = (struct stackids_span){ .first = s->n_ids, .len = len, .done = true };
	return base_grow(&s->ids, &s->ids_cap, s->n_ids + len, sizeof(*s->ids));
}

int stackids_kernel(struct stackids *s, const struct cap_sample *a, struct stackids_span *ret)
{
	const struct cap_stack *stack = &s->c->stacks[a->kstack];
	struct stackids_span *span = &s->kernel[a->kstack];

	if (!span->done) {
		if (start(s, stack, span) != 0)
			return -ENOMEM;
		for (uint32_t i = 0; i < span->len; i++) {
			uint32_t id = resolve_kernel(s->r, stack->frames[i]);

			if (id == RESOLVE_FAILED)
				return -ENOMEM;
			s->ids[s->n_ids++] = id;
		}
	}
	*ret = *span;
	return 0;
}

static int resolve_frames(struct stackids *s, const struct cap_sample *a, struct stackids_span *ret)
{
	const struct cap_stack *stack = &s->c->stacks[a->ustack];
	uint32_t next = 0; /* of the exact frames behind the first one */

	if (start(s, stack, ret) != 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < ret->len; i++) {
		bool listed = next < stack->n_exact && stack->exact[next] == i;
		uint32_t id =
			resolve_user(s->r, a->proc, stack->frames[i], !i || listed, a->first_ns, a->last_ns);

		next += listed;
		if (id == RESOLVE_FAILED)
			return -ENOMEM;
		s->ids[s->n_ids++] = id;
	}
	return 0;
}

static struct seen *find_seen(const struct stackids *s, uint64_t key)
{
	size_t i = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (s->seen_cap - 1);

	while (s->seen[i].span.done && s->seen[i].key != key)
		i = (i + 1) & (s->seen_cap - 1);
	return &s->seen[i];
}

static int grow_seen(struct stackids *s)
{
	struct seen *old = s->seen;
	size_t n = s->seen_cap;

	if (s->n_seen < n / 2)
		return 0;
	s->seen = calloc(2 * n, sizeof(*s->seen));
	if (!s->seen) {
		s->seen = old;
		return -ENOMEM;
	}
	s->seen_cap = 2 * n;
	for (size_t i = 0; i < n; i++)
		if (old[i].span.done)
			*find_seen(s, old[i].key) = old[i];
	free(old);
	return 0;
}

int stackids_user(struct stackids *s, const struct cap_sample *a, struct stackids_span *ret)
{
	uint64_t key = (uint64_t)a->proc << 32 | a->ustack;
	struct seen *seen;

	if (!resolve_steady(s->r, a->proc, a->first_ns))
		return resolve_frames(s, a, ret);
	if (grow_seen(s) != 0)
		return -ENOMEM;
	seen = find_seen(s, key);
	if (!seen->span.done) {
		if (resolve_frames(s, a, &seen->span) != 0)
			return -ENOMEM;
		seen->key = key;
		s->n_seen++;
	}
	*ret = seen->span;
	return 0;
}

const uint32_t *stackids_at(const struct stackids *s, const struct stackids_span *span)
{
	return s->ids + span->first;
}
