/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "fold/folding.h"

#include <string.h>

#define BODY 200

/* Returns the value of BODY, which gets V if it has none; UINT32_MAX on error. */
static uint32_t look_up(struct bodycache *c, const char *body, size_t len, uint32_t v)
{
	struct bodycache_value value = { .stack = v };
	struct bodycache_key k = bodycache_expect(c, body, len);
	struct bodycache_value *found = bodycache_find(c, &k);
	struct err e = { 0 };

	if (found)
		return found->stack;
	return bodycache_keep(c, &k, &value, &e) == 0 ? v : UINT32_MAX;
}

/*
 * Look up LEN bodies, of which body I has only byte I set. New ones get the value
 * V + I. Returns how many do not have the value WANT + I.
 */
static unsigned int one_byte_off(struct bodycache *c, size_t len, uint32_t v, uint32_t want)
{
	unsigned int bad = 0;

	for (size_t i = 0; i < len; i++) {
		char *body = calloc(1, len);

		if (!body)
			return UINT32_MAX;
		body[i] = 1;
		bad += look_up(c, body, len, v + (uint32_t)i) != want + i;
		free(body);
	}
	return bad;
}

/* Add enough bodies to fill the cache and make it start over. Returns how many have a wrong value. */
static unsigned int fill(struct bodycache *c)
{
	size_t len = 64 << 10, n = 2 * BODYCACHE_MAX / len;
	char *body = calloc(1, len);
	unsigned int bad = 0;

	for (uint32_t i = 0; body && i < 2 * n; i++) {
		uint32_t id = i / 2;

		memcpy(body + len / 3, &id, sizeof(id));
		bad += look_up(c, body, len, id) != id;
	}
	free(body);
	return body ? bad : UINT32_MAX;
}

int main(void)
{
	struct bodycache c = { 0 };
	struct tap t = { 0 };
	struct err e = { 0 };
	unsigned int bad = 0;

	if (!tap_ok(&t, bodycache_init(&c, 42, &e) == 0, "a cache is created"))
		return tap_done(&t);
	tap_eq_u64(&t, one_byte_off(&c, BODY, 1000, 1000), 0, "bodies that differ in one byte are distinct");
	tap_eq_u64(&t, one_byte_off(&c, BODY, 5000, 1000), 0, "each body keeps its own value");
	for (size_t len = 0; len < 20; len++)
		bad += look_up(&c, "0123456789abcdefghi", len, (uint32_t)len) != len;
	for (size_t len = 0; len < 20; len++)
		bad += look_up(&c, "0123456789abcdefghi", len, 77) != len;
	tap_eq_u64(&t, bad, 0, "short bodies are found, including the empty one");
	tap_eq_u64(&t, fill(&c), 0, "a cache that overflows returns no body's value for another");
	tap_ok(&t, c.bodies.bytes <= BODYCACHE_MAX + (4 << 20), "a cache that overflows stays bounded");
	bodycache_free(&c);
	return tap_done(&t);
}
