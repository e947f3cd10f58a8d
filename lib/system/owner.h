/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * owner - limits for a program whose file has capabilities, so that it does not
 * bypass the system's permissions for the user who starts it.
 *
 * A user who starts a file with capabilities (setcap(8)) or with the set-user-ID
 * bit gets rights that were given to the program. They must reach only what the
 * user could read without them: the user's own processes by the rule of
 * ptrace(2), "Ptrace access mode checking", with PTRACE_MODE_READ, and files that
 * the user can open. Therefore:
 *
 * - owner_become() gives up all rights but those that BPF needs. From then on all
 *   files, including those in /proc/PID, are opened with the user's permissions:
 *   the kernel checks each of them when it is opened, so a PID that belongs to
 *   another process by then gives no access.
 * - The BPF programs check the owner of a task with owner_uid and owner_gid:
 *   bpf/offcpu_owner.bpf.h.
 * - owner_check() finds out in advance, by trying, that a process requested by
 *   its id is not one that the user may read.
 *
 * The rule applies to an elevated process (system/elevated.h). Capabilities that
 * the caller already had are used without these limits.
 */
#ifndef STACKTOOLS_SYSTEM_OWNER_H
#define STACKTOOLS_SYSTEM_OWNER_H

#include "base/err.h"

struct owner {
	bool only; /* elevated(): record only processes of the ids below */
	uint32_t uid, gid; /* the real ids; UINT32_MAX = not in the first user namespace, where no capability
			      reaches BPF */
	bool no_kernel; /* /proc/kallsyms shows the user no addresses, so the capture must not either */
};

/*
 * If the rule applies: sets the user and group back to the real ids, and keeps,
 * even as permitted, only the capabilities for BPF and for data that is not
 * another process's; a child without capabilities finds out what the user may
 * know about the kernel. Otherwise does nothing. Call it first, before there is a
 * second thread and before any file is opened. -errno if something is refused:
 * then never continue.
 */
int owner_become(struct owner *ret, struct err *e);

/*
 * Some of the kept capabilities are effective only between these two calls, in
 * this thread and in threads that it starts meanwhile: CAP_PERFMON, which loading,
 * attaching and perf events need, also makes the maps of all processes readable.
 * So open nothing of another process between them. No effect if the rule does not
 * apply.
 */
void owner_raise(void);
void owner_lower(void);

/*
 * Check that the user may, without any capability, read the memory of each of the
 * N processes or threads IDS: a child without capabilities tries to open
 * /proc/ID/maps. 0; -EACCES with the message for the first that is refused;
 * -ESRCH for one that has ended meanwhile. If the rule does not apply, nothing is
 * tried: 0.
 *
 * This only serves the error message. An id that is reused afterwards gives no
 * access: BPF and every open check again.
 */
int owner_check(const uint32_t *ids, size_t n, struct err *e);

#endif
