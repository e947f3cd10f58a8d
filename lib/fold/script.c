/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fold/script.h"
#include "capture/format.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* White space in the C locale, newline included. */
static inline bool perfscript_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}
#ifdef __SSE2__
#include <emmintrin.h>
#endif

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f');
}

/* A table, because every byte of every address is tested. */
static inline bool is_word(char c)
{
	static const bool word[256] = {
		['0' ... '9'] = true, ['A' ... 'Z'] = true, ['_'] = true, ['a' ... 'z'] = true
	};

	return word[(unsigned char)c];
}

#ifdef __SSE2__
/* Which of 16 bytes are in LOW..HIGH? */
static inline __m128i within16(__m128i v, char low, char high)
{
	__m128i from_low = _mm_sub_epi8(v, _mm_set1_epi8(low));

	return _mm_cmpeq_epi8(_mm_min_epu8(from_low, _mm_set1_epi8((char)(high - low))), from_low);
}

static inline unsigned not_word16(const char *p)
{
	__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
	__m128i hit = _mm_or_si128(within16(v, '0', '9'), _mm_cmpeq_epi8(v, _mm_set1_epi8('_')));

	/* this bit makes letters lower case, and makes nothing else a letter */
	hit = _mm_or_si128(hit, within16(_mm_or_si128(v, _mm_set1_epi8(0x20)), 'a', 'z'));
	return (unsigned)_mm_movemask_epi8(hit) ^ 0xffff;
}
#endif

static inline const char *skip_word(const char *p, const char *end)
{
#ifdef __SSE2__
	for (; end - p >= 16; p += 16) {
		unsigned other = not_word16(p);

		if (other)
			return p + __builtin_ctz(other);
	}
#endif
	while (p < end && is_word(*p))
		p++;
	return p;
}

static struct perfscript_str slice(const char *from, const char *to)
{
	return (struct perfscript_str){ .p = from, .len = (size_t)(to - from) };
}

/* stackcollapse-perf.pl takes "0" for a missing number. */
static bool is_absent(struct perfscript_str s)
{
	return !s.len || (s.len == 1 && s.p[0] == '0');
}

/* Parse the ids that follow a comm: digits, then slashes and perhaps more digits, then white space. */
static bool parse_ids(const char *p, const char *end, struct perfscript_header *h)
{
	const char *a = p, *b, *c;

	while (p < end && is_digit(*p))
		p++;
	b = p;
	while (p < end && *p == '/')
		p++;
	c = p;
	while (p < end && is_digit(*p))
		p++;
	if (b == a || p == end || !perfscript_space(*p))
		return false;
	h->pid = slice(a, b);
	h->tid = slice(c, p);
	if (is_absent(h->tid)) {
		h->tid = h->pid;
		h->pid.len = 0;
	}
	return true;
}

/* The comm ends at the first white space after its second byte that ids follow. */
static bool parse_front(const char *line, const char *end, struct perfscript_header *h)
{
	const char *p = line + 2, *run;

	while (p < end) {
		while (p < end && !perfscript_space(*p))
			p++;
		for (run = p; p < end && perfscript_space(*p);)
			p++;
		if (p < end && is_digit(*p) && parse_ids(p, end, h)) {
			h->comm = slice(line, run);
			return true;
		}
	}
	return false;
}

static bool parse_u64(struct perfscript_str s, uint64_t *ret)
{
	uint64_t v = 0;

	for (size_t i = 0; i < s.len; i++) {
		if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
			__builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
			return false;
	}
	*ret = v;
	return true;
}

/* Parse "...: period event:" at the end of the line, backwards; the period may be missing. */
static void parse_back(const char *line, const char *end, struct perfscript_header *h)
{
	struct perfscript_str event, period;
	const char *p = end, *at;

	while (p > line && perfscript_space(p[-1]))
		p--;
	if (p == line || *--p != ':')
		return;
	for (at = p; p > line && !perfscript_space(p[-1]);)
		p--;
	event = slice(p, at);
	while (p > line && perfscript_space(p[-1]))
		p--;
	for (at = p; p > line && is_digit(p[-1]);)
		p--;
	period = slice(p, at);
	while (period.len && p > line && perfscript_space(p[-1]))
		p--;
	if (!event.len || p == line || p[-1] != ':')
		return;
	h->event = event;
	h->time_end = p - 1;
	if (!is_absent(period))
		h->overflow = !parse_u64(period, &h->period);
}

bool perfscript_header(const char *line, size_t len, struct perfscript_header *ret)
{
	if (len < 3 || perfscript_space(line[0]) || line[0] == '#')
		return false;
	*ret = (struct perfscript_header){ .period = 1 };
	if (!parse_front(line, line + len, ret))
		return false;
	parse_back(line, line + len, ret);
	return true;
}

bool perfscript_time(const struct perfscript_header *h, uint64_t *ns)
{
	const char *end = h->time_end, *p = end, *begin = h->tid.p + h->tid.len;
	struct perfscript_str fraction = { 0 };
	uint64_t s, n = 0;

	if (!end)
		return false;
	while (p > begin && is_digit(p[-1]))
		p--;
	if (p > begin && p[-1] == '.') {
		fraction = slice(p, end);
		end = --p;
		while (p > begin && is_digit(p[-1]))
			p--;
	}
	if (p == end || p == begin || !perfscript_space(p[-1]) || fraction.len > 9 ||
		!parse_u64(slice(p, end), &s) || !parse_u64(fraction, &n))
		return false;
	for (size_t digits = fraction.len; digits < 9; digits++)
		n *= 10;
	return !__builtin_mul_overflow(s, UINT64_C(1000000000), &s) && !__builtin_add_overflow(s, n, ns);
}

/* Find the last " (" in [FROM, END) that a ")" of the line follows; *CLOSE is the line's last ")". */
static const char *find_dso(const char *from, const char *end, const char **close)
{
	const char *p = end > from && end[-1] == ')' ? end - 1 : memrchr(from, ')', (size_t)(end - from));

	*close = p;
	if (!p)
		return NULL;
	while (p - from >= 2 && (p = memrchr(from + 1, '(', (size_t)(p - from - 1)))) {
		if (p[-1] == ' ')
			return p - 1;
	}
	return NULL;
}

bool perfscript_frame(const char *line, size_t len, struct perfscript_frame *ret)
{
	const char *p = line, *end = line + len, *word, *sym, *dso, *close;

	while (p < end && perfscript_space(*p))
		p++;
	word = p;
	p = skip_word(p, end);
	ret->pc = slice(word, p);
	if (p == word)
		return false;
	for (sym = p; sym < end && perfscript_space(*sym);)
		sym++;
	dso = find_dso(p, end, &close);
	if (!dso)
		return false;
	if (dso < sym) {
		/* no symbol: take the blanks before the dso instead, or else the address's last digit */
		sym = dso - 1;
		if (sym < p)
			ret->pc.len--;
		if (!ret->pc.len)
			return false;
	}
	if (sym == dso)
		return false;
	ret->sym = slice(sym, dso);
	ret->dso = slice(dso + 2, close);
	return true;
}

struct perfscript_str perfscript_split(struct perfscript_str *s, char c)
{
	const char *at = s->len ? memchr(s->p, c, s->len) : NULL;
	struct perfscript_str part = *s;

	if (at) {
		part.len = (size_t)(at - s->p);
		s->p = at + 1;
		s->len -= part.len + 1;
	} else {
		s->p += s->len;
		s->len = 0;
	}
	return part;
}

size_t perfscript_plain_len(struct perfscript_str sym)
{
	size_t n = sym.len;

	while (n && is_hex(sym.p[n - 1]))
		n--;
	if (n < sym.len && n >= 3 && memcmp(sym.p + n - 3, "+0x", 3) == 0)
		return n - 3;
	return sym.len;
}

bool perfscript_srcline(const char *line, size_t len)
{
	size_t end = len;

	if (len < 5 || line[0] != ' ' || line[1] != ' ')
		return false;
	while (end && is_digit(line[end - 1]))
		end--;
	if (end == len || end < 4 || line[end - 1] != ':')
		return false;
	for (size_t i = 2; i < end; i++)
		if (perfscript_space(line[i]))
			return false;
	return true;
}

/* False if VALUE is not a number; an empty one is missing. */
static bool wait_number(struct perfscript_str value, bool *has, uint64_t *ret)
{
	if (!value.len)
		return true;
	for (size_t i = 0; i < value.len; i++)
		if (!is_digit(value.p[i]))
			return false;
	*has = parse_u64(value, ret);
	return *has;
}

/* The words of a comment, with their lengths: they are compared with each word of each record. */
static const struct word {
	const char *key;
	size_t len;
	enum { WORD_NUMBER, WORD_TEXT, WORD_FLAG } kind;
	size_t at, has; /* in struct perfscript_wait; the latter of numbers */
} words[] = {
#define AT(m) offsetof(struct perfscript_wait, m)
#define WORD(key, kind, ...)                                                                                 \
	{                                                                                                    \
		key, sizeof(key) - 1, kind, __VA_ARGS__                                                      \
	}
	WORD("count", WORD_NUMBER, AT(count), AT(has_count)),
	WORD("total_ns", WORD_NUMBER, AT(total_ns), AT(has_total)),
	WORD("max_ns", WORD_NUMBER, AT(max_ns), AT(has_max)),
	WORD("runnable_ns", WORD_NUMBER, AT(runnable_ns), AT(has_runnable)),
	WORD("state", WORD_TEXT, AT(state), 0),
	WORD("kind", WORD_TEXT, AT(kind), 0),
	WORD("waker", WORD_TEXT, AT(waker), 0),
	WORD("open", WORD_FLAG, AT(open), 0),
	WORD("initial", WORD_FLAG, AT(initial), 0),
	WORD("preempted", WORD_FLAG, AT(preempted), 0),
#undef AT
#undef WORD
};

static bool wait_word(struct perfscript_str key, struct perfscript_str value, struct perfscript_wait *w)
{
	char *base = (char *)w;

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		void *at = base + words[i].at;

		if (key.len != words[i].len || memcmp(key.p, words[i].key, key.len) != 0)
			continue;
		if (words[i].kind == WORD_NUMBER)
			return wait_number(value, (bool *)(base + words[i].has), at);
		if (words[i].kind == WORD_TEXT)
			*(struct perfscript_str *)at = value;
		else
			*(bool *)at = value.len == 1 && value.p[0] == '1';
		return true;
	}
	return true;
}

size_t perfscript_details(const char *line, size_t len)
{
	static const char *const starts[] = { "# wait:", "# sample:" };

	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		size_t n = strlen(starts[i]);

		if (len >= n && memcmp(line, starts[i], n) == 0)
			return n;
	}
	return 0;
}

bool perfscript_wait(const char *line, size_t len, struct perfscript_wait *ret)
{
	const size_t start = perfscript_details(line, len);
	const char *p = line + start, *end = line + len, *word, *equal;

	*ret = (struct perfscript_wait){ 0 };
	if (!start)
		return false;
	while (p < end) {
		while (p < end && perfscript_space(*p))
			p++;
		for (word = p; p < end && !perfscript_space(*p);)
			p++;
		equal = memchr(word, '=', (size_t)(p - word));
		if (equal && !wait_word(slice(word, equal), slice(equal + 1, p), ret))
			return false;
	}
	return true;
}

bool perfscript_waker(const char *line, size_t len, struct perfscript_str *name)
{
	static const char start[] = "# waker: ";
	const size_t n = sizeof(start) - 1;

	if (len <= n || memcmp(line, start, n) != 0)
		return false;
	*name = (struct perfscript_str){ line + n, len - n };
	return true;
}

bool perfscript_is_side_band(const char *line, size_t len)
{
	return memmem(line, len, " PERF_RECORD_", 13) != NULL;
}

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define READ_SIZE ((size_t)256 << 10)

/* The stream offset of a file's first byte. */
struct mark {
	uint64_t at;
	size_t file;
};

struct paragraphs {
	const char *const *paths;
	size_t n_paths, next_path;
	int (*open)(void *ctx, const char *path, struct err *e); /* NULL: open(2) */
	void *open_ctx;
	int (*wait)(void *ctx, int fd, struct err *e); /* NULL: none */
	void *wait_ctx;
	int fd; /* -1: none open */
	bool fresh; /* nothing was read from FD yet */
	char *buf;
	size_t cap, len;
	uint64_t base; /* stream offset of buf[0] */
	size_t start; /* of the paragraph returned last */
	size_t stop; /* start of the next one */
	uint64_t lines; /* newlines in [start, stop) */
	bool in_line; /* STOP is inside a line whose rest is skipped */
	struct mark *marks;
	size_t n_marks, max_marks, mark_from;
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

void paragraphs_open_with(
	struct paragraphs *p, int (*open)(void *ctx, const char *path, struct err *e), void *ctx)
{
	p->open = open;
	p->open_ctx = ctx;
}

void paragraphs_wait_with(struct paragraphs *p, int (*wait)(void *ctx, int fd, struct err *e), void *ctx)
{
	p->wait = wait;
	p->wait_ctx = ctx;
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

	if (base_grow(&p->marks, &p->max_marks, p->n_marks + 1, sizeof(*p->marks)) != 0)
		return err_nomem(e, "the list of files");
	if (p->open && strcmp(path, "-") != 0) {
		p->fd = p->open(p->open_ctx, path, e);
		if (p->fd < 0)
			return p->fd;
	} else {
		p->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	}
	if (p->fd < 0) {
		code = -errno;
		err_sys(e, code, "cannot open '%s'", path);
		return code;
	}
	p->marks[p->n_marks++] = (struct mark){ .at = p->base + p->len, .file = p->next_path++ };
	p->fresh = true;
	return 0;
}

/*
 * End a file: its last line is a line even without a newline. The buffer keeps a byte free for that
 * newline.
 */
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

	if (n >= CAPTURE_BLOCK_MAGIC_LEN &&
		memcmp(bytes, CAPTURE_BLOCK_MAGIC, CAPTURE_BLOCK_MAGIC_LEN) == 0) {
		err_set(e, -EINVAL, "'%s' is a capture, not the text of symbolize", path);
		err_hint(e, "make the text of it first: symbolize '%s' | %s", path,
			program_invocation_short_name);
		return -EINVAL;
	}
	if (n < sizeof(magic) - 1 || memcmp(bytes, magic, sizeof(magic) - 1) != 0)
		return 0;
	err_set(e, -EINVAL, "'%s' is a perf.data file, not the text of perf script", path);
	err_hint(e, "make the text of it first: perf script -i '%s' | %s", path,
		program_invocation_short_name);
	return -EINVAL;
}

/* Append the data of one read. 1, 0 at the end of all files, or -errno. */
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
		if (p->wait && (code = p->wait(p->wait_ctx, p->fd, e)) != 0)
			return code;
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

/* Make room for a read behind the data still needed: move that to the front, then grow. */
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

/* Find in [FROM, FROM + N) the first newline after a newline; adds the newlines up to it to *LINES. */
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

/* scan_bytes() for 64 bytes at a time; it finds the place inside a block. */
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

/*
 * Advance (*PATH, *LINE) over the marks of files that begin up to buf[TO]; returns the first mark
 * after it.
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

/* Begin the next paragraph at `stop`. */
static void advance(struct paragraphs *p)
{
	p->line += p->lines;
	p->mark_from = walk_marks(p, p->stop, &p->path, &p->line);
	p->start = p->stop;
	p->lines = 0;
}

/* Append more bytes, keeping [start, len). 1, 0 at the end, or -errno. */
static int more(struct paragraphs *p, struct err *e)
{
	int code = make_room(p, e);

	return code ? code : fill(p, e);
}

/* Skip blank lines and the rest of a line that was too long. 1 at a paragraph's first byte. */
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

/* Return a piece of a long paragraph: its first whole lines, or the beginning of its only line. */
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
