/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/walk_tables.h"
#include "base/clock.h"
#include "record/table_source.h"

#include <errno.h>
#include <string.h>

#define BYTES_DEFAULT (UINT64_C(512) << 20)
#define SECONDS_DEFAULT 5

struct walktable {
	struct table_cache_key key; /* all zero = it has none */
	enum snapwalk_code state; /* TABLE, NO_TABLE, NOT_READY or DROPPED */
	uint8_t *bytes; /* if state is TABLE; `tab` points into it */
	struct unwindtab tab;
};

struct walktables {
	struct table_source *source;
	struct walktable *tables;
	size_t n, max;
	uint64_t bytes_max;
	uint32_t vdso[VDSO_KINDS]; /* WALKTABLES_NONE = not requested yet */
	struct walktables_stats stats; /* without `source` */
};

int walktables_open(const struct walktables_opts *opts, struct walktables **ret, struct err *e)
{
	const struct table_source_opts source = { .seconds = opts->seconds ? opts->seconds : SECONDS_DEFAULT,
		.compile = opts->compile };
	struct walktables *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return err_nomem(e, "unwind tables");
	for (size_t i = 0; i < VDSO_KINDS; i++)
		t->vdso[i] = WALKTABLES_NONE;
	t->bytes_max = opts->bytes ? opts->bytes : BYTES_DEFAULT;
	rc = table_source_open(&source, &t->source, e);
	if (rc) {
		free(t);
		return rc;
	}
	*ret = t;
	return 0;
}

void walktables_close(struct walktables *t)
{
	if (!t)
		return;
	table_source_close(t->source);
	for (size_t i = 0; i < t->n; i++)
		free(t->tables[i].bytes);
	free(t->tables);
	free(t);
}

pid_t walktables_worker(const struct walktables *t)
{
	return t ? table_source_worker(t->source) : 0;
}

uint32_t walktables_store(const struct walktables *t)
{
	return t ? table_source_store(t->source) : 0;
}

uint32_t walktables_find(const struct walktables *t, const struct stat *st)
{
	const struct table_cache_key key = table_cache_key_of(st);

	for (size_t i = 0; i < t->n; i++)
		if (table_cache_same_file(&t->tables[i].key, &key))
			return (uint32_t)i;
	return WALKTABLES_NONE;
}

/* Copy the table T to new memory, which *RET points into. Returns that memory, or NULL. */
static uint8_t *copy_table(const struct unwindtab *t, struct unwindtab *ret)
{
	const size_t len = t->head->bytes;
	uint8_t *bytes = malloc(len);

	if (!bytes || unwindtab_view(memcpy(bytes, t->bytes, len), len, ret, NULL) != 0) {
		free(bytes);
		return NULL;
	}
	return bytes;
}

/* Use the answer A for F. */
static void install(struct walktables *t, struct walktable *f, const struct table_answer *a)
{
	f->state = SNAPWALK_NO_TABLE;
	if (a->result != TABLE_FOUND)
		return;
	if (a->tab.head->bytes <= t->bytes_max - t->stats.bytes)
		f->bytes = copy_table(&a->tab, &f->tab);
	if (!f->bytes) {
		f->state = SNAPWALK_DROPPED;
		t->stats.dropped++;
		return;
	}
	f->state = SNAPWALK_TABLE;
	t->stats.bytes += f->tab.head->bytes;
	t->stats.rows += f->tab.head->n_rows;
	table_source_keep(t->source, &f->key, a);
}

/* As walktables_add(); FD -1: the vdso of this kind. */
static uint32_t add(struct walktables *t, const struct stat *st, int fd, enum vdso_kind kind)
{
	const uint64_t cookie = t->n;
	struct walktable *f;
	struct table_answer a;
	int rc;

	if (base_grow(&t->tables, &t->max, t->n + 1, sizeof(*t->tables)) != 0)
		return WALKTABLES_NONE;
	f = &t->tables[t->n++];
	*f = (struct walktable){ .state = SNAPWALK_NOT_READY };
	if (st)
		f->key = table_cache_key_of(st);
	t->stats.files++;
	rc = fd < 0 ? table_source_request_vdso(t->source, kind, cookie, &a)
		    : table_source_request(t->source, fd, st ? &f->key : NULL, cookie, &a);
	if (rc > 0) {
		install(t, f, &a);
	} else if (rc < 0) {
		table_source_fail(t->source, strerror(-rc));
		f->state = SNAPWALK_NO_TABLE;
	}
	return (uint32_t)cookie;
}

uint32_t walktables_add(struct walktables *t, const struct stat *st, int fd)
{
	return add(t, st, fd, VDSO_NONE);
}

uint32_t walktables_vdso(struct walktables *t, enum vdso_kind kind)
{
	if (t->vdso[kind] == WALKTABLES_NONE)
		t->vdso[kind] = add(t, NULL, -1, kind);
	return t->vdso[kind];
}

void walktables_miss(struct walktables *t, int code)
{
	t->stats.files++;
	table_source_fail_open(t->source, code);
}

static void take_answer(struct walktables *t, const struct table_answer *a)
{
	struct walktable *f = a->cookie < t->n ? &t->tables[a->cookie] : NULL;

	if (f && f->state == SNAPWALK_NOT_READY)
		install(t, f, a);
}

/* No file waits for its table any more. */
static void lose_worker(struct walktables *t)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->tables[i].state != SNAPWALK_NOT_READY)
			continue;
		table_source_fail(t->source, NULL);
		t->tables[i].state = SNAPWALK_NO_TABLE;
	}
}

/* Receive answers until the table of FILE is there or *WAIT_NS have passed. */
static void await(struct walktables *t, uint32_t file, uint64_t *wait_ns)
{
	struct table_answer a;
	int rc;

	do {
		uint64_t began = now_ns(), spent;

		rc = table_source_next(t->source, (int)(*wait_ns / 1000000), &a);
		if (rc > 0)
			take_answer(t, &a);
		else if (rc == -ECHILD)
			lose_worker(t);
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
	table_source_stats(t->source, &ret->source);
}
