/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recorderopts - what a recording is asked for.
 */
#ifndef STACKTOOLS_RECORDEROPTS_H
#define STACKTOOLS_RECORDEROPTS_H

#include "record/offcpuopts.h"
#include "record/recmode.h"
#include "system/cgroup.h"

enum recorder_unwind {
	RECORDER_UNWIND_AUTO = 0, /* by unwind tables where that is possible, else by frame pointer */
	RECORDER_UNWIND_DWARF, /* by unwind tables or not at all */
	RECORDER_UNWIND_FP, /* by frame pointer */
};

struct recorder_opts {
	enum recmode mode; /* RECMODE_AUTO: recording.h chooses */
	const char *tried; /* the modes that did not work, and why: kept in the capture; NULL = none */
	struct offcpu_opts bpf; /* `tables` and `raw` are the recorder's own affair */
	uint32_t hz; /* procfs: looks a second */
	bool ptrace; /* procfs: user stacks by stopping threads for a moment */
	const char *cgroup; /* --cgroup: path of its directory; NULL = none */
	const char *container; /* --container: the id; NULL = none */
	const struct cgroup *in; /* either, opened: nothing else is recorded; NULL = none */
	enum recorder_unwind unwind;
	uint64_t unwind_bytes; /* memory for unwind tables; 0 = see tableset.h */
	const uint32_t *pids, *tids; /* targets */
	size_t n_pids, n_tids;
	const char *const *comms;
	size_t n_comms;
	uint32_t command_pid; /* a child that will exec: recorded from then on; 0 = none */
	bool hide_kernel; /* who gets the capture may not know where the kernel is: owner.h, kernhide.h */
	const char *path; /* of the capture; "-" = stdout */
	bool force;
	bool no_symbols; /* store no names of user frames */
	const char *const *words; /* the command line, kept in the capture's options */
	size_t n_words;
};

#endif
