/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * offprogs - the programs and maps of bpf/offcpu.bpf.c: sized, loaded and
 * attached.
 *
 * The verifier takes most of a start, so there are three of the same object:
 * one makes the maps, and the two others use these, one with the programs
 * that run at events, one with the iterators, loaded by two threads. In mode raw
 * the maps are those of another object, rawprogs.
 */
#ifndef STACKTOOLS_OFFPROGS_H
#define STACKTOOLS_OFFPROGS_H

#include "record/offcpuopts.h"

#include "base/err.h"
#include "record/kernhook.h"
#include "record/rawprogs.h"

struct offcpu_bpf; /* offcpu.skel.h */

struct offprogs {
	struct offcpu_bpf *base; /* maps and data, no program; with `raw` those of its object */
	struct offcpu_bpf *events; /* programs at tracepoints */
	struct offcpu_bpf *iters; /* programs that taskiter_run() runs */
	struct rawprogs *raw; /* mode raw: these, in place of events and iters; NULL = mode btf */
	struct kernhook hook;
	int verifier_log; /* of the options */
	bool first_ns; /* the sets' ids need no translation: first PID namespace, or mode raw */
	char limits[512]; /* what this kernel does not let them do, and why; "; " between, "" = nothing */
};

/*
 * Size and load everything for OPTS, with the aggregation maps behind AGG_FD;
 * nothing runs yet. The story of a failure names the step, the missing
 * capability or kernel feature, and the remedy. Whatever comes of it, release
 * P with offprogs_close().
 */
int offprogs_load(struct offprogs *p, const struct offcpu_opts *opts, int agg_fd, struct err *e);

/* The iterator over threads that wait already. */
struct bpf_program *offprogs_waiting(const struct offprogs *p);

/* Attach what runs at events. */
int offprogs_attach(struct offprogs *p, struct err *e);

/* Detaches and frees; a zeroed one is fine. */
void offprogs_close(struct offprogs *p);

/* The story of CODE, "cannot WHAT", with the capabilities that were missing. */
int offprogs_refused(const char *what, int code, struct err *e);

/*
 * In place of offprogs_load(), for who wants to know about each program by
 * itself: the maps, with P to be released as above; then the program NAME alone
 * over these maps, as often as wanted. Whatever comes of it, release *RET with
 * offcpu_bpf__destroy().
 */
int offprogs_load_maps(struct offprogs *p, const struct offcpu_opts *opts, int agg_fd, struct err *e);
int offprogs_load_one(struct offprogs *p, const char *name, struct offcpu_bpf **ret, struct err *e);

#endif
