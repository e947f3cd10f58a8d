/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jsonread - a strict reader of JSON in memory (RFC 8259), value by value, without a tree.
 *
 *	struct jsonread r = jsonread_init(line, len);
 *	struct jsonread_text key;
 *
 *	jsonread_begin(&r, '{');
 *	while (jsonread_member(&r, &key)) {
 *		if (jsonread_is(&key, "count"))
 *			count = jsonread_u64(&r);
 *		else
 *			jsonread_skip(&r);
 *	}
 *	jsonread_end(&r);
 *	if (r.bad)
 *		... r.bad says what is wrong, r.p is where
 *
 * The first thing that is wrong, or of another type than the one read, is kept in `bad`; from then on every
 * function returns 0 or false and moves no further. So check it once after a group of reads. Nothing is
 * copied: a text points into the input.
 */
#ifndef STACKTOOLS_BASE_JSONREAD_H
#define STACKTOOLS_BASE_JSONREAD_H

#include "base/bytes.h"

struct jsonread {
	const char *p, *end;
	const char *bad; /* what is wrong; NULL = nothing yet */
	bool another; /* the next member or element is not the first */
};

/* What is between the quotes. */
struct jsonread_text {
	const char *p; /* NULL = null */
	size_t len;
	bool escaped; /* has backslashes: use jsonread_decode() */
};

static inline struct jsonread jsonread_init(const char *p, size_t len)
{
	return (struct jsonread){ .p = p, .end = p + len };
}

void jsonread_begin(struct jsonread *r, char bracket); /* '{' or '[' */

/* The next member of an object, which must then be read or skipped; the next element of an array. False at
 * the end. */
bool jsonread_member(struct jsonread *r, struct jsonread_text *key);
bool jsonread_element(struct jsonread *r);

/* Nothing but white space may follow. */
void jsonread_end(struct jsonread *r);

uint64_t jsonread_u64(struct jsonread *r); /* a whole number */
bool jsonread_bool(struct jsonread *r);
bool jsonread_null(struct jsonread *r); /* true, and past it, if the next value is null */
struct jsonread_text jsonread_text(struct jsonread *r); /* a string or null, valid UTF-8 */
uint64_t jsonread_address(struct jsonread *r); /* "0x7f00" */
void jsonread_skip(struct jsonread *r); /* any value, at most JSONREAD_DEPTH deep */

#define JSONREAD_DEPTH 64

/* Whether TEXT is NAME, which needs no escapes. In the header so that the length of a literal is a constant.
 */
static inline bool jsonread_is(const struct jsonread_text *text, const char *name)
{
	return text->len == strlen(name) && memcmp(text->p, name, text->len) == 0;
}

/* Put TEXT without its escapes into B. False: an escape is malformed, or there is no memory. */
bool jsonread_decode(const struct jsonread_text *text, struct buf *b);

#endif
