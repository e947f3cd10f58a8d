/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rawtasks - what the iterators of mode btf do, by /proc and by the maps of
 * rawprogs: names among the targets, images, the waits in progress at the start,
 * those that are open at the end.
 */
#ifndef STACKTOOLS_RAWTASKS_H
#define STACKTOOLS_RAWTASKS_H

#include "base/err.h"
#include "offcpu_abi.h"
#include "record/offcpuopts.h"

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
