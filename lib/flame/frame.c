/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "flame/frame.h"

#include <string.h>

#define MARK_LEN 4

static bool is(const char *name, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(name, word, len) == 0;
}

static char mark_of(const char *name, size_t len)
{
	const char *mark = name + len - MARK_LEN;

	return len > MARK_LEN && mark[0] == '_' && mark[1] == '[' && mark[3] == ']' ? mark[2] : '\0';
}

enum frame_class frame_class(const char *name, size_t len)
{
	switch (mark_of(name, len)) {
	case 'k':
		return FRAME_KERNEL;
	case 'j':
		return FRAME_SCRIPT;
	case 'i':
		return FRAME_INLINED;
	}
	if (is(name, len, "--"))
		return FRAME_WAKER;
	if (is(name, len, "-"))
		return FRAME_MARK;
	if (is(name, len, "[runnable]") || is(name, len, "[preempted]"))
		return FRAME_STATE;
	if (is(name, len, "[blocked]"))
		return FRAME_BLOCKED;
	if (is(name, len, "[on-CPU]"))
		return FRAME_ON_CPU;
	return FRAME_USER;
}

bool frame_is_marked(const char *name, size_t len)
{
	char mark = mark_of(name, len);

	return mark == 'k' || mark == 'j' || mark == 'i';
}

/* FNV-1a (Fowler, Noll, Vo), 32 bits, folded: independent of byte order and version. */
unsigned int frame_tone(const char *name, size_t len)
{
	uint32_t h = 2166136261U;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619U;
	return (h ^ h >> 5 ^ h >> 10 ^ h >> 20) % FRAME_TONES;
}

/*
 * The length of a character that is shown as it is, or 0. On top of what
 * text_utf8_len() refuses: the marks of direction (U+061C, U+200E, U+200F), the
 * byte order mark, and U+FFFE and U+FFFF, which XML does not allow.
 */
static size_t shown(const char *p, size_t len)
{
	static const char hidden[][4] = { "\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xef\xbb\xbf",
		"\xef\xbf\xbe", "\xef\xbf\xbf" };
	size_t n = text_utf8_len(p, len);

	for (size_t i = 0; n > 1 && i < ARRAY_LEN(hidden); i++) {
		if (memcmp(p, hidden[i], n) == 0)
			return 0;
	}
	return n;
}

static const char *json_escape(char c)
{
	switch (c) {
	case '"':
		return "\\\"";
	case '\\':
		return "\\\\";
	case '<':
		return "\\u003c";
	case '>':
		return "\\u003e";
	case '&':
		return "\\u0026";
	}
	return NULL;
}

static const char *xml_escape(char c)
{
	switch (c) {
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '&':
		return "&amp;";
	}
	return NULL;
}

static void put(struct out *o, const char *name, size_t len, const char *(*escape)(char), const char *hex)
{
	static const char digits[] = "0123456789abcdef";
	size_t n;

	for (size_t i = 0; i < len; i += n) {
		const char *text = escape(name[i]);

		n = shown(name + i, len - i);
		if (text) {
			out_str(o, text);
		} else if (n) {
			out_put(o, name + i, n);
		} else {
			uint8_t byte = (uint8_t)name[i];

			out_str(o, hex);
			out_char(o, digits[byte >> 4]);
			out_char(o, digits[byte & 15]);
			n = 1;
		}
	}
}

void frame_put_json(struct out *o, const char *name, size_t len)
{
	put(o, name, len, json_escape, "\\\\x");
}

void frame_put_xml(struct out *o, const char *name, size_t len)
{
	put(o, name, len, xml_escape, "\\x");
}

size_t frame_fit(const char *name, size_t len, size_t columns)
{
	size_t i = 0, n, used = 0;

	for (; i < len; i += n) {
		n = shown(name + i, len - i);
		used += n ? 1 : sizeof("\\xNN") - 1;
		if (used > columns)
			break;
		n = n ? n : 1;
	}
	return i;
}
