/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tabchild - the process that compiles unwind tables, as its parent sees it:
 * begun, talked to over a socket, ended.
 */
#ifndef STACKTOOLS_TABCHILD_H
#define STACKTOOLS_TABCHILD_H

#include "unwind/tabserve.h"

#include <sys/types.h>

struct tabchild {
	pid_t pid; /* 0 = none */
	int sock; /* for tabwire.h, -1 = none */
};

struct tabchild_opts {
	uint64_t memory_bytes, table_bytes; /* as memory_bytes and file_bytes of sandbox.h */
	tabserve_compile *compile;
};

/* Fork it: it enters its sandbox and answers requests. 0, or -errno with *C as if never begun. */
int tabchild_start(const struct tabchild_opts *o, struct tabchild *c, struct err *e);

/*
 * End it whatever it does; harmless where there is none. WHY (CAP bytes, may
 * be NULL) tells how it had ended if it had. Takes a second at most: one that
 * waits for a file system (FUSE) dies when that answers, and is not waited for.
 */
void tabchild_stop(struct tabchild *c, char *why, size_t cap);

#endif
