/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proctab.h"
#include "filetab.h"
#include "idmap.h"
#include "mapset.h"
#include "procinfo.h"
#include "procmaps.h"
#include "threadtab.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */

/* A wait is reported a flush after it ended at the latest: twice that, and more. */
#define KEEP_ENDED_NS UINT64_C(5000000000)
#define FORGET_BATCH 256

struct image {
	uint32_t tgid, ns_tgid;
	uint32_t cap_id; /* CAP_NONE = not in the capture yet */
	uint32_t older; /* the image before it of the same tgid, UINT32_MAX = none */
	uint32_t flags; /* enum cap_proc_flags */
	int32_t maps_error;
	uint32_t exec_id; /* of the thread that claimed it */
	bool free, over; /* the slot is empty; about to be */
	bool claimed; /* a (start, exec_id) was found to be this one */
	bool from_exec; /* its executable is its first mapping */
	uint64_t begin_ns; /* 0 = before the recording */
	uint64_t end_ns; /* UINT64_MAX = lives */
	uint64_t scan_ns; /* events before this are in the scan */
	uint64_t start_boot_ns;
	struct mapset *maps;
	size_t maps_written;
	char comm[OFFCPU_COMM_LEN];
	char *exe;
};

struct proctab {
	bool all, follow;
	uint32_t free_image; /* chained by `older`, UINT32_MAX = none */
	struct filetab *files;
	struct image *images;
	size_t n_images, cap_images;
	struct threadtab threads;
	struct idmap by_tgid; /* tgid -> newest image */
	struct idmap by_key; /* (tgid, exec_id, start) -> image */
	uint32_t emitted;
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
	t->free_image = UINT32_MAX;
	rc = filetab_new(&t->files, e);
	if (rc) {
		free(t);
		return rc;
	}
	*ret = t;
	return 0;
}

static void image_clear(struct image *im)
{
	mapset_drop(im->maps);
	free(im->exe);
	im->maps = NULL;
	im->exe = NULL;
}

void proctab_free(struct proctab *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_images; i++)
		image_clear(&t->images[i]);
	free(t->images);
	threadtab_free(&t->threads);
	idmap_free(&t->by_tgid);
	idmap_free(&t->by_key);
	filetab_free(t->files);
	free(t);
}

static struct image *newest(const struct proctab *t, uint32_t tgid)
{
	struct idmap_slot *s = idmap_find(&t->by_tgid, 0, tgid);

	return s && s->value < t->n_images ? &t->images[s->value] : NULL;
}

/* A slot for an image: one that was forgotten, or a new one; UINT32_MAX without memory. */
static uint32_t image_slot(struct proctab *t)
{
	uint32_t at = t->free_image;

	if (at != UINT32_MAX) {
		t->free_image = t->images[at].older;
		return at;
	}
	if (base_grow(&t->images, &t->cap_images, t->n_images + 1, sizeof(*t->images)) != 0)
		return UINT32_MAX;
	return (uint32_t)t->n_images++;
}

/* A new image of TGID, now its newest; the one before it ended when this began. */
static struct image *add_image(struct proctab *t, uint32_t tgid, uint64_t begin_ns)
{
	uint32_t at = image_slot(t);
	struct image *im, *old;

	if (at == UINT32_MAX || idmap_put(&t->by_tgid, 0, tgid, UINT32_MAX - 1, NULL) == UINT32_MAX)
		return NULL;
	old = newest(t, tgid);
	im = &t->images[at];
	*im = (struct image){ .tgid = tgid,
		.ns_tgid = tgid,
		.cap_id = CAP_NONE,
		.older = UINT32_MAX,
		.begin_ns = begin_ns,
		.end_ns = UINT64_MAX };
	if (old) {
		im->older = (uint32_t)(old - t->images);
		old->end_ns = MIN(old->end_ns, begin_ns);
	}
	idmap_find(&t->by_tgid, 0, tgid)->value = at;
	return im;
}

static void note_map(struct proctab *t, uint32_t image, const struct procmap *pm, uint64_t from_ns)
{
	uint32_t file = filetab_get(t->files, t->images[image].tgid, pm);
	struct image *im = &t->images[image];
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
	if (!mapset_add(&im->maps, &m) && !im->maps_error)
		im->maps_error = -ENOMEM;
}

struct scan {
	struct proctab *t;
	uint32_t image;
	uint64_t from_ns;
};

static int scan_map(void *ctx, const struct procmap *m)
{
	struct scan *s = ctx;

	if (m->prot & PROT_EXEC)
		note_map(s->t, s->image, m, s->from_ns);
	return 0;
}

static int scan_into(struct proctab *t, uint32_t image, uint64_t now_ns, struct err *e)
{
	struct image *im = &t->images[image];
	struct scan s = { .t = t, .image = image, .from_ns = im->begin_ns };
	uint32_t pid = im->tgid;
	int rc;

	im->scan_ns = now_ns;
	procinfo_comm(pid, im->comm);
	if (!im->exe)
		im->exe = procinfo_exe(pid);
	rc = procmaps_each(pid, scan_map, &s, e);
	im = &t->images[image];
	if (rc) {
		im->maps_error = rc;
		im->flags |= CAP_PROC_MAPS_LOST;
	}
	return rc;
}

int proctab_scan(struct proctab *t, uint32_t pid, uint64_t now_ns, struct err *e)
{
	struct image *im = newest(t, pid);

	if (!im || im->end_ns != UINT64_MAX)
		im = add_image(t, pid, 0);
	if (!im)
		return err_nomem(e, "a process");
	return scan_into(t, (uint32_t)(im - t->images), now_ns, e);
}

void proctab_scan_all(struct proctab *t, uint64_t now_ns)
{
	DIR *proc = opendir("/proc");

	for (struct dirent *d; proc && (d = readdir(proc));) {
		if (isdigit((unsigned char)d->d_name[0])) {
			uint32_t pid = (uint32_t)strtoul(d->d_name, NULL, 10);

			if (!newest(t, pid))
				proctab_scan(t, pid, now_ns, NULL);
		}
	}
	if (proc)
		closedir(proc);
}

static void on_fork(struct proctab *t, const struct procevent *ev)
{
	struct image *parent = newest(t, ev->parent), *child;
	uint32_t at;

	/* a thread of the same process */
	if (ev->pid == ev->parent)
		return;
	if (!t->all && !(t->follow && parent && parent->end_ns == UINT64_MAX))
		return;
	at = parent ? (uint32_t)(parent - t->images) : UINT32_MAX;
	child = add_image(t, ev->pid, ev->time_ns);
	if (!child || at == UINT32_MAX)
		return;
	parent = &t->images[at];
	memcpy(child->comm, parent->comm, sizeof(child->comm));
	child->exe = parent->exe ? strdup(parent->exe) : NULL;
	child->maps = mapset_share(parent->maps);
	child->flags = parent->flags;
	child->maps_error = parent->maps_error;
}

static void on_exec(struct proctab *t, const struct procevent *ev)
{
	struct image *im = newest(t, ev->pid);

	if (!im && !t->all)
		return;
	/* a scan that came later than this exec read the new image already */
	if (im && ev->time_ns < im->scan_ns) {
		im->begin_ns = ev->time_ns;
		return;
	}
	im = add_image(t, ev->pid, ev->time_ns);
	if (!im)
		return;
	im->from_exec = true;
	snprintf(im->comm, sizeof(im->comm), "%s", ev->text);
}

static void on_comm(struct proctab *t, const struct procevent *ev)
{
	struct image *im = newest(t, ev->pid);

	if (!im)
		return;
	threadtab_rename(&t->threads, ev->pid, ev->tid, ev->text);
	if (ev->tid == ev->pid)
		snprintf(im->comm, sizeof(im->comm), "%s", ev->text);
}

static void on_mmap(struct proctab *t, const struct procevent *ev)
{
	struct image *im = newest(t, ev->pid);
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

	if (!im || ev->time_ns < im->scan_ns || !(ev->prot & PROT_EXEC))
		return;
	snprintf(path, sizeof(path), "%s", ev->text);
	m.deleted = ev->inode && procinfo_strip_deleted(path);
	note_map(t, (uint32_t)(im - t->images), &m, ev->time_ns);
}

/*
 * The build ID of a mapping is told in a record of its own, right before or
 * after the one of the mapping itself.
 */
static void on_build_id(struct proctab *t, const struct procevent *ev)
{
	struct image *im = newest(t, ev->pid);
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
		im = newest(t, ev->pid);
		if (im && ev->tid == ev->pid)
			im->end_ns = ev->time_ns;
		break;
	case PROCEVENT_LOST:
		t->stats.events_lost += ev->lost;
		break;
	}
}

void proctab_announce(struct proctab *t, const struct offcpu_ev_thread *ev)
{
	threadtab_announce(&t->threads, ev);
}

static uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The unclaimed image of TH's process that was there at FIRST_NS, else a new one read from /proc. */
static uint32_t choose_image(struct proctab *t, const struct thread *th, uint64_t first_ns)
{
	struct image *im = newest(t, th->tgid);
	uint32_t at;

	while (im && im->begin_ns > first_ns)
		im = im->older == UINT32_MAX ? NULL : &t->images[im->older];
	if (im && !im->claimed)
		return (uint32_t)(im - t->images);
	im = add_image(t, th->tgid, im ? first_ns : 0);
	if (!im)
		return UINT32_MAX;
	at = (uint32_t)(im - t->images);
	if (!(th->task_flags & PF_KTHREAD))
		scan_into(t, at, monotonic_ns(), NULL);
	return at;
}

/* From now on this image is TH's process as it is after exec_id execs. */
static void claim_image(struct image *im, const struct thread *th)
{
	im->claimed = true;
	im->start_boot_ns = th->start_boot_ns;
	im->exec_id = th->exec_id;
	im->ns_tgid = th->ns_tgid;
	if (!im->comm[0])
		memcpy(im->comm, th->leader_comm, sizeof(im->comm));
	if (th->task_flags & PF_KTHREAD) {
		im->flags = CAP_PROC_KTHREAD;
		im->maps_error = 0;
	}
}

static uint64_t key_hi(uint32_t tgid, uint32_t exec_id)
{
	return (uint64_t)tgid << 32 | exec_id;
}

static uint32_t image_of(struct proctab *t, const struct thread *th, uint64_t first_ns)
{
	uint64_t hi = key_hi(th->tgid, th->exec_id);
	struct idmap_slot *s = idmap_find(&t->by_key, hi, th->start_boot_ns);
	uint32_t at;

	if (s)
		return s->value;
	at = choose_image(t, th, first_ns);
	if (at == UINT32_MAX || idmap_put(&t->by_key, hi, th->start_boot_ns, at, NULL) == UINT32_MAX)
		return UINT32_MAX;
	claim_image(&t->images[at], th);
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
	const struct image *im = &t->images[th->image];

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
	emit_image(t, &t->images[th->image], w);
	emit_thread(t, th, w);
	return t->images[th->image].cap_id;
}

/* Its last wait is in the capture: the process has ended, and no thread of it is left in /proc. */
static bool is_over(const struct proctab *t, const struct image *im, uint64_t now_ns)
{
	char path[32];

	if (im->end_ns > now_ns || now_ns - im->end_ns < KEEP_ENDED_NS)
		return false;
	if (newest(t, im->tgid) != im)
		return true;
	snprintf(path, sizeof(path), "/proc/%u", im->tgid);
	return access(path, F_OK) != 0;
}

static bool thread_is_over(const void *ctx, const struct thread *th)
{
	const struct proctab *t = ctx;

	return th->image != UINT32_MAX && t->images[th->image].over;
}

/* Take IM out of the chain of its tgid; the images after it in the chain are older, and over too. */
static void unlink_image(struct proctab *t, uint32_t at)
{
	struct idmap_slot *s = idmap_find(&t->by_tgid, 0, t->images[at].tgid);
	uint32_t *link = s ? &s->value : NULL;

	while (link && *link < t->n_images && *link != at)
		link = &t->images[*link].older;
	if (link && *link == at)
		*link = t->images[at].older;
}

/*
 * Memory follows the living: images that are over leave their slots, with
 * their threads. Done for many at a time, as the maps are made anew.
 */
static void forget_images(struct proctab *t)
{
	threadtab_drop(&t->threads, thread_is_over, t);
	idmap_free(&t->by_key);
	for (uint32_t i = 0; i < t->n_images; i++) {
		struct image *im = &t->images[i];

		if (im->over) {
			unlink_image(t, i);
			image_clear(im);
			*im = (struct image){ .cap_id = CAP_NONE, .free = true, .older = t->free_image };
			t->free_image = i;
		} else if (!im->free && im->claimed) {
			idmap_put(&t->by_key, key_hi(im->tgid, im->exec_id), im->start_boot_ns, i, NULL);
		}
	}
}

void proctab_flush(struct proctab *t, uint64_t now_ns, struct capwrite *w)
{
	size_t over = 0;

	for (size_t i = 0; i < t->n_images; i++) {
		struct image *im = &t->images[i];

		if (im->cap_id != CAP_NONE)
			emit_maps(t, im, w);
		im->over = !im->free && is_over(t, im, now_ns);
		over += im->over;
	}
	for (size_t i = 0; i < t->threads.n; i++)
		if (t->threads.threads[i].image != UINT32_MAX)
			emit_thread(t, &t->threads.threads[i], w);
	if (over >= FORGET_BATCH)
		forget_images(t);
}

void proctab_stats(const struct proctab *t, struct proctab_stats *ret)
{
	*ret = t->stats;
	ret->files_unread = filetab_unread(t->files);
}
