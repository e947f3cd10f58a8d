/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tableset.h"
#include "buildid.h"
#include "chunks.h"
#include "idmap.h"
#include "mapfile.h"
#include "now.h"
#include "tabcache.h"
#include "tabworker.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#define IDLE_NS UINT64_C(10000000000) /* how long a table that nobody maps is kept */
#define BUSY_NS                                                                                              \
	UINT64_C(5000000000) /* a table that was used so recently is not dropped: no two take turns          \
			      */
#define WANTED_NS UINT64_C(2000000000) /* a walk that missed a table so lately asks for it again */
#define REFUSED_MOST 6 /* each refusal doubles the time to the next try, from WANTED_NS up to a minute */
#define WANTS 1024 /* dropped tables are missed by the highest numbers of tables, which they may share */
#define MAPS_SHARE                                                                                           \
	8 /* tables leave an eighth of the memory to mappings: without these they are of no use              \
	   */
#define WAIT_QUIETS 2 /* what was given up is free after so many, */
#define WAIT_ROUNDS 3 /* and perhaps in pieces too small: more is given up so often */
#define KEPT_BYTES (64u << 20)
#define WORTH_ROWS 500 /* smaller tables are compiled faster than read */

enum state { ASKED, READY, BARE, WAITING, DROPPED };

struct file {
	enum state state;
	bool changed;
	uint8_t quiets, rounds; /* WAITING: since the last make_room(), and how many of these */
	uint8_t refused; /* how often there was no room for it, in a row */
	uint32_t refs;
	uint32_t next; /* another file with the same hash, NO_FILE = none */
	uint64_t idle_since_ns; /* when refs became 0 */
	uint64_t again_ns; /* DROPPED: not to be asked for before; UINT64_MAX = it never fits */
	struct tabcache_key key;
	uint32_t table, seg; /* READY */
	uint16_t segs;
	uint8_t n_loads;
	uint64_t vaddr; /* of the first segment */
	struct unwindtab_load *loads;
	uint8_t *bytes; /* WAITING for memory: the table */
	size_t len; /* WAITING, READY: of the table */
};

/* A table for the disk. Written at the end: a disk may keep its writers waiting. */
struct kept {
	struct tabcache_key key;
	uint8_t *bytes;
	size_t len;
};

struct tableset {
	struct unwindspace *space;
	struct tabworker *worker;
	struct tabcache *cache; /* NULL = none */
	struct file *files;
	size_t n, cap;
	struct idmap by_key;
	struct idmap refused; /* devices and inodes of files that may not even be looked at */
	bool worker_missing; /* none could be started just now, */
	bool worker_gone; /* or ever will be */
	struct kept *kept;
	size_t n_kept, cap_kept, kept_bytes;
	uint64_t idle_ns;
	uint64_t table_bytes; /* used by tables and mappings, beyond which no table is added */
	uint64_t maps_asked, maps_given; /* for tableset_room(): not free yet */
	unsigned int maps_quiets; /* since that began */
	uint32_t vdso;
	bool any_changed;
	struct tableset_stats stats;
};

static uint64_t default_bytes(void)
{
	struct sysinfo si;
	uint64_t all = UINT64_C(4) << 30;

	if (sysinfo(&si) == 0)
		all = (uint64_t)si.totalram * si.mem_unit;
	return MIN(all / 16, UINT64_C(512) << 20);
}

/* The kernel's header of each chunk counts, chunk 0 takes no memory. */
static uint64_t chunk_bytes(uint64_t bound)
{
	return (bound / (UNWIND_CHUNK_BYTES + CHUNKS_MAP_HEADER) + 1) * UNWIND_CHUNK_BYTES;
}

int tableset_open(const struct tableset_opts *opts, struct tableset **ret, struct err *e)
{
	struct unwindspace_opts space = { .bytes = chunk_bytes(opts->bytes ? opts->bytes : default_bytes()),
		.segs = opts->all ? 0 : 16384,
		.procs = opts->all ? 32768 : 8192,
		.first_chunks = opts->all ? 32 : 8 };
	struct tableset *t = calloc(1, sizeof(*t));
	int rc = t ? 0 : err_nomem(e, "the unwind tables");

	if (!rc)
		rc = tabworker_open(&(struct tabworker_opts){ 0 }, &t->worker, e);
	if (!rc)
		rc = unwindspace_open(&space, &t->space, e);
	if (rc) {
		tableset_close(t);
		return rc;
	}
	t->vdso = TABLESET_NO_FILE;
	t->table_bytes = space.bytes - UNWIND_CHUNK_BYTES;
	t->table_bytes -= t->table_bytes / MAPS_SHARE;
	t->idle_ns = opts->idle_ns ? opts->idle_ns : IDLE_NS;
	/* without one, tables are compiled each time */
	tabcache_open(TABCACHE_BYTES_DEFAULT, &t->cache, NULL);
	*ret = t;
	return 0;
}

void tableset_close(struct tableset *t)
{
	if (!t)
		return;
	tabworker_close(t->worker);
	unwindspace_close(t->space);
	for (size_t i = 0; i < t->n_kept; i++) {
		tabcache_put(t->cache, &t->kept[i].key, t->kept[i].bytes, t->kept[i].len, NULL);
		free(t->kept[i].bytes);
	}
	free(t->kept);
	tabcache_close(t->cache);
	for (size_t i = 0; i < t->n; i++) {
		free(t->files[i].loads);
		free(t->files[i].bytes);
	}
	free(t->files);
	idmap_free(&t->by_key);
	idmap_free(&t->refused);
	free(t);
}

struct unwindspace *tableset_space(struct tableset *t)
{
	return t->space;
}

int tableset_fd(const struct tableset *t)
{
	return tabworker_fd(t->worker);
}

uint32_t tableset_worker(const struct tableset *t)
{
	return (uint32_t)tabworker_pid(t->worker);
}

/* A number of no table, by which BPF tells that dropped file F is missed. */
static uint32_t want_of(const struct tableset *t, const struct file *f)
{
	return UNWIND_TABLES_MAX - 1 - (uint32_t)(f - t->files) % WANTS;
}

static void change(struct tableset *t, struct file *f, enum state state)
{
	f->state = state;
	f->changed = true;
	t->any_changed = true;
}

static void fail(struct tableset *t, struct file *f, const char *why)
{
	t->stats.failed++;
	snprintf(t->stats.why, sizeof(t->stats.why), "%.255s", why);
	change(t, f, BARE);
}

static void give_up(struct tableset *t, struct file *f, enum state state)
{
	unwindspace_remove(t->space, f->table);
	free(f->loads);
	f->loads = NULL;
	change(t, f, state);
}

/* No room for the table of F: it is asked for again when it is missed, ever later. */
static void refuse(struct tableset *t, struct file *f)
{
	f->again_ns = now_ns() + (WANTED_NS << MIN(f->refused, REFUSED_MOST - 1));
	if (f->refused < REFUSED_MOST)
		f->refused++;
	t->stats.dropped++;
	change(t, f, DROPPED);
}

/* When F was last used, if it is in the kernel and may be given up; 0 = nobody maps it. */
static uint64_t used_ns(const struct tableset *t, const struct file *f)
{
	if (f->state != READY)
		return UINT64_MAX;
	return f->refs ? unwindspace_used_ns(t->space, f->table) : 0;
}

/* Of the tables in the kernel: one that nobody maps, else the one that was used longest ago. */
static struct file *least_used(struct tableset *t, uint64_t before_ns)
{
	struct file *least = NULL;
	uint64_t least_ns = before_ns;

	for (size_t i = 0; i < t->n; i++) {
		struct file *f = &t->files[i];
		uint64_t used = used_ns(t, f);

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
static bool make_room(struct tableset *t, size_t len)
{
	uint64_t before = now_ns() - BUSY_NS;
	size_t there = 0;
	struct file *f;

	for (size_t i = 0; i < t->n && there < len; i++)
		there += used_ns(t, &t->files[i]) < before ? t->files[i].len : 0;
	if (there < len)
		return false;
	for (size_t given = 0; given < len && (f = least_used(t, before)); given += f->len) {
		f->again_ns = now_ns() + WANTED_NS;
		give_up(t, f, DROPPED);
		t->stats.dropped++;
	}
	return true;
}

/* Many processes ask at the same time, each for little: one table does for all of them. */
bool tableset_room(struct tableset *t, size_t len)
{
	const size_t step = MAX(len, (size_t)UNWIND_CHUNK_BYTES / 8);

	if (t->maps_asked + len > t->maps_given) {
		if (!make_room(t, step))
			return false;
		t->maps_given += step;
	}
	t->maps_asked += len;
	return true;
}

static void keep_place(struct file *f, const struct unwindtab *tab)
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
static bool wait_for_room(struct tableset *t, struct file *f, const uint8_t *bytes, size_t len)
{
	uint8_t rounds = f->state == WAITING ? f->rounds : 0;

	/* more each time: the pieces may have been too small */
	if (rounds == WAIT_ROUNDS || !make_room(t, len << rounds))
		return false;
	f->bytes = malloc(len);
	if (!f->bytes)
		return false;
	memcpy(f->bytes, bytes, len);
	f->len = len;
	f->quiets = 0;
	f->rounds = rounds + 1;
	change(t, f, WAITING);
	return true;
}

/* As unwindspace_add(), but not into what is left to mappings. */
static int add_table(struct tableset *t, struct file *f, const struct unwindtab *tab, size_t len)
{
	struct unwindspace_stats st;

	if (len > t->table_bytes)
		return -E2BIG;
	unwindspace_stats(t->space, &st);
	if (st.bytes_used + len > t->table_bytes)
		return -ENOSPC;
	return unwindspace_add(t->space, tab, &f->table, &f->seg, NULL);
}

/* The table of F into the kernel; where there is no room it waits for what is given up for it. */
static void install(struct tableset *t, struct file *f, const uint8_t *bytes, size_t len)
{
	struct unwindtab tab;
	struct err why;
	int rc = unwindtab_view(bytes, len, &tab, &why);

	if (rc) {
		fail(t, f, why.msg);
		return;
	}
	if (!tab.head->n_segs) {
		t->stats.bare++;
		change(t, f, BARE);
		return;
	}
	rc = add_table(t, f, &tab, len);
	if (!rc) {
		keep_place(f, &tab);
		f->len = len;
		f->refused = 0;
		change(t, f, READY);
		return;
	}
	if (rc == -ENOSPC && wait_for_room(t, f, bytes, len))
		return;
	refuse(t, f);
	if (rc == -E2BIG)
		f->again_ns = UINT64_MAX;
}

/* The disk's copy of F's table, if there is a good one. */
static bool from_cache(struct tableset *t, struct file *f)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t len;

	if (!t->cache || !f->key.id.len || tabcache_get(t->cache, &f->key, &bytes, &len, NULL) != 0)
		return false;
	t->stats.cached++;
	install(t, f, bytes, len);
	return true;
}

/* Take the table of F from the cache, else ask the worker for it; FD stays the caller's. */
static void ask(struct tableset *t, struct file *f, int fd)
{
	struct err why;
	int rc;

	f->state = ASKED;
	buildid_read(fd, &f->key.id);
	if (from_cache(t, f))
		return;
	rc = tabworker_ask(t->worker, fd, (uint64_t)(f - t->files), &why);
	if (rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM)
		refuse(t, f);
	else if (rc)
		fail(t, f, why.msg);
}

static struct file *add_file(struct tableset *t)
{
	if (base_grow(&t->files, &t->cap, t->n + 1, sizeof(*t->files)) != 0)
		return NULL;
	t->stats.files++;
	t->files[t->n].next = TABLESET_NO_FILE;
	return &t->files[t->n++];
}

static void set_key(struct tabcache_key *key, const struct stat *st)
{
	key->dev = st->st_dev;
	key->inode = st->st_ino;
	key->size = (uint64_t)st->st_size;
	key->mtime_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;
	key->ctime_ns = (uint64_t)st->st_ctim.tv_sec * 1000000000u + (uint64_t)st->st_ctim.tv_nsec;
}

/* The image in our own memory is every 64-bit process's. */
static uint32_t vdso_file(struct tableset *t)
{
	_cleanup_close_ int fd = -1;
	struct file *f;
	size_t len;
	const uint8_t *image;

	if (t->vdso != TABLESET_NO_FILE)
		return t->vdso;
	image = mapfile_vdso(&len);
	fd = image ? memfd_create("vdso", MFD_CLOEXEC) : -1;
	if (fd < 0 || write(fd, image, len) != (ssize_t)len)
		return TABLESET_NO_FILE;
	f = add_file(t);
	if (!f)
		return TABLESET_NO_FILE;
	t->vdso = (uint32_t)(f - t->files);
	ask(t, f, fd);
	f->key.id.len = 0; /* its time is that of the memfd: never to be found again in the cache */
	return t->vdso;
}

static bool same_file(const struct tabcache_key *a, const struct tabcache_key *b)
{
	return a->dev == b->dev && a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns &&
	       a->ctime_ns == b->ctime_ns;
}

/* Whoever owns a file chooses its size and times, and can make hashes meet: all of the key is compared. */
static struct idmap_slot *slot_of(const struct tableset *t, const struct tabcache_key *key)
{
	return idmap_find(&t->by_key, key->dev << 48 ^ key->inode,
		key->mtime_ns ^ key->ctime_ns << 1 ^ key->size << 40);
}

static uint32_t find_file(const struct tableset *t, const struct tabcache_key *key)
{
	const struct idmap_slot *slot = slot_of(t, key);
	uint32_t file = slot ? slot->value : TABLESET_NO_FILE;

	while (file != TABLESET_NO_FILE && !same_file(&t->files[file].key, key))
		file = t->files[file].next;
	return file;
}

static uint32_t new_file(struct tableset *t, const struct tabcache_key *key)
{
	struct idmap_slot *slot;
	struct file *f;
	uint32_t file = (uint32_t)t->n;

	/* first what may fail: a slot without its file would become another one's */
	if (base_grow(&t->files, &t->cap, t->n + 1, sizeof(*t->files)) != 0)
		return TABLESET_NO_FILE;
	slot = slot_of(t, key);
	if (!slot && idmap_put(&t->by_key, key->dev << 48 ^ key->inode,
			     key->mtime_ns ^ key->ctime_ns << 1 ^ key->size << 40, file, NULL) != file)
		return TABLESET_NO_FILE;
	f = add_file(t);
	f->key = *key;
	if (slot) {
		f->next = slot->value;
		slot->value = file;
	}
	return file;
}

/* The table was given up, and may be there again. */
static bool may_ask(const struct file *f)
{
	return f->state == DROPPED && now_ns() >= f->again_ns;
}

/* What may not be looked at has no table; each file is counted once. */
static void count_refused(struct tableset *t, const struct procmap *m, int code)
{
	bool added = false;

	/* the mapping, or the process, is gone */
	if (code == -ENOENT || code == -ESRCH)
		return;
	idmap_put(&t->refused, (uint64_t)m->dev_major << 32 | m->dev_minor, m->inode, 0, &added);
	if (!added)
		return;
	t->stats.files++;
	t->stats.failed++;
	snprintf(
		t->stats.why, sizeof(t->stats.why), "a mapped file could not be opened: %s", strerror(-code));
}

/*
 * A file that was not seen before, or whose table was dropped a while ago.
 * Its identity is that of what was opened: the process may have mapped
 * another file meanwhile, whose table must not count as this one's.
 */
static uint32_t look_at(struct tableset *t, uint32_t pid, const struct procmap *m)
{
	_cleanup_close_ int fd = -1;
	struct tabcache_key key = { 0 };
	struct stat st;
	uint32_t file;
	bool added;

	fd = mapfile_open(pid, m, &st);
	if (fd < 0) {
		count_refused(t, m, fd);
		return TABLESET_NO_FILE;
	}
	set_key(&key, &st);
	file = find_file(t, &key);
	added = file == TABLESET_NO_FILE;
	if (added)
		file = new_file(t, &key);
	if (file != TABLESET_NO_FILE && (added || may_ask(&t->files[file])))
		ask(t, &t->files[file], fd);
	return file;
}

/* The file of status ST, which process PID maps as M. */
static uint32_t file_of(struct tableset *t, uint32_t pid, const struct procmap *m, const struct stat *st)
{
	struct tabcache_key key = { 0 };
	uint32_t file;

	if (!S_ISREG(st->st_mode))
		return TABLESET_NO_FILE;
	set_key(&key, st);
	file = find_file(t, &key);
	if (file == TABLESET_NO_FILE || may_ask(&t->files[file]))
		file = look_at(t, pid, m);
	return file;
}

uint32_t tableset_file(struct tableset *t, uint32_t pid, const struct procmap *m)
{
	uint32_t file = TABLESET_NO_FILE;
	struct stat st;
	int rc;

	if (strcmp(m->path, "[vdso]") == 0) {
		file = vdso_file(t);
	} else if (!mapfile_is_pseudo(m->path)) {
		rc = mapfile_stat(pid, m, &st);
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
	if (mapfile_stat_then(pid, m, made_ns, &st) != 0)
		return false;
	*file = file_of(t, pid, m, &st);
	tableset_hold(t, *file);
	return true;
}

void tableset_hold(struct tableset *t, uint32_t file)
{
	if (file < t->n)
		t->files[file].refs++;
}

void tableset_release(struct tableset *t, uint32_t file)
{
	if (file < t->n && --t->files[file].refs == 0)
		t->files[file].idle_since_ns = now_ns();
}

static uint16_t table_word(enum unwind_state state, uint32_t table)
{
	return (uint16_t)((unsigned int)state << 14 | table);
}

void tableset_map(
	const struct tableset *t, uint32_t file, uint64_t start, uint64_t offset, struct unwind_map *ret)
{
	const struct file *f = file < t->n ? &t->files[file] : NULL;
	struct unwind_map m = { 0 };

	m.table = table_word(UNWIND_BY_FP, 0);
	if (f && f->state == ASKED)
		m.table = table_word(UNWIND_PENDING, 0);
	else if (f && (f->state == WAITING || f->state == DROPPED))
		m.table = table_word(UNWIND_DROPPED, want_of(t, f));
	for (size_t i = 0; f && f->state == READY && i < f->n_loads; i++) {
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

/* Remember a table for the disk; what is beyond KEPT_BYTES is compiled again another time. */
static void keep(struct tableset *t, const struct file *f, const struct tabworker_answer *a)
{
	struct kept *k;

	if (t->kept_bytes + a->len > KEPT_BYTES ||
		base_grow(&t->kept, &t->cap_kept, t->n_kept + 1, sizeof(*t->kept)) != 0)
		return;
	k = &t->kept[t->n_kept];
	*k = (struct kept){ .key = f->key, .bytes = malloc(a->len), .len = a->len };
	if (!k->bytes)
		return;
	memcpy(k->bytes, a->bytes, a->len);
	t->kept_bytes += a->len;
	t->n_kept++;
}

static void take_answer(struct tableset *t, const struct tabworker_answer *a)
{
	struct file *f = a->cookie < t->n ? &t->files[a->cookie] : NULL;
	struct unwindtab tab;

	if (!f || f->state != ASKED)
		return;
	if (a->error) {
		/* what is no ELF file has no table; that is no failure */
		if (a->error == -EINVAL || a->error == -EOPNOTSUPP) {
			t->stats.bare++;
			change(t, f, BARE);
		} else {
			fail(t, f, a->why);
		}
		return;
	}
	install(t, f, a->bytes, a->len);
	if (t->cache && f->key.id.len && (f->state == READY || f->state == WAITING) &&
		unwindtab_view(a->bytes, a->len, &tab, NULL) == 0 && tab.head->n_rows >= WORTH_ROWS)
		keep(t, f, a);
}

/*
 * No worker could be started. Where that is for good the files that were to be
 * compiled have no tables; else it is tried again with the next call.
 */
static void miss_worker(struct tableset *t, const struct err *why)
{
	if (t->worker_gone)
		return;
	t->stats.worker_lost += !t->worker_missing;
	t->worker_missing = true;
	snprintf(t->stats.worker_why, sizeof(t->stats.worker_why), "%.255s", why->msg);
	if (!tabworker_over(t->worker))
		return;
	t->worker_gone = true;
	for (size_t i = 0; i < t->n; i++)
		if (t->files[i].state == ASKED)
			fail(t, &t->files[i], why->msg);
}

bool tableset_service(struct tableset *t, int timeout_ms)
{
	uint64_t end = now_ns() + (uint64_t)timeout_ms * 1000000u;
	struct tabworker_answer a;
	struct err why = { 0 };
	int rc;

	do {
		uint64_t now = now_ns();
		int wait = !timeout_ms || now >= end || !tabworker_pending(t->worker)
				   ? 0
				   : (int)((end - now) / 1000000u) + 1;

		rc = tabworker_next(t->worker, wait, &a, &why);
		t->worker_missing = t->worker_missing && rc <= 0;
		if (rc > 0)
			take_answer(t, &a);
		else if (rc < 0)
			miss_worker(t, &why);
	} while (rc > 0);
	return t->any_changed;
}

bool tableset_wanted(const struct tableset *t, uint32_t file)
{
	const struct file *f = file < t->n ? &t->files[file] : NULL;

	return f && may_ask(f) && now_ns() - unwindspace_used_ns(t->space, want_of(t, f)) < WANTED_NS;
}

void tableset_applied(struct tableset *t)
{
	for (size_t i = 0; t->any_changed && i < t->n; i++)
		t->files[i].changed = false;
	t->any_changed = false;
}

bool tableset_changed(const struct tableset *t, uint32_t file)
{
	return file < t->n && t->files[file].changed;
}

void tableset_quiet(struct tableset *t)
{
	uint64_t now = now_ns();

	unwindspace_quiet(t->space);
	if (t->maps_given && ++t->maps_quiets >= WAIT_QUIETS) {
		t->maps_asked = t->maps_given = 0;
		t->maps_quiets = 0;
	}
	for (size_t i = 0; i < t->n; i++) {
		struct file *f = &t->files[i];

		if (f->state == WAITING && ++f->quiets >= WAIT_QUIETS) {
			_cleanup_free_ uint8_t *bytes = TAKE_PTR(f->bytes);

			install(t, f, bytes, f->len);
		} else if (f->state == READY && !f->refs && now - f->idle_since_ns > t->idle_ns) {
			f->again_ns = 0;
			give_up(t, f, DROPPED);
		}
	}
}

void tableset_stats(const struct tableset *t, struct tableset_stats *ret)
{
	*ret = t->stats;
	ret->pending = tabworker_pending(t->worker);
	unwindspace_stats(t->space, &ret->space);
}
