/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/json.h"
#include "base/out.h"

#define SHORT_KEY 40

static void put(struct json *j, const char *p, size_t n)
{
	if (j->o)
		out_put(j->o, p, n);
	else
		buf_put(j->b, p, n);
}

static void put_string(struct json *j, const char *s)
{
	put(j, "\"", 1);
	if (j->o)
		outtext_put(j->o, s, TEXT_JSON);
	else
		buftext_escaped(j->b, s, TEXT_JSON);
	put(j, "\"", 1);
}

static bool put_line(struct json *j)
{
	if (!j->line)
		return false;
	put(j, "\n", 1);
	while (--j->line)
		put(j, " ", 1);
	return true;
}

/* Put the comma, the line break and the key that precede a value. */
static void put_key(struct json *j, const char *key)
{
	size_t len = key ? strlen(key) : 0;
	char text[SHORT_KEY + 8], *p = text;

	if (j->another)
		*p++ = ',';
	if (j->line) {
		put(j, text, (size_t)(p - text));
		put_line(j);
		p = text;
	} else if (j->another && j->spaced) {
		*p++ = ' ';
	}
	j->another = true;
	/* most keys need no escaping and are put in one piece */
	if (len && len <= SHORT_KEY && buftext_is_plain(key, len)) {
		*p++ = '"';
		p = mempcpy(p, key, len);
		*p++ = '"';
	} else if (key) {
		put(j, text, (size_t)(p - text));
		put_string(j, key);
		p = text;
	}
	if (key)
		*p++ = ':';
	if (key && j->spaced)
		*p++ = ' ';
	put(j, text, (size_t)(p - text));
}

void json_begin(struct json *j, const char *key, char bracket)
{
	put_key(j, key);
	put(j, &bracket, 1);
	j->another = false;
}

void json_end(struct json *j, char bracket)
{
	put_line(j);
	put(j, &bracket, 1);
	j->another = true;
}

void json_line(struct json *j, unsigned int indent)
{
	j->line = indent + 1;
}

void json_str(struct json *j, const char *key, const char *s)
{
	if (!s) {
		json_null(j, key);
		return;
	}
	put_key(j, key);
	put_string(j, s);
}

void json_u64(struct json *j, const char *key, uint64_t v)
{
	put_key(j, key);
	if (j->o)
		out_u64(j->o, v);
	else
		buftext_dec(j->b, v, 1);
}

void json_number(struct json *j, const char *key, const char *digits, size_t len)
{
	put_key(j, key);
	put(j, digits, len);
}

void json_bool(struct json *j, const char *key, bool v)
{
	put_key(j, key);
	put(j, v ? "true" : "false", v ? 4 : 5);
}

void json_null(struct json *j, const char *key)
{
	put_key(j, key);
	put(j, "null", 4);
}

static void put_hex(struct json *j, const char *key, const char *before, uint64_t v)
{
	char text[24] = "\"", *p = stpcpy(text + 1, before);

	p = buftext_hex_at(p, v, 1);
	*p++ = '"';
	put_key(j, key);
	put(j, text, (size_t)(p - text));
}

void json_hex(struct json *j, const char *key, uint64_t v)
{
	put_hex(j, key, "", v);
}

void json_address(struct json *j, const char *key, uint64_t v)
{
	put_hex(j, key, "0x", v);
}

void json_bytes(struct json *j, const char *key, const uint8_t *bytes, size_t n)
{
	char pair[3];

	put_key(j, key);
	put(j, "\"", 1);
	for (size_t i = 0; i < n; i++)
		put(j, text_hex(pair, bytes + i, 1), 2);
	put(j, "\"", 1);
}
