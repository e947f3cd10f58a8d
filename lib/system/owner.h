/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * owner - a program that has its capabilities from its file, and is no way
 * round the system's permissions for who starts it.
 *
 * Whoever starts a file with capabilities (setcap(8)), or one with the
 * set-user-ID bit, has rights that were given to the program. They are to
 * reach what that user could read by himself, and nothing else: his own
 * processes by the rule of ptrace(2), "Ptrace access mode checking", with
 * PTRACE_MODE_READ, and files that he can open. So:
 *
 * - owner_become() gives up every right but those without which there is no
 *   BPF. From then on all files, also those of /proc/PID, are opened as the
 *   user would open them: the kernel checks each of them, at the open itself,
 *   so a PID that is another process's by then is no way in.
 * - BPF asks at each switch, with the ids of owner_opts: bpf/offcpu_owner.bpf.h.
 * - owner_check() tells beforehand, by trying it, that a process which was
 *   asked for by its id is none of the user's.
 *
 * Capabilities that the caller had himself (root; sudo; ambient ones, as
 * AmbientCapabilities= of systemd gives) are used as ever. The kernel tells
 * the two apart: AT_SECURE of getauxval(3) is set when an exec gave rights that
 * the caller had not (cap_bprm_creds_from_file() of security/commoncap.c).
 */
#ifndef STACKTOOLS_SYSTEM_OWNER_H
#define STACKTOOLS_SYSTEM_OWNER_H

#include "base/err.h"

/* The rule for a process whose AT_SECURE is SECURE and whose real user is UID. */
bool owner_rule(bool secure, uint32_t uid);

/* Does it apply to this one? The answer never changes, whatever is given up meanwhile. */
bool owner_applies(void);

struct owner {
	bool only; /* owner_applies(): record only what is below */
	uint32_t uid, gid; /* the real ones; UINT32_MAX = in another user namespace than the first one, where
			      no capability reaches BPF */
	bool no_kernel; /* /proc/kallsyms shows the user no address: neither may the capture */
};

/*
 * Where the rule applies: user and group become the real ones again, and of
 * the capabilities, permitted ones included, stay those for BPF and for what
 * is no other process's; a child without any finds out what the user may know
 * of the kernel. Nothing where it does not. Call it first, before there is a
 * second thread, and before any file is opened. -errno where something is
 * refused: go on in no case.
 */
int owner_become(struct owner *ret, struct err *e);

/*
 * Some of what is kept is in force only between these two, in this thread and
 * in those that it starts meanwhile: CAP_PERFMON, which loading, attaching and
 * perf events take, makes the maps of all processes readable too. So open
 * nothing of another process between them. Nothing where the rule does not
 * apply.
 */
void owner_raise(void);
void owner_lower(void);

/*
 * In a forked child that will exec what the user wants: it becomes a process
 * as any of his, without any capability, and to be traced by him. Nothing
 * where the rule does not apply; -errno, and the child has to end.
 */
int owner_shed(void);

/*
 * May the user, without any capability, read the memory of each of the N
 * processes or threads IDS? A child without any tries it: it opens
 * /proc/ID/maps. 0; -EACCES with the message for the first that is refused;
 * -ESRCH for one that has ended meanwhile. Where the rule does not apply
 * nothing is tried: 0.
 *
 * This is for the message. An id that becomes another process's afterwards
 * gains nothing: BPF and every open ask again.
 */
int owner_check(const uint32_t *ids, size_t n, struct err *e);

#endif
