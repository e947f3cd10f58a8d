/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * json - a JSON writer into an out or a buf, value by value (RFC 8259).
 *
 *	struct json j = { .o = o };
 *
 *	json_begin(&j, NULL, '{');
 *	json_str(&j, "name", "x");
 *	json_begin(&j, "list", '[');
 *	json_u64(&j, NULL, 1);
 *	json_end(&j, ']');
 *	json_end(&j, '}');
 *
 * A value inside an object has a KEY; a value inside an array or on its own has
 * KEY NULL. Commas are added automatically; the caller must close the brackets.
 * Strings may hold any bytes: invalid UTF-8 becomes U+FFFD. Numbers are exact
 * and may exceed 2^53. The out or the buf keeps write errors: see out_flush()
 * and struct buf.
 *
 * After json_begin() the caller may also put prepared JSON text that begins and
 * ends with a value; the caller then writes the commas between such texts.
 */
#ifndef STACKTOOLS_BASE_JSON_H
#define STACKTOOLS_BASE_JSON_H

#include "base/out.h"

struct json {
	struct out *o; /* owned by the caller; NULL = `b` */
	struct buf *b; /* owned by the caller; buftext_escaped() cuts a long string and ends it with "..." */
	bool spaced; /* a space after ':' and ',', for human readers */
	bool another; /* the next value is not the first of its list */
	unsigned int line; /* the indent of a pending json_line(), plus 1; 0 = none pending */
};

void json_begin(struct json *j, const char *key, char bracket);
void json_end(struct json *j, char bracket);

/* The next value or closing bracket begins a new line, indented by INDENT spaces. */
void json_line(struct json *j, unsigned int indent);

void json_str(struct json *j, const char *key, const char *s); /* S NULL: null */
void json_u64(struct json *j, const char *key, uint64_t v);
void json_number(struct json *j, const char *key, const char *digits, size_t len); /* of any size */
void json_bool(struct json *j, const char *key, bool v);
void json_null(struct json *j, const char *key);

/* Strings of hexadecimal digits: a number without 0x, a number with 0x, N bytes. */
void json_hex(struct json *j, const char *key, uint64_t v);
void json_address(struct json *j, const char *key, uint64_t v);
void json_bytes(struct json *j, const char *key, const uint8_t *bytes, size_t n);

#endif
