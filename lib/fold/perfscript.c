/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fold/perfscript.h"

#include <string.h>
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

/* A table: each byte of each address is asked for. */
static inline bool is_word(char c)
{
	static const bool word[256] = {
		['0' ... '9'] = true, ['A' ... 'Z'] = true, ['_'] = true, ['a' ... 'z'] = true
	};

	return word[(unsigned char)c];
}

#ifdef __SSE2__
/* Which of 16 bytes are within LOW..HIGH. */
static inline __m128i within16(__m128i v, char low, char high)
{
	__m128i from_low = _mm_sub_epi8(v, _mm_set1_epi8(low));

	return _mm_cmpeq_epi8(_mm_min_epu8(from_low, _mm_set1_epi8((char)(high - low))), from_low);
}

static inline unsigned not_word16(const char *p)
{
	__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
	__m128i hit = _mm_or_si128(within16(v, '0', '9'), _mm_cmpeq_epi8(v, _mm_set1_epi8('_')));

	/* with that bit letters are lower case, and nothing else becomes a letter */
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

/* "0" alone is no number to the reference: it stands for absence. */
static bool is_absent(struct perfscript_str s)
{
	return !s.len || (s.len == 1 && s.p[0] == '0');
}

/* Digits, then slashes and perhaps more digits, then white space: the ids that follow a comm. */
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

/* The comm ends at the first run of white space after its second byte that ids follow. */
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

/* "...: period event:" at the end of the line, read backwards; the period may be missing. */
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

/* The last " (" in [FROM, END) that a ")" of the line follows; *CLOSE is the line's last ")". */
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
		/* no symbol: the blanks before the dso, or else the address's last digit, stand for it */
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

bool perfscript_wait(const char *line, size_t len, struct perfscript_wait *ret)
{
	static const char start[] = "# wait:", key[] = "count=";
	const char *p = line + sizeof(start) - 1, *end = line + len, *word;
	const size_t key_len = sizeof(key) - 1;

	*ret = (struct perfscript_wait){ 0 };
	if (len < sizeof(start) - 1 || memcmp(line, start, sizeof(start) - 1) != 0)
		return false;
	while (p < end) {
		while (p < end && perfscript_space(*p))
			p++;
		for (word = p; p < end && !perfscript_space(*p);)
			p++;
		if ((size_t)(p - word) <= key_len || memcmp(word, key, key_len) != 0)
			continue;
		for (const char *d = word + key_len; d < p; d++) {
			if (!is_digit(*d))
				return false;
		}
		if (!parse_u64(slice(word + key_len, p), &ret->count))
			return false;
		ret->has_count = true;
	}
	return true;
}

bool perfscript_is_side_band(const char *line, size_t len)
{
	return memmem(line, len, " PERF_RECORD_", 13) != NULL;
}
