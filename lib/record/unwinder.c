/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/unwinder.h"
#include "base/clock.h"
#include "base/intern.h"
#include "system/broker.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

/*
 * mapblock - the executable mappings of a process, as BPF sees them: read from
 * /proc, each with the file whose table it is walked by.
 *
 * A block lies in memory that BPF reads (record/unwind_memory.h), but BPF finds
 * it only if a process refers to it. mapblock_refresh() updates the tables of
 * its mappings; the mappings themselves never change. A forked child shares it
 * with its parent. It holds references to its files (tableset_hold()).
 */

struct mapblock_source; /* the file that is mapped */

struct mapblock {
	unsigned int refs;
	struct unwindspace_maps space; /* for BPF, sorted by address */
	struct mapblock_source *sources; /* of each mapping */
	uint32_t runtime; /* number of the interpreter that is mapped; 0 = none known */
	uint64_t runtime_bias;
	uint64_t runtime_offset; /* in the file, of the mapping that this is from */
	struct mapblock *prev, *next;
};

struct mapblocks {
	struct tableset *tables; /* the caller's */
	struct mapblock ring; /* list of all blocks; the head is not a block */
};

struct mapblock_source {
	uint32_t file; /* number in the tableset */
	uint64_t offset, dev, inode;
};

/* TABLES must outlive M, and M must not be moved. M needs no release: the owners of its blocks drop them. */
static void mapblock_init(struct mapblocks *m, struct tableset *tables)
{
	m->tables = tables;
	m->ring.prev = m->ring.next = &m->ring;
}

static struct mapblock *mapblock_share(struct mapblock *b)
{
	b->refs++;
	return b;
}

/* Drop a reference, once no process that BPF finds refers to the block any more; NULL is fine. */
static void mapblock_drop(struct mapblocks *m, struct mapblock *b)
{
	if (!b || --b->refs)
		return;
	for (uint32_t i = 0; i < b->space.n; i++)
		tableset_release(m->tables, b->sources[i].file);
	unwindspace_maps_drop(tableset_space(m->tables), &b->space);
	b->prev->next = b->next;
	b->next->prev = b->prev;
	free(b->sources);
	free(b);
}

struct reading {
	struct tableset *tables;
	uint32_t pid;
	const struct mapblock *before;
	uint32_t at; /* position in `before` */
	struct {
		uint64_t start, end;
		struct mapblock_source source;
	} * maps;
	size_t n, cap;
	uint64_t cut;
};

/* The file of mapping M: that of an unchanged earlier mapping, else looked up. */
static uint32_t file_of(struct reading *r, const struct procmap *m, const struct mapblock_source *now)
{
	const struct mapblock *b = r->before;

	while (b && r->at < b->space.n && b->space.maps[r->at].start < m->start)
		r->at++;
	if (b && r->at < b->space.n && b->space.maps[r->at].start == m->start &&
		b->space.maps[r->at].end == m->end) {
		const struct mapblock_source *s = &b->sources[r->at];

		if (s->inode && s->inode == now->inode && s->dev == now->dev && s->offset == now->offset &&
			!tableset_wanted(r->tables, s->file)) {
			tableset_hold(r->tables, s->file);
			return s->file;
		}
	}
	return tableset_file(r->tables, r->pid, m);
}

/* Merges adjacent mappings without a table: JIT compilers make thousands of them. */
static int read_map(void *ctx, const struct procmap *m)
{
	struct reading *r = ctx;
	struct mapblock_source source = { TABLESET_NO_FILE, m->offset,
		(uint64_t)m->dev_major << 32 | m->dev_minor, m->inode };

	/* vsyscall lies in the kernel's half, which BPF's search skips */
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
		tableset_release(r->tables, source.file);
		r->cut++;
		return 0;
	}
	r->maps[r->n].start = m->start;
	r->maps[r->n].end = m->end;
	r->maps[r->n++].source = source;
	return 0;
}

static void fill_map(const struct mapblocks *m, struct mapblock *b, uint32_t i)
{
	struct unwind_map *map = &b->space.maps[i];
	uint32_t runtime;
	uint64_t bias;

	tableset_map(m->tables, b->sources[i].file, map->start, b->sources[i].offset, map);
	runtime = tableset_runtime(m->tables, b->sources[i].file, map, &bias);
	/* V8 maps its builtins, a part of the file, once more: the first part is where all of it is */
	if (!runtime || (b->runtime == runtime && b->runtime_offset <= b->sources[i].offset))
		return;
	b->runtime = runtime;
	b->runtime_bias = bias;
	b->runtime_offset = b->sources[i].offset;
}

/* Make a block of what was read; NULL if out of memory, here or in the kernel. */
static struct mapblock *make_block(struct mapblocks *m, const struct reading *r)
{
	struct mapblock *b = calloc(1, sizeof(*b));

	if (b)
		b->sources = calloc(r->n + 1, sizeof(*b->sources));
	if (!b || !b->sources ||
		unwindspace_maps_new(tableset_space(m->tables), (uint32_t)r->n, &b->space, NULL) != 0) {
		if (b)
			free(b->sources);
		free(b);
		return NULL;
	}
	for (uint32_t i = 0; i < r->n; i++) {
		b->space.maps[i] = (struct unwind_map){ .start = r->maps[i].start, .end = r->maps[i].end };
		b->sources[i] = r->maps[i].source;
		fill_map(m, b, i);
	}
	b->refs = 1;
	b->next = &m->ring;
	b->prev = m->ring.prev;
	b->prev->next = b->next->prev = b;
	return b;
}

/*
 * There was no memory for the mappings that were read. Make room, so that they
 * may fit when they are read again.
 */
static void cut_all(struct mapblocks *m, struct reading *r)
{
	for (size_t i = 0; i < r->n; i++)
		tableset_release(m->tables, r->maps[i].source.file);
	r->cut = r->n ? r->cut + r->n : 0;
	if (r->n)
		tableset_room(m->tables, r->n * sizeof(struct unwind_map));
}

/*
 * Read what process TGID has mapped now; adjacent mappings without a table are
 * merged. BEFORE: the previous block of the same image, or NULL; files of
 * unchanged mappings are not looked up again. The caller owns the block. *CUT:
 * the mappings that it lacks, beyond UNWIND_MAPS_MAX or for lack of memory
 * here. A process whose maps may not be read has a block without mappings. NULL
 * if the process is gone (*CUT = 0), or if there is no memory for any of the
 * *CUT mappings: then some tables are dropped for them (see tableset_room()).
 */
static struct mapblock *mapblock_read(
	struct mapblocks *m, uint32_t tgid, const struct mapblock *before, uint64_t *cut)
{
	struct reading r = { .tables = m->tables,
		.pid = procaccess_living(tableset_broker(m->tables), tgid),
		.before = before };
	struct mapblock *b = NULL;

	if (r.pid && procaccess_maps(tableset_broker(m->tables), r.pid, read_map, &r, NULL) != -ESRCH)
		b = make_block(m, &r);
	if (!b)
		cut_all(m, &r);
	free(r.maps);
	*cut = r.cut;
	return b;
}

/* Are the mappings of A and B the same? */
static bool mapblock_same(const struct mapblock *a, const struct mapblock *b)
{
	bool same = a->space.n == b->space.n;

	for (uint32_t i = 0; same && i < a->space.n; i++) {
		const struct mapblock_source *s = &a->sources[i], *t = &b->sources[i];

		same = a->space.maps[i].start == b->space.maps[i].start &&
		       a->space.maps[i].end == b->space.maps[i].end && s->inode == t->inode &&
		       s->dev == t->dev && s->offset == t->offset;
	}
	return same;
}

/* Tables came or went (tableset_changed()): update all mappings of these files for BPF. */
static void mapblock_refresh(struct mapblocks *m)
{
	for (struct mapblock *b = m->ring.next; b != &m->ring; b = b->next)
		for (uint32_t i = 0; i < b->space.n; i++)
			if (tableset_changed(m->tables, b->sources[i].file))
				fill_map(m, b, i);
}

/* Has a walk missed a dropped table of B? See tableset_wanted(). B may be NULL. */
static bool mapblock_wanted(const struct mapblocks *m, const struct mapblock *b)
{
	bool wanted = false;

	for (uint32_t i = 0; b && !wanted && i < b->space.n; i++)
		wanted = tableset_wanted(m->tables, b->sources[i].file);
	return wanted;
}

/* A process that maps much is read again for at most half of the time. */
#define RESCAN_SHARE 1
#define RESCAN_MIN_NS 100000
#define RESCAN_MAX_NS UINT64_C(100000000) /* longest delay without events, while nothing new is found */
#define AGAIN_MIN_NS 1000000 /* delay of the first read after a report, */
#define AGAIN_SHARE 3 /* and of each next one, in multiples of the time since the report or the last read */
#define ROOM_NS UINT64_C(2000000000) /* when mappings that found no memory are read again */
#define IMAGES_NS 1000000 /* how long images are read before other work is done */

struct proc {
	uint32_t tgid;
	uint32_t exec_id;
	uint64_t start_boot_ns;
	bool known; /* its identity is known, and no exec has been seen since */
	uint64_t known_ns; /* when its identity was seen */
	uint64_t exec_ns; /* when its last reported exec was */
	bool dirty; /* something was mapped since its mappings were read */
	bool no_room; /* there was no memory for its mappings */
	uint64_t cut; /* its mappings that were counted as cut */
	bool ended; /* possibly: the leader has exited */
	bool gone; /* the slot is free, until its TGID is met again */
	uint64_t scanned_ns;
	uint64_t published_ns; /* when what that scan found was */
	uint64_t mapped_ns; /* when BPF reported a mapping, the first in IMAGE_SETTLE_NS; 0 = never */
	uint64_t again_ns; /* when to read it again though nothing more is reported; 0 = never */
	struct mapblock *block; /* a forked child shares its parent's until it makes its own; NULL = none */
	uint64_t due_ns; /* not read again before this time */
	uint32_t runtime; /* the interpreter's file that was published; 0 = none */
	bool runtime_counted; /* for this image */
};

struct unwinder {
	struct tableset *tables;
	struct unwindspace *space;
	struct runtimes *runtimes; /* the caller's; NULL = not wanted */
	struct proc *procs;
	size_t n, cap;
	struct idmap by_tgid;
	struct mapblocks blocks;
	struct offcpu_ev_image *queue; /* images whose mappings must be read, the newest last */
	size_t n_queue, max_queue;
	bool any_dirty, any_ended;
	bool news; /* mappings were published since the last unwinder_service() */
	bool distrust; /* events were lost */
	uint64_t due_ns;
	struct process_table *followed; /* kept up to date without events; NULL = there are events */
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
	u->runtimes = opts->runtimes;
	mapblock_init(&u->blocks, u->tables);
	u->due_ns = UINT64_MAX;
	*ret = u;
	return 0;
}

void unwinder_close(struct unwinder *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->n; i++)
		mapblock_drop(&u->blocks, u->procs[i].block);
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

uint32_t unwinder_store(const struct unwinder *u)
{
	return tableset_store(u->tables);
}

void unwinder_without_events(struct unwinder *u, struct process_table *procs)
{
	u->followed = procs;
}

static bool is_image(const struct proc *p, uint64_t start_boot_ns, uint32_t exec_id)
{
	return p->known && p->start_boot_ns == start_boot_ns && p->exec_id == exec_id;
}

static struct proc *find_proc(struct unwinder *u, uint32_t tgid)
{
	struct idmap_slot *slot = idmap_find(&u->by_tgid, 0, tgid);

	return slot ? &u->procs[slot->value] : NULL;
}

static struct proc *get_proc(struct unwinder *u, uint32_t tgid)
{
	struct proc *p = find_proc(u, tgid);

	if (p) {
		p->gone = false;
		return p;
	}
	if (base_grow(&u->procs, &u->cap, u->n + 1, sizeof(*u->procs)) != 0 ||
		idmap_put(&u->by_tgid, 0, tgid, (uint32_t)u->n, NULL) == UINT32_MAX)
		return NULL;
	p = &u->procs[u->n++];
	*p = (struct proc){ .tgid = tgid };
	return p;
}

/*
 * Mappings are read repeatedly: up to p->cut of the N are the same ones as
 * before, so do not count these again.
 */
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
	up.runtime = p->runtime = p->block->runtime;
	up.runtime_bias = p->block->runtime_bias;
	if (p->runtime && !p->runtime_counted) {
		runtimes_process(u->runtimes, p->runtime);
		p->runtime_counted = true;
	}
	if (unwindspace_commit(u->space, NULL) == 0 &&
		unwindspace_proc_set(u->space, p->tgid, &up, NULL) == 0) {
		u->news = true;
	} else {
		/* what BPF has may be about to be freed */
		unwindspace_proc_drop(u->space, p->tgid);
		count_cut(u, p, p->block->space.n);
	}
	p->published_ns = now_ns();
}

/*
 * Without events: check the mappings of P after they were read into B. False if
 * P is another image by now; else *IDLE says whether they are unchanged.
 */
static bool check_scan(struct unwinder *u, const struct proc *p, const struct mapblock *b, bool *idle)
{
	const struct offcpu_ev_image ev = {
		.tgid = p->tgid, .start_boot_ns = p->start_boot_ns, .exec_id = p->exec_id
	};

	*idle = p->block && mapblock_same(p->block, b);
	if (!p->known)
		return true;
	if (!process_table_is_still(u->followed, &ev))
		return false;
	if (!*idle)
		process_table_stale(u->followed, &ev, true);
	return true;
}

/* Let BPF report the next mapping of P again: the read that follows may miss it. */
static void hear_again(struct unwinder *u, const struct proc *p)
{
	struct unwind_proc up;

	if (!unwindspace_proc_get(u->space, p->tgid, &up) || !up.mapping)
		return;
	up.mapping = 0;
	unwindspace_proc_set(u->space, p->tgid, &up, NULL);
}

/*
 * Read the mappings of P now. A process that has ended keeps what it had, for
 * its last waits; one that may not be read has none.
 */
static bool scan(struct unwinder *u, struct proc *p, bool same_image)
{
	uint64_t began = now_ns(), waited = began - p->scanned_ns, took, cut;
	uint64_t since = began - MAX(p->scanned_ns, p->mapped_ns);
	struct mapblock *b;
	bool idle = false;

	p->dirty = false;
	p->again_ns = 0;
	if (u->followed)
		hear_again(u, p);
	b = mapblock_read(&u->blocks, p->tgid, same_image ? p->block : NULL, &cut);
	if (b && u->followed && !check_scan(u, p, b, &idle)) {
		mapblock_drop(&u->blocks, b);
		b = NULL;
	}
	p->scanned_ns = began;
	if (b) {
		mapblock_drop(&u->blocks, p->block);
		p->block = b;
		p->no_room = false;
	} else if (cut) {
		/* read again later, when there may be memory */
		p->no_room = p->dirty = u->any_dirty = true;
	} else {
		/* perhaps no event reports its end */
		p->ended = u->any_ended = true;
	}
	count_cut(u, p, cut);
	/*
	 * BPF reports the first mapping of a library, before it exists. The kernel maps the others inside
	 * it without a report, and from Linux 6.17 on reading the mappings does not wait for it.
	 */
	if (b && u->followed && p->mapped_ns && began - p->mapped_ns < IMAGE_SETTLE_NS) {
		p->again_ns = now_ns() + MAX(AGAIN_SHARE * since, AGAIN_MIN_NS);
		u->any_dirty = true;
	}
	took = now_ns() - began;
	p->due_ns = began + took +
		    (p->no_room    ? ROOM_NS
			    : idle ? MIN(waited, RESCAN_MAX_NS)
				   : MAX(took * RESCAN_SHARE, RESCAN_MIN_NS));
	return b != NULL;
}

void unwinder_prepare(struct unwinder *u, uint32_t pid)
{
	struct proc *p = get_proc(u, pid);

	if (p)
		scan(u, p, false);
}

struct expected {
	struct tableset *tables;
	uint64_t addr;
};

static int expect_map(void *ctx, const struct procmap *m)
{
	const struct expected *x = ctx;

	/* never released */
	if (m->start <= x->addr && x->addr < m->end)
		tableset_file(x->tables, (uint32_t)getpid(), m);
	return 0;
}

void unwinder_expect(struct unwinder *u, const void *addr)
{
	struct expected x = { u->tables, (uint64_t)(uintptr_t)addr };

	procmaps_each((uint32_t)getpid(), expect_map, &x, NULL);
}

void unwinder_image(struct unwinder *u, const struct offcpu_ev_image *ev)
{
	const struct proc *p = find_proc(u, ev->tgid);

	if (p && is_image(p, ev->start_boot_ns, ev->exec_id))
		return;
	if (base_grow(&u->queue, &u->max_queue, u->n_queue + 1, sizeof(*u->queue)) == 0)
		u->queue[u->n_queue++] = *ev;
}

void unwinder_stale(struct unwinder *u, const struct offcpu_ev_image *ev)
{
	struct proc *p = find_proc(u, ev->tgid);

	if (!p || !is_image(p, ev->start_boot_ns, ev->exec_id))
		return;
	p->dirty = u->any_dirty = true;
	if (ev->type == OFFCPU_EV_MAPPING && ev->time_ns > p->mapped_ns + IMAGE_SETTLE_NS)
		p->mapped_ns = ev->time_ns;
}

static void take_image(struct unwinder *u, const struct offcpu_ev_image *ev)
{
	struct proc *p = get_proc(u, ev->tgid);

	if (!p || is_image(p, ev->start_boot_ns, ev->exec_id))
		return;
	if (p->known)
		p->cut = 0;
	p->runtime_counted = false;
	p->known = true;
	p->known_ns = now_ns();
	p->ended = false;
	p->start_boot_ns = ev->start_boot_ns;
	p->exec_id = ev->exec_id;
	/* mappings of an earlier image must not be published under this identity */
	if (!scan(u, p, false)) {
		mapblock_drop(&u->blocks, p->block);
		p->block = NULL;
	}
	publish(u, p);
}

/*
 * BPF gave the child its parent's mappings at the fork. Give it its own
 * reference to them, or to newer ones that BPF did not know then.
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
	/* or under way: BPF will report it */
	if (child->exec_ns > ev->time_ns) {
		unwindspace_proc_drop(u->space, ev->pid);
		return;
	}
	/* what the parent mapped before the fork belongs to the child too */
	if (u->followed && parent->scanned_ns <= ev->time_ns && parent->due_ns <= now_ns() &&
		scan(u, parent, true))
		publish(u, parent);
	mapblock_share(parent->block);
	mapblock_drop(&u->blocks, child->block);
	*child = (struct proc){ .tgid = ev->pid,
		.start_boot_ns = up.start_boot_ns,
		.exec_id = up.exec_id,
		.known = true,
		.known_ns = ev->time_ns,
		.block = parent->block };
	publish(u, child);
}

void unwinder_forked(struct unwinder *u, const struct offcpu_ev_image *ev)
{
	on_fork(u, &(struct procevent){ .type = PROCEVENT_FORK,
			   .pid = ev->tgid,
			   .tid = ev->tgid,
			   .parent = ev->parent,
			   .time_ns = ev->time_ns });
}

/*
 * The mappings of an exec are not read before the image is complete and BPF
 * reports it: nothing could be published yet, and reading them takes a lock
 * that the exec needs.
 */
void unwinder_mapped(struct unwinder *u, const struct procevent *ev)
{
	struct proc *p = find_proc(u, ev->pid);
	struct unwind_proc up;

	/* BPF gave this child its parent's mappings, but its fork was not reported yet */
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
 * Forks and mappings were not reported: children whose mappings are not held
 * here start anew, and all others are read again.
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
		uint64_t due = p->dirty ? p->due_ns : UINT64_MAX;

		if (p->again_ns)
			due = MIN(due, p->again_ns);
		if (due <= now) {
			if (scan(u, p, true))
				publish(u, p);
			due = p->again_ns ? p->again_ns : UINT64_MAX;
		}
		if (due != UINT64_MAX) {
			u->any_dirty = true;
			u->due_ns = MIN(u->due_ns, due);
		}
	}
}

/*
 * The newest first: it will wait soon, while those that have waited since
 * before the recording lose nothing by waiting for their mappings.
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

/* Update the mappings whose tables came or went. */
static void apply(struct unwinder *u)
{
	if (unwindspace_commit(u->space, NULL) != 0)
		return;
	mapblock_refresh(&u->blocks);
	tableset_applied(u->tables);
	for (size_t i = 0; i < u->n; i++) {
		struct proc *p = &u->procs[i];

		if (p->known && p->block && p->block->runtime != p->runtime)
			publish(u, p);
	}
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

uint64_t unwinder_since(const struct unwinder *u, uint32_t tgid, uint64_t time_ns)
{
	const struct idmap_slot *slot = idmap_find(&u->by_tgid, 0, tgid);
	const struct proc *p = slot ? &u->procs[slot->value] : NULL;

	if (!p || !p->known || !p->block || p->ended)
		return now_ns();
	/* again_ns: the last scan may have been too early */
	return p->dirty || p->again_ns || p->scanned_ns <= time_ns ? 0 : p->published_ns;
}

uint64_t unwinder_due_ns(const struct unwinder *u)
{
	return u->due_ns;
}

/* Remove the slots of the processes that are gone. Nothing is removed without memory for the index. */
static void drop_gone(struct unwinder *u)
{
	struct idmap by_tgid = { 0 };
	size_t kept = 0;

	for (size_t i = 0; i < u->n; i++) {
		if (u->procs[i].gone)
			continue;
		if (idmap_put(&by_tgid, 0, u->procs[i].tgid, (uint32_t)kept++, NULL) == UINT32_MAX) {
			idmap_free(&by_tgid);
			return;
		}
	}
	for (size_t i = kept = 0; i < u->n; i++)
		if (!u->procs[i].gone)
			u->procs[kept++] = u->procs[i];
	u->n = kept;
	idmap_free(&u->by_tgid);
	u->by_tgid = by_tgid;
}

#define GONE_BATCH 256 /* slots of processes that are gone, before the index is made again */

/* A leader may end before its threads: the process has ended when its PID is gone. */
static void forget_ended(struct unwinder *u)
{
	size_t gone = 0;

	u->any_ended = false;
	for (size_t i = 0; i < u->n; i++) {
		struct proc *p = &u->procs[i];

		gone += p->gone;
		if (!p->ended)
			continue;
		if (kill((pid_t)p->tgid, 0) == 0 || errno != ESRCH) {
			u->any_ended = true;
			continue;
		}
		unwindspace_proc_drop(u->space, p->tgid);
		mapblock_drop(&u->blocks, p->block);
		*p = (struct proc){ .tgid = p->tgid, .gone = true };
		gone++;
	}
	if (gone >= GONE_BATCH)
		drop_gone(u);
}

/* Mark the processes that miss a dropped table to be read again: there may be room for it now. */
static void ask_again(struct unwinder *u)
{
	for (size_t i = 0; i < u->n; i++) {
		struct proc *p = &u->procs[i];

		if (p->known && !p->dirty)
			p->dirty = mapblock_wanted(&u->blocks, p->block);
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
