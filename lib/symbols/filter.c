/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/filter.h"
#include "base/hex.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#define WINDOW (256u << 10)
#define KERNEL_HALF (UINT64_C(1) << 63)

#define JOBS 64u

/* An address to name: its name replaces the bytes from CUT to NEXT. */
struct job {
	const char *cut, *next;
	uint64_t addr;
	bool frame;
};

struct stream {
	struct kallsyms_filter *f;
	struct out *o;
	char *window;
	size_t len;
	bool in_line; /* the window begins inside a line that is too long to be ours */
	bool in_stack; /* the last line was a frame */
	const char *pass_from; /* first byte that was not written yet */
	/* looked up together, which is far faster than one by one */
	struct job jobs[JOBS];
	uint64_t lookup[JOBS];
	size_t njobs;
};

/* ---- where the kernel is ---- */

static const char *file_of(const struct kallsyms_filter *f)
{
	return f->file ? f->file : "/proc/kallsyms";
}

int kallsyms_filter_place(struct kallsyms_filter *f, uint64_t stext, struct err *e)
{
	uint64_t own = kallsyms_address(f->ks, "_stext");
	size_t dropped = 0;
	int err;

	f->placed = true;
	if (own == stext)
		return 0;
	if (!f->relocate) {
		err_set(e, -ESTALE,
			"'%s' is of another boot: its _stext is 0x%llx, that of the addresses 0x%llx",
			file_of(f), (unsigned long long)own, (unsigned long long)stext);
		err_hint(e, "if it is the same kernel, --relocate accounts for KASLR; else give its own copy "
			    "with -k");
		return -ESTALE;
	}
	err = kallsyms_relocate(f->ks, stext, &dropped, e);
	f->dropped += dropped;
	return err ? err_prefix(e, "'%s'", file_of(f)), err : 0;
}

int kallsyms_filter_place_live(struct kallsyms_filter *f, struct err *e)
{
	struct kallsyms *live;
	uint64_t stext;
	int err;

	if (f->placed || !f->relocate || !f->file) {
		f->placed = true;
		return 0;
	}
	err = kallsyms_load(NULL, &live, e);
	if (err) {
		err_prefix(e, "cannot determine where the running kernel is");
		err_hint(e, "--stext ADDR gives the address of _stext");
		return err;
	}
	stext = kallsyms_address(live, "_stext");
	kallsyms_free(live);
	return kallsyms_filter_place(f, stext, e);
}

/* Find the value of the word "KEY=value" on a line. */
static bool find_value(const char *line, size_t len, const char *key, const char **value, size_t *value_len)
{
	size_t key_len = strlen(key);
	const char *p = memmem(line, len, key, key_len), *end = line + len, *q;

	if (!p || p == line || p[-1] != ' ')
		return false;
	p += key_len;
	for (q = p; q<end && * q> ' '; q++)
		;
	*value = p;
	*value_len = (size_t)(q - p);
	return true;
}

static int check_release(const struct kallsyms_filter *f, const char *release, size_t len, struct err *e)
{
	struct utsname u;

	if (f->file || uname(&u) < 0 || (strlen(u.release) == len && memcmp(u.release, release, len) == 0))
		return 0;
	err_set(e, -ESTALE, "the addresses are of kernel %.*s, this one is %s", (int)MIN(len, 64u), release,
		u.release);
	err_hint(e, "give that kernel's own copy of /proc/kallsyms with -k");
	return -ESTALE;
}

static bool is_kernel_comment(const char *line, size_t len)
{
	return len >= 9 && memcmp(line, "# kernel:", 9) == 0;
}

static int take_comment(struct kallsyms_filter *f, const char *line, size_t len, struct err *e)
{
	const char *value;
	size_t value_len;
	uint64_t stext;
	int err = 0;

	if (f->fixed)
		return 0;
	if (find_value(line, len, "release=", &value, &value_len))
		err = check_release(f, value, value_len, e);
	if (!err && find_value(line, len, "stext=", &value, &value_len) &&
		kallsyms_filter_hex(value, value_len, &stext) && stext)
		err = kallsyms_filter_place(f, stext, e);
	return err;
}

/* ---- naming ---- */

bool kallsyms_filter_hex(const char *p, size_t len, uint64_t *ret)
{
	/* 1 + value of the digit, 0 for any other byte */
	static const uint8_t digit[256] = { ['0'] = 1,
		['1'] = 2,
		['2'] = 3,
		['3'] = 4,
		['4'] = 5,
		['5'] = 6,
		['6'] = 7,
		['7'] = 8,
		['8'] = 9,
		['9'] = 10,
		['a'] = 11,
		['b'] = 12,
		['c'] = 13,
		['d'] = 14,
		['e'] = 15,
		['f'] = 16,
		['A'] = 11,
		['B'] = 12,
		['C'] = 13,
		['D'] = 14,
		['E'] = 15,
		['F'] = 16 };
	uint64_t v = 0;

	if (len > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
		p += 2, len -= 2;
	if (len == 16 && hexword_16(p, ret))
		return true;
	if (len - 1 > 15)
		return false;
	for (size_t i = 0; i < len; i++) {
		uint8_t d = digit[(unsigned char)p[i]];

		if (!d)
			return false;
		v = v << 4 | (uint64_t)(d - 1);
	}
	*ret = v;
	return true;
}

static void put_text(struct kallsyms_filter *f, const char *s, struct out *o)
{
	char escaped[TEXT_ESCAPED_MAX(1024)];

	if (kallsyms_plain(f->ks))
		out_str(o, s);
	else
		out_put(o, escaped, text_escape(escaped, sizeof(escaped), s, strlen(s), TEXT_WORD));
}

/* "name+0x1f" */
static void put_symbol(
	struct kallsyms_filter *f, const struct kallsyms_sym *sym, uint64_t addr, struct out *o)
{
	put_text(f, sym->name, o);
	out_put(o, "+0x", 3);
	out_hex(o, addr - sym->start, 0);
}

/* "name+0x1f [module]"; if SYM has no name, "0x... [unknown]". */
static void put_address(
	struct kallsyms_filter *f, const struct kallsyms_sym *sym, uint64_t addr, struct out *o)
{
	if (!sym->name) {
		out_put(o, "0x", 2);
		out_hex(o, addr, 0);
		out_put(o, " [unknown]", 10);
		return;
	}
	put_symbol(f, sym, addr, o);
	if (*sym->module) {
		out_put(o, " [", 2);
		put_text(f, sym->module, o);
		out_char(o, ']');
	} else if (f->modules) {
		out_put(o, " [kernel]", 9);
	}
}

static void count(struct kallsyms_filter *f, const struct kallsyms_sym *sym)
{
	f->named += sym->name != NULL;
	f->unnamed += sym->name == NULL;
}

void kallsyms_filter_address(struct kallsyms_filter *f, uint64_t addr, struct out *o)
{
	struct kallsyms_sym sym;

	if (!kallsyms_find(f->ks, addr - f->return_addresses, &sym))
		sym.name = NULL;
	count(f, &sym);
	put_address(f, &sym, addr, o);
}

/* Is P, the rest of a frame's line after the address, that of a raw kernel frame? */
static bool is_raw(const char *p, size_t len)
{
	static const char head[] = " [unknown] (";
	static const struct {
		const char *s;
		size_t len;
	} dsos[] = { { "[kernel.kallsyms])", 18 }, { "[unknown])", 10 }, { "[kernel])", 9 } };
	size_t head_len = sizeof(head) - 1;

	if (len < head_len || memcmp(p, head, head_len) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(dsos); i++)
		if (len - head_len == dsos[i].len && memcmp(p + head_len, dsos[i].s, dsos[i].len) == 0)
			return true;
	return false;
}

static bool parse_frame(const char *line, size_t len, struct job *ret)
{
	const char *p = line, *end = line + len, *space;

	while (p < end && (*p == '\t' || *p == ' '))
		p++;
	space = memchr(p, ' ', MIN((size_t)(end - p), 17u));
	if (!space || !is_raw(space, (size_t)(end - space)))
		return false;
	*ret = (struct job){ .cut = space + 1, .next = end, .frame = true };
	return kallsyms_filter_hex(p, (size_t)(space - p), &ret->addr) && ret->addr >= KERNEL_HALF;
}

/* "name+0x1f ([module])" */
static void put_frame(struct kallsyms_filter *f, const struct kallsyms_sym *sym, uint64_t addr, struct out *o)
{
	put_symbol(f, sym, addr, o);
	out_put(o, " ([", 3);
	put_text(f, *sym->module ? sym->module : "kernel.kallsyms", o);
	out_put(o, "])", 2);
}

/* ---- the stream ---- */

/* Write what precedes TO unchanged; the next unchanged piece begins at NEXT. */
static void pass_until(struct stream *s, const char *to, const char *next)
{
	out_put(s->o, s->pass_from, (size_t)(to - s->pass_from));
	s->pass_from = next;
}

/* Name the waiting addresses. */
static void drain(struct stream *s)
{
	struct kallsyms_sym syms[JOBS];

	kallsyms_find_many(s->f->ks, s->lookup, s->njobs, syms);
	for (size_t i = 0; i < s->njobs; i++) {
		const struct job *job = &s->jobs[i];

		count(s->f, &syms[i]);
		if (job->frame && !syms[i].name)
			continue; /* leave it as it is */
		pass_until(s, job->cut, job->next);
		if (job->frame)
			put_frame(s->f, &syms[i], job->addr, s->o);
		else
			put_address(s->f, &syms[i], job->addr, s->o);
	}
	s->njobs = 0;
}

static void add_job(struct stream *s, struct job job, bool one_back)
{
	s->jobs[s->njobs] = job;
	s->lookup[s->njobs++] = job.addr - one_back;
	if (s->njobs == JOBS)
		drain(s);
}

/* One line of LEN bytes, without its newline. */
static int take_line(struct stream *s, const char *line, size_t len, struct err *e)
{
	struct job job = { .cut = line, .next = line + len };
	bool first = !s->in_stack;
	int err = 0;

	s->in_stack = len && (line[0] == '\t' || line[0] == ' ');
	if (len && line[0] == '#') {
		if (!is_kernel_comment(line, len))
			return 0;
		drain(s); /* before the comment moves the symbols */
		return take_comment(s->f, line, len, e);
	}
	if (s->in_stack ? !parse_frame(line, len, &job) : !kallsyms_filter_hex(line, len, &job.addr))
		return 0;
	if (!s->f->placed)
		err = kallsyms_filter_place_live(s->f, e);
	if (err)
		return err;
	/* the first frame is the PC; the others are return addresses, after a call */
	add_job(s, job, job.frame ? !first : s->f->return_addresses);
	return 0;
}

/* Process the whole lines in the window; move the start of an incomplete one to its front. */
static int take_window(struct stream *s, struct err *e)
{
	const char *p = s->window, *end = s->window + s->len, *nl;
	int err = 0;

	s->pass_from = p;
	for (; !err && (nl = memchr(p, '\n', (size_t)(end - p))); p = nl + 1) {
		if (!s->in_line)
			err = take_line(s, p, (size_t)(nl - p), e);
		else
			s->in_line = s->in_stack = false;
	}
	drain(s);
	if (err)
		return err;
	if (p == s->window && s->len == WINDOW) {
		s->in_line = true;
		p = end;
	}
	pass_until(s, p, p);
	s->len = (size_t)(end - p);
	memmove(s->window, p, s->len);
	return 0;
}

/* Process a last line without a newline. */
static int take_rest(struct stream *s, struct err *e)
{
	int err = 0;

	s->pass_from = s->window;
	if (!s->in_line)
		err = take_line(s, s->window, s->len, e);
	drain(s);
	if (!err)
		pass_until(s, s->window + s->len, NULL);
	return err;
}

int kallsyms_filter_run(struct kallsyms_filter *f, int fd, struct out *o, struct err *e)
{
	_cleanup_free_ char *window = malloc(WINDOW);
	struct stream s = { .f = f, .o = o, .window = window };
	ssize_t got;
	int err = 0;

	if (!window)
		return err_nomem(e, "a window on the text");
	while (!err) {
		err = out_flush(o, e);
		if (err)
			return err;
		got = read(fd, window + s.len, WINDOW - s.len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, -errno, "cannot read standard input");
		if (got == 0)
			break;
		s.len += (size_t)got;
		err = take_window(&s, e);
	}
	if (!err)
		err = take_rest(&s, e);
	return err ? err : out_flush(o, e);
}
