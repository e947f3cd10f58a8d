/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lookchild - the process that keeps the privileges to look at threads in
 * /proc, and only copies.
 *
 * Most of what is looked at the kernel checks at every read, not when a file
 * is opened, so a descriptor would serve nobody else. Forked before there is any thread; it keeps, of what
 * the recorder has, CAP_SYS_PTRACE (other users' threads), CAP_DAC_READ_SEARCH (their files) and
 * CAP_SYS_ADMIN (/proc/TID/stack), is in a sandbox otherwise (sandbox.h), under a filter of system calls of
 * its own, and ends with the recorder. It parses nothing but the fixed requests of lookwire.h, and of a
 * blocked thread its system call and its count of runs, which are the
 * kernel's numbers (ptquiet.h).
 *
 * What a recorder that was taken over could have of it, beyond its own
 * rights: the text of those files of any thread, which processes and threads there are. With `memory`
 * besides: memory of any process, and any thread stopped for a moment. Nothing to write.
 */
#ifndef STACKTOOLS_LOOKCHILD_H
#define STACKTOOLS_LOOKCHILD_H

#include "procfs/looker.h"

struct lookchild_opts {
	bool memory; /* memory is read and threads are stopped, for --ptrace */
};

/*
 * Start one, before there is any thread; *RET is the caller's, who asks it
 * with looker_ready() whether it is there. NULL where there is no capability
 * to be kept: then everything is looked at directly.
 */
int lookchild_start(const struct lookchild_opts *o, struct looker **ret, struct err *e);

/* The capabilities that it keeps, as a bit set, of those that this process has. */
uint64_t lookchild_caps(void);

#endif
