/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes as perf script text, through the
 * reader, the grammar, the names and the table. t/data/fold is a seed corpus.
 *
 * The first two bytes choose options. Besides crashes, this checks that the sums of
 * the lines equal those in the table.
 */
#include "fold/folding.h"

#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_lines(const struct foldtab *tab, bool reverse)
{
	struct foldtab_query q = { .reverse = reverse };
	struct foldtab_lines l;
	foldtab_sum want = 0, got = 0;

	if (foldtab_lines(tab, &q, &l, NULL) != 0)
		return;
	for (size_t i = 0; i < tab->n; i++)
		want += tab->pairs[i].sum;
	for (size_t i = 0; i < l.n; i++)
		got += l.lines[i].value;
	if (want != got)
		__builtin_trap();
	free(l.lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct folding_opts o = { 0 };
	struct paragraphs *in = NULL;
	struct folding *f = NULL;
	char path[64];
	const char *paths[] = { path }, *kinds = "fsync,unknown";
	int fd;

	if (size < 2)
		return 0;
	o.frames.kernel = o.frames.jit = data[0] & 1;
	o.frames.addrs = data[0] & 2;
	o.tid = data[0] & 4;
	o.reverse = data[0] & 8;
	o.delimit = data[0] & 16;
	o.threads = data[0] & 32;
	o.by_count = data[0] & 64;
	o.frames.balanced = data[0] & 128;
	o.weight = data[1] % 3;
	o.runnable = o.weight == FOLDING_BOTH && data[1] & 4;
	o.no_idle = data[1] & 8;
	o.kinds = &kinds;
	o.n_kinds = data[1] >> 4 & 1;
	fd = memfd_create("fuzz", 0);
	if (fd < 0 || write(fd, data + 2, size - 2) != (ssize_t)(size - 2))
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (paragraphs_open(paths, 1, &in, NULL) == 0 && folding_new(&o, &f, NULL) == 0 &&
		folding_run(f, in, NULL) == 0)
		check_lines(folding_table(f), o.reverse);
	folding_free(f);
	paragraphs_close(in);
	close(fd);
	return 0;
}
