/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/capworld.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define END_MS 1000

extern char **environ;

/* A library that every program has, as /proc/self/maps tells; else the program itself. */
static int find_common(struct capworld_map *m, struct err *e)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/maps", "re");
	char line[512], path[256];

	if (!f)
		return err_sys(e, -errno, "cannot read '/proc/self/maps'");
	while (fgets(line, sizeof(line), f)) {
		uintptr_t start, end;

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %255[^\n]", &start, &end, path) !=
				3 ||
			path[0] != '/')
			continue;
		if (m->end && !strstr(path, "/libc.so"))
			continue;
		*m = (struct capworld_map){ .start = start, .end = end };
		memcpy(m->path, path, sizeof(path));
		if (strstr(path, "/libc.so"))
			break;
	}
	return m->end ? 0 : err_set(e, -ENOENT, "no file is mapped in '/proc/self/maps'");
}

/* A page to put something else in place of, in each process. */
static int reserve(struct capworld_map *m, struct err *e)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return err_sys(e, -errno, "cannot map a page");
	*m = (struct capworld_map){ .start = (uintptr_t)p, .end = (uintptr_t)p + page };
	return 0;
}

static bool become(uid_t uid)
{
	cap_t none = cap_init();
	bool ok = none;

	if (uid != geteuid() || getuid() != geteuid())
		ok = ok && setgroups(0, NULL) == 0 && setresgid(uid, uid, uid) == 0 &&
		     setresuid(uid, uid, uid) == 0;
	ok = ok && cap_set_proc(none) == 0;
	if (none)
		cap_free(none);
	return ok;
}

/* A process that others may look at must not show them our environment. */
static void forget_environment(void)
{
	for (char **p = environ; p && *p; p++)
		memset(*p, 0, strlen(*p));
}

static bool map_own(const struct capworld_map *m)
{
	const uint64_t magic = CAPWORLD_MAGIC;
	int fd = memfd_create("own", MFD_CLOEXEC);
	size_t len = m->end - m->start;
	void *at = (void *)m->start;

	return fd >= 0 && fchmod(fd, 0600) == 0 && ftruncate(fd, (off_t)len) == 0 &&
	       pwrite(fd, &magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
	       mmap(at, len, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == at && close(fd) == 0;
}

/* Whatever else is open here is not to be held open by a process that does nothing. */
static void keep_two(int a, int b)
{
	unsigned int low = (unsigned int)MIN(a, b), high = (unsigned int)MAX(a, b);

	if (low > 0)
		close_range(0, low - 1, 0);
	if (high > low + 1)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0U, 0);
}

/* One byte to READY when it is what it is to be; then nothing until HOLD ends. */
static void live(const struct capworld *w, enum capworld_process kind, uid_t uid, int hold, int ready)
{
	char c = 0;

	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	keep_two(hold, ready);
	forget_environment();
	if (!become(uid) || !map_own(&w->own) ||
		prctl(PR_SET_DUMPABLE, kind != CAPWORLD_HIDDEN, 0, 0, 0) != 0)
		_exit(1);
	if (write(ready, &c, 1) != 1)
		_exit(1);
	close(ready);
	while (read(hold, &c, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static bool heard(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c;

	while (poll(&p, 1, END_MS) < 0 && errno == EINTR)
		;
	return (p.revents & POLLIN) && read(fd, &c, 1) == 1;
}

/* It ends by itself at the end of `hold`; one that a debugger holds is ended. */
static void reap(pid_t pid)
{
	for (int i = 0; i < END_MS; i++) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return;
		poll(NULL, 0, 1);
	}
	if (kill(pid, SIGKILL) == 0)
		waitpid(pid, NULL, 0);
}

static int start(struct capworld *w, enum capworld_process kind, uid_t uid, const int hold[2], struct err *e)
{
	int ready[2];
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) != 0)
		return err_sys(e, -errno, "cannot create a pipe");
	pid = fork();
	if (pid == 0) {
		close(hold[1]);
		close(ready[0]);
		live(w, kind, uid, hold[0], ready[1]);
	}
	close(ready[1]);
	if (pid > 0 && heard(ready[0]))
		w->pid[kind] = pid;
	else if (pid > 0)
		reap(pid);
	close(ready[0]);
	return pid < 0 ? err_sys(e, -EAGAIN, "cannot start a process") : 0;
}

int capworld_open(uid_t user, struct capworld *ret, struct err *e)
{
	const uid_t uids[CAPWORLD_PROCESSES] = { 0, user, CAPWORLD_OTHER, CAPWORLD_OTHER };
	int hold[2], rc;

	*ret = (struct capworld){ .user = user, .hold_fd = -1 };
	rc = find_common(&ret->common, e);
	if (!rc)
		rc = reserve(&ret->own, e);
	if (!rc && pipe2(hold, O_CLOEXEC) != 0)
		rc = err_sys(e, -errno, "cannot create a pipe");
	if (rc)
		return rc;
	ret->hold_fd = hold[1];
	for (enum capworld_process kind = 0; kind < CAPWORLD_PROCESSES && !rc; kind++)
		rc = start(ret, kind, uids[kind], hold, e);
	close(hold[0]);
	if (rc)
		capworld_close(ret);
	return rc;
}

void capworld_leave(struct capworld *w)
{
	if (w->hold_fd > 0)
		close(w->hold_fd);
	w->hold_fd = -1;
}

void capworld_close(struct capworld *w)
{
	capworld_leave(w);
	for (enum capworld_process kind = 0; kind < CAPWORLD_PROCESSES; kind++)
		if (w->pid[kind])
			reap(w->pid[kind]);
	if (w->own.start)
		munmap((void *)w->own.start, w->own.end - w->own.start);
	*w = (struct capworld){ .hold_fd = -1 };
}
