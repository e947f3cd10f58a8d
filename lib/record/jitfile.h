/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jitfile - the files in which a process tells of the code it makes, opened
 * with a recorder's privileges but not trusted.
 *
 * /tmp/perf-PID.map is looked for inside the process's own root, under its
 * PID in its own PID namespace; no symbolic link is followed, and none of the
 * folders leads out of that root. A name in /tmp can be anybody's, and an
 * earlier process's: see jitfile_check().
 */
#ifndef STACKTOOLS_JITFILE_H
#define STACKTOOLS_JITFILE_H

#include "system/broker.h"

#include <sys/stat.h>

/* What has to be known of a process while it lives. */
struct jitfile_owner {
	uint32_t pid, ns_pid; /* here, and in its own PID namespace */
	uint32_t uid; /* effective, as seen from here */
	bool shares_tmp; /* its /tmp is ours */
	uint64_t start_boot_ns; /* when it began, CLOCK_BOOTTIME; 0 = not known */
	uint64_t end_ns; /* when it ended, CLOCK_MONOTONIC; 0 = it lives */
	struct opener *opener; /* for what our own rights do not reach; NULL = none */
};

/* All but the times and the opener, which are left as they are. False when the process is gone. */
bool jitfile_owner(uint32_t pid, struct jitfile_owner *ret);

/*
 * The perf map of O, through its root while it lives, else in our /tmp if it
 * shared that: a descriptor for reading and its status; -ENOENT: there is
 * none; -EMEDIUMTYPE: it is no regular file.
 */
int jitfile_map(const struct jitfile_owner *o, struct stat *st);

/* Does PATH, of a mapping, name the jitdump file of O? */
bool jitfile_is_dump(const struct jitfile_owner *o, const char *path);

/*
 * Is a file of status ST, looked at now, O's own? -EPERM: it belongs neither
 * to its user nor to root. -ESTALE: it was last written before the process
 * began, or after it had ended: another one of the same PID wrote it. The
 * story is in E.
 */
int jitfile_check(const struct jitfile_owner *o, const struct stat *st, struct err *e);

#endif
