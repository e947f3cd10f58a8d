/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/mapblock.h"
#include "system/broker.h"

#include <errno.h>
#include <sys/mman.h>

struct mapblock_source {
	uint32_t file; /* of tableset */
	uint64_t offset, dev, inode;
};

void mapblock_init(struct mapblocks *m, struct tableset *tables)
{
	m->tables = tables;
	m->ring.prev = m->ring.next = &m->ring;
}

struct mapblock *mapblock_share(struct mapblock *b)
{
	b->refs++;
	return b;
}

void mapblock_drop(struct mapblocks *m, struct mapblock *b)
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
	uint32_t at; /* where in it */
	struct {
		uint64_t start, end;
		struct mapblock_source source;
	} * maps;
	size_t n, cap;
	uint64_t cut;
};

/* The file of a mapping that was there before, unchanged; else a look at it. */
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

/* Neighbours without a table are one: JIT compilers make thousands of them. */
static int read_map(void *ctx, const struct procmap *m)
{
	struct reading *r = ctx;
	struct mapblock_source source = { TABLESET_NO_FILE, m->offset,
		(uint64_t)m->dev_major << 32 | m->dev_minor, m->inode };

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

	tableset_map(m->tables, b->sources[i].file, map->start, b->sources[i].offset, map);
}

/* What was read becomes a block; NULL without memory, here or in the kernel. */
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

/* No memory for the mappings that were read: they may find some when they are read again. */
static void cut_all(struct mapblocks *m, struct reading *r)
{
	for (size_t i = 0; i < r->n; i++)
		tableset_release(m->tables, r->maps[i].source.file);
	r->cut = r->n ? r->cut + r->n : 0;
	if (r->n)
		tableset_room(m->tables, r->n * sizeof(struct unwind_map));
}

struct mapblock *mapblock_read(
	struct mapblocks *m, uint32_t tgid, const struct mapblock *before, uint64_t *cut)
{
	struct reading r = { .tables = m->tables,
		.pid = procaccess_living(tableset_opener(m->tables), tgid),
		.before = before };
	struct mapblock *b = NULL;

	if (r.pid && procaccess_maps(tableset_opener(m->tables), r.pid, read_map, &r, NULL) != -ESRCH)
		b = make_block(m, &r);
	if (!b)
		cut_all(m, &r);
	free(r.maps);
	*cut = r.cut;
	return b;
}

bool mapblock_same(const struct mapblock *a, const struct mapblock *b)
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

void mapblock_refresh(struct mapblocks *m)
{
	for (struct mapblock *b = m->ring.next; b != &m->ring; b = b->next)
		for (uint32_t i = 0; i < b->space.n; i++)
			if (tableset_changed(m->tables, b->sources[i].file))
				fill_map(m, b, i);
}

bool mapblock_wanted(const struct mapblocks *m, const struct mapblock *b)
{
	bool wanted = false;

	for (uint32_t i = 0; b && !wanted && i < b->space.n; i++)
		wanted = tableset_wanted(m->tables, b->sources[i].file);
	return wanted;
}
