/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * task_layout - find out, without being told, where the kernel keeps the members
 * of a task.
 *
 * The bytes of tasks whose ids, names, start times and registers are known
 * (kernsample_*()) are searched for the one place where all of them have theirs.
 * A member with no such place, or more than one, is absent.
 */
#ifndef STACKTOOLS_RECORD_TASK_LAYOUT_H
#define STACKTOOLS_RECORD_TASK_LAYOUT_H

#include "base/base.h"
#include "base/err.h"

/*
 * task_layout - where a kernel keeps the members of a task that a recording
 * reads, for one that does not tell by BTF.
 */

enum task_layout_member {
	/* struct task_struct */
	TASK_LAYOUT_PID,
	TASK_LAYOUT_TGID,
	TASK_LAYOUT_COMM,
	TASK_LAYOUT_FLAGS,
	TASK_LAYOUT_START,
	TASK_LAYOUT_LEADER,
	TASK_LAYOUT_MM,
	TASK_LAYOUT_STACK,
	TASK_LAYOUT_THREAD_PID,
	TASK_LAYOUT_RAN, /* se.sum_exec_runtime */
	TASK_LAYOUT_RAN_BEFORE, /* se.prev_sum_exec_runtime */
	/* struct mm_struct */
	TASK_LAYOUT_START_CODE,
	TASK_LAYOUT_START_STACK,
	/* struct pid, and of the namespace of its numbers */
	TASK_LAYOUT_LEVEL,
	TASK_LAYOUT_NUMBERS,
	TASK_LAYOUT_INUM,
	TASK_LAYOUT_MEMBERS,
};

struct task_layout {
	int at[TASK_LAYOUT_MEMBERS]; /* bytes from the struct's first one; -1 = not found */
	uint32_t regs_from_stack; /* from `stack` to the registers that a thread entered the kernel with; 0 =
				     not found */
	int raw_switch; /* 0 = raw tracepoint sched_switch tells who leaves in what state; else -errno */
	uint32_t ns_level, ns_inum; /* of this process's PID namespace; 0 = the first one, or not found */
};

const char *task_layout_name(enum task_layout_member m); /* "task_struct.pid" */

/* A member that no recording can do without and that was not found; -1 = they all were. */
int task_layout_missing(const struct task_layout *shape);

/* Find what can be found, by threads and a process that it starts and ends. 20 ms. */
int task_layout_trial_run(struct task_layout *ret, struct err *e);

/*
 * task_layout_btf - BTF of what a kernel keeps where: written of what a trial has
 * found, or read from a file and compared with it.
 */

/*
 * Write BTF for SHAPE into the empty file FD: those structs with those members
 * that were found, for relocations by libbpf.
 */
int task_layout_btf_write(const struct task_layout *shape, int fd, struct err *e);

/*
 * Write of the BTF in FILE what BPF programs need into FD. -EINVAL with the
 * message: it is no BTF, or of another kernel than SHAPE (by trial, of this one)
 * is of. Nobody can tell, and so it is refused, where SHAPE lacks ids and name.
 */
int task_layout_btf_read(const struct task_layout *shape, const char *file, int fd, struct err *e);

#endif
