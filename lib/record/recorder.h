/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recorder - a whole off-CPU recording: BPF, process events and the capture,
 * tied together. Floor 7.
 *
 * open, start, then service() whenever recorder_fd() is readable and at least
 * every recorder_timeout_ms(), stop, close. A flush reaches the file once a
 * second, so that a killed recorder loses no more than that.
 */
#ifndef STACKTOOLS_RECORDER_H
#define STACKTOOLS_RECORDER_H

#include "err.h"
#include "offcpu.h"
#include "proctab.h"
#include "stacktab.h"

struct recorder;

struct recorder_opts {
	struct offcpu_opts bpf;
	const uint32_t *pids, *tids; /* targets */
	size_t n_pids, n_tids;
	const char *const *comms;
	size_t n_comms;
	uint32_t command_pid; /* a child that will exec: recorded from then on; 0 = none */
	const char *path; /* of the capture; "-" = stdout */
	bool force;
	const char *const *words; /* the command line, kept in the capture's options */
	size_t n_words;
};

struct recorder_stats {
	uint64_t start_ns, now_ns;
	uint64_t bytes; /* written */
	uint64_t waits, waits_ns;
	uint64_t rows_lost; /* waits for which the recorder had no memory */
	struct offcpu_counters bpf;
	struct proctab_stats procs;
	struct stacktab_stats stacks;
	uint64_t lost; /* the sum of all lost.* counters that count waits or events */
	const char *degraded; /* what works less well here and why; "" = nothing */
};

/* Open the output, load and attach. The story names the step and the remedy. */
int recorder_open(const struct recorder_opts *opts, struct recorder **ret, struct err *e);
int recorder_start(struct recorder *r, struct err *e);

/* CLOCK_MONOTONIC */
uint64_t recorder_now_ns(void);

int recorder_fd(const struct recorder *r); /* for poll(2) */
int recorder_timeout_ms(const struct recorder *r);

/* Take in what is there; flush when one is due. An error of the output ends the recording. */
int recorder_service(struct recorder *r, struct err *e);

/* Close the open waits, write everything and the trailer with WHY. */
int recorder_stop(struct recorder *r, const char *why, struct err *e);

void recorder_stats(struct recorder *r, struct recorder_stats *ret);
void recorder_close(struct recorder *r); /* NULL is fine */

#endif
