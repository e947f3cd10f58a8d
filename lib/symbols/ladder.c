/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/ladder.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>

int ladder_add(struct ladder *l, const struct frame *f, uint64_t times)
{
	bool added = false;

	l->addresses[f->source]++;
	l->frames[f->source] += times;
	l->unsure += f->unsure ? times : 0;
	l->with_line += f->line || (f->n_inlined && f->inlined[0].line) ? times : 0;
	l->with_inlined += f->n_inlined ? times : 0;
	l->inlined += f->n_inlined * times;
	if (!f->module)
		return 0;
	/* a module's name is one string, whoever speaks of it */
	if (idmap_put(&l->seen, f->source, (uintptr_t)f->module, 0, &added) == UINT32_MAX)
		return -ENOMEM;
	l->files[f->source] += added;
	return 0;
}

void ladder_free(struct ladder *l)
{
	idmap_free(&l->seen);
}

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static void put_times(struct buf *b, const struct modules_stats *s, const char *prefix)
{
	buftext_printf(b, "%sfinding %" PRIu64 " files took %.1f ms, reading them %.1f ms\n", prefix,
		s->files, ms(s->ns_find), ms(s->ns_wall));
	buftext_printf(b,
		"%sin the processes: symbols %.1f ms, debug information %.1f ms, lines %.1f ms, "
		"names %.1f ms; %.1f ms of CPUs in all\n",
		prefix, ms(s->ns_symbols), ms(s->ns_units), ms(s->ns_lines), ms(s->ns_names),
		ms(s->ns_processes));
	buftext_printf(b,
		"%s%" PRIu64 " of %" PRIu64 " units of debug information were read; a process had %" PRIu64
		" MiB at most\n",
		prefix, s->units_read, s->units, s->memory_bytes >> 20);
	if (s->cache_hits || s->cache_misses || s->cache_bad)
		buftext_printf(b,
			"%sof answers kept on disk %" PRIu64 " were used, %" PRIu64
			" were not there, %" PRIu64 " were unusable; %" PRIu64 " are new\n",
			prefix, s->cache_hits, s->cache_misses, s->cache_bad, s->cache_kept);
}

void ladder_text(struct buf *b, const struct ladder *l, const struct modules_stats *s, const char *prefix)
{
	buftext_printf(b, "%s%-14s %12s %10s %6s\n", prefix, "names from", "frames", "addresses", "files");
	for (unsigned int i = 0; i < FRAME_SOURCES; i++)
		if (l->addresses[i])
			buftext_printf(b, "%s%-14s %12" PRIu64 " %10" PRIu64 " %6" PRIu64 "\n", prefix,
				frame_source_name((enum frame_source)i), l->frames[i], l->addresses[i],
				l->files[i]);
	buftext_printf(b,
		"%s%" PRIu64 " frames have a source line, %" PRIu64 " have inlined calls (%" PRIu64
		" in all), %" PRIu64 " are named by the function before\n",
		prefix, l->with_line, l->with_inlined, l->inlined, l->unsure);
	if (s)
		put_times(b, s, prefix);
}
