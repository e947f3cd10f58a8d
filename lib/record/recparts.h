/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recparts - what a recording works with, opened in the order that lets it
 * begin soonest.
 *
 * Everything that takes privileges comes first: loading, attaching, opening.
 * Then the process gives them up (privdrop.h), and only then is anything read
 * that a traced process can have had a hand in: its maps, its files, the
 * events of the kernel about it, the unwind tables made of its files. What has to be
 * opened later is asked of the opener (openchild.h).
 */
#ifndef STACKTOOLS_RECPARTS_H
#define STACKTOOLS_RECPARTS_H

#include "capture/writer.h"
#include "record/offcpu.h"
#include "record/proctab.h"
#include "record/recorderopts.h"
#include "record/stacktab.h"
#include "record/unwinder.h"
#include "system/broker.h"
#include "system/drop.h"

struct recparts {
	struct offcpu *bpf;
	struct unwinder *unwinder; /* NULL = user stacks by frame pointer, or none */
	struct procevents *events; /* NULL = not allowed: what BPF reports, and /proc */
	struct proctab *procs;
	struct stacktab *stacks;
	struct capwrite *out;
	struct opener *opener; /* for what no privilege is left for; NULL = there was none to be kept */
	uint64_t opener_caps; /* what it keeps */
	struct privdrop dropped; /* what holds here */
	int kallsyms; /* /proc/kallsyms, opened with privileges; -1 = not to be had */
	int epoll_fd; /* readable when one of them has something to do */
	uint64_t load_ns; /* how long the programs took to load: see recparts_patience_ns() */
	bool refused; /* it was the kernel that refused the BPF side: another mode may work */
	char degraded[512]; /* what cannot be done, and why; "" = nothing */
};

/*
 * Everything for OPTS: loaded and attached, the targets known, their maps read
 * and the tables for them there. The output is made last (outchild.h), so that
 * a recording that cannot begin leaves no file and replaces none. Whatever
 * comes of it, privileges are gone for good once all is attached. Whatever comes
 * of it, release P with recparts_close(). The story names the step and the
 * remedy.
 */
int recparts_open(struct recparts *p, const struct recorder_opts *opts, struct err *e);
void recparts_close(struct recparts *p);

/*
 * The mappings and tables of the image that process PID is now, for which it
 * waits five seconds at most, longer on a slow machine: for one that has begun since. There has to be an
 * unwinder.
 */
int recparts_publish(struct recparts *p, uint32_t pid, struct err *e);

/* That image may have mapped something since it was read. */
void recparts_stale(struct recparts *p, const struct offcpu_ev_image *ev);

/* BPF saw an image that it has no tables for, that has just begun or that maps something. */
void recparts_image(struct recparts *p, const struct offcpu_ev_image *ev);

/* BPF is not to record the processes that work for the recorder. */
void recparts_leave_out(struct recparts *p);

/* LEAST_NS, or on a slow machine TIMES what loading the programs took, which is 0.2 s on a fast one. */
uint64_t recparts_patience_ns(const struct recparts *p, uint64_t least_ns, unsigned int times);

/* What was given up, what is kept, and what confines those who read files: one line. */
void recparts_put_privileges(const struct recparts *p, struct buf *b);

/* WHAT cannot be done, by the story E: the recording goes on without. */
void recparts_degrade(struct recparts *p, const char *what, const struct err *e);

#endif
