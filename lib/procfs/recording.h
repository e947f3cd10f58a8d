/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recording - a recording in whatever mode works here (recmode.h).
 *
 * The calls are those of recorder.h, with the same meaning. In mode auto each
 * is tried in its turn, and the next one only when it is the kernel, or a
 * privilege, that refuses; what was tried is told, and kept in the capture.
 */
#ifndef STACKTOOLS_RECORDING_H
#define STACKTOOLS_RECORDING_H

#include "record/counters.h"
#include "record/options.h"

struct recording;

/* OPTS has to live as long as *RET. */
int recording_open(struct recorder_opts *opts, struct recording **ret, struct err *e);
void recording_close(struct recording *r); /* NULL is fine */

enum recmode recording_mode(const struct recording *r);

/* Why it is this mode, a line for each that did not work, without a newline at the end; "" = nothing to tell.
 */
const char *recording_tried(const struct recording *r);

int recording_start(struct recording *r, struct err *e);
void recording_hold(struct recording *r, uint32_t pid);

/* The command runs as PID; HELD: it stands at its exec still. */
int recording_command(struct recording *r, uint32_t pid, bool held, struct err *e);

int recording_fd(const struct recording *r); /* for poll(2); -1 = nothing to wait for but time */
uint64_t recording_timeout_ns(const struct recording *r);
int recording_service(struct recording *r, struct err *e);
int recording_stop(struct recording *r, const char *why, struct err *e);

struct recording_state {
	uint64_t start_ns, now_ns;
	uint64_t lost;
};

void recording_state(struct recording *r, struct recording_state *ret);
void recording_progress(struct recording *r, struct buf *b);
void recording_summary(struct recording *r, const struct rectext_told *told, struct buf *b);

#endif
