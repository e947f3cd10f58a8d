/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes as what stackreport reads, ranked and printed in each
 * way, and compared with itself as stackdiff does. t/data/fold is a seed corpus.
 *
 * The first byte chooses options. Besides crashes, this checks that the sums of the groups and of what
 * is set aside are the sum of all waits, that nothing differs from itself, that intervals have all of the
 * time of the waits by themselves, and that a critical path is as long as its window.
 */
#include "report/critical_print.h"
#include "report/difference.h"
#include "report/print.h"

#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sums(const struct ranking *r)
{
	wait_sum sum = 0;

	for (size_t i = 0; i < r->groups.n; i++)
		sum += r->groups.p[i].stats.total;
	if (sum != r->ranked ||
		r->ranked + r->set_aside_idle.stats.total + r->set_aside_once.stats.total != r->all.total)
		__builtin_trap();
}

static void rank(const struct waits *w, uint8_t choice, struct out *out)
{
	struct ranking_opts opts = { .by = choice % (RANKING_WAKER + 1),
		.all = choice & 8,
		.kinds = choice & 16 ? "idle,lock" : NULL };
	struct report_print p = { .waits = w,
		.opts = &opts,
		.format = choice / 64 % 3,
		.width = 40 + choice,
		.last = choice >= 128 };
	struct ranking_function function = { 0 };
	struct ranking ranking = { 0 };

	if (ranking_make(&ranking, w, &opts, NULL) == 0) {
		if (opts.by != RANKING_FUNCTION && opts.by != RANKING_THREAD)
			check_sums(&ranking);
		report_ranking(out, &p, &ranking, NULL);
	}
	if (ranking_function(&function, w, &opts, choice & 32 ? "main" : "f", NULL) == 0)
		report_function(out, &p, &function, "main", NULL);
	ranking_free(&ranking);
	ranking_function_free(&function);
}

static void in_time(const struct waits *w, uint8_t choice, struct out *out)
{
	struct ranking_opts opts = { .all = true, .rows = true };
	struct report_print p = {
		.waits = w, .opts = &opts, .format = choice / 64 % 3, .width = 40 + choice
	};
	struct ranking ranking = { 0 };
	struct intervals t = { 0 };
	wait_sum each = 0, sum = 0;

	if (!w->n_events)
		return;
	if (ranking_make(&ranking, w, &opts, NULL) == 0 &&
		intervals_make(&t, w, &ranking, (waits_end(w) - waits_start(w)) / (1 + choice) + 1, NULL) ==
			0) {
		for (size_t i = 0; i < w->n_events; i++)
			each += w->events[i].len_ns;
		for (size_t i = 0; i < t.n; i++)
			sum += t.p[i].total;
		if (sum != each)
			__builtin_trap();
		report_intervals(out, &p, &ranking, &t, NULL);
	}
	intervals_free(&t);
	ranking_free(&ranking);
}

static void follow(const struct waits *w, uint8_t choice, struct out *out)
{
	struct critical_waits c = { 0 };

	if (!w->n_events || critical_make(&c, w, NULL) != 0)
		return;
	for (uint32_t i = 0; i < w->n_threads && i < 4; i++) {
		const uint64_t start = waits_start(w), len = waits_end(w) - start;
		const uint64_t from = start + len / 256 * choice, to = start + len;
		struct critical_path path = { 0 };
		struct critical_print p = { .waits = w,
			.format = choice / 64 % 3,
			.width = 40 + choice,
			.thread = i,
			.window = { from - start, len },
			.path = &path,
			.segments = choice & 1 };

		if (critical_add(&path, &c, i, from, to, p.segments, NULL) == 0) {
			if (path.total != to - from)
				__builtin_trap();
			critical_sort(&path);
			critical_print(out, &p, NULL);
		}
		critical_path_free(&path);
	}
	critical_free(&c);
}

static void compare(const struct waits *w, uint8_t choice, struct out *out)
{
	static const enum ranking_by bys[] = { RANKING_STACK, RANKING_FUNCTION, RANKING_THREAD_NAME,
		RANKING_PROCESS_NAME, RANKING_KIND };
	const struct waits *both[] = { w, w };
	const char *const paths[] = { "a", "b" };
	struct difference_opts opts = { .by = bys[choice % ARRAY_LEN(bys)],
		.absolute = choice & 8,
		.kinds = choice & 16 ? "idle,lock" : NULL };
	struct difference_print p = {
		.format = choice / 64 % 3, .by = opts.by, .width = 40 + choice, .paths = paths
	};
	struct difference d;

	if (difference_make(&d, both, &opts, NULL) == 0) {
		for (size_t i = 0; i < d.n; i++) {
			if (d.rows[i].amount[0] != d.rows[i].amount[1] ||
				(d.rows[i].is_judged && d.rows[i].errors != 0))
				__builtin_trap();
		}
		difference_print(out, &p, &d, NULL);
	}
	difference_free(&d);
}

/* At once, or as --live does. */
static int read_waits(struct waits *w, struct paragraphs *in, uint8_t choice, struct out *out)
{
	struct waits_opts opts = { .unit = choice % 5, .each = true };
	struct waits_reader *reader = NULL;
	int code;

	if (choice & 4)
		opts.samples = "cpu-clock";
	if (choice < 128)
		return waits_read(w, in, &opts, NULL);
	opts.each = false;
	code = waits_open(w, in, &opts, &reader, NULL);
	while (!code && (code = waits_next(reader, NULL)) > 0) {
		rank(w, choice, out);
		code = 0;
	}
	waits_close(reader);
	return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct paragraphs *in = NULL;
	struct waits waits = { 0 };
	struct out out = { 0 };
	char path[64];
	const char *paths[] = { path };
	int fd, null;

	if (!size)
		return 0;
	null = memfd_create("out", 0);
	fd = memfd_create("fuzz", 0);
	if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)(size - 1))
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (paragraphs_open(paths, 1, &in, NULL) == 0 && out_init(&out, null, NULL) == 0 &&
		read_waits(&waits, in, data[0], &out) == 0) {
		rank(&waits, data[0], &out);
		in_time(&waits, data[0], &out);
		follow(&waits, data[0], &out);
		compare(&waits, data[0], &out);
	}
	out_flush(&out, NULL);
	out_free(&out);
	waits_free(&waits);
	paragraphs_close(in);
	close(fd);
	close(null);
	return 0;
}
