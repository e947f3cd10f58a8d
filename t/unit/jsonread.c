/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/jsonread.h: what is read, and that nothing malformed is. */
#include "../lib/edge.h"
#include "base/jsonread.h"
#include "base/tap.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

/* Puts the value that R has next into B in a notation of its own, with types that are seen by their first
 * byte. */
static void put_value(struct jsonread *r, struct buf *b)
{
	struct jsonread_text text;
	char number[32];

	if (jsonread_null(r)) {
		buf_put(b, "N", 1);
		return;
	}
	switch (r->p < r->end ? *r->p : '\0') {
	case '{':
		jsonread_begin(r, '{');
		buf_put(b, "{", 1);
		while (jsonread_member(r, &text)) {
			jsonread_decode(&text, b);
			buf_put(b, "=", 1);
			put_value(r, b);
		}
		buf_put(b, "}", 1);
		break;
	case '[':
		jsonread_begin(r, '[');
		buf_put(b, "[", 1);
		while (jsonread_element(r)) {
			put_value(r, b);
			buf_put(b, ";", 1);
		}
		buf_put(b, "]", 1);
		break;
	case '"':
		text = jsonread_text(r);
		buf_put(b, "'", 1);
		if (!jsonread_decode(&text, b))
			r->bad = r->bad ? r->bad : "escape";
		buf_put(b, "'", 1);
		break;
	case 't':
	case 'f':
		buf_put(b, jsonread_bool(r) ? "T" : "F", 1);
		break;
	default:
		buf_put(b, number, (size_t)snprintf(number, sizeof(number), "%" PRIu64, jsonread_u64(r)));
	}
}

/* What JSON reads as, or "bad"; it ends at a page that cannot be read. */
static const char *read_all(const char *json, size_t len, char text[256])
{
	const char *copy = memcpy(edge_room() + EDGE_ROOM - len, json, len);
	struct jsonread r = jsonread_init(copy, len), skipped = r;
	struct buf b = { 0 };

	put_value(&r, &b);
	jsonread_end(&r);
	snprintf(text, 256, "%.*s", r.bad ? 3 : (int)b.len, r.bad ? "bad" : b.len ? (const char *)b.p : "");
	/* a reader that is not interested accepts the same, but for escapes and numbers that it need not read
	 */
	jsonread_skip(&skipped);
	jsonread_end(&skipped);
	if (!r.bad && skipped.bad)
		snprintf(text, 256, "skipping: %s", skipped.bad);
	buf_free(&b);
	return text;
}

static void check(struct tap *t, const char *json, const char *want)
{
	char text[256], name[400];
	size_t len = text_escape(name, 300, json, strlen(json), TEXT_LINE);

	snprintf(name + len, sizeof(name) - len, " is %s", strcmp(want, "bad") == 0 ? "malformed" : "read");
	tap_eq_str(t, read_all(json, strlen(json), text), want, name);
}

static void check_values(struct tap *t)
{
	check(t, "{}", "{}");
	check(t, " { \"a\" : 1 , \"b\" : [ ] } ", "{a=1b=[]}");
	check(t, "{\"a\":{\"b\":[1,[2],{\"c\":null}]},\"d\":true}", "{a={b=[1;[2;];{c=N};]}d=T}");
	check(t, "[false,18446744073709551615,0]", "[F;18446744073709551615;0;]");
	check(t, "\"a\\\"\\\\\\/\\n\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"",
		"'a\"\\/\nA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80'");
	check(t, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"",
		"'\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f'");
}

static void check_malformed(struct tap *t)
{
	static const char *const malformed[] = { "", " ", "{", "}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
		"{,}", "{\"a\":1 \"b\":2}", "{a:1}", "{1:1}", "{null:1}", "[1,]", "[,1]", "[1 2]", "[1}",
		"{\"a\":1]", "1 2", "{} {}", "nul", "tru", "nulll", "01", "-1", "1.5", "1e3", "+1", "0x1",
		"18446744073709551616", "99999999999999999999999", "\"", "\"\\", "\"\\x\"", "\"\\u12\"",
		"\"\\u12g4\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"", "\"\n\"", "\"\x1f\"",
		"\"\x80\"", "\"\xc0\x80\"", "\"\xc3\"", "\"\xe0\x80\x80\"", "\"\xed\xa0\x80\"",
		"\"\xf4\x90\x80\x80\"", "\"\xf8\x88\x80\x80\x80\"", "'a'", "//" };

	for (size_t i = 0; i < ARRAY_LEN(malformed); i++)
		check(t, malformed[i], "bad");
}

static void check_prefixes(struct tap *t)
{
	static const char json[] = "{\"a\":[1,{\"b\":\"x\\u00e9\xc3\xa9\"},null,true],\"c\":{}}";
	char text[256];
	bool all_bad = true;

	for (size_t n = 0; n < sizeof(json) - 1; n++)
		all_bad = all_bad && strcmp(read_all(json, n, text), "bad") == 0;
	tap_ok(t, all_bad, "no beginning of an object is an object");
	tap_eq_str(t, read_all(json, sizeof(json) - 1, text), "{a=[1;{b='x\xc3\xa9\xc3\xa9'};N;T;]c={}}",
		"the whole is");
}

static bool skips(const char *json)
{
	struct jsonread r = jsonread_init(json, strlen(json));

	jsonread_skip(&r);
	jsonread_end(&r);
	return !r.bad;
}

static void check_skipping(struct tap *t)
{
	char deep[2 * JSONREAD_DEPTH + 3] = { 0 };

	tap_ok(t, skips("-0.5e+10") && skips("1E2") && skips("[1.25,-3]"), "every number of JSON is skipped");
	tap_ok(t,
		!skips("1.") && !skips("-") && !skips("1e") && !skips(".5") && !skips("00") &&
			!skips("1.5.5"),
		"a malformed one is not");
	memset(deep, '[', JSONREAD_DEPTH);
	memset(deep + JSONREAD_DEPTH, ']', JSONREAD_DEPTH);
	tap_ok(t, skips(deep), "arrays are skipped to their greatest depth");
	memset(deep, '[', JSONREAD_DEPTH + 1);
	memset(deep + JSONREAD_DEPTH + 1, ']', JSONREAD_DEPTH + 1);
	tap_ok(t, !skips(deep), "and no deeper");
}

static void check_address(struct tap *t)
{
	static const char *const bad[] = { "\"0x\"", "\"12\"", "\"0xg\"", "\"0x10000000000000000\"", "12",
		"null", "\"0x 1\"" };
	struct jsonread r = jsonread_init("\"0xffFFffff81000010\"", 20);

	tap_eq_u64(t, jsonread_address(&r), UINT64_C(0xffffffff81000010), "an address of 64 bits");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		r = jsonread_init(bad[i], strlen(bad[i]));
		jsonread_address(&r);
		tap_ok(t, r.bad != NULL, "%s is not an address", bad[i]);
	}
}

static void check_first_error(struct tap *t)
{
	struct jsonread r = jsonread_init("{\"a\":x,\"b\":1}", 13);
	struct jsonread_text key;
	const char *bad;

	jsonread_begin(&r, '{');
	jsonread_member(&r, &key);
	jsonread_u64(&r);
	bad = r.bad;
	tap_ok(t,
		bad && !jsonread_member(&r, &key) && jsonread_u64(&r) == 0 && !jsonread_bool(&r) &&
			!jsonread_text(&r).p && r.bad == bad && *r.p == 'x',
		"after the first error nothing is read, and it stays");
}

int main(void)
{
	struct tap t = { 0 };

	check_values(&t);
	check_malformed(&t);
	check_prefixes(&t);
	check_skipping(&t);
	check_address(&t);
	check_first_error(&t);
	return tap_done(&t);
}
