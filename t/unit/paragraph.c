/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random text, split over several files, compared with a simple reader of the whole text. */
#include "base/tap.h"
#include "fold/script.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define FILES 4
#define TEXT 3000

static struct tap t;
static char names[FILES][64];
static const char *paths[FILES];

static unsigned int state = 1;

static unsigned int next_random(unsigned int below)
{
	state = state * 1103515245u + 12345u;
	return (state >> 16) % below;
}

/* Write the LEN bytes at TEXT to file I. */
static void put_file(size_t i, const char *text, size_t len)
{
	int fd = open(names[i], O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len || close(fd) != 0)
		exit(99);
}

static size_t make_text(char *text, unsigned int newlines)
{
	size_t len = next_random(TEXT);

	for (size_t i = 0; i < len; i++)
		text[i] = next_random(newlines) ? (char)('a' + next_random(26)) : '\n';
	return len;
}

/* The simple reader: skip newlines, then take everything up to a blank line. Returns the length. */
static size_t expect(const char **p, const char *end, bool *blank)
{
	const char *from, *q;

	while (*p < end && **p == '\n')
		++*p;
	from = *p;
	for (q = from; q < end && !(q[0] == '\n' && (q > from && q[-1] == '\n')); q++)
		;
	*blank = q < end;
	return (size_t)(q - from);
}

static bool where_is_right(struct paragraphs *in, const struct paragraph *para, const char *file_start[],
	size_t n, const char *whole_at)
{
	size_t off = next_random((unsigned int)para->len), f = n;
	const char *path;
	uint64_t line, want = 1;

	whole_at += off;
	while (--f > 0 && (file_start[f] > whole_at || file_start[f] == file_start[f + 1]))
		;
	for (const char *p = file_start[f]; p < whole_at; p++)
		want += *p == '\n';
	paragraphs_where(in, para->text + off, &path, &line);
	return line == want && strcmp(path, paths[f]) == 0;
}

static bool one_round(unsigned int newlines)
{
	static char text[TEXT + 1], whole[TEXT + FILES + 1];
	const char *starts[FILES + 1], *p = whole, *end;
	struct paragraphs *in = NULL;
	struct paragraph para;
	size_t len = make_text(text, newlines), done = 0, n = 0;
	bool ok = true, blank;

	for (size_t i = 0; i < FILES; i++) {
		size_t part = i + 1 < FILES ? next_random((unsigned int)(len - done + 1)) : len - done;

		put_file(i, text + done, part);
		starts[i] = whole + n;
		memcpy(whole + n, text + done, part);
		n += part;
		done += part;
		if (part && whole[n - 1] != '\n')
			whole[n++] = '\n';
	}
	end = starts[FILES] = whole + n;
	if (paragraphs_open(paths, FILES, &in, NULL) != 0)
		return false;
	while (ok && paragraphs_next(in, &para, NULL) == 1) {
		size_t want = expect(&p, end, &blank);

		ok = para.len == want && memcmp(para.text, p, want) == 0 &&
		     para.end == (blank ? PARAGRAPH_BLANK : PARAGRAPH_EOF) &&
		     where_is_right(in, &para, starts, FILES, p);
		p += want;
	}
	ok = ok && expect(&p, end, &blank) == 0;
	paragraphs_close(in);
	return ok;
}

static void limits(void)
{
	const size_t n = PARAGRAPH_MAX + PARAGRAPH_MAX / 2;
	struct paragraphs *in = NULL;
	struct paragraph para;
	const char *path;
	uint64_t line;
	char *text = malloc(n + 16);

	if (!text)
		exit(99);
	memset(text, 'x', n);
	memcpy(text + n, "\nb\n\nc\n", 6);
	put_file(0, text, n + 6);
	paragraphs_open(paths, 1, &in, NULL);
	tap_ok(&t,
		paragraphs_next(in, &para, NULL) == 1 && para.end == PARAGRAPH_CUT_LINE &&
			para.len == PARAGRAPH_MAX && para.text[para.len - 1] == '\n',
		"of a line longer than the limit the start is returned");
	tap_ok(&t,
		paragraphs_next(in, &para, NULL) == 1 && para.len == 2 && para.text[0] == 'b' &&
			para.end == PARAGRAPH_BLANK,
		"the lines after a line that was cut are the rest of the paragraph");
	paragraphs_where(in, para.text, &path, &line);
	tap_eq_u64(&t, line, 2, "the line number after a line that was cut is correct");
	paragraphs_close(in);
	for (size_t i = 0; i < n; i += 100)
		text[i + 99 < n ? i + 99 : n - 1] = '\n';
	put_file(0, text, n + 6);
	paragraphs_open(paths, 1, &in, NULL);
	tap_ok(&t,
		paragraphs_next(in, &para, NULL) == 1 && para.end == PARAGRAPH_CUT &&
			para.len <= PARAGRAPH_MAX && para.text[para.len - 1] == '\n',
		"a paragraph longer than the limit is returned in pieces of whole lines");
	line = para.len / 100;
	tap_ok(&t, paragraphs_next(in, &para, NULL) == 1 && para.text[0] == 'x',
		"the next piece continues a paragraph that was cut");
	{
		uint64_t second;

		paragraphs_where(in, para.text, &path, &second);
		tap_eq_u64(&t, second, line + 1, "the line number in the next piece is correct");
	}
	paragraphs_close(in);
	free(text);
}

int main(void)
{
	char dir[] = "/tmp/unit-paragraph.XXXXXX";
	struct err e = { 0 };
	struct paragraphs *in = NULL;
	struct paragraph para;
	const char *none = "/nonexistent/file";
	unsigned int bad = 0;

	if (!mkdtemp(dir))
		return 99;
	for (size_t i = 0; i < FILES; i++) {
		snprintf(names[i], sizeof(names[i]), "%s/%zu", dir, i);
		paths[i] = names[i];
	}
	for (unsigned int i = 0; i < 600; i++)
		bad += !one_round(2 + i % 90);
	tap_eq_u64(&t, bad, 0, "600 random texts in four files are read like by a simple reader");
	limits();
	paragraphs_open(&none, 1, &in, NULL);
	tap_ok(&t, paragraphs_next(in, &para, &e) == -2 && strstr(e.msg, none), "a missing file is reported");
	paragraphs_close(in);
	paragraphs_close(NULL);
	for (size_t i = 0; i < FILES; i++)
		unlink(names[i]);
	rmdir(dir);
	return tap_done(&t);
}
