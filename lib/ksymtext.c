/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksymtext.h"
#include "ksymname.h"

#include <errno.h>
#include <string.h>

#define WINDOW (128u << 10)
#define SLACK 24 /* words are read across the end of the window, and written across that of a name */

struct reader {
	struct ksymtext *t;
	const char *file;
	char *window;
	size_t len; /* bytes in the window */
	size_t line; /* lines begun */
	uint32_t module; /* the last one */
	uint32_t pfx, pfx_len; /* of the last name, had it been "__pfx_x": where x is, and its length */
};

/* ---- words of eight bytes ---- */

#define ONES (~UINT64_C(0) / 255)
#define HIGHS (ONES * 0x80)

static inline uint64_t word_at(const char *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return w;
}

/* Eight lower-case hex digits at P, most significant first; false on anything else. */
static inline bool hex8(const char *p, uint64_t *ret)
{
	uint64_t w = word_at(p);
	/* the high bit of each byte tells: not within '0'..'9', not within 'a'..'f' */
	uint64_t not_digit = (w + ONES * (0x7f - '9')) | ~(w + ONES * (0x80 - '0'));
	uint64_t not_alpha = (w + ONES * (0x7f - 'f')) | ~(w + ONES * (0x80 - 'a'));

	if ((w | (not_digit & not_alpha)) & HIGHS)
		return false;
	w = (w & ONES * 0x0f) + (w >> 6 & ONES) * 9;
	w = __builtin_bswap64(w);
	w = (w | w >> 4) & UINT64_C(0x00ff00ff00ff00ff);
	w = (w | w >> 8) & UINT64_C(0x0000ffff0000ffff);
	*ret = *ret << 32 | (uint32_t)(w | w >> 16);
	return true;
}

/* "<hex> " at P, of 16 digits as every 64-bit kernel prints it, or fewer: what follows, or NULL. */
static inline const char *parse_address(const char *p, uint64_t *ret)
{
	int digits = 0;

	*ret = 0;
	if (hex8(p, ret) && hex8(p + 8, ret) && p[16] == ' ')
		return p + 17;
	for (*ret = 0; (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f'); p++, digits++)
		*ret = *ret << 4 | (uint64_t)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
	return digits && digits <= 16 && *p == ' ' ? p + 1 : NULL;
}

/*
 * Copy the word at P to DST up to its end, a newline, tab, space or NUL, which
 * is surely there. Both are read and written up to 7 bytes further.
 */
static inline size_t copy_word(char *dst, const char *p, uint64_t *odd)
{
	for (size_t at = 0;; at += 8) {
		uint64_t w = word_at(p + at);
		uint64_t below = (w - ONES * '!') & ~w & HIGHS;

		memcpy(dst + at, &w, sizeof(w));
		*odd |= (w | (w + ONES)) & HIGHS; /* DEL, and all that is not ASCII */
		for (; below; below &= below - 1) {
			size_t len = at + ((size_t)__builtin_ctzll(below) >> 3);

			/* a borrow can mark a '!' above the true one: look */
			if (p[len] == '\n' || p[len] == '\t' || p[len] == ' ' || p[len] == '\0')
				return len;
			*odd |= p[len] != '!';
		}
	}
}

/* ---- a line ---- */

/* Room for the names of LEN bytes of text. */
static int make_room(struct ksymtext *t, size_t len)
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
	if (t->n == t->cap && grow(t) < 0)
		return -ENOMEM;
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

int ksymtext_read(int fd, const char *file, struct ksymtext *ret, struct err *e)
{
	_cleanup_free_ char *window = malloc(WINDOW + SLACK);
	struct reader r = {.t = ret, .file = file, .window = window};

	if (!window)
		return err_nomem(e, "the kernel's symbols");
	for (;;) {
		/* a read of /proc/kallsyms gives a page at most, whatever is asked for */
		ssize_t got = read(fd, window + r.len, WINDOW - r.len);
		int err;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, -errno, "cannot read '%s'", file);
		if (got == 0)
			break;
		r.len += (size_t)got;
		err = parse_window(&r, e);
		if (err)
			return err;
		if (r.len == WINDOW)
			break;
	}
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
	*t = (struct ksymtext){0};
}
