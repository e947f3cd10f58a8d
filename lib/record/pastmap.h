/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pastmap - what a process had mapped at a time of the recording, or why that
 * is not certain.
 *
 * A wrong answer would make a wrong stack: what lost events or a late scan may
 * have hidden is "unsure", even where it probably is right.
 */
#ifndef STACKTOOLS_PASTMAP_H
#define STACKTOOLS_PASTMAP_H

#include "record/filetab.h"
#include "record/imagetab.h"
#include "system/maps.h"

/* Where to look; see proctab_past(). */
struct pastmap {
	const struct imagetab *images;
	const struct filetab *files;
	bool scanning; /* processes that were there before the recording are still being looked at */
	bool no_events; /* mappings are known by scans alone */
	uint64_t lost_ns; /* when process events were lost last; 0 = never */
};

enum pastmap_code {
	PASTMAP_MAPPED = 1,
	PASTMAP_NOT_MAPPED,
	PASTMAP_LATER, /* not known before events up to a later time are in */
	PASTMAP_UNSURE /* not to be told any more: events were lost, or a scan came too late */
};

/* Whose mappings, and when; process events up to SETTLED_NS have been taken. CLOCK_MONOTONIC, as all times.
 */
struct pastmap_when {
	uint32_t tgid, exec_id;
	uint64_t start_boot_ns, time_ns, settled_ns;
};

/*
 * What executable mapping held ADDR then? *RET has its place and file (path ""
 * = anonymous; it belongs to P's files), *MADE_NS a time when it was not there
 * before (0 = before the recording); both are set with PASTMAP_MAPPED only.
 */
enum pastmap_code pastmap_find(const struct pastmap *p, const struct pastmap_when *when, uint64_t addr,
	struct procmap *ret, uint64_t *made_ns);

#endif
