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
 * priv_bpf - one thing each that the tools do with BPF, done for real: maps,
 * programs, attaching, iterators.
 *
 * Each returns 0, or -errno with the message. They are called in a process that
 * ends afterwards and has the capabilities to be tried. Nothing is pinned, so
 * all of it is gone with that process.
 */

#define PRIV_BPF_KEPT 32

/* What one step leaves for the next; zeroed at first. It goes with its process. */
struct priv_bpf {
	struct unwindspace *space;
	struct unwindspace_fds fds;
	struct aggmap agg;
	struct offprogs progs;
	int maps; /* 1 = made; 0 = not tried yet; else -errno */
	struct err why; /* where they could not be made */
	struct {
		char name[32];
		struct offcpu_bpf *skel;
	} kept[PRIV_BPF_KEPT]; /* programs that are loaded: the verifier takes most of the time */
	size_t n_kept;
};

typedef int (*priv_bpf_fn)(struct priv_bpf *b, const char *arg, struct err *e);

/*
 * priv_targets - processes to try capabilities on: ones that are there for nothing
 * else, so that whatever is done to them harms nobody.
 *
 * Each of them runs as another user, has no capability, and has mapped a file
 * that is its own (in memory, mode 0600) beside what every process maps. They
 * end when the world is closed, or when the process that opened it is gone,
 * however it went.
 */

#define PRIV_TARGETS_USER 65534 /* nobody */

enum priv_targets_process {
	PRIV_TARGETS_OF_ROOT, /* of user 0 */
	PRIV_TARGETS_OF_USER, /* of the ordinary user */
	PRIV_TARGETS_OF_OTHER, /* of user PRIV_TARGETS_OTHER */
	PRIV_TARGETS_HIDDEN, /* of the same, and not dumpable: as one that had privileges */
	PRIV_TARGETS_PROCESSES,
};

/* What is mapped, at the same place in each of the processes. */
struct priv_targets_map {
	uintptr_t start, end;
	char path[256];
};

struct priv_targets {
	struct worker *process[PRIV_TARGETS_PROCESSES]; /* NULL = could not be had */
	uid_t user; /* the ordinary user */
	struct priv_targets_map common; /* of a library that everybody may read */
	struct priv_targets_map own; /* of the file of its own; no path */
};

/*
 * Start them; *RET is the caller's, released with priv_targets_close(). USER is
 * the ordinary user. One that this process may not become is absent; fails
 * only where there is no process to be had at all.
 */
int priv_targets_open(uid_t user, struct priv_targets *ret, struct err *e);
void priv_targets_close(struct priv_targets *w); /* ends and reaps them; a zeroed one is fine */

/* In a child process: let go of them, so that they end with the parent. */
void priv_targets_leave(const struct priv_targets *w);

/*
 * priv_proc - one thing each that a tool does to a process, or reads of the
 * kernel, done for real.
 *
 * Each returns 0, or -errno with the message. They are called in a process that
 * ends afterwards and has the capabilities to be tried; PID is a process of W
 * (capworld_*()), or of no matter where it is not looked at.
 */

typedef int (*priv_proc_fn)(const struct priv_targets *w, pid_t pid, struct err *e);

/* Raise the hard RLIMIT_MEMLOCK, which this process loses most of when that fails: try it last. */
int priv_proc_memlock(const struct priv_targets *w, pid_t pid, struct err *e);

#define PRIV_STEP_MAX 128
#define PRIV_STEP_UNTRIED (-EUNATCH) /* could not be tried; nothing that a step does fails like that */

enum priv_step_group {
	PRIV_STEP_MAPS, /* BPF */
	PRIV_STEP_PROGRAMS,
	PRIV_STEP_ATTACH,
	PRIV_STEP_ITERATORS,
	PRIV_STEP_RAW, /* mode raw */
	PRIV_STEP_STACKMAP,
	PRIV_STEP_PERF,
	PRIV_STEP_KERNEL,
	PRIV_STEP_OWN, /* processes of one's own */
	PRIV_STEP_OTHER, /* processes of other users */
	PRIV_STEP_LIMITS,
};

struct priv_step {
	char id[48]; /* "map.array": stable, for scripts */
	char does[48]; /* "array": what it is, below its group's title */
	enum priv_step_group group;
	priv_proc_fn proc; /* one of the two */
	priv_bpf_fn bpf;
	enum priv_targets_process whose; /* for proc; OF_USER = of the user that it is tried as */
	char arg[32]; /* for bpf */
	bool kernel_memory; /* lockdown forbids it, and the kernel logs each attempt */
};

struct priv_step_list {
	struct priv_step list[PRIV_STEP_MAX];
	size_t n;
};

/*
 * All of them, in an order in which they may be done in one process. The
 * programs are those of the recorder's BPF object, whatever it has.
 */
int priv_step_all(struct priv_step_list *ret, struct err *e);

/*
 * Do S, as a user of uid UID would. B is what earlier steps of this process
 * left. PRIV_STEP_UNTRIED where there is no process to do it to.
 */
int priv_step_do(const struct priv_step *s, const struct priv_targets *w, uid_t uid, struct priv_bpf *b,
	struct err *e);

const char *priv_step_title(enum priv_step_group group); /* "create a BPF map" */

/* What is done in that group, as a reason for a capability: "create BPF maps". */
const char *priv_step_reason(enum priv_step_group group);

#endif
