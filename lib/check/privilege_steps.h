/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * privilege_steps - everything that the tools do and that may take a privilege,
 * step by step.
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
 * priv_bpf - functions that each do one thing that the tools do with BPF: create
 * maps, load and attach programs, run iterators.
 *
 * Each returns 0, or -errno with the message. They run in a process that has the
 * capabilities to be tried and ends afterwards. They pin nothing, so everything
 * is released when that process ends.
 */

#define PRIV_BPF_KEPT 32

/* What one step leaves for the next; zeroed at first. Not released: it lasts until its process ends. */
struct priv_bpf {
	struct unwindspace *space;
	struct unwindspace_fds fds;
	struct aggmap agg;
	struct offprogs progs;
	int maps; /* 1 = created; 0 = not tried yet; else -errno */
	struct err why; /* if they could not be created */
	struct {
		char name[32];
		struct offcpu_bpf *skel;
	} kept[PRIV_BPF_KEPT]; /* loaded programs, kept because verification takes most of the time */
	size_t n_kept;
};

typedef int (*priv_bpf_fn)(struct priv_bpf *b, const char *arg, struct err *e);

/*
 * priv_targets - processes to try capabilities on, started only for this: what
 * is done to them harms no other process.
 *
 * They run as different users without capabilities. Besides what every process
 * maps, each has mapped a file of its own (in memory, mode 0600). They end with
 * priv_targets_close(), or when the process that started them ends in any way.
 */

#define PRIV_TARGETS_USER 65534 /* nobody */

enum priv_targets_process {
	PRIV_TARGETS_OF_ROOT, /* user 0 */
	PRIV_TARGETS_OF_USER, /* the ordinary user */
	PRIV_TARGETS_OF_OTHER, /* user PRIV_TARGETS_OTHER */
	PRIV_TARGETS_HIDDEN, /* the same user; not dumpable, like a process that had privileges */
	PRIV_TARGETS_PROCESSES,
};

/* A mapping at the same address in each of the processes. */
struct priv_targets_map {
	uintptr_t start, end;
	char path[256];
};

struct priv_targets {
	struct worker *process[PRIV_TARGETS_PROCESSES]; /* NULL = could not be created */
	uid_t user; /* the ordinary user */
	struct priv_targets_map common; /* a library that everyone may read */
	struct priv_targets_map own; /* the process's own file; no path */
};

/*
 * Start them. On success release *RET with priv_targets_close(). USER is the
 * ordinary user. A process is missing if this one may not become its user: that
 * is not an error.
 */
int priv_targets_open(uid_t user, struct priv_targets *ret, struct err *e);
void priv_targets_close(struct priv_targets *w); /* ends and reaps them; a zeroed one is fine */

/* In a child process: close the copies of their sockets, so that they end when the parent does. */
void priv_targets_leave(const struct priv_targets *w);

/*
 * priv_proc - functions that each do one thing that a tool does to a process, or
 * read one thing of the kernel.
 *
 * Each returns 0, or -errno with the message. They run in a process that has the
 * capabilities to be tried and ends afterwards. PID is a process of W, and
 * ignored by those that read the kernel.
 */

typedef int (*priv_proc_fn)(const struct priv_targets *w, pid_t pid, struct err *e);

/*
 * Lower the hard RLIMIT_MEMLOCK to at most 64 KiB, then try to raise it by one
 * byte. This process stays with the low limit: try it last.
 */
int priv_proc_memlock(const struct priv_targets *w, pid_t pid, struct err *e);

#define PRIV_STEP_MAX 128
#define PRIV_STEP_UNTRIED (-EUNATCH) /* could not be tried; no step fails with this error */

enum priv_step_group {
	PRIV_STEP_MAPS, /* BPF */
	PRIV_STEP_PROGRAMS,
	PRIV_STEP_ATTACH,
	PRIV_STEP_ITERATORS,
	PRIV_STEP_RAW, /* mode raw */
	PRIV_STEP_STACKMAP,
	PRIV_STEP_PERF,
	PRIV_STEP_KERNEL,
	PRIV_STEP_OWN, /* processes of the same user */
	PRIV_STEP_OTHER, /* processes of other users */
	PRIV_STEP_LIMITS,
};

struct priv_step {
	char id[48]; /* "map.array": stable, for scripts */
	char does[48]; /* "array": its name below the title of its group */
	enum priv_step_group group;
	priv_proc_fn proc; /* either this or bpf */
	priv_bpf_fn bpf;
	enum priv_targets_process whose; /* for proc; OF_USER = a process of the user that tries it */
	char arg[32]; /* for bpf */
	bool kernel_memory; /* lockdown (confidentiality) forbids it, and the kernel logs each attempt */
};

struct priv_step_list {
	struct priv_step list[PRIV_STEP_MAX];
	size_t n;
};

/*
 * All steps, in an order in which one process can do them. The programs are all
 * those in the recorder's BPF object.
 */
int priv_step_all(struct priv_step_list *ret, struct err *e);

/*
 * Do S in this process, whose user is UID. B is what earlier steps of this
 * process left. PRIV_STEP_UNTRIED if the process to do it to is missing.
 */
int priv_step_do(const struct priv_step *s, const struct priv_targets *w, uid_t uid, struct priv_bpf *b,
	struct err *e);

const char *priv_step_title(enum priv_step_group group); /* "create a BPF map" */

/* What the steps of GROUP do, as a reason for a capability: "create BPF maps". */
const char *priv_step_reason(enum priv_step_group group);

#endif
