/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/kallsyms.h"
#include "base/base.h"
#include "base/hex.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/*
 * ksymname - what the name and the type letter of a kernel symbol say.
 *
 * The linker script (include/asm-generic/vmlinux.lds.h of Linux) puts markers at the ends of
 * sections; objtool and the compiler put __pfx_ and __cfi_ symbols on the padding before functions;
 * the build makes hundreds of aliases. Letters are those of nm(1): lower case is local, t code, w
 * weak.
 */

enum {
	KSYM_CODE = 1,
	KSYM_WEAK = 2,
	KSYM_LOCAL = 4,
	KSYM_MARKER = 8, /* _etext, __entry_text_end, __start_rodata: owns nothing after its address */
};

static bool ksymname_is_marker(bool code, const char *name, size_t len);

/* The flags of a symbol of TYPE with the name NAME (LEN bytes, at least 1, no NUL needed). */
static inline unsigned int ksymname_flags(char type, const char *name, size_t len)
{
	char kind = (char)(type | 0x20);
	bool code = kind == 't' || kind == 'w' || kind == 'i', weak = kind == 'w' || kind == 'v';
	/* the case of w and v does not distinguish local from global */
	unsigned int flags = (code ? KSYM_CODE : 0u) | (weak ? KSYM_WEAK : type >= 'a' ? KSYM_LOCAL : 0u);

	/* all code markers end in "text" or "text_end" */
	if (name[0] == '_' && len >= 4 &&
		(!code || memcmp(name + len - 4, "text", 4) == 0 || memcmp(name + len - 4, "_end", 4) == 0) &&
		ksymname_is_marker(code, name, len))
		flags |= KSYM_MARKER;
	return flags;
}

struct word {
	const char *s;
	size_t len;
};

#define WORD(s)                                                                                              \
	{                                                                                                    \
		s, sizeof(s) - 1                                                                             \
	}

static bool starts_with(const char *s, size_t len, struct word prefix)
{
	return len >= prefix.len && memcmp(s, prefix.s, prefix.len) == 0;
}

static bool ends_with(const char *s, size_t len, struct word suffix)
{
	return len >= suffix.len && memcmp(s + len - suffix.len, suffix.s, suffix.len) == 0;
}

static bool is_one_of(const char *s, size_t len, const struct word *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].len == len && memcmp(s, list[i].s, len) == 0)
			return true;
	return false;
}

/* Is NAME a marker such as _etext? CODE: the type letter says code; a function may be named __stop_tty. */
static bool ksymname_is_marker(bool code, const char *name, size_t len)
{
	static const struct word code_ends[] = { WORD("_etext"), WORD("_einittext"), WORD("_eextratext") };
	static const struct word places[] = { WORD("_end"), WORD("_edata"), WORD("_sdata"), WORD("_brk_end"),
		WORD("__brk_base"), WORD("__brk_limit"), WORD("__bss_start"), WORD("__bss_stop"),
		WORD("__init_begin"), WORD("__init_end"), WORD("__per_cpu_start"), WORD("__per_cpu_end") };

	if (len < 4 || name[0] != '_')
		return false;
	if (ends_with(name, len, (struct word)WORD("text_end")) && name[1] == '_')
		return true;
	if (ends_with(name, len, (struct word)WORD("text")))
		return is_one_of(name, len, code_ends, ARRAY_LEN(code_ends));
	return !code && (starts_with(name, len, (struct word)WORD("__start_")) ||
				starts_with(name, len, (struct word)WORD("__stop_")) ||
				starts_with(name, len, (struct word)WORD("__end_")) ||
				is_one_of(name, len, places, ARRAY_LEN(places)));
}

/* Is NAME the start of a code section? It names unnamed code after it, but any other name is better. */
static bool is_code_start(const char *name, size_t len)
{
	static const struct word places[] = { WORD("_text"), WORD("_stext"), WORD("_sinittext"),
		WORD("_sextratext") };

	return is_one_of(name, len, places, ARRAY_LEN(places)) ||
	       (starts_with(name, len, (struct word)WORD("__")) &&
		       ends_with(name, len, (struct word)WORD("text_start")));
}

/*
 * Rank a name for its address, lower is better. Criteria in order: no marker, no start of a code
 * section (_stext), no padding (__pfx_, __cfi_), code before data, strong before weak, global
 * before local, fewer leading underscores, no ia32 system call entry. NAME ends in a NUL.
 */
static unsigned int ksymname_rank(unsigned int flags, const char *name)
{
	size_t len = strlen(name), underscores = MIN(strspn(name, "_"), 7u);
	bool padding = starts_with(name, len, (struct word)WORD("__pfx_")) ||
		       starts_with(name, len, (struct word)WORD("__cfi_"));
	bool ia32 = starts_with(name, len, (struct word)WORD("__ia32_"));

	return (flags & KSYM_MARKER ? 1u << 9 : 0) | (is_code_start(name, len) ? 1u << 8 : 0) |
	       (padding ? 1u << 7 : 0) | (flags & KSYM_CODE ? 0 : 1u << 6) |
	       (flags & KSYM_WEAK ? 1u << 5 : 0) | (flags & KSYM_LOCAL ? 1u << 4 : 0) |
	       (unsigned int)underscores << 1 | (ia32 ? 1u : 0);
}

/* A name: an offset into the bytes, below the flags of ksymname. The top bit is free for the caller. */
#define KSYMTEXT_BITS 27
#define KSYMTEXT_OFFSET(name) ((name) & ((1u << KSYMTEXT_BITS) - 1))
#define KSYMTEXT_FLAGS(name) ((name) >> KSYMTEXT_BITS & 15u)

/* The lower half of the address space holds no kernel addresses, only per-CPU offsets and zeros. */
#define KSYMTEXT_KERNEL_HALF (UINT64_C(1) << 63)

struct ksymtext {
	struct ksym *syms; /* n, and room for one more */
	size_t n, cap;
	char *bytes; /* names and modules, each with a NUL; bytes[0] is the empty string */
	size_t bytes_len, bytes_cap;
	size_t descent; /* the first symbol below its predecessor, 0 = none */
	uint64_t odd; /* nonzero if the text is not all printable ASCII */
	size_t zero, low; /* skipped lines: the address is 0, or not in the kernel's half */
};
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define WINDOW (128u << 10)
#define HUGE_PAGE (2u << 20)
#define SLACK 96 /* chunks are read beyond the end of the window, and written beyond that of a name */

struct reader {
	struct ksymtext *t;
	const char *file;
	char *window;
	size_t len; /* bytes in the window */
	size_t line; /* lines started */
	uint32_t module; /* of the last module */
	uint32_t pfx, pfx_len; /* if the last name was "__pfx_x": where x is, and its length */
};

/* Parse "<hex> " at P: 16 digits, as every 64-bit kernel prints, or fewer. Returns what follows, or NULL. */
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
/* Copy 16 bytes. Returns a bit for each byte up to space; ors into *HIGH those from DEL up. */
static inline uint64_t copy_16(char *dst, const char *p, __m128i *high)
{
	__m128i v = _mm_loadu_si128((const __m128i_u *)p), space = _mm_set1_epi8(' ');

	_mm_storeu_si128((__m128i_u *)dst, v);
	*high = _mm_or_si128(*high, _mm_or_si128(v, _mm_add_epi8(v, _mm_set1_epi8(1))));
	return (unsigned int)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(v, space), v));
}

/* Returns a bit for each of 16 bytes that is equal. */
static inline uint64_t same_16(const char *a, const char *b)
{
	return (unsigned int)_mm_movemask_epi8(
		_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i_u *)a), _mm_loadu_si128((const __m128i_u *)b)));
}
#endif

/*
 * Copy CHUNK bytes. Returns a bit for each byte up to space, and ors into *ODD those that no symbol
 * has: DEL and non-ASCII bytes.
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

/* Are LEN bytes equal, 1 to CHUNK? Reads a whole chunk from A and B. */
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
 * Copy the word at P to DST, up to a newline, tab, space or NUL, which must exist. Reads and writes
 * up to a chunk beyond it.
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

/* As realloc(); new memory is in huge pages, allocated when first touched. */
static void *resize(void *old, size_t len)
{
	void *p = old ? realloc(old, len) : aligned_alloc(HUGE_PAGE, len);

	if (p && !old)
		(void)madvise(p, len, MADV_HUGEPAGE); /* without huge pages, the kernel uses small ones */
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

/* Unlike base_grow(), does not write megabytes that are about to be overwritten. */
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

/* Make room for the symbols of LEN bytes of text. */
static int make_room(struct ksymtext *t, size_t len)
{
	int err = make_bytes(t, len);

	/* the shortest line is "0 t x\n" */
	while (!err && t->cap - t->n < len / 6)
		err = grow(t);
	return err;
}

/* Store the name at P; 0 if there is none. *END is the byte after it. */
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

/* Parse "[name]\n" at P and store the module; 0 if it is malformed. *END is the newline. */
static uint32_t keep_module(struct reader *r, const char *p, const char **end)
{
	struct ksymtext *t = r->t;
	char *to = t->bytes + t->bytes_len;
	size_t len = *p == '[' ? copy_word(to, p + 1, &t->odd) : 0;

	if (len < 2 || to[len - 1] != ']' || p[1 + len] != '\n')
		return 0;
	*end = p + 1 + len;
	to[len - 1] = '\0';
	if (r->module && strcmp(t->bytes + r->module, to) == 0) /* usual: symbols of a module are in a row */
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

/* Parse the line at *P, which must have its newline, and move *P to the next. -EINVAL if it is malformed. */
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
 * Parse plain lines from P up to LAST with all state in registers. Nearly all lines are plain:
 * "<16 digits> <t or T> <name of at most 63 bytes>". Returns the first line that is not, or the end
 * after LAST. The caller made room for all symbols.
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
	err_set(e, -EINVAL, "'%s' is not a copy of /proc/kallsyms: %s", r->file, why);
	if (r->line)
		err_set(e, -EINVAL, "'%s' is not a copy of /proc/kallsyms: line %zu %s", r->file, r->line,
			why);
	err_hint(e, "make one with 'kallsyms-resolve --save FILE'");
	return -EINVAL;
}

/* Parse the whole lines in the window; move the start of an incomplete one to its front. */
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
 * Fill the window; sets *END at the end of the file. A read of /proc/kallsyms returns at most a
 * page, whatever its size. Parsing page by page would find the caches and branch predictors full of
 * the kernel's work each time.
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

/*
 * Read FD to its end into *RET, which is zeroed; FILE is its name in messages. Release *RET with
 * ksymtext_free(), even on failure. -EINVAL if a line is not one of /proc/kallsyms or the last one
 * is cut off; -EFBIG above 128 MiB of names.
 */
static int ksymtext_read(int fd, const char *file, struct ksymtext *ret, struct err *e)
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

static void ksymtext_free(struct ksymtext *t)
{
	free(t->syms);
	free(t->bytes);
	*t = (struct ksymtext){ 0 };
}

#define LIVE "/proc/kallsyms"
#define PAGE 4096u
#define MARKER ((uint32_t)KSYM_MARKER << KSYMTEXT_BITS)
#define PAGE_CAPPED (UINT32_C(1) << 31) /* ends at the latest with its page */

/*
 * Cuts the addresses from BASE on into N equal pieces. bucket[i] is the symbol that covers the
 * first address of piece i, so a look-up only searches bucket[i] to bucket[i + 1].
 */
struct index {
	uint64_t base;
	size_t n;
	unsigned int shift;
	uint32_t *bucket; /* n + 1 */
};

struct kallsyms {
	struct ksymtext t; /* its symbols are followed by one at UINT64_MAX */
	size_t first_module; /* symbols before it are the kernel's own */
	struct ksym *aliases; /* other symbols of addresses that already have a name */
	size_t naliases, aliases_cap;
	struct index index[2]; /* of the kernel's own symbols, and of those from first_module on */
};

DEFINE_CLEANUP(struct kallsyms *, kallsyms_free);

void kallsyms_free(struct kallsyms *ks)
{
	if (!ks)
		return;
	ksymtext_free(&ks->t);
	free(ks->aliases);
	free(ks->index[0].bucket);
	free(ks->index[1].bucket);
	free(ks);
}

static int check_addresses(const struct ksymtext *t, const char *file, struct err *e)
{
	if (t->n)
		return 0;
	if (t->low) {
		err_set(e, -EINVAL, "'%s' is not a copy of /proc/kallsyms: it holds no kernel address", file);
		err_hint(e, "make one with 'kallsyms-resolve --save FILE'");
		return -EINVAL;
	}
	err_sys(e, -EACCES, "no usable address in '%s'", file);
	if (strcmp(file, LIVE) == 0)
		err_hint(e, "kernel.kptr_restrict hides them; run with CAP_SYSLOG");
	else
		err_hint(e, "kernel.kptr_restrict hid them; save the copy again with CAP_SYSLOG");
	return -EACCES;
}

/* ---- order ---- */

/* Stable radix sort: one pass for each byte that differs. *S and *TMP have N elements. */
static void sort_syms(struct ksym **s, struct ksym **tmp, size_t n)
{
	uint64_t differ = 0;

	for (size_t i = 0; i < n; i++)
		differ |= (*s)[i].start ^ (*s)[0].start;
	for (unsigned int shift = 0; shift < 64; shift += 8) {
		size_t at[257] = { 0 };
		struct ksym *from = *s;

		if (!(differ >> shift & 0xff))
			continue;
		for (size_t i = 0; i < n; i++)
			at[(from[i].start >> shift & 0xff) + 1]++;
		for (size_t b = 1; b < 256; b++)
			at[b] += at[b - 1];
		for (size_t i = 0; i < n; i++)
			(*tmp)[at[from[i].start >> shift & 0xff]++] = from[i];
		*s = *tmp;
		*tmp = from;
	}
}

/* Merge N symbols at TAIL into the first FRONT of SYMS, backwards; equal ones of TAIL come last. */
static void merge_syms(struct ksym *syms, size_t front, const struct ksym *tail, size_t n)
{
	while (n) {
		if (front && syms[front - 1].start > tail[n - 1].start) {
			syms[front + n - 1] = syms[front - 1];
			front--;
		} else {
			syms[front + n - 1] = tail[n - 1];
			n--;
		}
	}
}

/* The kernel's own symbols are sorted; modules and programs follow in the order of loading. */
static int sort_table(struct ksymtext *t, struct err *e)
{
	_cleanup_free_ struct ksym *tail = NULL, *tmp = NULL;
	size_t n = t->n - t->descent;

	if (!t->descent)
		return 0;
	tail = malloc(n * sizeof(*tail));
	tmp = malloc(n * sizeof(*tmp));
	if (!tail || !tmp)
		return err_nomem(e, "sorting the kernel's symbols");
	memcpy(tail, t->syms + t->descent, n * sizeof(*tail));
	sort_syms(&tail, &tmp, n);
	merge_syms(t->syms, t->descent, tail, n);
	return 0;
}

/* ---- one symbol for each address ---- */

static const char *name_of(const struct ksymtext *t, uint32_t name)
{
	return t->bytes + KSYMTEXT_OFFSET(name);
}

/* Choose the name among the symbols FROM to TO, which share an address; the others become aliases. */
static int choose(struct kallsyms *ks, size_t from, size_t to, size_t *best)
{
	const struct ksymtext *t = &ks->t;
	unsigned int least = UINT_MAX;

	for (size_t i = from; i < to; i++) {
		unsigned int rank =
			ksymname_rank(KSYMTEXT_FLAGS(t->syms[i].name), name_of(t, t->syms[i].name));

		if (rank < least) {
			least = rank;
			*best = i;
		}
	}
	if (base_grow(&ks->aliases, &ks->aliases_cap, ks->naliases + to - from, sizeof(*ks->aliases)) < 0)
		return -ENOMEM;
	for (size_t i = from; i < to; i++)
		if (i != *best)
			ks->aliases[ks->naliases++] = t->syms[i];
	return 0;
}

static int settle_aliases(struct kallsyms *ks, struct err *e)
{
	struct ksymtext *t = &ks->t;
	size_t kept = 0;

	for (size_t i = 0, next; i < t->n; i = next) {
		size_t best = i;

		for (next = i + 1; next < t->n && t->syms[next].start == t->syms[i].start; next++)
			;
		if (next - i > 1 && choose(ks, i, next, &best) < 0)
			return err_nomem(e, "the kernel's symbols");
		t->syms[kept++] = t->syms[best];
	}
	t->n = kept;
	t->syms[kept].start = UINT64_MAX;
	return 0;
}

/* ---- where a symbol ends ---- */

/* Programs and trampolines are allocated one by one. */
static bool stands_alone(const char *module)
{
	return strcmp(module, "bpf") == 0 || strncmp(module, "__builtin__", 11) == 0;
}

static bool ends_with_page(const struct ksymtext *t, size_t i)
{
	uint32_t mine = t->syms[i].module, next;

	if (i + 1 == t->n)
		return true;
	next = t->syms[i + 1].module;
	if (!mine || !next)
		return mine != next;
	return stands_alone(t->bytes + mine) ||
	       (mine != next && strcmp(t->bytes + mine, t->bytes + next) != 0) ||
	       ((KSYMTEXT_FLAGS(t->syms[i].name) ^ KSYMTEXT_FLAGS(t->syms[i + 1].name)) & KSYM_CODE);
}

static void max_ends(struct kallsyms *ks)
{
	struct ksymtext *t = &ks->t;
	size_t i = 0;

	while (i < t->n && !t->syms[i].module)
		i++;
	ks->first_module = i;
	for (i = ks->first_module ? ks->first_module - 1 : 0; i < t->n; i++)
		if (ends_with_page(t, i))
			t->syms[i].name |= PAGE_CAPPED;
}

static uint64_t end_of(const struct ksymtext *t, size_t i)
{
	uint64_t page_end = (t->syms[i].start | (PAGE - 1)) + 1, next = t->syms[i + 1].start;

	if (t->syms[i].name & MARKER)
		return t->syms[i].start + 1;
	if (t->syms[i].name & PAGE_CAPPED && page_end) /* 0: the last page of the address space */
		return MIN(next, page_end);
	return next;
}

/* ---- the index ---- */

/* Index the symbols FROM to TO. */
static int build_index(struct index *ix, const struct ksym *syms, size_t from, size_t to, struct err *e)
{
	size_t at = from;
	uint64_t span;

	free(ix->bucket);
	*ix = (struct index){ 0 };
	if (from == to)
		return 0;
	ix->base = syms[from].start;
	span = syms[to - 1].start - ix->base;
	while (span >> ix->shift >= to - from)
		ix->shift++;
	ix->n = (size_t)(span >> ix->shift) + 1;
	ix->bucket = malloc((ix->n + 1) * sizeof(*ix->bucket));
	if (!ix->bucket)
		return err_nomem(e, "the kernel's symbols");
	for (size_t b = 0; b < ix->n; b++) {
		while (at + 1 < to && syms[at + 1].start - ix->base <= (uint64_t)b << ix->shift)
			at++;
		ix->bucket[b] = (uint32_t)at;
	}
	ix->bucket[ix->n] = (uint32_t)(to - 1);
	return 0;
}

static int build_indexes(struct kallsyms *ks, struct err *e)
{
	int err = build_index(&ks->index[0], ks->t.syms, 0, ks->first_module, e);

	return err ? err : build_index(&ks->index[1], ks->t.syms, ks->first_module, ks->t.n, e);
}

/* ---- the interface ---- */

int kallsyms_load_fd(int fd, const char *file, struct kallsyms **ret, struct err *e)
{
	CLEANUP(kallsyms_free_p) struct kallsyms *ks = calloc(1, sizeof(*ks));
	int err;

	*ret = NULL;
	if (!ks)
		return err_nomem(e, "the kernel's symbols");
	err = ksymtext_read(fd, file, &ks->t, e);
	if (!err)
		err = check_addresses(&ks->t, file, e);
	if (!err)
		err = sort_table(&ks->t, e);
	if (!err)
		err = settle_aliases(ks, e);
	if (err)
		return err;
	max_ends(ks);
	err = build_indexes(ks, e);
	if (err)
		return err;
	*ret = TAKE_PTR(ks);
	return 0;
}

int kallsyms_load(const char *file, struct kallsyms **ret, struct err *e)
{
	_cleanup_close_ int fd = -1;

	*ret = NULL;
	if (!file)
		file = LIVE;
	fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_sys(e, -errno, "cannot open '%s'", file);
	return kallsyms_load_fd(fd, file, ret, e);
}

static bool in_range(const struct kallsyms *ks, const struct index *ix, uint64_t addr)
{
	return ix->n && addr >= ks->t.syms[0].start;
}

static const struct index *index_for(const struct kallsyms *ks, uint64_t addr)
{
	return &ks->index[ks->index[1].n && addr >= ks->index[1].base];
}

static const uint32_t *bucket_for(const struct index *ix, uint64_t addr)
{
	return &ix->bucket[MIN((size_t)((addr - ix->base) >> ix->shift), ix->n - 1)];
}

/* The last symbol that starts at or before ADDR. */
static size_t search(const struct ksymtext *t, const uint32_t *bucket, uint64_t addr)
{
	size_t at = bucket[0], n = bucket[1] - at + 1;

	while (n > 1) { /* syms[at].start <= addr; the last such symbol is one of the N from AT on */
		size_t half = n / 2;

		at = t->syms[at + half].start <= addr ? at + half : at;
		n -= half;
	}
	return at;
}

static bool symbol_at(const struct kallsyms *ks, size_t at, uint64_t addr, struct kallsyms_sym *ret)
{
	const struct ksymtext *t = &ks->t;

	*ret = (struct kallsyms_sym){ .start = t->syms[at].start,
		.end = end_of(t, at),
		.name = name_of(t, t->syms[at].name),
		.module = t->bytes + t->syms[at].module };
	return addr < ret->end;
}

bool kallsyms_find(const struct kallsyms *ks, uint64_t addr, struct kallsyms_sym *ret)
{
	const struct index *ix = index_for(ks, addr);

	return in_range(ks, ix, addr) && symbol_at(ks, search(&ks->t, bucket_for(ix, addr), addr), addr, ret);
}

#define BATCH 64u

/* Each step prefetches for the next, for all addresses, so that memory latencies overlap. */
static void find_batch(const struct kallsyms *ks, const uint64_t *addrs, size_t n, struct kallsyms_sym *ret)
{
	const uint32_t *buckets[BATCH];
	size_t at[BATCH];

	for (size_t i = 0; i < n; i++) {
		const struct index *ix = index_for(ks, addrs[i]);

		buckets[i] = in_range(ks, ix, addrs[i]) ? bucket_for(ix, addrs[i]) : NULL;
		if (buckets[i])
			__builtin_prefetch(buckets[i]);
	}
	for (size_t i = 0; i < n; i++) {
		if (!buckets[i])
			continue;
		__builtin_prefetch(&ks->t.syms[buckets[i][0]]);
	}
	for (size_t i = 0; i < n; i++) {
		if (!buckets[i])
			continue;
		at[i] = search(&ks->t, buckets[i], addrs[i]);
		__builtin_prefetch(name_of(&ks->t, ks->t.syms[at[i]].name));
	}
	for (size_t i = 0; i < n; i++)
		if (!buckets[i] || !symbol_at(ks, at[i], addrs[i], &ret[i]))
			ret[i].name = NULL;
}

void kallsyms_find_many(const struct kallsyms *ks, const uint64_t *addrs, size_t n, struct kallsyms_sym *ret)
{
	for (size_t i = 0; i < n; i += BATCH)
		find_batch(ks, addrs + i, MIN(n - i, BATCH), ret + i);
}

/* Most names differ in their first two characters, without a call: every symbol of the kernel is compared. */
static bool is_named(const struct ksymtext *t, const struct ksym *sym, const char *name)
{
	const char *own = name_of(t, sym->name);

	return own[0] == name[0] && (!own[0] || (own[1] == name[1] && strcmp(own, name) == 0));
}

uint64_t kallsyms_address(const struct kallsyms *ks, const char *name)
{
	uint64_t best = 0;

	for (size_t i = 0; i < ks->naliases && !best; i++)
		if (is_named(&ks->t, &ks->aliases[i], name))
			best = ks->aliases[i].start;
	for (size_t i = 0; i < ks->t.n && (!best || ks->t.syms[i].start < best); i++)
		if (is_named(&ks->t, &ks->t.syms[i], name))
			best = ks->t.syms[i].start;
	return best;
}

size_t kallsyms_count(const struct kallsyms *ks)
{
	return ks->t.n + ks->naliases;
}

bool kallsyms_plain(const struct kallsyms *ks)
{
	return !ks->t.odd;
}

/* ---- another boot ---- */

static int check_shift(const struct kallsyms *ks, uint64_t shift, uint64_t stext, struct err *e)
{
	const struct ksymtext *t = &ks->t;
	uint64_t first = t->syms[0].start + shift, last;

	for (size_t i = 0; i < t->n; i++) {
		if (t->syms[i].module)
			continue;
		last = t->syms[i].start + shift;
		if (last < KSYMTEXT_KERNEL_HALF || last < first)
			return err_set(e, -ERANGE,
				"cannot move _stext to 0x%llx: '%s' would leave the kernel's half",
				(unsigned long long)stext, name_of(t, t->syms[i].name));
	}
	return 0;
}

int kallsyms_relocate(struct kallsyms *ks, uint64_t stext, size_t *dropped, struct err *e)
{
	struct ksymtext *t = &ks->t;
	uint64_t own = kallsyms_address(ks, "_stext"), shift = stext - own;
	size_t kept = 0, before = kallsyms_count(ks);
	int err;

	if (!own)
		return err_set(e, -ENOENT, "cannot relocate kernel symbols that have no _stext");
	err = check_shift(ks, shift, stext, e);
	if (err)
		return err;
	for (size_t i = 0; i < t->n; i++) {
		if (t->syms[i].module)
			continue;
		t->syms[kept++] =
			(struct ksym){ t->syms[i].start + shift, t->syms[i].name & ~PAGE_CAPPED, 0 };
	}
	t->n = kept;
	t->syms[kept].start = UINT64_MAX;
	kept = 0;
	for (size_t i = 0; i < ks->naliases; i++)
		if (!ks->aliases[i].module)
			ks->aliases[kept] = ks->aliases[i], ks->aliases[kept++].start += shift;
	ks->naliases = kept;
	if (dropped)
		*dropped = before - kallsyms_count(ks);
	max_ends(ks);
	return build_indexes(ks, e);
}

static void *load(void *arg)
{
	struct kallsyms_loader *l = arg;

	l->ks = NULL;
	if (l->fd < 0)
		l->rc = kallsyms_load(NULL, &l->ks, &l->why);
	else if (lseek(l->fd, 0, SEEK_SET) != 0)
		l->rc = err_sys(&l->why, -errno, "cannot read '/proc/kallsyms' again");
	else
		l->rc = kallsyms_load_fd(l->fd, "/proc/kallsyms", &l->ks, &l->why);
	__atomic_store_n(&l->ready, 1, __ATOMIC_RELEASE);
	return NULL;
}

void kallsyms_loader_begin(struct kallsyms_loader *l, int fd)
{
	if (l->running)
		return;
	l->running = true;
	l->ready = 0;
	l->thread = 0;
	l->fd = fd;
	if (pthread_create(&l->thread, NULL, load, l) != 0) {
		l->thread = 0;
		load(l);
	}
}

bool kallsyms_loader_ready(const struct kallsyms_loader *l)
{
	return l->running && __atomic_load_n(&l->ready, __ATOMIC_ACQUIRE);
}

int kallsyms_loader_take(struct kallsyms_loader *l, struct kallsyms **ret, struct err *e)
{
	if (!l->running)
		return err_set(e, -ENODATA, "the kernel's symbols are not being read");
	if (l->thread)
		pthread_join(l->thread, NULL);
	l->running = false;
	if (l->rc) {
		if (e)
			*e = l->why;
		return l->rc;
	}
	*ret = TAKE_PTR(l->ks);
	return 0;
}

void kallsyms_loader_close(struct kallsyms_loader *l)
{
	struct kallsyms *ks = NULL;

	if (l->running && kallsyms_loader_take(l, &ks, NULL) == 0)
		kallsyms_free(ks);
}

/* A file beside the new one; removed unless it was renamed. */
struct temp {
	char path[PATH_MAX];
	int fd;
};

static void temp_release(struct temp *t)
{
	if (t->fd >= 0)
		close(t->fd);
	if (t->path[0])
		unlink(t->path);
}

static int temp_make(struct temp *t, const char *to, struct err *e)
{
	int err;

	if ((size_t)snprintf(t->path, sizeof(t->path), "%s.XXXXXX", to) >= sizeof(t->path))
		return t->path[0] = '\0', err_sys(e, -ENAMETOOLONG, "cannot create '%s'", to);
	t->fd = mkostemp(t->path, O_CLOEXEC); /* O_EXCL, 0600 */
	if (t->fd >= 0)
		return 0;
	err = -errno;
	t->path[0] = '\0';
	return err_sys(e, err, "cannot create '%s'", to);
}

/* Check that the file at TO may be replaced. */
static int check_target(const char *to, bool force, struct err *e)
{
	CLEANUP(kallsyms_free_p) struct kallsyms *ks = NULL;
	_cleanup_close_ int fd = -1;
	struct stat st;
	int err;

	if (lstat(to, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(e, -errno, "cannot create '%s'", to);
	if (S_ISLNK(st.st_mode)) {
		err_set(e, -ELOOP, "'%s' is a symbolic link, which is never followed", to);
		err_hint(e, "give the file that is meant, or remove the link");
		return -ELOOP;
	}
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "'%s' is not a regular file", to);
	if (force)
		return 0;
	fd = open(to, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return err_sys(e, -errno, "cannot open '%s'", to);
	err = kallsyms_load_fd(fd, to, &ks, NULL);
	if (err == 0 || err == -EACCES) /* a copy with zero addresses is a copy, too */
		return 0;
	err_set(e, -EEXIST, "'%s' exists and is not a copy of /proc/kallsyms", to);
	err_hint(e, "--force overwrites it");
	return -EEXIST;
}

static int write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno != EINTR)
			return -errno;
		if (done > 0)
			p += done, n -= (size_t)done;
	}
	return 0;
}

static int copy(int from_fd, const char *from, int to_fd, const char *to, struct err *e)
{
	_cleanup_free_ char *piece = malloc(128u << 10);
	ssize_t got;
	int err;

	if (!piece)
		return err_nomem(e, "a copy");
	while ((got = read(from_fd, piece, 128u << 10)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, -errno, "cannot read '%s'", from);
		err = write_all(to_fd, piece, (size_t)got);
		if (err)
			return err_sys(e, err, "cannot write '%s'", to);
	}
	return 0;
}

/* Checks the copy itself, because /proc/kallsyms may differ when read again. */
static int check_copy(int fd, const char *from, struct err *e)
{
	CLEANUP(kallsyms_free_p) struct kallsyms *ks = NULL;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, -errno, "cannot read back the copy of '%s'", from);
	return kallsyms_load_fd(fd, from, &ks, e);
}

int kallsyms_copy_save(const char *from, const char *to, bool force, struct err *e)
{
	CLEANUP(temp_release) struct temp temp = { .fd = -1 };
	_cleanup_close_ int fd = -1;
	int err = check_target(to, force, e);

	if (err)
		return err;
	if (!from)
		from = "/proc/kallsyms";
	fd = open(from, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_sys(e, -errno, "cannot open '%s'", from);
	err = temp_make(&temp, to, e);
	if (!err)
		err = copy(fd, from, temp.fd, to, e);
	if (!err)
		err = check_copy(temp.fd, from, e);
	if (err)
		return err;
	if (fsync(temp.fd) < 0 ||
		rename(temp.path, to) < 0) /* replaces a link planted since, does not follow it */
		return err_sys(e, -errno, "cannot write '%s'", to);
	temp.path[0] = '\0';
	return 0;
}
