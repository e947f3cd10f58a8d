/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * idchild - a process without privileges that reads build IDs, for a recorder
 * that still has some: ELF files belong to whoever is recorded. Floor 5.
 */
#ifndef STACKTOOLS_IDCHILD_H
#define STACKTOOLS_IDCHILD_H

#include "capture.h"
#include "err.h"

#include <sys/types.h>

struct idchild {
	pid_t pid; /* 0 = none */
	int sock;
	unsigned int begun; /* how often it had to be */
};

/* Before there is any thread, and while a user can still be changed. */
int idchild_start(struct idchild *c, struct err *e);
void idchild_stop(struct idchild *c); /* a zeroed one is fine */

/*
 * As buildid_read(), there. -ECHILD where it ended over it, -ETIMEDOUT where
 * it was not done in five seconds: it is begun again for the next file, a few
 * times.
 */
int idchild_read(struct idchild *c, int fd, struct cap_build_id *ret);

#endif
