/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * offcpuopts - what the BPF side of a recording is asked for.
 */
#ifndef STACKTOOLS_OFFCPUOPTS_H
#define STACKTOOLS_OFFCPUOPTS_H

#include "base/base.h"

struct unwindspace_fds; /* unwindspace.h */

struct offcpu_opts {
	bool all; /* every process: no target set */
	bool kthreads; /* with all: kernel threads too */
	bool follow; /* children of targets become targets */
	bool single; /* one call of offcpu_ask_pid() is all there will be */
	bool use_tids; /* offcpu_ask_tid() will be called */
	bool use_comms; /* offcpu_ask_comm() will be called */
	bool use_exec; /* offcpu_ask_exec() will be called */
	bool no_kernel_stacks; /* -U */
	bool no_user_stacks; /* -K */
	bool preempted; /* record waits of threads that stayed runnable */
	uint32_t depth; /* frames at most, up to OFFCPU_DEPTH_MAX; 0 = 127 */
	uint32_t state_mask; /* record only these prev_state bits; 0 = any */
	uint64_t min_ns, max_ns; /* record only waits in [min, max]; max 0 = no bound */
	bool raw; /* raw mode (recmode.h): without the kernel's own BTF, tp_btf and iterators */
	const char *btf_file; /* the kernel's BTF from a file; NULL = of the kernel itself, or with raw by
				 trial */
	bool owner_only; /* only what that user and group, of the first namespace, could trace without any
			    capability (owner.h) */
	uint32_t owner_uid, owner_gid;
	bool use_cgroup; /* only tasks below the cgroup of that id */
	uint64_t cgroup_id; /* as name_to_handle_at(2) tells it */
	const char *cgroup_v1; /* its controller's name; NULL = cgroup v2 */
	const struct unwindspace_fds *tables; /* walk user stacks by these; NULL = by frame pointer */
	int verifier_log; /* above 0: the verifier's log of a program that it refuses is appended there */
	struct opener *opener; /* makes maps when this process may not any more; NULL = none */
	bool no_events; /* there are no procevents: BPF tells of forks and execs */
};

#endif
