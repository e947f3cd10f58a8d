/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options - the options of a recording.
 */
#ifndef STACKTOOLS_RECORD_OPTIONS_H
#define STACKTOOLS_RECORD_OPTIONS_H

#include "base/base.h"
#include "base/err.h"
#include "capture/writer.h"
#include "system/cgroup.h"

/*
 * record_mode - the ways in which waits can be recorded, best first.
 *
 *   btf     tp_btf programs and task iterators, relocated by the kernel's BTF
 *   raw     raw or classic tracepoints; no kernel BTF, no iterators
 *   procfs  no BPF: /proc is sampled, waits are estimated
 */

enum record_mode {
	RECORD_MODE_AUTO = 0, /* the first that works */
	RECORD_MODE_BTF,
	RECORD_MODE_RAW,
	RECORD_MODE_PROCFS,
	RECORD_MODE_COUNT,
};

extern const char *const record_mode_names[]; /* by enum record_mode, ends in NULL */
const char *record_mode_name(enum record_mode mode); /* "auto", "btf", "raw", "procfs" */

/*
 * offcpu_opts - the options of the BPF side of a recording.
 */

struct unwindspace_fds; /* record/unwind_memory.h */

struct offcpu_opts {
	bool all; /* every process: no target set */
	bool kthreads; /* with all: kernel threads too */
	bool follow; /* children of targets become targets */
	bool single; /* the only target is from one call of offcpu_ask_pid(), */
	uint32_t single_pid; /* for which this is set before */
	bool use_tids; /* offcpu_ask_tid() will be called */
	bool use_comms; /* offcpu_ask_comm() will be called */
	bool use_exec; /* offcpu_ask_exec() will be called */
	bool no_kernel_stacks; /* -U */
	bool verify_stacks; /* take each both ways, and count those that differ */
	bool no_user_stacks; /* -K */
	bool preempted; /* record waits of threads that stayed runnable */
	bool no_waits; /* only samples of the CPU clock */
	uint32_t cpu_hz; /* samples of threads that run, a second; 0 = none. Only in mode btf */
	uint32_t sample_stacks; /* of a thread that waits often at one place, take the stacks of one wait in
				   so many; 0 = of each */
	uint32_t overhead; /* choose that number so that taking stacks costs at most so many hundredths of a
			      percent of the CPUs' time; 0 = do not */
	bool events; /* each wait, and each sample of a thread that runs, by itself */
	uint32_t wakers; /* who ended a wait, who had woken that one ...: steps, up to OFFCPU_WAKERS_MAX; 0 =
			    not recorded. Only in mode btf */
	uint32_t depth; /* frames at most, up to OFFCPU_DEPTH_MAX; 0 = 127 */
	uint32_t state_mask; /* record only these prev_state bits; 0 = any */
	uint64_t trigger_ns; /* report the end of a wait that was as long; 0 = do not */
	uint64_t min_ns, max_ns; /* record only waits in [min, max]; max 0 = no bound */
	bool raw; /* mode raw: without the kernel's own BTF, tp_btf and iterators */
	const char *btf_file; /* file with the kernel's BTF; NULL = from the kernel itself, or with raw by
				 trial */
	bool owner_only; /* only what owner_uid and owner_gid, ids of the first user namespace, could trace
			    without any capability (owner.h) */
	uint32_t owner_uid, owner_gid;
	bool use_cgroup; /* only tasks in or below cgroup_id */
	uint64_t cgroup_id; /* as from name_to_handle_at(2) */
	const char *cgroup_v1; /* its controller's name; NULL = cgroup v2 */
	const struct unwindspace_fds *tables; /* walk user stacks by these; NULL = by frame pointer */
	uint32_t scripts; /* with tables: bit N: find the functions of programs of enum runtime_kind N; not in
			     mode raw */
	int verifier_log; /* above 0: descriptor to append the verifier's log of a refused program to */
	struct worker *broker; /* creates maps when this process no longer may; NULL = none */
	bool no_events; /* there are no procevents: BPF reports forks and execs */
};

enum recorder_unwind {
	RECORDER_UNWIND_AUTO = 0, /* by unwind tables if possible, else by frame pointer */
	RECORDER_UNWIND_DWARF, /* by unwind tables or not at all */
	RECORDER_UNWIND_FP, /* by frame pointer */
};

struct recorder_opts {
	enum record_mode mode; /* RECORD_MODE_AUTO: tools/offcpu-record.c chooses */
	/* mode auto: an option that means nothing in this mode and those before it; NULL = none. If the mode
	   works, do not record: -ECANCELED */
	const char *misfits[RECORD_MODE_COUNT];
	const char *tried; /* the modes that did not work, and why: stored in the capture; NULL = none */
	struct offcpu_opts bpf; /* `tables` and `raw` follow from `unwind` and `mode` */
	uint32_t hz; /* procfs: samples per second */
	bool ptrace; /* procfs: user stacks by stopping threads for a moment */
	const char *cgroup; /* --cgroup: path of its directory; NULL = none */
	const char *container; /* --container: the id; NULL = none */
	const struct cgroup *in; /* that cgroup, opened: record nothing else; NULL = none */
	enum recorder_unwind unwind;
	const char *runtimes; /* --runtimes: "auto", "none" or names; NULL = auto */
	uint64_t unwind_bytes; /* memory for unwind tables; 0 = see record/unwind_tables.h */
	const uint32_t *pids, *tids; /* targets */
	size_t n_pids, n_tids;
	const char *const *comms;
	size_t n_comms;
	bool count_children; /* report how many descendants the processes of `pids` have, which are not
				recorded */
	uint32_t command_pid; /* a child that will exec: recorded from then on; 0 = none */
	bool mask_kernel; /* the user may not know kernel addresses: owner.h, record/stacks.h */
	uint64_t duration_ns; /* the recording will be stopped then; UINT64_MAX = not known */
	uint64_t keep_ns; /* keep only what ended this long ago or later; 0 = keep all */
	uint64_t max_bytes; /* of the capture: keep the latest waits that fit; 0 = any number */
	const char *path; /* of the capture; "-" = stdout */
	bool force;
	bool no_symbols; /* store no names of user frames */
	const char *const *words; /* the command line, stored in the capture's options */
	size_t n_words;
};

/*
 * How many living processes descend from the targets now and are none: 0 unless
 * count_children is set. Cost: targets_count_descendants().
 */
uint64_t record_options_children(const struct recorder_opts *o);

/*
 * record_options - the options of a recording, stored in its capture;
 * docs/capture.5 lists their names.
 */

/*
 * Write the options that every mode has. UNWIND is how user stacks are walked,
 * DEGRADED what works less well here and why ("" = nothing).
 */
void record_options_write(
	struct cap_writer *w, const struct recorder_opts *o, const char *unwind, const char *degraded);

#endif
