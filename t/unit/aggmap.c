/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The aggregation maps on the running kernel: swap, empty, growth. */
#include "base/tap.h"
#include "record/bpf.h"

#include <bpf/bpf.h>
#include <errno.h>

#define SIZE 64

struct taken {
	uint64_t n, total_ns;
};

static void take(void *ctx, const struct offcpu_key *key, const struct offcpu_value *value)
{
	struct taken *t = ctx;

	(void)key;
	t->n++;
	t->total_ns += value->total_ns;
}

/*
 * Add N waits, of threads FIRST, FIRST + 1, ..., each as many ns long as its tid.
 * Returns 0, or the last error.
 */
static int fill(const struct aggmap *m, uint32_t first, uint32_t n)
{
	int rc = 0;

	for (uint32_t i = first; i < first + n; i++) {
		struct offcpu_key key = { .tgid = 1, .tid = i };
		struct offcpu_value value = { .total_ns = i, .count = 1 };
		int code = bpf_map_update_elem(m->fd, &key, &value, BPF_NOEXIST);

		rc = code ? code : rc;
	}
	return rc;
}

static void test_maps(struct tap *t, struct aggmap *m)
{
	struct taken taken = { 0 };
	int first = m->fd;

	tap_eq_u64(t, (uint64_t)-aggmap_settle(m, NULL), 0, "the first map is put in place");
	tap_eq_u64(t, (uint64_t)-fill(m, 1, SIZE), 0, "a map takes as many elements as it has room for");
	tap_eq_u64(t, (uint64_t)-fill(m, SIZE + 1, 2 * SIZE), E2BIG,
		"a map does not take three times as many elements");
	tap_eq_u64(t, (uint64_t)-aggmap_swap(m, NULL), 0, "the maps are swapped");
	tap_ok(t, m->fd != first && m->spare_fd == first, "after a swap the full map is the spare one");
	tap_eq_u64(t, (uint64_t)-aggmap_empty(m, take, &taken, NULL), 0, "the spare map is emptied");
	tap_ok(t, taken.n >= SIZE && taken.total_ns >= SIZE * (SIZE + 1) / 2,
		"the callback gets every element");
	tap_eq_u64(t, m->spare_size, 2 * SIZE, "a map that was full is replaced by one of twice the size");
	taken = (struct taken){ 0 };
	aggmap_swap(m, NULL);
	tap_eq_u64(t, aggmap_room(m), 2 * SIZE, "the larger map is in use after the next swap");
	tap_eq_u64(t, (uint64_t)-fill(m, 1, 2 * SIZE), 0, "the larger map takes twice as many elements");
	aggmap_empty(m, take, &taken, NULL);
	tap_eq_u64(t, taken.n, 0, "a map that was not used has no elements");
	tap_eq_u64(t, m->spare_size, SIZE, "a map that was not used does not grow");
	tap_eq_u64(t, (uint64_t)-aggmap_finish(m, take, &taken, NULL), 0,
		"the map in use is emptied at the end");
	tap_ok(t, taken.n >= 2 * SIZE && taken.total_ns >= SIZE * (2 * SIZE + 1),
		"the callback gets every element of it");
}

int main(void)
{
	struct tap t = { 0 };
	struct aggmap m;
	struct err e;

	if (aggmap_open(&m, SIZE, true, &e) != 0) {
		tap_skip(&t, "aggregation maps", "%s", e.msg);
		return tap_done(&t);
	}
	test_maps(&t, &m);
	aggmap_close(&m);
	return tap_done(&t);
}
