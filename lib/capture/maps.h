/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * maps - an index of which mapping of a process held an address at a given time.
 *
 * The start and end of every mapping divide the addresses of a process into
 * parts. A segment tree is built over the parts: each mapping is listed at the
 * O(log n) nodes that together cover it, and each node's list is sorted by time.
 * A lookup goes from a part to the root, with a binary search at each node that
 * has mappings. It takes O(log^2 n) for n mappings of the process, and the tree
 * O(n log n) memory, however the mappings overlap.
 */
#ifndef STACKTOOLS_CAPTURE_MAPS_H
#define STACKTOOLS_CAPTURE_MAPS_H

#include "capture/types.h"

struct cap_map_index;

/*
 * Make an index of the N MAPS of N_PROCS processes. Proc ids must be in range,
 * and MAPS must outlive the index. 0 or -ENOMEM. Release with
 * cap_map_index_free().
 */
int cap_map_index_new(const struct cap_map *maps, size_t n, size_t n_procs, struct cap_map_index **ret);
void cap_map_index_free(struct cap_map_index *m); /* NULL is fine */

/*
 * The newest mapping that PROC had at ADDR at FIRST_NS; of two with equal times,
 * the later record is newer. If there was none yet, the oldest of those that
 * appeared until LAST_NS, or NULL. Sets *UNSURE (may be NULL) to whether ADDR
 * changed its meaning between FIRST_NS and LAST_NS.
 */
const struct cap_map *cap_map_index_find(const struct cap_map_index *m, uint32_t proc, uint64_t addr,
	uint64_t first_ns, uint64_t last_ns, bool *unsure);

#endif
