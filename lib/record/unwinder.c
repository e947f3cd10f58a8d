/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwinder.h"
#include "idmap.h"
#include "now.h"
#include "procinfo.h"
#include "procmaps.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

/* A process that maps much is read again for half of the time at most. */
#define RESCAN_SHARE 1
#define RESCAN_MIN_NS 100000
#define ROOM_NS UINT64_C(2000000000) /* when mappings that found no memory are read again */
#define IMAGES_NS 1000000 /* how long images are looked at before other things are */

/* Mappings in the kernel's sight; a forked child has its parent's until it makes its own. */
struct block {
	unsigned int refs;
	struct unwindspace_maps space;
	struct source {
		uint32_t file;
		uint64_t offset, dev, inode;
	} * sources; /* of each mapping */
	struct block *prev, *next;
};

struct proc {
	uint32_t tgid;
	uint32_t exec_id;
	uint64_t start_boot_ns;
	bool known; /* its identity was seen, */
	uint64_t known_ns; /* at this time, and there was no exec since */
	uint64_t exec_ns; /* its last exec that was told of */
	bool dirty; /* something was mapped since */
	bool no_room; /* there was no memory for its mappings */
	uint64_t cut; /* mappings of it that count as cut */
	bool ended; /* perhaps: the leader has exited */
	struct block *block;
	uint64_t due_ns; /* not to be read before */
};

struct unwinder {
	struct tableset *tables;
	struct unwindspace *space;
	struct proc *procs;
	size_t n, cap;
	struct idmap by_tgid;
	struct block blocks; /* a ring */
	struct offcpu_ev_image *queue; /* images whose mappings are to be read, the newest last */
	size_t n_queue, cap_queue;
	bool any_dirty, any_ended;
	bool news; /* mappings were published since unwinder_service() was asked */
	bool distrust; /* events were lost */
	uint64_t due_ns;
	uint32_t serial; /* of what was published last */
	struct unwinder_stats stats;
};

int unwinder_open(const struct tableset_opts *opts, struct unwinder **ret, struct err *e)
{
	struct unwinder *u = calloc(1, sizeof(*u));
	int rc = u ? tableset_open(opts, &u->tables, e) : err_nomem(e, "the unwinder");

	if (rc) {
		free(u);
		return rc;
	}
	u->space = tableset_space(u->tables);
	u->blocks.prev = u->blocks.next = &u->blocks;
	u->due_ns = UINT64_MAX;
	*ret = u;
	return 0;
}

static void block_drop(struct unwinder *u, struct block *b)
{
	if (!b || --b->refs)
		return;
	for (uint32_t i = 0; i < b->space.n; i++)
		tableset_release(u->tables, b->sources[i].file);
	unwindspace_maps_drop(u->space, &b->space);
	b->prev->next = b->next;
	b->next->prev = b->prev;
	free(b->sources);
	free(b);
}

void unwinder_close(struct unwinder *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->n; i++)
		block_drop(u, u->procs[i].block);
	tableset_close(u->tables);
	free(u->procs);
	free(u->queue);
	idmap_free(&u->by_tgid);
	free(u);
}

void unwinder_fds(const struct unwinder *u, struct unwindspace_fds *ret)
{
	unwindspace_fds(u->space, ret);
}

struct tableset *unwinder_tables(struct unwinder *u)
{
	return u->tables;
}

int unwinder_fd(const struct unwinder *u)
{
	return tableset_fd(u->tables);
}

uint32_t unwinder_worker(const struct unwinder *u)
{
	return tableset_worker(u->tables);
}

static bool is_image(const struct proc *p, uint64_t start_boot_ns, uint32_t exec_id)
{
	return p->known && p->start_boot_ns == start_boot_ns && p->exec_id == exec_id;
}

/* Slots are never given back, but used again: PIDs are. */
static struct proc *find_proc(struct unwinder *u, uint32_t tgid)
{
	struct idmap_slot *slot = idmap_find(&u->by_tgid, 0, tgid);

	return slot ? &u->procs[slot->value] : NULL;
}

static struct proc *get_proc(struct unwinder *u, uint32_t tgid)
{
	struct proc *p = find_proc(u, tgid);

	if (p)
		return p;
	if (base_grow(&u->procs, &u->cap, u->n + 1, sizeof(*u->procs)) != 0 ||
		idmap_put(&u->by_tgid, 0, tgid, (uint32_t)u->n, NULL) == UINT32_MAX)
		return NULL;
	p = &u->procs[u->n++];
	*p = (struct proc){ .tgid = tgid };
	return p;
}

struct reading {
	struct unwinder *u;
	uint32_t pid;
	const struct block *before; /* what the same image had mapped before, or NULL */
	uint32_t at; /* where in it */
	struct {
		uint64_t start, end;
		struct source source;
	} * maps;
	size_t n, cap;
	uint64_t cut;
};

/* The file of a mapping that was there before, unchanged; else a look at it. */
static uint32_t file_of(struct reading *r, const struct procmap *m, const struct source *now)
{
	const struct block *b = r->before;

	while (b && r->at < b->space.n && b->space.maps[r->at].start < m->start)
		r->at++;
	if (b && r->at < b->space.n && b->space.maps[r->at].start == m->start &&
		b->space.maps[r->at].end == m->end) {
		const struct source *s = &b->sources[r->at];

		if (s->inode && s->inode == now->inode && s->dev == now->dev && s->offset == now->offset &&
			!tableset_wanted(r->u->tables, s->file)) {
			tableset_hold(r->u->tables, s->file);
			return s->file;
		}
	}
	return tableset_file(r->u->tables, r->pid, m);
}

/* Neighbours without a table are one: JIT compilers make thousands of them. */
static int read_map(void *ctx, const struct procmap *m)
{
	struct reading *r = ctx;
	struct source source = { TABLESET_NO_FILE, m->offset, (uint64_t)m->dev_major << 32 | m->dev_minor,
		m->inode };

	/* vsyscall lies in the kernel's half, which BPF's search leaves out */
	if (!(m->prot & PROT_EXEC) || m->start > INT64_MAX)
		return 0;
	if (r->n == UNWIND_MAPS_MAX) {
		r->cut++;
		return 0;
	}
	source.file = file_of(r, m, &source);
	if (r->n && source.file == TABLESET_NO_FILE && r->maps[r->n - 1].end == m->start &&
		r->maps[r->n - 1].source.file == TABLESET_NO_FILE) {
		r->maps[r->n - 1].end = m->end;
		return 0;
	}
	if (base_grow(&r->maps, &r->cap, r->n + 1, sizeof(*r->maps)) != 0) {
		tableset_release(r->u->tables, source.file);
		r->cut++;
		return 0;
	}
	r->maps[r->n].start = m->start;
	r->maps[r->n].end = m->end;
	r->maps[r->n++].source = source;
	return 0;
}

static void fill_map(const struct unwinder *u, struct block *b, uint32_t i)
{
	struct unwind_map *m = &b->space.maps[i];

	tableset_map(u->tables, b->sources[i].file, m->start, b->sources[i].offset, m);
}

/* What was read becomes a block; NULL without memory, here or in the kernel. */
static struct block *make_block(struct unwinder *u, const struct reading *r)
{
	struct block *b = calloc(1, sizeof(*b));

	if (b)
		b->sources = calloc(r->n + 1, sizeof(*b->sources));
	if (!b || !b->sources || unwindspace_maps_new(u->space, (uint32_t)r->n, &b->space, NULL) != 0) {
		if (b)
			free(b->sources);
		free(b);
		return NULL;
	}
	for (uint32_t i = 0; i < r->n; i++) {
		b->space.maps[i] = (struct unwind_map){ .start = r->maps[i].start, .end = r->maps[i].end };
		b->sources[i] = r->maps[i].source;
		fill_map(u, b, i);
	}
	b->refs = 1;
	b->next = &u->blocks;
	b->prev = u->blocks.prev;
	b->prev->next = b->next->prev = b;
	return b;
}

/* Mappings are read again and again: N of them, or fewer, are the same ones as before. */
static void count_cut(struct unwinder *u, struct proc *p, uint64_t n)
{
	if (n <= p->cut)
		return;
	u->stats.maps_cut += n - p->cut;
	p->cut = n;
}

static void publish(struct unwinder *u, struct proc *p)
{
	struct unwind_proc up = { .start_boot_ns = p->start_boot_ns, .exec_id = p->exec_id };

	if (!p->known || !p->block)
		return;
	up.chunk = p->block->space.chunk;
	up.grain = (uint16_t)p->block->space.grain;
	up.maps = (uint16_t)p->block->space.n;
	up.serial = ++u->serial;
	if (unwindspace_commit(u->space, NULL) == 0 &&
		unwindspace_proc_set(u->space, p->tgid, &up, NULL) == 0) {
		u->news = true;
		return;
	}
	/* what BPF has may be about to go */
	unwindspace_proc_drop(u->space, p->tgid);
	count_cut(u, p, p->block->space.n);
}

/* No memory for the mappings that were read: they are read again when there may be. */
static void cut_all(struct unwinder *u, struct proc *p, const struct reading *r)
{
	for (size_t i = 0; i < r->n; i++)
		tableset_release(u->tables, r->maps[i].source.file);
	if (!r->n)
		return;
	p->no_room = p->dirty = u->any_dirty = true;
	count_cut(u, p, r->cut + r->n);
	tableset_room(u->tables, r->n * sizeof(struct unwind_map));
}

/*
 * Read the mappings of P now. A process that has ended keeps what it had, for
 * its last waits; one that may not be looked at has none.
 */
static bool scan(struct unwinder *u, struct proc *p, bool same_image)
{
	struct reading r = {
		.u = u, .pid = procinfo_living(p->tgid), .before = same_image ? p->block : NULL
	};
	uint64_t began = now_ns(), took;
	struct block *b = NULL;

	p->dirty = false;
	if (r.pid && procmaps_each(r.pid, read_map, &r, NULL) != -ESRCH)
		b = make_block(u, &r);
	if (b) {
		block_drop(u, p->block);
		p->block = b;
		p->no_room = false;
		count_cut(u, p, r.cut);
	} else {
		cut_all(u, p, &r);
	}
	free(r.maps);
	took = now_ns() - began;
	p->due_ns = began + took + (p->no_room ? ROOM_NS : MAX(took * RESCAN_SHARE, RESCAN_MIN_NS));
	return b != NULL;
}

void unwinder_prepare(struct unwinder *u, uint32_t pid)
{
	struct proc *p = get_proc(u, pid);

	if (p)
		scan(u, p, false);
}

void unwinder_image(struct unwinder *u, const struct offcpu_ev_image *ev)
{
	const struct proc *p = find_proc(u, ev->tgid);

	if (p && is_image(p, ev->start_boot_ns, ev->exec_id))
		return;
	if (base_grow(&u->queue, &u->cap_queue, u->n_queue + 1, sizeof(*u->queue)) == 0)
		u->queue[u->n_queue++] = *ev;
}

static void take_image(struct unwinder *u, const struct offcpu_ev_image *ev)
{
	struct proc *p = get_proc(u, ev->tgid);

	if (!p || is_image(p, ev->start_boot_ns, ev->exec_id))
		return;
	if (p->known)
		p->cut = 0;
	p->known = true;
	p->known_ns = now_ns();
	p->ended = false;
	p->start_boot_ns = ev->start_boot_ns;
	p->exec_id = ev->exec_id;
	/* what an earlier image had mapped must not be published under this name */
	if (!scan(u, p, false)) {
		block_drop(u, p->block);
		p->block = NULL;
	}
	publish(u, p);
}

/*
 * BPF gave the child its parent's mappings at the fork; here it gets its own
 * hold on them, or on newer ones that BPF did not know of then.
 */
static void on_fork(struct unwinder *u, const struct procevent *ev)
{
	struct proc *child, *parent;
	struct unwind_proc up;

	if (ev->pid == ev->parent || !unwindspace_proc_get(u->space, ev->pid, &up))
		return;
	child = get_proc(u, ev->pid);
	parent = find_proc(u, ev->parent);
	if (!child || !parent || !parent->block) {
		unwindspace_proc_drop(u->space, ev->pid);
		return;
	}
	/* an exec since then is known already, */
	if (is_image(child, up.start_boot_ns, up.exec_id))
		return;
	/* or under way: BPF will tell */
	if (child->exec_ns > ev->time_ns) {
		unwindspace_proc_drop(u->space, ev->pid);
		return;
	}
	parent->block->refs++;
	block_drop(u, child->block);
	*child = (struct proc){ .tgid = ev->pid,
		.start_boot_ns = up.start_boot_ns,
		.exec_id = up.exec_id,
		.known = true,
		.known_ns = ev->time_ns,
		.block = parent->block };
	publish(u, child);
}

/*
 * What an exec maps is not looked at before the image is whole and BPF tells of
 * it: nothing could be published yet, and a reader of the mappings holds the
 * lock that the exec wants to have.
 */
void unwinder_mapped(struct unwinder *u, const struct procevent *ev)
{
	struct proc *p = find_proc(u, ev->pid);
	struct unwind_proc up;

	/* a child that BPF gave its parent's mappings, and whose fork was not told of yet */
	if (!p && ev->type == PROCEVENT_EXEC && unwindspace_proc_get(u->space, ev->pid, &up))
		p = get_proc(u, ev->pid);
	if (p && ev->type == PROCEVENT_EXEC) {
		p->exec_ns = ev->time_ns;
		if (ev->time_ns >= p->known_ns)
			p->known = p->dirty = false;
	} else if (p && p->known && (ev->prot & PROT_EXEC)) {
		p->dirty = u->any_dirty = true;
	}
}

void unwinder_event(struct unwinder *u, const struct procevent *ev)
{
	struct proc *p;

	switch (ev->type) {
	case PROCEVENT_FORK:
		on_fork(u, ev);
		break;
	case PROCEVENT_EXIT:
		p = ev->pid == ev->tid ? find_proc(u, ev->pid) : NULL;
		if (p)
			p->ended = u->any_ended = true;
		break;
	case PROCEVENT_LOST:
		u->distrust = true;
		break;
	default:
		break;
	}
}

static bool is_known(void *ctx, uint32_t tgid, const struct unwind_proc *up)
{
	const struct proc *p = find_proc(ctx, tgid);

	return p && is_image(p, up->start_boot_ns, up->exec_id);
}

/*
 * Forks and mappings happened that nobody told of: children whose mappings
 * are not held here start anew, all others are read again.
 */
static void trust_again(struct unwinder *u)
{
	unwindspace_procs_sweep(u->space, is_known, u);
	for (size_t i = 0; i < u->n; i++)
		u->procs[i].dirty = u->procs[i].known;
	u->any_dirty = true;
	u->distrust = false;
}

static void rescan(struct unwinder *u)
{
	uint64_t now = now_ns();

	u->due_ns = UINT64_MAX;
	u->any_dirty = false;
	for (size_t i = 0; i < u->n; i++) {
		struct proc *p = &u->procs[i];

		if (!p->dirty)
			continue;
		if (p->due_ns > now) {
			u->any_dirty = true;
			u->due_ns = MIN(u->due_ns, p->due_ns);
			continue;
		}
		if (scan(u, p, true))
			publish(u, p);
	}
}

/*
 * The newest first: it is going to wait soon, while those that have waited
 * since before the recording lose nothing by waiting for their mappings.
 */
static void take_images(struct unwinder *u, bool all)
{
	uint64_t began = now_ns();

	while (u->n_queue && (all || now_ns() - began < IMAGES_NS)) {
		struct offcpu_ev_image ev = u->queue[--u->n_queue];

		take_image(u, &ev);
	}
	if (u->n_queue)
		u->due_ns = 0;
}

/* Tables that came or went, into the mappings that wait for them. */
static void apply(struct unwinder *u)
{
	if (unwindspace_commit(u->space, NULL) != 0)
		return;
	for (struct block *b = u->blocks.next; b != &u->blocks; b = b->next)
		for (uint32_t i = 0; i < b->space.n; i++)
			if (tableset_changed(u->tables, b->sources[i].file))
				fill_map(u, b, i);
	tableset_applied(u->tables);
}

bool unwinder_service(struct unwinder *u, int timeout_ms)
{
	bool more;

	if (u->distrust)
		trust_again(u);
	if (u->any_dirty)
		rescan(u);
	else
		u->due_ns = UINT64_MAX;
	take_images(u, timeout_ms > 0);
	more = u->news;
	u->news = false;
	if (tableset_service(u->tables, timeout_ms)) {
		apply(u);
		more = true;
	}
	return more;
}

void unwinder_distrust(struct unwinder *u)
{
	u->distrust = true;
}

uint64_t unwinder_due_ns(const struct unwinder *u)
{
	return u->due_ns;
}

/* A leader may end before its threads: the process is over when its PID is. */
static void forget_ended(struct unwinder *u)
{
	u->any_ended = false;
	for (size_t i = 0; i < u->n; i++) {
		struct proc *p = &u->procs[i];

		if (!p->ended)
			continue;
		if (kill((pid_t)p->tgid, 0) == 0 || errno != ESRCH) {
			u->any_ended = true;
			continue;
		}
		unwindspace_proc_drop(u->space, p->tgid);
		block_drop(u, p->block);
		*p = (struct proc){ .tgid = p->tgid };
	}
}

/* Processes that miss a table which was dropped are read again: it may have its turn now. */
static void ask_again(struct unwinder *u)
{
	for (size_t i = 0; i < u->n; i++) {
		struct proc *p = &u->procs[i];

		for (uint32_t k = 0; p->known && !p->dirty && p->block && k < p->block->space.n; k++)
			p->dirty = tableset_wanted(u->tables, p->block->sources[k].file);
		u->any_dirty |= p->dirty;
	}
}

void unwinder_quiet(struct unwinder *u)
{
	ask_again(u);
	if (u->any_ended)
		forget_ended(u);
	tableset_quiet(u->tables);
	if (tableset_service(u->tables, 0))
		apply(u);
}

void unwinder_stats(const struct unwinder *u, struct unwinder_stats *ret)
{
	*ret = u->stats;
	for (size_t i = 0; i < u->n; i++)
		ret->procs += u->procs[i].block != NULL;
	tableset_stats(u->tables, &ret->tables);
}
