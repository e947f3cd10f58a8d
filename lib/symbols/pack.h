/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pack - a capture with the symbol tables of its files inside.
 *
 * The capture's own blocks stay unchanged. After them, before the trailer, comes an image
 * (elf/pack.h) of each file that user stacks use. Files are found and proven as for symbolize(1)
 * (symbols/files.h, elf/debuginfo.h); a file that already has an image keeps it.
 */
#ifndef STACKTOOLS_SYMBOLS_PACK_H
#define STACKTOOLS_SYMBOLS_PACK_H

#include "base/err.h"

struct cap_pack_opts {
	const char *out; /* "-" = standard output */
	bool force; /* as for result_file_begin() */
	/* Called for each file that was skipped, with the reason. */
	void (*missing)(void *ctx, const char *path, const char *why);
	void *ctx;
};

struct cap_pack_stats {
	uint64_t files; /* used by user stacks */
	uint64_t packed, known; /* added; had an image before */
	uint64_t bytes; /* size of the new capture */
	char damage[512]; /* what is wrong with the old capture; "" = nothing */
};

/*
 * Copy the capture PATH ("-": standard input) to O->out and add images; a damaged one is copied up
 * to the damage. -errno with the message if nothing was written: an existing output file then stays
 * unchanged.
 */
int cap_pack_write(
	const char *path, const struct cap_pack_opts *o, struct cap_pack_stats *ret, struct err *e);

#endif
