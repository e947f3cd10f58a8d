/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/ksymtext.h"
#include "base/hex.h"
#include "symbols/ksymname.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define WINDOW (128u << 10)
#define HUGE_PAGE (2u << 20)
#define SLACK 96 /* chunks are read across the end of the window, and written across that of a name */

struct reader {
	struct ksymtext *t;
	const char *file;
	char *window;
	size_t len; /* bytes in the window */
	size_t line; /* lines begun */
	uint32_t module; /* the last one */
	uint32_t pfx, pfx_len; /* of the last name, had it been "__pfx_x": where x is, and its length */
};

/* "<hex> " at P, of 16 digits as every 64-bit kernel prints it, or fewer: what follows, or NULL. */
static inline const char *parse_address(const char *p, uint64_t *ret)
{
	int digits = 0;

	if (hexword_16(p, ret) && p[16] == ' ')
		return p + 17;
	for (*ret = 0; (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f'); p++, digits++)
		*ret = *ret << 4 | (uint64_t)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
	return digits && digits <= 16 && *p == ' ' ? p + 1 : NULL;
}

#define CHUNK 64u

#ifdef __SSE2__
/* Copy 16 bytes. Returns a bit for each that is a space or below; ors into *HIGH those from DEL on. */
static inline uint64_t copy_16(char *dst, const char *p, __m128i *high)
{
	__m128i v = _mm_loadu_si128((const __m128i_u *)p), space = _mm_set1_epi8(' ');

	_mm_storeu_si128((__m128i_u *)dst, v);
	*high = _mm_or_si128(*high, _mm_or_si128(v, _mm_add_epi8(v, _mm_set1_epi8(1))));
	return (unsigned int)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(v, space), v));
}

/* A bit for each of 16 bytes that is the same. */
static inline uint64_t same_16(const char *a, const char *b)
{
	return (unsigned int)_mm_movemask_epi8(
		_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i_u *)a), _mm_loadu_si128((const __m128i_u *)b)));
}
#endif

/*
 * Copy CHUNK bytes. Returns a bit for each byte that is a space or below, and
 * ors into *ODD those that no symbol has, DEL and what is not ASCII.
 */
static inline uint64_t copy_chunk(char *dst, const char *p, uint64_t *odd)
{
#ifdef __SSE2__
	__m128i high = _mm_setzero_si128();
	uint64_t low = copy_16(dst, p, &high);

	low |= copy_16(dst + 16, p + 16, &high) << 16;
	low |= copy_16(dst + 32, p + 32, &high) << 32;
	low |= copy_16(dst + 48, p + 48, &high) << 48;
	*odd |= (unsigned int)_mm_movemask_epi8(high);
#else
	uint64_t low = 0;

	memcpy(dst, p, CHUNK);
	for (unsigned int i = 0; i < CHUNK; i++) {
		unsigned char c = (unsigned char)p[i];

		low |= (uint64_t)(c <= ' ') << i;
		*odd |= c >= 0x7f;
	}
#endif
	return low;
}

/* Whether LEN bytes are the same, 1 to CHUNK. A chunk is read from A and B. */
static inline bool same_chunk(const char *a, const char *b, size_t len)
{
#ifdef __SSE2__
	uint64_t same = same_16(a, b) | same_16(a + 16, b + 16) << 16 | same_16(a + 32, b + 32) << 32 |
			same_16(a + 48, b + 48) << 48;

	return !(~same << (CHUNK - len));
#else
	return memcmp(a, b, len) == 0;
#endif
}

/*
 * Copy the word at P to DST up to its end, a newline, tab, space or NUL, which
 * is surely there. Both are read and written up to a chunk further.
 */
static inline size_t copy_word(char *dst, const char *p, uint64_t *odd)
{
	for (size_t at = 0;; at += CHUNK) {
		uint64_t low = copy_chunk(dst + at, p + at, odd);

		for (; low; low &= low - 1) {
			size_t len = at + (size_t)__builtin_ctzll(low);

			if (p[len] == '\n' || p[len] == '\t' || p[len] == ' ' || p[len] == '\0')
				return len;
			*odd |= 1; /* another control character */
		}
	}
}

/* ---- a line ---- */

/* As realloc(); new memory is in huge pages, of which only those that are touched exist. */
static void *resize(void *old, size_t len)
{
	void *p = old ? realloc(old, len) : aligned_alloc(HUGE_PAGE, len);

	if (p && !old)
		(void)madvise(p, len, MADV_HUGEPAGE); /* a kernel without them takes small ones */
	return p;
}

static int make_bytes(struct ksymtext *t, size_t len)
{
	size_t cap = t->bytes_cap ? t->bytes_cap * 2 : 2 * HUGE_PAGE;
	char *bytes;

	if (t->bytes_cap - t->bytes_len >= len + SLACK)
		return 0;
	if (cap > 1u << KSYMTEXT_BITS)
		return -EFBIG;
	bytes = resize(t->bytes, cap);
	if (!bytes)
		return -ENOMEM;
	if (!t->bytes)
		bytes[t->bytes_len++] = '\0';
	t->bytes = bytes;
	t->bytes_cap = cap;
	return 0;
}

/* Not base_grow(), which would write the megabytes that are about to be written. */
static int grow(struct ksymtext *t)
{
	size_t size = t->cap ? (t->cap + 1) * 2 * sizeof(*t->syms) : 2 * HUGE_PAGE;
	struct ksym *syms = resize(t->syms, size);

	if (!syms)
		return -ENOMEM;
	t->syms = syms;
	t->cap = size / sizeof(*syms) - 1;
	return 0;
}

/* Room for the symbols of LEN bytes of text. */
static int make_room(struct ksymtext *t, size_t len)
{
	int err = make_bytes(t, len);

	/* the shortest line is "0 t x\n" */
	while (!err && t->cap - t->n < len / 6)
		err = grow(t);
	return err;
}

/* The name at P, kept; 0 when there is none. *END is the byte after it. */
static inline uint32_t keep_name(struct reader *r, const char *p, const char **end)
{
	struct ksymtext *t = r->t;
	char *to = t->bytes + t->bytes_len;
	size_t len = copy_word(to, p, &t->odd);
	uint32_t name = (uint32_t)t->bytes_len;

	*end = p + len;
	if (!len)
		return 0;
	if (r->pfx_len == len && memcmp(t->bytes + r->pfx, to, len) == 0) {
		name = r->pfx;
		r->pfx_len = 0;
		return name;
	}
	to[len] = '\0';
	t->bytes_len += len + 1;
	r->pfx_len = 0;
	if (len > 6 && memcmp(to, "__pfx_", 6) == 0) {
		r->pfx = name + 6;
		r->pfx_len = (uint32_t)len - 6;
	}
	return name;
}

/* "[name]\n" at P: the module, kept, 0 when it is malformed; *END is the newline. */
static uint32_t keep_module(struct reader *r, const char *p, const char **end)
{
	struct ksymtext *t = r->t;
	char *to = t->bytes + t->bytes_len;
	size_t len = *p == '[' ? copy_word(to, p + 1, &t->odd) : 0;

	if (len < 2 || to[len - 1] != ']' || p[1 + len] != '\n')
		return 0;
	*end = p + 1 + len;
	to[len - 1] = '\0';
	if (r->module && strcmp(t->bytes + r->module, to) == 0) /* as a rule: modules come one by one */
		return r->module;
	r->module = (uint32_t)t->bytes_len;
	t->bytes_len += len;
	return r->module;
}

static void add_symbol(struct ksymtext *t, uint64_t start, uint32_t name, uint32_t module)
{
	if (!t->descent && t->n && start < t->syms[t->n - 1].start)
		t->descent = t->n;
	t->syms[t->n++] = (struct ksym){ start, name, module };
}

/* The line at *P, which has its newline; *P is then the next. -EINVAL when it is malformed. */
static inline int parse_line(struct reader *r, const char **p)
{
	struct ksymtext *t = r->t;
	const char *type, *end;
	uint32_t name, module = 0;
	unsigned int flags;
	uint64_t start;

	type = parse_address(*p, &start);
	if (!type || (((type[0] | 0x20) < 'a' || (type[0] | 0x20) > 'z') && type[0] != '?') || type[1] != ' ')
		return -EINVAL;
	name = keep_name(r, type + 2, &end);
	if (!name)
		return -EINVAL;
	flags = ksymname_flags(*type, type + 2, (size_t)(end - type - 2));
	if (*end == '\t') {
		module = keep_module(r, end + 1, &end);
		if (!module)
			return -EINVAL;
	}
	if (*end != '\n')
		return -EINVAL;
	*p = end + 1;
	if (start >= KSYMTEXT_KERNEL_HALF)
		add_symbol(t, start, name | flags << KSYMTEXT_BITS, module);
	t->zero += start == 0;
	t->low += start != 0 && start < KSYMTEXT_KERNEL_HALF;
	return 0;
}

/*
 * Nearly all lines are "<16 digits> <t or T> <name of at most 63 bytes>": take
 * them from P on, up to LAST, with everything in registers. Returns the first
 * line that is another, or behind LAST. Room is there for every symbol.
 */
static const char *take_plain_lines(struct reader *r, const char *p, const char *last)
{
	struct ksymtext *t = r->t;
	struct ksym *sym = t->syms + t->n;
	char *to = t->bytes + t->bytes_len;
	const char *pfx = t->bytes + r->pfx;
	size_t pfx_len = r->pfx_len;
	uint32_t pfx_name = r->pfx;
	uint64_t odd = 0, start, prev = t->n ? sym[-1].start : 0;

	while (p <= last && hexword_16(p, &start) && start >= prev && start >= KSYMTEXT_KERNEL_HALF &&
		p[16] == ' ' && (p[17] | 0x20) == 't' && p[18] == ' ') {
		const char *text = p + 19;
		uint64_t low = copy_chunk(to, text, &odd);
		size_t len = (size_t)__builtin_ctzll(low | UINT64_C(1) << 63);
		uint32_t name = (uint32_t)(to - t->bytes);

		if (!len || text[len] != '\n')
			break;
		if (len == pfx_len && same_chunk(pfx, text, len)) {
			name = pfx_name;
			pfx_len = 0;
		} else {
			to[len] = '\0';
			to += len + 1;
			pfx_len = len > 6 && memcmp(text, "__pfx_", 6) == 0 ? len - 6 : 0;
			pfx = text + 6;
			pfx_name = name + 6;
		}
		*sym++ = (struct ksym){ start, name | ksymname_flags(p[17], text, len) << KSYMTEXT_BITS, 0 };
		prev = start;
		p = text + len + 1;
	}
	t->odd |= odd;
	r->line += (size_t)(sym - t->syms) - t->n;
	t->n = (size_t)(sym - t->syms);
	t->bytes_len = (size_t)(to - t->bytes);
	r->pfx = pfx_name;
	r->pfx_len = (uint32_t)pfx_len;
	return p;
}

/* ---- the file ---- */

static int bad_file(const struct reader *r, const char *why, struct err *e)
{
	err_set(e, -EINVAL, "'%s' is no copy of /proc/kallsyms: %s", r->file, why);
	if (r->line)
		err_set(e, -EINVAL, "'%s' is no copy of /proc/kallsyms: line %zu %s", r->file, r->line, why);
	err_hint(e, "make one with 'kallsyms-resolve --save FILE'");
	return -EINVAL;
}

/* Parse the whole lines in the window; what is left of one moves to its front. */
static int parse_window(struct reader *r, struct err *e)
{
	const char *p = r->window, *last = memrchr(r->window, '\n', r->len);
	int err = make_room(r->t, r->len);

	memset(r->window + r->len, 0, SLACK);
	while (!err && last && p <= last) {
		if (!r->module)
			p = take_plain_lines(r, p, last);
		if (p > last)
			break;
		r->line++;
		err = parse_line(r, &p);
	}
	if (err == -EINVAL)
		return bad_file(r, "is not '<address> <type> <name>'", e);
	if (err)
		return err_sys(e, err, "cannot keep the symbols of '%s'", r->file);
	r->len = (size_t)(r->window + r->len - p);
	memmove(r->window, p, r->len);
	return 0;
}

/*
 * Fill the window; *END at the end of the file. A read of /proc/kallsyms gives
 * a page at most, whatever is asked for; parsing page by page would find the
 * caches and branch predictors full of the kernel's work each time.
 */
static int fill_window(struct reader *r, int fd, bool *end, struct err *e)
{
	while (!*end && r->len < WINDOW) {
		ssize_t got = read(fd, r->window + r->len, WINDOW - r->len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, -errno, "cannot read '%s'", r->file);
		*end = got == 0;
		r->len += (size_t)got;
	}
	return 0;
}

int ksymtext_read(int fd, const char *file, struct ksymtext *ret, struct err *e)
{
	_cleanup_free_ char *window = malloc(WINDOW + SLACK);
	struct reader r = { .t = ret, .file = file, .window = window };
	bool end = false;
	int err = 0;

	if (!window)
		return err_nomem(e, "the kernel's symbols");
	while (!err && !end && r.len < WINDOW) {
		err = fill_window(&r, fd, &end, e);
		if (!err)
			err = parse_window(&r, e);
	}
	if (err)
		return err;
	if (!r.line && !r.len)
		return bad_file(&r, "it is empty", e);
	r.line++;
	return r.len ? bad_file(&r, r.len == WINDOW ? "is too long" : "is cut off", e) : 0;
}

void ksymtext_free(struct ksymtext *t)
{
	free(t->syms);
	free(t->bytes);
	*t = (struct ksymtext){ 0 };
}
