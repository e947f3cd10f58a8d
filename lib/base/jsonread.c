/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/jsonread.h"

#include <string.h>

/* The value of a hexadecimal digit, -1 if C is none. */
static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void fail(struct jsonread *r, const char *why)
{
	if (!r->bad)
		r->bad = why;
}

static void skip_space(struct jsonread *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
		r->p++;
}

/* True, and past it, if C is next. */
static bool take(struct jsonread *r, char c)
{
	skip_space(r);
	if (r->bad || r->p == r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

static bool take_word(struct jsonread *r, const char *word)
{
	const size_t len = strlen(word);

	skip_space(r);
	if (r->bad || (size_t)(r->end - r->p) < len || memcmp(r->p, word, len) != 0)
		return false;
	r->p += len;
	return true;
}

/* What is wrong if something else than WANTED comes. */
static void expect(struct jsonread *r, const char *wanted)
{
	fail(r, r->p == r->end ? "it ends too early" : wanted);
}

void jsonread_begin(struct jsonread *r, char bracket)
{
	if (!take(r, bracket))
		expect(r, bracket == '{' ? "an object is expected" : "an array is expected");
	r->another = false;
}

/* Past the comma before the next item, or past the BRACKET. */
static bool next(struct jsonread *r, char bracket)
{
	const bool another = r->another;

	if (take(r, bracket)) {
		r->another = true; /* what has ended was an item of what it is in */
		return false;
	}
	if (another && !take(r, ','))
		expect(r, "a comma or the closing bracket is expected");
	r->another = true;
	return !r->bad;
}

/* The length of the UTF-8 sequence of several bytes at P, 0 if it is not valid. */
static size_t utf8_len(const unsigned char *p, size_t left)
{
	static const struct {
		unsigned char first, last, low, high; /* bounds of the second byte */
		size_t len;
	} forms[] = { { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 } };

	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		if (p[0] < forms[i].first || p[0] > forms[i].last)
			continue;
		if (left < forms[i].len || p[1] < forms[i].low || p[1] > forms[i].high)
			return 0;
		for (size_t k = 2; k < forms[i].len; k++) {
			if ((p[k] & 0xc0) != 0x80)
				return 0;
		}
		return forms[i].len;
	}
	return 0;
}

struct jsonread_text jsonread_text(struct jsonread *r)
{
	struct jsonread_text text = { 0 };

	if (jsonread_null(r))
		return text;
	if (!take(r, '"')) {
		expect(r, "a string is expected");
		return text;
	}
	text.p = r->p;
	while (r->p < r->end && *r->p != '"') {
		const unsigned char c = (unsigned char)*r->p;
		size_t len = 1;

		if (c == '\\') {
			text.escaped = true;
			len = r->end - r->p > 1 ? 2 : 1;
		} else if (c < 0x20) {
			fail(r, "a string has a control character");
		} else if (c >= 0x80) {
			len = utf8_len((const unsigned char *)r->p, (size_t)(r->end - r->p));
		}
		if (!len)
			fail(r, "a string is not valid UTF-8");
		if (r->bad)
			return (struct jsonread_text){ 0 };
		r->p += len;
	}
	text.len = (size_t)(r->p - text.p);
	if (!take(r, '"')) {
		expect(r, "a string does not end");
		return (struct jsonread_text){ 0 };
	}
	return text;
}

bool jsonread_member(struct jsonread *r, struct jsonread_text *key)
{
	if (!next(r, '}'))
		return false;
	*key = jsonread_text(r);
	if (!key->p || !take(r, ':'))
		expect(r, "a name and a colon are expected");
	return !r->bad;
}

bool jsonread_element(struct jsonread *r)
{
	return next(r, ']');
}

void jsonread_end(struct jsonread *r)
{
	skip_space(r);
	if (r->p != r->end)
		fail(r, "something follows the end");
}

uint64_t jsonread_u64(struct jsonread *r)
{
	const char *begin;
	uint64_t v = 0;

	skip_space(r);
	begin = r->p;
	while (!r->bad && r->p < r->end && *r->p >= '0' && *r->p <= '9') {
		const unsigned int digit = (unsigned int)(*r->p - '0');

		if (v > (UINT64_MAX - digit) / 10)
			fail(r, "a number is too large");
		v = v * 10 + digit;
		r->p++;
	}
	if (r->p == begin || (*begin == '0' && r->p - begin > 1))
		expect(r, "a whole number is expected");
	if (r->p < r->end && (*r->p == '.' || *r->p == 'e' || *r->p == 'E'))
		fail(r, "a whole number is expected");
	return r->bad ? 0 : v;
}

bool jsonread_bool(struct jsonread *r)
{
	if (take_word(r, "true"))
		return true;
	if (!take_word(r, "false"))
		expect(r, "true or false is expected");
	return false;
}

bool jsonread_null(struct jsonread *r)
{
	return take_word(r, "null");
}

uint64_t jsonread_address(struct jsonread *r)
{
	const struct jsonread_text text = jsonread_text(r);
	uint64_t v = 0;
	bool good = text.len > 2 && text.len <= 18 && memcmp(text.p, "0x", 2) == 0;

	for (size_t i = 2; good && i < text.len; i++) {
		const int digit = hex_digit(text.p[i]);

		good = digit >= 0;
		v = v << 4 | (unsigned int)(good ? digit : 0);
	}
	if (!good)
		fail(r, "an address is expected");
	return r->bad ? 0 : v;
}

/* A number with sign, fraction and exponent. */
static void skip_number(struct jsonread *r)
{
	const char *begin;

	if (r->p < r->end && *r->p == '-')
		r->p++;
	begin = r->p;
	while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
		r->p++;
	if (r->p == begin || (*begin == '0' && r->p - begin > 1)) {
		expect(r, "a value is expected");
		return;
	}
	if (r->p < r->end && *r->p == '.') {
		begin = ++r->p;
		while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
			r->p++;
	}
	if (r->p > begin && r->p < r->end && (*r->p == 'e' || *r->p == 'E')) {
		r->p++;
		if (r->p < r->end && (*r->p == '+' || *r->p == '-'))
			r->p++;
		begin = r->p;
		while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
			r->p++;
	}
	if (r->p == begin)
		expect(r, "a number is malformed");
}

/* Past a value that has no others in it, or past the bracket that begins one: *OPENED. */
static void skip_one(struct jsonread *r, char *opened)
{
	skip_space(r);
	*opened = r->p < r->end && (*r->p == '{' || *r->p == '[') ? *r->p : '\0';
	if (r->p == r->end)
		expect(r, "a value is expected");
	else if (*opened)
		jsonread_begin(r, *opened);
	else if (*r->p == '"')
		(void)jsonread_text(r);
	else if (*r->p == 't' || *r->p == 'f')
		(void)jsonread_bool(r);
	else if (!jsonread_null(r))
		skip_number(r);
}

void jsonread_skip(struct jsonread *r)
{
	char stack[JSONREAD_DEPTH], opened;
	struct jsonread_text key;
	size_t depth = 0;

	do {
		if (depth && !(stack[depth - 1] == '{' ? jsonread_member(r, &key) : jsonread_element(r))) {
			depth--;
			continue;
		}
		skip_one(r, &opened);
		if (!opened)
			continue;
		if (depth == JSONREAD_DEPTH)
			fail(r, "arrays and objects are nested too deeply");
		else
			stack[depth++] = opened;
	} while (depth && !r->bad);
}

/* Four hexadecimal digits; UINT32_MAX if they are none. */
static uint32_t four_digits(const char *p, const char *end)
{
	uint32_t v = 0;

	if (end - p < 4)
		return UINT32_MAX;
	for (int i = 0; i < 4; i++) {
		const int digit = hex_digit(p[i]);

		if (digit < 0)
			return UINT32_MAX;
		v = v << 4 | (uint32_t)digit;
	}
	return v;
}

static void put_utf8(struct buf *b, uint32_t c)
{
	unsigned char bytes[4];
	size_t n = 0;

	if (c < 0x80) {
		bytes[n++] = (unsigned char)c;
	} else if (c < 0x800) {
		bytes[n++] = (unsigned char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		bytes[n++] = (unsigned char)(0xe0 | c >> 12);
		bytes[n++] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
	} else {
		bytes[n++] = (unsigned char)(0xf0 | c >> 18);
		bytes[n++] = (unsigned char)(0x80 | (c >> 12 & 0x3f));
		bytes[n++] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
	}
	if (c >= 0x80)
		bytes[n++] = (unsigned char)(0x80 | (c & 0x3f));
	buf_put(b, bytes, n);
}

/* The escape behind the backslash at P. Returns where it ends, NULL if it is malformed. */
static const char *decode_escape(const char *p, const char *end, struct buf *b)
{
	static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
	const char *letter;
	uint32_t c, low;

	if (++p == end)
		return NULL;
	letter = *p ? strchr(letters, *p) : NULL;
	if (letter) {
		buf_put(b, &meanings[letter - letters], 1);
		return p + 1;
	}
	if (*p++ != 'u')
		return NULL;
	c = four_digits(p, end);
	if (c == UINT32_MAX || (c >= 0xdc00 && c < 0xe000))
		return NULL;
	p += 4;
	if (c >= 0xd800 && c < 0xdc00) {
		low = end - p >= 6 && p[0] == '\\' && p[1] == 'u' ? four_digits(p + 2, end) : UINT32_MAX;
		if (low < 0xdc00 || low > 0xdfff)
			return NULL;
		c = 0x10000 + ((c - 0xd800) << 10 | (low - 0xdc00));
		p += 6;
	}
	put_utf8(b, c);
	return p;
}

bool jsonread_decode(const struct jsonread_text *text, struct buf *b)
{
	const char *p = text->p, *end = p + text->len;

	while (p && p < end) {
		const char *backslash = memchr(p, '\\', (size_t)(end - p));

		buf_put(b, p, (size_t)((backslash ? backslash : end) - p));
		p = backslash ? decode_escape(backslash, end, b) : end;
	}
	return (!text->p || p) && !b->failed;
}
