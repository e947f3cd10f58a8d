/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fold/bodycache.h"
#include "base/hash.h"

#include <string.h>

#define SEEN_SLOTS 65536
#define GUESSES 16384
#define PREFETCH_MAX 512

int bodycache_init(struct bodycache *c, uint64_t seed, struct err *e)
{
	*c = (struct bodycache){ .bodies.seed = seed,
		.seen = calloc(SEEN_SLOTS, sizeof(*c->seen)),
		.guesses = calloc(GUESSES, sizeof(*c->guesses)) };
	return c->seen && c->guesses ? 0 : err_nomem(e, "stacks");
}

void bodycache_free(struct bodycache *c)
{
	intern_free(&c->bodies);
	free(c->values);
	free(c->seen);
	free(c->guesses);
	*c = (struct bodycache){ 0 };
}

/* A place among the guesses, from four words spread over the body. */
static uint32_t sample(const char *body, size_t len)
{
	const unsigned char *p = (const unsigned char *)body;
	const size_t step = (len - 8) / 4;
	uint64_t h;

	h = hash_mul(hash_load64(p + step) ^ HASH_K0, hash_load64(p + 2 * step) ^ HASH_K1);
	h ^= hash_mul(hash_load64(p + 3 * step) ^ HASH_K2, hash_load64(p) ^ len);
	return (uint32_t)(hash_mul(h, HASH_K3) % GUESSES);
}

struct bodycache_key bodycache_expect(const struct bodycache *c, const char *body, size_t len)
{
	struct bodycache_key k = { .body = body, .len = len };
	const struct intern_entry *e;
	uint32_t id_1;

	if (len < 8)
		return k;
	k.guess = sample(body, len);
	id_1 = c->guesses[k.guess];
	if (!id_1 || id_1 > c->bodies.n)
		return k;
	e = &c->bodies.entries[id_1 - 1];
	__builtin_prefetch(&c->values[id_1 - 1]);
	if (e->len == len) {
		for (size_t at = 0; at < MIN(len, (size_t)PREFETCH_MAX); at += 64)
			__builtin_prefetch(e->text + at);
	}
	return k;
}

struct bodycache_value *bodycache_find(struct bodycache *c, struct bodycache_key *k)
{
	uint32_t *guess = &c->guesses[k->guess], id;

	if (*guess && *guess <= c->bodies.n) {
		const struct intern_entry *e = &c->bodies.entries[*guess - 1];

		if (e->len == k->len && memcmp(e->text, k->body, k->len) == 0)
			return &c->values[*guess - 1];
	}
	k->hash = intern_hash(&c->bodies, k->body, k->len);
	id = intern_find(&c->bodies, k->body, k->len, k->hash);
	if (id == INTERN_NONE)
		return NULL;
	*guess = id + 1;
	return &c->values[id];
}

int bodycache_keep(
	struct bodycache *c, const struct bodycache_key *k, const struct bodycache_value *v, struct err *e)
{
	uint32_t tag = (uint32_t)(k->hash >> 32), *seen = &c->seen[k->hash % SEEN_SLOTS];
	uint32_t id;

	if (c->bodies.bytes > BODYCACHE_MAX / 2 && *seen != tag) {
		*seen = tag;
		return 0;
	}
	/* bounded also where bodies are short and many */
	if (c->bodies.bytes > BODYCACHE_MAX || c->bodies.n > BODYCACHE_MAX / 64)
		intern_reset(&c->bodies);
	id = intern_add(&c->bodies, k->body, k->len, k->hash);
	if (id == INTERN_NONE || base_grow(&c->values, &c->cap, c->bodies.n, sizeof(*c->values)) != 0)
		return err_nomem(e, "stacks");
	c->values[id] = *v;
	c->guesses[k->guess] = id + 1;
	return 0;
}
