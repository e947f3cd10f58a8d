/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * private_user - a user and group that nobody else is, for the processes of one tool.
 *
 * A process of root that has given up its capabilities still owns the files of
 * root, and may signal the processes of root. As `nobody` it would share its user
 * with others, who could stop it. So it becomes user 0x78000000 + the PID of the
 * tool, which is in no range that distributions or systemd hand out
 * (https://systemd.io/UIDS-GIDS). In a user namespace without that user, it is one
 * near the end of what is mapped, and in neither /etc/passwd nor /etc/group.
 *
 * All processes of a tool have one private user, so that the tool can end them.
 * They cannot trace one another: they are not dumpable, and have filters of
 * system calls.
 */
#ifndef STACKTOOLS_SYSTEM_PRIVATE_USER_H
#define STACKTOOLS_SYSTEM_PRIVATE_USER_H

#include "base/base.h"

#include <sys/types.h>

#define PRIVATE_USER_BASE 0x78000000u /* plus a PID, which is less than 1 << 22 */

/* The user and group of the tool with this PID. */
struct private_user {
	uid_t uid;
	gid_t gid;
};

/* False if this user namespace has none. */
bool private_user_of(pid_t tool, struct private_user *ret);

/* Whether this process may become another user: it is root, with CAP_SETUID and CAP_SETGID. */
bool private_user_possible(void);

/*
 * Become the private user U for good, all threads, without supplementary groups;
 * LOOKS: but for the one that sees the processes of others in /proc in spite of
 * its mount option hidepid, if there is need. Clears the capabilities unless
 * PR_SET_KEEPCAPS is set. 0 or -errno.
 */
int private_user_become(const struct private_user *u, bool looks);

/*
 * Stay the effective user, but have the private user of TOOL as real and saved
 * user: then TOOL, once it has become that user, may end this process, and other
 * processes of root without CAP_KILL may not. Harmless if that is not possible.
 */
bool private_user_expose(pid_t tool); /* whether it was */

/*
 * The same around a fork(2), so that it holds for the child from its first
 * moment: it may be stopped before it can do anything. *WAS is for the way back,
 * in the parent; a child may take it, too. False if that failed.
 */
struct private_user_was {
	uid_t real, saved;
	bool changed;
};
void private_user_before_fork(struct private_user_was *was);
bool private_user_after_fork(const struct private_user_was *was);

#endif
