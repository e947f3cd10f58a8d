/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * looker - asking the process that kept the privileges to look at threads
 * (lookchild.h).
 *
 * Every call is for one thread of the caller's, and takes L NULL: no looker;
 * then, and once it has ended, the result is -ENOTCONN, and the caller looks
 * as far as its own rights go.
 */
#ifndef STACKTOOLS_LOOKER_H
#define STACKTOOLS_LOOKER_H

#include "procfs/lookwire.h"
#include "system/worker.h"

struct looker;

/* Over SOCK, the looker's from now on, to its process PID (0 = none of ours, for tests). *RET is the
 * caller's. */
int looker_new(int sock, pid_t pid, struct looker **ret, struct err *e);
int looker_ready(struct looker *l, struct err *e); /* wait until it is in its sandbox */
void looker_free(struct looker *l); /* ends the process; NULL is fine */
uint32_t looker_pid(const struct looker *l); /* 0 = none, or it has ended */
void looker_stats(struct looker *l, struct asker_stats *ret); /* L NULL: all zero */
uint64_t looker_cpu_ns(const struct looker *l); /* the CPU time that it has taken; 0 = it has ended */

/* The texts of the files of WANTED (bits of enum procfile) of a thread. */
struct looker_texts {
	int32_t len[PROCFILE_COUNT]; /* or -errno; 0 for one that was not read */
	const char *text[PROCFILE_COUNT]; /* the looker's, until it is asked the next time */
};

/*
 * Once the text of syscall says that the thread runs, neither stack nor wchan
 * is read, and no wchan where there is a stack. KEEP: its files stay open
 * there until looker_forget(): an open file of /proc is that of one thread
 * for good. 0, or -errno.
 */
int looker_files(struct looker *l, uint32_t pid, uint32_t tid, unsigned int wanted, bool keep,
	struct looker_texts *ret);
void looker_forget(struct looker *l, uint32_t pid, uint32_t tid);

/* FN for each process that there is, or with PID for each thread of that one. 0 or -errno. */
int looker_list(struct looker *l, uint32_t pid, void (*fn)(void *ctx, uint32_t number), void *ctx);

/* As ptquiet_take() and ptstop_take(). -EPERM: it was not begun for that. */
int looker_quiet(struct looker *l, pid_t pid, pid_t tid, const uint64_t *wanted, size_t n,
	struct ptcopy *copy, struct ptquiet_call *call);
int looker_stop(struct looker *l, pid_t tid, const uint64_t *wanted, size_t n, struct ptcopy *copy,
	struct ptstop_told *told);

/* Memory of PID from ADDR on, LEN bytes or up to what is not mapped: how much, or -errno. */
ssize_t looker_memory(struct looker *l, pid_t pid, uint64_t addr, void *to, size_t len);

#endif
