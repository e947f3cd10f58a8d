/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debugsearch - one search for a file that must be proven: the places are
 * the caller's, whether what is there is the one is said here.
 *
 * Fill in what is known, zero the rest, try places until one of them says
 * true, take `found` (elffile_close()).
 */
#ifndef STACKTOOLS_DEBUGSEARCH_H
#define STACKTOOLS_DEBUGSEARCH_H

#include "elf/debugplace.h"

#include <limits.h>

#define DEBUGSEARCH_STORY 512

struct debugsearch {
	int symfs; /* looked into before this machine; -1 = none */
	const struct elffile *of; /* of the same machine, and never the answer itself; NULL = any */
	const struct cap_build_id *build_id; /* the file must have; NULL or len 0 = any */
	const uint32_t *crc; /* of the whole file; NULL = any */
	const char *const *sections; /* it must have one of these, up to a NULL; NULL = any content */
	const char *lacks; /* what is told of one that has none of them: "holds no ..." */
	/* For the CRC of large files: called now and then, nonzero gives up. NULL is fine. */
	int (*progress)(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_ctx;
	unsigned int seconds; /* for all CRCs of the search together */

	struct elffile *found;
	int root; /* where: DEBUGPLACE_HERE or symfs */
	char path[PATH_MAX]; /* as seen from there */
	int stop; /* -ENOMEM or -ECANCELED: no place will do any more */
	char missed[DEBUGSEARCH_STORY]; /* why the closest candidate was not it; "" = nothing was there */
	int weight; /* of `missed` */
	uint64_t until_ns; /* of the CRCs; 0 = none was begun */
};

/* PATH under SYMFS, if it is absolute, then on this machine. True: the search is over. */
bool debugsearch_try(struct debugsearch *s, const char *path);

/* The same for one root. */
bool debugsearch_try_at(struct debugsearch *s, int root, const char *path);

/* The same for a file that is open already, FD, which is the search's from here on. */
bool debugsearch_try_fd(struct debugsearch *s, int fd);

#endif
