/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ptchild - the process that walks stacks (ptwalk.h), as the recorder sees it:
 * begun in a sandbox (sandbox.h), talked to (ptwire.h), ended.
 */
#ifndef STACKTOOLS_PTCHILD_H
#define STACKTOOLS_PTCHILD_H

#include "procfs/ptwire.h"

#include <sys/types.h>

#define PTCHILD_SECONDS 3 /* that a walk may take; then it gets as long again, and the process is ended */
#define PTCHILD_PATIENCE 10 /* times as long, if it runs and gets less than half of a CPU meanwhile */

struct ptchild {
	pid_t pid; /* 0 = none */
	int sock; /* -1 = none */
};

/* COPY is the file of the copy (ptcopy.h), open for reading. It has said that it is ready; else -errno. */
int ptchild_start(struct ptchild *c, int copy, struct err *e);

/* As ptwire_ask(), and what is answered. After an error other than one of R's own it has been ended. */
int ptchild_tell(struct ptchild *c, const struct ptwire_request *r, int fd, struct err *e);
int ptchild_walk(struct ptchild *c, struct ptwire_answer *ret, struct err *e);

/* End it whatever it does; harmless where there is none. */
void ptchild_stop(struct ptchild *c);

#endif
