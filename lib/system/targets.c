/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/targets.h"
#include "system/proc.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

static int check(uint32_t id, bool process, struct err *e)
{
	struct procinfo_status st;

	if (!procinfo_status(id, &st) && kill((pid_t)id, 0) != 0 && errno == EPERM) {
		err_set(e, -EACCES, "/proc hides %s %u: it is another user's", process ? "process" : "thread",
			id);
		err_hint(e, "/proc is mounted with hidepid: run as root, or in the group of its option gid=");
		return -EACCES;
	}
	if (!procinfo_status(id, &st)) {
		err_set(e, -ESRCH, "no such %s: %u", process ? "process" : "thread", id);
		err_hint(e, "ids are those of this PID namespace; 'ps -eLf' lists them");
		return -ESRCH;
	}
	if (process && st.tgid != id) {
		err_set(e, -ESRCH, "%u is a thread of process %u", id, st.tgid);
		err_hint(e, "give -t %u for the thread, -p %u for the process", id, st.tgid);
		return -ESRCH;
	}
	if (process ? !procinfo_living(id) : st.state == 'Z')
		return err_set(
			e, -ESRCH, "process %u has exited already: its parent has not reaped it yet", id);
	return 0;
}

static int check_proc(struct err *e)
{
	if (procinfo_own_namespace())
		return 0;
	err_set(e, -EXDEV,
		"'/proc' is that of another PID namespace: its numbers are not those of processes here");
	err_hint(e, "mount it again inside, as 'unshare --pid --fork --mount-proc' does");
	return -EXDEV;
}

static int watch(struct targets *t, uint32_t pid, struct err *e)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return err_sys(e, -errno, "cannot watch process %u", pid);
	ev.data.fd = fd;
	if (epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0) {
		t->n_pids++;
		return 0;
	}
	int code = -errno;

	close(fd);
	return err_sys(e, code, "cannot watch process %u", pid);
}

int targets_open(struct targets *t, const uint32_t *pids, size_t n_pids, const uint32_t *tids, size_t n_tids,
	struct err *e)
{
	int rc = check_proc(e);

	*t = (struct targets){ .tids = tids, .n_tids = n_tids, .epoll_fd = epoll_create1(EPOLL_CLOEXEC) };
	if (!rc && t->epoll_fd < 0)
		return err_sys(e, -errno, "cannot create an epoll instance");
	for (size_t i = 0; i < n_pids && !rc; i++) {
		rc = check(pids[i], true, e);
		if (!rc)
			rc = watch(t, pids[i], e);
	}
	for (size_t i = 0; i < n_tids && !rc; i++)
		rc = check(tids[i], false, e);
	return rc;
}

void targets_close(struct targets *t)
{
	if (t->epoll_fd > 0)
		close(t->epoll_fd);
	t->epoll_fd = -1;
}

int targets_fd(const struct targets *t)
{
	return t->n_pids > t->n_ended ? t->epoll_fd : -1;
}

static bool thread_is_gone(uint32_t tid)
{
	struct procinfo_status st;

	return !procinfo_status(tid, &st) || st.state == 'Z' || st.state == 'X';
}

bool targets_ended(struct targets *t)
{
	struct epoll_event ev;

	if (!t->n_pids && !t->n_tids)
		return false;
	while (t->n_ended < t->n_pids && epoll_wait(t->epoll_fd, &ev, 1, 0) == 1) {
		/* closing a pidfd removes it from the epoll set */
		close(ev.data.fd);
		t->n_ended++;
	}
	if (t->n_ended < t->n_pids)
		return false;
	for (size_t i = 0; i < t->n_tids; i++)
		if (!thread_is_gone(t->tids[i]))
			return false;
	return true;
}

int targets_state_mask(const char *letters, uint32_t *ret, struct err *e)
{
	/* include/linux/sched.h; I is TASK_NOLOAD, which D does not include */
	static const struct {
		char letter;
		uint32_t bits;
	} states[] = { { 'S', 0x1 }, { 'D', 0x2 }, { 'T', 0x4 }, { 't', 0x8 }, { 'P', 0x40 },
		{ 'I', 0x400 } };
	uint32_t mask = 0;

	for (const char *p = letters; *p; p++) {
		size_t i = 0;

		while (i < ARRAY_LEN(states) && states[i].letter != *p)
			i++;
		if (*p == 'R')
			return err_set(e, -EINVAL, "state R is not a wait: --preempted records those");
		if (i == ARRAY_LEN(states))
			return err_set(e, -EINVAL, "'%c' is not a state letter: S, D, T, t, I or P", *p);
		mask |= states[i].bits;
	}
	if (!mask)
		return err_set(e, -EINVAL, "no state letter given: S, D, T, t, I or P");
	*ret = mask;
	return 0;
}
