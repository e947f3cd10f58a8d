/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <string.h>

#define PROCSET_MAX 65536 /* threads at a time */

#define NOWHERE UINT32_MAX

void procset_free(struct procset *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->threads[i]);
	for (size_t i = 0; i < s->n_procs; i++) {
		if (s->end)
			s->end(s->ctx, s->procs[i]);
		free(s->procs[i]);
	}
	free(s->threads);
	free(s->procs);
	idmap_free(&s->by_tid);
	idmap_free(&s->by_tgid);
	*s = (struct procset){ .end = s->end, .ctx = s->ctx };
}

static uint32_t lookup(const struct idmap *m, uint64_t hi, uint64_t lo)
{
	const struct idmap_slot *slot = idmap_find(m, hi, lo);

	return slot ? slot->value : NOWHERE;
}

static bool store(struct idmap *m, uint64_t hi, uint64_t lo, uint32_t value)
{
	bool added;
	struct idmap_slot *slot;

	if (idmap_put(m, hi, lo, value, &added) == NOWHERE && value != NOWHERE && added)
		return false;
	slot = idmap_find(m, hi, lo);
	if (slot)
		slot->value = value;
	return slot != NULL;
}

struct procset_thread *procset_find(const struct procset *s, uint32_t pid, uint32_t tid)
{
	uint32_t at = lookup(&s->by_tid, pid, tid);

	return at == NOWHERE ? NULL : s->threads[at];
}

struct procset_process *procset_process(const struct procset *s, uint32_t tgid)
{
	uint32_t at = lookup(&s->by_tgid, 0, tgid);

	return at == NOWHERE ? NULL : s->procs[at];
}

static struct procset_process *add_process(struct procset *s, uint32_t tgid)
{
	struct procset_process *p;

	if (base_grow(&s->procs, &s->max_procs, s->n_procs + 1, sizeof(struct procset_process *)) != 0)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p || !store(&s->by_tgid, 0, tgid, (uint32_t)s->n_procs)) {
		free(p);
		return NULL;
	}
	p->tgid = tgid;
	s->procs[s->n_procs++] = p;
	return p;
}

static void remove_process(struct procset *s, struct procset_process *p)
{
	uint32_t at = lookup(&s->by_tgid, 0, p->tgid);
	struct procset_process *last = s->procs[s->n_procs - 1];

	if (s->end)
		s->end(s->ctx, p);
	store(&s->by_tgid, 0, p->tgid, NOWHERE);
	s->stale++;
	s->procs[at] = last;
	if (last != p)
		store(&s->by_tgid, 0, last->tgid, at);
	s->n_procs--;
	free(p);
}

struct procset_thread *procset_add(struct procset *s, uint32_t pid, uint32_t tid)
{
	struct procset_process *p = procset_process(s, pid);
	struct procset_thread *t;

	if (s->n >= PROCSET_MAX ||
		base_grow(&s->threads, &s->cap, s->n + 1, sizeof(struct procset_thread *)) != 0)
		return NULL;
	p = p ? p : add_process(s, pid);
	t = p ? calloc(1, sizeof(*t)) : NULL;
	if (!t || !store(&s->by_tid, pid, tid, (uint32_t)s->n)) {
		free(t);
		if (p && !p->n_threads)
			remove_process(s, p);
		return NULL;
	}
	t->proc = p;
	t->sampled = (struct sampler_thread){ .pid = pid, .tid = tid };
	for (size_t i = 0; i < PROCFILE_LOOK; i++)
		t->sampled.fd[i] = -1;
	p->n_threads++;
	s->threads[s->n++] = t;
	return t;
}

/* Keys are never removed: the maps are rebuilt when most of their keys are dead. */
static void tidy(struct procset *s)
{
	if (s->stale < 1024 + 2 * s->n)
		return;
	s->stale = 0;
	idmap_free(&s->by_tid);
	idmap_free(&s->by_tgid);
	for (size_t i = 0; i < s->n; i++)
		store(&s->by_tid, s->threads[i]->sampled.pid, s->threads[i]->sampled.tid, (uint32_t)i);
	for (size_t i = 0; i < s->n_procs; i++)
		store(&s->by_tgid, 0, s->procs[i]->tgid, (uint32_t)i);
}

void procset_remove(struct procset *s, size_t at)
{
	struct procset_thread *t = s->threads[at], *last = s->threads[s->n - 1];

	store(&s->by_tid, t->sampled.pid, t->sampled.tid, NOWHERE);
	s->stale++;
	s->threads[at] = last;
	if (last != t)
		store(&s->by_tid, last->sampled.pid, last->sampled.tid, (uint32_t)at);
	s->n--;
	if (--t->proc->n_threads == 0)
		remove_process(s, t->proc);
	free(t);
	tidy(s);
}

struct target {
	uint32_t pid;
	bool gone;
};

struct procthreads {
	struct procthreads_opts o;
	struct target *targets;
	size_t n, cap;
	struct idmap by_pid; /* pid -> target */
	struct idmap others; /* pids that are not targets, as of the last scan */
	uint32_t *tgids; /* of o.tids */
	bool *seen; /* of o.comms: a process had that name */
	size_t n_seen;
	uint32_t self;
};

int procthreads_add(struct procthreads *t, uint32_t pid, struct err *e)
{
	bool added;

	if (base_grow(&t->targets, &t->cap, t->n + 1, sizeof(*t->targets)) != 0 ||
		idmap_put(&t->by_pid, 0, pid, (uint32_t)t->n, &added) == UINT32_MAX)
		return err_nomem(e, "the targets");
	if (added)
		t->targets[t->n++] = (struct target){ .pid = pid };
	return 0;
}

static bool is_target(const struct procthreads *t, uint32_t pid)
{
	return idmap_find(&t->by_pid, 0, pid) != NULL;
}

static int take_tids(struct procthreads *t, struct err *e)
{
	t->tgids = calloc(t->o.n_tids + 1, sizeof(*t->tgids));
	if (!t->tgids)
		return err_nomem(e, "the targets");
	for (size_t i = 0; i < t->o.n_tids; i++) {
		const uint32_t tid = t->o.tids[i];
		struct procparse_status st;
		char text[PROCFILE_TEXT];
		/* a thread has a directory /proc/TID, although /proc does not list it */
		ssize_t n = proc_view_text(t->o.helper, tid, tid, PROCFILE_STATUS, text, sizeof(text));

		if (n > 0 && procparse_status(text, (size_t)n, &st))
			t->tgids[i] = st.tgid;
	}
	return 0;
}

int procthreads_open(const struct procthreads_opts *o, struct procthreads **ret, struct err *e)
{
	struct procthreads *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return err_nomem(e, "the targets");
	t->o = *o;
	t->self = (uint32_t)getpid();
	t->seen = calloc(o->n_comms + 1, sizeof(*t->seen));
	rc = t->seen ? 0 : err_nomem(e, "the targets");
	if (!rc)
		rc = access("/proc/self/task", R_OK | X_OK) == 0 ? 0
								 : err_sys(e, -errno, "cannot read '/proc'");
	for (size_t i = 0; i < o->n_pids && !rc; i++)
		rc = procthreads_add(t, o->pids[i], e);
	if (!rc)
		rc = take_tids(t, e);
	if (rc) {
		procthreads_close(t);
		return rc;
	}
	*ret = t;
	return 0;
}

void procthreads_close(struct procthreads *t)
{
	if (!t)
		return;
	free(t->targets);
	free(t->tgids);
	free(t->seen);
	idmap_free(&t->by_pid);
	idmap_free(&t->others);
	free(t);
}

bool procthreads_comm_seen(const struct procthreads *t, const char *comm)
{
	for (size_t i = 0; i < t->o.n_comms; i++)
		if (strcmp(t->o.comms[i], comm) == 0)
			return t->seen[i];
	return false;
}

bool procthreads_stat(const struct procthreads *t, uint32_t pid, struct procparse_stat *ret)
{
	char text[1024];
	ssize_t n = proc_view_text(t->o.helper, pid, pid, PROCFILE_STAT, text, sizeof(text));

	return n > 0 && procparse_stat(text, (size_t)n, ret);
}

static bool is_child(const struct procthreads *t, uint32_t parent)
{
	if (is_target(t, parent))
		return true;
	for (size_t i = 0; i < t->o.n_tids; i++)
		if (t->tgids[i] && t->tgids[i] == parent)
			return true;
	return false;
}

/* Is COMM one of the requested names? Notes that it was seen. */
static bool is_named(struct procthreads *t, const char *comm)
{
	bool found = false;

	for (size_t i = 0; i < t->o.n_comms; i++) {
		if (strcmp(t->o.comms[i], comm) != 0)
			continue;
		found = true;
		t->n_seen += !t->seen[i];
		t->seen[i] = true;
	}
	return found;
}

static bool is_wanted(struct procthreads *t, const struct procparse_stat *st)
{
	bool named = is_named(t, st->comm);

	if (st->kthread && !(t->o.all && t->o.kthreads))
		return false;
	return t->o.all || named || (t->o.follow && is_child(t, st->ppid));
}

struct scan {
	struct procthreads *t;
	struct idmap others;
};

/*
 * Make PID a target if it is to be one. A process is checked only once, unless
 * targets are chosen by name, because its name may change.
 */
static void consider(void *ctx, uint32_t pid)
{
	struct scan *s = ctx;
	struct procthreads *t = s->t;
	struct procparse_stat st;

	if (pid == t->self || pid == t->o.no[0] || pid == t->o.no[1] || pid == t->o.no[2] ||
		pid == t->o.no[3])
		return;
	if (is_target(t, pid)) {
		/* it may be one by its id or its parent, and have one of the names */
		if (t->n_seen < t->o.n_comms && procthreads_stat(t, pid, &st))
			is_named(t, st.comm);
		return;
	}
	if (t->o.n_comms || !idmap_find(&t->others, 0, pid)) {
		if (!procthreads_stat(t, pid, &st))
			return;
		if (is_wanted(t, &st) && procthreads_add(t, pid, NULL) == 0)
			return;
	}
	idmap_put(&s->others, 0, pid, 0, NULL);
}

/* True if there are new targets: their children may have been listed before them. */
static bool scan_processes(struct procthreads *t)
{
	struct scan s = { .t = t };
	size_t before = t->n;

	proc_view_list(t->o.helper, 0, consider, &s);
	idmap_free(&t->others);
	if (t->n != before)
		idmap_free(&s.others);
	t->others = s.others;
	return t->n != before;
}

struct found {
	uint32_t pid;
	bool any;
	void (*fn)(void *ctx, uint32_t pid, uint32_t tid);
	void *ctx;
};

static void found_thread(void *ctx, uint32_t tid)
{
	struct found *f = ctx;

	f->any = true;
	f->fn(f->ctx, f->pid, tid);
}

static bool scan_threads(const struct procthreads *t, uint32_t pid,
	void (*fn)(void *ctx, uint32_t pid, uint32_t tid), void *ctx)
{
	struct found f = { .pid = pid, .fn = fn, .ctx = ctx };
	int rc = proc_view_list(t->o.helper, pid, found_thread, &f);

	return rc ? rc != -ENOENT && rc != -ESRCH : f.any;
}

/* Forget targets that are gone. */
static void drop_gone(struct procthreads *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->n; i++)
		if (!t->targets[i].gone)
			t->targets[kept++] = t->targets[i];
	if (kept == t->n)
		return;
	t->n = kept;
	idmap_free(&t->by_pid);
	for (size_t i = 0; i < t->n; i++)
		idmap_put(&t->by_pid, 0, t->targets[i].pid, (uint32_t)i, NULL);
}

static bool is_inside(const struct procthreads *t, uint32_t pid)
{
	char text[PROCFILE_TEXT];
	ssize_t n;

	if (!t->o.in)
		return true;
	n = proc_view_text(t->o.helper, pid, pid, PROCFILE_CGROUP, text, sizeof(text) - 1);
	text[n < 0 ? 0 : n] = '\0';
	return cgroup_lists(t->o.in, text);
}

/* False if the process is gone. */
static bool scan_target(const struct procthreads *t, uint32_t pid,
	void (*fn)(void *ctx, uint32_t pid, uint32_t tid), void *ctx)
{
	struct procparse_stat st;

	/* a process outside the cgroup may still move into it */
	return is_inside(t, pid) ? scan_threads(t, pid, fn, ctx) : procthreads_stat(t, pid, &st);
}

void procthreads_scan(struct procthreads *t, void (*fn)(void *ctx, uint32_t pid, uint32_t tid), void *ctx)
{
	if (t->o.all || t->o.follow || t->o.n_comms)
		while (scan_processes(t) && t->o.follow)
			;
	for (size_t i = 0; i < t->n; i++)
		t->targets[i].gone = !scan_target(t, t->targets[i].pid, fn, ctx);
	for (size_t i = 0; i < t->o.n_tids; i++)
		if (t->tgids[i] && is_inside(t, t->o.tids[i]))
			fn(ctx, t->tgids[i], t->o.tids[i]);
	drop_gone(t);
}

/* The last mount on /proc is on top. */
static bool has_hidepid(void)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	bool hidden = false;
	struct mntent m;
	char text[4096];

	while (f && getmntent_r(f, &m, text, sizeof(text)))
		if (strcmp(m.mnt_dir, "/proc") == 0) {
			const char *o = hasmntopt(&m, "hidepid");

			hidden = o && strncmp(o, "hidepid=0", 9) != 0 && strncmp(o, "hidepid=off", 11) != 0;
		}
	if (f)
		endmntent(f);
	return hidden;
}

bool procthreads_hidden(void)
{
	_cleanup_close_ int fd = open("/proc/1/stat", O_RDONLY | O_CLOEXEC);

	/* root, and the group of gid=, see all processes */
	return fd < 0 && has_hidepid();
}
