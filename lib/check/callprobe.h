/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * callprobe - what anybody may try, with whatever privileges there are: the
 * system calls that a seccomp filter forbids, and the files that procfs mode
 * reads.
 *
 * Container runtimes refuse bpf(2) and perf_event_open(2) by such a filter,
 * whatever the capabilities. The calls are made with arguments that the kernel
 * refuses before it looks at anything: a flag of perf_event_open(2) that does
 * not exist (EINVAL), and an address of bpf(2) that is none (EFAULT, or EPERM
 * where kernel.unprivileged_bpf_disabled shuts everything before Linux 5.19).
 * Any other error is somebody else's. Each call has a process of its own, for
 * a filter may kill.
 */
#ifndef STACKTOOLS_CALLPROBE_H
#define STACKTOOLS_CALLPROBE_H

#include "check/probe.h"

/* As probe_fn: -EPERM and the like with the story when a filter refuses the call. */
int callprobe_bpf(char *found, size_t cap, struct err *e);
int callprobe_perf(char *found, size_t cap, struct err *e);

/*
 * A perf event on this process is opened: 0, the errno, or -signal. Up to
 * kernel.perf_event_paranoid=2 that takes no privilege. Beyond, mainline knows
 * no value; the kernels of Debian (3) and Ubuntu (4) refuse it with EACCES to
 * who lacks CAP_SYS_ADMIN, whatever CAP_PERFMON allows.
 */
int callprobe_own_event(void);

/*
 * Of this very process the files of /proc/PID/task/TID that are sampled
 * without BPF. -errno when not even `stat` can be read.
 */
int callprobe_task_files(char *found, size_t cap, struct err *e);

#endif
