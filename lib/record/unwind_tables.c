/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/unwind_tables.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/intern.h"
#include "record/files.h"
#include "record/table_source.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

/*
 * unwind_files - the files that processes map, by identity, and the state of
 * the unwind table of each.
 *
 * A file is identified by (device, inode, size, times): it remains the same one
 * if it is renamed or deleted, and is another one if it is changed. Files are
 * never forgotten: numbers stay valid as long as the table lives, pointers
 * until the next add.
 */

enum tabfile_state {
	TABFILE_REQUESTED, /* the table is being compiled */
	TABFILE_READY, /* BPF can see it */
	TABFILE_BARE, /* there is none, and there will be none */
	TABFILE_WAITING, /* it waits for memory of tables that were dropped for it */
	TABFILE_DROPPED /* it was dropped, or there was no room */
};

struct tabfile {
	enum tabfile_state state;
	enum vdso_kind vdso;
	bool changed; /* what BPF should see of it has changed since tableset_applied() */
	uint8_t quiets, rounds; /* WAITING: quiet periods since tables were last dropped for it, and how often
				   they were */
	uint8_t refused; /* how often in a row there was no room for it */
	uint32_t refs; /* mappings */
	uint64_t idle_since_ns; /* when refs became 0 */
	uint64_t again_ns; /* DROPPED: not requested before this time; UINT64_MAX = it never fits */
	struct table_cache_key key;
	uint32_t table, seg; /* READY: numbers of unwindspace */
	uint16_t segs;
	uint8_t n_loads;
	uint64_t vaddr; /* of the first segment */
	uint32_t runtime; /* number of the interpreter that it is; 0 = none, or not known yet */
	struct unwindtab_load *loads; /* READY */
	uint8_t *bytes; /* WAITING: the table */
	size_t len; /* WAITING, READY: of the table */
};

/* A zeroed one is an empty table. */
struct unwind_files {
	struct tabfile *files;
	size_t n, cap;
	struct hashtable by_key;
	bool any_changed; /* some file has changed since tableset_applied() */
};

static void unwind_files_free(struct unwind_files *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->files[i].loads);
		free(t->files[i].bytes);
	}
	free(t->files);
	hashtable_free(&t->by_key);
	*t = (struct unwind_files){ 0 };
}

static uint64_t hash_key(const struct table_cache_key *key)
{
	uint64_t words[] = { key->dev, key->inode, key->size, key->mtime_ns, key->ctime_ns };

	return hash_bytes(words, sizeof(words), 0);
}

/*
 * The number of the file with this identity, whatever its build ID; UINT32_MAX
 * = none. Compares the whole key: the owner of a file chooses its size and
 * times, and can make hashes collide.
 */
static uint32_t unwind_files_find(const struct unwind_files *t, const struct table_cache_key *key)
{
	return HASHTABLE_FIND(&t->by_key, hash_key(key), i, table_cache_same_file(&t->files[i].key, key));
}

/* Add a file that can only be found by its number; UINT32_MAX if out of memory. */
static uint32_t unwind_files_add_nameless(struct unwind_files *t)
{
	if (base_grow(&t->files, &t->cap, t->n + 1, sizeof(*t->files)) != 0)
		return UINT32_MAX;
	return (uint32_t)t->n++;
}

/* Add a file, which must not be there yet; UINT32_MAX if out of memory. */
static uint32_t unwind_files_add(struct unwind_files *t, const struct table_cache_key *key)
{
	uint32_t file = hashtable_reserve(&t->by_key, 1) == 0 ? unwind_files_add_nameless(t) : UINT32_MAX;

	if (file == UINT32_MAX)
		return UINT32_MAX;
	t->files[file].key = *key;
	hashtable_add(&t->by_key, hash_key(key), file);
	return file;
}

/* File number FILE; NULL = there is none. */
static struct tabfile *unwind_files_get(const struct unwind_files *t, uint32_t file)
{
	return file < t->n ? &t->files[file] : NULL;
}

/* Set the state of F, and mark F as changed. */
static void unwind_files_change(struct unwind_files *t, struct tabfile *f, enum tabfile_state state)
{
	f->state = state;
	f->changed = true;
	t->any_changed = true;
}

/*
 * table_room - the unwind tables in the memory that BPF reads: where each one
 * lies, and which are dropped if memory is short.
 *
 * A table for which there is no room waits (TABFILE_WAITING) while the least
 * used tables, as many as make its room, are dropped; their memory is free
 * after two quiet periods. A table used within the last five seconds stays, so
 * that no two tables take turns. If that makes no room, the new table is
 * refused (TABFILE_DROPPED). It is requested again when a walk has missed it,
 * each time after a longer delay. An eighth of the memory is reserved for
 * mappings; beyond it they push tables out.
 */

struct table_room {
	struct unwindspace *space; /* the caller's, like FILES */
	struct unwind_files *files;
	uint64_t hashtable_bytes; /* limit for tables and mappings: beyond it no table is added */
	uint64_t maps_requested, maps_given; /* bytes requested and dropped for mappings, not free yet */
	unsigned int maps_quiets; /* quiet periods since then */
	uint64_t dropped; /* tables dropped or refused */
};

#define BUSY_NS UINT64_C(5000000000) /* a table used this recently is not dropped */
#define WANTED_NS UINT64_C(2000000000) /* a walk that missed a table this recently requests it again */
#define REFUSED_MOST 6 /* each refusal doubles the time to the next try, from WANTED_NS up to a minute */
#define WANTS 1024 /* the highest table numbers stand for dropped tables, which may share them */
#define MAPS_SHARE 8 /* one part in so many is reserved for mappings, without which tables are of no use */
#define WAIT_QUIETS 2 /* dropped memory is free after so many quiet periods, */
#define WAIT_ROUNDS 3 /* perhaps in pieces that are too small: drop more, so many times */

/* SPACE and FILES must outlive R. BYTES: limit of the chunks that SPACE uses. R needs no release. */
static void table_room_init(
	struct table_room *r, struct unwindspace *space, struct unwind_files *files, uint64_t bytes)
{
	*r = (struct table_room){
		.space = space, .files = files, .hashtable_bytes = bytes - bytes / MAPS_SHARE
	};
}

/* A number without a table, with which BPF reports that dropped file F is missed. */
static uint32_t want_of(const struct table_room *r, const struct tabfile *f)
{
	return UNWIND_TABLES_MAX - 1 - (uint32_t)(f - r->files->files) % WANTS;
}

static void give_up(struct table_room *r, struct tabfile *f)
{
	unwindspace_remove(r->space, f->table);
	free(f->loads);
	f->loads = NULL;
	unwind_files_change(r->files, f, TABFILE_DROPPED);
}

/* F gets no table for now: it is DROPPED, and counted. */
static void table_room_refuse(struct table_room *r, struct tabfile *f)
{
	f->again_ns = now_ns() + (WANTED_NS << MIN(f->refused, REFUSED_MOST - 1));
	if (f->refused < REFUSED_MOST)
		f->refused++;
	r->dropped++;
	unwind_files_change(r->files, f, TABFILE_DROPPED);
}

/* Was the table of F dropped or refused, and may it be requested again now? */
static bool table_room_may_request(const struct tabfile *f)
{
	return f->state == TABFILE_DROPPED && now_ns() >= f->again_ns;
}

/* The same, and has a walk missed it lately? */
static bool table_room_wanted(const struct table_room *r, const struct tabfile *f)
{
	return table_room_may_request(f) &&
	       now_ns() - unwindspace_used_ns(r->space, want_of(r, f)) < WANTED_NS;
}

/* When F was last used; 0 = no process maps it; UINT64_MAX = it is not in memory, so it cannot be dropped. */
static uint64_t used_ns(const struct table_room *r, const struct tabfile *f)
{
	if (f->state != TABFILE_READY)
		return UINT64_MAX;
	return f->refs ? unwindspace_used_ns(r->space, f->table) : 0;
}

/* A table that no process maps, else the one last used longest ago, before BEFORE_NS; NULL = none. */
static struct tabfile *least_used(struct table_room *r, uint64_t before_ns)
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
 * Drop the least used tables, LEN bytes of them or more; none if that much
 * cannot be dropped. Their memory is free after two quiet periods.
 */
static bool make_room(struct table_room *r, size_t len)
{
	const struct unwind_files *files = r->files;
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

/*
 * Mappings of LEN bytes found no room: drop tables. False if none can be
 * dropped now. Many processes request a little each at the same time, and one
 * table is enough for all of them.
 */
static bool table_room_maps(struct table_room *r, size_t len)
{
	const size_t step = MAX(len, (size_t)UNWIND_CHUNK_BYTES / 8);

	if (r->maps_requested + len > r->maps_given) {
		if (!make_room(r, step))
			return false;
		r->maps_given += step;
	}
	r->maps_requested += len;
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

/* Drop LEN bytes of tables or more, and let F wait for them. False if they cannot be dropped. */
static bool wait_for_room(struct table_room *r, struct tabfile *f, const uint8_t *bytes, size_t len)
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
	unwind_files_change(r->files, f, TABFILE_WAITING);
	return true;
}

/* As unwindspace_add(), but not into the memory reserved for mappings. */
static int add_table(struct table_room *r, struct tabfile *f, const struct unwindtab *tab, size_t len)
{
	struct unwindspace_stats st;

	if (len > r->hashtable_bytes)
		return -E2BIG;
	unwindspace_stats(r->space, &st);
	if (st.bytes_used + len > r->hashtable_bytes)
		return -ENOSPC;
	return unwindspace_add(r->space, tab, &f->table, &f->seg, NULL);
}

/*
 * Put table TAB, of at least one segment, into the memory that BPF reads. F
 * becomes READY, or WAITING with its own copy, or DROPPED.
 */
static void table_room_put(struct table_room *r, struct tabfile *f, const struct unwindtab *tab)
{
	const size_t len = tab->head->bytes;
	int rc = add_table(r, f, tab, len);

	if (!rc) {
		keep_place(f, tab);
		f->len = len;
		f->refused = 0;
		unwind_files_change(r->files, f, TABFILE_READY);
		return;
	}
	if (rc == -ENOSPC && wait_for_room(r, f, tab->bytes, len))
		return;
	table_room_refuse(r, f);
	if (rc == -E2BIG)
		f->again_ns = UINT64_MAX;
}

static uint16_t table_word(enum unwind_state state, uint32_t table)
{
	return (uint16_t)((unsigned int)state << 14 | table);
}

/* Fill in bias and word of RET for a mapping of F (NULL = of no file) at START with file offset OFFSET. */
static void table_room_map(const struct table_room *r, const struct tabfile *f, uint64_t start,
	uint64_t offset, struct unwind_map *ret)
{
	struct unwind_map m = { 0 };

	m.table = table_word(UNWIND_BY_FP, 0);
	if (f && f->state == TABFILE_REQUESTED)
		m.table = table_word(UNWIND_PENDING, 0);
	else if (f && (f->state == TABFILE_WAITING || f->state == TABFILE_DROPPED))
		m.table = table_word(UNWIND_DROPPED, want_of(r, f));
	for (size_t i = 0; f && f->state == TABFILE_READY && i < f->n_loads; i++) {
		const struct unwindtab_load *l = &f->loads[i];

		/* a mapping begins at a page, but a load may begin inside that page */
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

/* An RCU grace period has passed. Then call table_room_waited() and table_room_tidy() for the files. */
static void table_room_quiet(struct table_room *r)
{
	unwindspace_quiet(r->space);
	if (r->maps_given && ++r->maps_quiets >= WAIT_QUIETS) {
		r->maps_requested = r->maps_given = 0;
		r->maps_quiets = 0;
	}
}

/* Count a quiet period of F. True if the table of F (`bytes`) should be put into memory again. */
static bool table_room_waited(struct tabfile *f)
{
	return f->state == TABFILE_WAITING && ++f->quiets >= WAIT_QUIETS;
}

/*
 * Drop the table of F if no process has mapped it for IDLE_NS. It may come back
 * at once, and is not counted as dropped.
 */
static void table_room_tidy(struct table_room *r, struct tabfile *f, uint64_t idle_ns)
{
	if (f->state != TABFILE_READY || f->refs || now_ns() - f->idle_since_ns <= idle_ns)
		return;
	f->again_ns = 0;
	give_up(r, f);
}

#define IDLE_NS UINT64_C(10000000000) /* how long a table that no process maps is kept */

struct tableset {
	struct worker *broker;
	struct mapfile_proof proofs[MAPFILE_PROOFS];
	struct unwindspace *space;
	struct runtimes *runtimes;
	struct table_source *source;
	struct unwind_files files;
	struct table_room room;
	struct idmap refused; /* devices and inodes of files that could not be opened */
	uint64_t idle_ns;
	uint32_t vdso[VDSO_KINDS]; /* files; TABLESET_NO_FILE = not requested yet */
	uint64_t examined; /* files */
};

static uint64_t default_bytes(void)
{
	struct sysinfo si;
	uint64_t all = UINT64_C(4) << 30;

	if (sysinfo(&si) == 0)
		all = (uint64_t)si.totalram * si.mem_unit;
	return MIN(all / 16, UINT64_C(512) << 20);
}

/*
 * The bytes of chunks that fit into BOUND. The kernel's header of each chunk
 * counts; chunk 0 takes no memory.
 */
static uint64_t chunk_bytes(uint64_t bound)
{
	return (bound / (UNWIND_CHUNK_BYTES + CHUNKS_MAP_HEADER) + 1) * UNWIND_CHUNK_BYTES;
}

int tableset_open(const struct tableset_opts *opts, struct tableset **ret, struct err *e)
{
	struct unwindspace_opts space = { .bytes = chunk_bytes(opts->bytes ? opts->bytes : default_bytes()),
		.segs = opts->all ? 0 : 16384,
		.procs = opts->all ? 32768 : 8192,
		.procs_at_once = opts->raw,
		.first_chunks = opts->all ? 32 : 8,
		.broker = opts->broker };
	struct tableset *t = calloc(1, sizeof(*t));
	int rc = t ? 0 : err_nomem(e, "the unwind tables");

	if (!rc)
		rc = table_source_open(&(struct table_source_opts){ 0 }, &t->source, e);
	if (!rc)
		rc = unwindspace_open(&space, &t->space, e);
	if (rc) {
		tableset_close(t);
		return rc;
	}
	t->broker = opts->broker;
	t->runtimes = opts->runtimes;
	for (size_t i = 0; i < VDSO_KINDS; i++)
		t->vdso[i] = TABLESET_NO_FILE;
	table_room_init(&t->room, t->space, &t->files, space.bytes - UNWIND_CHUNK_BYTES);
	t->idle_ns = opts->idle_ns ? opts->idle_ns : IDLE_NS;
	*ret = t;
	return 0;
}

void tableset_close(struct tableset *t)
{
	if (!t)
		return;
	table_source_close(t->source);
	unwindspace_close(t->space);
	unwind_files_free(&t->files);
	idmap_free(&t->refused);
	free(t);
}

struct worker *tableset_broker(const struct tableset *t)
{
	return t->broker;
}

struct unwindspace *tableset_space(struct tableset *t)
{
	return t->space;
}

int tableset_fd(const struct tableset *t)
{
	return table_source_fd(t->source);
}

uint32_t tableset_worker(const struct tableset *t)
{
	return (uint32_t)table_source_worker(t->source);
}

uint32_t tableset_store(const struct tableset *t)
{
	return table_source_store(t->source);
}

/* If F is an interpreter, show it to BPF. */
static void recognise(struct tableset *t, struct tabfile *f, const struct unwindtab *tab)
{
	struct hotspot_file hotspot;
	struct runtime_file file;
	uint32_t number;

	if (!t->runtimes || f->runtime || !tab->head->interpreter.kind)
		return;
	number = runtimes_file(t->runtimes, &tab->head->interpreter, &file);
	if (runtimes_hotspot(t->runtimes, number, &tab->head->hotspot, &hotspot) &&
		unwindspace_hotspot_set(t->space, number, &hotspot, NULL) != 0)
		return;
	if (number && unwindspace_runtime_set(t->space, number, &file, NULL) == 0)
		f->runtime = number;
}

/* Use the answer A for F. Without room, its table waits for others to be dropped. */
static void install(struct tableset *t, struct tabfile *f, const struct table_answer *a)
{
	if (a->result == TABLE_FOUND)
		recognise(t, f, &a->tab);
	if (a->result == TABLE_FOUND)
		table_room_put(&t->room, f, &a->tab);
	else
		unwind_files_change(&t->files, f, TABFILE_BARE);
}

/* Request the table of F. FD belongs to the caller; -1 = F is a vdso. */
static void request(struct tableset *t, struct tabfile *f, int fd)
{
	const uint64_t cookie = (uint64_t)(f - t->files.files);
	struct table_answer a;
	int rc;

	f->state = TABFILE_REQUESTED;
	rc = fd < 0 ? table_source_request_vdso(t->source, f->vdso, cookie, &a)
		    : table_source_request(t->source, fd, &f->key, cookie, &a);
	if (rc > 0)
		install(t, f, &a);
	else if (rc < 0)
		table_room_refuse(&t->room, f);
}

/* The file number of the vdso of this kind: all such processes have the same image. */
static uint32_t vdso_file(struct tableset *t, enum vdso_kind kind)
{
	const bool added = t->vdso[kind] == TABLESET_NO_FILE;
	struct tabfile *f;

	if (added)
		t->vdso[kind] = unwind_files_add_nameless(&t->files);
	f = unwind_files_get(&t->files, t->vdso[kind]);
	if (!f)
		return TABLESET_NO_FILE;
	f->vdso = kind;
	t->examined += added;
	if (added || table_room_may_request(f))
		request(t, f, -1);
	return t->vdso[kind];
}

/* Count a file that could not be opened, but only once. It has no table. */
static void count_refused(struct tableset *t, const struct procmap *m, int code)
{
	bool added = false;

	/* the mapping, or the process, is gone */
	if (code == -ENOENT || code == -ESRCH)
		return;
	idmap_put(&t->refused, (uint64_t)m->dev_major << 32 | m->dev_minor, m->inode, 0, &added);
	if (!added)
		return;
	t->examined++;
	table_source_fail_open(t->source, code);
}

/*
 * Open a file that is new, or whose table was dropped a while ago, and request
 * its table. Its identity is that of the opened file: the process may have
 * mapped another file meanwhile, whose table must not count as this one's.
 */
static uint32_t find_file(struct tableset *t, uint32_t pid, const struct procmap *m)
{
	_cleanup_close_ int fd = -1;
	struct table_cache_key key;
	struct tabfile *f;
	struct stat st;
	uint32_t file;
	bool added;

	fd = mapfile_open(t->broker, pid, m, &st);
	if (fd < 0) {
		count_refused(t, m, fd);
		return TABLESET_NO_FILE;
	}
	key = table_cache_key_of(&st);
	file = unwind_files_find(&t->files, &key);
	added = file == TABLESET_NO_FILE;
	if (added)
		file = unwind_files_add(&t->files, &key);
	f = unwind_files_get(&t->files, file);
	if (!f)
		return TABLESET_NO_FILE;
	t->examined += added;
	if (added || table_room_may_request(f))
		request(t, f, fd);
	return file;
}

/* The number of the file with status ST, which process PID maps as M. */
static uint32_t file_of(struct tableset *t, uint32_t pid, const struct procmap *m, const struct stat *st)
{
	struct table_cache_key key;
	uint32_t file;

	if (!S_ISREG(st->st_mode))
		return TABLESET_NO_FILE;
	key = table_cache_key_of(st);
	file = unwind_files_find(&t->files, &key);
	if (file == TABLESET_NO_FILE || table_room_may_request(unwind_files_get(&t->files, file)))
		file = find_file(t, pid, m);
	return file;
}

uint32_t tableset_file(struct tableset *t, uint32_t pid, const struct procmap *m)
{
	uint32_t file = TABLESET_NO_FILE;
	struct stat st;
	int rc;

	if (vdso_kind(m)) {
		file = vdso_file(t, vdso_kind(m));
	} else if (!mapfile_is_pseudo(m->path)) {
		rc = mapfile_stat(t->broker, pid, m, &st);
		if (rc)
			count_refused(t, m, rc);
		else
			file = file_of(t, pid, m, &st);
	}
	tableset_hold(t, file);
	return file;
}

bool tableset_file_then(
	struct tableset *t, uint32_t pid, const struct procmap *m, uint64_t made_ns, uint32_t *file)
{
	struct stat st;

	if (mapfile_is_pseudo(m->path)) {
		*file = tableset_file(t, pid, m);
		return true;
	}
	if (mapfile_stat_then(t->broker, t->proofs, pid, m, made_ns, &st) != 0)
		return false;
	*file = file_of(t, pid, m, &st);
	tableset_hold(t, *file);
	return true;
}

void tableset_hold(struct tableset *t, uint32_t file)
{
	struct tabfile *f = unwind_files_get(&t->files, file);

	if (f)
		f->refs++;
}

void tableset_release(struct tableset *t, uint32_t file)
{
	struct tabfile *f = unwind_files_get(&t->files, file);

	if (f && --f->refs == 0)
		f->idle_since_ns = now_ns();
}

void tableset_map(
	const struct tableset *t, uint32_t file, uint64_t start, uint64_t offset, struct unwind_map *ret)
{
	table_room_map(&t->room, unwind_files_get(&t->files, file), start, offset, ret);
}

uint32_t tableset_runtime(const struct tableset *t, uint32_t file, const struct unwind_map *m, uint64_t *bias)
{
	const struct tabfile *f = unwind_files_get(&t->files, file);

	if (!f || !f->runtime || UNWIND_TABLE_STATE(m->table) != UNWIND_TABLE)
		return 0;
	*bias = m->bias - f->vaddr;
	return f->runtime;
}

static void take_answer(struct tableset *t, const struct table_answer *a)
{
	struct tabfile *f = a->cookie < t->files.n ? &t->files.files[a->cookie] : NULL;

	if (!f || f->state != TABFILE_REQUESTED)
		return;
	install(t, f, a);
	if (f->state == TABFILE_READY || f->state == TABFILE_WAITING)
		table_source_keep(t->source, &f->key, a);
}

/* The files whose tables were requested get none. */
static void lose_worker(struct tableset *t)
{
	for (size_t i = 0; i < t->files.n; i++) {
		struct tabfile *f = &t->files.files[i];

		if (f->state != TABFILE_REQUESTED)
			continue;
		table_source_fail(t->source, NULL);
		unwind_files_change(&t->files, f, TABFILE_BARE);
	}
}

bool tableset_service(struct tableset *t, int timeout_ms)
{
	uint64_t end = now_ns() + (uint64_t)timeout_ms * 1000000u;
	struct table_answer a;
	int rc;

	do {
		uint64_t now = now_ns();
		int wait = !timeout_ms || now >= end || !table_source_pending(t->source)
				   ? 0
				   : (int)((end - now) / 1000000u) + 1;

		rc = table_source_next(t->source, wait, &a);
		if (rc > 0)
			take_answer(t, &a);
		else if (rc == -ECHILD)
			lose_worker(t);
	} while (rc > 0);
	return t->files.any_changed;
}

bool tableset_wanted(const struct tableset *t, uint32_t file)
{
	const struct tabfile *f = unwind_files_get(&t->files, file);

	return f && table_room_wanted(&t->room, f);
}

void tableset_applied(struct tableset *t)
{
	for (size_t i = 0; t->files.any_changed && i < t->files.n; i++)
		t->files.files[i].changed = false;
	t->files.any_changed = false;
}

bool tableset_changed(const struct tableset *t, uint32_t file)
{
	const struct tabfile *f = unwind_files_get(&t->files, file);

	return f && f->changed;
}

bool tableset_room(struct tableset *t, size_t len)
{
	return table_room_maps(&t->room, len);
}

void tableset_quiet(struct tableset *t)
{
	table_room_quiet(&t->room);
	for (size_t i = 0; i < t->files.n; i++) {
		struct tabfile *f = &t->files.files[i];

		if (table_room_waited(f)) {
			_cleanup_free_ uint8_t *bytes = TAKE_PTR(f->bytes);
			struct unwindtab tab;

			/* it was valid before */
			if (unwindtab_view(bytes, f->len, &tab, NULL) == 0)
				table_room_put(&t->room, f, &tab);
		} else {
			table_room_tidy(&t->room, f, t->idle_ns);
		}
	}
}

void tableset_stats(const struct tableset *t, struct tableset_stats *ret)
{
	*ret = (struct tableset_stats){
		.files = t->examined, .dropped = t->room.dropped, .pending = table_source_pending(t->source)
	};
	table_source_stats(t->source, &ret->source);
	unwindspace_stats(t->space, &ret->space);
}
