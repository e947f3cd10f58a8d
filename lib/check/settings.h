/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * settings - what the kernel, its configuration and the privileges of this process are judged to allow.
 */
#ifndef STACKTOOLS_CHECK_SETTINGS_H
#define STACKTOOLS_CHECK_SETTINGS_H

#include "check/finding.h"
#include "check/machine.h"

/*
 * sysctlcheck - the kernel's settings that BPF and stacks depend on, judged.
 *
 * Sources: Documentation/admin-guide/sysctl/{kernel,net}.rst of Linux, yama.rst.
 */

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void sysctlcheck_run(const struct machine *m, struct findings *f);

/*
 * configcheck - what the kernel was built with, judged.
 *
 * Sources: check/machine.h; the kernel's init/Kconfig, kernel/bpf/Kconfig and
 * security/Kconfig for what an option brings.
 */

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void configcheck_run(const struct machine *m, struct findings *f);

/*
 * kernelcheck - the kernel's release, and the namespaces that change its numbers.
 *
 * Sources: 5.18 for the helpers of bpf/offcpu.bpf.c (bpf_loop and
 * bpf_copy_from_user_task came last), 5.17 for bpf_loop; time_namespaces(7) for /proc/self/timens_offsets.
 */

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void kernelcheck_run(const struct machine *m, struct findings *f);

/*
 * bugcheck - bugs of the kernel that bite who takes stacks by BPF, by version.
 *
 * Sources of the versions: the kernel's records in the CVE list (CVE-2025-68378
 * for kernel.bug.stackid_overflow), review announcements of stable releases
 * (5.11.14-rc1 for kernel.bug.task_stack), and for kernel.bug.callchain_reuse the
 * series "bpf: Hold the perf callchain entry until used completely" on the
 * kernel's mailing list, December 2025, of which no release is known here.
 *
 * A stable release carries the fixes of its number. A distribution's kernel
 * carries others besides, and its release often hides the number: then
 * /proc/version_signature (Ubuntu) or /proc/version (Debian) tells it, and
 * where nothing does the finding says "may".
 */

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void bugcheck_run(const struct machine *m, struct findings *f);

/*
 * priv_check - capabilities, namespaces, lockdown, seccomp and security modules, judged.
 *
 * Sources: capabilities(7), user_namespaces(7), kernel_lockdown(7), seccomp(2).
 */

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void priv_check_run(const struct machine *m, struct findings *f);

/*
 * memcheck - what the memory of BPF maps counts against, and how tight that is.
 *
 * Sources: since Linux 5.11 BPF memory counts against the memory cgroup of who
 * makes the map, before that against RLIMIT_MEMLOCK of its user. cgroups(7);
 * Documentation/admin-guide/cgroup-v2.rst (memory.max, memory.current) and
 * cgroup-v1/memory.rst (memory.limit_in_bytes, memory.usage_in_bytes) of Linux.
 * A limit above this process's own cgroup counts too, so every one up to the
 * top of what is mounted is looked at, and the tightest decides.
 */

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void memcheck_run(const struct machine *m, struct findings *f);

/*
 * mountcheck - file systems that tools read through, judged.
 *
 * Source: proc(5) for mounts, hidepid and subset.
 */

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void mountcheck_run(const struct machine *m, struct findings *f);

#endif
