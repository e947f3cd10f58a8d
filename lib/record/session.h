/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * session - a whole off-CPU recording: BPF, process events and the capture,
 * tied together.
 *
 * open, start, then service() whenever recorder_fd() is readable and at least
 * every recorder_timeout_ns(), stop, close. A flush reaches the file once a
 * second, so that a killed recorder loses no more than that.
 */
#ifndef STACKTOOLS_RECORD_SESSION_H
#define STACKTOOLS_RECORD_SESSION_H

#include "base/err.h"
#include "record/counters.h"
#include "record/options.h"

struct recorder;

/*
 * Open the output, load and attach, in mode btf or raw. The message names the
 * step and the remedy; *REFUSED tells that the kernel does not do it this way,
 * so that another mode may work.
 */
int recorder_open(const struct recorder_opts *opts, struct recorder **ret, bool *refused, struct err *e);
int recorder_start(struct recorder *r, struct err *e);

/*
 * recorder_hold(): the command PID will be held at its exec; nothing of it
 * counts until recorder_command(), which makes the unwind tables of its new
 * image ready (PID 0: it could not be held, they follow).
 */
void recorder_hold(struct recorder *r, uint32_t pid);
int recorder_command(struct recorder *r, uint32_t pid, struct err *e);

int recorder_fd(const struct recorder *r); /* for poll(2) */
uint64_t recorder_timeout_ns(const struct recorder *r);

/* Take in what is there; flush when one is due. An error of the output ends the recording. */
int recorder_service(struct recorder *r, struct err *e);

/*
 * Close the open waits, write everything, then what the frames are called (unless no_symbols; a few seconds
 * at most) and the trailer with WHY.
 */
int recorder_stop(struct recorder *r, const char *why, struct err *e);

void recorder_stats(struct recorder *r, struct recorder_stats *ret);
void recorder_close(struct recorder *r); /* NULL is fine */

#endif
