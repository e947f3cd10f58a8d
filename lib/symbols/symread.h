/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symread - symchild_run() within bounds that all processes share, and only for
 * what no earlier run has kept (symkeep.h).
 */
#ifndef STACKTOOLS_SYMREAD_H
#define STACKTOOLS_SYMREAD_H

#include "symbols/symchild.h"
#include "symbols/symkeep.h"

#define SYMREAD_MEMORY_LEAST (UINT64_C(64) << 20) /* of a process: less reads nothing */

struct symread {
	unsigned int jobs; /* processes at the same time; 0 = one for each CPU that is online */
	uint64_t memory_bytes; /* of all of them together; 0 = 2 GiB */
	unsigned int seconds; /* for each job; 0 = 60 */
	struct symkeep *keep; /* NULL = everything is read */
	void (*done)(void *ctx, struct symchild_job *job); /* for each as it ends; may be NULL */
	void (*tick)(void *ctx); /* as in symchild.h */
	void *ctx;
};

/*
 * Run JOBS, whose order may be another one afterwards. Each job's outcome is in it: one that was
 * kept took no time (ns is 0) and may have more addresses than were asked for.
 */
void symread_run(const struct symread *r, struct symchild_job *jobs, size_t n);

#endif
