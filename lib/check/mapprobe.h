/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mapprobe - kinds of BPF maps, made and used for a moment.
 *
 * Each is a probe_fn (probe.h): 0 with what was seen, or -errno with the
 * story. What it makes is gone when its process ends.
 */
#ifndef STACKTOOLS_MAPPROBE_H
#define STACKTOOLS_MAPPROBE_H

#include "check/probe.h"

/* Arrays, hashes and what else is made and needs no use to be believed. */
int mapprobe_plain(char *found, size_t cap, struct err *e);
int mapprobe_ring(char *found, size_t cap, struct err *e); /* made and mapped */
int mapprobe_mmapable(
	char *found, size_t cap, struct err *e); /* written through memory, read through bpf(2) */
int mapprobe_map_in_map(char *found, size_t cap, struct err *e); /* a map put into another */
int mapprobe_task_storage(char *found, size_t cap, struct err *e); /* of this thread: written and read back */

/*
 * Whether maps count against RLIMIT_MEMLOCK: one is made under a limit of
 * nothing. Lowers the limit of this process for good.
 */
int mapprobe_memlock(char *found, size_t cap, struct err *e);

#endif
