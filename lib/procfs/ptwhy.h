/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ptwhy - why a thread may not be looked at.
 * Sources: ptrace(2), "Ptrace access mode checking"; Documentation/admin-guide/LSM/Yama.rst.
 */
#ifndef STACKTOOLS_PTWHY_H
#define STACKTOOLS_PTWHY_H

#include "base/err.h"

#include <sys/types.h>

enum ptwhy {
	PTWHY_GONE, /* ended, or another process has its number */
	PTWHY_KTHREAD,
	PTWHY_COMPAT, /* a 32-bit program */
	PTWHY_TRACED, /* by somebody else: gdb, strace */
	PTWHY_OTHERS, /* another user's */
	PTWHY_PRIVILEGED, /* it has capabilities that are missing here */
	PTWHY_UNDUMPABLE, /* it has switched that off, or its file may not be read */
	PTWHY_YAMA, /* kernel.yama.ptrace_scope */
	PTWHY_FORBIDDEN, /* by something else: a seccomp filter, a security module */
	PTWHY_LATE, /* it did not stop: it waits for something that cannot be interrupted */
	PTWHY_WALKER, /* the process that walks ended, or did not answer */
	PTWHY_OTHER,
	PTWHY_COUNT
};

const char *ptwhy_name(enum ptwhy why); /* a short word, "" beyond the last */

/*
 * Why CODE came of thread TID of process PID, told in *E with that code;
 * -ESRCH for one that is gone. PRIVILEGED: who was refused has CAP_SYS_PTRACE,
 * though this process may have given it up.
 */
enum ptwhy ptwhy_tell(pid_t pid, pid_t tid, int code, bool privileged, struct err *e);

#endif
