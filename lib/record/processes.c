/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/processes.h"
#include "base/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

struct threadtab {
	struct thread *threads;
	size_t n, cap;
	struct idmap by_key; /* (tgid, tid, start, exec_id) */
	struct idmap by_tid; /* (tgid, tid): the newest */
};

static uint64_t pair(uint32_t hi, uint32_t lo)
{
	return (uint64_t)hi << 32 | lo;
}

static uint64_t image_lo(uint64_t start_boot_ns, uint32_t exec_id)
{
	/* start times less than 2^64 / golden ratio apart never collide: they are nanoseconds of one boot */
	return start_boot_ns * 0x9e3779b97f4a7c15u + exec_id;
}

static bool index_thread(struct threadtab *t, uint32_t at)
{
	const struct thread *th = &t->threads[at];
	uint64_t id = pair(th->tgid, th->tid);
	struct idmap_slot *s;

	if (idmap_put(&t->by_key, id, image_lo(th->start_boot_ns, th->exec_id), at, NULL) == UINT32_MAX ||
		idmap_put(&t->by_tid, 0, id, at, NULL) == UINT32_MAX)
		return false;
	s = idmap_find(&t->by_tid, 0, id);
	s->value = at;
	return true;
}

/* The thread KEY; NULL if it is unknown. */
static struct thread *threadtab_find(const struct threadtab *t, const struct offcpu_key *key)
{
	const struct idmap_slot *s =
		idmap_find(&t->by_key, pair(key->tgid, key->tid), image_lo(key->start_boot_ns, key->exec_id));

	return s ? &t->threads[s->value] : NULL;
}

/* The same, a new nameless one if it is unknown; NULL if out of memory. */
static struct thread *threadtab_get(struct threadtab *t, const struct offcpu_key *key)
{
	struct thread *th = threadtab_find(t, key);

	if (th)
		return th;
	if (base_grow(&t->threads, &t->cap, t->n + 1, sizeof(*t->threads)) != 0)
		return NULL;
	th = &t->threads[t->n];
	*th = (struct thread){ .tgid = key->tgid,
		.tid = key->tid,
		.ns_tgid = key->tgid,
		.ns_tid = key->tid,
		.start_boot_ns = key->start_boot_ns,
		.exec_id = key->exec_id,
		.image = UINT32_MAX };
	if (!index_thread(t, (uint32_t)t->n))
		return NULL;
	t->n++;
	return th;
}

/* From FROM_NS on TH has the name COMM; 0: in place of the last one. Without memory it keeps the old one. */
static void add_name(struct thread *th, const char *comm, uint64_t from_ns)
{
	struct thread_name *last = th->n_names ? &th->names[th->n_names - 1] : NULL;
	size_t max = th->max_names;

	if (last && strncmp(last->comm, comm, OFFCPU_COMM_LEN - 1) == 0)
		return;
	if (last && from_ns <= last->from_ns) {
		th->n_names--;
		th->n_written = MIN(th->n_written, th->n_names);
		from_ns = last->from_ns;
	}
	if (base_grow(&th->names, &max, th->n_names + 1, sizeof(*th->names)) != 0)
		return;
	th->max_names = (uint32_t)max;
	th->names[th->n_names] = (struct thread_name){ .from_ns = from_ns };
	snprintf(th->names[th->n_names++].comm, OFFCPU_COMM_LEN, "%.*s", OFFCPU_COMM_LEN - 1, comm);
}

/* Store BPF's report of a thread. BPF sends it again after an exec of the process. */
static void threadtab_announce(struct threadtab *t, const struct offcpu_ev_thread *ev)
{
	struct offcpu_key key = {
		.tgid = ev->tgid, .tid = ev->tid, .start_boot_ns = ev->start_boot_ns, .exec_id = ev->exec_id
	};
	struct thread *th = threadtab_get(t, &key);

	if (!th)
		return;
	th->ns_tgid = ev->ns_tgid;
	th->ns_tid = ev->ns_tid;
	th->task_flags = ev->task_flags;
	memcpy(th->leader_comm, ev->leader_comm, sizeof(th->leader_comm));
	th->timed = ev->time_ns != 0;
	add_name(th, ev->comm, th->n_names ? ev->time_ns : 0);
}

/* Rename thread TID of TGID, unless BPF does. */
static void threadtab_rename(struct threadtab *t, uint32_t tgid, uint32_t tid, const char *comm)
{
	struct idmap_slot *s = idmap_find(&t->by_tid, 0, pair(tgid, tid));

	if (s && !t->threads[s->value].timed)
		add_name(&t->threads[s->value], comm, 0);
}

/* Forget the threads for which GONE returns true. */
static void threadtab_drop(
	struct threadtab *t, bool (*gone)(const void *ctx, const struct thread *th), const void *ctx)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->n; i++)
		if (gone(ctx, &t->threads[i]))
			free(t->threads[i].names);
		else
			t->threads[kept++] = t->threads[i];
	if (kept == t->n)
		return;
	t->n = kept;
	idmap_free(&t->by_key);
	idmap_free(&t->by_tid);
	for (size_t i = 0; i < t->n; i++)
		index_thread(t, (uint32_t)i);
}

static void threadtab_free(struct threadtab *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->threads[i].names);
	free(t->threads);
	idmap_free(&t->by_key);
	idmap_free(&t->by_tid);
	*t = (struct threadtab){ 0 };
}

struct process_maps *process_maps_share(struct process_maps *m)
{
	if (m)
		m->refs++;
	return m;
}

void process_maps_drop(struct process_maps *m)
{
	if (!m || --m->refs)
		return;
	free(m->maps);
	free(m);
}

/* A copy of OLD (NULL = empty) with room for one more mapping; NULL if out of memory. */
static struct process_maps *copy(const struct process_maps *old)
{
	struct process_maps *m = calloc(1, sizeof(*m));
	size_t n = old ? old->n : 0;

	if (!m || base_grow(&m->maps, &m->cap, n + 1, sizeof(*m->maps)) != 0) {
		free(m);
		return NULL;
	}
	m->refs = 1;
	if (n)
		memcpy(m->maps, old->maps, n * sizeof(*m->maps));
	m->n = n;
	return m;
}

const struct mapping *process_maps_then(const struct process_maps *m, uint64_t addr, uint64_t time_ns)
{
	for (size_t i = m ? m->n : 0; i-- > 0;)
		if (m->maps[i].start <= addr && addr < m->maps[i].end && m->maps[i].from_ns <= time_ns)
			return &m->maps[i];
	return NULL;
}

const struct mapping *process_maps_at(const struct process_maps *m, uint64_t addr)
{
	return process_maps_then(m, addr, UINT64_MAX);
}

static bool same_place(const struct mapping *a, const struct mapping *b)
{
	if (a->file != b->file)
		return false;
	return a->file == UINT32_MAX || a->start - a->offset == b->start - b->offset;
}

/* Would NEW change what addresses in M refer to: another file, or another place in it? */
static bool process_maps_changes(const struct process_maps *m, const struct mapping *new)
{
	for (size_t i = 0; m && i < m->n; i++)
		if (m->maps[i].start < new->end &&new->start < m->maps[i].end &&
			!same_place(&m->maps[i], new))
			return true;
	return false;
}

/*
 * Does M (may be NULL) have NEW already? A mapping can be reported twice: by a
 * scan and an event, or by an mprotect that changed nothing here.
 */
static bool process_maps_has(const struct process_maps *m, const struct mapping *new)
{
	const struct mapping *old = process_maps_at(m, new->start);

	if (!old || old->file != new->file)
		return false;
	/* anonymous code grows and shrinks by mprotect: a part of a known mapping is not new */
	if (new->file == UINT32_MAX)
		return old->start <= new->start &&new->end <= old->end;
	return old->start == new->start && old->end == new->end && old->offset == new->offset;
}

bool process_maps_add(struct process_maps **m, const struct mapping *new)
{
	if (process_maps_has(*m, new))
		return true;
	if (!*m || (*m)->refs > 1) {
		struct process_maps *own = copy(*m);

		if (!own)
			return false;
		process_maps_drop(*m);
		*m = own;
	}
	if (base_grow(&(*m)->maps, &(*m)->cap, (*m)->n + 1, sizeof(*(*m)->maps)) != 0)
		return false;
	(*m)->maps[(*m)->n++] = *new;
	return true;
}

/* A wait is reported at most a flush after its end: keep ended images for more than twice that. */
#define KEEP_ENDED_NS UINT64_C(5000000000)

static uint32_t imagetab_reported(
	const struct imagetab *t, uint32_t tgid, uint32_t exec_id, uint64_t start_boot_ns);

static void imagetab_init(struct imagetab *t)
{
	*t = (struct imagetab){ .free = UINT32_MAX };
}

static void image_clear(struct image *im)
{
	process_maps_drop(im->maps);
	free(im->exe);
	free(im->changes);
	im->maps = NULL;
	im->exe = NULL;
	im->changes = NULL;
}

static void imagetab_free(struct imagetab *t)
{
	for (size_t i = 0; i < t->n; i++)
		image_clear(&t->images[i]);
	free(t->images);
	idmap_free(&t->by_tgid);
	idmap_free(&t->by_key);
	imagetab_init(t);
}

static struct image *imagetab_newest(const struct imagetab *t, uint32_t tgid)
{
	struct idmap_slot *s = idmap_find(&t->by_tgid, 0, tgid);

	return s && s->value < t->n ? &t->images[s->value] : NULL;
}

/* The image of TGID at TIME_NS, the oldest known one if all began later, or NULL. */
static struct image *imagetab_at(const struct imagetab *t, uint32_t tgid, uint64_t time_ns)
{
	struct image *im = imagetab_newest(t, tgid);

	while (im && im->begin_ns > time_ns && im->older != UINT32_MAX)
		im = &t->images[im->older];
	return im;
}

/*
 * The image with this identity at TIME_NS, if it had begun by then and its
 * mappings are known and certainly its own; else NULL.
 */
static const struct image *imagetab_then(
	const struct imagetab *t, uint32_t tgid, uint32_t exec_id, uint64_t start_boot_ns, uint64_t time_ns)
{
	uint32_t at = imagetab_reported(t, tgid, exec_id, start_boot_ns);
	const struct image *im = at != UINT32_MAX ? &t->images[at] : imagetab_at(t, tgid, time_ns);

	if (!im || im->begin_ns > time_ns || im->mixed || im->maps_error ||
		((im->claimed || im->reported) &&
			(im->exec_id != exec_id || im->start_boot_ns != start_boot_ns)))
		return NULL;
	return im;
}

/* A free slot for an image, or a new one; UINT32_MAX if out of memory. */
static uint32_t take_slot(struct imagetab *t)
{
	uint32_t at = t->free;

	if (at != UINT32_MAX) {
		t->free = t->images[at].older;
		return at;
	}
	if (base_grow(&t->images, &t->cap, t->n + 1, sizeof(*t->images)) != 0)
		return UINT32_MAX;
	t->images[t->n] = (struct image){ .free = true };
	return (uint32_t)t->n++;
}

/* Add an image of TGID, now its newest. The image before it ends when it begins. NULL if out of memory. */
static struct image *imagetab_add(struct imagetab *t, uint32_t tgid, uint64_t begin_ns)
{
	struct image *old = NULL, *im;
	struct idmap_slot *s;
	uint32_t at = take_slot(t);

	if (at == UINT32_MAX)
		return NULL;
	/* a tgid whose images were all forgotten has the value UINT32_MAX too, which is not an error then */
	idmap_put(&t->by_tgid, 0, tgid, UINT32_MAX, NULL);
	s = idmap_find(&t->by_tgid, 0, tgid);
	if (!s)
		return NULL;
	if (s->value < t->n)
		old = &t->images[s->value];
	im = &t->images[at];
	*im = (struct image){ .tgid = tgid,
		.ns_tgid = tgid,
		.cap_id = CAPTURE_NONE,
		.older = old ? s->value : UINT32_MAX,
		.begin_ns = begin_ns,
		.end_ns = UINT64_MAX };
	if (old && old->begin_ns < begin_ns)
		old->end_ns = MIN(old->end_ns, begin_ns);
	s->value = at;
	return im;
}

static uint64_t key_hi(uint32_t tgid, uint32_t exec_id)
{
	return (uint64_t)tgid << 32 | exec_id;
}

/* The image that was claimed with this identity; UINT32_MAX = none. */
static uint32_t imagetab_claimed(
	const struct imagetab *t, uint32_t tgid, uint32_t exec_id, uint64_t start_boot_ns)
{
	struct idmap_slot *s = idmap_find(&t->by_key, key_hi(tgid, exec_id), start_boot_ns);

	return s ? s->value : UINT32_MAX;
}

/* Give image AT this identity. False if out of memory. */
static bool imagetab_claim(struct imagetab *t, uint32_t at, uint32_t exec_id, uint64_t start_boot_ns)
{
	struct image *im = &t->images[at];

	im->claimed = true;
	im->exec_id = exec_id;
	im->start_boot_ns = start_boot_ns;
	return idmap_put(&t->by_key, key_hi(im->tgid, exec_id), start_boot_ns, at, NULL) != UINT32_MAX;
}

/*
 * Give the newest image of TGID this identity: for a caller that knows it from
 * a better source than times. imagetab_told() finds it again, or returns
 * UINT32_MAX.
 */
static void imagetab_set_start(struct imagetab *t, uint32_t tgid, uint32_t exec_id, uint64_t start_boot_ns)
{
	struct image *im = imagetab_newest(t, tgid);

	if (!im || im->claimed)
		return;
	im->reported = true;
	im->exec_id = exec_id;
	im->start_boot_ns = start_boot_ns;
}

static uint32_t imagetab_reported(
	const struct imagetab *t, uint32_t tgid, uint32_t exec_id, uint64_t start_boot_ns)
{
	const struct image *im = imagetab_newest(t, tgid);

	while (im && !(im->reported && im->exec_id == exec_id && im->start_boot_ns == start_boot_ns))
		im = im->older < t->n ? &t->images[im->older] : NULL;
	return im ? (uint32_t)(im - t->images) : UINT32_MAX;
}

static bool is_over(const struct imagetab *t, const struct image *im, uint64_t now_ns)
{
	char path[32];

	if (im->free || im->end_ns > now_ns || now_ns - im->end_ns < KEEP_ENDED_NS)
		return false;
	if (imagetab_newest(t, im->tgid) != im)
		return true;
	snprintf(path, sizeof(path), "/proc/%u", im->tgid);
	return access(path, F_OK) != 0;
}

/*
 * Set `over` for images that ended so long before NOW_NS that all their waits
 * are reported. The newest image of a PID must also be gone from /proc. Returns
 * their number.
 */
static size_t imagetab_mark_over(struct imagetab *t, uint64_t now_ns)
{
	size_t over = 0;

	for (size_t i = 0; i < t->n; i++) {
		t->images[i].over = is_over(t, &t->images[i], now_ns);
		over += t->images[i].over;
	}
	return over;
}

/* Remove image AT from the chain of its tgid. */
static void unlink_image(struct imagetab *t, uint32_t at)
{
	struct idmap_slot *s = idmap_find(&t->by_tgid, 0, t->images[at].tgid);
	uint32_t *link = s ? &s->value : NULL;

	while (link && *link < t->n && *link != at)
		link = &t->images[*link].older;
	if (link && *link == at)
		*link = t->images[at].older;
}

/* Those of TGIDs that have an image; the others stay, without memory for it. */
static void forget_tgids(struct imagetab *t)
{
	struct idmap kept = { 0 };

	for (size_t i = 0; i < t->by_tgid.n; i++) {
		const struct idmap_slot *s = &t->by_tgid.slots[i];

		if (s->value < t->n && idmap_put(&kept, s->hi, s->lo, s->value, NULL) == UINT32_MAX) {
			idmap_free(&kept);
			return;
		}
	}
	idmap_free(&t->by_tgid);
	t->by_tgid = kept;
}

/* Free the slots of the images that are over. */
static void imagetab_forget(struct imagetab *t)
{
	idmap_free(&t->by_key);
	for (uint32_t i = 0; i < t->n; i++) {
		struct image *im = &t->images[i];

		if (im->over) {
			unlink_image(t, i);
			image_clear(im);
			*im = (struct image){ .cap_id = CAPTURE_NONE, .free = true, .older = t->free };
			t->free = i;
		} else if (!im->free && im->claimed) {
			imagetab_claim(t, i, im->exec_id, im->start_boot_ns);
		}
	}
	forget_tgids(t);
}

/*
 * Are the mappings of IM at TIME_NS certain? No mapping event between then and
 * the scan was skipped, and no events were lost since IM began.
 */
static bool is_sure(const struct past_maps *p, const struct image *im, uint64_t time_ns)
{
	return im->overtaken_ns <= time_ns && !(p->lost_ns && p->lost_ns >= im->begin_ns);
}

static enum past_maps_code found(
	const struct past_maps *p, const struct mapping *m, struct procmap *ret, uint64_t *made_ns)
{
	*ret = (struct procmap){ .start = m->start,
		.end = m->end,
		.offset = m->offset,
		.prot = m->prot,
		.flags = m->flags,
		.path = "" };
	file_table_place(p->files, m->file, ret);
	*made_ns = m->from_ns;
	return PAST_MAPS_MAPPED;
}

/*
 * Trust the last scan before that time, as BPF does. A mapping that it lacks
 * was made later; the next scan finds it if the image still lives.
 */
static enum past_maps_code by_scans(const struct past_maps *p, const struct image *im,
	const struct past_maps_when *when, uint64_t addr, struct procmap *ret, uint64_t *made_ns)
{
	const struct mapping *m = process_maps_then(im->maps, addr, when->time_ns);

	if (m)
		return found(p, m, ret, made_ns);
	if (im->scan_ns > when->time_ns)
		return PAST_MAPS_NOT_MAPPED;
	return im->gone ? PAST_MAPS_UNSURE : PAST_MAPS_LATER;
}

enum past_maps_code past_maps_find(const struct past_maps *p, const struct past_maps_when *when,
	uint64_t addr, struct procmap *ret, uint64_t *made_ns)
{
	const struct image *im =
		imagetab_then(p->images, when->tgid, when->exec_id, when->start_boot_ns, when->time_ns);
	const struct mapping *m;

	/* it is older than the recording, and the scan of /proc has not reached it yet */
	if (!im && p->scanning && !imagetab_newest(p->images, when->tgid))
		return PAST_MAPS_LATER;
	if (!im)
		return PAST_MAPS_UNSURE;
	if (p->no_events)
		return by_scans(p, im, when, addr, ret, made_ns);
	if (MAX(im->scan_ns, when->time_ns) > when->settled_ns)
		return PAST_MAPS_LATER;
	if (!is_sure(p, im, when->time_ns))
		return PAST_MAPS_UNSURE;
	m = process_maps_then(im->maps, addr, when->time_ns);
	return m ? found(p, m, ret, made_ns) : PAST_MAPS_NOT_MAPPED;
}

#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */

#define FORGET_BATCH 256

/* What a thread did, until the capture has its process. */
struct pending_life {
	struct offcpu_ev_life of;
	bool tried; /* by a flush that did not know the process */
};

struct process_table {
	bool all, follow;
	struct worker *broker;
	struct file_table *files;
	struct imagetab images;
	struct threadtab threads;
	DIR *scanning; /* /proc, while it is being scanned; NULL = not being scanned */
	uint32_t emitted;
	bool behind; /* BPF may not know a change of an image yet */
	bool remapped; /* an address got another meaning since the last process_table_remapped() */
	uint64_t lost_ns; /* when events were last lost */
	process_table_identity *identity; /* NULL = process events show which image a process is */
	void *identity_ctx;
	bool any_stale;
	bool of_some; /* events are those of some processes */
	bool unwatched; /* see process_table_unwatched() */
	struct pending_life *lives;
	size_t n_lives, max_lives;
	struct process_table_stats stats;
};

int process_table_new(bool all, bool follow, struct process_table **ret, struct err *e)
{
	struct process_table *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return err_nomem(e, "the table of processes");
	t->all = all;
	t->follow = follow;
	imagetab_init(&t->images);
	rc = file_table_new(&t->files, e);
	if (rc) {
		free(t);
		return rc;
	}
	*ret = t;
	return 0;
}

void process_table_free(struct process_table *t)
{
	if (!t)
		return;
	imagetab_free(&t->images);
	threadtab_free(&t->threads);
	file_table_free(t->files);
	free(t->lives);
	if (t->scanning)
		closedir(t->scanning);
	free(t);
}

void process_table_broker(struct process_table *t, struct worker *o)
{
	t->broker = o;
	file_table_broker(t->files, o);
}

void process_table_without_events(struct process_table *t, process_table_identity *identity, void *ctx)
{
	t->identity = identity;
	t->identity_ctx = ctx;
}

void process_table_of_some(struct process_table *t, bool some)
{
	t->of_some = some;
}

bool process_table_unwatched(struct process_table *t)
{
	const bool unwatched = t->unwatched;

	t->unwatched = false;
	return unwatched;
}

/* Add a mapping to image IMAGE. SHOWN: see procinfo_living(); 0 = the process itself. */
static void note_map(
	struct process_table *t, uint32_t image, uint32_t shown, const struct procmap *pm, uint64_t from_ns)
{
	uint32_t tgid = t->images.images[image].tgid,
		 file = file_table_get(t->files, shown ? shown : tgid, pm);
	struct image *im = &t->images.images[image];
	struct mapping m = { .from_ns = from_ns,
		.start = pm->start,
		.end = pm->end,
		.offset = pm->offset,
		.prot = pm->prot,
		.flags = pm->flags,
		.file = file };

	if (im->from_exec && !im->exe && file != UINT32_MAX && pm->path[0] == '/')
		im->exe = strdup(pm->path);
	if (process_maps_has(im->maps, &m))
		return;
	if (process_maps_changes(im->maps, &m)) {
		/*
		 * it dates from the first mapping that BPF reported, or from the
		 * last scan after that; else from this scan, because BPF has
		 * walked by the old one until now
		 */
		if (t->identity)
			m.from_ns = MAX(m.from_ns, im->mapped_ns ? im->mapped_ns : im->scan_ns);
		t->remapped = t->behind = true;
		if (base_grow(&im->changes, &im->max_changes, im->n_changes + 1, sizeof(*im->changes)) == 0)
			im->changes[im->n_changes++] = (struct image_change){
				.at_ns = m.from_ns, .until_ns = UINT64_MAX, .start = m.start, .end = m.end
			};
	}
	if (!process_maps_add(&im->maps, &m) && !im->maps_error)
		im->maps_error = -ENOMEM;
}

struct scan {
	struct process_table *t;
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

static bool is_reported(const struct image *im, const struct offcpu_ev_image *ev)
{
	return (im->reported || im->claimed) && im->exec_id == ev->exec_id &&
	       im->start_boot_ns == ev->start_boot_ns;
}

/*
 * The maps were opened: do they belong to IM? Without events, an exec or the
 * reuse of the PID can go unnoticed. -ESRCH then.
 */
static int check_identity(struct process_table *t, struct image *im, struct err *e)
{
	struct offcpu_ev_image now;

	if (!t->identity)
		return 0;
	if (!t->identity(t->identity_ctx, im->tgid, &now))
		return err_set(e, -ESRCH, "process %u has exited", im->tgid);
	if (im->reported || im->claimed)
		return is_reported(im, &now)
			       ? 0
			       : err_set(e, -ESRCH, "process %u runs another program", im->tgid);
	im->reported = true;
	im->exec_id = now.exec_id;
	im->start_boot_ns = now.start_boot_ns;
	return 0;
}

/* Scan image IMAGE. New mappings date from FROM_NS. */
static int scan_from(
	struct process_table *t, uint32_t image, uint64_t from_ns, uint64_t now_ns, struct err *e)
{
	struct image *im = &t->images.images[image];
	struct scan s = { .t = t, .image = image, .from_ns = from_ns };
	uint32_t pid = procaccess_living(t->broker, im->tgid);
	_cleanup_close_ int fd = -1;
	char comm[PROCINFO_COMM_LEN] = "";
	_cleanup_free_ char *exe = NULL;
	int rc;

	/* 0: the process is gone, and opening its maps reports the error */
	s.shown = pid = pid ? pid : im->tgid;

	procinfo_comm(im->tgid, comm);
	fd = procaccess_maps_exe(t->broker, pid, &exe);
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
	if (now_ns > im->mapped_ns + IMAGE_SETTLE_NS)
		im->mapped_ns = 0;
	if (rc == -ESRCH && t->identity) {
		im->gone = true;
		im->end_ns = MIN(im->end_ns, now_ns);
	}
	/* without events, the mappings read earlier may be all that will ever be known: keep them */
	if (rc && !(t->identity && im->maps)) {
		im->maps_error = rc;
		im->flags |= CAPTURE_PROC_MAPS_LOST;
	}
	return rc;
}

static int scan_into(struct process_table *t, uint32_t image, uint64_t now_ns, struct err *e)
{
	return scan_from(t, image, t->images.images[image].begin_ns, now_ns, e);
}

int process_table_rescan(struct process_table *t, uint32_t pid, uint64_t now_ns, struct err *e)
{
	struct image *im = imagetab_newest(&t->images, pid);

	if (!im || im->end_ns != UINT64_MAX || !im->scan_ns)
		return process_table_scan(t, pid, now_ns, e);
	return scan_from(t, (uint32_t)(im - t->images.images), im->scan_ns, now_ns, e);
}

int process_table_scan(struct process_table *t, uint32_t pid, uint64_t now_ns, struct err *e)
{
	struct image *im = imagetab_newest(&t->images, pid);

	if (!im || im->end_ns != UINT64_MAX)
		im = imagetab_add(&t->images, pid, 0);
	if (!im)
		return err_nomem(e, "a process");
	return scan_into(t, (uint32_t)(im - t->images.images), now_ns, e);
}

/* --- without events --- */

#define RESCAN_MIN_NS UINT64_C(100000) /* least time from the start of one scan of an image to the next */
#define RESCAN_MAX_NS UINT64_C(100000000) /* longest such time, while scans find nothing new */

void process_table_mapping(struct process_table *t, const struct offcpu_ev_image *ev)
{
	struct image *im = imagetab_newest(&t->images, ev->tgid);

	if (im && is_reported(im, ev) && ev->time_ns > im->mapped_ns + IMAGE_SETTLE_NS)
		im->mapped_ns = ev->time_ns;
}

/* Scan image AT. Set when it is due again: ever later while scans find nothing new. */
static void freshen(struct process_table *t, uint32_t at)
{
	struct image *im = &t->images.images[at];
	uint64_t began = now_ns(), waited = im->scan_ns ? began - im->scan_ns : 0, took;
	size_t n = im->maps ? im->maps->n : 0;

	im->stale = false;
	im->maps_error = 0;
	im->flags &= ~(uint32_t)CAPTURE_PROC_MAPS_LOST;
	scan_from(t, at, im->scan_ns ? im->scan_ns : im->begin_ns, began, NULL);
	im = &t->images.images[at];
	took = MAX(now_ns() - began, RESCAN_MIN_NS);
	if (im->maps && im->maps->n == n)
		took = MAX(took, MIN(waited, RESCAN_MAX_NS));
	im->due_ns = began + took;
}

/*
 * Give a forked CHILD its parent's name, executable and mappings. The parent is
 * scanned first if it is due and was not scanned since the fork.
 */
static void inherit(struct process_table *t, struct image *child, const struct offcpu_ev_image *ev)
{
	struct image *parent = imagetab_newest(&t->images, ev->parent);
	uint32_t at = (uint32_t)(child - t->images.images);

	if (!parent || !(parent->reported || parent->claimed))
		return;
	if (parent->scan_ns <= ev->time_ns && !parent->gone && parent->due_ns <= now_ns()) {
		freshen(t, (uint32_t)(parent - t->images.images));
		parent = imagetab_newest(&t->images, ev->parent);
		child = &t->images.images[at];
	}
	memcpy(child->comm, parent->comm, sizeof(child->comm));
	child->exe = parent->exe ? strdup(parent->exe) : NULL;
	child->maps = process_maps_share(parent->maps);
	child->stale = !parent->scan_ns;
}

void process_table_image_seen(struct process_table *t, const struct offcpu_ev_image *ev)
{
	struct image *im = imagetab_newest(&t->images, ev->tgid);
	uint64_t begin_ns = im ? MAX(im->begin_ns, im->scan_ns) : 0;

	if (imagetab_claimed(&t->images, ev->tgid, ev->exec_id, ev->start_boot_ns) != UINT32_MAX ||
		imagetab_reported(&t->images, ev->tgid, ev->exec_id, ev->start_boot_ns) != UINT32_MAX)
		return;
	im = imagetab_add(&t->images, ev->tgid, begin_ns);
	if (!im)
		return;
	im->reported = im->stale = true;
	im->exec_id = ev->exec_id;
	im->start_boot_ns = ev->start_boot_ns;
	if (ev->type == OFFCPU_EV_FORK)
		inherit(t, im, ev);
	t->any_stale = true;
}

bool process_table_is_still(struct process_table *t, const struct offcpu_ev_image *ev)
{
	struct offcpu_ev_image now;

	return !t->identity || (t->identity(t->identity_ctx, ev->tgid, &now) && now.exec_id == ev->exec_id &&
				       now.start_boot_ns == ev->start_boot_ns);
}

void process_table_stale(struct process_table *t, const struct offcpu_ev_image *ev, bool at_once)
{
	struct image *im = imagetab_newest(&t->images, ev->tgid);

	if (!im || !is_reported(im, ev) || im->gone)
		return;
	im->stale = t->any_stale = true;
	if (at_once)
		im->due_ns = 0;
}

void process_table_freshen(struct process_table *t, uint64_t budget_ns)
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

void process_table_refresh(struct process_table *t, const struct offcpu_key *key, uint64_t time_ns)
{
	uint32_t at = imagetab_claimed(&t->images, key->tgid, key->exec_id, key->start_boot_ns);
	const struct image *im;

	if (at == UINT32_MAX)
		at = imagetab_reported(&t->images, key->tgid, key->exec_id, key->start_boot_ns);
	im = at == UINT32_MAX ? NULL : &t->images.images[at];
	if (im && !im->gone && !(im->flags & CAPTURE_PROC_KTHREAD) && im->scan_ns <= time_ns)
		freshen(t, at);
}

bool process_table_lived(const struct process_table *t, uint32_t pid, uint64_t time_ns)
{
	const struct image *im = imagetab_newest(&t->images, pid);

	return im && im->end_ns > time_ns;
}

bool process_table_covers(const struct process_table *t, uint32_t pid, uint64_t addr)
{
	const struct image *im = imagetab_newest(&t->images, pid);

	return im && process_maps_at(im->maps, addr);
}

void process_table_scan_all(struct process_table *t)
{
	if (!t->scanning)
		t->scanning = opendir("/proc");
}

bool process_table_scan_some(struct process_table *t, uint64_t budget_ns)
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
			process_table_scan(t, pid, now_ns(), NULL);
	}
	return !t->scanning;
}

static void on_fork(struct process_table *t, const struct procevent *ev)
{
	struct image *parent = imagetab_newest(&t->images, ev->parent), *child;
	uint32_t at;

	/* a new thread of the same process */
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
	child->maps = process_maps_share(parent->maps);
	child->flags = parent->flags;
	child->maps_error = parent->maps_error;
	child->mixed = parent->mixed || ev->time_ns < parent->scan_ns;
}

static void on_exec(struct process_table *t, const struct procevent *ev)
{
	struct image *im = imagetab_newest(&t->images, ev->pid);

	if (!im && !t->all)
		return;
	/* a scan after this exec has read the new image already */
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

static void on_comm(struct process_table *t, const struct procevent *ev)
{
	struct image *im = imagetab_newest(&t->images, ev->pid);

	if (!im)
		return;
	threadtab_rename(&t->threads, ev->pid, ev->tid, ev->text);
	if (ev->tid == ev->pid)
		snprintf(im->comm, sizeof(im->comm), "%s", ev->text);
}

static void on_mmap(struct process_table *t, const struct procevent *ev)
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
 * The kernel ends the events of a process that executes a program with other
 * privileges, before it maps anything of it, and reports the end of its thread. Then
 * the process goes on: its new image has not mapped anything, or was read since.
 */
static void on_exit_of(struct process_table *t, const struct procevent *ev)
{
	struct image *im = imagetab_newest(&t->images, ev->pid);

	if (!im || ev->tid != ev->pid)
		return;
	if (t->of_some && ((im->from_exec && !im->maps) || (ev->time_ns < im->scan_ns && im->maps)) &&
		procinfo_living(ev->pid)) {
		t->unwatched = true;
		im->stale = t->any_stale = true;
	} else {
		im->end_ns = ev->time_ns;
	}
}

void process_table_event(struct process_table *t, const struct procevent *ev)
{
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
		on_exit_of(t, ev);
		break;
	case PROCEVENT_LOST:
		t->stats.events_lost += ev->lost;
		t->lost_ns = ev->time_ns;
		break;
	}
}

void process_table_announce(struct process_table *t, const struct offcpu_ev_thread *ev)
{
	threadtab_announce(&t->threads, ev);
}

void process_table_identify(struct process_table *t, uint32_t tgid, uint32_t exec_id, uint64_t start_boot_ns)
{
	imagetab_set_start(&t->images, tgid, exec_id, start_boot_ns);
}

/*
 * The image with TH's identity, else the image of its process at FIRST_NS if
 * that has no identity yet, else a new one read from /proc. UINT32_MAX if out
 * of memory.
 */
static uint32_t choose_image(struct process_table *t, const struct thread *th, uint64_t first_ns)
{
	uint32_t at = imagetab_reported(&t->images, th->tgid, th->exec_id, th->start_boot_ns);
	struct image *im;

	if (at != UINT32_MAX)
		return at;
	im = imagetab_at(&t->images, th->tgid, first_ns);
	if (im && !im->claimed && !im->reported)
		return (uint32_t)(im - t->images.images);
	im = imagetab_add(&t->images, th->tgid, im ? first_ns : 0);
	if (!im)
		return UINT32_MAX;
	at = (uint32_t)(im - t->images.images);
	if (t->of_some && !t->lost_ns)
		t->unwatched = im->stale = t->any_stale = true;
	if (!(th->task_flags & PF_KTHREAD))
		scan_into(t, at, now_ns(), NULL);
	return at;
}

/*
 * Scan again if the maps could not be read for lack of permission: the process
 * has a recorded wait, so it may not be another user's any more.
 */
static void scan_refused(struct process_table *t, uint32_t at)
{
	struct image *im = &t->images.images[at];

	if (im->maps_error != -EACCES || im->end_ns != UINT64_MAX)
		return;
	im->maps_error = 0;
	im->flags &= ~(uint32_t)CAPTURE_PROC_MAPS_LOST;
	scan_into(t, at, now_ns(), NULL);
}

/* Complete IM with what BPF reported about TH. */
static void name_image(struct image *im, const struct thread *th)
{
	im->ns_tgid = th->ns_tgid;
	if (!im->comm[0])
		memcpy(im->comm, th->leader_comm, sizeof(im->comm));
	if (th->task_flags & PF_KTHREAD) {
		im->flags = CAPTURE_PROC_KTHREAD;
		im->maps_error = 0;
	}
}

static uint32_t image_of(struct process_table *t, const struct thread *th, uint64_t first_ns)
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

static void emit_maps(struct process_table *t, struct image *im, struct cap_writer *w)
{
	for (; im->maps && im->maps_written < im->maps->n; im->maps_written++) {
		const struct mapping *m = &im->maps->maps[im->maps_written];
		struct cap_map cm = { .proc = im->cap_id,
			.file = file_table_emit(t->files, m->file, w),
			.prot = m->prot,
			.flags = m->flags,
			.from_ns = m->from_ns,
			.start = m->start,
			.end = m->end,
			.offset = m->offset };

		cap_writer_map(w, &cm);
	}
}

static void emit_image(struct process_table *t, struct image *im, struct cap_writer *w)
{
	if (im->cap_id == CAPTURE_NONE) {
		struct cap_proc p = { .id = t->emitted,
			.tgid = im->tgid,
			.ns_tgid = im->ns_tgid,
			.flags = im->flags,
			.maps_error = im->maps_error,
			.start_boot_ns = im->start_boot_ns,
			.image_ns = im->begin_ns,
			.comm = im->comm,
			.exe = im->exe ? im->exe : "" };

		if (!(im->flags & CAPTURE_PROC_KTHREAD) && (!im->maps || !im->maps->n)) {
			p.flags |= CAPTURE_PROC_MAPS_LOST;
			p.maps_error = im->maps_error ? im->maps_error : -ESRCH;
			im->maps_missing = p.maps_error;
		}
		im->cap_id = t->emitted++;
		t->stats.images++;
		cap_writer_proc(w, &p);
	}
	emit_maps(t, im, w);
}

/* Write the names of TH that are not in the capture yet. The first one is that of all time before, too. */
static void emit_thread(const struct process_table *t, struct thread *th, struct cap_writer *w)
{
	const struct image *im = &t->images.images[th->image];
	struct cap_thread out = {
		.proc = im->cap_id, .tid = th->tid, .ns_tid = th->ns_tid, .comm = im->comm
	};

	if (!th->n_names && !th->named)
		cap_writer_thread(w, &out);
	for (; th->n_written < th->n_names; th->n_written++) {
		const struct thread_name *name = &th->names[th->n_written];

		out.comm = name->comm[0] ? name->comm : im->comm;
		out.from_ns = name->from_ns;
		cap_writer_thread(w, &out);
	}
	th->named = true;
	if (th->n_names > 1) {
		th->names[0] = th->names[th->n_names - 1];
		th->n_names = th->n_written = 1;
	}
}

/* IM, whose user frames the capture has, was written without mappings: count that once. */
static void count_missing(struct process_table *t, struct image *im, bool waker)
{
	uint64_t *n = waker ? &t->stats.waker_maps_lost : &t->stats.maps_lost;

	if (im->maps_missing == -EACCES || im->maps_missing == -EPERM)
		n = &t->stats.maps_refused;
	*n += im->maps_missing != 0;
	im->maps_missing = 0;
}

uint32_t process_table_emit(struct process_table *t, const struct offcpu_key *key, uint64_t first_ns,
	bool waker, struct cap_writer *w)
{
	struct thread *th = threadtab_get(&t->threads, key);

	if (!th)
		return CAPTURE_NONE;
	if (th->image == UINT32_MAX)
		th->image = image_of(t, th, first_ns);
	if (th->image == UINT32_MAX)
		return CAPTURE_NONE;
	emit_image(t, &t->images.images[th->image], w);
	if (!waker || key->user.hi) /* a waker may have no frames */
		count_missing(t, &t->images.images[th->image], waker);
	emit_thread(t, th, w);
	return t->images.images[th->image].cap_id;
}

/* The thread of EV, a new one if its image is in the capture; else NULL. */
static struct thread *thread_of_life(struct process_table *t, const struct offcpu_ev_life *ev)
{
	const struct offcpu_key *key = &ev->key;
	struct thread *th = threadtab_find(&t->threads, key);
	const uint32_t at = imagetab_claimed(&t->images, key->tgid, key->exec_id, key->start_boot_ns);

	if (th && th->image != UINT32_MAX)
		return th;
	if (at == UINT32_MAX || t->images.images[at].cap_id == CAPTURE_NONE)
		return NULL;
	th = threadtab_get(&t->threads, key);
	if (!th)
		return NULL;
	th->image = at;
	th->ns_tid = ev->ns_tid;
	if (!th->n_names && ev->comm[0])
		add_name(th, ev->comm, 0);
	return th;
}

void process_table_life(struct process_table *t, const struct offcpu_ev_life *ev)
{
	if (base_grow(&t->lives, &t->max_lives, t->n_lives + 1, sizeof(*t->lives)) == 0)
		t->lives[t->n_lives++] = (struct pending_life){ *ev, false };
	else
		t->stats.lives_lost++;
}

/* False if the capture does not have its process. */
static bool emit_life(struct process_table *t, const struct offcpu_ev_life *ev, struct cap_writer *w)
{
	struct thread *th = thread_of_life(t, ev);
	const struct offcpu_life *life = &ev->life;
	uint32_t proc;

	if (!th || t->images.images[th->image].cap_id == CAPTURE_NONE)
		return false;
	proc = t->images.images[th->image].cap_id;
	emit_thread(t, th, w);
	cap_writer_life(w, &(struct cap_life){ .proc = proc,
				   .tid = ev->key.tid,
				   .from_ns = life->from_ns,
				   .to_ns = life->to_ns,
				   .on_cpu_ns = life->ran_ns,
				   .is_split = life->queued_ns != OFFCPU_UNKNOWN_NS,
				   .runnable_ns = life->queued_ns });
	return true;
}

void process_table_write_lives(struct process_table *t, bool more, struct cap_writer *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->n_lives; i++) {
		struct pending_life *p = &t->lives[i];

		if (emit_life(t, &p->of, w) || (p->tried && !more))
			continue;
		p->tried = true;
		t->lives[kept++] = *p;
	}
	t->n_lives = kept;
}

static bool thread_is_over(const void *ctx, const struct thread *th)
{
	const struct process_table *t = ctx;

	return th->image != UINT32_MAX && t->images.images[th->image].over;
}

/* Find the processes that ended without an event. */
static void find_ends(struct process_table *t, uint64_t now_ns)
{
	char path[32];

	for (size_t i = 0; i < t->images.n; i++) {
		struct image *im = &t->images.images[i];

		snprintf(path, sizeof(path), "/proc/%u", im->tgid);
		if (!im->free && im->end_ns == UINT64_MAX && access(path, F_OK) != 0)
			im->end_ns = now_ns;
	}
}

/* Ended images are forgotten many at a time, because that rebuilds the indexes. */
void process_table_flush(struct process_table *t, uint64_t now_ns, struct cap_writer *w)
{
	for (size_t i = 0; i < t->images.n; i++)
		if (t->images.images[i].cap_id != CAPTURE_NONE)
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

/* The number of changes of IM up to TIME_NS. */
static uint32_t changes_until(const struct image *im, uint64_t time_ns)
{
	uint32_t n = 0;

	while (n < im->n_changes && im->changes[n].at_ns <= time_ns)
		n++;
	return n;
}

const struct image *process_table_image(struct process_table *t, const struct offcpu_key *key)
{
	const struct thread *th = threadtab_get(&t->threads, key);

	return th && th->image != UINT32_MAX ? &t->images.images[th->image] : NULL;
}

bool process_table_tracks(const struct process_table *t, uint32_t pid)
{
	return imagetab_newest(&t->images, pid) != NULL;
}

uint32_t process_table_epoch(
	struct process_table *t, const struct offcpu_key *key, uint64_t first_ns, uint64_t last_ns)
{
	const struct image *im = process_table_image(t, key);
	uint32_t first;

	if (!im || !im->n_changes)
		return 0;
	first = changes_until(im, first_ns);
	/* an odd number: waits across a change stay apart from those before and after it */
	return 2 * first + (changes_until(im, last_ns) != first);
}

/* What one change makes uncertain in a stack. */
struct doubt {
	const struct image_change *change;
	const struct offcpu_key *key;
	process_table_same *same;
	void *ctx;
};

static bool is_doubtful(const struct doubt *d, uint64_t addr)
{
	const struct image_change *c = d->change;

	return addr >= c->start && addr < c->end && !(d->same && d->same(d->ctx, d->key, addr, c->at_ns));
}

/* The number of frames of S up to the first one that is; UINT32_MAX = none is. */
static uint32_t frames_until(const struct doubt *d, const struct cap_stack *s)
{
	for (uint32_t i = 0, exact = 0; i < s->len; i++) {
		const bool is_exact = !i || (exact < s->n_exact && s->exact[exact] == i);

		exact += i && is_exact;
		if (is_doubtful(d, s->frames[i] - !is_exact))
			return i + 1;
	}
	return UINT32_MAX;
}

uint32_t process_table_trusted(struct process_table *t, const struct offcpu_key *key, uint64_t first_ns,
	uint64_t last_ns, const struct cap_stack *s, process_table_same *same, void *ctx)
{
	const struct image *im = process_table_image(t, key);
	uint32_t n = UINT32_MAX;

	for (size_t i = 0; im && i < im->n_changes; i++) {
		const struct image_change *c = &im->changes[i];
		const struct doubt d = { .change = c, .key = key, .same = same, .ctx = ctx };

		if (c->at_ns <= last_ns && c->until_ns >= first_ns)
			n = MIN(n, frames_until(&d, s));
	}
	return n;
}

void process_table_published(
	struct process_table *t, uint64_t (*published)(void *ctx, uint32_t tgid, uint64_t time_ns), void *ctx)
{
	if (!t->behind)
		return;
	t->behind = false;
	for (size_t i = 0; i < t->images.n; i++) {
		struct image *im = &t->images.images[i];

		for (size_t k = im->n_changes; k-- && im->changes[k].until_ns == UINT64_MAX;) {
			const uint64_t at = published(ctx, im->tgid, im->changes[k].at_ns);

			if (at)
				im->changes[k].until_ns = at;
			else
				t->behind = true;
		}
	}
}

const struct process_maps *process_table_maps(struct process_table *t, const struct offcpu_key *key)
{
	const struct image *im = process_table_image(t, key);

	return im ? im->maps : NULL;
}

const struct process_maps *process_table_newest_maps(const struct process_table *t, uint32_t pid)
{
	const struct image *im = imagetab_newest(&t->images, pid);

	return im ? im->maps : NULL;
}

struct file_table *process_table_files(struct process_table *t)
{
	return t->files;
}

void process_table_past(const struct process_table *t, struct past_maps *ret)
{
	*ret = (struct past_maps){ .images = &t->images,
		.files = t->files,
		.scanning = t->scanning != NULL,
		.no_events = t->identity != NULL,
		.lost_ns = t->lost_ns };
}

bool process_table_remapped(struct process_table *t)
{
	bool remapped = t->remapped;

	t->remapped = false;
	return remapped;
}

void process_table_stats(const struct process_table *t, struct process_table_stats *ret)
{
	*ret = t->stats;
	ret->files_unread = file_table_unread(t->files);
}
