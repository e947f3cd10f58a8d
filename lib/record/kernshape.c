/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/kernshape.h"

const char *kernshape_name(enum kernshape_member m)
{
	static const char *const names[KERNSHAPE_MEMBERS] = { "task_struct.pid", "task_struct.tgid",
		"task_struct.comm", "task_struct.flags", "task_struct.start_boottime",
		"task_struct.group_leader", "task_struct.mm", "task_struct.stack", "task_struct.thread_pid",
		"task_struct.se.sum_exec_runtime", "task_struct.se.prev_sum_exec_runtime",
		"mm_struct.start_code", "mm_struct.start_stack", "pid.level", "pid.numbers",
		"pid_namespace.ns.inum" };

	return names[m];
}

/* What no recording can do without. */
static const enum kernshape_member needed[] = { KERNSHAPE_PID, KERNSHAPE_TGID, KERNSHAPE_COMM,
	KERNSHAPE_FLAGS, KERNSHAPE_START, KERNSHAPE_LEADER, KERNSHAPE_MM, KERNSHAPE_START_CODE };

int kernshape_missing(const struct kernshape *shape)
{
	for (size_t i = 0; i < ARRAY_LEN(needed); i++)
		if (shape->at[needed[i]] < 0)
			return needed[i];
	return -1;
}
