/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * targets - the processes and threads that were asked for: are they there,
 * and when have all of them ended?
 */
#ifndef STACKTOOLS_SYSTEM_TARGETS_H
#define STACKTOOLS_SYSTEM_TARGETS_H

#include "base/err.h"

struct targets {
	int epoll_fd; /* holds a pidfd for each process */
	size_t n_pids, n_ended;
	const uint32_t *tids; /* the caller's */
	size_t n_tids;
};

/*
 * Check that each is there, by the /proc of this PID namespace (-EXDEV: it is
 * another one's): -ESRCH for no such process, for a thread given
 * as a process (the hint says which option), for a zombie. TIDS must outlive
 * *T. Release with targets_close().
 */
int targets_open(struct targets *t, const uint32_t *pids, size_t n_pids, const uint32_t *tids, size_t n_tids,
	struct err *e);
void targets_close(struct targets *t); /* a zeroed one is fine */

int targets_fd(const struct targets *t); /* readable when a process ended; -1 = none */

/* True when there were some and all of them have ended. */
bool targets_ended(struct targets *t);

/* The prev_state bits of state letters as in ps(1): S D T t I P, any number of them. */
int targets_state_mask(const char *letters, uint32_t *ret, struct err *e);

#endif
