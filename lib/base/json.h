/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * json - JSON into an out or a buf, value by value (RFC 8259).
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
 * A value inside an object has a KEY, one inside an array or on its own has
 * KEY NULL; commas come by themselves, brackets must be closed by the caller.
 * Strings may hold any bytes: what is no UTF-8 becomes U+FFFD. Numbers are
 * exact and may pass 2^53. Write errors are the out's or the buf's: see
 * out_flush() and struct buf.
 *
 * What begins and ends with a value and was written before may be put behind
 * json_begin() by the caller: only the commas between them are his.
 */
#ifndef STACKTOOLS_BASE_JSON_H
#define STACKTOOLS_BASE_JSON_H

#include "base/out.h"

struct json {
	struct out *o; /* the caller's, NULL = `b` */
	struct buf *b; /* likewise; a string in it ends with "..." where it is longer than buftext_escaped()
			  takes */
	bool spaced; /* a space behind ':' and ',', for people */
	bool another; /* something stands before the next value in its list */
	unsigned int line; /* json_line() was called: its indent, plus 1 */
};

void json_begin(struct json *j, const char *key, char bracket);
void json_end(struct json *j, char bracket);

/* What comes next, a value or a bracket, begins a line behind INDENT spaces. */
void json_line(struct json *j, unsigned int indent);

void json_str(struct json *j, const char *key, const char *s); /* S NULL: null */
void json_u64(struct json *j, const char *key, uint64_t v);
void json_bool(struct json *j, const char *key, bool v);
void json_null(struct json *j, const char *key);

/* Strings of hexadecimal digits: of a number, without and with 0x, and of N bytes. */
void json_hex(struct json *j, const char *key, uint64_t v);
void json_address(struct json *j, const char *key, uint64_t v);
void json_bytes(struct json *j, const char *key, const uint8_t *bytes, size_t n);

#endif
