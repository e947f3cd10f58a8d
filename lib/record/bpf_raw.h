/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bpf_raw - the programs of bpf/offcpu-raw.bpf.c: a recording for kernels
 * without BTF.
 *
 * They attach to raw tracepoints; if these are refused or do not report the
 * state of the thread that leaves (before Linux 5.18), to classic ones, which
 * need tracefs and the first PID namespace.
 */
#ifndef STACKTOOLS_RECORD_BPF_RAW_H
#define STACKTOOLS_RECORD_BPF_RAW_H

#include "base/err.h"
#include "offcpu_abi.h"
#include "record/options.h"
#include "record/task_layout.h"

#define RAWPROGS_EVENTS 3 /* classic tracepoints */

struct offcpu_bpf; /* offcpu.skel.h */
struct offcpu_raw_bpf; /* offcpu-raw.skel.h */
struct bpf_link;

struct rawprogs {
	struct offcpu_raw_bpf *skel;
	struct offcpu_bpf *base; /* from rawprogs_view() */
	struct task_layout shape;
	int types_fd; /* the kernel's types, for relocations */
	bool classic;
	char classic_why[256];
	int n_links;
	struct bpf_link *links[2 * RAWPROGS_EVENTS];
	char limits[512]; /* what this recording cannot do that mode btf can; separated by "; " */
};

/*
 * Find the kernel's task layout and open the programs for OPTS; nothing is
 * loaded yet. The error message says what is missing. Call rawprogs_close()
 * even on failure.
 */
int rawprogs_open(struct rawprogs *p, const struct offcpu_opts *opts, struct err *e);

/*
 * Make BASE, the object of mode btf (opened, never loaded), a view of P's maps
 * and data. rawprogs_load() copies its constants to P. BASE must outlive P.
 */
int rawprogs_view(struct rawprogs *p, struct offcpu_bpf *base, struct err *e);

/* With OPTS->tables, -ENOTSUP if the kernel's place of a thread's registers or stack start is unknown. */
int rawprogs_load(struct rawprogs *p, const struct offcpu_opts *opts, struct err *e);
int rawprogs_attach(struct rawprogs *p, struct err *e);
void rawprogs_close(struct rawprogs *p); /* NULL, or a zeroed one, is fine */

/* Descriptors of the maps: waits by thread; number of execs by process. */
int rawprogs_waits(const struct rawprogs *p);
int rawprogs_execs(const struct rawprogs *p);

/*
 * rawtasks - the work of mode btf's iterators, done with /proc and the maps of
 * rawprogs: targets by name, images, waits in progress at the start, waits open
 * at the end.
 */

struct rawtasks {
	const struct offcpu_opts *opts;
	int waits, execs, tgids, tids; /* descriptors of maps */
	uint32_t only; /* the only process that is recorded; 0 = there are more */
	uint32_t own[4]; /* the recorder's own processes */
	void *ctx;
	void (*thread)(void *ctx, const struct offcpu_ev_thread *ev); /* called for each wait in progress */
	uint64_t unkept; /* waits in progress for which the map had no room */
};

/* Make each process whose main thread has one of the N names a target, and set SEEN of those that one has. */
int rawtasks_name(
	struct rawtasks *t, const char (*names)[OFFCPU_COMM_LEN], uint8_t *seen, size_t n, struct err *e);

/* The image of process PID; false if it is gone or a kernel thread. */
bool rawtasks_image(const struct rawtasks *t, uint32_t pid, struct offcpu_ev_image *ret);

/*
 * Note each target thread that waits now and that BPF has not seen since it
 * was armed: what BPF has seen wins.
 */
int rawtasks_waiting(struct rawtasks *t, struct err *e);

/* Pass the struct offcpu_wait of each thread to TAKE, while they change. */
int rawtasks_waits(
	const struct rawtasks *t, void (*take)(void *ctx, const void *wait), void *ctx, struct err *e);

/* Pass the waits that have not ended to TAKE. */
int rawtasks_open(const struct rawtasks *t, uint64_t record_start_ns, void (*take)(void *ctx, const void *ev),
	void *ctx, struct err *e);

#endif
