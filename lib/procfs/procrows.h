/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procrows - waits of a recording by /proc, summed by key until they are
 * written.
 */
#ifndef STACKTOOLS_PROCROWS_H
#define STACKTOOLS_PROCROWS_H

#include "base/intern.h"
#include "capture/stats.h"
#include "record/jit.h"
#include "record/names.h"
#include "record/processes.h"
#include "record/stacks.h"

struct procrows_row {
	struct offcpu_key key;
	struct offcpu_value value;
};

/* A zeroed one is empty; the pointers are the caller's. */
struct procrows {
	struct proctab *procs;
	struct stacktab *stacks;
	struct namewant *names; /* NULL = none are stored */
	struct jitkeep *jit; /* NULL = likewise */
	struct procrows_row *rows;
	size_t n, cap;
	struct idmap by_key;
	struct idmap looked_up; /* (process, user stack) whose mappings were looked at */
	struct capends user; /* how the user stacks of the waits written ended */
	uint64_t lost; /* waits for which there was no memory */
};

void procrows_free(struct procrows *r); /* releases what it holds */

void procrows_add(struct procrows *r, const struct offcpu_key *key, const struct offcpu_value *value);

/* Write all. UNMAPPED is told of a process that has a user frame where nothing is known to be mapped: it may
 * scan it again. */
void procrows_write(
	struct procrows *r, struct capwrite *w, void (*unmapped)(void *ctx, uint32_t tgid), void *ctx);

#endif
