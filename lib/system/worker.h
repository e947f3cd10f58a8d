/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker - asking a process of our own that kept privileges: one request, one
 * answer.
 *
 * Over a SOCK_SEQPACKET socket, a message each. A request begins with a
 * uint32_t, its number, which is the asker's affair; the answer has the same,
 * and then 0 or -errno (struct asker_head). The first message of the other
 * side is an answer to nobody: it is there, or why it is not. Every call is
 * for any thread.
 */
#ifndef STACKTOOLS_SYSTEM_WORKER_H
#define STACKTOOLS_SYSTEM_WORKER_H

#include "base/err.h"

#include <sys/types.h>

struct asker;

/* Over SOCK, the asker's from now on, to process PID (0 = none of ours, for tests). *RET is the caller's. */
int asker_new(int sock, pid_t pid, struct asker **ret, struct err *e);

/* Wait for its first message; WHO is told where it is not there: "the process that opens files". */
int asker_ready(struct asker *a, const char *who, struct err *e);
void asker_free(struct asker *a); /* ends the process; NULL is fine */
uint32_t asker_pid(const struct asker *a); /* 0 = none, or it has ended */

/*
 * Send LEN bytes at REQUEST. Returns how many bytes of an answer came, up to
 * CAP and at least a struct asker_head, and in *FD a descriptor or -1 (FD
 * NULL: one would be closed). -ENOTCONN: A is NULL, or it has ended; one that
 * does not answer for ten seconds, or wrongly, is ended.
 */
ssize_t asker_ask(struct asker *a, void *request, size_t len, void *answer, size_t cap, int *fd);

struct asker_stats {
	uint64_t asked; /* requests that were answered */
	uint64_t lost; /* requests that were not, because the process had ended */
	char why[128]; /* how it ended; "" = it is there */
};

void asker_stats(struct asker *a, struct asker_stats *ret); /* A NULL: all zero */

/*
 * runsoon - have this thread run as soon as it wakes up.
 *
 * What new processes map has to be read before they wait: with a short slice
 * the scheduler lets the recorder run when it wakes (Linux 6.12; the niceness
 * works everywhere). Where it is refused, more waits begin too soon.
 */

void runsoon(void);

#endif
