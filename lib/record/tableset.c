/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/tableset.h"
#include "base/clock.h"
#include "base/intern.h"
#include "record/buildid.h"
#include "record/chunks.h"
#include "record/mapfile.h"
#include "record/tabfiles.h"
#include "record/tabroom.h"
#include "unwind/table.h"
#include "unwind/worker.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#define IDLE_NS UINT64_C(10000000000) /* how long a table that nobody maps is kept */
#define KEPT_BYTES (64u << 20)
#define WORTH_ROWS 500 /* smaller tables are compiled faster than read */

/* A table for the disk. Written at the end: a disk may keep its writers waiting. */
struct kept {
	struct tabcache_key key;
	uint8_t *bytes;
	size_t len;
};

struct tableset {
	struct opener *opener;
	struct mapfile_proof proofs[MAPFILE_PROOFS];
	struct unwindspace *space;
	struct tabworker *worker;
	struct tabcache *cache; /* NULL = none */
	struct tabfiles files;
	struct tabroom room;
	struct idmap refused; /* devices and inodes of files that may not even be looked at */
	bool worker_missing; /* none could be started just now, */
	bool worker_gone; /* or ever will be */
	struct kept *kept;
	size_t n_kept, cap_kept, kept_bytes;
	uint64_t idle_ns;
	uint32_t vdso;
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
		.procs_at_once = opts->raw,
		.first_chunks = opts->all ? 32 : 8,
		.opener = opts->opener };
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
	t->opener = opts->opener;
	t->vdso = TABLESET_NO_FILE;
	tabroom_init(&t->room, t->space, &t->files, space.bytes - UNWIND_CHUNK_BYTES);
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
	tabfiles_free(&t->files);
	idmap_free(&t->refused);
	free(t);
}

struct opener *tableset_opener(const struct tableset *t)
{
	return t->opener;
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

static void fail(struct tableset *t, struct tabfile *f, const char *why)
{
	t->stats.failed++;
	snprintf(t->stats.why, sizeof(t->stats.why), "%.255s", why);
	tabfiles_change(&t->files, f, TABFILE_BARE);
}

/* The table of F into the kernel; where there is no room it waits for what is given up for it. */
static void install(struct tableset *t, struct tabfile *f, const uint8_t *bytes, size_t len)
{
	struct unwindtab tab;
	struct err why;

	if (unwindtab_view(bytes, len, &tab, &why) != 0) {
		fail(t, f, why.msg);
		return;
	}
	if (!tab.head->n_segs) {
		t->stats.bare++;
		tabfiles_change(&t->files, f, TABFILE_BARE);
		return;
	}
	tabroom_put(&t->room, f, &tab);
}

/* The disk's copy of F's table, if there is a good one. */
static bool from_cache(struct tableset *t, struct tabfile *f)
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
static void ask(struct tableset *t, struct tabfile *f, int fd)
{
	struct err why;
	int rc;

	f->state = TABFILE_ASKED;
	buildid_read(fd, &f->key.id);
	if (from_cache(t, f))
		return;
	rc = tabworker_ask(t->worker, fd, (uint64_t)(f - t->files.files), &why);
	if (rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM)
		tabroom_refuse(&t->room, f);
	else if (rc)
		fail(t, f, why.msg);
}

/* The image in our own memory is every 64-bit process's. */
static uint32_t vdso_file(struct tableset *t)
{
	_cleanup_close_ int fd = -1;
	struct tabfile *f;
	size_t len;
	const uint8_t *image;

	if (t->vdso != TABLESET_NO_FILE)
		return t->vdso;
	image = mapfile_vdso(&len);
	fd = image ? memfd_create("vdso", MFD_CLOEXEC) : -1;
	if (fd < 0 || write(fd, image, len) != (ssize_t)len)
		return TABLESET_NO_FILE;
	t->vdso = tabfiles_add_nameless(&t->files);
	f = tabfiles_get(&t->files, t->vdso);
	if (!f)
		return TABLESET_NO_FILE;
	t->stats.files++;
	ask(t, f, fd);
	f->key.id.len = 0; /* its time is that of the memfd: never to be found again in the cache */
	return t->vdso;
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
	struct tabcache_key key;
	struct tabfile *f;
	struct stat st;
	uint32_t file;
	bool added;

	fd = mapfile_open(t->opener, pid, m, &st);
	if (fd < 0) {
		count_refused(t, m, fd);
		return TABLESET_NO_FILE;
	}
	key = tabfiles_key(&st);
	file = tabfiles_find(&t->files, &key);
	added = file == TABLESET_NO_FILE;
	if (added)
		file = tabfiles_add(&t->files, &key);
	f = tabfiles_get(&t->files, file);
	if (!f)
		return TABLESET_NO_FILE;
	t->stats.files += added;
	if (added || tabroom_may_ask(f))
		ask(t, f, fd);
	return file;
}

/* The file of status ST, which process PID maps as M. */
static uint32_t file_of(struct tableset *t, uint32_t pid, const struct procmap *m, const struct stat *st)
{
	struct tabcache_key key;
	uint32_t file;

	if (!S_ISREG(st->st_mode))
		return TABLESET_NO_FILE;
	key = tabfiles_key(st);
	file = tabfiles_find(&t->files, &key);
	if (file == TABLESET_NO_FILE || tabroom_may_ask(tabfiles_get(&t->files, file)))
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
		rc = mapfile_stat(t->opener, pid, m, &st);
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
	if (mapfile_stat_then(t->opener, t->proofs, pid, m, made_ns, &st) != 0)
		return false;
	*file = file_of(t, pid, m, &st);
	tableset_hold(t, *file);
	return true;
}

void tableset_hold(struct tableset *t, uint32_t file)
{
	struct tabfile *f = tabfiles_get(&t->files, file);

	if (f)
		f->refs++;
}

void tableset_release(struct tableset *t, uint32_t file)
{
	struct tabfile *f = tabfiles_get(&t->files, file);

	if (f && --f->refs == 0)
		f->idle_since_ns = now_ns();
}

void tableset_map(
	const struct tableset *t, uint32_t file, uint64_t start, uint64_t offset, struct unwind_map *ret)
{
	tabroom_map(&t->room, tabfiles_get(&t->files, file), start, offset, ret);
}

/* Remember a table for the disk; what is beyond KEPT_BYTES is compiled again another time. */
static void keep(struct tableset *t, const struct tabfile *f, const struct tabworker_answer *a)
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
	struct tabfile *f = a->cookie < t->files.n ? &t->files.files[a->cookie] : NULL;
	struct unwindtab tab;

	if (!f || f->state != TABFILE_ASKED)
		return;
	if (a->error) {
		/* what is no ELF file has no table; that is no failure */
		if (a->error == -EINVAL || a->error == -EOPNOTSUPP) {
			t->stats.bare++;
			tabfiles_change(&t->files, f, TABFILE_BARE);
		} else {
			fail(t, f, a->why);
		}
		return;
	}
	install(t, f, a->bytes, a->len);
	if (t->cache && f->key.id.len && (f->state == TABFILE_READY || f->state == TABFILE_WAITING) &&
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
	for (size_t i = 0; i < t->files.n; i++)
		if (t->files.files[i].state == TABFILE_ASKED)
			fail(t, &t->files.files[i], why->msg);
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
	return t->files.any_changed;
}

bool tableset_wanted(const struct tableset *t, uint32_t file)
{
	const struct tabfile *f = tabfiles_get(&t->files, file);

	return f && tabroom_wanted(&t->room, f);
}

void tableset_applied(struct tableset *t)
{
	for (size_t i = 0; t->files.any_changed && i < t->files.n; i++)
		t->files.files[i].changed = false;
	t->files.any_changed = false;
}

bool tableset_changed(const struct tableset *t, uint32_t file)
{
	const struct tabfile *f = tabfiles_get(&t->files, file);

	return f && f->changed;
}

bool tableset_room(struct tableset *t, size_t len)
{
	return tabroom_maps(&t->room, len);
}

void tableset_quiet(struct tableset *t)
{
	tabroom_quiet(&t->room);
	for (size_t i = 0; i < t->files.n; i++) {
		struct tabfile *f = &t->files.files[i];

		if (tabroom_waited(f)) {
			_cleanup_free_ uint8_t *bytes = TAKE_PTR(f->bytes);

			install(t, f, bytes, f->len);
		} else {
			tabroom_tidy(&t->room, f, t->idle_ns);
		}
	}
}

void tableset_stats(const struct tableset *t, struct tableset_stats *ret)
{
	*ret = t->stats;
	ret->dropped = t->room.dropped;
	ret->pending = tabworker_pending(t->worker);
	unwindspace_stats(t->space, &ret->space);
}
