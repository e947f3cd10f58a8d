/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/jit.h"
#include "base/clock.h"
#include "base/fs.h"
#include "record/files.h"
#include "symbols/jit.h"
#include "system/events.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define SLACK_NS INT64_C(1000000000) /* clocks are read one after the other, and may be set */

/* Open the directory /tmp of process PID, 0 = ours. */
static int open_tmp(uint32_t pid)
{
	_cleanup_close_ int root = -1;
	char path[64] = "/";

	if (pid)
		snprintf(path, sizeof(path), "/proc/%u/root", pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	return open_in_root(root, "tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool stat_tmp(struct worker *o, uint32_t pid, struct stat *st)
{
	_cleanup_close_ int fd = open_tmp(pid);

	return (fd >= 0 && fstat(fd, st) == 0) || broker_tmp_stat(o, pid, st) == 0;
}

static bool shares_tmp(struct worker *o, uint32_t pid)
{
	struct stat a, b;

	return stat_tmp(o, pid, &a) && stat_tmp(o, 0, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* The last number in LINE. */
static uint32_t last_number(const char *line)
{
	const char *blank = strrchr(line, '\t');

	return blank ? (uint32_t)strtoul(blank, NULL, 10) : 0;
}

bool jitfile_owner(uint32_t pid, struct jitfile_owner *ret)
{
	int fd = procaccess_open(ret->broker, BROKER_STATUS, pid);
	_cleanup_fclose_ FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	unsigned int uid, found = 0;
	char line[256];

	if (fd >= 0 && !f)
		close(fd);
	ret->pid = ret->ns_pid = pid;
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Uid: %*u %u", &uid) == 1) {
			ret->uid = uid;
			found++;
		} else if (strncmp(line, "NSpid:", 6) == 0) {
			ret->ns_pid = last_number(line);
		}
	}
	ret->shares_tmp = found && shares_tmp(ret->broker, pid);
	return found;
}

/* Checks the type first: opening a device can have effects, opening a FIFO would block. */
static int open_regular(int dir, const char *name, struct stat *st)
{
	_cleanup_close_ int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char again[64];
	int ret;

	if (fd < 0 || fstat(fd, st) != 0)
		return -errno;
	if (!S_ISREG(st->st_mode))
		return -EMEDIUMTYPE;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	ret = open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return ret < 0 ? -errno : ret;
}

static int open_map(uint32_t pid, uint32_t number, struct stat *st)
{
	_cleanup_close_ int tmp = open_tmp(pid);
	char name[64];

	if (tmp < 0)
		return tmp;
	snprintf(name, sizeof(name), "perf-%u.map", number);
	return open_regular(tmp, name, st);
}

int jitfile_map(const struct jitfile_owner *o, struct stat *st)
{
	uint32_t pid = o->end_ns ? 0 : o->pid;
	int fd, requested;

	if (o->end_ns && !o->shares_tmp)
		return -ENOENT;
	fd = open_map(pid, o->ns_pid, st);
	if (fd >= 0 || fd == -EMEDIUMTYPE)
		return fd;
	requested = broker_perf_map(o->broker, pid, o->ns_pid, st);
	return requested == -ENOTCONN ? fd : requested;
}

bool jitfile_is_dump(const struct jitfile_owner *o, const char *path)
{
	const char *base = strrchr(path, '/');
	char name[64];

	snprintf(name, sizeof(name), "/jit-%u.dump", o->ns_pid);
	return base && strcmp(base, name) == 0;
}

int jitfile_check(const struct jitfile_owner *o, const struct stat *st, struct err *e)
{
	int64_t real = (int64_t)now_on(CLOCK_REALTIME), boot = (int64_t)now_on(CLOCK_BOOTTIME),
		mono = (int64_t)now_ns();
	int64_t written = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;

	if (st->st_uid != o->uid && st->st_uid != 0)
		return err_set(
			e, -EPERM, "it belongs to user %u, and the process to user %u", st->st_uid, o->uid);
	if (o->start_boot_ns && written + SLACK_NS < real - (boot - (int64_t)o->start_boot_ns))
		return err_set(e, -ESTALE, "it was written before the process began");
	if (o->end_ns && written - SLACK_NS > real - (mono - (int64_t)o->end_ns))
		return err_set(e, -ESTALE, "it was written after the process had ended");
	return 0;
}

/*
 * jitwatch - processes that make code, and the files in which they describe it.
 *
 * A process is watched once it maps anonymous executable memory or a jitdump
 * file, or once a stack shows that it has done so. Its files are searched for
 * while it lives and kept open, so that they outlive it. If a process has no
 * samples, its files are closed some time after its end.
 */

struct jitwatch {
	struct jitfile_owner owner;
	uint64_t since_ns; /* at this time the process was this image */
	uint32_t proc; /* in the capture; CAPTURE_NONE = no sample yet */
	uint32_t next; /* the next free slot */
	bool over; /* ended, or has become another image */
	bool free; /* the slot is empty */
	bool no_room; /* one of its files could not be kept open */
	int map, dump; /* descriptors for reading, -1 = none */
};

struct jitwatches {
	struct jitwatch *all;
	size_t n, cap;
	uint32_t free; /* the first free slot; UINT32_MAX = none */
	struct idmap by_tgid; /* the newest watch of a tgid */
	size_t n_fds;
	uint64_t search_ns; /* do not search for files before */
	struct worker *broker; /* set it after jitwatch_init(); NULL = none */
};

#define WATCHES_MAX 4096
#define FDS_MAX 256 /* files that are kept open */
#define SEARCH_NS UINT64_C(100000000)
#define FORGET_NS UINT64_C(10000000000) /* all samples of an ended process have arrived long before */

static void jitwatch_init(struct jitwatches *t)
{
	*t = (struct jitwatches){ .free = UINT32_MAX };
}

static void close_fd(struct jitwatches *t, int *fd)
{
	if (*fd < 0)
		return;
	close(*fd);
	*fd = -1;
	t->n_fds--;
}

static void jitwatch_close(struct jitwatches *t, struct jitwatch *w)
{
	close_fd(t, &w->map);
	close_fd(t, &w->dump);
}

static void jitwatch_free(struct jitwatches *t)
{
	for (size_t i = 0; i < t->n; i++)
		jitwatch_close(t, &t->all[i]);
	free(t->all);
	idmap_free(&t->by_tgid);
	jitwatch_init(t);
}

static struct jitwatch *watch_of(const struct jitwatches *t, uint32_t tgid)
{
	const struct idmap_slot *s = idmap_find(&t->by_tgid, 0, tgid);
	struct jitwatch *w = s ? &t->all[s->value] : NULL;

	return w && !w->over && w->owner.pid == tgid ? w : NULL;
}

static uint32_t take_slot(struct jitwatches *t)
{
	uint32_t at = t->free;

	if (at != UINT32_MAX) {
		t->free = t->all[at].next;
		return at;
	}
	if (t->n == WATCHES_MAX || base_grow(&t->all, &t->cap, t->n + 1, sizeof(*t->all)) != 0)
		return UINT32_MAX;
	return (uint32_t)t->n++;
}

static void drop_slot(struct jitwatches *t, uint32_t at)
{
	t->all[at] = (struct jitwatch){ .over = true, .free = true, .next = t->free, .map = -1, .dump = -1 };
	t->free = at;
}

/* A new watch for the process that is TGID now; NULL if there is none, or no room. */
static struct jitwatch *add_watch(struct jitwatches *t, uint32_t tgid, uint64_t now_ns)
{
	struct jitwatch w = {
		.since_ns = now_ns, .proc = CAPTURE_NONE, .map = -1, .dump = -1, .owner.broker = t->broker
	};
	struct idmap_slot *s;
	uint32_t at = jitfile_owner(tgid, &w.owner) ? take_slot(t) : UINT32_MAX;

	if (at == UINT32_MAX)
		return NULL;
	idmap_put(&t->by_tgid, 0, tgid, at, NULL);
	s = idmap_find(&t->by_tgid, 0, tgid);
	if (!s) {
		drop_slot(t, at);
		return NULL;
	}
	s->value = at;
	t->all[at] = w;
	return &t->all[at];
}

/* Keep FD for W in *SLOT; close it if too many are open. */
static void keep_fd(struct jitwatches *t, struct jitwatch *w, int *slot, int fd)
{
	if (fd < 0)
		return;
	close_fd(t, slot);
	w->no_room = t->n_fds == FDS_MAX;
	if (w->no_room) {
		close(fd);
		return;
	}
	*slot = fd;
	t->n_fds++;
}

static void take_dump(struct jitwatches *t, struct jitwatch *w, const struct procmap *m)
{
	struct stat st;

	if (w->dump < 0 && jitfile_is_dump(&w->owner, m->path))
		keep_fd(t, w, &w->dump, mapfile_open(t->broker, w->owner.pid, m, &st));
}

static bool is_anonymous(const char *path)
{
	return !*path || strcmp(path, "//anon") == 0 || strncmp(path, "[anon", 5) == 0 ||
	       strncmp(path, "/memfd:", 7) == 0;
}

static void on_code(struct jitwatches *t, const struct procevent *ev, bool tracked)
{
	const char *base = strrchr(ev->text, '/');
	bool dump = base && strncmp(base, "/jit-", 5) == 0;
	struct jitwatch *w;

	if (!dump && !is_anonymous(ev->text))
		return;
	w = watch_of(t, ev->pid);
	if (!w && tracked)
		w = add_watch(t, ev->pid, ev->time_ns);
	if (w && dump)
		take_dump(t, w,
			&(struct procmap){ .start = ev->start,
				.end = ev->end,
				.inode = ev->inode,
				.dev_major = ev->dev_major,
				.dev_minor = ev->dev_minor,
				.path = ev->text });
}

/* W's process has ended, or become another image, at TIME_NS. W may be NULL. */
static void end_watch(struct jitwatch *w, uint64_t time_ns)
{
	if (!w || time_ns < w->since_ns)
		return;
	w->over = true;
	w->owner.end_ns = time_ns;
}

/* TRACKED: is the life of EV's process followed? */
static void jitwatch_event(struct jitwatches *t, const struct procevent *ev, bool tracked)
{
	if (ev->type == PROCEVENT_MMAP && (ev->prot & PROT_EXEC))
		on_code(t, ev, tracked);
	else if (ev->type == PROCEVENT_EXEC || (ev->type == PROCEVENT_FORK && ev->pid != ev->parent) ||
		 (ev->type == PROCEVENT_EXIT && ev->tid == ev->pid))
		end_watch(watch_of(t, ev->pid), ev->time_ns);
}

/* Search for files, at most every SEARCH_NS, and forget ended processes without samples. */
static void jitwatch_poll(struct jitwatches *t, uint64_t now_ns)
{
	struct stat st;

	if (now_ns < t->search_ns)
		return;
	t->search_ns = now_ns + SEARCH_NS;
	for (uint32_t i = 0; i < t->n; i++) {
		struct jitwatch *w = &t->all[i];

		if (!w->over && w->map < 0 && t->n_fds < FDS_MAX) {
			keep_fd(t, w, &w->map, jitfile_map(&w->owner, &st));
		} else if (w->over && !w->free && w->proc == CAPTURE_NONE &&
			   now_ns > w->owner.end_ns + FORGET_NS) {
			jitwatch_close(t, w);
			drop_slot(t, i);
		}
	}
}

/* Open W's jitdump file, which may have been mapped before the recording. */
static void find_dump(
	struct jitwatches *t, struct jitwatch *w, const struct past_maps *past, const struct image *im)
{
	for (size_t i = 0; im->maps && i < im->maps->n; i++) {
		const struct mapping *m = &im->maps->maps[i];
		struct procmap pm = { .start = m->start, .end = m->end, .offset = m->offset };

		if (file_table_place(past->files, m->file, &pm))
			take_dump(t, w, &pm);
	}
}

/* The watch of IM that is known from events, else a new one; NULL if there is none. */
static struct jitwatch *find_watch(struct jitwatches *t, const struct image *im, uint64_t now_ns)
{
	for (size_t i = t->n; i-- > 0;) {
		struct jitwatch *w = &t->all[i];

		if (!w->free && w->owner.pid == im->tgid && w->proc == CAPTURE_NONE &&
			w->since_ns >= im->begin_ns && w->since_ns < im->end_ns)
			return w;
	}
	return im->end_ns == UINT64_MAX ? add_watch(t, im->tgid, now_ns) : NULL;
}

/*
 * Bind the watch of image IM to PROC in the capture. Returns its index in `all`;
 * UINT32_MAX: the process ended before its files could be searched for, or there
 * is no room. NOW_NS is a time at which it is IM.
 */
static uint32_t jitwatch_bind(struct jitwatches *t, uint32_t proc, const struct past_maps *past,
	const struct image *im, uint64_t now_ns)
{
	struct jitwatch *w = find_watch(t, im, now_ns);

	if (!w)
		return UINT32_MAX;
	w->proc = proc;
	w->owner.start_boot_ns = im->start_boot_ns;
	find_dump(t, w, past, im);
	return (uint32_t)(w - t->all);
}

/* Update `over` and the end times: /proc shows an exit before its event arrives. */
static void jitwatch_settle(struct jitwatches *t, uint64_t now_ns)
{
	for (size_t i = 0; i < t->n; i++) {
		struct jitfile_owner now = { .broker = t->broker };

		if (!t->all[i].over && !jitfile_owner(t->all[i].owner.pid, &now))
			end_watch(&t->all[i], now_ns);
	}
}

/*
 * Open W's perf map again by its name, which may now be another file. If there
 * is none, keep the one found before. -EMEDIUMTYPE: not a regular file.
 */
static int jitwatch_reopen(struct jitwatches *t, struct jitwatch *w)
{
	struct stat st;
	int fd;

	/* the PID may have been reused: keep the file that was found while the process lived */
	if (w->over && w->map >= 0)
		return 0;
	fd = jitfile_map(&w->owner, &st);
	if (fd == -EMEDIUMTYPE)
		return fd;
	keep_fd(t, w, &w->map, fd);
	return 0;
}

#define ADDRS_MAX (4u << 20)
#define UNSEEN (UINT32_MAX - 1) /* a process without a watch: see jitwatch_bind() */
#define MESSAGES_MAX 16

/* A user stack with frames that may be JIT code: `n` addresses from `first` on. */
struct jitted {
	uint32_t first, n;
};

struct wanted {
	uint32_t proc;
	uint64_t addr;
};

struct jit_store {
	struct jitwatches watches;
	struct idmap by_proc; /* process in the capture -> watch, UNSEEN */
	struct idmap stacks; /* stack id -> jitted */
	struct jitted *jitted;
	size_t n_jitted, max_jitted;
	uint64_t *addrs; /* of all in `jitted` */
	size_t n_addrs, max_addrs;
	struct idmap pairs; /* (process, jitted) that are in `wanted` */
	struct idmap known; /* (process, address) that are in `wanted` */
	struct wanted *wanted;
	size_t n_wanted, max_wanted;
	unsigned int messages;
	struct jit_store_stats stats;
};

int jit_store_new(struct jit_store **ret, struct err *e)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return err_nomem(e, "the names of JIT code");
	jitwatch_init(&(*ret)->watches);
	return 0;
}

void jit_store_free(struct jit_store *k)
{
	if (!k)
		return;
	jitwatch_free(&k->watches);
	free(k->jitted);
	free(k->addrs);
	free(k->wanted);
	idmap_free(&k->by_proc);
	idmap_free(&k->stacks);
	idmap_free(&k->pairs);
	idmap_free(&k->known);
	free(k);
}

void jit_store_broker(struct jit_store *k, struct worker *o)
{
	if (k)
		k->watches.broker = o;
}

void jit_store_event(struct jit_store *k, const struct process_table *procs, const struct procevent *ev)
{
	if (k)
		jitwatch_event(&k->watches, ev, process_table_tracks(procs, ev->pid));
}

void jit_store_poll(struct jit_store *k, uint64_t now_ns)
{
	if (k)
		jitwatch_poll(&k->watches, now_ns);
}

/* --- which addresses --- */

/* Does a mapping of PATH hold code for which that file has no names? */
static bool names_no_code(const char *path)
{
	static const char *const prefixes[] = { "/memfd:", "/dev/zero", "/dev/shm/", "/SYSV",
		"/anon_hugepage" };
	const char *base = strrchr(path, '/');

	if (mapfile_is_pseudo(path))
		return strcmp(path, "[vdso]") != 0 && strcmp(path, "[vsyscall]") != 0 &&
		       strcmp(path, "[uprobes]") != 0;
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return base && strncmp(base, "/jit-", 5) == 0;
}

static bool may_be_jit(const struct past_maps *past, const struct image *im, uint64_t addr, uint64_t time_ns)
{
	const struct mapping *m = process_maps_then(im->maps, addr, time_ns);

	return !m || m->file == UINT32_MAX || names_no_code(file_table_path(past->files, m->file));
}

/* The address that frame I of S executes: for a return address, the byte before it. */
static uint64_t byte_of(const struct cap_stack *s, uint32_t i, uint32_t *exact)
{
	while (*exact < s->n_exact && s->exact[*exact] < i)
		++*exact;
	if (!i || !s->frames[i] || (*exact < s->n_exact && s->exact[*exact] == i))
		return s->frames[i];
	return s->frames[i] - 1;
}

/* Note the addresses of stack S, of ID, which is seen for the first time, in IM. */
static void note_stack(struct jit_store *k, const struct offcpu_stack_id *id, const struct cap_stack *s,
	const struct past_maps *past, const struct image *im, uint64_t time_ns)
{
	size_t first = k->n_addrs;
	uint32_t exact = 0;

	for (uint32_t i = 0; i < s->len; i++) {
		uint64_t addr = byte_of(s, i, &exact);

		if (!may_be_jit(past, im, addr, time_ns))
			continue;
		if (k->n_addrs == ADDRS_MAX ||
			base_grow(&k->addrs, &k->max_addrs, k->n_addrs + 1, sizeof(*k->addrs)) != 0)
			k->stats.cut++;
		else
			k->addrs[k->n_addrs++] = addr;
	}
	if (k->n_addrs == first ||
		base_grow(&k->jitted, &k->max_jitted, k->n_jitted + 1, sizeof(*k->jitted)) != 0 ||
		idmap_put(&k->stacks, id->hi, id->lo, (uint32_t)k->n_jitted, NULL) == UINT32_MAX)
		return;
	k->jitted[k->n_jitted++] =
		(struct jitted){ .first = (uint32_t)first, .n = (uint32_t)(k->n_addrs - first) };
}

/* Request names for the addresses of J in PROC. */
static void want(struct jit_store *k, uint32_t proc, const struct jitted *j)
{
	for (uint32_t i = 0; i < j->n; i++) {
		uint64_t addr = k->addrs[j->first + i];
		bool added = false;

		if (k->n_wanted == ADDRS_MAX ||
			base_grow(&k->wanted, &k->max_wanted, k->n_wanted + 1, sizeof(*k->wanted)) != 0) {
			k->stats.cut++;
			return;
		}
		idmap_put(&k->known, proc, addr, 0, &added);
		if (added)
			k->wanted[k->n_wanted++] = (struct wanted){ proc, addr };
	}
}

static void bind(struct jit_store *k, uint32_t proc, const struct past_maps *past, const struct image *im,
	uint64_t time_ns)
{
	uint32_t at;

	if (idmap_find(&k->by_proc, 0, proc))
		return;
	k->stats.processes++;
	at = jitwatch_bind(&k->watches, proc, past, im, time_ns);
	k->stats.unseen += at == UINT32_MAX;
	idmap_put(&k->by_proc, 0, proc, MIN(at, UNSEEN), NULL);
}

void jit_store_see(struct jit_store *k, struct process_table *procs, const struct stack_table *stacks,
	const struct offcpu_key *key, uint32_t proc, uint64_t first_ns)
{
	const struct image *im;
	const struct idmap_slot *slot;
	struct past_maps past;
	struct cap_stack s;
	bool fresh = k && stack_table_user(stacks, &key->user, &s), added = false;

	if (!k || (!fresh && !idmap_find(&k->stacks, key->user.hi, key->user.lo)))
		return;
	im = proc == CAPTURE_NONE ? NULL : process_table_image(procs, key);
	if (!im)
		return;
	process_table_past(procs, &past);
	/* a stack that was forgotten and came again is noted already, if it was */
	if (fresh && !idmap_find(&k->stacks, key->user.hi, key->user.lo))
		note_stack(k, &key->user, &s, &past, im, first_ns);
	slot = idmap_find(&k->stacks, key->user.hi, key->user.lo);
	if (!slot)
		return;
	bind(k, proc, &past, im, first_ns);
	idmap_put(&k->pairs, proc, slot->value, 0, &added);
	if (added)
		want(k, proc, &k->jitted[slot->value]);
}

void jit_store_forget(struct jit_store *k, const struct stack_table *stacks)
{
	struct idmap kept = { 0 };
	size_t n = 0, n_addrs = 0;

	for (size_t i = 0; k && i < k->stacks.n; i++) {
		const struct idmap_slot *s = &k->stacks.slots[i];
		struct jitted j = k->jitted[s->value];

		if (!stack_table_has(stacks, &(struct offcpu_stack_id){ s->hi, s->lo }) ||
			idmap_put(&kept, s->hi, s->lo, (uint32_t)n, NULL) == UINT32_MAX)
			continue;
		memmove(k->addrs + n_addrs, k->addrs + j.first, j.n * sizeof(*k->addrs));
		k->jitted[n] = (struct jitted){ .first = (uint32_t)n_addrs, .n = j.n };
		n_addrs += j.n;
		n++;
	}
	if (!k)
		return;
	k->n_jitted = n;
	k->n_addrs = n_addrs;
	idmap_free(&k->stacks);
	k->stacks = kept;
	/* what is wanted already is in `known` */
	idmap_free(&k->pairs);
}

/* --- at the end --- */

static void report(struct jit_store *k, struct cap_writer *w, const struct jitwatch *of, const char *what,
	const struct err *e)
{
	char text[1200];

	if (k->messages++ >= MESSAGES_MAX)
		return;
	snprintf(text, sizeof(text), "%s of process %u: %s", what, of->owner.pid, e->msg);
	cap_writer_option(w, &(struct cap_option){ "jit", text });
}

static void report_refusal(struct jit_store *k, struct cap_writer *w, const struct jitwatch *of,
	const char *what, const struct err *e)
{
	if (e->code == -EPERM || e->code == -EMEDIUMTYPE)
		k->stats.refused++;
	else if (e->code == -ESTALE)
		k->stats.stale++;
	else
		k->stats.failed++;
	report(k, w, of, what, e);
}

/* Read the names for Q's addresses from its file, which belongs to OF, and write them to W. */
static int read_file(struct jit_store *k, const struct jitwatch *of, const struct jit_reader_question *q,
	struct cap_writer *w, struct err *e)
{
	struct jit_reader_answer a;
	struct stat st;
	int rc = fstat(q->fd, &st) == 0 ? 0 : err_sys(e, -errno, "cannot look at it");

	rc = rc ? rc : jitfile_check(&of->owner, &st, e);
	rc = rc ? rc : jit_reader_ask(q, &a, e);
	if (rc)
		return rc;
	for (size_t i = 0; i < a.n; i++) {
		a.jits[i].proc = of->proc;
		cap_writer_jit(w, &a.jits[i]);
	}
	k->stats.maps_read++;
	k->stats.entries_kept += a.n;
	k->stats.bad_lines += a.bad;
	k->stats.cut += a.cut;
	jit_reader_free(&a);
	return 0;
}

static void write_proc(
	struct jit_store *k, struct jitwatch *of, const uint64_t *addrs, size_t n, struct cap_writer *w)
{
	struct err e = { 0 };

	if (jitwatch_reopen(&k->watches, of) != 0) {
		err_set(&e, -EMEDIUMTYPE, "it is not a regular file");
		report_refusal(k, w, of, "the perf map", &e);
	} else if (of->map >= 0 &&
		   read_file(k, of,
			   &(struct jit_reader_question){
				   .fd = of->map, .kind = CAPTURE_JIT_PERFMAP, .addrs = addrs, .n = n },
			   w, &e) != 0) {
		report_refusal(k, w, of, "the perf map", &e);
	}
	if (of->dump >= 0 &&
		read_file(k, of,
			&(struct jit_reader_question){
				.fd = of->dump, .kind = CAPTURE_JIT_JITDUMP, .addrs = addrs, .n = n },
			w, &e) != 0)
		report_refusal(k, w, of, "the jitdump file", &e);
	k->stats.unseen += of->no_room;
	jitwatch_close(&k->watches, of);
}

static int wanted_cmp(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return x->proc != y->proc ? CMP(x->proc, y->proc) : CMP(x->addr, y->addr);
}

void jit_store_write(struct jit_store *k, struct cap_writer *w)
{
	_cleanup_free_ uint64_t *addrs = NULL;
	size_t n;

	if (!k || !k->n_wanted)
		return;
	addrs = malloc(k->n_wanted * sizeof(*addrs));
	if (!addrs) {
		k->stats.cut += k->n_wanted;
		return;
	}
	jitwatch_settle(&k->watches, now_ns());
	qsort(k->wanted, k->n_wanted, sizeof(*k->wanted), wanted_cmp);
	for (size_t i = 0; i < k->n_wanted; i += n) {
		const struct idmap_slot *s = idmap_find(&k->by_proc, 0, k->wanted[i].proc);

		for (n = 0; i + n < k->n_wanted && k->wanted[i + n].proc == k->wanted[i].proc; n++)
			addrs[n] = k->wanted[i + n].addr;
		if (s && s->value != UNSEEN)
			write_proc(k, &k->watches.all[s->value], addrs, n, w);
	}
	k->n_wanted = 0;
}

void jit_store_stats(const struct jit_store *k, struct jit_store_stats *ret)
{
	*ret = k ? k->stats : (struct jit_store_stats){ 0 };
}
