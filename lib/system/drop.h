/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * drop - giving up all privileges permanently.
 *
 * For a process that has opened what it needs and is about to read untrusted
 * input. The user ID stays: without capabilities, root is a user who owns many
 * files, and Landlock, if the kernel has it, prevents writing even to those.
 * Sources: capabilities(7), prctl(2), landlock(7).
 */
#ifndef STACKTOOLS_SYSTEM_DROP_H
#define STACKTOOLS_SYSTEM_DROP_H

#include "base/bytes.h"
#include "base/err.h"

struct priv_drop_opts {
	uint64_t keep; /* a bit set of capabilities that stay permitted and effective; 0 = none */
	const char *const
		*writable; /* n_writable paths below which files may still be written: see system/sandbox.h */
	size_t n_writable;
	bool paths; /* do not use Landlock, which denies access to other processes */
};

struct priv_drop {
	uint64_t kept; /* capabilities that are still permitted in any thread */
	bool bounding; /* the bounding set is empty too: no program can give any back */
	int landlock; /* its version; 0 = none: files of the user can be written */
};

/*
 * Give up, for this process and everything that it starts from now on: the
 * permitted, effective, inheritable, ambient and (with CAP_SETPCAP) bounding
 * capabilities, new ones by exec (no_new_privs), and writing and executing files.
 * In Linux credentials belong to threads: waits at most one second for threads
 * that still have privileges; what they have is reported as kept. *RET is the
 * resulting state. -errno if capabilities or new privileges cannot be given up.
 */
int priv_drop_now(const struct priv_drop_opts *o, struct priv_drop *ret, struct err *e);

/* The same for a recorder: only files below the cache, and /dev/null, can be written. */
int priv_drop_recorder(uint64_t keep, struct priv_drop *ret, struct err *e);

/* "no capabilities, none to be had, Landlock 7 (nothing is written but the cache)" */
void priv_drop_put(const struct priv_drop *d, struct buf *b);

/* "; WHO keeps CAP_BPF, CAP_PERFMON", for a process of its own. */
void priv_drop_put_child(const char *who, uint64_t caps, struct buf *b);

#endif
