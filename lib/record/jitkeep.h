/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jitkeep - the names of code that JIT compilers made, kept in the capture.
 *
 * Which user addresses of which process lie in memory that no ELF file is
 * mapped to is noted as stacks come; the files that name such code (jitfile.h)
 * are opened as soon as they are there, so that they outlive the process, and
 * read when the recording ends, for then they are complete. Kept is what
 * covers an address that was noted.
 */
#ifndef STACKTOOLS_JITKEEP_H
#define STACKTOOLS_JITKEEP_H

#include "capture/writer.h"
#include "record/proctab.h"
#include "record/stacktab.h"
#include "system/broker.h"

struct jitkeep;

struct jitkeep_stats {
	uint64_t processes; /* with addresses in such memory */
	uint64_t unseen; /* of them, those whose files could not be looked for or kept: they had ended, or
			    were too many */
	uint64_t maps_read; /* perf maps and jitdump files */
	uint64_t entries_kept;
	uint64_t bad_lines; /* lines and records that are none, in what was read */
	uint64_t refused; /* files that belong to another user or are no regular ones */
	uint64_t stale; /* files of an earlier or a later process of the same PID */
	uint64_t failed; /* files that could not be read */
	uint64_t cut; /* addresses and pieces of code beyond the limits */
};

/* NULL is fine for all of these: nothing is kept then. */
int jitkeep_new(struct jitkeep **ret, struct err *e);
void jitkeep_free(struct jitkeep *k);
void jitkeep_opener(
	struct jitkeep *k, struct opener *o); /* for what our own rights do not reach; O outlives K */

/* After proctab_event() of the same event: who makes code, or ends. */
void jitkeep_event(struct jitkeep *k, const struct proctab *procs, const struct procevent *ev);

/* Now and then: look for the files of those that make code. */
void jitkeep_look(struct jitkeep *k, uint64_t now_ns);

/*
 * A sample of KEY's process, PROC in the capture, began at FIRST_NS: after
 * proctab_emit(), and before stacktab_emit() of its user stack.
 */
void jitkeep_see(struct jitkeep *k, struct proctab *procs, const struct stacktab *stacks,
	const struct offcpu_key *key, uint32_t proc, uint64_t first_ns);

/* At the end of the recording: read the files and write what is kept. What cannot be read is told as options.
 */
void jitkeep_write(struct jitkeep *k, struct capwrite *w);

void jitkeep_stats(const struct jitkeep *k, struct jitkeep_stats *ret);

#endif
