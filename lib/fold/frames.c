/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fold/frames.h"
#include "fold/balanced.h"

#include <errno.h>
#include <string.h>

#define FOLDFRAME_MAX ((size_t)16 << 20)
#ifdef __SSE2__
#include <emmintrin.h>
#endif

static bool is(struct perfscript_str s, const char *word)
{
	return s.len == strlen(word) && memcmp(s.p, word, s.len) == 0;
}

static bool has(const char *p, size_t len, const char *word)
{
	return len && memmem(p, len, word, strlen(word)) != NULL;
}

static bool ends(struct perfscript_str s, const char *word)
{
	size_t n = strlen(word);

	return s.len >= n && memcmp(s.p + s.len - n, word, n) == 0;
}

static bool begins(struct perfscript_str s, const char *word)
{
	size_t n = strlen(word);

	return s.len >= n && memcmp(s.p, word, n) == 0;
}

static size_t digits(const char *p, const char *end)
{
	size_t n = 0;

	while (p + n < end && p[n] >= '0' && p[n] <= '9')
		n++;
	return n;
}

/* PREFIX, digits, SUFFIX anywhere in S? With ANY, one more byte before SUFFIX, a digit or not. */
static bool has_perf_map(struct perfscript_str s, const char *prefix, const char *suffix, bool any)
{
	const char *p = s.p, *end = s.p + s.len;
	size_t np = strlen(prefix), ns = strlen(suffix);

	while (p < end && (p = memmem(p, (size_t)(end - p), prefix, np))) {
		const char *d = p + np, *q = d + digits(d, end);

		if (any && q - d >= 2 && (size_t)(end - q) >= ns && memcmp(q, suffix, ns) == 0)
			return true;
		q += any;
		if (q - d >= 1 + any && q <= end && (size_t)(end - q) >= ns && memcmp(q, suffix, ns) == 0)
			return true;
		p++;
	}
	return false;
}

static bool is_kernel_dso(struct perfscript_str dso)
{
	return ((dso.len && dso.p[0] == '[') || ends(dso, "vmlinux")) && !has(dso.p, dso.len, "unknown");
}

/* A function of an interpreter's program, as symbolize prints it: without an address, in "[python]". */
static bool is_script(const struct perfscript_frame *f)
{
	return is(f->pc, "0") && !is(f->sym, "--") && f->dso.len && f->dso.p[0] == '[' &&
	       is_kernel_dso(f->dso) && !has(f->dso.p, f->dso.len, "kernel");
}

/* Does S have "[...]" with something inside? */
static bool has_brackets(struct perfscript_str s)
{
	const char *p = s.p, *end = s.p + s.len;

	while (p < end && (p = memchr(p, '[', (size_t)(end - p)))) {
		const char *close = memchr(p, ']', (size_t)(end - p));

		if (!close)
			return false;
		if (close > p + 1)
			return true;
		p++;
	}
	return false;
}

static bool can_inline(struct perfscript_str dso)
{
	return !has_perf_map(dso, "perf-", "map", true) && !has(dso.p, dso.len, "kernel.") &&
	       !has_brackets(dso);
}

/* [name of the file], or [unknown] if there is none. */
static void put_unknown(const struct perfscript_frame *f, bool addrs, struct buf *out)
{
	struct perfscript_str name = f->dso;
	const char *slash = name.len ? memrchr(name.p, '/', name.len) : NULL;

	if (is(f->dso, "[unknown]"))
		name = (struct perfscript_str){ .p = "unknown", .len = 7 };
	else if (slash)
		name = (struct perfscript_str){ .p = slash + 1,
			.len = (size_t)(name.p + name.len - slash - 1) };
	buf_put(out, "[", 1);
	buf_put(out, name.p, name.len);
	if (addrs) {
		buf_put(out, " <", 2);
		buf_put(out, f->pc.p, f->pc.len);
		buf_put(out, ">", 1);
	}
	buf_put(out, "]", 1);
}

/* Is it a Go method, net/http.(*Client).Do? Its parentheses are part of the name. */
static bool is_go_method(const char *p, size_t len)
{
	const char *open = len ? memmem(p, len, ".(", 2) : NULL;

	return open && memmem(open + 2, (size_t)(p + len - open - 2), ").", 2);
}

/* The start of the arguments. */
static size_t args_at(const char *p, size_t len)
{
	static const char anon[] = "(anonymous namespace)";
	const size_t n = sizeof(anon) - 1;

	for (size_t i = 0; i < len; i++) {
		if (p[i] == '(' && (len - i < n || memcmp(p + i, anon, n) != 0))
			return i;
	}
	return len;
}

/* Clean the LEN bytes at P in place; returns their new length. */
static size_t tidy(char *p, size_t len, bool balanced, bool java)
{
	size_t n = 0, all;

	if (balanced)
		all = balanced_cut(p, len);
	else
		all = is_go_method(p, len) ? len : args_at(p, len);
	for (size_t i = 0; i < all; i++) {
		if (balanced || (p[i] != '"' && p[i] != '\''))
			p[n++] = p[i] == ';' ? ':' : p[i];
	}
	if (java && n && p[0] == 'L' && memchr(p, '/', n))
		memmove(p, p + 1, --n);
	return n;
}

static const char *annotation(const struct foldframe_opts *o, const struct perfscript_frame *f, const char *p,
	size_t len, bool inlined)
{
	bool script = is_script(f);

	if (inlined || (o->inlined && is(f->dso, "inlined")))
		return has(p, len, "_[i]") ? "" : "_[i]";
	if (o->kernel && !script && is_kernel_dso(f->dso))
		return "_[k]";
	if (o->jit && (script || has_perf_map(f->dso, "/tmp/perf-", ".map", false)))
		return has(p, len, "_[j]") ? "" : "_[j]";
	return "";
}

static void put_function(const struct perfscript_frame *f, struct perfscript_str name,
	const struct foldframe_opts *o, bool java, bool inlined, struct buf *out)
{
	size_t at;
	const char *mark;

	if (inlined)
		buf_put(out, ";", 1);
	at = out->len;
	if (is(name, "[unknown]"))
		put_unknown(f, o->addrs, out);
	else
		buf_put(out, name.p, name.len);
	if (out->failed)
		return;
	if (out->len > at)
		out->len = at + tidy((char *)out->p + at, out->len - at, o->balanced, java);
	mark = annotation(o, f, (const char *)out->p + at, out->len - at, inlined);
	buf_put(out, mark, strlen(mark));
}

static inline bool is_special(char c)
{
	static const bool special[256] = {
		['-'] = true, ['('] = true, [';'] = true, ['"'] = true, ['\''] = true
	};

	return special[(unsigned char)c];
}

#ifdef __SSE2__
static inline bool has_special16(const char *p)
{
	__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
	__m128i hit =
		_mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('-')), _mm_cmpeq_epi8(v, _mm_set1_epi8('(')));

	hit = _mm_or_si128(hit, _mm_cmpeq_epi8(v, _mm_set1_epi8(';')));
	hit = _mm_or_si128(hit, _mm_cmpeq_epi8(v, _mm_set1_epi8('"')));
	hit = _mm_or_si128(hit, _mm_cmpeq_epi8(v, _mm_set1_epi8('\'')));
	return _mm_movemask_epi8(hit) != 0;
}
#endif

/* Can the name be used unchanged? */
static bool is_plain(const char *p, size_t len)
{
	if (*p == '[')
		return false;
#ifdef __SSE2__
	if (len >= 16) {
		for (size_t i = 0; i + 16 < len; i += 16) {
			if (has_special16(p + i))
				return false;
		}
		return !has_special16(p + len - 16);
	}
#endif
	for (size_t i = 0; i < len; i++) {
		if (is_special(p[i]))
			return false;
	}
	return true;
}

static int put_inlined(
	struct inliner *in, const struct perfscript_frame *f, size_t func_len, struct buf *out, struct err *e)
{
	struct inliner_query q = {
		.pc = f->pc.p,
		.pc_len = f->pc.len,
		.dso = f->dso.p,
		.dso_len = f->dso.len,
		.sym = f->sym.p,
		.sym_len = f->sym.len,
		.func_len = func_len,
	};

	return inliner_put(in, &q, out, e);
}

/* Each function of "a->b->c". */
static int put_functions(const struct perfscript_frame *f, const char *p, const char *end,
	const struct foldframe_opts *o, bool java, struct buf *out)
{
	size_t at = out->len;
	int n = 0;

	while (end - p >= 2 && end[-1] == '>' && end[-2] == '-')
		end -= 2; /* there is no function after the last "->" */
	while (p < end) {
		const char *arrow = memmem(p, (size_t)(end - p), "->", 2), *stop = arrow ? arrow : end;

		put_function(
			f, (struct perfscript_str){ .p = p, .len = (size_t)(stop - p) }, o, java, n > 0, out);
		if (out->len - at > FOLDFRAME_MAX) {
			out->len = at;
			return -EFBIG;
		}
		n++;
		p = arrow ? arrow + 2 : end;
	}
	return n;
}

/* Each function of a chain, but not at an arrow that is a part of a name. */
static int put_balanced(const struct perfscript_frame *f, size_t len, const struct foldframe_opts *o,
	bool java, struct buf *out)
{
	struct perfscript_str name;
	struct balanced b;
	size_t at = out->len;
	int n = 0;

	balanced_chain(&b, f->sym.p, len);
	while (balanced_next(&b, &name)) {
		put_function(f, name, o, java, n > 0, out);
		if (out->len - at > FOLDFRAME_MAX) {
			out->len = at;
			return -EFBIG;
		}
		n++;
	}
	return n;
}

/* "(bash)", what older versions of perf print for a process; by default also each name that begins with "(".
 */
static bool is_process(const char *p, size_t len, bool balanced)
{
	return p[0] == '(' && (!balanced || memchr(p, ')', len) == p + len - 1);
}

int foldframe_put(const struct perfscript_frame *f, const struct foldframe_opts *o, bool java,
	struct buf *out, struct err *e)
{
	size_t len = perfscript_plain_len(f->sym);
	int n;

	if (o->inliner && can_inline(f->dso)) {
		n = put_inlined(o->inliner, f, len, out, e);
		if (n)
			return n;
	}
	if (!len || is_process(f->sym.p, len, o->balanced))
		return 0;
	if (o->kernel || o->jit || o->inlined || (java && memchr(f->sym.p, '/', len)) ||
		!is_plain(f->sym.p, len))
		return o->balanced ? put_balanced(f, len, o, java, out)
				   : put_functions(f, f->sym.p, f->sym.p + len, o, java, out);
	buf_put(out, f->sym.p, len);
	return 1;
}

enum foldframe_side foldframe_side(const struct perfscript_frame *f)
{
	static const char *const user[] = { "[vdso]", "[vsyscall]", "[heap]", "[stack", "[anon",
		"[uprobes]" };

	if (is(f->sym, "--"))
		return FOLDFRAME_WAKER;
	for (size_t i = 0; i < ARRAY_LEN(user); i++) {
		if (begins(f->dso, user[i]))
			return FOLDFRAME_USER;
	}
	/* the upper half of the address space is the kernel's, with or without a name */
	if (f->pc.len == 16 && ((f->pc.p[0] >= '8' && f->pc.p[0] <= '9') || f->pc.p[0] >= 'a'))
		return FOLDFRAME_KERNEL;
	return is_kernel_dso(f->dso) && !is_script(f) ? FOLDFRAME_KERNEL : FOLDFRAME_USER;
}
