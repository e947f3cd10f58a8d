/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * offcpu - the BPF side of off-CPU recording: load, attach, detach. Floor 4.
 *
 * bpfcheck calls it to find out whether the real programs work here;
 * recorder.h builds the recording on it. The maps and the events are
 * described in bpf/offcpu.h, which both sides include.
 */
#ifndef STACKTOOLS_OFFCPU_H
#define STACKTOOLS_OFFCPU_H

#include "err.h"

struct offcpu;

struct offcpu_opts {
	bool all; /* every process: no target set */
	bool kthreads; /* with all: kernel threads too */
	bool follow; /* children of targets become targets */
	bool no_kernel_stacks; /* -U */
	bool no_user_stacks; /* -K */
	bool preempted; /* record waits of threads that stayed runnable */
	uint32_t depth; /* frames at most; 0 = 127 */
	uint32_t state_mask; /* record only these prev_state bits; 0 = any */
	uint64_t min_ns, max_ns; /* record only waits in [min, max]; max 0 = none */
};

/*
 * Open, size and load the programs for OPTS; nothing runs yet. The story of
 * a failure names the step, the missing capability or kernel feature, and the
 * remedy. On success release *RET with offcpu_close().
 */
int offcpu_load(const struct offcpu_opts *opts, struct offcpu **ret, struct err *e);

/* Attach everything: from here on switches are recorded. */
int offcpu_attach(struct offcpu *o, struct err *e);

/* Detaches and frees; NULL is fine. */
void offcpu_close(struct offcpu *o);

#endif
