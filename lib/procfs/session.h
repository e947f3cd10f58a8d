/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * session - a recording without BPF, which samples /proc HZ times a second and
 * estimates waits from these samples.
 *
 * The calls are those of record/session.h, with the same meaning.
 *
 * No privilege is needed; with privileges, a recording shows more of other users'
 * processes. With owner_only all privileges are dropped for good, so a recording
 * shows only what the caller could see without this program.
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

/* Has a process had the name COMM, one of opts->comms, when one was looked for? */
bool procfs_session_comm_seen(const struct procfs_session *p, const char *comm);

struct procfs_session_stats {
	uint64_t start_ns, now_ns;
	uint64_t bytes;
	const char *place; /* where they are: cap_writer_place() */
	uint64_t lost; /* the sum of the counters of what was lost: counters_lost() */
};

void procfs_session_stats(const struct procfs_session *p, struct procfs_session_stats *ret);
void procfs_session_progress(const struct procfs_session *p, struct buf *b);
void procfs_session_summary(
	const struct procfs_session *p, const struct record_text_report *reported, struct buf *b);

#endif
