/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/targets.h"
#include "base/hash.h"
#include "base/hashtable.h"
#include "system/proc.h"

#include <ctype.h>
#include <dirent.h>
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

/*
 * descendants - the processes of /proc with their parents, and which of them are
 * roots or descend from one.
 */

struct relative {
	uint32_t pid, parent;
	bool root, in;
};

struct relatives {
	struct relative *p;
	size_t n, cap;
	struct hashtable by_pid;
};

static struct relative *find_relative(const struct relatives *r, uint32_t pid)
{
	uint32_t at = HASHTABLE_FIND(&r->by_pid, hash_bytes(&pid, sizeof(pid), 0), i, r->p[i].pid == pid);

	return at == HASHTABLE_NONE ? NULL : &r->p[at];
}

static bool is_named(const struct targets_roots *roots, const char *comm)
{
	for (size_t i = 0; i < roots->n_comms; i++)
		if (strcmp(roots->comms[i], comm) == 0)
			return true;
	return false;
}

static int add_relative(struct relatives *r, uint32_t pid, const struct targets_roots *roots)
{
	struct threadstat st;

	if (threadstat_read(pid, pid, &st) != 0 || st.state == 'Z' || st.state == 'X')
		return 0;
	if (base_grow((void **)&r->p, &r->cap, r->n + 1, sizeof(*r->p)) != 0 ||
		hashtable_reserve(&r->by_pid, 1) != 0)
		return -ENOMEM;
	r->p[r->n] = (struct relative){ .pid = pid, .parent = st.ppid, .root = is_named(roots, st.comm) };
	hashtable_add(&r->by_pid, hash_bytes(&pid, sizeof(pid), 0), (uint32_t)r->n++);
	return 0;
}

/* The children that thread TID itself has made; none without CONFIG_PROC_CHILDREN. */
static void mark_children(struct relatives *r, uint32_t tid)
{
	char path[64];
	_cleanup_fclose_ FILE *f = NULL;
	struct relative *child;
	uint32_t pid;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/children", tid, tid);
	f = fopen(path, "re");
	while (f && fscanf(f, "%u", &pid) == 1)
		if ((child = find_relative(r, pid)) != NULL)
			child->in = true;
}

/* Mark what descends from a root. A parent may come after its children: repeat until nothing is new. */
static void mark(struct relatives *r)
{
	const uint32_t self = (uint32_t)getpid();
	bool again = true;

	while (again) {
		again = false;
		for (size_t i = 0; i < r->n; i++) {
			const struct relative *parent = r->p[i].in ? NULL : find_relative(r, r->p[i].parent);

			if (r->p[i].pid == self || !parent || !(parent->in || parent->root))
				continue;
			r->p[i].in = again = true;
		}
	}
}

static int compare_ids(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return CMP(x, y);
}

static int list_relatives(struct relatives *r, const struct targets_roots *roots)
{
	DIR *proc = opendir("/proc");
	int rc = proc ? 0 : -errno;

	for (struct dirent *d; !rc && (d = readdir(proc));)
		if (isdigit((unsigned char)d->d_name[0]))
			rc = add_relative(r, (uint32_t)strtoul(d->d_name, NULL, 10), roots);
	if (proc)
		closedir(proc);
	return rc;
}

int targets_descendants(const struct targets_roots *roots, uint32_t **ret, size_t *n, struct err *e)
{
	struct relatives r = { 0 };
	struct relative *root;
	int rc = list_relatives(&r, roots);

	for (size_t i = 0; !rc && i < roots->n_pids; i++)
		if ((root = find_relative(&r, roots->pids[i])) != NULL)
			root->root = true;
	for (size_t i = 0; !rc && i < roots->n_tids; i++)
		mark_children(&r, roots->tids[i]);
	mark(&r);
	*n = 0;
	*ret = rc ? NULL : calloc(r.n + 1, sizeof(**ret));
	for (size_t i = 0; *ret && i < r.n; i++)
		if (r.p[i].in && !r.p[i].root)
			(*ret)[(*n)++] = r.p[i].pid;
	if (*ret)
		qsort(*ret, *n, sizeof(**ret), compare_ids);
	rc = rc || *ret ? rc : -ENOMEM;
	free(r.p);
	hashtable_free(&r.by_pid);
	return rc ? err_sys(e, rc, "cannot list the processes in '/proc'") : 0;
}

/* The processes that a walk down the tree has found. */
struct walk {
	const struct targets_roots *roots;
	uint32_t *ids;
	size_t n, cap;
};

static bool is_root(const struct targets_roots *roots, uint32_t pid, const char *comm)
{
	for (size_t i = 0; i < roots->n_pids; i++)
		if (roots->pids[i] == pid)
			return true;
	return is_named(roots, comm);
}

/* Append the living children of thread TID of process PID. */
static int walk_thread(struct walk *w, uint32_t pid, uint32_t tid)
{
	char path[64];
	_cleanup_fclose_ FILE *f = NULL;
	struct threadstat st;
	uint32_t child;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/children", pid, tid);
	f = fopen(path, "re");
	while (f && fscanf(f, "%u", &child) == 1) {
		if (child == (uint32_t)getpid() || threadstat_read(child, child, &st) != 0 ||
			st.state == 'Z' || st.state == 'X' || is_root(w->roots, child, st.comm))
			continue;
		if (base_grow((void **)&w->ids, &w->cap, w->n + 1, sizeof(*w->ids)) != 0)
			return -ENOMEM;
		w->ids[w->n++] = child;
	}
	return 0;
}

static int walk_process(struct walk *w, uint32_t pid)
{
	char path[64];
	DIR *tasks;
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	tasks = opendir(path);
	for (struct dirent *d; tasks && !rc && (d = readdir(tasks));)
		if (isdigit((unsigned char)d->d_name[0]))
			rc = walk_thread(w, pid, (uint32_t)strtoul(d->d_name, NULL, 10));
	if (tasks)
		closedir(tasks);
	return rc;
}

size_t targets_count_descendants(const struct targets_roots *roots)
{
	struct walk w = { .roots = roots };
	size_t n = 0;
	int rc = 0;

	if (access("/proc/thread-self/children", R_OK) != 0) {
		targets_descendants(roots, &w.ids, &n, NULL);
		free(w.ids);
		return n;
	}
	for (size_t i = 0; i < roots->n_pids && !rc; i++)
		rc = walk_process(&w, roots->pids[i]);
	for (size_t i = 0; i < w.n && !rc; i++)
		rc = walk_process(&w, w.ids[i]);
	free(w.ids);
	return w.n;
}

/* Is a thread of process PID, but not the main one, named COMM? Its ID, or 0. */
static uint32_t thread_named(uint32_t pid, const char *comm)
{
	char path[64];
	struct threadstat st;
	uint32_t found = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	tasks = opendir(path);
	for (struct dirent *d; tasks && !found && (d = readdir(tasks));) {
		uint32_t tid = (uint32_t)strtoul(d->d_name, NULL, 10);

		if (tid && tid != pid && threadstat_read(pid, tid, &st) == 0 && strcmp(st.comm, comm) == 0)
			found = tid;
	}
	if (tasks)
		closedir(tasks);
	return found;
}

void targets_unnamed(const char *comm, struct err *e)
{
	char near[PROCINFO_COMM_LEN] = "", name[PROCINFO_COMM_LEN];
	DIR *proc = opendir("/proc");
	uint32_t like = 0, tid = 0, of = 0;

	for (struct dirent *d; proc && !tid && (d = readdir(proc));) {
		uint32_t pid = (uint32_t)strtoul(d->d_name, NULL, 10);

		if (!pid || pid == (uint32_t)getpid())
			continue;
		procinfo_comm(pid, name);
		if (!like && strcasestr(name, comm)) {
			like = pid;
			memcpy(near, name, sizeof(near));
		}
		tid = thread_named(pid, comm);
		of = tid ? pid : 0;
	}
	if (proc)
		closedir(proc);
	err_set(e, -ESRCH, "no process was named '%s'", comm);
	if (tid)
		err_hint(e,
			"that is thread %u of process %u, and -c takes the name of the main thread: -t %u, "
			"or -p %u",
			tid, of, tid, of);
	else if (like)
		err_hint(e,
			"process %u is named '%s'; -c takes the whole name, as 'ps -eo pid,comm' shows it",
			like, near);
	else
		err_hint(e,
			"a name has at most %d bytes and is that of the main thread, as 'ps -eo pid,comm' "
			"shows it",
			PROCINFO_COMM_LEN - 1);
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
