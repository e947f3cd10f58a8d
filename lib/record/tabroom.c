/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/tabroom.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>

#define BUSY_NS UINT64_C(5000000000) /* a table that was used so recently is not given up */
#define WANTED_NS UINT64_C(2000000000) /* a walk that missed a table so lately asks for it again */
#define REFUSED_MOST 6 /* each refusal doubles the time to the next try, from WANTED_NS up to a minute */
#define WANTS 1024 /* dropped tables are missed by the highest numbers of tables, which they may share */
#define MAPS_SHARE 8 /* of the memory, left to mappings: without these tables are of no use */
#define WAIT_QUIETS 2 /* what was given up is free after so many, */
#define WAIT_ROUNDS 3 /* and perhaps in pieces too small: more is given up so often */

void tabroom_init(struct tabroom *r, struct unwindspace *space, struct tabfiles *files, uint64_t bytes)
{
	*r = (struct tabroom){ .space = space, .files = files, .table_bytes = bytes - bytes / MAPS_SHARE };
}

/* A number of no table, by which BPF tells that dropped file F is missed. */
static uint32_t want_of(const struct tabroom *r, const struct tabfile *f)
{
	return UNWIND_TABLES_MAX - 1 - (uint32_t)(f - r->files->files) % WANTS;
}

static void give_up(struct tabroom *r, struct tabfile *f)
{
	unwindspace_remove(r->space, f->table);
	free(f->loads);
	f->loads = NULL;
	tabfiles_change(r->files, f, TABFILE_DROPPED);
}

void tabroom_refuse(struct tabroom *r, struct tabfile *f)
{
	f->again_ns = now_ns() + (WANTED_NS << MIN(f->refused, REFUSED_MOST - 1));
	if (f->refused < REFUSED_MOST)
		f->refused++;
	r->dropped++;
	tabfiles_change(r->files, f, TABFILE_DROPPED);
}

bool tabroom_may_ask(const struct tabfile *f)
{
	return f->state == TABFILE_DROPPED && now_ns() >= f->again_ns;
}

bool tabroom_wanted(const struct tabroom *r, const struct tabfile *f)
{
	return tabroom_may_ask(f) && now_ns() - unwindspace_used_ns(r->space, want_of(r, f)) < WANTED_NS;
}

/* When F was last used, if it is in the kernel and may be given up; 0 = nobody maps it. */
static uint64_t used_ns(const struct tabroom *r, const struct tabfile *f)
{
	if (f->state != TABFILE_READY)
		return UINT64_MAX;
	return f->refs ? unwindspace_used_ns(r->space, f->table) : 0;
}

/* Of the tables in the kernel: one that nobody maps, else the one that was used longest ago. */
static struct tabfile *least_used(struct tabroom *r, uint64_t before_ns)
{
	struct tabfile *least = NULL;
	uint64_t least_ns = before_ns;

	for (size_t i = 0; i < r->files->n; i++) {
		struct tabfile *f = &r->files->files[i];
		uint64_t used = used_ns(r, f);

		if (used < least_ns) {
			least = f;
			least_ns = used;
		}
	}
	return least;
}

/*
 * Give up what was used least, LEN bytes of it or more; nothing if that much
 * cannot be. What was given up is not free before it is quiet.
 */
static bool make_room(struct tabroom *r, size_t len)
{
	const struct tabfiles *files = r->files;
	uint64_t before = now_ns() - BUSY_NS;
	size_t there = 0;
	struct tabfile *f;

	for (size_t i = 0; i < files->n && there < len; i++)
		there += used_ns(r, &files->files[i]) < before ? files->files[i].len : 0;
	if (there < len)
		return false;
	for (size_t given = 0; given < len && (f = least_used(r, before)); given += f->len) {
		f->again_ns = now_ns() + WANTED_NS;
		give_up(r, f);
		r->dropped++;
	}
	return true;
}

/* Many processes ask at the same time, each for little: one table does for all of them. */
bool tabroom_maps(struct tabroom *r, size_t len)
{
	const size_t step = MAX(len, (size_t)UNWIND_CHUNK_BYTES / 8);

	if (r->maps_asked + len > r->maps_given) {
		if (!make_room(r, step))
			return false;
		r->maps_given += step;
	}
	r->maps_asked += len;
	return true;
}

static void keep_place(struct tabfile *f, const struct unwindtab *tab)
{
	size_t bytes = tab->head->n_loads * sizeof(*f->loads);

	f->vaddr = tab->head->vaddr;
	f->segs = (uint16_t)tab->head->n_segs;
	f->loads = malloc(bytes ? bytes : 1);
	f->n_loads = f->loads ? (uint8_t)tab->head->n_loads : 0;
	if (f->loads)
		memcpy(f->loads, tab->loads, bytes);
}

/* Let F wait for what is given up for it: LEN bytes. False when nothing can be. */
static bool wait_for_room(struct tabroom *r, struct tabfile *f, const uint8_t *bytes, size_t len)
{
	uint8_t rounds = f->state == TABFILE_WAITING ? f->rounds : 0;

	/* more each time: the pieces may have been too small */
	if (rounds == WAIT_ROUNDS || !make_room(r, len << rounds))
		return false;
	f->bytes = malloc(len);
	if (!f->bytes)
		return false;
	memcpy(f->bytes, bytes, len);
	f->len = len;
	f->quiets = 0;
	f->rounds = rounds + 1;
	tabfiles_change(r->files, f, TABFILE_WAITING);
	return true;
}

/* As unwindspace_add(), but not into what is left to mappings. */
static int add_table(struct tabroom *r, struct tabfile *f, const struct unwindtab *tab, size_t len)
{
	struct unwindspace_stats st;

	if (len > r->table_bytes)
		return -E2BIG;
	unwindspace_stats(r->space, &st);
	if (st.bytes_used + len > r->table_bytes)
		return -ENOSPC;
	return unwindspace_add(r->space, tab, &f->table, &f->seg, NULL);
}

void tabroom_put(struct tabroom *r, struct tabfile *f, const struct unwindtab *tab)
{
	const size_t len = tab->head->bytes;
	int rc = add_table(r, f, tab, len);

	if (!rc) {
		keep_place(f, tab);
		f->len = len;
		f->refused = 0;
		tabfiles_change(r->files, f, TABFILE_READY);
		return;
	}
	if (rc == -ENOSPC && wait_for_room(r, f, tab->bytes, len))
		return;
	tabroom_refuse(r, f);
	if (rc == -E2BIG)
		f->again_ns = UINT64_MAX;
}

static uint16_t table_word(enum unwind_state state, uint32_t table)
{
	return (uint16_t)((unsigned int)state << 14 | table);
}

void tabroom_map(const struct tabroom *r, const struct tabfile *f, uint64_t start, uint64_t offset,
	struct unwind_map *ret)
{
	struct unwind_map m = { 0 };

	m.table = table_word(UNWIND_BY_FP, 0);
	if (f && f->state == TABFILE_ASKED)
		m.table = table_word(UNWIND_PENDING, 0);
	else if (f && (f->state == TABFILE_WAITING || f->state == TABFILE_DROPPED))
		m.table = table_word(UNWIND_DROPPED, want_of(r, f));
	for (size_t i = 0; f && f->state == TABFILE_READY && i < f->n_loads; i++) {
		const struct unwindtab_load *l = &f->loads[i];

		/* a mapping begins at a page, a load may begin inside it */
		if (offset + 4095 < l->offset || offset >= l->offset + l->bytes)
			continue;
		ret->bias = start - (l->vaddr + (offset - l->offset)) + f->vaddr;
		m.seg = f->seg;
		m.segs = f->segs;
		m.table = table_word(UNWIND_TABLE, f->table);
		break;
	}
	__atomic_store_n(&ret->word, m.word, __ATOMIC_RELEASE);
}

void tabroom_quiet(struct tabroom *r)
{
	unwindspace_quiet(r->space);
	if (r->maps_given && ++r->maps_quiets >= WAIT_QUIETS) {
		r->maps_asked = r->maps_given = 0;
		r->maps_quiets = 0;
	}
}

bool tabroom_waited(struct tabfile *f)
{
	return f->state == TABFILE_WAITING && ++f->quiets >= WAIT_QUIETS;
}

void tabroom_tidy(struct tabroom *r, struct tabfile *f, uint64_t idle_ns)
{
	if (f->state != TABFILE_READY || f->refs || now_ns() - f->idle_since_ns <= idle_ns)
		return;
	f->again_ns = 0;
	give_up(r, f);
}
