/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/ruleset.h"

#include "base/hash.h"
#include "record/sharedarray.h"

#include <errno.h>
#include <sys/random.h>

#define BUCKETS 65536

/* Numbers below `fresh` that are free are chained by `next` from `idle`; 0 ends every chain. */
struct ruleset {
	struct sharedarray array;
	struct unwind_rule *rules;
	uint64_t seed;
	uint32_t fresh, count;
	uint16_t idle;
	uint16_t bucket[BUCKETS];
	uint16_t next[UNWIND_RULES_MAX];
	uint32_t holders[UNWIND_RULES_MAX];
};

_Static_assert(UNWIND_RULES_MAX - 1 <= UINT16_MAX, "a number is 16 bits");

DEFINE_CLEANUP(struct ruleset *, ruleset_close);

int ruleset_open(struct ruleset **ret, struct err *e)
{
	CLEANUP(ruleset_close_p) struct ruleset *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return err_nomem(e, "unwind rules");
	r->fresh = 1;
	if (getrandom(&r->seed, sizeof(r->seed), GRND_NONBLOCK) != (ssize_t)sizeof(r->seed))
		r->seed = (uintptr_t)r;
	rc = sharedarray_open(&r->array, "unwind_rules", sizeof(*r->rules), UNWIND_RULES_MAX, e);
	if (rc)
		return rc;
	r->rules = r->array.p;
	*ret = TAKE_PTR(r);
	return 0;
}

void ruleset_close(struct ruleset *r)
{
	if (r)
		sharedarray_close(&r->array);
	free(r);
}

const struct unwind_rule *ruleset_at(const struct ruleset *r, uint16_t number)
{
	return &r->rules[number];
}

int ruleset_fd(const struct ruleset *r)
{
	return r->array.fd;
}

static uint16_t *bucket_of(struct ruleset *r, const struct unwind_rule *rule)
{
	return &r->bucket[hash_bytes(rule, sizeof(*rule), r->seed) % BUCKETS];
}

static bool equal(const struct unwind_rule *a, const struct unwind_rule *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* A free number, or 0. */
static uint16_t new_number(struct ruleset *r)
{
	uint16_t n = r->idle;

	if (n)
		r->idle = r->next[n];
	else if (r->fresh < UNWIND_RULES_MAX)
		n = (uint16_t)r->fresh++;
	return n;
}

int ruleset_take(struct ruleset *r, const struct unwind_rule *rule, uint16_t *ret)
{
	uint16_t *bucket = bucket_of(r, rule), n = *bucket;

	*ret = 0;
	if (equal(rule, &(struct unwind_rule){ 0 }))
		return 0;
	while (n && !equal(&r->rules[n], rule))
		n = r->next[n];
	if (!n) {
		n = new_number(r);
		if (!n)
			return -ENOSPC;
		r->rules[n] = *rule;
		r->next[n] = *bucket;
		*bucket = n;
		r->count++;
	}
	r->holders[n]++;
	*ret = n;
	return 0;
}

void ruleset_give(struct ruleset *r, uint16_t number)
{
	uint16_t *link;

	if (number == 0 || --r->holders[number] > 0)
		return;
	for (link = bucket_of(r, &r->rules[number]); *link != number;)
		link = &r->next[*link];
	*link = r->next[number];
	r->rules[number] = (struct unwind_rule){ 0 };
	r->next[number] = r->idle;
	r->idle = number;
	r->count--;
}

uint32_t ruleset_count(const struct ruleset *r)
{
	return r->count;
}

uint64_t ruleset_bytes(void)
{
	return sharedarray_bytes(sizeof(struct unwind_rule), UNWIND_RULES_MAX);
}
