/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * targets - the requested processes and threads: whether they exist, and when all
 * of them have ended.
 */
#ifndef STACKTOOLS_SYSTEM_TARGETS_H
#define STACKTOOLS_SYSTEM_TARGETS_H

#include "base/err.h"

struct targets {
	int epoll_fd; /* holds a pidfd for each process */
	size_t n_pids, n_ended;
	const uint32_t *tids; /* owned by the caller */
	size_t n_tids;
};

/*
 * Check that each exists in /proc. -EXDEV if /proc belongs to another PID
 * namespace; -EACCES if /proc hides one; -ESRCH if there is no such process, for a
 * thread given as a process (the hint names the option) and for a zombie. TIDS
 * must outlive *T. Release with targets_close().
 */
int targets_open(struct targets *t, const uint32_t *pids, size_t n_pids, const uint32_t *tids, size_t n_tids,
	struct err *e);
void targets_close(struct targets *t); /* a zeroed struct is fine */

int targets_fd(const struct targets *t); /* readable when a process has ended; -1 = none */

/* True if there were any targets and all of them have ended. */
bool targets_ended(struct targets *t);

/* The prev_state bits for LETTERS, state letters as in ps(1): any number of S D T t I P. */
int targets_state_mask(const char *letters, uint32_t *ret, struct err *e);

#endif
