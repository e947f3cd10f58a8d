/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * privileges - what this process may do, and messages about what it lacks.
 * Sources: capabilities(7), user_namespaces(7), proc(5), libcap.
 */
#ifndef STACKTOOLS_SYSTEM_PRIVILEGES_H
#define STACKTOOLS_SYSTEM_PRIVILEGES_H

#include "base/err.h"

/* Whether CAP, a CAP_* number of <linux/capability.h>, is in this process's effective set. */
bool priv_have(int cap);

/*
 * Like priv_have(), but also true if CAP_SYS_ADMIN stands in for CAP: the kernel
 * accepts it for CAP_BPF, CAP_PERFMON and CAP_CHECKPOINT_RESTORE.
 */
bool priv_allow(int cap);

/*
 * The bit set of those of the N capabilities in CAPS that are in the effective
 * set, with CAP_SYS_ADMIN for a missing one that it stands in for.
 */
uint64_t priv_bits(const int *caps, size_t n);

/*
 * Those of the N capabilities in CAPS for which priv_allow() is false, as a clause:
 * "CAP_BPF and CAP_PERFMON are missing". Returns how many; if 0, BUF is "".
 */
size_t priv_missing(const int *caps, size_t n, char *buf, size_t cap);

/* Whether the kernel is locked down; MODE is then "integrity" or "confidentiality". */
bool priv_lockdown(char *mode, size_t cap);

/*
 * The command that gives the N capabilities in CAPS to the file EXE, quoted
 * for the shell: setcap cap_bpf,cap_perfmon+ep '/usr/bin/offcpu-record'
 */
void priv_command(const char *exe, const int *caps, size_t n, char *buf, size_t cap);

/*
 * Set the error message for an operation refused with CODE (-EPERM or -EACCES):
 * WHAT is the operation ("attach to sched_switch"), CAPS are the N capabilities
 * that it needs. The message names the missing ones ("not permitted to attach to
 * sched_switch: CAP_PERFMON is missing"), the hint the command that grants them
 * to this binary (from /proc/self/exe: "run as root, or: setcap
 * cap_bpf,cap_perfmon+ep '/usr/bin/offcpu-record'"). If none of CAPS is missing,
 * the message says so and names what else forbids the operation (RLIMIT_MEMLOCK,
 * lockdown, seccomp, a user namespace), as far as that can be read. Returns CODE.
 */
int priv_explain(const char *what, int code, const int *caps, size_t n, struct err *e);

/* The same for perf_event_open(2), which needs CAP_PERFMON and, depending on a sysctl, CAP_SYS_ADMIN. */
int priv_explain_perf(const char *what, int code, struct err *e);

/* The fields of /proc/PID/status that decide what a process may do; sets are bit masks. */
struct priv_status {
	uint64_t effective, permitted, inheritable, bounding, ambient;
	int seccomp; /* 0 none, 1 strict, 2 filter; -1 = not reported by the kernel */
	int no_new_privs; /* 0 or 1; -1 = not reported by the kernel */
	uint32_t uid; /* effective */
};

/* TEXT is the content of the file. 0, or -EINVAL if a capability set or the uid is missing. */
int priv_status_parse(const char *text, struct priv_status *ret);

/* Whether CAP is in SET, or CAP_SYS_ADMIN in SET stands in for it. */
bool priv_set_allows(uint64_t set, int cap);

/* "CAP_BPF" for CAP_BPF, "CAP_77" for one that libcap does not know. Returns BUF. */
const char *priv_name(int cap, char *buf, size_t size);

#endif
