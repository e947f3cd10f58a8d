/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/sampler.h"
#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define PF_KTHREAD 0x00200000u /* include/linux/sched.h */

/* The rest of a text. */
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

/* A number, with nothing before it. More than 64 bits are bad. */
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

/* Skip WORD; bad if it is not there. */
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

/* A field of stat. A negative one is taken modulo 2^64. */
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

/* Fields are numbered as in proc_pid_stat(5). Those up to the state have been read. */
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
	/* the kernel writes 1 for a reader that may not trace the process */
	if (s->kthread || code == 1)
		s->image = 0;
	else
		s->image = code ? mixed : PROCPARSE_NO_IMAGE;
}

bool procparse_stat(const char *p, size_t len, struct procparse_stat *ret)
{
	struct text t = text_of(p, len);
	/* the name may contain ')' too: it ends at the last one */
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

/* The last number of a line, which is that of the innermost namespace. */
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

	/* a newline in a name is written as \n, so a name cannot forge a line */
	do {
		for (unsigned int i = 0; i < ARRAY_LEN(keys); i++) {
			struct text v = t;

			/* most lines begin with another letter */
			if (t.p == t.end || *t.p != keys[i][0] || !starts(&t, keys[i]))
				continue;
			v.p += strlen(keys[i]);
			seen |= 1u << i;
			if (i < 3)
				*(i == 0 ? &s.tgid : i == 1 ? &s.ns_tgid : &s.ns_tid) = last_number(v);
			else
				*(i == 3 ? &s.voluntary : &s.involuntary) = number(&v, 10);
			/* the newline after the number shows that it is complete */
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

/* The name ends before the last '+'. */
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
	/* newer kernels may put a build ID after the name, inside the brackets */
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

#define FILES_LEAST 64 /* descriptors to leave for the rest of the program */
#define FILES_MOST 65536

void sampler_init(struct sampler *l, unsigned int wanted, bool memory, struct helper *helper)
{
	size_t files = fdlimit_raise(FILES_MOST * 2);

	*l = (struct sampler){ .helper = helper,
		.memory = memory,
		.wanted = wanted | 1u << PROCFILE_SCHEDSTAT | 1u << PROCFILE_STATUS | 1u << PROCFILE_STAT |
			  1u << PROCFILE_AGAIN };
	l->max_open = files <= 2 * FILES_LEAST ? 0 : MIN(files / 2, (size_t)FILES_MOST);
}

void sampler_forget(struct sampler *l, struct sampler_thread *t)
{
	for (size_t i = 0; i < PROCFILE_LOOK; i++) {
		if (t->fd[i] < 0)
			continue;
		close(t->fd[i]);
		t->fd[i] = -1;
		l->n_open--;
	}
	if (t->kept)
		helper_forget(l->helper, t->pid, t->tid);
	t->kept = false;
}

static int open_file(const struct sampler_thread *t, enum procfile f)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", t->pid, t->tid, procfile_name(f));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* --- texts from the helper --- */

static ssize_t copy_text(const struct helper_texts *texts, enum procfile f, char *text, size_t cap)
{
	ssize_t n = texts->len[f];

	if (n > 0) {
		n = MIN(n, (ssize_t)cap);
		memcpy(text, texts->text[f], (size_t)n);
	}
	return n;
}

size_t sampler_request(struct sampler *l, struct sampler_thread *const *t, size_t n)
{
	struct helper_thread threads[HELPER_THREADS] = { 0 };
	ssize_t got;

	n = MIN(n, (size_t)HELPER_THREADS);
	for (size_t i = 0; i < n; i++) {
		unsigned int wanted = l->wanted;

		for (size_t f = 0; f < PROCFILE_LOOK; f++)
			if (t[i]->refused[f] || (f == PROCFILE_STACK && l->no_stack))
				wanted &= ~(1u << f);
		threads[i] = (struct helper_thread){ t[i]->pid, t[i]->tid, wanted, l->memory };
	}
	got = helper_files_of(l->helper, threads, n, l->texts);
	/* if the helper has ended, there are our own permissions */
	for (size_t i = 0; got < 0 && i < n; i++)
		l->texts[i].files = 0;
	for (ssize_t i = 0; i < got; i++)
		t[i]->kept = true;
	return got < 0 ? n : (size_t)got;
}

/* Request a file that we may not open. FAILED is the error of open(2), returned if there is no reply. */
static ssize_t ask_one(
	struct sampler *l, struct sampler_thread *t, enum procfile f, char *text, size_t cap, ssize_t failed)
{
	struct helper_texts texts;

	if (!l->helper || helper_files(l->helper, t->pid, t->tid, 1u << f, true, &texts) != 0)
		return failed;
	t->kept = true;
	return copy_text(&texts, f, text, cap);
}

/* --- files --- */

/* The text of F, up to CAP bytes: its length, or -errno. */
static ssize_t read_file(struct sampler *l, struct sampler_thread *t, enum procfile f, char *text, size_t cap)
{
	int fd = t->fd[f];
	ssize_t n;

	if (l->given && (l->given->files >> f & 1))
		return copy_text(l->given, f, text, cap);
	if (fd < 0)
		fd = open_file(t, f);
	if (fd < 0)
		return ask_one(l, t, f, text, cap, fd);
	n = pread(fd, text, cap, 0);
	n = n < 0 ? -errno : n;
	if (t->fd[f] >= 0)
		return n;
	if (n >= 0 && l->n_open < l->max_open) {
		t->fd[f] = fd;
		l->n_open++;
	} else {
		close(fd);
	}
	return n;
}

static bool is_gone(ssize_t rc)
{
	return rc == -ESRCH || rc == -ENOENT;
}

uint32_t sampler_state(char letter)
{
	/* TASK_IDLE is UNINTERRUPTIBLE and NOLOAD */
	static const struct {
		char letter;
		uint32_t bits;
	} states[] = { { 'S', 0x1 }, { 'D', 0x2 }, { 'T', 0x4 }, { 't', 0x8 }, { 'P', 0x40 },
		{ 'I', 0x402 } };

	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		if (states[i].letter == letter)
			return states[i].bits;
	return UINT32_MAX;
}

/*
 * Read F, which is schedstat. 1 if the kernel keeps this account; 0 if not: the
 * file is missing or all zeroes; -ESRCH if T is gone.
 */
static int read_schedstat(
	struct sampler *l, struct sampler_thread *t, enum procfile f, struct procparse_schedstat *ret)
{
	char text[128];
	ssize_t n = read_file(l, t, f, text, sizeof(text));

	*ret = (struct procparse_schedstat){ 0 };
	if (n == -ESRCH)
		return -ESRCH;
	if (n < 0)
		return 0;
	return procparse_schedstat(text, (size_t)n, ret) && (ret->run_ns || ret->slices);
}

static int read_status(struct sampler *l, struct sampler_thread *t, struct sampler_seen *s, struct err *e)
{
	ssize_t n = read_file(l, t, PROCFILE_STATUS, l->text, sizeof(l->text));

	if (is_gone(n))
		return -ESRCH;
	if (n < 0)
		return err_sys(e, (int)n, "cannot read '/proc/%u/task/%u/status'", t->pid, t->tid);
	if (!procparse_status(l->text, (size_t)n, &s->status))
		return err_set(e, -EBADMSG, "'/proc/%u/task/%u/status' is not as expected", t->pid, t->tid);
	return 0;
}

static int read_stat(struct sampler *l, struct sampler_thread *t, struct sampler_seen *s, struct err *e)
{
	char text[1024];
	ssize_t n = read_file(l, t, PROCFILE_STAT, text, sizeof(text));

	if (is_gone(n))
		return -ESRCH;
	if (n < 0)
		return err_sys(e, (int)n, "cannot read '/proc/%u/task/%u/stat'", t->pid, t->tid);
	if (!procparse_stat(text, (size_t)n, &s->stat))
		return err_set(e, -EBADMSG, "'/proc/%u/task/%u/stat' is not as expected", t->pid, t->tid);
	return s->stat.state == 'Z' || s->stat.state == 'X' ? -ESRCH : 0;
}

/* The length of F's text if it is wanted and may be read, else 0. */
static size_t read_wanted(
	struct sampler *l, struct sampler_thread *t, enum procfile f, char *text, size_t cap)
{
	ssize_t n;

	if (!(l->wanted & 1u << f) || t->refused[f])
		return 0;
	n = read_file(l, t, f, text, cap);
	if (n < 0 && n != -ESRCH)
		t->refused[f] = (int)n;
	return n < 0 ? 0 : (size_t)n;
}

static void read_stack(struct sampler *l, struct sampler_thread *t, struct sampler_seen *s)
{
	size_t n;

	if (l->no_stack)
		t->refused[PROCFILE_STACK] = l->no_stack;
	n = read_wanted(l, t, PROCFILE_STACK, l->text, sizeof(l->text));
	/* without CAP_SYS_ADMIN all threads are refused; by the rules of ptrace(2), single ones */
	if (t->refused[PROCFILE_STACK] == -EACCES || t->refused[PROCFILE_STACK] == -ENOENT)
		l->no_stack = t->refused[PROCFILE_STACK];
	if (n) {
		s->stack = l->text;
		s->stack_len = n;
	}
}

static void read_place(struct sampler *l, struct sampler_thread *t, struct sampler_seen *s)
{
	char text[256];
	size_t n = read_wanted(l, t, PROCFILE_SYSCALL, text, sizeof(text));

	s->has_syscall = n && procparse_syscall(text, n, &s->syscall);
	if (s->has_syscall && s->syscall.running) {
		s->waiting = s->has_syscall = false;
		return;
	}
	read_stack(l, t, s);
	if (s->stack)
		return;
	n = read_wanted(l, t, PROCFILE_WCHAN, text, sizeof(text));
	n = MIN(procparse_wchan(text, n), sizeof(s->wchan) - 1);
	memcpy(s->wchan, text, n);
	s->wchan[n] = '\0';
}

static bool equal(const struct procparse_schedstat *a, const struct procparse_schedstat *b)
{
	return a->run_ns == b->run_ns && a->slices == b->slices;
}

/* Without schedstat, a thread that waited then has not run if it has made no context switch since. */
static bool has_not_run(const struct sampler_thread *t, const struct sampler_seen *s)
{
	if (!t->has_last || t->has_schedstat != s->has_schedstat)
		return false;
	if (s->has_schedstat)
		return equal(&t->sched, &s->sched);
	return t->status.voluntary == s->status.voluntary && t->status.involuntary == s->status.involuntary;
}

static int read_more(struct sampler *l, struct sampler_thread *t, struct sampler_seen *s, struct err *e)
{
	struct procparse_schedstat after;
	int rc;

	rc = read_stat(l, t, s, e);
	if (rc)
		return rc;
	s->waiting = sampler_state(s->stat.state) != UINT32_MAX;
	if (s->waiting)
		read_place(l, t, s);
	if (!s->waiting || !s->has_schedstat)
		return 0;
	rc = read_schedstat(l, t, l->given ? PROCFILE_AGAIN : PROCFILE_SCHEDSTAT, &after);
	if (rc < 0)
		return rc;
	s->waiting = equal(&after, &s->sched);
	if (s->waiting && l->given && l->memory)
		s->copied = l->given;
	return 0;
}

/* ASK: the files of a thread that has run are to be requested. */
static int take(struct sampler *l, struct sampler_thread *t, bool ask, struct sampler_seen *s, struct err *e)
{
	int rc;

	*s = (struct sampler_seen){ .at_ns = l->given ? l->given->at_ns : now_ns(), .first = !t->has_last };
	rc = read_schedstat(l, t, PROCFILE_SCHEDSTAT, &s->sched);
	if (rc < 0)
		return rc;
	s->has_schedstat = rc > 0;
	s->status = t->status;
	if (s->has_schedstat && has_not_run(t, s)) {
		s->same = true;
		return 0;
	}
	if (ask && s->has_schedstat)
		return SAMPLER_RAN;
	rc = read_status(l, t, s, e);
	if (!rc && !s->has_schedstat && has_not_run(t, s))
		s->same = true;
	else if (!rc && ask)
		return SAMPLER_RAN;
	else if (!rc)
		rc = read_more(l, t, s, e);
	if (rc)
		return rc;
	t->has_last = true;
	t->has_schedstat = s->has_schedstat;
	t->sched = s->sched;
	t->status = s->status;
	return 0;
}

int sampler_take(struct sampler *l, struct sampler_thread *t, struct sampler_seen *s, struct err *e)
{
	l->given = NULL;
	return take(l, t, helper_pid(l->helper) != 0, s, e);
}

int sampler_requested(
	struct sampler *l, size_t at, struct sampler_thread *t, struct sampler_seen *s, struct err *e)
{
	l->given = l->texts[at].files ? &l->texts[at] : NULL;
	return take(l, t, false, s, e);
}
