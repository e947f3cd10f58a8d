/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/procparse.h"

#include <ctype.h>
#include <string.h>

#define PF_KTHREAD 0x00200000u /* include/linux/sched.h */

/* What is left of a text. */
struct text {
	const char *p, *end;
	bool bad;
};

static struct text text_of(const char *p, size_t len)
{
	return (struct text){ .p = p, .end = p + len };
}

static int digit(const struct text *t, unsigned int base)
{
	unsigned char c = t->p < t->end ? (unsigned char)*t->p : 0;
	int v = isdigit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

	return v < (int)base ? v : -1;
}

/* A number and nothing before it; one that has more than 64 bits is bad. */
static uint64_t number(struct text *t, unsigned int base)
{
	uint64_t v = 0;
	int d = digit(t, base);

	if (d < 0)
		t->bad = true;
	for (; d >= 0 && !t->bad; d = digit(t, base)) {
		if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, (uint64_t)d, &v))
			t->bad = true;
		t->p++;
	}
	return t->bad ? 0 : v;
}

static uint32_t number32(struct text *t)
{
	uint64_t v = number(t, 10);

	if (v > UINT32_MAX)
		t->bad = true;
	return (uint32_t)v;
}

/* Goes past WORD, or is bad. */
static void expect(struct text *t, const char *word)
{
	size_t len = strlen(word);

	if (t->bad || (size_t)(t->end - t->p) < len || memcmp(t->p, word, len) != 0)
		t->bad = true;
	else
		t->p += len;
}

static bool starts(const struct text *t, const char *word)
{
	size_t len = strlen(word);

	return (size_t)(t->end - t->p) >= len && memcmp(t->p, word, len) == 0;
}

static uint64_t hex(struct text *t)
{
	expect(t, "0x");
	return t->bad ? 0 : number(t, 16);
}

bool procparse_schedstat(const char *p, size_t len, struct procparse_schedstat *ret)
{
	struct text t = text_of(p, len);
	struct procparse_schedstat s;

	s.run_ns = number(&t, 10);
	expect(&t, " ");
	s.delay_ns = number(&t, 10);
	expect(&t, " ");
	s.slices = number(&t, 10);
	expect(&t, "\n");
	if (t.bad)
		return false;
	*ret = s;
	return true;
}

/* A field of stat, which may be negative: that one is taken modulo 2^64. */
static uint64_t stat_field(struct text *t)
{
	bool minus = false;
	uint64_t v;

	expect(t, " ");
	if (!t->bad && starts(t, "-")) {
		minus = true;
		t->p++;
	}
	v = t->bad ? 0 : number(t, 10);
	return minus ? -v : v;
}

/* Numbers as in proc_pid_stat(5); those up to the state have been read. */
static void stat_fields(struct text *t, struct procparse_stat *s)
{
	enum { PPID = 4, FLAGS = 9, START = 22, CODE = 26, CODE_END, STACK };
	uint64_t mixed = 0, code = 1;

	for (unsigned int i = PPID; i <= STACK && !t->bad; i++) {
		uint64_t v = stat_field(t);

		if (i == PPID)
			s->ppid = (uint32_t)v;
		else if (i == FLAGS)
			s->kthread = v & PF_KTHREAD;
		else if (i == START)
			s->start_ticks = v;
		if (i == CODE)
			code = v;
		if (i >= CODE)
			mixed = (mixed ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	}
	/* 1 is what the kernel writes for a reader who may not trace the process */
	if (s->kthread || code == 1)
		s->image = 0;
	else
		s->image = code ? mixed : PROCPARSE_NO_IMAGE;
}

bool procparse_stat(const char *p, size_t len, struct procparse_stat *ret)
{
	struct text t = text_of(p, len);
	/* the name may hold brackets too: it ends at the last one */
	const char *close = memrchr(p, ')', len);
	struct procparse_stat s = { 0 };
	size_t n;

	s.tid = number32(&t);
	expect(&t, " (");
	if (t.bad || !close || close < t.p)
		return false;
	n = MIN((size_t)(close - t.p), sizeof(s.comm) - 1);
	memcpy(s.comm, t.p, n);
	if (memchr(s.comm, 0, n))
		return false;
	t.p = close;
	expect(&t, ") ");
	if (t.bad || t.p == t.end || !isalpha((unsigned char)*t.p))
		return false;
	s.state = *t.p++;
	stat_fields(&t, &s);
	if (t.bad)
		return false;
	*ret = s;
	return true;
}

static bool next_line(struct text *t)
{
	const char *nl = t->p < t->end ? memchr(t->p, '\n', (size_t)(t->end - t->p)) : NULL;

	t->p = nl ? nl + 1 : t->end;
	return nl != NULL;
}

/* The last of the numbers of a line: that of the innermost namespace. */
static uint32_t last_number(struct text t)
{
	uint32_t v = 0;

	while (!t.bad && starts(&t, "\t")) {
		t.p++;
		v = number32(&t);
	}
	return t.bad ? 0 : v;
}

bool procparse_status(const char *p, size_t len, struct procparse_status *ret)
{
	static const char *const keys[] = { "Tgid:", "NStgid:", "NSpid:", "voluntary_ctxt_switches:\t",
		"nonvoluntary_ctxt_switches:\t" };
	struct procparse_status s = { 0 };
	struct text t = text_of(p, len);
	unsigned int seen = 0;

	/* a newline in a name is written as \n: no line is forged */
	do {
		for (unsigned int i = 0; i < ARRAY_LEN(keys); i++) {
			struct text v = t;

			if (!starts(&t, keys[i]))
				continue;
			v.p += strlen(keys[i]);
			seen |= 1u << i;
			if (i < 3)
				*(i == 0 ? &s.tgid : i == 1 ? &s.ns_tgid : &s.ns_tid) = last_number(v);
			else
				*(i == 3 ? &s.voluntary : &s.involuntary) = number(&v, 10);
			/* the end of the number was seen, so it is whole */
			if (v.bad || (i >= 3 && !starts(&v, "\n")))
				return false;
		}
	} while (next_line(&t));
	if ((seen & 0x19) != 0x19 || !s.tgid)
		return false;
	*ret = s;
	return true;
}

bool procparse_syscall(const char *p, size_t len, struct procparse_syscall *ret)
{
	struct procparse_syscall s = { .nr = -1 };
	struct text t = text_of(p, len);

	if (starts(&t, "running")) {
		*ret = (struct procparse_syscall){ .running = true, .nr = -1 };
		return true;
	}
	if (starts(&t, "-1 ")) {
		t.p += 2;
	} else {
		uint32_t nr = number32(&t);

		if (nr > INT32_MAX)
			t.bad = true;
		s.nr = (int32_t)nr;
		for (size_t i = 0; i < ARRAY_LEN(s.args); i++) {
			expect(&t, " ");
			s.args[i] = hex(&t);
		}
	}
	expect(&t, " ");
	s.sp = hex(&t);
	expect(&t, " ");
	s.pc = hex(&t);
	expect(&t, "\n");
	if (t.bad)
		return false;
	*ret = s;
	return true;
}

static bool is_name(char c)
{
	return c > ' ' && c < 0x7f;
}

size_t procparse_wchan(const char *p, size_t len)
{
	size_t n = 0;

	while (n < len && is_name(p[n]))
		n++;
	if (n < len && p[n] != '\n' && p[n] != '\0')
		return 0;
	return n == 1 && p[0] == '0' ? 0 : n;
}

/* The name ends before its last '+'. */
static void frame_name(struct text *t, struct procparse_frame *f)
{
	const char *end = t->p, *plus = NULL;

	for (; end < t->end && is_name(*end); end++)
		if (*end == '+')
			plus = end;
	if (!plus || plus == t->p) {
		t->bad = true;
		return;
	}
	f->name = t->p;
	f->name_len = (size_t)(plus - t->p);
	t->p = plus + 1;
	f->offset = hex(t);
	expect(t, "/");
	f->size = hex(t);
}

static void frame_module(struct text *t, struct procparse_frame *f)
{
	expect(t, " [");
	f->module = t->p;
	while (!t->bad && t->p < t->end && is_name(*t->p) && *t->p != ']')
		t->p++;
	f->module_len = (size_t)(t->p - f->module);
	/* newer kernels may put a build ID behind the name, within the brackets */
	while (!t->bad && t->p < t->end && *t->p != ']' && *t->p != '\n')
		t->p++;
	expect(t, "]");
}

bool procparse_frame(const char **p, const char *end, struct procparse_frame *ret)
{
	struct text t = { .p = *p, .end = end };
	struct procparse_frame f = { 0 };

	expect(&t, "[<");
	while (!t.bad && digit(&t, 16) >= 0)
		t.p++;
	expect(&t, ">] ");
	if (!t.bad)
		frame_name(&t, &f);
	if (!t.bad && starts(&t, " ["))
		frame_module(&t, &f);
	expect(&t, "\n");
	if (t.bad)
		return false;
	*p = t.p;
	*ret = f;
	return true;
}
