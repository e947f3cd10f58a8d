/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit - the names of code that JIT compilers made, kept in the capture.
 *
 * Which user addresses of which process lie in memory that no ELF file is
 * mapped to is noted as stacks come; the files that name such code (jitfile_*())
 * are opened as soon as they are there, so that they outlive the process, and
 * read when the recording ends, for then they are complete. Kept is what
 * covers an address that was noted.
 */
#ifndef STACKTOOLS_RECORD_JIT_H
#define STACKTOOLS_RECORD_JIT_H

#include "capture/writer.h"
#include "record/processes.h"
#include "record/stacks.h"
#include "system/broker.h"

#include <sys/stat.h>

/*
 * jitfile - the files in which a process tells of the code it makes, opened
 * with a recorder's privileges but not trusted.
 *
 * /tmp/perf-PID.map is looked for inside the process's own root, under its
 * PID in its own PID namespace; no symbolic link is followed, and none of the
 * folders leads out of that root. A name in /tmp can be anybody's, and an
 * earlier process's: see jitfile_check().
 */

/* What has to be known of a process while it lives. */
struct jitfile_owner {
	uint32_t pid, ns_pid; /* here, and in its own PID namespace */
	uint32_t uid; /* effective, as seen from here */
	bool shares_tmp; /* its /tmp is ours */
	uint64_t start_boot_ns; /* when it began, CLOCK_BOOTTIME; 0 = not known */
	uint64_t end_ns; /* when it ended, CLOCK_MONOTONIC; 0 = it lives */
	struct worker *broker; /* for what our own rights do not reach; NULL = none */
};

/* All but the times and the broker, which are left as they are. False when the process is gone. */
bool jitfile_owner(uint32_t pid, struct jitfile_owner *ret);

/*
 * The perf map of O, through its root while it lives, else in our /tmp if it
 * shared that: a descriptor for reading and its status; -ENOENT: there is
 * none; -EMEDIUMTYPE: it is not a regular file.
 */
int jitfile_map(const struct jitfile_owner *o, struct stat *st);

/* Does PATH, of a mapping, name the jitdump file of O? */
bool jitfile_is_dump(const struct jitfile_owner *o, const char *path);

/*
 * Is a file of status ST, looked at now, O's own? -EPERM: it belongs neither
 * to its user nor to root. -ESTALE: it was last written before the process
 * began, or after it had ended: another one of the same PID wrote it. The
 * message is in E.
 */
int jitfile_check(const struct jitfile_owner *o, const struct stat *st, struct err *e);

struct jit_store;

struct jit_store_stats {
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
int jit_store_new(struct jit_store **ret, struct err *e);
void jit_store_free(struct jit_store *k);
void jit_store_broker(
	struct jit_store *k, struct worker *o); /* for what our own rights do not reach; O outlives K */

/* After process_table_event() of the same event: who makes code, or ends. */
void jit_store_event(struct jit_store *k, const struct process_table *procs, const struct procevent *ev);

/* Now and then: look for the files of those that make code. */
void jit_store_look(struct jit_store *k, uint64_t now_ns);

/*
 * A sample of KEY's process, PROC in the capture, began at FIRST_NS: after
 * process_table_emit(), and before stack_table_emit() of its user stack.
 */
void jit_store_see(struct jit_store *k, struct process_table *procs, const struct stack_table *stacks,
	const struct offcpu_key *key, uint32_t proc, uint64_t first_ns);

/* At the end of the recording: read the files and write what is kept. What cannot be read is told as options.
 */
void jit_store_write(struct jit_store *k, struct cap_writer *w);

void jit_store_stats(const struct jit_store *k, struct jit_store_stats *ret);

#endif
