/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * taskiter - run a BPF iterator over tasks once.
 */
#ifndef STACKTOOLS_TASKITER_H
#define STACKTOOLS_TASKITER_H

#include "base/err.h"

struct bpf_program;

/*
 * Run PROG (a section "kern_iter/task", see kernhook.h) over the threads of process PID, or over
 * all tasks: with PID 0, and where the kernel knows no such choice (before
 * Linux 6.1), so PROG has to look for itself. What it writes goes to TAKE
 * (NULL: nowhere), record by record of SIZE bytes. The first bare error of the
 * kernel is returned, with the step in the story.
 */
int taskiter_run(struct bpf_program *prog, uint32_t pid, size_t size,
	void (*take)(void *ctx, const void *record), void *ctx, struct err *e);

#endif
