/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capbpf - one thing each that the tools do with BPF, done for real: maps,
 * programs, attaching, iterators.
 *
 * Each returns 0, or -errno with the story. They are called in a process that
 * ends afterwards and has the capabilities to be tried. Nothing is pinned, so
 * all of it is gone with that process.
 */
#ifndef STACKTOOLS_CAPBPF_H
#define STACKTOOLS_CAPBPF_H

#include "record/bpf.h"
#include "record/unwind_memory.h"

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

/* Create a map of the kind ARG: one of the names of capbpf_map_name(). */
int capbpf_map(struct capbpf *b, const char *arg, struct err *e);
const char *capbpf_map_name(size_t i); /* "array", "mmapable_array", ...; NULL at the end */

int capbpf_btf(struct capbpf *b, const char *arg, struct err *e); /* load type information */

/* The recorder's program ARG: loaded over the recorder's own maps. */
int capbpf_load(struct capbpf *b, const char *arg, struct err *e);

int capbpf_attach(struct capbpf *b, const char *arg, struct err *e); /* load it and attach it */
int capbpf_place(
	struct capbpf *b, const char *arg, struct err *e); /* load it, put it into the program array */
int capbpf_iterate(struct capbpf *b, const char *arg, struct err *e); /* load it, run it over one process */

/*
 * Call FN with the name of each program of the recorder. 0, or -errno where
 * they cannot even be opened, which takes no privilege.
 */
int capbpf_programs(int (*fn)(void *ctx, const char *name), void *ctx, struct err *e);

/* stackmap-test's program of the type named ARG, loaded and attached. */
int capbpf_stackshot(struct capbpf *b, const char *arg, struct err *e);
const char *capbpf_stackshot_name(size_t i); /* "raw_tp", "tracepoint", ...; NULL at the end */

#endif
