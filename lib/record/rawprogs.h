/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rawprogs - the programs of bpf/offcpu-raw.bpf.c: a recording for kernels
 * without BTF.
 *
 * At raw tracepoints; where these are refused, or do not tell the state of who
 * leaves (before Linux 5.18), at classic ones, which need tracefs and the first
 * PID namespace.
 */
#ifndef STACKTOOLS_RAWPROGS_H
#define STACKTOOLS_RAWPROGS_H

#include "base/err.h"
#include "record/kernshape.h"
#include "record/offcpuopts.h"

#define RAWPROGS_EVENTS 3 /* classic tracepoints */

struct offcpu_bpf; /* offcpu.skel.h */
struct offcpu_raw_bpf; /* offcpu-raw.skel.h */
struct bpf_link;

struct rawprogs {
	struct offcpu_raw_bpf *skel;
	struct offcpu_bpf *base; /* rawprogs_view()'s */
	struct kernshape shape;
	int types_fd; /* the kernel's types, for relocations */
	bool classic;
	char classic_why[256];
	int n_links;
	struct bpf_link *links[2 * RAWPROGS_EVENTS];
	char limits[512]; /* what this recording cannot do that mode btf can; "; " between */
};

/*
 * Find out where the kernel keeps what, and open the programs for OPTS; nothing
 * is loaded yet. The story says what is missing. Whatever comes of it, release
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

#endif
