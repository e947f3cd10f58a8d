/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pack - a capture with the symbol tables of its files inside.
 *
 * The capture's own blocks stay as they are; behind them, before the trailer,
 * comes an image (elf/pack.h) of each file that user stacks lie in. Files are found and proven as for
 * symbolize(1) (symbols/files.h, elf/debuginfo.h); one that has an image already keeps it.
 */
#ifndef STACKTOOLS_SYMBOLS_PACK_H
#define STACKTOOLS_SYMBOLS_PACK_H

#include "base/err.h"

struct cap_pack_opts {
	const char *out; /* "-" = standard output */
	bool force; /* as for result_file_create() */
	/* Called for each file that is left out, with the reason. */
	void (*missing)(void *ctx, const char *path, const char *why);
	void *ctx;
};

struct cap_pack_stats {
	uint64_t files; /* that user stacks lie in */
	uint64_t packed, known; /* added; had an image before */
	uint64_t bytes; /* of the new capture */
	char damage[512]; /* what is wrong with the old one; "" = nothing */
};

/*
 * Read the capture PATH ("-": standard input) and write it to the new one; of a damaged one that
 * much which is whole. -errno with the message where nothing was written: the name then
 * stays what it was.
 */
int cap_pack_write(
	const char *path, const struct cap_pack_opts *o, struct cap_pack_stats *ret, struct err *e);

#endif
