/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes as the waits that flame --heat and --threads draw. t/data/fold is
 * a seed corpus.
 *
 * Besides crashes, this checks that the threads' sums are the sum of all waits, and that each wait is within
 * the recording and no more runnable than it is long.
 */
#include "flame/heat.h"
#include "flame/threads.h"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct timeline *t)
{
	timeline_sum sum = 0;

	for (size_t i = 0; i < t->n_threads; i++)
		sum += t->threads[i].total;
	if (sum != t->waits.total)
		__builtin_trap();
	for (size_t i = 0; i < t->waits.n; i++) {
		const struct timeline_event *event = &t->waits.p[i];

		if (event->begin_ns + event->total_ns > t->span_ns ||
			(event->runnable_ns != UINT64_MAX && event->runnable_ns > event->total_ns) ||
			(i && event->begin_ns < event[-1].begin_ns))
			__builtin_trap();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct paragraphs *in = NULL;
	struct timeline t = { 0 };
	struct out out = { 0 };
	char path[64];
	const char *paths[] = { path };
	int fd = memfd_create("fuzz", 0), null = memfd_create("out", 0);

	if (!size || fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)(size - 1))
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (paragraphs_open(paths, 1, &in, NULL) == 0 && out_init(&out, null, NULL) == 0 &&
		timeline_read(&t, in, data[0] & 1, NULL) == 0 && t.waits.n) {
		check(&t);
		if (data[0] & 1)
			threads_put(&out, &t, "t", NULL);
		else
			heat_put(&out, &t, "t", NULL);
	}
	out_flush(&out, NULL);
	out_free(&out);
	timeline_free(&t);
	paragraphs_close(in);
	close(fd);
	close(null);
	return 0;
}
