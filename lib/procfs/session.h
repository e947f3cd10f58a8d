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

struct procrec;

int procrec_open(const struct recorder_opts *opts, struct procrec **ret, struct err *e);
int procrec_start(struct procrec *p, struct err *e);

/* The command has been started, as process PID. */
int procrec_command(struct procrec *p, uint32_t pid, struct err *e);

uint64_t procrec_timeout_ns(const struct procrec *p);
int procrec_service(struct procrec *p, struct err *e);
int procrec_stop(struct procrec *p, const char *why, struct err *e);
void procrec_close(struct procrec *p); /* NULL is fine */

struct procrec_stats {
	uint64_t start_ns, now_ns;
	uint64_t bytes;
	uint64_t lost; /* looks that could not be made, threads that could not be read */
};

void procrec_stats(const struct procrec *p, struct procrec_stats *ret);
void procrec_progress(const struct procrec *p, struct buf *b);
void procrec_summary(const struct procrec *p, const struct rectext_told *told, struct buf *b);

#endif
