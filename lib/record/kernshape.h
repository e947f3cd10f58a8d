/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernshape - where a kernel keeps the members of a task that a recording
 * reads, for one that does not tell by BTF.
 */
#ifndef STACKTOOLS_KERNSHAPE_H
#define STACKTOOLS_KERNSHAPE_H

#include "base/base.h"

enum kernshape_member {
	/* struct task_struct */
	KERNSHAPE_PID,
	KERNSHAPE_TGID,
	KERNSHAPE_COMM,
	KERNSHAPE_FLAGS,
	KERNSHAPE_START,
	KERNSHAPE_LEADER,
	KERNSHAPE_MM,
	KERNSHAPE_STACK,
	KERNSHAPE_THREAD_PID,
	KERNSHAPE_RAN, /* se.sum_exec_runtime */
	KERNSHAPE_RAN_BEFORE, /* se.prev_sum_exec_runtime */
	/* struct mm_struct */
	KERNSHAPE_START_CODE,
	KERNSHAPE_START_STACK,
	/* struct pid, and of the namespace of its numbers */
	KERNSHAPE_LEVEL,
	KERNSHAPE_NUMBERS,
	KERNSHAPE_INUM,
	KERNSHAPE_MEMBERS,
};

struct kernshape {
	int at[KERNSHAPE_MEMBERS]; /* bytes from the struct's first one; -1 = not found */
	uint32_t regs_from_stack; /* from `stack` to the registers that a thread entered the kernel with; 0 =
				     not found */
	int raw_switch; /* 0 = raw tracepoint sched_switch tells who leaves in what state; else -errno */
	uint32_t ns_level, ns_inum; /* of this process's PID namespace; 0 = the first one, or not found */
};

const char *kernshape_name(enum kernshape_member m); /* "task_struct.pid" */

/* A member that no recording can do without and that was not found; -1 = they all were. */
int kernshape_missing(const struct kernshape *shape);

#endif
