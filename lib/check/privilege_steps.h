/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * privilege_steps - everything that the tools do and that may take a privilege, step
 * by step.
 */
#ifndef STACKTOOLS_CHECK_PRIVILEGE_STEPS_H
#define STACKTOOLS_CHECK_PRIVILEGE_STEPS_H

#include "base/err.h"
#include "record/bpf.h"
#include "record/unwind_memory.h"
#include "system/worker.h"

#include <errno.h>
#include <sys/types.h>

/*
 * capbpf - one thing each that the tools do with BPF, done for real: maps,
 * programs, attaching, iterators.
 *
 * Each returns 0, or -errno with the message. They are called in a process that
 * ends afterwards and has the capabilities to be tried. Nothing is pinned, so
 * all of it is gone with that process.
 */

#define CAPBPF_KEPT 32

/* What one step leaves for the next; zeroed at first. It goes with its process. */
struct capbpf {
	struct unwindspace *space;
	struct unwindspace_fds fds;
	struct aggmap agg;
	struct offprogs progs;
	int maps; /* 1 = made; 0 = not tried yet; else -errno */
	struct err why; /* where they could not be made */
	struct {
		char name[32];
		struct offcpu_bpf *skel;
	} kept[CAPBPF_KEPT]; /* programs that are loaded: the verifier takes most of the time */
	size_t n_kept;
};

typedef int (*capbpf_fn)(struct capbpf *b, const char *arg, struct err *e);

/*
 * capworld - processes to try capabilities on: ones that are there for nothing
 * else, so that whatever is done to them harms nobody.
 *
 * Each of them runs as another user, has no capability, and has mapped a file
 * that is its own (in memory, mode 0600) beside what every process maps. They
 * end when the world is closed, or when the process that opened it is gone,
 * however it went.
 */

#define CAPWORLD_USER 65534 /* nobody */

enum capworld_process {
	CAPWORLD_OF_ROOT, /* of user 0 */
	CAPWORLD_OF_USER, /* of the ordinary user */
	CAPWORLD_OF_OTHER, /* of user CAPWORLD_OTHER */
	CAPWORLD_HIDDEN, /* of the same, and not dumpable: as one that had privileges */
	CAPWORLD_PROCESSES,
};

/* What is mapped, at the same place in each of the processes. */
struct capworld_map {
	uintptr_t start, end;
	char path[256];
};

struct capworld {
	struct worker *process[CAPWORLD_PROCESSES]; /* NULL = could not be had */
	uid_t user; /* the ordinary user */
	struct capworld_map common; /* of a library that everybody may read */
	struct capworld_map own; /* of the file of its own; no path */
};

/*
 * Start them; *RET is the caller's, released with capworld_close(). USER is
 * the ordinary user. One that this process may not become is absent; fails
 * only where there is no process to be had at all.
 */
int capworld_open(uid_t user, struct capworld *ret, struct err *e);
void capworld_close(struct capworld *w); /* ends and reaps them; a zeroed one is fine */

/* In a child process: let go of them, so that they end with the parent. */
void capworld_leave(const struct capworld *w);

/*
 * capproc - one thing each that a tool does to a process, or reads of the
 * kernel, done for real.
 *
 * Each returns 0, or -errno with the message. They are called in a process that
 * ends afterwards and has the capabilities to be tried; PID is a process of W
 * (capworld_*()), or of no matter where it is not looked at.
 */

typedef int (*capproc_fn)(const struct capworld *w, pid_t pid, struct err *e);

/* Raise the hard RLIMIT_MEMLOCK, which this process loses most of when that fails: try it last. */
int capproc_memlock(const struct capworld *w, pid_t pid, struct err *e);

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
