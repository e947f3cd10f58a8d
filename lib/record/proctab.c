/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/proctab.h"
#include "base/clock.h"
#include "record/filetab.h"
#include "record/imagetab.h"
#include "record/pastmap.h"
#include "record/threadtab.h"
#include "system/broker.h"
#include "system/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */

#define FORGET_BATCH 256

struct proctab {
	bool all, follow;
	struct opener *opener;
	struct filetab *files;
	struct imagetab images;
	struct threadtab threads;
	DIR *scanning; /* /proc, as far as it was read; NULL = whole */
	uint32_t emitted;
	bool remapped; /* an address got another meaning since proctab_remapped() asked */
	uint64_t lost_ns; /* when events were lost last */
	proctab_identity *identity; /* NULL = events tell which image a process is */
	void *identity_ctx;
	bool any_stale;
	struct procevent told; /* the last build ID that came before its mapping */
	struct proctab_stats stats;
};

int proctab_new(bool all, bool follow, struct proctab **ret, struct err *e)
{
	struct proctab *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return err_nomem(e, "the table of processes");
	t->all = all;
	t->follow = follow;
	imagetab_init(&t->images);
	rc = filetab_new(&t->files, e);
	if (rc) {
		free(t);
		return rc;
	}
	*ret = t;
	return 0;
}

void proctab_free(struct proctab *t)
{
	if (!t)
		return;
	imagetab_free(&t->images);
	threadtab_free(&t->threads);
	filetab_free(t->files);
	if (t->scanning)
		closedir(t->scanning);
	free(t);
}

void proctab_opener(struct proctab *t, struct opener *o)
{
	t->opener = o;
	filetab_opener(t->files, o);
}

void proctab_without_events(struct proctab *t, proctab_identity *identity, void *ctx)
{
	t->identity = identity;
	t->identity_ctx = ctx;
}

/* SHOWN: see procinfo_living(); 0 = the process itself. */
static void note_map(
	struct proctab *t, uint32_t image, uint32_t shown, const struct procmap *pm, uint64_t from_ns)
{
	uint32_t tgid = t->images.images[image].tgid, file = filetab_get(t->files, shown ? shown : tgid, pm);
	struct image *im = &t->images.images[image];
	struct mapping m = { .from_ns = from_ns,
		.start = pm->start,
		.end = pm->end,
		.offset = pm->offset,
		.prot = pm->prot,
		.flags = pm->flags,
		.file = file };

	if (t->told.pid == im->tgid && t->told.start == pm->start && t->told.end == pm->end)
		filetab_tell(t->files, file, &t->told.build_id);
	if (im->from_exec && !im->exe && file != UINT32_MAX && pm->path[0] == '/')
		im->exe = strdup(pm->path);
	if (mapset_has(im->maps, &m))
		return;
	if (mapset_changes(im->maps, &m)) {
		/* since it was seen to map something; else BPF has walked by what was there until now */
		if (t->identity)
			m.from_ns = MAX(m.from_ns, im->mapped_ns ? im->mapped_ns : im->scan_ns);
		t->remapped = true;
		if (base_grow(&im->changes, &im->cap_changes, im->n_changes + 1, sizeof(*im->changes)) == 0)
			im->changes[im->n_changes++] = m.from_ns;
	}
	if (!mapset_add(&im->maps, &m) && !im->maps_error)
		im->maps_error = -ENOMEM;
}

struct scan {
	struct proctab *t;
	uint32_t image, shown;
	uint64_t from_ns;
};

static int scan_map(void *ctx, const struct procmap *m)
{
	struct scan *s = ctx;

	if (m->prot & PROT_EXEC)
		note_map(s->t, s->image, s->shown, m, s->from_ns);
	return 0;
}

static bool is_told(const struct image *im, const struct offcpu_ev_image *ev)
{
	return (im->told || im->claimed) && im->exec_id == ev->exec_id &&
	       im->start_boot_ns == ev->start_boot_ns;
}

/*
 * Its maps were opened: are they of IM? Without events a process may have
 * execed, or its PID may be another process's, unheard of. -ESRCH then.
 */
static int check_identity(struct proctab *t, struct image *im, struct err *e)
{
	struct offcpu_ev_image now;

	if (!t->identity)
		return 0;
	if (!t->identity(t->identity_ctx, im->tgid, &now))
		return err_set(e, -ESRCH, "process %u has exited", im->tgid);
	if (im->told || im->claimed)
		return is_told(im, &now) ? 0
					 : err_set(e, -ESRCH, "process %u runs another program", im->tgid);
	im->told = true;
	im->exec_id = now.exec_id;
	im->start_boot_ns = now.start_boot_ns;
	return 0;
}

/* What is found was there from FROM_NS on. */
static int scan_from(struct proctab *t, uint32_t image, uint64_t from_ns, uint64_t now_ns, struct err *e)
{
	struct image *im = &t->images.images[image];
	struct scan s = { .t = t, .image = image, .from_ns = from_ns };
	uint32_t pid = procaccess_living(t->opener, im->tgid);
	_cleanup_close_ int fd = -1;
	char comm[PROCINFO_COMM_LEN] = "";
	_cleanup_free_ char *exe = NULL;
	int rc;

	/* a process that is gone: the error is told by whom it is missed */
	s.shown = pid = pid ? pid : im->tgid;

	procinfo_comm(im->tgid, comm);
	fd = procaccess_maps_exe(t->opener, pid, &exe);
	rc = check_identity(t, im, e);
	if (!rc) {
		im->scan_ns = now_ns;
		if (comm[0])
			memcpy(im->comm, comm, sizeof(im->comm));
		if (!im->exe)
			im->exe = TAKE_PTR(exe);
		rc = procmaps_each_of(fd, pid, scan_map, &s, e);
	}
	im = &t->images.images[image];
	im->mapped_ns = 0;
	if (rc == -ESRCH && t->identity) {
		im->gone = true;
		im->end_ns = MIN(im->end_ns, now_ns);
	}
	/* without events what was read before may be all that there ever is */
	if (rc && !(t->identity && im->maps)) {
		im->maps_error = rc;
		im->flags |= CAP_PROC_MAPS_LOST;
	}
	return rc;
}

static int scan_into(struct proctab *t, uint32_t image, uint64_t now_ns, struct err *e)
{
	return scan_from(t, image, t->images.images[image].begin_ns, now_ns, e);
}

int proctab_rescan(struct proctab *t, uint32_t pid, uint64_t now_ns, struct err *e)
{
	struct image *im = imagetab_newest(&t->images, pid);

	if (!im || im->end_ns != UINT64_MAX || !im->scan_ns)
		return proctab_scan(t, pid, now_ns, e);
	return scan_from(t, (uint32_t)(im - t->images.images), im->scan_ns, now_ns, e);
}

int proctab_scan(struct proctab *t, uint32_t pid, uint64_t now_ns, struct err *e)
{
	struct image *im = imagetab_newest(&t->images, pid);

	if (!im || im->end_ns != UINT64_MAX)
		im = imagetab_add(&t->images, pid, 0);
	if (!im)
		return err_nomem(e, "a process");
	return scan_into(t, (uint32_t)(im - t->images.images), now_ns, e);
}

/* --- without events --- */

#define RESCAN_MIN_NS UINT64_C(100000) /* between two scans; a process may take half of the time at most */
#define RESCAN_MAX_NS UINT64_C(100000000) /* what has no mapping, whenever its process is scanned */

void proctab_mapping(struct proctab *t, const struct offcpu_ev_image *ev)
{
	struct image *im = imagetab_newest(&t->images, ev->tgid);

	if (im && is_told(im, ev) && !im->mapped_ns)
		im->mapped_ns = ev->time_ns;
}

/* The longer, the more often nothing new is found. */
static void freshen(struct proctab *t, uint32_t at)
{
	struct image *im = &t->images.images[at];
	uint64_t began = now_ns(), waited = im->scan_ns ? began - im->scan_ns : 0, took;
	size_t n = im->maps ? im->maps->n : 0;

	im->stale = false;
	im->maps_error = 0;
	im->flags &= ~(uint32_t)CAP_PROC_MAPS_LOST;
	scan_from(t, at, im->scan_ns ? im->scan_ns : im->begin_ns, began, NULL);
	im = &t->images.images[at];
	took = MAX(now_ns() - began, RESCAN_MIN_NS);
	if (im->maps && im->maps->n == n)
		took = MAX(took, MIN(waited, RESCAN_MAX_NS));
	im->due_ns = began + took;
}

/* It is what its parent was: known, as far as that was read since. */
static void inherit(struct proctab *t, struct image *child, const struct offcpu_ev_image *ev)
{
	struct image *parent = imagetab_newest(&t->images, ev->parent);
	uint32_t at = (uint32_t)(child - t->images.images);

	if (!parent || !(parent->told || parent->claimed))
		return;
	if (parent->scan_ns <= ev->time_ns && !parent->gone && parent->due_ns <= now_ns()) {
		freshen(t, (uint32_t)(parent - t->images.images));
		parent = imagetab_newest(&t->images, ev->parent);
		child = &t->images.images[at];
	}
	memcpy(child->comm, parent->comm, sizeof(child->comm));
	child->exe = parent->exe ? strdup(parent->exe) : NULL;
	child->maps = mapset_share(parent->maps);
	child->stale = !parent->scan_ns;
}

void proctab_image_seen(struct proctab *t, const struct offcpu_ev_image *ev)
{
	struct image *im = imagetab_newest(&t->images, ev->tgid);
	uint64_t begin_ns = im ? MAX(im->begin_ns, im->scan_ns) : 0;

	if (imagetab_claimed(&t->images, ev->tgid, ev->exec_id, ev->start_boot_ns) != UINT32_MAX ||
		imagetab_told(&t->images, ev->tgid, ev->exec_id, ev->start_boot_ns) != UINT32_MAX)
		return;
	im = imagetab_add(&t->images, ev->tgid, begin_ns);
	if (!im)
		return;
	im->told = im->stale = true;
	im->exec_id = ev->exec_id;
	im->start_boot_ns = ev->start_boot_ns;
	if (ev->type == OFFCPU_EV_FORK)
		inherit(t, im, ev);
	t->any_stale = true;
}

bool proctab_is_still(struct proctab *t, const struct offcpu_ev_image *ev)
{
	struct offcpu_ev_image now;

	return !t->identity || (t->identity(t->identity_ctx, ev->tgid, &now) && now.exec_id == ev->exec_id &&
				       now.start_boot_ns == ev->start_boot_ns);
}

void proctab_stale(struct proctab *t, const struct offcpu_ev_image *ev, bool at_once)
{
	struct image *im = imagetab_newest(&t->images, ev->tgid);

	if (!im || !is_told(im, ev) || im->gone)
		return;
	im->stale = t->any_stale = true;
	if (at_once)
		im->due_ns = 0;
}

void proctab_freshen(struct proctab *t, uint64_t budget_ns)
{
	uint64_t began = now_ns();

	if (!t->any_stale)
		return;
	t->any_stale = false;
	for (uint32_t i = (uint32_t)t->images.n; i-- > 0;) {
		const struct image *im = &t->images.images[i];
		uint64_t now = now_ns();

		if (im->free || !im->stale)
			continue;
		if (now < im->due_ns || now - began > budget_ns)
			t->any_stale = true;
		else
			freshen(t, i);
	}
}

void proctab_refresh(struct proctab *t, const struct offcpu_key *key, uint64_t time_ns)
{
	uint32_t at = imagetab_claimed(&t->images, key->tgid, key->exec_id, key->start_boot_ns);
	const struct image *im;

	if (at == UINT32_MAX)
		at = imagetab_told(&t->images, key->tgid, key->exec_id, key->start_boot_ns);
	im = at == UINT32_MAX ? NULL : &t->images.images[at];
	if (im && !im->gone && !(im->flags & CAP_PROC_KTHREAD) && im->scan_ns <= time_ns)
		freshen(t, at);
}

bool proctab_covers(const struct proctab *t, uint32_t pid, uint64_t addr)
{
	const struct image *im = imagetab_newest(&t->images, pid);

	return im && mapset_at(im->maps, addr);
}

void proctab_scan_all(struct proctab *t)
{
	t->scanning = opendir("/proc");
}

bool proctab_scan_some(struct proctab *t, uint64_t budget_ns)
{
	uint64_t began = now_ns();
	struct dirent *d = NULL;

	while (t->scanning && (now_ns() - began < budget_ns)) {
		uint32_t pid;

		d = readdir(t->scanning);
		if (!d) {
			closedir(t->scanning);
			t->scanning = NULL;
			break;
		}
		pid = isdigit((unsigned char)d->d_name[0]) ? (uint32_t)strtoul(d->d_name, NULL, 10) : 0;
		if (pid && !imagetab_newest(&t->images, pid))
			proctab_scan(t, pid, now_ns(), NULL);
	}
	return !t->scanning;
}

static void on_fork(struct proctab *t, const struct procevent *ev)
{
	struct image *parent = imagetab_newest(&t->images, ev->parent), *child;
	uint32_t at;

	/* a thread of the same process */
	if (ev->pid == ev->parent)
		return;
	if (!t->all && !(t->follow && parent && parent->end_ns == UINT64_MAX))
		return;
	at = parent ? (uint32_t)(parent - t->images.images) : UINT32_MAX;
	child = imagetab_add(&t->images, ev->pid, ev->time_ns);
	if (!child || at == UINT32_MAX)
		return;
	parent = &t->images.images[at];
	memcpy(child->comm, parent->comm, sizeof(child->comm));
	child->exe = parent->exe ? strdup(parent->exe) : NULL;
	child->maps = mapset_share(parent->maps);
	child->flags = parent->flags;
	child->maps_error = parent->maps_error;
	child->mixed = parent->mixed || ev->time_ns < parent->scan_ns;
}

static void on_exec(struct proctab *t, const struct procevent *ev)
{
	struct image *im = imagetab_newest(&t->images, ev->pid);

	if (!im && !t->all)
		return;
	/* a scan that came later than this exec read the new image already */
	if (im && ev->time_ns < im->scan_ns) {
		im->begin_ns = ev->time_ns;
		return;
	}
	im = imagetab_add(&t->images, ev->pid, ev->time_ns);
	if (!im)
		return;
	im->from_exec = true;
	snprintf(im->comm, sizeof(im->comm), "%s", ev->text);
}

static void on_comm(struct proctab *t, const struct procevent *ev)
{
	struct image *im = imagetab_newest(&t->images, ev->pid);

	if (!im)
		return;
	threadtab_rename(&t->threads, ev->pid, ev->tid, ev->text);
	if (ev->tid == ev->pid)
		snprintf(im->comm, sizeof(im->comm), "%s", ev->text);
}

static void on_mmap(struct proctab *t, const struct procevent *ev)
{
	struct image *im = imagetab_newest(&t->images, ev->pid);
	char path[4096];
	struct procmap m = { .start = ev->start,
		.end = ev->end,
		.offset = ev->offset,
		.prot = ev->prot,
		.flags = ev->flags,
		.dev_major = ev->dev_major,
		.dev_minor = ev->dev_minor,
		.inode = ev->inode,
		.path = path };

	if (!im || !(ev->prot & PROT_EXEC))
		return;
	if (ev->time_ns < im->scan_ns) {
		im->overtaken_ns = MAX(im->overtaken_ns, ev->time_ns);
		return;
	}
	snprintf(path, sizeof(path), "%s", ev->text);
	m.deleted = ev->inode && procinfo_strip_deleted(path);
	note_map(t, (uint32_t)(im - t->images.images), 0, &m, ev->time_ns);
}

/*
 * The build ID of a mapping is told in a record of its own, right before or
 * after the one of the mapping itself.
 */
static void on_build_id(struct proctab *t, const struct procevent *ev)
{
	struct image *im = imagetab_newest(&t->images, ev->pid);
	const struct mapping *m = im ? mapset_at(im->maps, ev->start) : NULL;

	if (m && m->start == ev->start && m->end == ev->end)
		filetab_tell(t->files, m->file, &ev->build_id);
	else
		t->told = *ev;
}

void proctab_event(struct proctab *t, const struct procevent *ev)
{
	struct image *im;

	switch (ev->type) {
	case PROCEVENT_MMAP:
		on_mmap(t, ev);
		break;
	case PROCEVENT_BUILD_ID:
		on_build_id(t, ev);
		break;
	case PROCEVENT_COMM:
		on_comm(t, ev);
		break;
	case PROCEVENT_EXEC:
		on_exec(t, ev);
		break;
	case PROCEVENT_FORK:
		on_fork(t, ev);
		break;
	case PROCEVENT_EXIT:
		im = imagetab_newest(&t->images, ev->pid);
		if (im && ev->tid == ev->pid)
			im->end_ns = ev->time_ns;
		break;
	case PROCEVENT_LOST:
		t->stats.events_lost += ev->lost;
		t->lost_ns = ev->time_ns;
		break;
	}
}

void proctab_announce(struct proctab *t, const struct offcpu_ev_thread *ev)
{
	threadtab_announce(&t->threads, ev);
}

void proctab_identify(struct proctab *t, uint32_t tgid, uint32_t exec_id, uint64_t start_boot_ns)
{
	imagetab_tell(&t->images, tgid, exec_id, start_boot_ns);
}

/* The unclaimed image of TH's process that was there at FIRST_NS, else a new one read from /proc. */
static uint32_t choose_image(struct proctab *t, const struct thread *th, uint64_t first_ns)
{
	uint32_t at = imagetab_told(&t->images, th->tgid, th->exec_id, th->start_boot_ns);
	struct image *im;

	if (at != UINT32_MAX)
		return at;
	im = imagetab_at(&t->images, th->tgid, first_ns);
	if (im && !im->claimed && !im->told)
		return (uint32_t)(im - t->images.images);
	im = imagetab_add(&t->images, th->tgid, im ? first_ns : 0);
	if (!im)
		return UINT32_MAX;
	at = (uint32_t)(im - t->images.images);
	if (!(th->task_flags & PF_KTHREAD))
		scan_into(t, at, now_ns(), NULL);
	return at;
}

/* Its maps could not be read; but a process of which a wait is recorded may be another user's no more. */
static void scan_refused(struct proctab *t, uint32_t at)
{
	struct image *im = &t->images.images[at];

	if (im->maps_error != -EACCES || im->end_ns != UINT64_MAX)
		return;
	im->maps_error = 0;
	im->flags &= ~(uint32_t)CAP_PROC_MAPS_LOST;
	scan_into(t, at, now_ns(), NULL);
}

/* What BPF told of TH completes what /proc and the events told. */
static void name_image(struct image *im, const struct thread *th)
{
	im->ns_tgid = th->ns_tgid;
	if (!im->comm[0])
		memcpy(im->comm, th->leader_comm, sizeof(im->comm));
	if (th->task_flags & PF_KTHREAD) {
		im->flags = CAP_PROC_KTHREAD;
		im->maps_error = 0;
	}
}

static uint32_t image_of(struct proctab *t, const struct thread *th, uint64_t first_ns)
{
	uint32_t at = imagetab_claimed(&t->images, th->tgid, th->exec_id, th->start_boot_ns);

	if (at != UINT32_MAX)
		return at;
	at = choose_image(t, th, first_ns);
	if (at == UINT32_MAX || !imagetab_claim(&t->images, at, th->exec_id, th->start_boot_ns))
		return UINT32_MAX;
	scan_refused(t, at);
	name_image(&t->images.images[at], th);
	return at;
}

static void emit_maps(struct proctab *t, struct image *im, struct capwrite *w)
{
	for (; im->maps && im->maps_written < im->maps->n; im->maps_written++) {
		const struct mapping *m = &im->maps->maps[im->maps_written];
		struct cap_map cm = { .proc = im->cap_id,
			.file = filetab_emit(t->files, m->file, w),
			.prot = m->prot,
			.flags = m->flags,
			.from_ns = m->from_ns,
			.start = m->start,
			.end = m->end,
			.offset = m->offset };

		capwrite_map(w, &cm);
	}
}

static void emit_image(struct proctab *t, struct image *im, struct capwrite *w)
{
	if (im->cap_id == CAP_NONE) {
		struct cap_proc p = { .id = t->emitted,
			.tgid = im->tgid,
			.ns_tgid = im->ns_tgid,
			.flags = im->flags,
			.maps_error = im->maps_error,
			.start_boot_ns = im->start_boot_ns,
			.image_ns = im->begin_ns,
			.comm = im->comm,
			.exe = im->exe ? im->exe : "" };

		if (!(im->flags & CAP_PROC_KTHREAD) && (!im->maps || !im->maps->n)) {
			p.flags |= CAP_PROC_MAPS_LOST;
			p.maps_error = im->maps_error ? im->maps_error : -ESRCH;
			if (p.maps_error == -EACCES || p.maps_error == -EPERM)
				t->stats.maps_refused++;
			else
				t->stats.maps_lost++;
		}
		im->cap_id = t->emitted++;
		t->stats.images++;
		capwrite_proc(w, &p);
	}
	emit_maps(t, im, w);
}

static void emit_thread(const struct proctab *t, struct thread *th, struct capwrite *w)
{
	const struct image *im = &t->images.images[th->image];

	if (!th->dirty)
		return;
	th->dirty = false;
	capwrite_thread(w, &(struct cap_thread){ .proc = im->cap_id,
				   .tid = th->tid,
				   .ns_tid = th->ns_tid,
				   .comm = th->comm[0] ? th->comm : im->comm });
}

uint32_t proctab_emit(struct proctab *t, const struct offcpu_key *key, uint64_t first_ns, struct capwrite *w)
{
	struct thread *th = threadtab_get(&t->threads, key);

	if (!th)
		return CAP_NONE;
	if (th->image == UINT32_MAX)
		th->image = image_of(t, th, first_ns);
	if (th->image == UINT32_MAX)
		return CAP_NONE;
	emit_image(t, &t->images.images[th->image], w);
	emit_thread(t, th, w);
	return t->images.images[th->image].cap_id;
}

static bool thread_is_over(const void *ctx, const struct thread *th)
{
	const struct proctab *t = ctx;

	return th->image != UINT32_MAX && t->images.images[th->image].over;
}

/* Ends that no event reports. */
static void find_ends(struct proctab *t, uint64_t now_ns)
{
	char path[32];

	for (size_t i = 0; i < t->images.n; i++) {
		struct image *im = &t->images.images[i];

		snprintf(path, sizeof(path), "/proc/%u", im->tgid);
		if (!im->free && im->end_ns == UINT64_MAX && access(path, F_OK) != 0)
			im->end_ns = now_ns;
	}
}

/* Memory follows the living: done for many images at a time, as the indexes are made anew. */
void proctab_flush(struct proctab *t, uint64_t now_ns, struct capwrite *w)
{
	for (size_t i = 0; i < t->images.n; i++)
		if (t->images.images[i].cap_id != CAP_NONE)
			emit_maps(t, &t->images.images[i], w);
	for (size_t i = 0; i < t->threads.n; i++)
		if (t->threads.threads[i].image != UINT32_MAX)
			emit_thread(t, &t->threads.threads[i], w);
	if (t->identity)
		find_ends(t, now_ns);
	if (imagetab_mark_over(&t->images, now_ns) >= FORGET_BATCH) {
		threadtab_drop(&t->threads, thread_is_over, t);
		imagetab_forget(&t->images);
	}
}

/* How many changes of IM came up to TIME_NS. */
static uint32_t changes_until(const struct image *im, uint64_t time_ns)
{
	uint32_t n = 0;

	while (n < im->n_changes && im->changes[n] <= time_ns)
		n++;
	return n;
}

const struct image *proctab_image(struct proctab *t, const struct offcpu_key *key)
{
	const struct thread *th = threadtab_get(&t->threads, key);

	return th && th->image != UINT32_MAX ? &t->images.images[th->image] : NULL;
}

bool proctab_tracks(const struct proctab *t, uint32_t pid)
{
	return imagetab_newest(&t->images, pid) != NULL;
}

uint32_t proctab_epoch(struct proctab *t, const struct offcpu_key *key, uint64_t first_ns, uint64_t last_ns)
{
	const struct image *im = proctab_image(t, key);
	uint32_t first;

	if (!im || !im->n_changes)
		return 0;
	first = changes_until(im, first_ns);
	/* waits on both sides of a change are odd ones out: apart from those of either side */
	return 2 * first + (changes_until(im, last_ns) != first);
}

const struct mapset *proctab_maps(struct proctab *t, const struct offcpu_key *key)
{
	const struct image *im = proctab_image(t, key);

	return im ? im->maps : NULL;
}

struct filetab *proctab_files(struct proctab *t)
{
	return t->files;
}

void proctab_past(const struct proctab *t, struct pastmap *ret)
{
	*ret = (struct pastmap){ .images = &t->images,
		.files = t->files,
		.scanning = t->scanning != NULL,
		.no_events = t->identity != NULL,
		.lost_ns = t->lost_ns };
}

bool proctab_remapped(struct proctab *t)
{
	bool remapped = t->remapped;

	t->remapped = false;
	return remapped;
}

void proctab_stats(const struct proctab *t, struct proctab_stats *ret)
{
	*ret = t->stats;
	ret->files_unread = filetab_unread(t->files);
}
