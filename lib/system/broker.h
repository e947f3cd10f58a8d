/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * broker - a process that keeps the privileges, and only opens files.
 */
#ifndef STACKTOOLS_SYSTEM_BROKER_H
#define STACKTOOLS_SYSTEM_BROKER_H

#include "system/maps.h"
#include "system/worker.h"

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * broker - what the recorder asks of its broker, and the answers. Both ends
 * are one program, forked; the answering end checks every request all the same.
 */

#define BROKER_PATH_MAX 4096 /* with NUL */

/* "STATUS only": the answer has the file's status and no descriptor. */
enum broker_kind {
	BROKER_MAPS = 1, /* /proc/PID/maps; ARG: and what /proc/PID/exe names, in `path` */
	BROKER_STATUS, /* /proc/PID/status */
	BROKER_MAPPING, /* the regular file that PID maps at START-END */
	BROKER_PATH, /* the ELF program or library `path` below the root of PID, 0 = ours; no links */
	BROKER_TMP, /* /tmp below the root of PID, 0 = ours; STATUS only */
	BROKER_PERF_MAP, /* perf-ARG.map there, a regular file, itself no link */
	BROKER_AGG_MAP, /* a BPF map to sum waits in, of ARG elements */
	BROKER_CHUNK_MAP, /* a BPF map for unwind tables */
	BROKER_KINDS
};

struct broker_request {
	uint32_t kind;
	uint32_t pid;
	uint32_t arg;
	uint32_t status_only; /* MAPPING, PATH: any regular file's status, without opening it */
	uint64_t start, end;
	char path[BROKER_PATH_MAX]; /* sent as far as its NUL */
};

struct broker_reply {
	struct stat st; /* MAPPING, PATH, TMP, PERF_MAP */
	char path[BROKER_PATH_MAX]; /* MAPS; sent as far as its NUL */
};

_Static_assert(sizeof(struct broker_request) == 32 + BROKER_PATH_MAX, "no hidden padding");

/*
 * broker - asking the process that kept the privileges to open things.
 *
 * The recorder gives its privileges up before it reads what a traced process
 * can have written. What it has to open later it asks of a process of its own
 * that opens and does nothing else (broker_*()). Every call is for any
 * thread, and takes O NULL: no broker; then, and once the broker has
 * ended, the result is -ENOTCONN, and the caller opens what its own rights
 * allow.
 */

/* 0 with *A, and *FD a descriptor or -1 (FD may be NULL); else -errno: the answer's, -EPERM for what it does
 * not do, or -ENOTCONN. */
int broker_ask(struct worker *o, const struct broker_request *q, struct broker_reply *a, int *fd);

/* A descriptor of that file of process PID (BROKER_MAPS, BROKER_STATUS), or -errno. */
int broker_proc(struct worker *o, enum broker_kind kind, uint32_t pid);

/* The maps, and in *EXE where the executable is, as readlink(2) tells it: free(3) it; NULL = it cannot be
 * told. */
int broker_maps_exe(struct worker *o, uint32_t pid, char **exe);

/*
 * The file that PID maps at START-END; the ELF file PATH below the root of
 * PID (0 = ours). A descriptor for reading, the caller's, and its status;
 * -EMEDIUMTYPE: no regular file; -ENOEXEC: no ELF program or library. The
 * _stat calls do not open it, and return 0.
 */
int broker_mapping(struct worker *o, uint32_t pid, uint64_t start, uint64_t end, struct stat *st);
int broker_mapping_stat(struct worker *o, uint32_t pid, uint64_t start, uint64_t end, struct stat *st);
int broker_path(struct worker *o, uint32_t pid, const char *path, struct stat *st);
int broker_path_stat(struct worker *o, uint32_t pid, const char *path, struct stat *st);

/* /tmp below the root of PID (0 = ours), and the file perf-NUMBER.map in it, as above. */
int broker_tmp_stat(struct worker *o, uint32_t pid, struct stat *st);
int broker_perf_map(struct worker *o, uint32_t pid, uint32_t number, struct stat *st);

/* A BPF map: BROKER_AGG_MAP of N elements, BROKER_CHUNK_MAP. */
int broker_bpf_map(struct worker *o, enum broker_kind kind, uint32_t n);

/*
 * broker - the process that keeps the privileges, and only opens.
 *
 * Forked before there is any thread. It keeps, of what the recorder has,
 * CAP_SYS_PTRACE (other users' /proc/PID), CAP_DAC_READ_SEARCH (files in
 * folders of other users), CAP_CHECKPOINT_RESTORE, or CAP_SYS_ADMIN where that
 * is not there (the files of mappings), CAP_BPF (maps); it is in a sandbox
 * otherwise (system/sandbox.h), under a filter of system calls of its own, and ends
 * with the recorder. It parses nothing but the fixed requests of broker_*().
 *
 * What a recorder that was taken over could have of it, beyond its own
 * rights: the maps, the status and the path of the executable of any process;
 * regular files that a process has mapped, at the very addresses; ELF
 * programs and libraries by path; files named perf-N.map in a /tmp; size,
 * times and inode of regular files; BPF maps of two shapes. No other file's contents,
 * nothing to write, no process's memory.
 */

struct broker_opts {
	/*
	 * Only what the caller could look at without any capability: the two that
	 * reach other users' processes are not kept.
	 */
	bool owner_only;
	bool no_bpf; /* no BPF map will be asked for, and CAP_BPF is not kept */
};

/*
 * Start one, before there is any thread; *RET is the caller's, who asks it
 * with worker_ready() whether it is there. NULL where there is no capability
 * to be kept: then everything is opened directly.
 */
int broker_start(const struct broker_opts *o, struct worker **ret, struct err *e);

/* The capabilities that it keeps, as a bit set, of those that this process has. */
uint64_t broker_caps(const struct broker_opts *o);

/*
 * procaccess - what /proc tells of a process, by this process's own rights or
 * else through the broker (NULL is fine).
 */

/* A descriptor of its file of that KIND (broker_proc()), or -errno. */
int procaccess_open(struct worker *o, enum broker_kind kind, uint32_t pid);

/* As procmaps_each(). */
int procaccess_maps(struct worker *o, uint32_t pid, int (*fn)(void *ctx, const struct procmap *m), void *ctx,
	struct err *e);

/* A descriptor of the maps, or -errno; and *EXE, where it is NULL and can be told, as procinfo_exe(). */
int procaccess_maps_exe(struct worker *o, uint32_t pid, char **exe);

/* As procinfo_living(): a process that is hidden from us lives if the broker sees it. */
uint32_t procaccess_living(struct worker *o, uint32_t pid);

#endif
