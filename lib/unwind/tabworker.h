/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tabworker - a process that compiles unwind tables of files that nobody
 * vouches for, and can do nothing else. Floor 6.
 *
 * It is forked before the recorder has anything worth stealing open, gives up
 * every capability and (where root) its user, closes what it inherited, sets
 * no_new_privs, bounds its memory and CPU time, may open no file, and then
 * allows itself only the system calls that the work takes (seccomp). It gets descriptors of
 * files over a socket and answers with sealed memfds. One that crashes or is killed is
 * replaced, and the file it worked on is answered with -EIO; one that takes
 * too long over a file is killed.
 */
#ifndef STACKTOOLS_TABWORKER_H
#define STACKTOOLS_TABWORKER_H

#include "err.h"

struct tabworker;

struct tabworker_opts {
	uint64_t memory_bytes; /* of the worker's own; 0 = 4 GiB */
	unsigned int seconds; /* wall time for one file; 0 = 20 */
};

/* Fork it. On success *RET is the caller's. */
int tabworker_open(const struct tabworker_opts *opts, struct tabworker **ret, struct err *e);
void tabworker_close(struct tabworker *w); /* ends the process; NULL is fine */

/* For poll(2): readable when an answer is there, or the worker has died. Changes when it is replaced. */
int tabworker_fd(const struct tabworker *w);

/*
 * Ask for the table of the ELF file FD (kept open by the caller only until
 * this returns). COOKIE comes back with the answer. -EMEDIUMTYPE for what is
 * no regular file. Requests wait in memory while the worker is busy: this
 * never blocks.
 */
int tabworker_ask(struct tabworker *w, int fd, uint64_t cookie, struct err *e);

/* Requests that are not answered yet. */
size_t tabworker_pending(const struct tabworker *w);

struct tabworker_answer {
	uint64_t cookie;
	int error; /* 0, or -errno with the story in `why`; a table of no segments is no error */
	const uint8_t *bytes; /* the table, not checked yet; valid until the next call */
	size_t len;
	char why[256];
};

/*
 * The next answer, waiting up to TIMEOUT_MS for one (0: only if it is there;
 * -1: as long as it takes, bounded by the time for one file). Returns 1 and
 * fills RET, 0 when none came, or -errno when no worker can be started.
 */
int tabworker_next(struct tabworker *w, int timeout_ms, struct tabworker_answer *ret, struct err *e);

#endif
