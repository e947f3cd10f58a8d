/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/aggmap.h"

#include <bpf/bpf.h>
#include <errno.h>

#define SIZE_MAX_ELEMENTS (1u << 22)
#define BATCH 4096

static int create(uint32_t size)
{
	return bpf_map_create(
		BPF_MAP_TYPE_HASH, "agg", sizeof(struct offcpu_key), sizeof(struct offcpu_value), size, NULL);
}

static int install(const struct aggmap *m, int fd)
{
	uint32_t zero = 0;

	return bpf_map_update_elem(m->outer_fd, &zero, &fd, BPF_ANY);
}

static int create_outer(int inner_fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = (uint32_t)inner_fd);

	return bpf_map_create(
		BPF_MAP_TYPE_ARRAY_OF_MAPS, "agg", sizeof(uint32_t), sizeof(uint32_t), 1, &opts);
}

static void *run_install(void *ctx)
{
	struct aggmap *m = ctx;

	m->installed = install(m, m->installing_fd);
	__atomic_store_n(&m->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Put FD in place; a thread waits for the kernel, or this one where there is none to be had. */
static void begin_install(struct aggmap *m, int fd)
{
	m->installing_fd = fd;
	m->done = 0;
	m->installing = pthread_create(&m->installer, NULL, run_install, m) == 0;
	if (!m->installing)
		run_install(m);
}

int aggmap_open(struct aggmap *m, uint32_t size, struct err *e)
{
	int rc;

	*m = (struct aggmap){ .size = size, .spare_size = size };
	m->fd = create(size);
	m->spare_fd = m->fd < 0 ? m->fd : create(size);
	m->outer_fd = m->spare_fd < 0 ? m->spare_fd : create_outer(m->fd);
	if (m->outer_fd < 0) {
		rc = m->outer_fd;
		aggmap_close(m);
		return err_sys(e, rc, "cannot create the aggregation maps");
	}
	begin_install(m, m->fd);
	return 0;
}

int aggmap_settle(struct aggmap *m, struct err *e)
{
	if (m->installing)
		pthread_join(m->installer, NULL);
	m->installing = false;
	return m->installed ? err_sys(e, m->installed, "cannot install an aggregation map") : 0;
}

void aggmap_close(struct aggmap *m)
{
	aggmap_settle(m, NULL);
	if (m->outer_fd > 0)
		close(m->outer_fd);
	if (m->fd > 0)
		close(m->fd);
	if (m->spare_fd > 0)
		close(m->spare_fd);
	m->outer_fd = m->fd = m->spare_fd = 0;
}

void aggmap_begin_swap(struct aggmap *m)
{
	begin_install(m, m->spare_fd);
}

bool aggmap_swapped(struct aggmap *m)
{
	return __atomic_load_n(&m->done, __ATOMIC_ACQUIRE);
}

int aggmap_end_swap(struct aggmap *m, struct err *e)
{
	struct aggmap old = *m;

	if (aggmap_settle(m, NULL) != 0)
		return err_sys(e, m->installed, "cannot swap the aggregation map");
	m->fd = old.spare_fd;
	m->size = old.spare_size;
	m->spare_fd = old.fd;
	m->spare_size = old.size;
	return 0;
}

int aggmap_swap(struct aggmap *m, struct err *e)
{
	aggmap_begin_swap(m);
	return aggmap_end_swap(m, e);
}

static void grow_spare(struct aggmap *m)
{
	int bigger = create(m->spare_size * 2);

	if (bigger == -EPERM)
		bigger = opener_bpf_map(m->opener, OPENWIRE_AGG_MAP, m->spare_size * 2);
	if (bigger < 0)
		return;
	close(m->spare_fd);
	m->spare_fd = bigger;
	m->spare_size *= 2;
}

int aggmap_empty(struct aggmap *m,
	void (*take)(void *ctx, const struct offcpu_key *key, const struct offcpu_value *value), void *ctx,
	struct err *e)
{
	_cleanup_free_ struct offcpu_key *keys = calloc(BATCH, sizeof(*keys));
	_cleanup_free_ struct offcpu_value *values = calloc(BATCH, sizeof(*values));
	uint32_t at = 0, count, total = 0;
	bool first = true;
	int rc = 0;

	if (!keys || !values)
		return err_nomem(e, "the samples of a flush");
	while (rc == 0) {
		count = BATCH;
		rc = bpf_map_lookup_and_delete_batch(
			m->spare_fd, first ? NULL : &at, &at, keys, values, &count, NULL);
		first = false;
		/* ENOENT: this was the last batch */
		if (rc && rc != -ENOENT)
			return err_sys(e, rc, "cannot read the aggregation map");
		for (uint32_t i = 0; i < count && take; i++)
			take(ctx, &keys[i], &values[i]);
		total += count;
	}
	if (total >= m->spare_size / 2 && m->spare_size < SIZE_MAX_ELEMENTS)
		grow_spare(m);
	return 0;
}

uint32_t aggmap_room(const struct aggmap *m)
{
	return m->size;
}
