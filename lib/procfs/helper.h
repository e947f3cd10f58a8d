/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * helper - the process that keeps the privileges to read threads in /proc, and
 * only copies.
 *
 * For most of these files the kernel checks permissions at every read, not when
 * the file is opened, so passing a descriptor to another process would not help.
 * The helper is forked before there is any thread. Of the capabilities that the
 * recorder has, it keeps CAP_SYS_PTRACE (other users' threads),
 * CAP_DAC_READ_SEARCH (their files) and CAP_SYS_ADMIN (/proc/TID/stack).
 * Otherwise it is in a sandbox (system/sandbox.h), with its own system call
 * filter, and it ends with the recorder. It parses only the fixed requests of
 * helper_*() and, of a thread, the letter of its state, its system call and its
 * count of runs, which are the kernel's (procfs/thread_copy.h).
 *
 * A compromised recorder could get from it, beyond its own permissions: the text
 * of these files of any thread, and which processes and threads there are. With
 * `memory` also: memory of any process, and any thread stopped for a moment. It
 * could write nothing.
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
 * procfile - the small files of a thread in /proc/PID/task/TID that are read.
 */

/* In the order in which they are read. */
enum procfile {
	PROCFILE_SCHEDSTAT,
	PROCFILE_STATUS,
	PROCFILE_STAT,
	PROCFILE_SYSCALL,
	PROCFILE_STACK,
	PROCFILE_WCHAN,
	PROCFILE_AGAIN, /* schedstat once more: has the thread run meanwhile? */
	PROCFILE_CGROUP,
	PROCFILE_EXE, /* the first PROCFILE_EXE_BYTES of the program */
	PROCFILE_COUNT
};

#define PROCFILE_LOOK (PROCFILE_WCHAN + 1) /* the files before this one are kept open for samples */
#define PROCFILE_EXE_BYTES 20 /* e_ident, e_type, e_machine: elf(5) */

/* Bytes to read of a file. No kernel writes more, except for cgroup if there are many hierarchies. */
#define PROCFILE_TEXT 8192

const char *procfile_name(enum procfile f);

/*
 * helper - the requests of the recorder to the helper, and the replies.
 *
 * Each is one message on a SEQPACKET socket, see system/worker.h. Both ends are
 * one program, forked. The helper checks every request all the same
 * (helper_*()).
 */

#define HELPER_THREADS 128 /* whose files one request may ask for */
#define HELPER_TEXT (192u << 10) /* bytes of texts, in one reply: less than net.core.wmem_default */
#define HELPER_STACK (16u << 10) /* bytes of the stack of one of these threads */
#define HELPER_BYTES (64u << 10) /* of memory, in one reply */
#define HELPER_NUMBERS (HELPER_BYTES / 4) /* of a list, in one reply */
#define HELPER_WANTED (THREAD_COPY_AREAS - 1)

enum helper_kind {
	HELPER_FILES = 1, /* the texts of files of N threads, as many as fit in a reply */
	HELPER_FORGET, /* close the thread's files */
	HELPER_LIST, /* the processes (PID 0), or the threads of PID, from the ARG-th on */
	/* refused unless the helper was started with `memory`: */
	HELPER_QUIET, /* quiet_copy_take() with N areas at WANTED */
	HELPER_STOP, /* stop_copy_take() */
	HELPER_AREA, /* the bytes of area ARG of the last copy */
	HELPER_MEMORY, /* N bytes of the memory of PID from WANTED[0] on */
	HELPER_KINDS
};

struct helper_thread {
	uint32_t pid, tid;
	uint32_t files; /* a bit for each enum procfile */
	uint32_t stack; /* with PROCFILE_AGAIN: the memory of its stack too; refused as the kinds above */
};

struct helper_request {
	uint32_t kind, pid, tid, arg, n;
	uint32_t keep; /* FILES: keep them open for the next request */
	uint64_t wanted[HELPER_WANTED];
	struct helper_thread threads[HELPER_THREADS]; /* FILES: N of them */
};

/* FILES. A text that was not read, because it is not needed, has length 0. */
struct helper_files_reply {
	uint32_t n; /* threads, the first ones of the request */
	uint32_t unused;
	struct {
		uint64_t at_ns; /* CLOCK_MONOTONIC, right before the first file was read */
		uint64_t stack_from; /* the address of its stack's memory, from SP or a little below it on, */
		int32_t stack_len; /* and how much of that was read, or -errno */
		int32_t len[PROCFILE_COUNT]; /* or -errno */
	} threads[HELPER_THREADS];
	/* of each thread the texts, one after the other, the memory before AGAIN's; only the used part is
	 * sent */
	char text[HELPER_TEXT];
};

/* QUIET and STOP: `call` is for the one, `reported` for the other. */
struct helper_copy_reply {
	struct thread_copy_head head;
	struct quiet_copy_call call;
	struct stop_copy_report reported;
	/* of the first areas, as many as fit, one after the other; only the used part is sent. AREA has the
	 * others */
	uint8_t bytes[HELPER_BYTES];
};

union helper_reply {
	struct helper_files_reply files;
	uint32_t numbers[HELPER_NUMBERS]; /* only the used part is sent, like the next */
	uint8_t bytes[HELPER_BYTES];
	struct helper_copy_reply copy;
};

/*
 * helper - the calls that send requests to the helper (helper_*()).
 *
 * All calls must come from one thread of the caller. L may be NULL: no helper.
 * Then, and once it has ended, the result is -ENOTCONN, and the caller reads what
 * its own permissions allow.
 */

struct helper;
int helper_ready(struct helper *l, struct err *e); /* wait until it is in its sandbox */
void helper_free(struct helper *l); /* ends the process; NULL is fine */
uint32_t helper_pid(const struct helper *l); /* 0 = none, or it has ended */
void helper_stats(struct helper *l, struct worker_stats *ret); /* L NULL: all zero */
uint64_t helper_cpu_ns(const struct helper *l); /* the CPU time it has used; 0 = none, or it has ended */

/* The texts of the requested files of a thread. */
struct helper_texts {
	uint32_t files; /* that were requested */
	uint64_t at_ns; /* as in struct helper_files_reply, like the next two */
	uint64_t stack_from;
	int32_t stack_len;
	int32_t len[PROCFILE_COUNT]; /* or -errno; 0 for one that was not read */
	const char *text[PROCFILE_COUNT]; /* owned by L, like the next */
	const char *stack;
};

/*
 * Read the files of WANTED (bits of enum procfile). If stat or syscall says that
 * the thread does not wait, all that shows where it waits is skipped; if there is
 * a stack, wchan is. KEEP: the helper keeps the files open until helper_forget().
 * An open file of /proc belongs to one thread for good. 0, or -errno. The texts
 * are valid until the next request.
 */
int helper_files(struct helper *l, uint32_t pid, uint32_t tid, unsigned int wanted, bool keep,
	struct helper_texts *ret);

/*
 * The same for the N threads at THREADS, at most HELPER_THREADS, to RET, which has
 * room for N: of the first ones, as many as fit in a reply. Files stay open.
 * Returns how many, at least 1, or -errno. The texts are valid until the next call
 * of this function.
 */
ssize_t helper_files_of(
	struct helper *l, const struct helper_thread *threads, size_t n, struct helper_texts *ret);
void helper_forget(struct helper *l, uint32_t pid, uint32_t tid);

/* Call FN for each process or, if PID is not 0, for each thread of that process. 0 or -errno. */
int helper_list(struct helper *l, uint32_t pid, void (*fn)(void *ctx, uint32_t number), void *ctx);

/* As quiet_copy_take() and stop_copy_take(). Also -EPERM if the helper was started without `memory`. */
int helper_quiet(struct helper *l, pid_t pid, pid_t tid, const uint64_t *wanted, size_t n,
	struct thread_copy *copy, struct quiet_copy_call *call);
int helper_stop(struct helper *l, pid_t tid, const uint64_t *wanted, size_t n, struct thread_copy *copy,
	struct stop_copy_report *reported);

/* Read LEN bytes of PID's memory from ADDR on, or as far as it is mapped. Returns the length, or -errno. */
ssize_t helper_memory(struct helper *l, pid_t pid, uint64_t addr, void *to, size_t len);

/*
 * proc_view - the processes and threads that /proc shows, and the text of their
 * files: with this process's own permissions, or through the helper (may be
 * NULL).
 */

/*
 * Call FN for each process or, if PID is not 0, for each thread of that process.
 * If there is a helper, it makes the list: /proc may hide from us what it shows
 * to the helper (hidepid). 0, or -errno if there is no such list.
 */
int proc_view_list(struct helper *l, uint32_t pid, void (*fn)(void *ctx, uint32_t number), void *ctx);

/* The text of file F of thread TID of process PID, up to CAP bytes: its length, or -errno. */
ssize_t proc_view_text(struct helper *l, uint32_t pid, uint32_t tid, enum procfile f, char *text, size_t cap);

/*
 * thread_memory - registers, stacks and memory of a thread: through the helper
 * (helper_*()), or without one with this process's own permissions.
 */

/* A zeroed one means our own permissions. Does not own the pointers. */
struct thread_memory {
	struct helper *helper; /* started with `memory` */
	struct worker *broker; /* for the files of its mappings */
};

/* As quiet_copy_take() and stop_copy_take(). */
int thread_memory_quiet(const struct thread_memory *r, pid_t pid, pid_t tid, const uint64_t *wanted, size_t n,
	struct thread_copy *copy, struct quiet_copy_call *call);
int thread_memory_stop(const struct thread_memory *r, pid_t tid, const uint64_t *wanted, size_t n,
	struct thread_copy *copy, struct stop_copy_report *reported);

/*
 * Read LEN bytes of the memory of PID from ADDR on, or as far as it is mapped, at
 * most 64 KiB. Returns the length, or -errno.
 */
ssize_t thread_memory_memory(const struct thread_memory *r, pid_t pid, uint64_t addr, void *to, size_t len);

/* The word at ADDR of PID, as it is now. False if it cannot be read. */
bool thread_memory_word(const struct thread_memory *r, pid_t pid, uint64_t addr, uint64_t *ret);

/*
 * fdlimit - the limit on the number of descriptors of this process.
 */

/* Raise the soft limit to MOST, or as far as the hard limit allows. Returns the new limit, 0 if unknown. */
size_t fdlimit_raise(size_t most);

struct helper_opts {
	bool memory; /* allow reading memory and stopping threads, for --ptrace */
};

/*
 * Start a helper, before there is any thread. The caller owns *RET, and waits for
 * it with helper_ready(). *RET is NULL if there is no capability to keep: then
 * everything is read directly.
 */
int helper_start(const struct helper_opts *o, struct helper **ret, struct err *e);

/*
 * procfs_priv - the privileges of a recording by /proc, which it drops for good
 * before it reads anything that a recorded process can have written.
 *
 * Two processes that parse nothing keep the privileges to read other processes:
 * the helper (helper_*()) and the broker (system/broker.h).
 */

struct procfs_priv {
	struct helper *helper; /* NULL = nothing to keep: only our own permissions */
	struct worker *broker;
	uint64_t helper_caps, broker_caps; /* what they keep */
	struct priv_drop dropped;
	bool reported; /* that one of them has ended was reported */
};

/*
 * Drop all capabilities at once, before anything else. For a binary that has
 * capabilities which its caller lacks: with them, it would show what the caller
 * may not see.
 */
int procfs_priv_renounce(struct err *e);

/*
 * Call it before there is any thread, and after everything else that needs
 * privileges. MEMORY: for --ptrace. If one of the processes cannot be started,
 * *WHY says why; otherwise its msg is "". Without the helper there are only our
 * own permissions.
 */
int procfs_priv_drop(struct procfs_priv *p, bool memory, struct err *why, struct err *e);
void procfs_priv_close(struct procfs_priv *p); /* a zeroed one is fine */

/* "no capabilities, ...; the process that samples threads keeps ..." */
void procfs_priv_put(const struct procfs_priv *p, struct buf *b);

/* True, once, if one of the two has ended early; *WHY says why. */
bool procfs_priv_missed(struct procfs_priv *p, struct err *why);

#endif
