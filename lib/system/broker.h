/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * broker - a process that keeps privileges and only opens files.
 */
#ifndef STACKTOOLS_SYSTEM_BROKER_H
#define STACKTOOLS_SYSTEM_BROKER_H

#include "system/events.h"
#include "system/maps.h"
#include "system/worker.h"

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * broker - the recorder's requests to its broker, and the replies. Both ends are
 * the same program, forked; the broker still checks every request.
 */

#define BROKER_PATH_MAX 4096 /* with NUL */

/* "STATUS only": the reply has the file's status and no descriptor. */
enum broker_kind {
	BROKER_MAPS = 1, /* /proc/PID/maps; if ARG is set, also the target of /proc/PID/exe in `path` */
	BROKER_STATUS, /* /proc/PID/status */
	BROKER_MAPPING, /* the regular file that PID maps at START-END */
	BROKER_PATH, /* the ELF program or library `path` below the root of PID, 0 = ours; no links */
	BROKER_TMP, /* /tmp below the root of PID, 0 = ours; STATUS only */
	BROKER_PERF_MAP, /* perf-ARG.map in that /tmp: a regular file, not a link */
	BROKER_AGG_MAP, /* a BPF map of ARG elements for the sums of waits; START: with wakers */
	BROKER_CHUNK_MAP, /* a BPF map for unwind tables */
	BROKER_EVENT, /* procevent_open() of thread PID on CPU ARG; START, END: its options */
	BROKER_KINDS
};

struct broker_request {
	uint32_t kind;
	uint32_t pid;
	uint32_t arg;
	uint32_t status_only; /* MAPPING, PATH: the status of any regular file, without opening it */
	uint64_t start, end;
	char path[BROKER_PATH_MAX]; /* sent up to its NUL */
};

struct broker_reply {
	struct stat st; /* MAPPING, PATH, TMP, PERF_MAP */
	char path[BROKER_PATH_MAX]; /* MAPS; sent up to its NUL */
};

_Static_assert(sizeof(struct broker_request) == 32 + BROKER_PATH_MAX, "no hidden padding");

/*
 * broker - requests to the process that kept the privileges.
 *
 * The recorder gives up its privileges before it reads anything that a traced
 * process may have written. To open files later, it sends requests (broker_*())
 * to a process of its own that opens files and does nothing else. Every call is
 * thread-safe and accepts O NULL, for no broker. Without a broker, or after it
 * has ended, the result is -ENOTCONN, and the caller opens what its own
 * permissions allow.
 */

/*
 * 0 with *A, and *FD a descriptor or -1 (FD may be NULL); else -errno: the
 * broker's error, -EPERM for a request that it does not serve, -EPROTO for a
 * short reply, or -ENOTCONN.
 */
int broker_ask(struct worker *o, const struct broker_request *q, struct broker_reply *a, int *fd);

/* A descriptor of /proc/PID/maps (BROKER_MAPS) or /proc/PID/status (BROKER_STATUS), or -errno. */
int broker_proc(struct worker *o, enum broker_kind kind, uint32_t pid);

/*
 * A descriptor of the maps, and in *EXE the path of the executable as returned by
 * readlink(2): free it; NULL = unknown.
 */
int broker_maps_exe(struct worker *o, uint32_t pid, char **exe);

/*
 * Open the file that PID maps at START-END, or the ELF file PATH below the root
 * of PID (0 = ours). Returns a descriptor for reading, which the caller owns,
 * and the file's status. -EMEDIUMTYPE: not a regular file; -ENOEXEC: not an ELF
 * program or library. The _stat calls do not open the file and return 0.
 */
int broker_mapping(struct worker *o, uint32_t pid, uint64_t start, uint64_t end, struct stat *st);
int broker_mapping_stat(struct worker *o, uint32_t pid, uint64_t start, uint64_t end, struct stat *st);
int broker_path(struct worker *o, uint32_t pid, const char *path, struct stat *st);
int broker_path_stat(struct worker *o, uint32_t pid, const char *path, struct stat *st);

/* The same for /tmp below the root of PID (0 = ours), and for the file perf-NUMBER.map in it. */
int broker_tmp_stat(struct worker *o, uint32_t pid, struct stat *st);
int broker_perf_map(struct worker *o, uint32_t pid, uint32_t number, struct stat *st);

/* Create a BPF map: BROKER_AGG_MAP of N elements, whose keys have WAKERS or not, or BROKER_CHUNK_MAP. */
int broker_bpf_map(struct worker *o, enum broker_kind kind, uint32_t n, bool wakers);

/* procevent_open() of thread TID. */
int broker_event(struct worker *o, const struct procevent_how *how, int32_t tid, uint32_t cpu);

/*
 * broker - the process that keeps the privileges and only opens files.
 *
 * It is forked before any thread exists. Of the recorder's capabilities it keeps
 * CAP_SYS_PTRACE (other users' /proc/PID), CAP_DAC_READ_SEARCH (files in
 * directories of other users), CAP_CHECKPOINT_RESTORE (files of mappings) and
 * CAP_BPF (maps), and CAP_PERFMON where processes may become targets (their events), or CAP_SYS_ADMIN in
 * place of the last three if they are missing. Otherwise it runs in a sandbox (system/sandbox.h) with its own
 * system call filter, and ends with the recorder. It parses only the fixed requests of broker_*().
 *
 * A compromised recorder could get from it, beyond its own permissions: the
 * maps, the status and the path of the executable of any process; regular files
 * that a process has mapped, at their exact addresses; ELF programs and
 * libraries by path; files named perf-N.map in a /tmp; size, times and inode of
 * regular files; BPF maps of two shapes; where processes may become targets, what a thread maps, as it
 * happens. It could get no contents of other files, no write access and no memory of a process.
 */

struct broker_opts {
	/*
	 * Open only what the caller could read without any capability: the two
	 * capabilities that reach other users' processes are not kept.
	 */
	bool owner_only;
	bool no_bpf; /* no BPF map will be requested, so CAP_BPF is not kept */
	bool events; /* broker_event() will be, so CAP_PERFMON is kept, unless `owner_only` */
};

/*
 * Start a broker, before any thread exists. The caller owns *RET, and checks with
 * worker_ready() whether it has started. *RET is NULL if there is no capability
 * to keep: then everything is opened directly.
 */
int broker_start(const struct broker_opts *o, struct worker **ret, struct err *e);

/* The capabilities of this process that the broker keeps, as a bit set. */
uint64_t broker_caps(const struct broker_opts *o);

/*
 * procaccess - /proc/PID with our own permissions, or else through the broker
 * (NULL is fine).
 */

/* A descriptor of the file of this KIND (see broker_proc()), or -errno. */
int procaccess_open(struct worker *o, enum broker_kind kind, uint32_t pid);

/* Like procmaps_each(). */
int procaccess_maps(struct worker *o, uint32_t pid, int (*fn)(void *ctx, const struct procmap *m), void *ctx,
	struct err *e);

/* A descriptor of the maps, or -errno. If *EXE is NULL, it is set like procinfo_exe() if possible. */
int procaccess_maps_exe(struct worker *o, uint32_t pid, char **exe);

/* Like procinfo_living(): a process that is hidden from us is alive if the broker sees it. */
uint32_t procaccess_living(struct worker *o, uint32_t pid);

#endif
