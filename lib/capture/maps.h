/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * maps - which mapping of a process held an address at a time.
 *
 * The addresses of a process are parted at every mapping's start and end, and
 * a segment tree stands over the parts: each mapping hangs at the O(log n)
 * nodes that together cover it, and a node's mappings are in order of time.
 * A look-up goes from a part to the root with a binary search at each node
 * that has mappings: O(log^2 n) in n mappings of that process, O(n log n)
 * memory, however they overlap.
 */
#ifndef STACKTOOLS_CAPTURE_MAPS_H
#define STACKTOOLS_CAPTURE_MAPS_H

#include "capture/types.h"

struct cap_map_index;

/*
 * An index of the N MAPS of N_PROCS processes, whose proc ids are in range;
 * both arrays must stay. 0 or -ENOMEM. Release with cap_map_index_free().
 */
int cap_map_index_new(const struct cap_map *maps, size_t n, size_t n_procs, struct cap_map_index **ret);
void cap_map_index_free(struct cap_map_index *m); /* NULL is fine */

/*
 * The newest mapping that PROC had at ADDR at FIRST_NS; a later record is
 * newer where times are equal. Where there was none yet, the oldest of those
 * that came until LAST_NS. *UNSURE (may be NULL): ADDR changed its meaning
 * between FIRST_NS and LAST_NS.
 */
const struct cap_map *cap_map_index_find(const struct cap_map_index *m, uint32_t proc, uint64_t addr,
	uint64_t first_ns, uint64_t last_ns, bool *unsure);

#endif
