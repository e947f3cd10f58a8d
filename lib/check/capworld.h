/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capworld - processes to try capabilities on: ones that are there for nothing
 * else, so that whatever is done to them harms nobody.
 *
 * Each of them runs as another user, has no capability, and has mapped a file
 * that is its own (in memory, mode 0600) beside what every process maps. They
 * end when the world is closed, or when the process that opened it is gone,
 * however it went.
 */
#ifndef STACKTOOLS_CAPWORLD_H
#define STACKTOOLS_CAPWORLD_H

#include "base/err.h"

#include <sys/types.h>

#define CAPWORLD_USER 65534 /* nobody */
#define CAPWORLD_OTHER 65533 /* somebody else */
#define CAPWORLD_MAGIC UINT64_C(0x5354414b544f4f4c) /* the first bytes of the file of its own */

enum capworld_process {
	CAPWORLD_OF_ROOT, /* of user 0 */
	CAPWORLD_OF_USER, /* of the ordinary user */
	CAPWORLD_OF_OTHER, /* of user CAPWORLD_OTHER */
	CAPWORLD_HIDDEN, /* of the same, and not dumpable: as one that had privileges */
	CAPWORLD_PROCESSES,
};

/* What is mapped, at the same place in each of the processes. */
struct capworld_map {
	uintptr_t start, end;
	char path[256];
};

struct capworld {
	pid_t pid[CAPWORLD_PROCESSES]; /* 0 = could not be had */
	uid_t user; /* the ordinary user */
	struct capworld_map common; /* of a library that everybody may read */
	struct capworld_map own; /* of the file of its own; no path */
	int hold_fd; /* as long as it is open they live */
};

/*
 * Start them; *RET is the caller's, released with capworld_close(). USER is
 * the ordinary user. One that this process may not become is absent; fails
 * only where there is no process to be had at all.
 */
int capworld_open(uid_t user, struct capworld *ret, struct err *e);
void capworld_close(struct capworld *w); /* ends and reaps them; a zeroed one is fine */

/* In a child that is no part of the world: let go of it. */
void capworld_leave(struct capworld *w);

#endif
