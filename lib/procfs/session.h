/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * session - a recording without BPF: /proc is looked at HZ times a second, and
 * waits are estimated from what is seen.
 *
 * The calls are those of record/session.h, with the same meaning.
 *
 * No privilege is needed; those that there are show more of others' processes.
 * With owner_only all are given up for good, so what is seen is what the caller
 * could see himself.
 */
#ifndef STACKTOOLS_PROCFS_SESSION_H
#define STACKTOOLS_PROCFS_SESSION_H

#include "record/counters.h"
#include "record/options.h"

struct procfs_session;

int procfs_session_open(const struct recorder_opts *opts, struct procfs_session **ret, struct err *e);
int procfs_session_start(struct procfs_session *p, struct err *e);

/* The command has been started, as process PID. */
int procfs_session_command(struct procfs_session *p, uint32_t pid, struct err *e);

uint64_t procfs_session_timeout_ns(const struct procfs_session *p);
int procfs_session_service(struct procfs_session *p, struct err *e);
int procfs_session_stop(struct procfs_session *p, const char *why, struct err *e);
void procfs_session_close(struct procfs_session *p); /* NULL is fine */

struct procfs_session_stats {
	uint64_t start_ns, now_ns;
	uint64_t bytes;
	uint64_t lost; /* looks that could not be made, threads that could not be read */
};

void procfs_session_stats(const struct procfs_session *p, struct procfs_session_stats *ret);
void procfs_session_progress(const struct procfs_session *p, struct buf *b);
void procfs_session_summary(
	const struct procfs_session *p, const struct record_text_told *told, struct buf *b);

#endif
