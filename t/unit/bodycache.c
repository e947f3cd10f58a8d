/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "fold/folding.h"

#include <string.h>

#define BODY 200

/* The value that BODY has; it gets V where it has none. */
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

/* How many of LEN bodies, each with one byte set, have not WANT plus their number; new ones get V plus it. */
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

/* Bodies enough to fill the cache and to start it afresh. */
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

	if (!tap_ok(&t, bodycache_init(&c, 42, &e) == 0, "a cache begins empty"))
		return tap_done(&t);
	tap_eq_u64(&t, one_byte_off(&c, BODY, 1000, 1000), 0, "bodies that differ in one byte are new ones");
	tap_eq_u64(&t, one_byte_off(&c, BODY, 5000, 1000), 0, "each keeps its own value");
	for (size_t len = 0; len < 20; len++)
		bad += look_up(&c, "0123456789abcdefghi", len, (uint32_t)len) != len;
	for (size_t len = 0; len < 20; len++)
		bad += look_up(&c, "0123456789abcdefghi", len, 77) != len;
	tap_eq_u64(&t, bad, 0, "short bodies are known, the empty one too");
	tap_eq_u64(&t, fill(&c), 0, "a cache that overflows returns no body's value for another");
	tap_ok(&t, c.bodies.bytes <= BODYCACHE_MAX + (4 << 20), "and stays bounded");
	bodycache_free(&c);
	return tap_done(&t);
}
