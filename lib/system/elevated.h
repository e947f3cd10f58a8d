/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elevated - a program that exec gave rights which the user who started it lacks:
 * capabilities of its file (setcap(8)), or the set-user-ID bit.
 *
 * Capabilities that the caller already had (root; sudo; ambient ones, as set by
 * AmbientCapabilities= of systemd) do not count. The kernel distinguishes the two:
 * AT_SECURE of getauxval(3) is set if an exec gave rights that the caller did not
 * have (cap_bprm_creds_from_file() in security/commoncap.c).
 */
#ifndef STACKTOOLS_SYSTEM_ELEVATED_H
#define STACKTOOLS_SYSTEM_ELEVATED_H

#include "base/base.h"

/* Whether a process with this AT_SECURE, of real user UID, is elevated. */
bool elevated_rule(bool secure, uint32_t uid);

/* Whether this process was started elevated. The answer never changes, whatever is given up meanwhile. */
bool elevated(void);

/* Permanently give up the ids of a set-user-ID or set-group-ID bit, including the saved ones. 0 or -errno. */
int elevated_real_ids(void);

/*
 * Give up the ids above and all capabilities but those in KEEP, a bit set. No
 * effect on a process that is not elevated. On -errno never continue.
 */
int elevated_keep(uint64_t keep);

/*
 * For a forked child that will exec a command of the user: become an ordinary
 * process of the user, without any capability, which the user may trace. No effect on a process that is not
 * elevated. On -errno the child must exit.
 */
int elevated_shed(void);

#endif
