/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit - the names of code that JIT compilers made, stored in the capture.
 *
 * As stacks arrive, the user addresses of each process that lie outside mapped
 * ELF files are noted. The files that name such code (jitfile_*()) are opened
 * as soon as they exist, so that they outlive the process, and read when the
 * recording ends, because only then they are complete. Only code that covers a
 * noted address is stored.
 */
#ifndef STACKTOOLS_RECORD_JIT_H
#define STACKTOOLS_RECORD_JIT_H

#include "capture/writer.h"
#include "record/processes.h"
#include "record/stacks.h"
#include "system/broker.h"

#include <sys/stat.h>

/*
 * jitfile - the files in which a process describes the code it makes, opened
 * with the recorder's privileges but not trusted.
 *
 * /tmp/perf-PID.map is searched for inside the process's own root, with its
 * PID in its own PID namespace. The file may not be a symbolic link, and no
 * directory leads out of that root. A file in /tmp may belong to anyone, or to
 * an earlier process: see jitfile_check().
 */

/* What must be read about a process while it lives. */
struct jitfile_owner {
	uint32_t pid, ns_pid; /* here, and in its own PID namespace */
	uint32_t uid; /* effective, as seen from here */
	bool shares_tmp; /* its /tmp is ours */
	uint64_t start_boot_ns; /* when it began, CLOCK_BOOTTIME; 0 = not known */
	uint64_t end_ns; /* when it ended, CLOCK_MONOTONIC; 0 = it lives */
	struct worker *broker; /* opens what this process may not open; NULL = none */
};

/* Set all but the times, using RET->broker. False if the process is gone. */
bool jitfile_owner(uint32_t pid, struct jitfile_owner *ret);

/*
 * Open the perf map of O: through its root while it lives, else in our /tmp if
 * it shared that. A descriptor for reading, and its status; -ENOENT: there is
 * none; -EMEDIUMTYPE: it is not a regular file.
 */
int jitfile_map(const struct jitfile_owner *o, struct stat *st);

/* Does PATH, from a mapping, name the jitdump file of O? */
bool jitfile_is_dump(const struct jitfile_owner *o, const char *path);

/*
 * Does the file with status ST, read just now, belong to O? -EPERM: it belongs
 * neither to its user nor to root. -ESTALE: it was last written before the
 * process began, or after it had ended, so by another process with the same
 * PID. The message is in E.
 */
int jitfile_check(const struct jitfile_owner *o, const struct stat *st, struct err *e);

struct jit_store;

struct jit_store_stats {
	uint64_t processes; /* with addresses in such memory */
	uint64_t unseen; /* of them, those whose files could not be searched for or kept open: the process
			    had ended, or there were too many */
	uint64_t maps_read; /* perf maps and jitdump files */
	uint64_t entries_kept;
	uint64_t bad_lines; /* malformed lines and records in them */
	uint64_t refused; /* files that belong to another user or are not regular files */
	uint64_t stale; /* files of an earlier or later process with the same PID */
	uint64_t failed; /* files that could not be read */
	uint64_t cut; /* addresses and pieces of code beyond the limits */
};

/* All functions but jit_store_new() accept K NULL, and then do nothing. */
int jit_store_new(struct jit_store **ret, struct err *e);
void jit_store_free(struct jit_store *k);
void jit_store_broker(
	struct jit_store *k, struct worker *o); /* O opens what this process may not; it must outlive K */

/* Note processes that make code or end. Call it after process_table_event() for the same event. */
void jit_store_event(struct jit_store *k, const struct process_table *procs, const struct procevent *ev);

/* Search for the files of the processes that make code. Call it from time to time. */
void jit_store_poll(struct jit_store *k, uint64_t now_ns);

/* Forget the stacks that are no longer in STACKS: stack_table_forget(). */
void jit_store_forget(struct jit_store *k, const struct stack_table *stacks);

/*
 * Note a sample that began at FIRST_NS, of KEY's process, PROC in the capture.
 * Call it after process_table_emit() and before stack_table_emit() of its user
 * stack.
 */
void jit_store_see(struct jit_store *k, struct process_table *procs, const struct stack_table *stacks,
	const struct offcpu_key *key, uint32_t proc, uint64_t first_ns);

/*
 * At the end of the recording: read the files and write the code that covers
 * noted addresses. Files that cannot be read are reported as options of the
 * capture.
 */
void jit_store_write(struct jit_store *k, struct cap_writer *w);

void jit_store_stats(const struct jit_store *k, struct jit_store_stats *ret);

#endif
