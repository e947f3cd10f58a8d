/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proctab.h"
#include "filetab.h"
#include "idmap.h"
#include "mapset.h"
#include "procmaps.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */

/* A wait is reported a flush after it ended at the latest: twice that, and more. */
#define KEEP_ENDED_NS UINT64_C(5000000000)

struct image {
	uint32_t tgid, ns_tgid;
	uint32_t cap_id; /* CAP_NONE = not in the capture yet */
	uint32_t older; /* the image before it of the same tgid, UINT32_MAX = none */
	uint32_t flags; /* enum cap_proc_flags */
	int32_t maps_error;
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

struct thread {
	uint32_t image, tid, ns_tid;
	bool dirty;
	char comm[OFFCPU_COMM_LEN];
};

struct proctab {
	bool all, follow;
	uint32_t free_image; /* chained by `older`, UINT32_MAX = none */
	struct filetab *files;
	struct image *images;
	size_t n_images, cap_images;
	struct thread *threads;
	size_t n_threads, cap_threads;
	struct offcpu_ev_thread *announced;
	size_t n_announced, cap_announced;
	struct idmap by_tgid; /* tgid -> newest image */
	struct idmap by_key; /* (tgid, exec_id, start) -> image */
	struct idmap by_thread; /* (image, tid) -> thread */
	struct idmap by_announced; /* (tgid, tid, start, exec_id) -> announced */
	uint32_t emitted;
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
	free(t->threads);
	free(t->announced);
	idmap_free(&t->by_tgid);
	idmap_free(&t->by_key);
	idmap_free(&t->by_thread);
	idmap_free(&t->by_announced);
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
	*im = (struct image){.tgid = tgid,
	        .ns_tgid = tgid,
	        .cap_id = CAP_NONE,
	        .older = UINT32_MAX,
	        .begin_ns = begin_ns,
	        .end_ns = UINT64_MAX};
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
	struct mapping m = {.from_ns = from_ns,
	        .start = pm->start,
	        .end = pm->end,
	        .offset = pm->offset,
	        .prot = pm->prot,
	        .flags = pm->flags,
	        .file = file};

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

static void read_comm(uint32_t pid, char comm[OFFCPU_COMM_LEN])
{
	char path[64];
	_cleanup_fclose_ FILE *f = NULL;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	f = fopen(path, "re");
	if (!f)
		return;
	/* a name may hold newlines of its own: only the last byte is the file's */
	n = fread(comm, 1, OFFCPU_COMM_LEN - 1, f);
	if (n && comm[n - 1] == '\n')
		n--;
	comm[n] = '\0';
}

static char *read_exe(uint32_t pid)
{
	static const char gone[] = " (deleted)";
	char path[64], target[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return NULL;
	target[n] = '\0';
	if ((size_t)n > sizeof(gone) - 1 && strcmp(target + n - (sizeof(gone) - 1), gone) == 0)
		target[(size_t)n - (sizeof(gone) - 1)] = '\0';
	return strdup(target);
}

static int scan_into(struct proctab *t, uint32_t image, uint64_t now_ns, struct err *e)
{
	struct image *im = &t->images[image];
	struct scan s = {.t = t, .image = image, .from_ns = im->begin_ns};
	uint32_t pid = im->tgid;
	int rc;

	im->scan_ns = now_ns;
	read_comm(pid, im->comm);
	if (!im->exe)
		im->exe = read_exe(pid);
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

static struct thread *find_thread(struct proctab *t, uint32_t image, uint32_t tid)
{
	struct idmap_slot *s = idmap_find(&t->by_thread, image, tid);

	return s ? &t->threads[s->value] : NULL;
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
	struct thread *th;

	if (!im)
		return;
	th = find_thread(t, (uint32_t)(im - t->images), ev->tid);
	if (th) {
		snprintf(th->comm, sizeof(th->comm), "%s", ev->text);
		th->dirty = true;
	}
	if (ev->tid == ev->pid)
		snprintf(im->comm, sizeof(im->comm), "%s", ev->text);
}

static void on_mmap(struct proctab *t, const struct procevent *ev)
{
	static const char gone[] = " (deleted)";
	struct image *im = newest(t, ev->pid);
	size_t len = strlen(ev->text);
	char path[4096];
	struct procmap m = {.start = ev->start,
	        .end = ev->end,
	        .offset = ev->offset,
	        .prot = ev->prot,
	        .flags = ev->flags,
	        .dev_major = ev->dev_major,
	        .dev_minor = ev->dev_minor,
	        .inode = ev->inode,
	        .path = path};

	if (!im || ev->time_ns < im->scan_ns || !(ev->prot & PROT_EXEC))
		return;
	snprintf(path, sizeof(path), "%s", ev->text);
	if (ev->inode && len > sizeof(gone) - 1 && len < sizeof(path) &&
	        strcmp(path + len - (sizeof(gone) - 1), gone) == 0) {
		path[len - (sizeof(gone) - 1)] = '\0';
		m.deleted = true;
	}
	note_map(t, (uint32_t)(im - t->images), &m, ev->time_ns);
}

void proctab_event(struct proctab *t, const struct procevent *ev)
{
	struct image *im;

	switch (ev->type) {
	case PROCEVENT_MMAP:
		on_mmap(t, ev);
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

static uint64_t thread_hi(uint32_t tgid, uint32_t tid)
{
	return (uint64_t)tgid << 32 | tid;
}

static uint64_t thread_lo(uint64_t start_boot_ns, uint32_t exec_id)
{
	return start_boot_ns * 0x9e3779b97f4a7c15u + exec_id;
}

void proctab_announce(struct proctab *t, const struct offcpu_ev_thread *ev)
{
	uint32_t at;
	bool added;

	if (base_grow(&t->announced, &t->cap_announced, t->n_announced + 1, sizeof(*t->announced)) != 0)
		return;
	at = idmap_put(&t->by_announced, thread_hi(ev->tgid, ev->tid),
	        thread_lo(ev->start_boot_ns, ev->exec_id), (uint32_t)t->n_announced, &added);
	if (at == UINT32_MAX)
		return;
	t->announced[at] = *ev;
	if (added)
		t->n_announced++;
}

static const struct offcpu_ev_thread *announcement(const struct proctab *t, const struct offcpu_key *k)
{
	struct idmap_slot *s = idmap_find(
	        &t->by_announced, thread_hi(k->tgid, k->tid), thread_lo(k->start_boot_ns, k->exec_id));

	return s ? &t->announced[s->value] : NULL;
}

/* The unclaimed image of KEY's process that was there at FIRST_NS, else a new one read from /proc. */
static uint32_t choose_image(struct proctab *t, const struct offcpu_key *key, uint64_t first_ns)
{
	struct image *im = newest(t, key->tgid);
	const struct offcpu_ev_thread *said = announcement(t, key);
	bool kthread = said && said->task_flags & PF_KTHREAD;
	struct timespec ts;
	int rc;

	while (im && im->begin_ns > first_ns)
		im = im->older == UINT32_MAX ? NULL : &t->images[im->older];
	if (im && !im->claimed)
		return (uint32_t)(im - t->images);
	im = add_image(t, key->tgid, im ? first_ns : 0);
	if (!im)
		return UINT32_MAX;
	if (kthread)
		return (uint32_t)(im - t->images);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	rc = (int)(im - t->images);
	scan_into(t, (uint32_t)rc, (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec, NULL);
	return (uint32_t)rc;
}

static uint32_t image_of(struct proctab *t, const struct offcpu_key *key, uint64_t first_ns)
{
	uint64_t hi = (uint64_t)key->tgid << 32 | key->exec_id;
	struct idmap_slot *s = idmap_find(&t->by_key, hi, key->start_boot_ns);
	const struct offcpu_ev_thread *said;
	uint32_t at;

	if (s)
		return s->value;
	at = choose_image(t, key, first_ns);
	if (at == UINT32_MAX)
		return at;
	t->images[at].claimed = true;
	t->images[at].start_boot_ns = key->start_boot_ns;
	said = announcement(t, key);
	if (said) {
		t->images[at].ns_tgid = said->ns_tgid;
		if (!t->images[at].comm[0])
			memcpy(t->images[at].comm, said->leader_comm, OFFCPU_COMM_LEN);
		if (said->task_flags & PF_KTHREAD) {
			t->images[at].flags = CAP_PROC_KTHREAD;
			t->images[at].maps_error = 0;
		}
	}
	idmap_put(&t->by_key, hi, key->start_boot_ns, at, NULL);
	return at;
}

static void emit_maps(struct proctab *t, struct image *im, struct capwrite *w)
{
	for (; im->maps && im->maps_written < im->maps->n; im->maps_written++) {
		const struct mapping *m = &im->maps->maps[im->maps_written];
		struct cap_map cm = {.proc = im->cap_id,
		        .file = filetab_emit(t->files, m->file, w),
		        .prot = m->prot,
		        .flags = m->flags,
		        .from_ns = m->from_ns,
		        .start = m->start,
		        .end = m->end,
		        .offset = m->offset};

		capwrite_map(w, &cm);
	}
}

static void emit_image(struct proctab *t, struct image *im, struct capwrite *w)
{
	if (im->cap_id == CAP_NONE) {
		struct cap_proc p = {.id = t->emitted,
		        .tgid = im->tgid,
		        .ns_tgid = im->ns_tgid,
		        .flags = im->flags,
		        .maps_error = im->maps_error,
		        .start_boot_ns = im->start_boot_ns,
		        .image_ns = im->begin_ns,
		        .comm = im->comm,
		        .exe = im->exe ? im->exe : ""};

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

static void emit_thread(struct proctab *t, uint32_t image, const struct offcpu_key *key, struct capwrite *w)
{
	struct thread *th = find_thread(t, image, key->tid);
	const struct offcpu_ev_thread *said;

	if (!th) {
		if (base_grow(&t->threads, &t->cap_threads, t->n_threads + 1, sizeof(*t->threads)) != 0 ||
		        idmap_put(&t->by_thread, image, key->tid, (uint32_t)t->n_threads, NULL) == UINT32_MAX)
			return;
		th = &t->threads[t->n_threads++];
		*th = (struct thread){.image = image, .tid = key->tid, .ns_tid = key->tid, .dirty = true};
		said = announcement(t, key);
		if (said) {
			th->ns_tid = said->ns_tid;
			memcpy(th->comm, said->comm, sizeof(th->comm));
		} else {
			memcpy(th->comm, t->images[image].comm, sizeof(th->comm));
		}
	}
	if (!th->dirty)
		return;
	th->dirty = false;
	capwrite_thread(w, &(struct cap_thread){.proc = t->images[image].cap_id,
	                           .tid = th->tid,
	                           .ns_tid = th->ns_tid,
	                           .comm = th->comm});
}

uint32_t proctab_emit(struct proctab *t, const struct offcpu_key *key, uint64_t first_ns, struct capwrite *w)
{
	uint32_t at = image_of(t, key, first_ns);

	if (at == UINT32_MAX)
		return CAP_NONE;
	emit_image(t, &t->images[at], w);
	emit_thread(t, at, key, w);
	return t->images[at].cap_id;
}

/* An image that ended before any of its waits can still be reported, and had none, leaves its slot. */
static void forget_image(struct proctab *t, uint32_t at)
{
	struct image *im = &t->images[at];
	struct idmap_slot *s = idmap_find(&t->by_tgid, 0, im->tgid);

	image_clear(im);
	if (!s || s->value != at)
		return;
	s->value = im->older;
	*im = (struct image){.cap_id = CAP_NONE, .claimed = true, .older = t->free_image};
	t->free_image = at;
}

void proctab_flush(struct proctab *t, uint64_t now_ns, struct capwrite *w)
{
	for (size_t i = 0; i < t->n_images; i++) {
		struct image *im = &t->images[i];

		if (im->cap_id != CAP_NONE)
			emit_maps(t, im, w);
		else if (!im->claimed && im->end_ns < now_ns && now_ns - im->end_ns > KEEP_ENDED_NS)
			forget_image(t, (uint32_t)i);
	}
	for (size_t i = 0; i < t->n_threads; i++) {
		struct thread *th = &t->threads[i];

		if (th->dirty) {
			struct offcpu_key key = {.tid = th->tid};

			emit_thread(t, th->image, &key, w);
		}
	}
}

void proctab_stats(const struct proctab *t, struct proctab_stats *ret)
{
	*ret = t->stats;
	ret->files_unread = filetab_unread(t->files);
}
