/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/hash.h"
#include "base/intern.h"
#include "base/tap.h"

#include <string.h>

int main(void)
{
	struct intern s = { .seed = 42 };
	struct tap t = { 0 };
	char key[64];
	size_t len;
	unsigned int bad = 0, same = 0;
	const char *first;

	tap_ok(&t, intern_find(&s, "x", 1, intern_hash(&s, "x", 1)) == INTERN_NONE,
		"an empty table finds nothing");
	tap_eq_u64(&t, intern_put(&s, "", 0), 0, "the empty string is a string");
	tap_eq_u64(&t, intern_put(&s, "a\0b", 3), 1, "a string may contain a NUL");
	tap_eq_u64(&t, intern_put(&s, "a\0c", 3), 2, "strings that differ after a NUL are distinct");
	first = intern_text(&s, 1, &len);
	for (unsigned int i = 0; i < 100000; i++)
		bad += intern_put(&s, key, (size_t)snprintf(key, sizeof(key), "key %u", i)) != i + 3;
	for (unsigned int i = 0; i < 100000; i++)
		bad += intern_put(&s, key, (size_t)snprintf(key, sizeof(key), "key %u", i)) != i + 3;
	tap_eq_u64(&t, bad, 0, "100,000 strings get consecutive ids and keep them when added again");
	tap_ok(&t, first == intern_text(&s, 1, &len) && len == 3 && memcmp(first, "a\0b", 3) == 0,
		"text keeps its address while the table grows");
	intern_reset(&s);
	tap_eq_u64(&t, intern_put(&s, "new", 3), 0, "after a reset ids start again");
	tap_ok(&t, intern_find(&s, "key 1", 5, intern_hash(&s, "key 1", 5)) == INTERN_NONE,
		"after a reset no earlier string is found");
	intern_free(&s);
	for (size_t n = 0; n < 200; n++) {
		char a[200] = { 0 }, b[200] = { 0 };

		for (size_t i = 0; i < n; i++) {
			memcpy(b, a, sizeof(b));
			b[i] ^= 1;
			same += hash_bytes(a, n, 7) == hash_bytes(b, n, 7);
		}
		same += n && hash_bytes(a, n, 7) == hash_bytes(a, n - 1, 7);
	}
	tap_eq_u64(&t, same, 0, "changing a bit or the length changes the hash, for lengths up to 199");
	return tap_done(&t);
}
