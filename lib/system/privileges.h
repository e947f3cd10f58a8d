/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * privileges - what this process may do, and how to say what it lacks.
 * Sources: capabilities(7), user_namespaces(7), proc(5), libcap.
 */
#ifndef STACKTOOLS_SYSTEM_PRIVILEGES_H
#define STACKTOOLS_SYSTEM_PRIVILEGES_H

#include "base/err.h"

/* CAP is a CAP_* number of <linux/capability.h>, in this process's effective set. */
bool priv_have(int cap);

/*
 * As priv_have(), and true too where CAP_SYS_ADMIN stands in for CAP: the
 * kernel takes it for CAP_BPF, CAP_PERFMON and CAP_CHECKPOINT_RESTORE.
 */
bool priv_allow(int cap);

/* Of the N capabilities in CAPS those in the effective set, and CAP_SYS_ADMIN for one that it stands in for.
 */
uint64_t priv_bits(const int *caps, size_t n);

/*
 * Those of the N capabilities in CAPS that priv_allow() refuses, as a clause:
 * "CAP_BPF and CAP_PERFMON are missing". Returns how many; 0 leaves BUF "".
 */
size_t priv_missing(const int *caps, size_t n, char *buf, size_t cap);

/* The kernel is locked down, and how: "integrity" or "confidentiality" in MODE. */
bool priv_lockdown(char *mode, size_t cap);

/*
 * The command that gives the N capabilities in CAPS to the file EXE, quoted
 * for the shell: setcap cap_bpf,cap_perfmon+ep '/usr/bin/offcpu-record'
 */
void priv_command(const char *exe, const int *caps, size_t n, char *buf, size_t cap);

/*
 * Tell the message of an operation refused with CODE (-EPERM or -EACCES): WHAT
 * is what was refused ("attach to sched_switch"), CAPS the N capabilities it
 * takes. The message names those that are missing ("not permitted to attach
 * to sched_switch: CAP_PERFMON is missing"), the hint the command that grants
 * them to this very binary (from /proc/self/exe: "run as root, or: setcap
 * cap_bpf,cap_perfmon+ep '/usr/bin/offcpu-record'"). When none of CAPS is
 * missing the message says so, and names what else forbids it (RLIMIT_MEMLOCK,
 * lockdown, seccomp, a user namespace) as far as that can be read. Returns CODE.
 */
int priv_explain(const char *what, int code, const int *caps, size_t n, struct err *e);

/* The same for perf_event_open(2), which takes CAP_PERFMON and, by a sysctl, CAP_SYS_ADMIN. */
int priv_explain_perf(const char *what, int code, struct err *e);

/* The fields of /proc/PID/status that decide what a process may do; sets are bit masks. */
struct priv_status {
	uint64_t effective, permitted, inheritable, bounding, ambient;
	int seccomp; /* 0 none, 1 strict, 2 filter; -1 = the kernel does not say */
	int no_new_privs; /* 0 or 1; -1 = the kernel does not say */
	uint32_t uid; /* effective */
};

/* TEXT is the file's. 0, or -EINVAL where a capability set or the uid is not in it. */
int priv_status_parse(const char *text, struct priv_status *ret);

/* Is CAP in SET, or does CAP_SYS_ADMIN in SET stand in for it? */
bool priv_set_allows(uint64_t set, int cap);

/* "CAP_BPF" for CAP_BPF, "CAP_77" for what libcap does not know. Returns BUF. */
const char *priv_name(int cap, char *buf, size_t size);

#endif
