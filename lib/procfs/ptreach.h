/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ptreach - registers, stacks and memory of a thread: by this process's own
 * rights, or where it has given them up through the looker (looker.h).
 */
#ifndef STACKTOOLS_PTREACH_H
#define STACKTOOLS_PTREACH_H

#include "procfs/looker.h"
#include "system/broker.h"

/* A zeroed one: our own rights. Whoever they belong to keeps both. */
struct ptreach {
	struct looker *looker; /* begun with `memory` */
	struct opener *opener; /* for the files of its mappings */
};

/* As ptquiet_take() and ptstop_take(). */
int ptreach_quiet(const struct ptreach *r, pid_t pid, pid_t tid, const uint64_t *wanted, size_t n,
	struct ptcopy *copy, struct ptquiet_call *call);
int ptreach_stop(const struct ptreach *r, pid_t tid, const uint64_t *wanted, size_t n, struct ptcopy *copy,
	struct ptstop_told *told);

/* LEN bytes of the memory of PID from ADDR on, or as far as it is mapped, 64 KiB at most: how much, or
 * -errno. */
ssize_t ptreach_memory(const struct ptreach *r, pid_t pid, uint64_t addr, void *to, size_t len);

/* The word at ADDR of PID, as it is now. */
bool ptreach_word(const struct ptreach *r, pid_t pid, uint64_t addr, uint64_t *ret);

#endif
