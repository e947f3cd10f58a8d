/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwindload ROWS - fill the memory of unwind tables with ROWS rows as dense
 * as those of a machine's files: one row for each 58 bytes of text, 300 rules
 * a table, tables of 1 to 500 segments. Prints: rows, bytes that the kernel
 * holds, bytes used of the chunks, ms to open, ms to add everything with a
 * commit after each table, the longest of these in ms.
 */
#include "../unwind-made.h"

#include <time.h>

#define ROWS_OF_SEG (65536 / 58)

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* 1 to 500, small ones often. */
static uint32_t segments(uint64_t left)
{
	uint32_t n = 1 + pick(1 + pick(500));

	return (uint32_t)MIN(n, left / ROWS_OF_SEG + 1);
}

int main(int argc, char **argv)
{
	const struct unwindspace_opts opts = { .bytes = 1 << 30, .procs = 4096, .first_chunks = 16 };
	uint64_t want = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;
	double t0 = now_ms(), open_ms, add_ms = 0, worst = 0;
	struct unwindspace_stats st = { 0 };
	struct unwindspace *s;
	struct err e;

	if (!want)
		return 64;
	if (unwindspace_open(&opts, &s, &e) != 0)
		goto fail;
	open_ms = now_ms() - t0;
	while (st.rows < want) {
		struct made *m = make(segments(want - st.rows), ROWS_OF_SEG, false, 300, pick(100));

		t0 = now_ms();
		if (add(s, m, &e) != 0 || unwindspace_commit(s, &e) != 0)
			goto fail;
		t0 = now_ms() - t0;
		add_ms += t0;
		worst = MAX(worst, t0);
		unmake(m);
		unwindspace_stats(s, &st);
	}
	printf("%llu %llu %llu %.2f %.2f %.2f\n", (unsigned long long)st.rows, (unsigned long long)st.bytes,
		(unsigned long long)st.bytes_used, open_ms, add_ms, worst);
	unwindspace_close(s);
	return 0;
fail:
	fprintf(stderr, "unwindload: %s\n", e.msg);
	return 2;
}
