/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * caps - what this process may do, and how to say what it lacks. Floor 2.
 * Sources: capabilities(7), libcap.
 */
#ifndef STACKTOOLS_CAPS_H
#define STACKTOOLS_CAPS_H

#include "err.h"

/* CAP is a CAP_* number of <linux/capability.h>, in this process's effective set. */
bool caps_have(int cap);

/*
 * Tell the story of an operation refused with CODE (-EPERM or -EACCES): WHAT
 * is what was refused ("attach to sched_switch"), CAPS the N capabilities it
 * takes. The message names those that are missing ("not permitted to attach
 * to sched_switch: CAP_PERFMON is missing"), the hint the command that grants
 * them to this very binary (from /proc/self/exe: "run as root, or: setcap
 * cap_bpf,cap_perfmon+ep '/usr/bin/offcpu-record'"). When none of CAPS is
 * missing the message says so, and names what else forbids it (lockdown,
 * seccomp, a user namespace) as far as that can be read. Returns CODE.
 */
int caps_explain(const char *what, int code, const int *caps, size_t n, struct err *e);

#endif
