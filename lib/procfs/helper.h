/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * helper - the process that keeps the privileges to look at threads in
 * /proc, and only copies.
 *
 * Most of what is looked at the kernel checks at every read, not when a file
 * is opened, so a descriptor would serve nobody else. Forked before there is any thread; it keeps, of what
 * the recorder has, CAP_SYS_PTRACE (other users' threads), CAP_DAC_READ_SEARCH (their files) and
 * CAP_SYS_ADMIN (/proc/TID/stack), is in a sandbox otherwise (system/sandbox.h), under a filter of system
 * calls of its own, and ends with the recorder. It parses nothing but the fixed requests of helper_*(), and
 * of a blocked thread its system call and its count of runs, which are the kernel's numbers
 * (procfs/thread_copy.h).
 *
 * What a recorder that was taken over could have of it, beyond its own
 * rights: the text of those files of any thread, which processes and threads there are. With `memory`
 * besides: memory of any process, and any thread stopped for a moment. Nothing to write.
 */
#ifndef STACKTOOLS_PROCFS_HELPER_H
#define STACKTOOLS_PROCFS_HELPER_H

#include "base/base.h"
#include "base/bytes.h"
#include "procfs/thread_copy.h"
#include "system/broker.h"
#include "system/drop.h"
#include "system/worker.h"

#include <stddef.h>
#include <stdint.h>

/*
 * procfile - the small files of a thread in /proc/PID/task/TID that are read
 * of it.
 */

/* In the order in which they are read. */
enum procfile {
	PROCFILE_SCHEDSTAT,
	PROCFILE_STATUS,
	PROCFILE_STAT,
	PROCFILE_SYSCALL,
	PROCFILE_STACK,
	PROCFILE_WCHAN,
	PROCFILE_CGROUP,
	PROCFILE_EXE, /* of the program: PROCFILE_EXE_BYTES */
	PROCFILE_COUNT
};

#define PROCFILE_LOOK (PROCFILE_WCHAN + 1) /* those before are what a look may take */
#define PROCFILE_EXE_BYTES 16 /* its e_ident: elf(5) */

/* How much of one is read: no kernel writes more of any, but of cgroup where there are many hierarchies. */
#define PROCFILE_TEXT 8192

const char *procfile_name(enum procfile f);

/*
 * helper - what a recorder by /proc asks of the process that kept the
 * privileges to look, and the answers.
 *
 * One message of a SEQPACKET socket each, by system/worker.h. Both ends are one program,
 * forked; the answering end checks every request all the same (helper_*()).
 */

#define HELPER_BYTES (64u << 10) /* of memory, in one answer */
#define HELPER_NUMBERS (HELPER_BYTES / 4) /* of a list */
#define HELPER_WANTED (THREAD_COPY_AREAS - 1)

enum helper_kind {
	HELPER_FILES = 1, /* the text of files of a thread: ARG has a bit for each enum procfile */
	HELPER_FORGET, /* its files need not be kept open any more */
	HELPER_LIST, /* the processes that there are (PID 0), or the threads of PID, from the ARG-th on */
	/* refused unless it was asked for when the process was begun: */
	HELPER_QUIET, /* quiet_copy_take() with N areas at WANTED */
	HELPER_STOP, /* stop_copy_take() */
	HELPER_AREA, /* the bytes of area ARG of the last copy */
	HELPER_MEMORY, /* N bytes of the memory of PID from WANTED[0] on */
	HELPER_KINDS
};

struct helper_request {
	uint32_t kind, pid, tid, arg, n;
	uint32_t keep; /* FILES: keep them open for the next time */
	uint64_t wanted[HELPER_WANTED];
};

/* FILES. A text that was not read, as nothing of it is needed, has length 0. */
struct helper_files_reply {
	int32_t len[PROCFILE_COUNT]; /* or -errno */
	char text[PROCFILE_COUNT * PROCFILE_TEXT]; /* one after the other; sent as far as it is used */
};

/* QUIET and STOP: `call` is of the one, `told` of the other. */
struct helper_copy_reply {
	struct thread_copy_head head;
	struct quiet_copy_call call;
	struct stop_copy_told told;
};

union helper_reply {
	struct helper_files_reply files;
	uint32_t numbers[HELPER_NUMBERS]; /* sent as far as it is used, as is the next */
	uint8_t bytes[HELPER_BYTES];
	struct helper_copy_reply copy;
};

/*
 * helper - asking the process that kept the privileges to look at threads
 * (helper_*()).
 *
 * Every call is for one thread of the caller's, and takes L NULL: no helper;
 * then, and once it has ended, the result is -ENOTCONN, and the caller looks
 * as far as its own rights go.
 */

struct helper;
int helper_ready(struct helper *l, struct err *e); /* wait until it is in its sandbox */
void helper_free(struct helper *l); /* ends the process; NULL is fine */
uint32_t helper_pid(const struct helper *l); /* 0 = none, or it has ended */
void helper_stats(struct helper *l, struct worker_stats *ret); /* L NULL: all zero */
uint64_t helper_cpu_ns(const struct helper *l); /* the CPU time that it has taken; 0 = it has ended */

/* The texts of the files of WANTED (bits of enum procfile) of a thread. */
struct helper_texts {
	int32_t len[PROCFILE_COUNT]; /* or -errno; 0 for one that was not read */
	const char *text[PROCFILE_COUNT]; /* the helper's, until it is asked the next time */
};

/*
 * Once the text of syscall says that the thread runs, neither stack nor wchan
 * is read, and no wchan where there is a stack. KEEP: its files stay open
 * there until helper_forget(): an open file of /proc is that of one thread
 * for good. 0, or -errno.
 */
int helper_files(struct helper *l, uint32_t pid, uint32_t tid, unsigned int wanted, bool keep,
	struct helper_texts *ret);
void helper_forget(struct helper *l, uint32_t pid, uint32_t tid);

/* FN for each process that there is, or with PID for each thread of that one. 0 or -errno. */
int helper_list(struct helper *l, uint32_t pid, void (*fn)(void *ctx, uint32_t number), void *ctx);

/* As quiet_copy_take() and stop_copy_take(). -EPERM: it was not begun for that. */
int helper_quiet(struct helper *l, pid_t pid, pid_t tid, const uint64_t *wanted, size_t n,
	struct thread_copy *copy, struct quiet_copy_call *call);
int helper_stop(struct helper *l, pid_t tid, const uint64_t *wanted, size_t n, struct thread_copy *copy,
	struct stop_copy_told *told);

/* Memory of PID from ADDR on, LEN bytes or up to what is not mapped: how much, or -errno. */
ssize_t helper_memory(struct helper *l, pid_t pid, uint64_t addr, void *to, size_t len);

/*
 * proc_view - which processes and threads /proc shows, and the text of their
 * files, by this process's own rights or else through the helper (NULL is
 * fine).
 */

/*
 * FN for the number of each process, or with PID of each thread of that one.
 * Where there is a helper it is asked first: /proc hides from us what it does
 * not hide from that one (hidepid). 0, or -errno where there is no such list.
 */
int proc_view_list(struct helper *l, uint32_t pid, void (*fn)(void *ctx, uint32_t number), void *ctx);

/* The text of file F of thread TID of process PID, up to CAP bytes: its length, or -errno. */
ssize_t proc_view_text(struct helper *l, uint32_t pid, uint32_t tid, enum procfile f, char *text, size_t cap);

/*
 * thread_memory - registers, stacks and memory of a thread: by this process's own
 * rights, or where it has given them up through the helper (helper_*()).
 */

/* A zeroed one: our own rights. Whoever they belong to keeps both. */
struct thread_memory {
	struct helper *helper; /* begun with `memory` */
	struct worker *broker; /* for the files of its mappings */
};

/* As quiet_copy_take() and stop_copy_take(). */
int thread_memory_quiet(const struct thread_memory *r, pid_t pid, pid_t tid, const uint64_t *wanted, size_t n,
	struct thread_copy *copy, struct quiet_copy_call *call);
int thread_memory_stop(const struct thread_memory *r, pid_t tid, const uint64_t *wanted, size_t n,
	struct thread_copy *copy, struct stop_copy_told *told);

/* LEN bytes of the memory of PID from ADDR on, or as far as it is mapped, 64 KiB at most: how much, or
 * -errno. */
ssize_t thread_memory_memory(const struct thread_memory *r, pid_t pid, uint64_t addr, void *to, size_t len);

/* The word at ADDR of PID, as it is now. */
bool thread_memory_word(const struct thread_memory *r, pid_t pid, uint64_t addr, uint64_t *ret);

/*
 * fdlimit - how many descriptors this process may have.
 */

/* Raise the soft limit to MOST, or as far as the hard one lets; returns what it is then, 0 where that cannot
 * be told. */
size_t fdlimit_raise(size_t most);

struct helper_opts {
	bool memory; /* memory is read and threads are stopped, for --ptrace */
};

/*
 * Start one, before there is any thread; *RET is the caller's, who asks it
 * with helper_ready() whether it is there. NULL where there is no capability
 * to be kept: then everything is looked at directly.
 */
int helper_start(const struct helper_opts *o, struct helper **ret, struct err *e);

/*
 * procfs_priv - the privileges of a recording by /proc: given up for good before
 * anything is read that a recorded process can have written.
 *
 * What looking at others takes is kept by two processes that parse nothing:
 * the helper (helper_*()) and the broker (system/broker.h).
 */

struct procfs_priv {
	struct helper *helper; /* NULL = there is nothing to be kept: one's own rights are all */
	struct worker *broker;
	uint64_t helper_caps, broker_caps; /* what they keep */
	struct priv_drop dropped;
	bool told; /* that one of them has ended */
};

/*
 * All capabilities at once, first of all: for a binary that has some which
 * its caller lacks, as it would show by them what the caller may not see.
 */
int procfs_priv_renounce(struct err *e);

/*
 * Before there is any thread, and after everything else that takes
 * privileges. MEMORY: for --ptrace. A process that cannot be started is told
 * in *WHY (msg "" else), and then our own rights are all.
 */
int procfs_priv_drop(struct procfs_priv *p, bool memory, struct err *why, struct err *e);
void procfs_priv_close(struct procfs_priv *p); /* a zeroed one is fine */

/* "no capabilities, ...; the process that looks at threads keeps ..." */
void procfs_priv_put(const struct procfs_priv *p, struct buf *b);

/* Once when one of the two has ended before its time: true, and why. */
bool procfs_priv_missed(struct procfs_priv *p, struct err *why);

#endif
