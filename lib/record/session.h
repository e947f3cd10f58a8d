/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * session - a whole off-CPU recording: BPF, process events and the capture
 * together.
 *
 * Order of calls: open, start, then service whenever recorder_fd() is readable
 * and at least every recorder_timeout_ns(), stop, close. The capture is flushed
 * to the file once a second, so a killed recorder loses no more than that.
 */
#ifndef STACKTOOLS_RECORD_SESSION_H
#define STACKTOOLS_RECORD_SESSION_H

#include "base/err.h"
#include "record/counters.h"
#include "record/options.h"

struct recorder;

/*
 * Open the output, load and attach the programs, in mode btf or raw. The error
 * message names the failed step and the remedy. *REFUSED: the kernel refused
 * the programs, and another mode may work. OPTS must outlive *RET.
 */
int recorder_open(const struct recorder_opts *opts, struct recorder **ret, bool *refused, struct err *e);
int recorder_start(struct recorder *r, struct err *e);

/*
 * recorder_hold(): the command PID will be held at its exec. Its waits do not
 * count until recorder_command(), which gets the unwind tables of its new image
 * ready (PID 0: it could not be held, and the tables come later).
 */
void recorder_hold(struct recorder *r, uint32_t pid);
int recorder_command(struct recorder *r, uint32_t pid, struct err *e);

int recorder_fd(const struct recorder *r); /* for poll(2), anew each time; -1: for the time alone */
uint64_t recorder_timeout_ns(const struct recorder *r);

/* Process what has arrived, and flush if it is time. An error of the output ends the recording. */
int recorder_service(struct recorder *r, struct err *e);

/*
 * End the open waits and write everything, then the names of the frames (unless
 * no_symbols; takes a few seconds at most) and the trailer with WHY.
 */
int recorder_stop(struct recorder *r, const char *why, struct err *e);

/* Has opts->max_bytes no room for more processes and stacks? Then stop. */
bool recorder_full(const struct recorder *r);

/* With opts->keep_ns or max_bytes: write what is kept to the capture now, at the next call of
 * recorder_service(). */
void recorder_release(struct recorder *r);

/* With opts->bpf.trigger_ns: how long a wait was that reached it, and of which thread; 0 = there was none. */
uint64_t recorder_triggered(const struct recorder *r, uint32_t *tid);

/* Has a process had the name COMM, one of opts->comms? */
bool recorder_comm_seen(const struct recorder *r, const char *comm);

void recorder_stats(struct recorder *r, struct recorder_stats *ret);
void recorder_close(struct recorder *r); /* NULL is fine */

#endif
