/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debugserver - a debug file from the servers in DEBUGINFOD_URLS.
 *
 * A child process downloads it with libdebuginfod (see
 * debuginfod_find_debuginfo(3)). So a server, a name server or the library can
 * neither crash the caller nor block it beyond the time limit, and the library
 * is needed only if a server is used. The cache is that of the library
 * (~/.cache/debuginfod_client).
 */
#ifndef STACKTOOLS_ELF_DEBUGSERVER_H
#define STACKTOOLS_ELF_DEBUGSERVER_H

#include "base/err.h"
#include "capture/types.h"

#define DEBUGSERVER_PATIENCE 20 /* times `seconds`: limit for one file while bytes arrive */

/* State of the servers, kept from file to file. Zero it first. */
struct debugserver {
	int silent; /* -errno of a lasting failure (no answer, no library): no further requests are made */
};

struct debugserver_opts {
	const char *library; /* NULL = libdebuginfod.so.1 */
	unsigned int seconds; /* limit without a new byte of the file; 0 = DEBUGINFOD_TIMEOUT, else 30 */
	/* called several times a second; nonzero cancels. NULL is fine. */
	int (*progress)(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_ctx;
	const char *what; /* passed to `progress` */
	struct debugserver *server; /* NULL = no state is kept */
};

/* Is DEBUGINFOD_URLS set to more than white space? */
bool debugserver_wanted(void);

/* Can this program ask a server? A static one cannot: it cannot load the library. */
bool debugserver_possible(void);

/*
 * A value for DEBUGINFOD_URLS by which the programs of this system, or of the one under ROOT (NULL = "/"),
 * are likely to have debug files: what /etc/debuginfod/NAME.urls has (debuginfod-client-config(7)), else the
 * server of the distribution in /etc/os-release, else that of elfutils, which asks those of many. Put into
 * BUF of CAP bytes; false if there is none that fits.
 */
bool debugserver_advise(const char *root, char *buf, size_t cap);

/*
 * Download the debug file with build ID into *FD, which the caller owns. The
 * bytes come from another machine: the caller must check their build ID.
 * -ENOENT if no server has it or debugserver_wanted() is false, -ELIBACC with a
 * hint if the library is missing, -ETIMEDOUT, -ECANCELED, -EPIPE if a server
 * broke off, else the error of the library. A lasting error is kept in
 * O->server, so that the next file does not wait for it again.
 */
int debugserver_find(const struct debugserver_opts *o, const struct cap_build_id *id, int *fd, struct err *e);

#endif
