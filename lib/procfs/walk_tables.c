/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/walk_tables.h"
#include "base/clock.h"
#include "record/files.h"
#include "unwind/table.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define BYTES_DEFAULT (UINT64_C(512) << 20)
#define SECONDS_DEFAULT 5
#define WORTH_ROWS 500 /* smaller tables are compiled faster than read */

struct walktable {
	struct table_cache_key key; /* all zero = it has none */
	enum snapwalk_code state; /* TABLE, NO_TABLE, NOT_READY or DROPPED */
	bool fresh; /* the worker has made it */
	uint8_t *bytes; /* if state is TABLE; `tab` points into it */
	struct unwindtab tab;
};

struct walktables {
	struct table_worker *worker;
	struct table_cache *cache; /* NULL = none */
	struct walktable *tables;
	size_t n, cap;
	uint64_t bytes_max;
	uint32_t vdso; /* WALKTABLES_NONE = not requested yet */
	bool worker_missing; /* the last attempt to start one failed, */
	bool worker_gone; /* and no other will be made */
	struct walktables_stats stats;
};

int walktables_open(const struct walktables_opts *opts, struct walktables **ret, struct err *e)
{
	const struct table_worker_opts worker = { .seconds =
							  opts->seconds ? opts->seconds : SECONDS_DEFAULT };
	struct walktables *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return err_nomem(e, "unwind tables");
	t->vdso = WALKTABLES_NONE;
	t->bytes_max = opts->bytes ? opts->bytes : BYTES_DEFAULT;
	rc = opts->compile ? table_worker_open_with(&worker, opts->compile, &t->worker, e)
			   : table_worker_open(&worker, &t->worker, e);
	if (rc) {
		free(t);
		return rc;
	}
	/* without a cache, tables are compiled each time */
	table_cache_open(TABLE_CACHE_BYTES_DEFAULT, &t->cache, NULL);
	*ret = t;
	return 0;
}

/* Called at the end, because writing to a disk may take long. */
static void keep(struct walktables *t, const struct walktable *f)
{
	if (t->cache && f->fresh && f->key.id.len && f->tab.head->n_rows >= WORTH_ROWS)
		table_cache_put(t->cache, &f->key, f->bytes, f->tab.head->bytes, NULL);
}

void walktables_close(struct walktables *t)
{
	if (!t)
		return;
	table_worker_close(t->worker);
	for (size_t i = 0; i < t->n; i++) {
		keep(t, &t->tables[i]);
		free(t->tables[i].bytes);
	}
	table_cache_close(t->cache);
	free(t->tables);
	free(t);
}

pid_t walktables_worker(const struct walktables *t)
{
	return t ? table_worker_pid(t->worker) : 0;
}

uint32_t walktables_find(const struct walktables *t, const struct stat *st)
{
	const struct table_cache_key key = table_cache_key_of(st);

	for (size_t i = 0; i < t->n; i++)
		if (table_cache_same_file(&t->tables[i].key, &key))
			return (uint32_t)i;
	return WALKTABLES_NONE;
}

static void fail(struct walktables *t, struct walktable *f, const char *why)
{
	f->state = SNAPWALK_NO_TABLE;
	t->stats.failed++;
	snprintf(t->stats.why, sizeof(t->stats.why), "%.255s", why);
}

/* Use BYTES, which F owns from now on, as its table if they are valid. */
static void install(struct walktables *t, struct walktable *f, uint8_t *bytes, size_t len)
{
	_cleanup_free_ uint8_t *own = bytes;
	struct err why;

	if (unwindtab_view(bytes, len, &f->tab, &why) != 0) {
		fail(t, f, why.msg);
	} else if (!f->tab.head->n_segs) {
		f->state = SNAPWALK_NO_TABLE;
		t->stats.bare++;
	} else if (len > t->bytes_max - t->stats.bytes) {
		f->state = SNAPWALK_DROPPED;
		t->stats.dropped++;
	} else {
		f->state = SNAPWALK_TABLE;
		f->bytes = TAKE_PTR(own);
		t->stats.bytes += len;
		t->stats.rows += f->tab.head->n_rows;
	}
}

static void ask(struct walktables *t, struct walktable *f, int fd)
{
	uint8_t *bytes;
	size_t len;
	struct err why;

	buildid_read(fd, &f->key.id);
	if (t->cache && f->key.id.len && table_cache_get(t->cache, &f->key, &bytes, &len, NULL) == 0) {
		t->stats.cached++;
		install(t, f, bytes, len);
		return;
	}
	f->state = SNAPWALK_NOT_READY;
	if (table_worker_ask(t->worker, fd, (uint64_t)(f - t->tables), &why) != 0)
		fail(t, f, why.msg);
}

uint32_t walktables_add(struct walktables *t, const struct stat *st, int fd)
{
	struct walktable *f;

	if (base_grow(&t->tables, &t->cap, t->n + 1, sizeof(*t->tables)) != 0)
		return WALKTABLES_NONE;
	f = &t->tables[t->n++];
	*f = (struct walktable){ 0 };
	if (st)
		f->key = table_cache_key_of(st);
	t->stats.files++;
	ask(t, f, fd);
	/* a file without an identity is not put into the cache */
	if (!st)
		f->key.id.len = 0;
	return (uint32_t)(t->n - 1);
}

uint32_t walktables_vdso(struct walktables *t)
{
	_cleanup_close_ int fd = -1;
	const uint8_t *image;
	size_t len;

	if (t->vdso != WALKTABLES_NONE)
		return t->vdso;
	image = mapfile_vdso(&len);
	fd = image ? memfd_create("vdso", MFD_CLOEXEC) : -1;
	if (fd >= 0 && write(fd, image, len) == (ssize_t)len)
		t->vdso = walktables_add(t, NULL, fd);
	return t->vdso;
}

void walktables_miss(struct walktables *t, int code)
{
	t->stats.files++;
	t->stats.failed++;
	snprintf(
		t->stats.why, sizeof(t->stats.why), "a mapped file could not be opened: %s", strerror(-code));
}

static void take_answer(struct walktables *t, const struct table_worker_answer *a)
{
	struct walktable *f = a->cookie < t->n ? &t->tables[a->cookie] : NULL;
	uint8_t *bytes;

	if (!f || f->state != SNAPWALK_NOT_READY)
		return;
	/* a file that is not ELF has no table; that is not a failure */
	if (a->error == -EINVAL || a->error == -EOPNOTSUPP) {
		f->state = SNAPWALK_NO_TABLE;
		t->stats.bare++;
		return;
	}
	bytes = a->error ? NULL : malloc(a->len);
	if (!bytes) {
		fail(t, f, a->error ? a->why : strerror(ENOMEM));
		return;
	}
	memcpy(bytes, a->bytes, a->len);
	f->fresh = true;
	install(t, f, bytes, a->len);
}

/* No worker could be started. If that is final, no file waits for its table any more. */
static void miss_worker(struct walktables *t, const struct err *why)
{
	if (t->worker_gone)
		return;
	t->stats.worker_lost += !t->worker_missing;
	t->worker_missing = true;
	snprintf(t->stats.worker_why, sizeof(t->stats.worker_why), "%.255s", why->msg);
	if (!table_worker_over(t->worker))
		return;
	t->worker_gone = true;
	for (size_t i = 0; i < t->n; i++)
		if (t->tables[i].state == SNAPWALK_NOT_READY)
			fail(t, &t->tables[i], why->msg);
}

/* Receive answers until the table of FILE is there or *WAIT_NS have passed. */
static void await(struct walktables *t, uint32_t file, uint64_t *wait_ns)
{
	struct table_worker_answer a;
	struct err why = { 0 };
	int rc;

	do {
		uint64_t began = now_ns(), spent;

		rc = table_worker_next(t->worker, (int)(*wait_ns / 1000000), &a, &why);
		t->worker_missing = t->worker_missing && rc <= 0;
		if (rc > 0)
			take_answer(t, &a);
		else if (rc < 0)
			miss_worker(t, &why);
		spent = now_ns() - began;
		*wait_ns -= MIN(*wait_ns, spent);
		/* 0: a signal, or the time is over */
	} while (t->tables[file].state == SNAPWALK_NOT_READY && (rc > 0 || (!rc && *wait_ns >= 1000000)));
}

enum snapwalk_code walktables_rule(struct walktables *t, uint32_t file, uint64_t offset, uint64_t *wait_ns,
	const struct unwind_rule **rule)
{
	const struct walktable *f;
	uint64_t vaddr;

	if (file >= t->n)
		return SNAPWALK_NO_TABLE;
	if (t->tables[file].state == SNAPWALK_NOT_READY)
		await(t, file, wait_ns);
	f = &t->tables[file];
	if (f->state == SNAPWALK_TABLE)
		*rule = unwindtab_vaddr(&f->tab, offset, &vaddr) ? unwindtab_find(&f->tab, vaddr, NULL, NULL)
								 : NULL;
	return f->state;
}

void walktables_stats(const struct walktables *t, struct walktables_stats *ret)
{
	*ret = t->stats;
}
