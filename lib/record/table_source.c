/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/table_source.h"
#include "record/files.h"
#include "unwind/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define KEPT_BYTES (64u << 20) /* tables beyond it are compiled again another time */
#define WORTH_ROWS 500 /* smaller tables are compiled faster than read */

/* A table for the disk cache. It is written at the end, because a disk may block its writers. */
struct kept {
	struct table_cache_key key;
	uint8_t *bytes;
	size_t len;
};

struct table_source {
	struct table_worker *worker;
	struct table_cache *cache; /* NULL = none */
	uint8_t *read; /* the last table from the cache */
	struct kept *kept;
	size_t n_kept, max_kept, kept_bytes;
	bool worker_missing; /* none could be started just now */
	bool worker_gone; /* none can be started any more */
	struct table_source_stats stats;
};

int table_source_open(const struct table_source_opts *opts, struct table_source **ret, struct err *e)
{
	const struct table_worker_opts worker = { .seconds = opts->seconds };
	struct table_source *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return err_nomem(e, "unwind tables");
	rc = opts->compile ? table_worker_open_with(&worker, opts->compile, &s->worker, e)
			   : table_worker_open(&worker, &s->worker, e);
	if (rc) {
		free(s);
		return rc;
	}
	/* without a cache, tables are compiled each time */
	table_cache_start(TABLE_CACHE_BYTES_DEFAULT, &s->cache, NULL);
	*ret = s;
	return 0;
}

void table_source_close(struct table_source *s)
{
	if (!s)
		return;
	table_worker_close(s->worker);
	for (size_t i = 0; i < s->n_kept; i++) {
		table_cache_put(s->cache, &s->kept[i].key, s->kept[i].bytes, s->kept[i].len, NULL);
		free(s->kept[i].bytes);
	}
	free(s->kept);
	free(s->read);
	table_cache_close(s->cache);
	free(s);
}

int table_source_fd(const struct table_source *s)
{
	return table_worker_fd(s->worker);
}

pid_t table_source_worker(const struct table_source *s)
{
	return table_worker_pid(s->worker);
}

uint32_t table_source_store(const struct table_source *s)
{
	return table_cache_pid(s->cache);
}

size_t table_source_pending(const struct table_source *s)
{
	return table_worker_pending(s->worker);
}

void table_source_fail(struct table_source *s, const char *why)
{
	s->stats.failed++;
	snprintf(s->stats.why, sizeof(s->stats.why), "%.255s", why ? why : s->stats.worker_why);
}

void table_source_fail_open(struct table_source *s, int code)
{
	struct err why;

	err_set(&why, code, "a mapped file could not be opened: %s", strerror(-code));
	table_source_fail(s, why.msg);
}

static struct table_answer failed(struct table_source *s, uint64_t cookie, const char *why)
{
	table_source_fail(s, why);
	return (struct table_answer){ .cookie = cookie, .result = TABLE_FAILED };
}

static struct table_answer bare(struct table_source *s, uint64_t cookie)
{
	s->stats.bare++;
	return (struct table_answer){ .cookie = cookie, .result = TABLE_NONE };
}

/* The answer for the table in BYTES, which may be invalid. */
static struct table_answer found(
	struct table_source *s, uint64_t cookie, const uint8_t *bytes, size_t len, bool compiled)
{
	struct table_answer a = { .cookie = cookie, .result = TABLE_FOUND, .compiled = compiled };
	struct err why;

	if (unwindtab_view(bytes, len, &a.tab, &why) != 0)
		return failed(s, cookie, why.msg);
	/* an emulator maps such files too */
	if (!unwindmachine_is_here(a.tab.head->machine))
		return failed(s, cookie, "is for another machine");
	return a.tab.head->n_segs ? a : bare(s, cookie);
}

int table_source_request(struct table_source *s, int fd, struct table_cache_key *key, uint64_t cookie,
	struct table_answer *ret)
{
	struct err why;
	size_t len;
	int rc;

	if (key)
		buildid_read(fd, &key->id);
	free(s->read);
	s->read = NULL;
	if (key && s->cache && key->id.len && table_cache_get(s->cache, key, &s->read, &len, NULL) == 0) {
		s->stats.cached++;
		*ret = found(s, cookie, s->read, len, false);
		return 1;
	}
	rc = table_worker_ask(s->worker, fd, cookie, &why);
	if (!rc || rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM)
		return rc;
	*ret = failed(s, cookie, why.msg);
	return 1;
}

int table_source_request_vdso(
	struct table_source *s, enum vdso_kind kind, uint64_t cookie, struct table_answer *ret)
{
	_cleanup_close_ int fd = -1;
	size_t len;
	_cleanup_free_ uint8_t *image = vdso_image(kind, &len);

	if (!image) {
		*ret = bare(s, cookie);
		return 1;
	}
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0 || write(fd, image, len) != (ssize_t)len)
		return fd < 0 ? -errno : -ENOMEM;
	return table_source_request(s, fd, NULL, cookie, ret);
}

/* No worker could be started. -ECHILD if that is final, else -EAGAIN. */
static int miss_worker(struct table_source *s, const struct err *why)
{
	if (s->worker_gone)
		return -ECHILD;
	s->stats.worker_lost += !s->worker_missing;
	s->worker_missing = true;
	snprintf(s->stats.worker_why, sizeof(s->stats.worker_why), "%.255s", why->msg);
	s->worker_gone = table_worker_over(s->worker);
	return s->worker_gone ? -ECHILD : -EAGAIN;
}

int table_source_next(struct table_source *s, int timeout_ms, struct table_answer *ret)
{
	struct table_worker_answer a;
	struct err why = { 0 };
	int rc = table_worker_next(s->worker, timeout_ms, &a, &why);

	if (rc < 0)
		return miss_worker(s, &why);
	if (!rc)
		return 0;
	s->worker_missing = false;
	if (!a.error)
		*ret = found(s, a.cookie, a.bytes, a.len, true);
	else if (a.error == -EINVAL || a.error == -EOPNOTSUPP) /* not an ELF file, which is not a failure */
		*ret = bare(s, a.cookie);
	else
		*ret = failed(s, a.cookie, a.why);
	return 1;
}

void table_source_keep(
	struct table_source *s, const struct table_cache_key *key, const struct table_answer *a)
{
	const size_t len = a->compiled ? a->tab.head->bytes : 0;
	struct kept *k;

	if (!s->cache || !key->id.len || !len || a->tab.head->n_rows < WORTH_ROWS ||
		s->kept_bytes + len > KEPT_BYTES ||
		base_grow(&s->kept, &s->max_kept, s->n_kept + 1, sizeof(*s->kept)) != 0)
		return;
	k = &s->kept[s->n_kept];
	*k = (struct kept){ .key = *key, .bytes = malloc(len), .len = len };
	if (!k->bytes)
		return;
	memcpy(k->bytes, a->tab.bytes, len);
	s->kept_bytes += len;
	s->n_kept++;
}

void table_source_stats(const struct table_source *s, struct table_source_stats *ret)
{
	*ret = s->stats;
}
