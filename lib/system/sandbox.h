/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sandbox - giving up for good whatever work on hostile bytes does not take.
 *
 * For a process that has just been forked, is of one thread, and will read
 * what somebody hands it over a socket: it computes, and writes into files
 * that it is handed. Sources: capabilities(7), prctl(2), seccomp(2), landlock(7),
 * Documentation/userspace-api/seccomp_filter.rst of Linux.
 */
#ifndef STACKTOOLS_SYSTEM_SANDBOX_H
#define STACKTOOLS_SYSTEM_SANDBOX_H

#include "base/base.h"
#include "base/bytes.h"
#include "base/err.h"
#include "system/syscall_filter.h"

#include <sys/types.h>

/*
 * pathlock - giving up paths for good, by Landlock.
 *
 * It holds for the calling thread and whatever it starts; descriptors that
 * are open stay usable. no_new_privs has to be set. Source: landlock(7),
 * Documentation/userspace-api/landlock.rst of Linux.
 */

/* The version of Landlock that the kernel has; 0 = none, or it is switched off. */
int pathlock_version(void);

/* No path leads anywhere any more. False where the kernel cannot do that. */
bool pathlock_all(void);

/*
 * Nothing is written, made, removed, renamed or executed by a path any more,
 * but below the N directories (and files, which are written only) in PATHS;
 * those that do not exist, or are NULL, are left out. Reading stays. False where the kernel
 * cannot do that.
 */
bool pathlock_writing(const char *const *paths, size_t n);

#define SANDBOX_FD 3 /* where keep_fd is afterwards, the others behind it; 0 to 2 are /dev/null */
#define SANDBOX_FDS 2 /* how many descriptors can be open besides */
#define SANDBOX_UID 65534 /* the user and group "nobody" */

struct sandbox_opts {
	int keep_fd; /* the descriptor that stays open */
	const int *more_fds; /* and more of them, which are SANDBOX_FD + 1 and so on afterwards */
	size_t n_more;
	pid_t parent; /* its getpid(), taken before the fork: when it ends, so does this process */
	const char *comm; /* its name for ps(1) */
	uint64_t memory_bytes; /* of address space, more than it has now */
	uint64_t file_bytes; /* of the largest file that it may write */
	size_t n_received; /* descriptors that it may have been sent over keep_fd and hold; 0 = SANDBOX_FDS */
	uint64_t keep_caps; /* a bit set of capabilities that it has and keeps: for one that opens, and parses
			       nothing */
	/* with those: the system calls that it may make; NULL = the usual ones */
	const struct syscall_rule *rules;
	size_t n_rules;
	const struct sock_fprog
		*filter; /* sandbox_filter() of all this, made before the fork; NULL = made inside */
};

/* The filter of system calls that O asks for. Release *RET with syscall_filter_free(). */
int sandbox_filter(const struct sandbox_opts *o, struct sock_fprog *ret, struct err *e);

/*
 * What every child process of ours begins with: its handlers of signals are
 * gone, none is blocked, HUP, INT, QUIT, TERM, PIPE and XFSZ are ignored, and
 * SIGKILL comes when the thread of PARENT that forked it ends. -ESRCH when it has.
 */
int child_begin(pid_t parent, struct err *e);

/* The last of these again: the kernel forgets it when a process changes its user or capabilities. */
int child_bind(pid_t parent, struct err *e);

/*
 * Enter it. Afterwards:
 *
 * - it is in a session of its own, and child_begin() has been called;
 * - no descriptor but the above, and no writable memory that is shared with
 *   the parent;
 * - no path of any file system leads anywhere, where the kernel has Landlock;
 * - no capability, not even to be had by exec, and where the process was root
 *   and may change that (CAP_SETUID, CAP_SETGID) user, group and groups are
 *   nobody's, but for the saved user, by which a parent without CAP_KILL can
 *   end it. A parent that has given up its capabilities (system/drop.h) makes
 *   children that stay root's, of which there is nothing left but the number:
 *   no path leads anywhere and no call takes one;
 * - it leaves no core, cannot be traced, and is the first to go when memory
 *   runs out, if its parent may still write into /proc;
 * - system calls: read and write at an offset, size and truncate what is
 *   open, close, recvmsg, sendmsg, private anonymous memory that cannot be
 *   executed, time, random bytes, exit. Any other one kills it with SIGSYS.
 *   Where the kernel has no seccomp filters, all the rest holds.
 *
 * With keep_caps these stay permitted and effective (and no others), the user
 * stays, paths do (Landlock would take away the right to look at other
 * processes), and `rules` say which system calls there are.
 *
 * -errno where something essential is refused; the process is good for
 * nothing but _exit(2) then, though SANDBOX_FD is there unless -EMFILE.
 */
int sandbox_enter(const struct sandbox_opts *o, struct err *e);

/* "files are read under seccomp and Landlock 7": what the kernel has of it. */
void sandbox_put(struct buf *b);

#endif
