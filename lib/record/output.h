/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * output - a process that creates the output file when it is time.
 *
 * The output is created when everything else is ready, so that a recording
 * that cannot begin leaves no file and replaces none. By then the recorder has
 * no privilege left, and the directory may belong to another user. So a process
 * is forked while there are privileges; it waits, creates that one file, passes
 * its descriptor and exits. It reads only the first bytes of a file that it is
 * to replace.
 */
#ifndef STACKTOOLS_RECORD_OUTPUT_H
#define STACKTOOLS_RECORD_OUTPUT_H

#include "base/err.h"
#include "system/worker.h"

struct output {
	struct worker *worker; /* NULL = none */
	const char *path;
	bool force, fifo;
	int fd, ring; /* without a process: the output and its ring, created early; -1 = not yet, or taken */
};

/*
 * Fork the process for capture PATH (as for cap_writer_open()). Call it before
 * there is any thread. If this fails, output_early() creates the file.
 */
void output_start(struct output *o, const char *path, bool force);

/*
 * Call it while there still are privileges: without a process, create the
 * output now, and with RING its ring. If the recording then cannot begin, an empty file stays behind.
 */
int output_early(struct output *o, bool ring, struct err *e);

/*
 * Create the output: a descriptor, the caller's, or -errno with the message; with RING (NULL: none), and
 * before it, the file for cap_writer_ring(). Ends the process.
 */
int output_take(struct output *o, int *ring, struct err *e);

/* Call it after output_start(). If the output was not taken, the process creates nothing. */
void output_close(struct output *o);

#endif
