/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/capthreadtext.h"
#include "base/out.h"

#include <errno.h>
#include <inttypes.h>

struct sum {
	uint32_t proc, tid;
	uint64_t waits, off_ns;
};

static int by_thread(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;
	int c = CMP(x->proc, y->proc);

	return c ? c : CMP(x->tid, y->tid);
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Every thread once, in SUMS with room for all samples and threads of C; how many they are. */
static size_t sum_up(const struct capread *c, struct sum *sums)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < c->n_samples; i++)
		sums[n++] = (struct sum){ c->samples[i].proc, c->samples[i].tid, c->samples[i].count,
			c->samples[i].total_ns };
	for (size_t i = 0; i < c->n_threads; i++)
		sums[n++] = (struct sum){ c->threads[i].proc, c->threads[i].tid, 0, 0 };
	qsort(sums, n, sizeof(*sums), by_thread);
	for (size_t i = 0; i < n; i++) {
		if (!kept || by_thread(&sums[kept - 1], &sums[i]) != 0) {
			sums[kept++] = sums[i];
			continue;
		}
		sums[kept - 1].waits = add(sums[kept - 1].waits, sums[i].waits);
		sums[kept - 1].off_ns = add(sums[kept - 1].off_ns, sums[i].off_ns);
	}
	return kept;
}

static void put_own(struct out *o, uint32_t id, int width)
{
	if (id)
		out_printf(o, " %*" PRIu32, width, id);
	else
		out_printf(o, " %*s", width, "-");
}

static void put_thread(struct out *o, const struct capread *c, const struct sum *s)
{
	const struct cap_thread *t = capread_thread(c, s->proc, s->tid);
	const struct cap_proc *p = &c->procs[s->proc];

	out_printf(o, "%10" PRIu32 " %10" PRIu32, p->tgid, s->tid);
	put_own(o, p->ns_tgid, 10);
	put_own(o, t ? t->ns_tid : 0, 10);
	out_printf(o, " %12" PRIu64 " %10" PRIu64 ".%09" PRIu64 " s  ", s->waits, s->off_ns / 1000000000,
		s->off_ns % 1000000000);
	outtext_put(o, t ? t->comm : p->comm, TEXT_LINE);
	out_char(o, '\n');
}

int capthreadtext_put(struct out *o, const struct capread *c, uint64_t pid)
{
	_cleanup_free_ struct sum *sums = calloc(c->n_samples + c->n_threads + 1, sizeof(*sums));
	size_t n = sums ? sum_up(c, sums) : 0;

	if (!sums)
		return -ENOMEM;
	out_printf(o, "%10s %10s %10s %10s %12s %22s  %s\n", "PID", "TID", "NS-PID", "NS-TID", "WAITS",
		"OFF-CPU", "NAME");
	for (size_t i = 0; i < n; i++)
		if (!pid || c->procs[sums[i].proc].tgid == pid)
			put_thread(o, c, &sums[i]);
	return 0;
}
