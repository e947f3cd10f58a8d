/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * imagetab - process images by number, by tgid and time, and by identity.
 *
 * An image is what a process is from its fork or exec to the next exec or its
 * end. Numbers stay valid until imagetab_forget(), pointers until the next
 * imagetab_add().
 */
#ifndef STACKTOOLS_IMAGETAB_H
#define STACKTOOLS_IMAGETAB_H

#include "base/intern.h"
#include "capture/types.h"
#include "record/mapset.h"
#include "system/proc.h"

struct image {
	uint32_t tgid, ns_tgid;
	uint32_t cap_id; /* CAP_NONE = not in the capture yet */
	uint32_t older; /* the image before it of the same tgid, UINT32_MAX = none */
	uint32_t flags; /* enum cap_proc_flags */
	int32_t maps_error;
	bool claimed; /* a (start, exec_id) is known to be this one */
	bool told; /* and was before anybody asked: imagetab_tell() */
	bool stale; /* proctab_stale(): its mappings are to be read again, */
	uint64_t mapped_ns; /* it has mapped something since its last scan, first at this time; 0 = not known
			       to have */
	uint64_t due_ns; /* not before this time */
	bool gone; /* its mappings cannot be read any more: it ended, or execed */
	bool over; /* ended for good: about to be forgotten */
	bool free; /* the slot is empty */
	uint32_t exec_id;
	bool from_exec; /* its executable is its first mapping */
	uint64_t begin_ns; /* 0 = before the recording */
	uint64_t end_ns; /* UINT64_MAX = lives */
	uint64_t scan_ns; /* events before this are in the scan; */
	uint64_t overtaken_ns; /* the last mapping of those was made at this time */
	bool mixed; /* a fork of an image that was scanned later: its mappings may be of either time */
	uint64_t start_boot_ns;
	struct mapset *maps;
	size_t maps_written;
	uint64_t *changes; /* when addresses got another meaning, in order */
	size_t n_changes, cap_changes;
	char comm[PROCINFO_COMM_LEN];
	char *exe;
};

struct imagetab {
	struct image *images;
	size_t n, cap;
	uint32_t free; /* empty slots, chained by `older`; UINT32_MAX = none */
	struct idmap by_tgid; /* tgid -> newest image */
	struct idmap by_key; /* (tgid, exec_id, start) -> image */
};

void imagetab_init(struct imagetab *t);
void imagetab_free(struct imagetab *t); /* releases what it holds */

/* A new image of TGID, its newest now; NULL without memory. The one before it ended when this began. */
struct image *imagetab_add(struct imagetab *t, uint32_t tgid, uint64_t begin_ns);

struct image *imagetab_newest(const struct imagetab *t, uint32_t tgid);

/* The image that TGID was at TIME_NS; the oldest known where that is earlier; or NULL. */
struct image *imagetab_at(const struct imagetab *t, uint32_t tgid, uint64_t time_ns);

/*
 * The image that had this identity at TIME_NS, if it had begun by then and its
 * mappings are known, and those of its own; NULL when that is not certain.
 */
const struct image *imagetab_then(
	const struct imagetab *t, uint32_t tgid, uint32_t exec_id, uint64_t start_boot_ns, uint64_t time_ns);

/* The image that was claimed with this identity, UINT32_MAX = none. */
uint32_t imagetab_claimed(const struct imagetab *t, uint32_t tgid, uint32_t exec_id, uint64_t start_boot_ns);

/* Image AT is from now on the one with this identity. False without memory. */
bool imagetab_claim(struct imagetab *t, uint32_t at, uint32_t exec_id, uint64_t start_boot_ns);

/*
 * The newest image of TGID has this identity, for somebody who knows it
 * better than by time; imagetab_told() finds it, or UINT32_MAX.
 */
void imagetab_tell(struct imagetab *t, uint32_t tgid, uint32_t exec_id, uint64_t start_boot_ns);
uint32_t imagetab_told(const struct imagetab *t, uint32_t tgid, uint32_t exec_id, uint64_t start_boot_ns);

/*
 * Set `over` where a process ended so long before NOW_NS that all its waits
 * are reported, and no thread of it is left in /proc. Returns how many are.
 */
size_t imagetab_mark_over(struct imagetab *t, uint64_t now_ns);

/* Empty the slots of the images that are over. */
void imagetab_forget(struct imagetab *t);

#endif
