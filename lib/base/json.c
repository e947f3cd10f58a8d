/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/json.h"
#include "base/out.h"

static void put_string(struct json *j, const char *s)
{
	out_char(j->o, '"');
	outtext_put(j->o, s, TEXT_JSON);
	out_char(j->o, '"');
}

static bool put_line(struct json *j)
{
	if (!j->line)
		return false;
	out_char(j->o, '\n');
	while (--j->line)
		out_char(j->o, ' ');
	return true;
}

/* What stands before a value. */
static void put_key(struct json *j, const char *key)
{
	if (j->another)
		out_char(j->o, ',');
	if (!put_line(j) && j->another && j->spaced)
		out_char(j->o, ' ');
	j->another = true;
	if (!key)
		return;
	put_string(j, key);
	out_str(j->o, j->spaced ? ": " : ":");
}

void json_begin(struct json *j, const char *key, char bracket)
{
	put_key(j, key);
	out_char(j->o, bracket);
	j->another = false;
}

void json_end(struct json *j, char bracket)
{
	put_line(j);
	out_char(j->o, bracket);
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
	out_u64(j->o, v);
}

void json_bool(struct json *j, const char *key, bool v)
{
	put_key(j, key);
	out_str(j->o, v ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
	put_key(j, key);
	out_str(j->o, "null");
}

void json_hex(struct json *j, const char *key, uint64_t v)
{
	put_key(j, key);
	out_char(j->o, '"');
	out_hex(j->o, v, 1);
	out_char(j->o, '"');
}

void json_bytes(struct json *j, const char *key, const uint8_t *bytes, size_t n)
{
	char pair[3];

	put_key(j, key);
	out_char(j->o, '"');
	for (size_t i = 0; i < n; i++)
		out_put(j->o, text_hex(pair, bytes + i, 1), 2);
	out_char(j->o, '"');
}
