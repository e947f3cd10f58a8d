/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * task_layout - the search for the offsets at which the kernel keeps the
 * members of a task, without BTF.
 *
 * It reads the memory of tasks whose ids, names, start times and registers are
 * known (struct task_samples), and looks for the one offset at which each of
 * them has its own value. A member with no such offset, or with several, is not
 * found.
 */
#ifndef STACKTOOLS_RECORD_TASK_LAYOUT_H
#define STACKTOOLS_RECORD_TASK_LAYOUT_H

#include "base/base.h"
#include "base/err.h"

/* task_layout - the offsets of the members of a task that a recording reads, for a kernel without BTF. */

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
	/* struct pid, and the namespace of its numbers */
	TASK_LAYOUT_LEVEL,
	TASK_LAYOUT_NUMBERS,
	TASK_LAYOUT_INUM,
	TASK_LAYOUT_TLS, /* thread.fsbase, of x86-64 */
	TASK_LAYOUT_MEMBERS,
};

struct task_layout {
	int at[TASK_LAYOUT_MEMBERS]; /* byte offset in the struct; -1 = not found */
	uint32_t regs_from_stack; /* bytes from `stack` to the registers with which a thread entered the
				     kernel; 0 = not found */
	int raw_switch; /* 0 = raw tracepoint sched_switch reports the task that leaves and its state; else
			   -errno */
	uint32_t ns_level, ns_inum; /* of this process's PID namespace; 0 = the initial one, or not found */
};

const char *task_layout_name(enum task_layout_member m); /* "task_struct.pid" */

/* The first required member that was not found; -1 = all were found. */
int task_layout_missing(const struct task_layout *shape);

/* Find the members, with threads and a process that it starts and ends. Takes 20 ms. */
int task_layout_trial_run(struct task_layout *ret, struct err *e);

/*
 * task_layout_btf - BTF of the structs of a task_layout: written from one, or
 * read from a file and compared with one.
 */

/*
 * Write BTF for SHAPE into the empty file FD: the structs with the members that
 * were found, for relocations by libbpf.
 */
int task_layout_btf_write(const struct task_layout *shape, int fd, struct err *e);

/*
 * Write to FD what BPF programs need of the BTF in FILE. -EINVAL with the
 * message if FILE is not BTF, or belongs to another kernel than SHAPE (found by
 * trial on this one). The same if SHAPE lacks ids or name, because then the two
 * cannot be compared.
 */
int task_layout_btf_read(const struct task_layout *shape, const char *file, int fd, struct err *e);

#endif
