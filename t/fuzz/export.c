/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes as what stackexport reads, written in every format. What
 * t/data/export/make.pl prints is a seed corpus.
 *
 * Besides crashes, this checks that the groups of records have each record once.
 */
#include "export/export.h"

#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_groups(const struct profile *p, const struct profile_groups *g)
{
	uint64_t sum = 0, want = 0;

	if (g->first[0] != 0 || g->first[g->n] != p->n_records)
		__builtin_trap();
	for (size_t i = 0; i < p->n_records; i++) {
		sum += p->records[g->order[i]].total_ns;
		want += p->records[i].total_ns;
	}
	if (sum != want)
		__builtin_trap();
}

static void export_all(struct profile *p, struct out *out)
{
	struct profile_groups by_thread = { 0 }, by_identity = { 0 };
	uint64_t sums;

	if (profile_by_thread(p, &by_thread) == 0)
		check_groups(p, &by_thread);
	if (profile_by_identity(p, &by_identity) == 0)
		check_groups(p, &by_identity);
	profile_groups_free(&by_thread);
	profile_groups_free(&by_identity);
	export_pprof(p, out, NULL);
	export_speedscope(p, out, NULL);
	export_firefox(p, out, NULL);
	export_perfetto(p, out, &sums, NULL);
	export_otlp(p, out, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int in = -1, null = -1;
	struct profile p = { 0 };
	struct out out = { 0 };

	if (in < 0) {
		in = memfd_create("in", 0);
		null = memfd_create("out", 0);
	}
	if (ftruncate(in, 0) != 0 || pwrite(in, data, size, 0) != (ssize_t)size ||
		lseek(in, 0, SEEK_SET) != 0 || ftruncate(null, 0) != 0 || lseek(null, 0, SEEK_SET) != 0 ||
		out_init(&out, null, NULL) != 0)
		return 0;
	if (profile_read(&p, in, "input", NULL) == 0)
		export_all(&p, &out);
	out_free(&out);
	profile_free(&p);
	return 0;
}
