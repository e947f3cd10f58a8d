/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * output - a process that makes the output when it is time.
 *
 * The output appears when everything else is ready, so that a recording that
 * cannot begin leaves no file and replaces none. By then the recorder has no
 * privilege left, and the folder may be another user's. So a process is
 * forked while there are privileges, which waits, makes that one file, hands
 * its descriptor over and ends. It reads nothing but the first bytes of
 * what it is to replace.
 */
#ifndef STACKTOOLS_RECORD_OUTPUT_H
#define STACKTOOLS_RECORD_OUTPUT_H

#include "base/err.h"
#include "system/worker.h"

struct output {
	struct worker *worker; /* NULL = none */
	const char *path;
	bool force;
	int fd; /* without a process: the output, made early; -1 = not yet, or taken */
};

/*
 * For the capture PATH, as cap_writer_open() takes it, before there is any
 * thread. Where no process can be had, output_early() makes the file.
 */
void output_start(struct output *o, const char *path, bool force);

/*
 * While there are privileges still: where there is no process, make the output
 * now. If the recording cannot begin after all it stays there, without a byte.
 */
int output_early(struct output *o, struct err *e);

/* Let it be made: a descriptor, the caller's, or -errno with the message. The process has ended afterwards.
 */
int output_take(struct output *o, struct err *e);

/* After output_start(); one that was not taken makes nothing. */
void output_close(struct output *o);

#endif
