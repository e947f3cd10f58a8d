/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * drop - giving up every privilege for good, and going on.
 *
 * For a process that has opened what it needs and is about to read what
 * others wrote. The user stays: without capabilities root is a user who owns
 * many files, and Landlock, where the kernel has it, keeps even those from
 * being written. Sources: capabilities(7), prctl(2), landlock(7).
 */
#ifndef STACKTOOLS_SYSTEM_DROP_H
#define STACKTOOLS_SYSTEM_DROP_H

#include "base/bytes.h"
#include "base/err.h"

struct priv_drop_opts {
	uint64_t keep; /* a bit set of capabilities that stay permitted and effective; 0 = none */
	const char *const
		*writable; /* paths below which files may still be written, N of them; see system/sandbox.h */
	size_t n_writable;
	bool paths; /* paths stay as they are: under Landlock no other process may be looked at */
};

struct priv_drop {
	uint64_t kept; /* capabilities that are still permitted, in any thread */
	bool bounding; /* the bounding set is empty too: no program can give any back */
	int landlock; /* its version; 0 = none: files of the user can be written */
};

/*
 * Give up, for this process and all that it starts from now on: the
 * permitted, effective, inheritable, ambient and (where CAP_SETPCAP is there)
 * bounding capabilities, new ones by exec (no_new_privs), and writing and
 * executing files. Credentials belong to threads in Linux: those that still
 * run with privileges are waited for, for a second at most; what they have
 * counts as kept. *RET is what holds now. -errno when capabilities or new
 * privileges cannot be given up.
 */
int priv_drop_now(const struct priv_drop_opts *o, struct priv_drop *ret, struct err *e);

/* As a recorder does: of files only those below the cache are written. */
int priv_drop_recorder(uint64_t keep, struct priv_drop *ret, struct err *e);

/* "no capabilities, no new privileges, Landlock 7 (nothing is written but the cache)" */
void priv_drop_put(const struct priv_drop *d, struct buf *b);

/* "; WHO keeps CAP_BPF, CAP_PERFMON": a process of its own. */
void priv_drop_put_child(const char *who, uint64_t caps, struct buf *b);

#endif
