/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bodycache.h"

#define SEEN_SLOTS 65536

int bodycache_init(struct bodycache *c, uint64_t seed, struct err *e)
{
	*c = (struct bodycache){ .bodies.seed = seed, .seen = calloc(SEEN_SLOTS, sizeof(*c->seen)) };
	return c->seen ? 0 : err_nomem(e, "stacks");
}

void bodycache_free(struct bodycache *c)
{
	intern_free(&c->bodies);
	free(c->values);
	free(c->seen);
	*c = (struct bodycache){ 0 };
}

struct bodycache_value *bodycache_find(
	const struct bodycache *c, const char *body, size_t len, uint64_t *hash)
{
	uint32_t id;

	*hash = intern_hash(&c->bodies, body, len);
	id = intern_find(&c->bodies, body, len, *hash);
	return id == INTERN_NONE ? NULL : &c->values[id];
}

int bodycache_keep(struct bodycache *c, const char *body, size_t len, uint64_t hash,
	const struct bodycache_value *v, struct err *e)
{
	uint32_t tag = (uint32_t)(hash >> 32), *seen = &c->seen[hash % SEEN_SLOTS];
	uint32_t id;

	if (c->bodies.bytes > BODYCACHE_MAX / 2 && *seen != tag) {
		*seen = tag;
		return 0;
	}
	/* bounded also where bodies are short and many */
	if (c->bodies.bytes > BODYCACHE_MAX || c->bodies.n > BODYCACHE_MAX / 64)
		intern_reset(&c->bodies);
	id = intern_add(&c->bodies, body, len, hash);
	if (id == INTERN_NONE || base_grow(&c->values, &c->cap, c->bodies.n, sizeof(*c->values)) != 0)
		return err_nomem(e, "stacks");
	c->values[id] = *v;
	return 0;
}
