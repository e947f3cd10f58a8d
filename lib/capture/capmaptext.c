/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/capmaptext.h"
#include "base/out.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>

static int by_address(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return CMP(x, y);
}

/* [START, END) of M in the kernel's own layout: the path begins in column 74. */
static void put_map(
	struct out *o, const struct capread *c, const struct cap_map *m, uint64_t start, uint64_t end)
{
	static const struct cap_file anonymous = { .path = "" };
	const struct cap_file *f = m->file == CAP_NONE ? &anonymous : &c->files[m->file];
	uint64_t offset = f == &anonymous ? 0 : m->offset + (start - m->start);
	char line[160];
	int n = snprintf(line, sizeof(line),
		"%08" PRIx64 "-%08" PRIx64 " %c%c%c%c %08" PRIx64 " %02" PRIx32 ":%02" PRIx32 " %" PRIu64 " ",
		start, end, m->prot & PROT_READ ? 'r' : '-', m->prot & PROT_WRITE ? 'w' : '-',
		m->prot & PROT_EXEC ? 'x' : '-', m->flags & MAP_SHARED ? 's' : 'p', offset, f->dev_major,
		f->dev_minor, f->inode);

	if (*f->path) {
		out_printf(o, "%-73s", line);
		outtext_put(o, f->path, TEXT_LINE);
		if (f->flags & CAP_FILE_DELETED)
			out_str(o, " (deleted)");
	} else {
		out_put(o, line, (size_t)n);
	}
	out_char(o, '\n');
}

int capmaptext_put(struct out *o, const struct capread *c, uint32_t proc)
{
	_cleanup_free_ uint64_t *cuts = calloc(2 * c->n_maps + 1, sizeof(*cuts));
	const struct cap_map *open = NULL;
	uint64_t from = 0;
	size_t n = 0;

	if (!cuts)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_maps; i++)
		if (c->maps[i].proc == proc)
			cuts[n++] = c->maps[i].start, cuts[n++] = c->maps[i].end;
	qsort(cuts, n, sizeof(*cuts), by_address);
	for (size_t i = 0; i < n; i++) {
		const struct cap_map *m = capread_map(c, proc, cuts[i], UINT64_MAX, UINT64_MAX, NULL);

		if (m == open)
			continue;
		if (open)
			put_map(o, c, open, from, cuts[i]);
		open = m;
		from = cuts[i];
	}
	return 0;
}
