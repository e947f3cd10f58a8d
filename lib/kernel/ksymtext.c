/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksymtext.h"
#include "hexword.h"
#include "ksymname.h"

#include <errno.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define WINDOW (128u << 10)
#define SLACK 40 /* chunks are read across the end of the window, and written across that of a name */

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

#define CHUNK 32u

/*
 * Copy CHUNK bytes. Returns a bit for each byte that is a space or below, and
 * ors into *ODD those that no symbol has, DEL and what is not ASCII.
 */
static inline uint32_t copy_chunk(char *dst, const char *p, uint64_t *odd)
{
	uint32_t low = 0, high = 0;

#ifdef __SSE2__
	for (unsigned int i = 0; i < CHUNK; i += 16) {
		__m128i v = _mm_loadu_si128((const __m128i_u *)(p + i));
		__m128i space = _mm_set1_epi8(' '), one = _mm_set1_epi8(1);

		_mm_storeu_si128((__m128i_u *)(dst + i), v);
		low |= (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(v, space), v)) << i;
		high |= (uint32_t)_mm_movemask_epi8(_mm_or_si128(v, _mm_add_epi8(v, one)));
	}
#else
	memcpy(dst, p, CHUNK);
	for (unsigned int i = 0; i < CHUNK; i++) {
		unsigned char c = (unsigned char)p[i];

		low |= (uint32_t)(c <= ' ') << i;
		high |= c >= 0x7f;
	}
#endif
	*odd |= high;
	return low;
}

/*
 * Copy the word at P to DST up to its end, a newline, tab, space or NUL, which
 * is surely there. Both are read and written up to a chunk further.
 */
static inline size_t copy_word(char *dst, const char *p, uint64_t *odd)
{
	for (size_t at = 0;; at += CHUNK) {
		uint32_t low = copy_chunk(dst + at, p + at, odd);

		for (; low; low &= low - 1) {
			size_t len = at + (size_t)__builtin_ctz(low);

			if (p[len] == '\n' || p[len] == '\t' || p[len] == ' ' || p[len] == '\0')
				return len;
			*odd |= 1; /* another control character */
		}
	}
}

/* ---- a line ---- */

static int make_bytes(struct ksymtext *t, size_t len)
{
	size_t cap = t->bytes_cap ? t->bytes_cap * 2 : 2u << 20;
	char *bytes;

	if (t->bytes_cap - t->bytes_len >= len + SLACK)
		return 0;
	if (cap > 1u << KSYMTEXT_BITS)
		return -EFBIG;
	bytes = realloc(t->bytes, cap);
	if (!bytes)
		return -ENOMEM;
	if (!t->bytes)
		bytes[t->bytes_len++] = '\0';
	t->bytes = bytes;
	t->bytes_cap = cap;
	return 0;
}

static int grow_modules(struct ksymtext *t, size_t old_cap)
{
	uint32_t *modules = realloc(t->modules, t->cap * sizeof(*modules));

	if (!modules)
		return -ENOMEM;
	memset(modules + old_cap, 0, (t->cap - old_cap) * sizeof(*modules));
	t->modules = modules;
	return 0;
}

/* Not base_grow(), which would write the megabytes that are about to be written. */
static int grow(struct ksymtext *t)
{
	size_t old = t->cap, cap = old ? old * 2 : 128u << 10;
	uint64_t *starts = realloc(t->starts, (cap + 1) * sizeof(*starts));
	uint32_t *names;

	if (!starts)
		return -ENOMEM;
	t->starts = starts;
	names = realloc(t->names, cap * sizeof(*names));
	if (!names)
		return -ENOMEM;
	t->names = names;
	t->cap = cap;
	return t->modules ? grow_modules(t, old) : 0;
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

static int add_symbol(struct ksymtext *t, uint64_t start, uint32_t name, uint32_t module)
{
	if (module && !t->modules && grow_modules(t, 0) < 0)
		return -ENOMEM;
	if (t->n && start < t->starts[t->n - 1])
		t->unsorted = true;
	t->starts[t->n] = start;
	t->names[t->n] = name;
	if (t->modules)
		t->modules[t->n] = module;
	t->n++;
	return 0;
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
		return add_symbol(t, start, name | flags << KSYMTEXT_BITS, module);
	t->zero += start == 0;
	t->low += start != 0;
	return 0;
}

/*
 * Nearly all lines are "<16 digits> <t or T> <name of at most 31 bytes>": take
 * them from P on, up to LAST, with everything in registers. Returns the first
 * line that is another, or behind LAST. Room is there for every symbol.
 */
static const char *take_plain_lines(struct reader *r, const char *p, const char *last)
{
	struct ksymtext *t = r->t;
	char *bytes = t->bytes;
	size_t n = t->n, at = t->bytes_len, pfx = r->pfx, pfx_len = r->pfx_len;
	uint64_t odd = 0, prev = n ? t->starts[n - 1] : 0;

	while (p <= last) {
		uint32_t low, name = (uint32_t)at;
		uint64_t start;
		size_t len;

		if (!hexword_16(p, &start) || start < KSYMTEXT_KERNEL_HALF || (p[17] | 0x20) != 't' ||
			p[16] != ' ' || p[18] != ' ')
			break;
		low = copy_chunk(bytes + at, p + 19, &odd);
		len = (size_t)__builtin_ctz(low | 1u << 31);
		if (!len || p[19 + len] != '\n' || start < prev)
			break;
		if (len == pfx_len && memcmp(bytes + pfx, bytes + at, len) == 0) {
			name = (uint32_t)pfx;
			pfx_len = 0;
		} else {
			bytes[at + len] = '\0';
			at += len + 1;
			pfx_len = len > 6 && memcmp(bytes + at, "__pfx_", 6) == 0 ? len - 6 : 0;
			pfx = name + 6;
		}
		t->starts[n] = prev = start;
		t->names[n++] = name | ksymname_flags(p[17], p + 19, len) << KSYMTEXT_BITS;
		p += 20 + len;
		r->line++;
	}
	t->odd |= odd;
	t->n = n;
	t->bytes_len = at;
	r->pfx = (uint32_t)pfx;
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
		if (!r->t->modules)
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
	free(t->starts);
	free(t->names);
	free(t->modules);
	free(t->bytes);
	*t = (struct ksymtext){ 0 };
}
