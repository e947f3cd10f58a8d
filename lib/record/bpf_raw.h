/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bpf_raw - the programs of bpf/offcpu-raw.bpf.c: a recording for kernels
 * without BTF.
 *
 * At raw tracepoints; where these are refused, or do not tell the state of who
 * leaves (before Linux 5.18), at classic ones, which need tracefs and the first
 * PID namespace.
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
	struct offcpu_bpf *base; /* rawprogs_view()'s */
	struct task_layout shape;
	int types_fd; /* the kernel's types, for relocations */
	bool classic;
	char classic_why[256];
	int n_links;
	struct bpf_link *links[2 * RAWPROGS_EVENTS];
	char limits[512]; /* what this recording cannot do that mode btf can; "; " between */
};

/*
 * Find out where the kernel keeps what, and open the programs for OPTS; nothing
 * is loaded yet. The message says what is missing. Whatever comes of it, release
 * P with rawprogs_close().
 */
int rawprogs_open(struct rawprogs *p, const struct offcpu_opts *opts, struct err *e);

/*
 * Let BASE, the same maps and data as the other programs have them (opened, and
 * never loaded), stand for those of P. Its constants are P's as they are when P
 * is loaded. BASE has to live as long as P.
 */
int rawprogs_view(struct rawprogs *p, struct offcpu_bpf *base, struct err *e);

/* OPTS->tables is looked at: without the registers there are no walks, -ENOTSUP. */
int rawprogs_load(struct rawprogs *p, const struct offcpu_opts *opts, struct err *e);
int rawprogs_attach(struct rawprogs *p, struct err *e);
void rawprogs_close(struct rawprogs *p); /* NULL, or a zeroed one, is fine */

/* Descriptors of the waits by thread, and of the number of execs by process. */
int rawprogs_waits(const struct rawprogs *p);
int rawprogs_execs(const struct rawprogs *p);

/*
 * rawtasks - what the iterators of mode btf do, by /proc and by the maps of
 * rawprogs: names among the targets, images, the waits in progress at the start,
 * those that are open at the end.
 */

struct rawtasks {
	const struct offcpu_opts *opts;
	int waits, execs, tgids, tids; /* descriptors of maps */
	uint32_t only; /* the one process that is recorded; 0 = there are more */
	uint32_t left_out[3]; /* processes of the recorder's */
	void *ctx;
	void (*thread)(void *ctx, const struct offcpu_ev_thread *ev); /* of each wait in progress */
	uint64_t unkept; /* waits in progress that found no room */
};

/* Each process whose main thread has one of the N names becomes a target. */
int rawtasks_name(struct rawtasks *t, const char (*names)[OFFCPU_COMM_LEN], size_t n, struct err *e);

/* The image of process PID; false when it is gone. */
bool rawtasks_image(const struct rawtasks *t, uint32_t pid, struct offcpu_ev_image *ret);

/*
 * Note each target thread that waits now, and that BPF has not seen since it
 * is armed: the same as it sees wins.
 */
int rawtasks_waiting(struct rawtasks *t, struct err *e);

/* Hand out the waits that have not ended. */
int rawtasks_open(const struct rawtasks *t, uint64_t record_start_ns, void (*take)(void *ctx, const void *ev),
	void *ctx, struct err *e);

#endif
