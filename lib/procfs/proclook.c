/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/proclook.h"
#include "base/clock.h"
#include "procfs/fdlimit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define FILES_LEAST 64 /* of the limit: left to the rest of the program */
#define FILES_MOST 65536

/* What depends on who reads it, or on who has opened it. */
#define ASKED (1u << PROCFILE_STAT | 1u << PROCFILE_SYSCALL | 1u << PROCFILE_STACK | 1u << PROCFILE_WCHAN)

void proclook_init(struct proclook *l, unsigned int wanted, struct looker *looker)
{
	size_t files = fdlimit_raise(FILES_MOST * 2);

	*l = (struct proclook){ .looker = looker,
		.wanted = wanted | 1u << PROCFILE_SCHEDSTAT | 1u << PROCFILE_STATUS | 1u << PROCFILE_STAT };
	l->max_open = files <= 2 * FILES_LEAST ? 0 : MIN(files / 2, (size_t)FILES_MOST);
}

void proclook_forget(struct proclook *l, struct proclook_thread *t)
{
	for (size_t i = 0; i < PROCFILE_LOOK; i++) {
		if (t->fd[i] < 0)
			continue;
		close(t->fd[i]);
		t->fd[i] = -1;
		l->n_open--;
	}
	if (t->kept)
		looker_forget(l->looker, t->pid, t->tid);
	t->kept = false;
}

static int open_file(const struct proclook_thread *t, enum procfile f)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", t->pid, t->tid, procfile_name(f));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* --- what the looker has copied --- */

static ssize_t copy_text(const struct looker_texts *texts, enum procfile f, char *text, size_t cap)
{
	ssize_t n = texts->len[f];

	if (n > 0) {
		n = MIN(n, (ssize_t)cap);
		memcpy(text, texts->text[f], (size_t)n);
	}
	return n;
}

/* Everything that may take privileges, at once: a question takes as long as a few files. */
static void ask_all(struct proclook *l, struct proclook_thread *t)
{
	unsigned int wanted = l->wanted & ASKED;

	for (size_t i = 0; i < PROCFILE_LOOK; i++)
		if (t->refused[i] || (i == PROCFILE_STACK && l->no_stack))
			wanted &= ~(1u << i);
	if (!l->looker || looker_files(l->looker, t->pid, t->tid, wanted, true, &l->texts) != 0)
		return;
	t->kept = true;
	l->given = wanted;
}

/* One that our own rights do not reach: FAILED is how. */
static ssize_t ask_one(struct proclook *l, struct proclook_thread *t, enum procfile f, char *text, size_t cap,
	ssize_t failed)
{
	struct looker_texts texts;

	if (!l->looker || looker_files(l->looker, t->pid, t->tid, 1u << f, true, &texts) != 0)
		return failed;
	t->kept = true;
	return copy_text(&texts, f, text, cap);
}

/* --- files --- */

/* The text of F, up to CAP bytes: its length, or -errno. */
static ssize_t read_file(
	struct proclook *l, struct proclook_thread *t, enum procfile f, char *text, size_t cap)
{
	int fd = t->fd[f];
	ssize_t n;

	if (l->given >> f & 1)
		return copy_text(&l->texts, f, text, cap);
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

uint32_t proclook_state(char letter)
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

/* True where the kernel keeps such an account: without it the file is not there, or all zeroes. */
static int read_schedstat(struct proclook *l, struct proclook_thread *t, struct procparse_schedstat *ret)
{
	char text[128];
	ssize_t n = read_file(l, t, PROCFILE_SCHEDSTAT, text, sizeof(text));

	*ret = (struct procparse_schedstat){ 0 };
	if (n == -ESRCH)
		return -ESRCH;
	if (n < 0)
		return 0;
	return procparse_schedstat(text, (size_t)n, ret) && (ret->run_ns || ret->slices);
}

static int read_status(struct proclook *l, struct proclook_thread *t, struct proclook_seen *s, struct err *e)
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

static int read_stat(struct proclook *l, struct proclook_thread *t, struct proclook_seen *s, struct err *e)
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

/* F, where it is wanted and may be read: its length, or 0. */
static size_t read_wanted(
	struct proclook *l, struct proclook_thread *t, enum procfile f, char *text, size_t cap)
{
	ssize_t n;

	if (!(l->wanted & 1u << f) || t->refused[f])
		return 0;
	n = read_file(l, t, f, text, cap);
	if (n < 0 && n != -ESRCH)
		t->refused[f] = (int)n;
	return n < 0 ? 0 : (size_t)n;
}

static void read_stack(struct proclook *l, struct proclook_thread *t, struct proclook_seen *s)
{
	size_t n;

	if (l->no_stack)
		t->refused[PROCFILE_STACK] = l->no_stack;
	n = read_wanted(l, t, PROCFILE_STACK, l->text, sizeof(l->text));
	/* what takes CAP_SYS_ADMIN is refused for all; one thread by the rules of ptrace(2) */
	if (t->refused[PROCFILE_STACK] == -EACCES || t->refused[PROCFILE_STACK] == -ENOENT)
		l->no_stack = t->refused[PROCFILE_STACK];
	if (n) {
		s->stack = l->text;
		s->stack_len = n;
	}
}

static void read_place(struct proclook *l, struct proclook_thread *t, struct proclook_seen *s)
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

/* Without schedstat a thread that has not switched since has not run, if it waited then. */
static bool has_not_run(const struct proclook_thread *t, const struct proclook_seen *s)
{
	if (!t->looked || t->has_schedstat != s->has_schedstat)
		return false;
	if (s->has_schedstat)
		return equal(&t->sched, &s->sched);
	return t->status.voluntary == s->status.voluntary && t->status.involuntary == s->status.involuntary;
}

static int look_closer(struct proclook *l, struct proclook_thread *t, struct proclook_seen *s, struct err *e)
{
	struct procparse_schedstat after;
	int rc;

	ask_all(l, t);
	rc = read_stat(l, t, s, e);
	if (rc)
		return rc;
	s->waiting = proclook_state(s->stat.state) != UINT32_MAX;
	if (s->waiting)
		read_place(l, t, s);
	if (!s->waiting || !s->has_schedstat)
		return 0;
	rc = read_schedstat(l, t, &after);
	if (rc < 0)
		return rc;
	s->waiting = equal(&after, &s->sched);
	return 0;
}

int proclook_take(struct proclook *l, struct proclook_thread *t, struct proclook_seen *s, struct err *e)
{
	int rc;

	l->given = 0;
	*s = (struct proclook_seen){ .at_ns = now_ns() };
	rc = read_schedstat(l, t, &s->sched);
	if (rc < 0)
		return rc;
	s->has_schedstat = rc > 0;
	s->status = t->status;
	if (s->has_schedstat && has_not_run(t, s)) {
		s->same = true;
		return 0;
	}
	rc = read_status(l, t, s, e);
	if (!rc && !s->has_schedstat && has_not_run(t, s))
		s->same = true;
	else if (!rc)
		rc = look_closer(l, t, s, e);
	if (rc)
		return rc;
	t->looked = true;
	t->has_schedstat = s->has_schedstat;
	t->sched = s->sched;
	t->status = s->status;
	return 0;
}
