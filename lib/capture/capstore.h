/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capstore - the records of a capture's blocks, checked and gathered.
 *
 * Every reference is checked against what came before it. A block counts
 * whole or not at all. Samples of one key become one as they come, so memory
 * grows with distinct waits and not with the length of the recording.
 */
#ifndef STACKTOOLS_CAPSTORE_H
#define STACKTOOLS_CAPSTORE_H

#include "capture/capblock.h"
#include "capture/capnames.h"

/* Elements of each array; as `room`, allocated ones. */
struct capstore_counts {
	size_t options, procs, threads, files, maps, images, ksyms, stacks, kinds, samples, counters, frames,
		exact, pending, slots;
};

struct capstore {
	struct capstore_counts n, room;
	struct cap_host host;
	struct cap_option *options;
	struct cap_proc *procs;
	struct cap_thread *threads;
	struct cap_file *files;
	struct cap_map *maps;
	struct cap_image *images;
	struct cap_ksym *ksyms;
	struct cap_stack *stacks;
	struct cap_sample *samples;
	struct cap_counter *counters;
	uint8_t *kinds; /* of each stack: what every sample asks for fits into a cache */
	uint64_t *frames; /* of all stacks in order */
	uint32_t *exact; /* likewise: numbers of exact frames */
	struct capnames names;
	struct cap_trailer trailer;
	uint64_t last_flush_ns;
	bool has_host, has_trailer;

	struct cap_sample *pending; /* of the block being taken */
	uint32_t *slots; /* hash table over samples: index + 1, 0 = free; n.slots is a power of two */
};

/* Empty, every string "". */
void capstore_init(struct capstore *s);
void capstore_free(struct capstore *s);

/*
 * Take the records of block B, which is intact and of a known type; its
 * PAYLOAD has to stay. 0; -ENOMEM; or -EBADMSG with *WRONG (a constant: "a
 * mapping of a file that is not there") and S as it was.
 */
int capstore_take(struct capstore *s, const struct capblock *b, const uint8_t *payload, const char **wrong);

/*
 * After the last block: threads sorted by process and tid, counters by name,
 * kernel symbols by start, the last record of each key alone; names settled; symbols cut
 * where the next one begins; what the stacks point to set. 0 or -ENOMEM.
 */
int capstore_settle(struct capstore *s);

#endif
