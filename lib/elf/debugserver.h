/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debugserver - a debug file from the servers that DEBUGINFOD_URLS names.
 *
 * Asked by libdebuginfod (see debuginfod_find_debuginfo(3)), in a process of
 * its own: so a server, a name server or the library can neither crash the
 * caller nor hold it longer than was said, and whoever has not got the library
 * or wants no server needs none of it. The cache is the library's own
 * (~/.cache/debuginfod_client).
 */
#ifndef STACKTOOLS_ELF_DEBUGSERVER_H
#define STACKTOOLS_ELF_DEBUGSERVER_H

#include "base/err.h"
#include "capture/types.h"

#define DEBUGSERVER_PATIENCE 20 /* times `seconds`: for one file in all, while bytes come */

/* What was learned of the servers, kept from file to file. Zero it first. */
struct debugserver {
	int silent; /* -errno: they do not answer, or nobody can ask; they are asked no more */
};

struct debugserver_opts {
	const char *library; /* NULL = libdebuginfod.so.1 */
	unsigned int seconds; /* without a byte more of the file; 0 = DEBUGINFOD_TIMEOUT, else 30 */
	/* called several times a second; nonzero gives up. NULL is fine. */
	int (*progress)(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_ctx;
	const char *what; /* for `progress` */
	struct debugserver *server; /* NULL = each file is asked for as if it were the first */
};

/* Is there anybody to ask: is DEBUGINFOD_URLS set, to more than white space? */
bool debugserver_wanted(void);

/*
 * The debug file with build ID into *FD (the caller's). The bytes come from
 * another machine: the build ID is yet to be looked at. -ENOENT when no server
 * has it, also where debugserver_wanted() is false; -ELIBACC with a hint
 * without the library; -ETIMEDOUT, -ECANCELED; -EPIPE for one that broke off; other codes are the library's.
 * O->server then knows that the next file need not wait for the same.
 */
int debugserver_find(const struct debugserver_opts *o, const struct cap_build_id *id, int *fd, struct err *e);

#endif
