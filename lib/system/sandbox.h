/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sandbox - permanently giving up everything that parsing untrusted input does not need.
 *
 * For a process that has just been forked, has one thread, and will read input
 * that it receives over a socket: it computes, and writes to files whose
 * descriptors it receives. Sources: capabilities(7), prctl(2), seccomp(2),
 * landlock(7), Documentation/userspace-api/seccomp_filter.rst of Linux.
 */
#ifndef STACKTOOLS_SYSTEM_SANDBOX_H
#define STACKTOOLS_SYSTEM_SANDBOX_H

#include "base/base.h"
#include "base/bytes.h"
#include "base/err.h"
#include "system/syscall_filter.h"

#include <sys/types.h>

/*
 * pathlock - permanently giving up access by path, with Landlock.
 *
 * It applies to the calling thread and everything that it starts; open descriptors
 * stay usable. no_new_privs must be set. Source: landlock(7),
 * Documentation/userspace-api/landlock.rst of Linux.
 */

/* The Landlock version of the kernel; 0 = none, or it is disabled. */
int pathlock_version(void);

/* Deny all access by path but, except executing, below FOLDER (NULL = none). False if the kernel cannot do
 * that. */
bool pathlock_all(const char *folder);

/*
 * Deny executing by path, and deny writing, creating, removing and renaming by
 * path except below the N directories in PATHS; a file in PATHS may be written.
 * A path that is NULL or does not exist is ignored. Reading stays permitted.
 * False if the kernel cannot do that.
 */
bool pathlock_writing(const char *const *paths, size_t n);

#define SANDBOX_FD 3 /* the number that keep_fd gets; more_fds follow; 0 to 2 are /dev/null */
#define SANDBOX_FDS 2 /* further descriptors that can be open */
#define SANDBOX_OOM "1000" /* oom_score_adj: the first to be killed when memory runs out */
#define SANDBOX_RULES 24 /* at most, beside the usual ones */

struct sandbox_opts {
	int keep_fd; /* the descriptor that stays open */
	const int *more_fds; /* more descriptors, which become SANDBOX_FD + 1 and so on */
	size_t n_more;
	pid_t parent; /* its getpid(), taken before the fork: when it ends, so does this process */
	const char *comm; /* its name for ps(1) */
	uint64_t memory_bytes; /* address space that it may use, beyond its present size */
	uint64_t file_bytes; /* size of the largest file that it may write */
	size_t n_received; /* descriptors that it may receive over keep_fd and hold; 0 = SANDBOX_FDS */
	uint64_t keep_caps; /* a bit set of capabilities that it has and keeps: for a process that opens files
			       and parses nothing */
	/*
	 * The one folder whose files it may read, create, rename and remove, as the
	 * user that the caller is, without capabilities; NULL = none
	 */
	const char *folder;
	/* the system calls that it may make: with keep_caps these alone, else beside the usual ones */
	const struct syscall_rule *rules;
	size_t n_rules;
	const struct sock_fprog
		*filter; /* the result of sandbox_filter(), made before the fork; NULL = made inside */
};

/* The system call filter for O. Release *RET with syscall_filter_free(). */
int sandbox_filter(const struct sandbox_opts *o, struct sock_fprog *ret, struct err *e);

/*
 * The first step of every child process of ours: resets signal handlers, unblocks
 * all signals, ignores HUP, INT, QUIT, TERM, PIPE and XFSZ, and makes the kernel
 * send SIGKILL when the thread of PARENT that forked it ends. -ESRCH if it has
 * ended already.
 */
int child_begin(pid_t parent, struct err *e);

/* Only the last of these: the kernel clears it when a process changes its user or capabilities. */
int child_bind(pid_t parent, struct err *e);

/*
 * Enter the sandbox. Afterwards:
 *
 * - the process is in its own session, with signals as after child_begin();
 * - it has no descriptors but the above, and no writable memory that is shared
 *   with the parent;
 * - with Landlock in the kernel, it cannot access any path of any file system;
 * - it has no capability and cannot get any by exec. If it was root and may change
 *   that (CAP_SETUID, CAP_SETGID), it is the parent's private user
 *   (system/private_user.h), without supplementary groups. A parent without
 *   CAP_KILL that stays root must be able to kill it: then the saved user stays.
 *   The children of a recorder that has become its private user are that user;
 * - it leaves no core, cannot be traced, and is the first to be killed when memory
 *   runs out: see worker_first_without_memory() in system/worker.h for a parent
 *   that may not write to /proc any more;
 * - it may make system calls to read and write at an offset, to get the size of
 *   open files and truncate them, close, recvmsg, sendmsg, and for private
 *   anonymous memory that is not executable, time, random bytes and exit. Any
 *   other system call kills it with SIGSYS. Without seccomp filters in the kernel,
 *   all the rest still holds.
 *
 * With keep_caps, exactly these capabilities stay permitted and effective, paths
 * stay accessible (Landlock would deny access to other processes), and `rules`
 * lists the permitted system calls. It is the private user too if it keeps
 * CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH; without these, the effective user
 * stays, for what root owns is all that it can read. So it does with `folder`.
 *
 * -errno if something essential is refused. Then the process must only call
 * _exit(2), but SANDBOX_FD is usable unless the error is -EMFILE.
 */
int sandbox_enter(const struct sandbox_opts *o, struct err *e);

/* "files are read under seccomp and Landlock 7": the protections that the kernel has. */
void sandbox_put(struct buf *b);

#endif
