/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * settings - checks of what the kernel, its configuration and the privileges of this process permit.
 */
#ifndef STACKTOOLS_CHECK_SETTINGS_H
#define STACKTOOLS_CHECK_SETTINGS_H

#include "check/finding.h"
#include "check/machine.h"

/*
 * sysctlcheck - checks of the kernel settings that BPF and stacks depend on.
 *
 * Sources: Documentation/admin-guide/sysctl/{kernel,net}.rst of Linux, yama.rst.
 */

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void sysctlcheck_run(const struct machine *m, struct findings *f);

/*
 * configcheck - checks of the options that the kernel was built with.
 *
 * Sources: check/machine.h; the kernel's init/Kconfig, kernel/bpf/Kconfig and
 * security/Kconfig for what an option provides.
 */

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void configcheck_run(const struct machine *m, struct findings *f);

/*
 * kernelcheck - checks of the kernel's release, and of the namespaces that change
 * PIDs and times.
 *
 * Sources: Linux 5.18 has every helper that bpf/offcpu.bpf.c calls (bpf_loop came
 * with 5.17, bpf_copy_from_user_task last); time_namespaces(7) for
 * /proc/self/timens_offsets.
 */

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void kernelcheck_run(const struct machine *m, struct findings *f);

/*
 * bugcheck - kernel bugs that affect taking stacks with BPF, by version.
 *
 * Sources of the versions: the kernel's records in the CVE list (CVE-2025-68378
 * for kernel.bug.stackid_overflow); review announcements of stable releases
 * (5.11.14-rc1 for kernel.bug.task_stack); for kernel.bug.callchain_reuse the
 * series "bpf: Hold the perf callchain entry until used completely" on the
 * kernel's mailing list, December 2025, not known to be in any release.
 *
 * The version number of a stable release decides which fixes it has. A
 * distribution's kernel has more fixes, and its release often hides that number:
 * it is then read from /proc/version_signature (Ubuntu) or /proc/version (Debian).
 * If it remains unknown, the finding says "may".
 */

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void bugcheck_run(const struct machine *m, struct findings *f);

/*
 * priv_check - checks of capabilities, namespaces, lockdown, seccomp and security modules.
 *
 * Sources: capabilities(7), user_namespaces(7), kernel_lockdown(7), seccomp(2).
 */

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void priv_check_run(const struct machine *m, struct findings *f);

/*
 * memcheck - checks of the limits that the memory of BPF maps counts against.
 *
 * Since Linux 5.11 BPF memory is charged to the memory cgroup of the process that
 * creates the map, before that to RLIMIT_MEMLOCK of its user. The limits of the
 * parent cgroups apply too, so every cgroup up to the top of the mounted hierarchy
 * is read; the one with the least memory left decides.
 *
 * Sources: cgroups(7); Documentation/admin-guide/cgroup-v2.rst (memory.max,
 * memory.current) and cgroup-v1/memory.rst (memory.limit_in_bytes,
 * memory.usage_in_bytes) of Linux.
 */

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void memcheck_run(const struct machine *m, struct findings *f);

/*
 * mountcheck - checks of the file systems that the tools read from.
 *
 * Source: proc(5) for mounts, hidepid and subset.
 */

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void mountcheck_run(const struct machine *m, struct findings *f);

#endif
