/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capsteps - everything that the tools do and that may take a privilege, step
 * by step.
 */
#ifndef STACKTOOLS_CAPSTEPS_H
#define STACKTOOLS_CAPSTEPS_H

#include "check/capbpf.h"
#include "check/capproc.h"

#include <errno.h>

#define CAPSTEPS_MAX 128
#define CAPSTEPS_UNTRIED (-EUNATCH) /* could not be tried; nothing that a step does fails like that */

enum capsteps_group {
	CAPSTEPS_MAPS, /* BPF */
	CAPSTEPS_PROGRAMS,
	CAPSTEPS_ATTACH,
	CAPSTEPS_ITERATORS,
	CAPSTEPS_RAW, /* mode raw */
	CAPSTEPS_STACKMAP,
	CAPSTEPS_PERF,
	CAPSTEPS_KERNEL,
	CAPSTEPS_OWN, /* processes of one's own */
	CAPSTEPS_OTHER, /* processes of other users */
	CAPSTEPS_LIMITS,
};

struct capstep {
	char id[48]; /* "map.array": stable, for scripts */
	char does[48]; /* "array": what it is, below its group's title */
	enum capsteps_group group;
	capproc_fn proc; /* one of the two */
	capbpf_fn bpf;
	enum capworld_process whose; /* for proc; OF_USER = of the user that it is tried as */
	char arg[32]; /* for bpf */
	bool kernel_memory; /* lockdown forbids it, and the kernel logs each attempt */
};

struct capsteps {
	struct capstep list[CAPSTEPS_MAX];
	size_t n;
};

/*
 * All of them, in an order in which they may be done in one process. The
 * programs are those of the recorder's BPF object, whatever it has.
 */
int capsteps_list(struct capsteps *ret, struct err *e);

/*
 * Do S, as a user of uid UID would. B is what earlier steps of this process
 * left. CAPSTEPS_UNTRIED where there is no process to do it to.
 */
int capsteps_do(
	const struct capstep *s, const struct capworld *w, uid_t uid, struct capbpf *b, struct err *e);

const char *capsteps_title(enum capsteps_group group); /* "create a BPF map" */

/* What is done in that group, as a reason for a capability: "create BPF maps". */
const char *capsteps_reason(enum capsteps_group group);

#endif
