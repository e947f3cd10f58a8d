/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fold/balanced.h"

#include <string.h>

enum token { TOKEN_OTHER, TOKEN_OPERATOR, TOKEN_ARROW, TOKEN_OPENED, TOKEN_CLOSED };

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
	       c == '$' || (unsigned char)c >= 0x80;
}

static bool begins(const char *p, size_t len, const char *word)
{
	size_t n = strlen(word);

	return len >= n && memcmp(p, word, n) == 0;
}

/* The length of "operator" and the symbol behind it, if that has brackets; 0 if it is not an operator. */
static size_t operator_len(const struct balanced *b)
{
	/* a longer symbol is before its own beginning */
	static const char *const symbols[] = { "()", "<=>", "<<=", "<<", "<=", "<", ">>=", ">>", ">=", ">",
		"->*", "->" };
	const size_t n = strlen("operator");
	const char *p = b->p + b->at;
	size_t left = b->len - b->at;

	if (!begins(p, left, "operator") || left == n || (b->at && is_word(p[-1])))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
		if (begins(p + n, left - n, symbols[i]))
			return n + strlen(symbols[i]);
	}
	return memchr("+-*/%^&|~!=, ", p[n], 13) ? n : 0;
}

/* The length of a character in quotes, such as the template argument '<'. */
static size_t quoted_len(const char *p, size_t left)
{
	if (left >= 4 && p[1] == '\\' && p[3] == '\'')
		return 4;
	return left >= 3 && p[1] != '\\' && p[2] == '\'' ? 3 : 0;
}

static unsigned int kind(char c)
{
	return c == '(' || c == ')' ? 0 : c == '[' || c == ']' ? 1 : c == '{' || c == '}' ? 2 : 3;
}

static enum token open_bracket(struct balanced *b)
{
	if (b->next_alone < b->n_alone && b->alone[b->next_alone] == b->at) {
		b->next_alone++;
		return TOKEN_OTHER;
	}
	if (b->depth == BALANCED_DEPTH) {
		b->too_deep = true;
		return TOKEN_OTHER;
	}
	b->kinds[kind(b->p[b->at])]++;
	b->open[b->depth++] = (uint32_t)b->at;
	return TOKEN_OPENED;
}

/*
 * Close the last open bracket of the kind of C, and with it those behind that one, which have no
 * partner. A ">" closes the last open bracket or none: it may be an operator of an expression.
 */
static enum token close_bracket(struct balanced *b, char c)
{
	unsigned int k = kind(c), last;

	if (!b->kinds[k] || (c == '>' && b->p[b->open[b->depth - 1]] != '<'))
		return TOKEN_OTHER;
	do {
		last = kind(b->p[b->open[--b->depth]]);
		b->kinds[last]--;
	} while (last != k);
	return TOKEN_CLOSED;
}

/* The token at B->at, behind which B->at then is. */
static enum token step(struct balanced *b)
{
	const char *p = b->p + b->at, c = *p;
	size_t n = 0;
	enum token t = TOKEN_OTHER;

	if (c == 'o' && (n = operator_len(b)) > 0) {
		b->at += n;
		return TOKEN_OPERATOR;
	}
	if (c == '-' && begins(p, b->len - b->at, "->")) {
		b->at += 2;
		return TOKEN_ARROW;
	}
	if (c == '\'' && (n = quoted_len(p, b->len - b->at)) > 0) {
		b->at += n;
		return TOKEN_OTHER;
	}
	if (c == '(' || c == '[' || c == '{' || c == '<')
		t = open_bracket(b);
	else if (c == ')' || c == ']' || c == '}' || c == '>')
		t = close_bracket(b, c);
	b->at++;
	return t;
}

/* Begin at P, having found the brackets that are never closed: the ones left open at the end. */
static void begin(struct balanced *b, const char *p, size_t len)
{
	b->p = p;
	b->len = len;
	b->at = 0;
	b->depth = b->n_alone = b->next_alone = 0;
	b->too_deep = false;
	b->open[0] = 0;
	memset(b->kinds, 0, sizeof(b->kinds));
	while (b->at < len && !b->too_deep)
		step(b);
	memcpy(b->alone, b->open, b->depth * sizeof(b->open[0]));
	b->n_alone = b->depth;
	memset(b->kinds, 0, sizeof(b->kinds));
	b->depth = 0;
	b->at = 0;
}

void balanced_chain(struct balanced *b, const char *p, size_t len)
{
	static const char arrow[] = "operator->";
	const size_t n = sizeof(arrow) - 1;

	while (len >= 2 && memcmp(p + len - 2, "->", 2) == 0 &&
		(len < n || memcmp(p + len - n, arrow, n) != 0))
		len -= 2;
	begin(b, p, len);
}

bool balanced_next(struct balanced *b, struct perfscript_str *function)
{
	size_t from = b->at, at;

	if (from >= b->len)
		return false;
	*function = (struct perfscript_str){ .p = b->p + from, .len = b->len - from };
	if (b->too_deep) {
		b->at = b->len;
		return true;
	}
	while (b->at < b->len) {
		at = b->at;
		if (step(b) != TOKEN_ARROW || b->depth || (at && b->p[at - 1] == ' '))
			continue;
		function->len = at - from;
		break;
	}
	return true;
}

/*
 * The length of the piece at P that may follow an argument list, and whether it stays; 0 if it is
 * something else.
 */
static size_t tail_piece(const char *p, size_t left, bool *stays)
{
	static const char *const dropped[] = { " const", " volatile", " restrict", " __restrict", " noexcept",
		" &&", " &" };
	const char *end = NULL;
	size_t n = 0;

	*stays = true;
	if (begins(p, left, " [clone "))
		end = memchr(p, ']', left);
	else if (begins(p, left, " (."))
		end = memchr(p, ')', left);
	if (end)
		return (size_t)(end + 1 - p);
	if (*p == '@') {
		while (n < left && (is_word(p[n]) || p[n] == '@' || p[n] == '.'))
			n++;
		return n;
	}
	*stays = false;
	for (size_t i = 0; i < ARRAY_LEN(dropped); i++) {
		n = strlen(dropped[i]);
		if (begins(p, left, dropped[i]))
			return n;
	}
	return 0;
}

static bool is_tail(const char *p, size_t len)
{
	bool stays;
	size_t n;

	for (size_t at = 0; at < len; at += n) {
		n = tail_piece(p + at, len - at, &stays);
		if (!n)
			return false;
	}
	return true;
}

/* A list in parentheses outside other brackets. */
struct list {
	size_t at, end;
	size_t row; /* how many lists are right before it: "(*)(int)" is a type */
};

/* Is a list behind what a name ends in? With IS_OPERATOR, the name may be "operator+" or "operator char*". */
static bool are_arguments(const char *p, const struct list *l, bool is_operator)
{
	char c = l->at ? p[l->at - 1] : ' ';

	if (is_operator)
		return l->row % 2 == 0 && c != ' ' && c != ':';
	return is_word(c) || c == '>' || c == ']' || c == '}' || c == '\'';
}

size_t balanced_cut(char *p, size_t len)
{
	struct list l = { 0 };
	struct balanced b;
	bool is_operator = false, arguments = false, stays;
	size_t n, to;

	begin(&b, p, len);
	if (b.too_deep)
		return len;
	while (b.at < len) {
		size_t top = b.open[0], end = l.end;
		enum token t = step(&b);

		if (b.depth)
			continue;
		is_operator |= t == TOKEN_OPERATOR;
		if (t != TOKEN_CLOSED || p[top] != '(' || (top && begins(p + top - 1, len - top + 1, " (.")))
			continue;
		l = (struct list){ .at = top, .end = b.at, .row = end && top == end ? l.row + 1 : 0 };
		arguments = are_arguments(p, &l, is_operator);
	}
	if (!arguments || !is_tail(p + l.end, len - l.end))
		return len;
	to = l.at;
	for (size_t at = l.end; at < len; at += n) {
		n = tail_piece(p + at, len - at, &stays);
		if (stays) {
			memmove(p + to, p + at, n);
			to += n;
		}
	}
	return to;
}
