/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fold/paragraph.h"
#include "capture/format.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define READ_SIZE ((size_t)256 << 10)

/* Where a file's first byte is in the stream. */
struct mark {
	uint64_t at;
	size_t file;
};

struct paragraphs {
	const char *const *paths;
	size_t n_paths, next_path;
	int fd; /* -1: none open */
	bool fresh; /* nothing was read from fd yet */
	char *buf;
	size_t cap, len;
	uint64_t base; /* stream offset of buf[0] */
	size_t start; /* of the paragraph returned last */
	size_t stop; /* where the next one begins */
	uint64_t lines; /* newlines in [start, stop) */
	bool in_line; /* stop is inside a line whose rest is left out */
	struct mark *marks;
	size_t n_marks, cap_marks, mark_from;
	const char *path; /* of buf[start] */
	uint64_t line;
};

static const char *const only_stdin[] = { "-" };

int paragraphs_open(const char *const *paths, size_t n, struct paragraphs **ret, struct err *e)
{
	struct paragraphs *p = calloc(1, sizeof(*p));

	if (!p)
		return err_nomem(e, "the input");
	p->paths = n ? paths : only_stdin;
	p->n_paths = n ? n : 1;
	p->fd = -1;
	p->path = p->paths[0];
	p->line = 1;
	*ret = p;
	return 0;
}

void paragraphs_close(struct paragraphs *p)
{
	if (!p)
		return;
	if (p->fd > STDIN_FILENO)
		close(p->fd);
	free(p->buf);
	free(p->marks);
	free(p);
}

static int open_next(struct paragraphs *p, struct err *e)
{
	const char *path = p->paths[p->next_path];
	int code;

	if (base_grow(&p->marks, &p->cap_marks, p->n_marks + 1, sizeof(*p->marks)) != 0)
		return err_nomem(e, "the list of files");
	p->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (p->fd < 0) {
		code = -errno;
		err_sys(e, code, "cannot open '%s'", path);
		return code;
	}
	p->marks[p->n_marks++] = (struct mark){ .at = p->base + p->len, .file = p->next_path++ };
	p->fresh = true;
	return 0;
}

/* A file ended: its last line is one, newline or not. The buffer keeps a byte free for it. */
static void end_file(struct paragraphs *p)
{
	bool open_line = p->len ? p->buf[p->len - 1] != '\n' : p->in_line;

	if (!p->fresh && open_line)
		p->buf[p->len++] = '\n';
	if (p->fd > STDIN_FILENO)
		close(p->fd);
	p->fd = -1;
}

static int refuse_binary(const struct paragraphs *p, const char *path, size_t n, struct err *e)
{
	static const char magic[] = "PERFILE2";
	const char *bytes = p->buf + p->len;

	if (n >= CAPBLOCK_MAGIC_LEN && memcmp(bytes, CAPBLOCK_MAGIC, CAPBLOCK_MAGIC_LEN) == 0) {
		err_set(e, -EINVAL, "'%s' is a capture, not the text of symbolize", path);
		return err_hint(e, "make the text of it first: symbolize '%s' | fold", path);
	}
	if (n < sizeof(magic) - 1 || memcmp(bytes, magic, sizeof(magic) - 1) != 0)
		return 0;
	err_set(e, -EINVAL, "'%s' is a perf.data file, not the text of perf script", path);
	return err_hint(e, "make the text of it first: perf script -i '%s' | fold", path);
}

/* Append what one read gives. 1, 0 at the end of all files, or -errno. */
static int fill(struct paragraphs *p, struct err *e)
{
	for (;;) {
		const char *path;
		ssize_t n;
		int code;

		if (p->fd < 0 && p->next_path == p->n_paths)
			return 0;
		if (p->fd < 0 && (code = open_next(p, e)) != 0)
			return code;
		path = p->paths[p->next_path - 1];
		n = read(p->fd, p->buf + p->len, p->cap - p->len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			code = -errno;
			return err_sys(e, code, "cannot read '%s'", path);
		}
		if (n == 0) {
			size_t before = p->len;

			end_file(p);
			if (p->len > before)
				return 1;
			continue;
		}
		if (p->fresh && (code = refuse_binary(p, path, (size_t)n, e)) != 0)
			return code;
		p->fresh = false;
		p->len += (size_t)n;
		return 1;
	}
}

/* Make room for a read behind what is still needed: move it to the front, then grow. */
static int make_room(struct paragraphs *p, struct err *e)
{
	if (p->start) {
		memmove(p->buf, p->buf + p->start, p->len - p->start);
		p->base += p->start;
		p->len -= p->start;
		p->stop -= p->start;
		p->start = 0;
	}
	if (p->cap - p->len > READ_SIZE / 2)
		return 0;
	if (base_grow(&p->buf, &p->cap, p->len + READ_SIZE, 1) != 0)
		return err_nomem(e, "a long record");
	return 0;
}

/* In [FROM, FROM + N) the first newline that follows a newline; adds the newlines up to it to *LINES. */
static const char *scan_bytes(const char *from, size_t n, uint64_t *lines)
{
	for (const char *p = from; n--; p++) {
		if (*p != '\n')
			continue;
		++*lines;
		if (p[-1] == '\n')
			return p;
	}
	return NULL;
}

#ifdef __SSE2__
static inline __m128i newlines16(const char *p)
{
	return _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)p), _mm_set1_epi8('\n'));
}

/* The same 64 bytes at a time; what finds the place inside a block is scan_bytes(). */
static const char *scan_blank(const char *from, size_t n, uint64_t *lines)
{
	uint64_t carry = from[-1] == '\n', found = 0;
	__m128i sum = _mm_setzero_si128();
	const char *p = from;

	for (; n >= 64; n -= 64, p += 64) {
		__m128i a = newlines16(p), b = newlines16(p + 16), c = newlines16(p + 32),
			d = newlines16(p + 48);
		uint64_t lo = (uint32_t)_mm_movemask_epi8(a) | (uint32_t)_mm_movemask_epi8(b) << 16;
		uint64_t hi = (uint32_t)_mm_movemask_epi8(c) | (uint32_t)_mm_movemask_epi8(d) << 16;
		uint64_t mask = lo | hi << 32;
		__m128i some = _mm_add_epi8(_mm_add_epi8(a, b), _mm_add_epi8(c, d));

		found = mask & (mask << 1 | carry);
		if (found)
			break;
		carry = mask >> 63;
		/* each newline counts as -1 */
		sum = _mm_add_epi64(
			sum, _mm_sad_epu8(_mm_sub_epi8(_mm_setzero_si128(), some), _mm_setzero_si128()));
	}
	*lines +=
		(uint64_t)_mm_cvtsi128_si64(sum) + (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(sum, sum));
	return scan_bytes(p, n, lines);
}
#else
static const char *scan_blank(const char *from, size_t n, uint64_t *lines)
{
	return scan_bytes(from, n, lines);
}
#endif

static uint64_t count_lines(const char *from, const char *to)
{
	uint64_t n = 0;

	while (from < to && (from = memchr(from, '\n', (size_t)(to - from)))) {
		from++;
		n++;
	}
	return n;
}

/* Walk the position (*PATH, *LINE) from buf[FROM] to buf[TO], LINES newlines further, over the files' marks.
 */
static size_t walk_marks(const struct paragraphs *p, size_t to, const char **path, uint64_t *line)
{
	size_t m = p->mark_from;

	for (; m < p->n_marks && p->marks[m].at <= p->base + to; m++) {
		*path = p->paths[p->marks[m].file];
		*line = 1 + count_lines(p->buf + (p->marks[m].at - p->base), p->buf + to);
	}
	return m;
}

void paragraphs_where(const struct paragraphs *p, const char *at, const char **path, uint64_t *line)
{
	*path = p->path;
	*line = p->line + count_lines(p->buf + p->start, at);
	walk_marks(p, (size_t)(at - p->buf), path, line);
}

/* The next paragraph begins at `stop`. */
static void advance(struct paragraphs *p)
{
	p->line += p->lines;
	p->mark_from = walk_marks(p, p->stop, &p->path, &p->line);
	p->start = p->stop;
	p->lines = 0;
}

/* More bytes behind [start, len); 1, 0 at the end, or -errno. */
static int more(struct paragraphs *p, struct err *e)
{
	int code = make_room(p, e);

	return code ? code : fill(p, e);
}

/* Skip the rest of a line that was too long, and blank lines. 1 at a paragraph's first byte. */
static int find_start(struct paragraphs *p, struct err *e)
{
	for (;;) {
		int code;

		if (p->in_line) {
			char *nl = memchr(p->buf + p->stop, '\n', p->len - p->stop);

			p->stop = nl ? (size_t)(nl - p->buf) + 1 : p->len;
			p->lines += nl != NULL;
			p->in_line = !nl;
		}
		for (; !p->in_line && p->stop < p->len && p->buf[p->stop] == '\n'; p->stop++)
			p->lines++;
		if (p->stop < p->len) {
			advance(p);
			return 1;
		}
		advance(p);
		code = more(p, e);
		if (code <= 0)
			return code;
	}
}

static int give(struct paragraphs *p, size_t len, size_t skip, enum paragraph_end end, struct paragraph *ret)
{
	*ret = (struct paragraph){ .text = p->buf + p->start, .len = len, .end = end };
	p->stop = p->start + len + skip;
	return 1;
}

/* Too long: the whole lines of its beginning, or the beginning of its only line. */
static int give_piece(struct paragraphs *p, struct paragraph *ret)
{
	char *text = p->buf + p->start, *nl = memrchr(text, '\n', PARAGRAPH_MAX);

	if (nl) {
		p->lines = count_lines(text, nl + 1);
		return give(p, (size_t)(nl - text) + 1, 0, PARAGRAPH_CUT, ret);
	}
	p->lines = 0;
	p->in_line = true;
	text[PARAGRAPH_MAX - 1] = '\n';
	return give(p, PARAGRAPH_MAX, 0, PARAGRAPH_CUT_LINE, ret);
}

int paragraphs_next(struct paragraphs *p, struct paragraph *ret, struct err *e)
{
	size_t done;
	int code;

	code = find_start(p, e);
	if (code <= 0)
		return code;
	for (done = 1;;) {
		const char *from = p->buf + p->start + done;
		const char *blank = scan_blank(from, p->len - p->start - done, &p->lines);

		done = (blank ? (size_t)(blank - p->buf) : p->len) - p->start;
		if (done > PARAGRAPH_MAX)
			return give_piece(p, ret);
		if (blank)
			return give(p, done, 1, PARAGRAPH_BLANK, ret);
		code = more(p, e);
		if (code < 0)
			return code;
		if (code == 0)
			return give(p, p->len - p->start, 0, PARAGRAPH_EOF, ret);
	}
}
