/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * command - a child that waits before it execs.
 *
 * It is forked first, so that its PID can be watched, and execs on request.
 * ptrace(2) can hold it before the first instruction of its program, so that the
 * new image can be inspected before it runs.
 */
#ifndef STACKTOOLS_SYSTEM_COMMAND_H
#define STACKTOOLS_SYSTEM_COMMAND_H

#include "base/err.h"

#include <sys/resource.h>
#include <sys/types.h>

struct command {
	pid_t pid; /* 0 = none */
	int start_fd; /* closing it ends the child, a byte lets it exec */
	int fail_fd; /* close-on-exec: the child's errno when exec fails */
	bool hold; /* set before command_prepare(): hold it after its exec */
	struct rlimit files; /* the limit of open files that it gets; zero = ours */
	bool held; /* set by command_prepare(): it will be held; false if ptrace(2) is not permitted */
	int status; /* of waitpid(2), once it is reaped */
	bool ended;
};

/*
 * Fork a child that will exec ARGV with our present privileges, even if ours
 * change later; under the rule of system/owner.h it gives up the program's. Its
 * signal mask is *MASK (NULL = ours), and SIGXFSZ has its default action.
 */
int command_prepare(struct command *c, char *const argv[], const void *mask, struct err *e);

/* Let it exec. If that fails: -errno such as -ENOENT, and the child is reaped. */
int command_go(struct command *c, const char *name, struct err *e);

/* Let a held child run. Does nothing if it is not held. */
void command_release(struct command *c);

/* Whether it has ended; if so, it is reaped. */
bool command_ended(struct command *c);

/* Kill a child that was never started; let a started one run. */
void command_close(struct command *c);

#endif
