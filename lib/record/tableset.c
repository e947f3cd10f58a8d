/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tableset.h"
#include "buildid.h"
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
#define BUSY_NS UINT64_C(1000000000) /* a table that was used so recently is not dropped for another one */
#define WANTED_NS UINT64_C(2000000000) /* a walk that missed a table so lately asks for it again */
#define WANTS 64 /* dropped tables whose lack is watched, by the highest numbers of tables */
#define KEPT_BYTES (64u << 20)
#define WORTH_ROWS 500 /* smaller tables are compiled faster than read */

enum state { ASKED, READY, BARE, WAITING, DROPPED };

struct file {
	enum state state;
	bool changed;
	uint32_t refs;
	uint64_t idle_since_ns; /* when refs became 0 */
	struct tabcache_key key;
	uint32_t table, seg; /* READY */
	uint32_t
		want; /* DROPPED: a number of no table, by which BPF tells that it is missed; 0 = none left */
	uint16_t segs;
	uint8_t n_loads;
	uint64_t vaddr; /* of the first segment */
	struct unwindtab_load *loads;
	uint8_t *bytes; /* WAITING for memory: the table */
	size_t len;
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
	bool wants[WANTS]; /* which numbers are in use */
	struct kept *kept;
	size_t n_kept, cap_kept, kept_bytes;
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

int tableset_open(const struct tableset_opts *opts, struct tableset **ret, struct err *e)
{
	struct unwindspace_opts space = { .bytes = opts->bytes ? opts->bytes : default_bytes(),
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

/* A dropped file gets a number to be missed by, any other gives it back. */
static void watch_want(struct tableset *t, struct file *f, bool dropped)
{
	if (f->want)
		t->wants[UNWIND_TABLES_MAX - 1 - f->want] = false;
	f->want = 0;
	for (uint32_t i = 0; dropped && i < WANTS; i++) {
		if (!t->wants[i]) {
			t->wants[i] = true;
			f->want = UNWIND_TABLES_MAX - 1 - i;
			return;
		}
	}
}

static void change(struct tableset *t, struct file *f, enum state state)
{
	watch_want(t, f, state == DROPPED);
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

/* Of the tables in the kernel: one that nobody maps, else the one that was used longest ago. */
static struct file *least_used(struct tableset *t, uint64_t before_ns)
{
	struct file *least = NULL;
	uint64_t least_ns = before_ns;

	for (size_t i = 0; i < t->n; i++) {
		struct file *f = &t->files[i];
		uint64_t used = f->state != READY ? UINT64_MAX
				: f->refs         ? unwindspace_used_ns(t->space, f->table)
						  : 0;

		if (used < least_ns) {
			least = f;
			least_ns = used;
		}
	}
	return least;
}

/* Give up what was used least, LEN bytes of it or more; what was given up is not free before it is quiet. */
static bool make_room(struct tableset *t, size_t len)
{
	uint64_t before = now_ns() - BUSY_NS;
	struct unwindspace_stats was, is;
	struct file *f;

	unwindspace_stats(t->space, &was);
	is = was;
	while (was.bytes_used - is.bytes_used < len && (f = least_used(t, before))) {
		give_up(t, f, DROPPED);
		t->stats.dropped++;
		unwindspace_stats(t->space, &is);
	}
	return was.bytes_used - is.bytes_used >= len;
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
	rc = unwindspace_add(t->space, &tab, &f->table, &f->seg, &why);
	if (!rc) {
		keep_place(f, &tab);
		change(t, f, READY);
		return;
	}
	if (rc == -ENOSPC && f->state != WAITING && make_room(t, len)) {
		f->bytes = malloc(len);
		f->len = len;
		if (f->bytes) {
			memcpy(f->bytes, bytes, len);
			change(t, f, WAITING);
			return;
		}
	}
	t->stats.dropped++;
	change(t, f, DROPPED);
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

	f->state = ASKED;
	buildid_read(fd, &f->key.id);
	if (!from_cache(t, f) && tabworker_ask(t->worker, fd, (uint64_t)(f - t->files), &why) != 0)
		fail(t, f, why.msg);
}

static struct file *add_file(struct tableset *t)
{
	if (base_grow(&t->files, &t->cap, t->n + 1, sizeof(*t->files)) != 0)
		return NULL;
	t->stats.files++;
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

/* A file that was not seen before, or whose table was dropped a while ago. */
static void look_at(struct tableset *t, uint32_t file, uint32_t pid, const struct procmap *m)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	fd = mapfile_open(pid, m, &st);
	if (fd >= 0)
		ask(t, &t->files[file], fd);
	else
		fail(t, &t->files[file], "a mapped file could not be opened");
}

uint32_t tableset_file(struct tableset *t, uint32_t pid, const struct procmap *m)
{
	struct tabcache_key key = { 0 };
	struct stat st;
	uint64_t lo;
	uint32_t file;
	bool added;

	if (strcmp(m->path, "[vdso]") == 0) {
		file = vdso_file(t);
	} else {
		if (mapfile_is_pseudo(m->path) || !*m->path || mapfile_stat(pid, m, &st) != 0 ||
			!S_ISREG(st.st_mode))
			return TABLESET_NO_FILE;
		set_key(&key, &st);
		lo = key.mtime_ns ^ key.ctime_ns << 1 ^ key.size << 40;
		file = idmap_put(&t->by_key, key.dev << 48 ^ key.inode, lo, (uint32_t)t->n, &added);
		if (file == UINT32_MAX || (added && !add_file(t)))
			return TABLESET_NO_FILE;
		if (added)
			t->files[file].key = key;
		if (added || t->files[file].state == DROPPED)
			look_at(t, file, pid, m);
	}
	tableset_hold(t, file);
	return file;
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
		m.table = table_word(UNWIND_DROPPED, f->want);
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

bool tableset_service(struct tableset *t, int timeout_ms)
{
	uint64_t end = now_ns() + (uint64_t)timeout_ms * 1000000u;
	struct tabworker_answer a;
	int rc;

	do {
		uint64_t now = now_ns();
		int wait = !timeout_ms || now >= end || !tabworker_pending(t->worker)
				   ? 0
				   : (int)((end - now) / 1000000u) + 1;

		rc = tabworker_next(t->worker, wait, &a, NULL);
		if (rc > 0)
			take_answer(t, &a);
	} while (rc > 0);
	return t->any_changed;
}

bool tableset_wanted(const struct tableset *t, uint32_t file)
{
	const struct file *f = file < t->n ? &t->files[file] : NULL;

	return f && f->state == DROPPED && f->want &&
	       now_ns() - unwindspace_used_ns(t->space, f->want) < WANTED_NS;
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
	for (size_t i = 0; i < t->n; i++) {
		struct file *f = &t->files[i];

		if (f->state == WAITING) {
			_cleanup_free_ uint8_t *bytes = TAKE_PTR(f->bytes);

			install(t, f, bytes, f->len);
		} else if (f->state == READY && !f->refs && now - f->idle_since_ns > IDLE_NS) {
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
