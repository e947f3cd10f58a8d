/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * drop - giving up all privileges permanently.
 *
 * For a process that has opened what it needs and is about to read untrusted
 * input. Without capabilities root is still a user who owns many files and may
 * signal many processes, so a recorder of root becomes a user of its own
 * (system/private_user.h). Landlock, if the kernel has it, prevents writing by
 * path, and a filter of system calls refuses what a recorder does not need.
 * Sources: capabilities(7), prctl(2), landlock(7), seccomp(2).
 */
#ifndef STACKTOOLS_SYSTEM_DROP_H
#define STACKTOOLS_SYSTEM_DROP_H

#include "base/bytes.h"
#include "base/err.h"
#include "system/syscall_filter.h"

/* The request of ptrace(2) by which procfs/thread_copy.h reads registers. */
#if defined(__aarch64__)
#define DROP_PTRACE_REGISTERS PTRACE_GETREGSET
#else
#define DROP_PTRACE_REGISTERS PTRACE_GETREGS
#endif

struct priv_drop_opts {
	uint64_t keep; /* a bit set of capabilities that stay permitted and effective; 0 = none */
	const char *const
		*writable; /* n_writable paths below which files may still be written: see system/sandbox.h */
	size_t n_writable;
	bool paths; /* do not use Landlock, which denies access to other processes */
	bool private_user; /* become one, if possible */
	const struct sock_fprog *filter; /* of system calls: drop_filter(); NULL = none */
};

struct priv_drop {
	uint64_t kept; /* capabilities that are still permitted in any thread */
	bool bounding; /* the bounding set is empty too: no program can give any back */
	int landlock; /* its version; 0 = none: files of the user can be written */
	uint32_t uid; /* the private user; 0 = the user stays */
	bool filter; /* system calls are filtered */
};

/*
 * Give up, for this process and everything that it starts from now on: the
 * permitted, effective, inheritable, ambient and (with CAP_SETPCAP) bounding
 * capabilities, new ones by exec (no_new_privs), writing and executing files, being
 * dumped and traced (if there was any capability), and as O says the user and
 * system calls. In Linux credentials belong to threads: waits at most one second for threads
 * that still have privileges; what they have is reported as kept. *RET is the
 * resulting state. -errno if capabilities or new privileges cannot be given up.
 */
int priv_drop_now(const struct priv_drop_opts *o, struct priv_drop *ret, struct err *e);

/*
 * The system calls that a recorder makes after the drop. It can read what it may
 * and write what is open, map memory that is not executable, use BPF maps,
 * iterators and perf events that it has, exchange messages with its workers, start
 * threads and workers (which add a filter of their own), kill them, and let its
 * command run. Everything else is refused with EPERM: opening files for writing,
 * chmod, chown, xattr, mount, exec, sockets, signals other than SIGKILL, new
 * programs, attaching to another process, namespaces, io_uring, keys, modules.
 */
struct drop_filter_opts {
	bool trace; /* a recorder that has no helper stops threads by itself (mode procfs, --ptrace) */
	bool no_openat2; /* refuse it: without Landlock, a file could be opened for writing by it */
};
int drop_filter(const struct drop_filter_opts *o, struct sock_fprog *ret, struct err *e);

struct priv_drop_recorder_opts {
	uint64_t keep; /* as in priv_drop_opts */
	bool alone; /* no other process has kept privileges: stay the user, without Landlock */
	bool trace; /* as in drop_filter_opts */
};
/* All that for a recorder. */
int priv_drop_recorder(const struct priv_drop_recorder_opts *o, struct priv_drop *ret, struct err *e);

/* "no capabilities, none to be had, user 2013266934, few system calls (seccomp), Landlock 7 (nothing is
 * opened for writing)" */
void priv_drop_put(const struct priv_drop *d, struct buf *b);

/* "; WHO keeps CAP_BPF, CAP_PERFMON", for a process of its own. */
void priv_drop_put_child(const char *who, uint64_t caps, struct buf *b);

#endif
