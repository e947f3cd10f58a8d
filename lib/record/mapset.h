/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mapset - the executable mappings of a process in the order in which they
 * were made.
 *
 * Append-only, so that what was already written to a capture is a prefix.
 * A forked child shares its parent's set until one of them changes.
 */
#ifndef STACKTOOLS_MAPSET_H
#define STACKTOOLS_MAPSET_H

#include "base/base.h"

struct mapping {
	uint64_t from_ns, start, end, offset; /* as in struct cap_map */
	uint32_t prot, flags;
	uint32_t file; /* of filetab, UINT32_MAX = anonymous */
};

struct mapset {
	unsigned int refs;
	struct mapping *maps;
	size_t n, cap;
};

/*
 * Append NEW to *M (NULL = the empty set), which becomes the caller's own if
 * it was shared. What is there already, unchanged, is not added again. False
 * when memory ran out.
 */
bool mapset_add(struct mapset **m, const struct mapping *new);

/* Is NEW there already, unchanged? M may be NULL. */
bool mapset_has(const struct mapset *m, const struct mapping *new);

/* Would NEW give addresses that M holds another meaning: another file, or another place in it? */
bool mapset_changes(const struct mapset *m, const struct mapping *new);

/* The mapping that held ADDR last of all, or NULL. M may be NULL. */
const struct mapping *mapset_at(const struct mapset *m, uint64_t addr);

/* The same for what was there at TIME_NS. */
const struct mapping *mapset_then(const struct mapset *m, uint64_t addr, uint64_t time_ns);

struct mapset *mapset_share(struct mapset *m); /* another reference; NULL is fine */
void mapset_drop(struct mapset *m); /* gives one back; NULL is fine */

#endif
