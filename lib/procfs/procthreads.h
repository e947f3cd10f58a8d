/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procthreads - which threads a recording by /proc is of, found by reading
 * its directories.
 *
 * A thread or process that begins and ends between two scans is not found.
 * Children of targets are found by their parent's PID: one whose parent had
 * ended before the scan is not.
 */
#ifndef STACKTOOLS_PROCTHREADS_H
#define STACKTOOLS_PROCTHREADS_H

#include "procfs/looker.h"
#include "procfs/procparse.h"
#include "system/cgroup.h"

struct procthreads_opts {
	bool all; /* every process but this one */
	uint32_t no[2]; /* and but these; 0 = none */
	bool kthreads; /* with all: kernel threads too */
	bool follow; /* children of targets */
	const uint32_t *pids, *tids;
	size_t n_pids, n_tids;
	const char *const *comms; /* every process of one of these names */
	size_t n_comms;
	struct looker *looker; /* for what /proc hides from us; NULL = none */
	const struct cgroup *in; /* of these, only what is in that one or below it; NULL = all */
};

struct procthreads;

/* What O points to has to stay. -ENOENT where there is no /proc. */
int procthreads_open(const struct procthreads_opts *o, struct procthreads **ret, struct err *e);
void procthreads_close(struct procthreads *t); /* NULL is fine */

/* Process PID is a target too from now on. */
int procthreads_add(struct procthreads *t, uint32_t pid, struct err *e);

/*
 * FN for each thread of the targets that is there now, and in the cgroup now, whether it was there before or
 * not.
 */
void procthreads_scan(struct procthreads *t, void (*fn)(void *ctx, uint32_t pid, uint32_t tid), void *ctx);

/* What /proc/PID/stat tells of the process and its main thread; false when it is gone. */
bool procthreads_stat(const struct procthreads *t, uint32_t pid, struct procparse_stat *ret);

/* Does /proc hide the processes of other users (hidepid)? Then -a and -c are of fewer than there are. */
bool procthreads_hidden(void);

#endif
