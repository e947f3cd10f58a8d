/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * targets - the requested processes and threads: whether they exist, what descends
 * from them, and when all of them have ended.
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

/*
 * Find the living descendants of the processes PIDS, of those that are named one of
 * COMMS and of the threads TIDS, by their parents in /proc: without these processes
 * themselves, and without this process and what descends from it. *RET has *N IDs in
 * ascending order; free it. A process that becomes a descendant meanwhile may be
 * missing: whoever needs all calls this again until nothing new is found. One pass
 * over /proc: 10 to 60 us for each process of the machine.
 */
struct targets_roots {
	const uint32_t *pids, *tids;
	size_t n_pids, n_tids;
	const char *const *comms;
	size_t n_comms;
};

int targets_descendants(const struct targets_roots *roots, uint32_t **ret, size_t *n, struct err *e);

/*
 * How many descend from the processes PIDS, without those that are named one of
 * COMMS and what descends from these. Where the kernel lists the children of a thread
 * (CONFIG_PROC_CHILDREN), it takes 10 to 100 us for each of the processes and of those
 * that descend from them; else as long as targets_descendants().
 */
size_t targets_count_descendants(const struct targets_roots *roots);

/* Say that no process was named COMM, with a hint at what it may have been meant. */
void targets_unnamed(const char *comm, struct err *e);

/* The prev_state bits for LETTERS, state letters as in ps(1): any number of S D T t I P. */
int targets_state_mask(const char *letters, uint32_t *ret, struct err *e);

#endif
