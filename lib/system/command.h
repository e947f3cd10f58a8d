/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * command - a child that waits at its start line.
 *
 * It is forked first, so that its PID can be watched, and execs when told. It
 * can be held (by ptrace(2)) before the first instruction of its program, for
 * what must be known of the new image before it runs.
 */
#ifndef STACKTOOLS_SYSTEM_COMMAND_H
#define STACKTOOLS_SYSTEM_COMMAND_H

#include "base/err.h"

#include <sys/types.h>

struct command {
	pid_t pid; /* 0 = none */
	int start_fd; /* closing it ends the child, a byte lets it exec */
	int fail_fd; /* close-on-exec: the child's errno when exec fails */
	bool hold; /* set before command_prepare(): hold it after its exec */
	bool held; /* set by command_prepare(): it will stand there; may stay false, where ptrace is not
		      allowed */
	int status; /* of waitpid(2), once it was reaped */
	bool ended;
};

/* Fork a child that will exec ARGV, with the privileges that there are now, whatever becomes of ours. Its
 * signals are as they were in *MASK (may be NULL), and SIGXFSZ as by default. */
int command_prepare(struct command *c, char *const argv[], const void *mask, struct err *e);

/* Let it exec; -ENOENT and the like when that fails (the child is reaped then). */
int command_go(struct command *c, const char *name, struct err *e);

/* Let a held one run; does nothing for one that is not. */
void command_release(struct command *c);

/* Has it ended? Reaps it. */
bool command_ended(struct command *c);

/* Never started: end it. Started: leave it alone. */
void command_close(struct command *c);

#endif
