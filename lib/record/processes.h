/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * processes - process images, their mappings and their threads, as they were
 * at each time of the recording.
 *
 * Fed by /proc (what was there before) and by procevents (what happened
 * since). An exec, or a PID that is used again, begins another image. Nothing
 * reaches the capture before a sample needs it.
 */
#ifndef STACKTOOLS_RECORD_PROCESSES_H
#define STACKTOOLS_RECORD_PROCESSES_H

#include "base/base.h"
#include "base/intern.h"
#include "capture/types.h"
#include "capture/writer.h"
#include "offcpu_abi.h"
#include "record/files.h"
#include "system/broker.h"
#include "system/events.h"
#include "system/maps.h"
#include "system/proc.h"

/*
 * threadtab - the threads that had waits: what BPF told of each, and which
 * process image it belongs to.
 *
 * A thread is (tgid, tid, start of its process, number of execs), as in
 * struct offcpu_key. Pointers are valid until the next announce, get or drop.
 */

struct thread {
	uint32_t tgid, tid;
	uint32_t ns_tgid, ns_tid;
	uint64_t start_boot_ns;
	uint32_t exec_id;
	uint32_t task_flags; /* PF_*, 0 = not told */
	uint32_t image; /* of proctab; UINT32_MAX = no sample yet */
	bool dirty; /* its name is not in the capture yet */
	char comm[OFFCPU_COMM_LEN], leader_comm[OFFCPU_COMM_LEN];
};

/*
 * process_maps - the executable mappings of a process in the order in which they
 * were made.
 *
 * Append-only, so that what was already written to a capture is a prefix.
 * A forked child shares its parent's set until one of them changes.
 */

struct mapping {
	uint64_t from_ns, start, end, offset; /* as in struct cap_map */
	uint32_t prot, flags;
	uint32_t file; /* of filetab, UINT32_MAX = anonymous */
};

struct process_maps {
	unsigned int refs;
	struct mapping *maps;
	size_t n, cap;
};

/*
 * Append NEW to *M (NULL = the empty set), which becomes the caller's own if
 * it was shared. What is there already, unchanged, is not added again. False
 * when memory ran out.
 */
bool process_maps_add(struct process_maps **m, const struct mapping *new);

/* The mapping that held ADDR last of all, or NULL. M may be NULL. */
const struct mapping *process_maps_at(const struct process_maps *m, uint64_t addr);

/* The same for what was there at TIME_NS. */
const struct mapping *process_maps_then(const struct process_maps *m, uint64_t addr, uint64_t time_ns);

struct process_maps *process_maps_share(struct process_maps *m); /* another reference; NULL is fine */
void process_maps_drop(struct process_maps *m); /* gives one back; NULL is fine */

/*
 * imagetab - process images by number, by tgid and time, and by identity.
 *
 * An image is what a process is from its fork or exec to the next exec or its
 * end. Numbers stay valid until imagetab_forget(), pointers until the next
 * imagetab_add().
 */

struct image {
	uint32_t tgid, ns_tgid;
	uint32_t cap_id; /* CAPTURE_NONE = not in the capture yet */
	uint32_t older; /* the image before it of the same tgid, UINT32_MAX = none */
	uint32_t flags; /* enum cap_proc_flags */
	int32_t maps_error;
	bool claimed; /* a (start, exec_id) is known to be this one */
	bool told; /* and was before anybody asked: imagetab_tell() */
	bool stale; /* process_table_stale(): its mappings are to be read again, */
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
	struct process_maps *maps;
	size_t maps_written;
	uint64_t *changes; /* when addresses got another meaning, in order */
	size_t n_changes, max_changes;
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

/*
 * past_maps - what a process had mapped at a time of the recording, or why that
 * is not certain.
 *
 * A wrong answer would make a wrong stack: what lost events or a late scan may
 * have hidden is "unsure", even where it probably is right.
 */

/* Where to look; see process_table_past(). */
struct past_maps {
	const struct imagetab *images;
	const struct file_table *files;
	bool scanning; /* processes that were there before the recording are still being looked at */
	bool no_events; /* mappings are known by scans alone */
	uint64_t lost_ns; /* when process events were lost last; 0 = never */
};

enum past_maps_code {
	PAST_MAPS_MAPPED = 1,
	PAST_MAPS_NOT_MAPPED,
	PAST_MAPS_LATER, /* not known before events up to a later time are in */
	PAST_MAPS_UNSURE /* not to be told any more: events were lost, or a scan came too late */
};

/* Whose mappings, and when; process events up to SETTLED_NS have been taken. CLOCK_MONOTONIC, as all times.
 */
struct past_maps_when {
	uint32_t tgid, exec_id;
	uint64_t start_boot_ns, time_ns, settled_ns;
};

/*
 * What executable mapping held ADDR then? *RET has its place and file (path ""
 * = anonymous; it belongs to P's files), *MADE_NS a time when it was not there
 * before (0 = before the recording); both are set with PAST_MAPS_MAPPED only.
 */
enum past_maps_code past_maps_find(const struct past_maps *p, const struct past_maps_when *when,
	uint64_t addr, struct procmap *ret, uint64_t *made_ns);

struct image; /* imagetab_*() */
struct file_table;
struct process_maps;
struct past_maps; /* pastmap_*() */
struct process_table;

/* ALL: every process is tracked from its fork on, else only what was scanned (FOLLOW: and its children). */
int process_table_new(bool all, bool follow, struct process_table **ret, struct err *e);

/* What our own rights do not reach is asked of O, which outlives T. */
void process_table_broker(struct process_table *t, struct worker *o);
void process_table_free(struct process_table *t); /* NULL is fine */

/*
 * No process events will come: images are told apart by IDENTITY, which puts
 * the image that process TGID is now into *RET and is false when there is none,
 * and process_table_image_seen() reports new ones. Mappings are read again when
 * process_table_stale() or process_table_refresh() says so. /proc/PID/maps belongs to the
 * image that had it opened, so whoever has its identity afterwards is that image.
 */
typedef bool process_table_identity(void *ctx, uint32_t tgid, struct offcpu_ev_image *ret);
void process_table_without_events(struct process_table *t, process_table_identity *identity, void *ctx);

/* A wait, a fork or an exec of the image EV was seen: it is scanned by process_table_freshen(). */
void process_table_image_seen(struct process_table *t, const struct offcpu_ev_image *ev);

/* What IDENTITY says; true where events tell. */
bool process_table_is_still(struct process_table *t, const struct offcpu_ev_image *ev);

/* That image may have mapped something that is not known; AT_ONCE: it has. */
void process_table_stale(struct process_table *t, const struct offcpu_ev_image *ev, bool at_once);

/* EV, of OFFCPU_EV_MAPPING: what its next scan finds in another's place is there since then. */
void process_table_mapping(struct process_table *t, const struct offcpu_ev_image *ev);

/* Read what is new or stale and due, the newest first, for about BUDGET_NS. */
void process_table_freshen(struct process_table *t, uint64_t budget_ns);

/* The mappings of KEY's process are to be known as they were at TIME_NS, or later. */
void process_table_refresh(struct process_table *t, const struct offcpu_key *key, uint64_t time_ns);

/*
 * Read process PID's mappings, name and executable from /proc; NOW_NS is the
 * time before the reading began. 0, or -errno with the message; the process is
 * tracked all the same, with the error in its record.
 */
int process_table_scan(struct process_table *t, uint32_t pid, uint64_t now_ns, struct err *e);

/*
 * Read the mappings of PID's image again, for nobody told what it mapped since
 * it was scanned: what is new counts from that scan on. As process_table_scan().
 */
int process_table_rescan(struct process_table *t, uint32_t pid, uint64_t now_ns, struct err *e);

/* Is something known to be mapped at ADDR in what PID is now? */
bool process_table_covers(const struct process_table *t, uint32_t pid, uint64_t addr);

/*
 * Scan every process of /proc, in steps: each call of process_table_scan_some()
 * goes on for BUDGET_NS, and is true when there is nothing left to do.
 */
void process_table_scan_all(struct process_table *t);
bool process_table_scan_some(struct process_table *t, uint64_t budget_ns);

/* In the order in which they happened. */
void process_table_event(struct process_table *t, const struct procevent *ev);

/*
 * The image that process TGID is now is the one with this identity: for
 * somebody whose times are too rough to tell which image a wait was of.
 */
void process_table_identify(struct process_table *t, uint32_t tgid, uint32_t exec_id, uint64_t start_boot_ns);

/* A thread's names and ids, from BPF; before the first sample of that thread. */
void process_table_announce(struct process_table *t, const struct offcpu_ev_thread *ev);

/*
 * The capture's id of the image that KEY's process was when a wait began at
 * FIRST_NS; the image, its files, mappings and the thread are written to W
 * first as far as they are new. CAPTURE_NONE when memory ran out.
 */
uint32_t process_table_emit(
	struct process_table *t, const struct offcpu_key *key, uint64_t first_ns, struct cap_writer *w);

/* Write what changed since for images that are in the capture; forget images that ended and have no samples.
 */
void process_table_flush(struct process_table *t, uint64_t now_ns, struct cap_writer *w);

/*
 * The mapping epoch (see CAPTURE_SAMPLE_EPOCH) of waits of KEY's process that
 * began from FIRST_NS to LAST_NS; after process_table_emit() of the same key. 0
 * where no address ever changed its meaning.
 */
uint32_t process_table_epoch(
	struct process_table *t, const struct offcpu_key *key, uint64_t first_ns, uint64_t last_ns);

/* The image that KEY's process was, after process_table_emit() of the same key; NULL. Until the next call
 * that changes T. */
const struct image *process_table_image(struct process_table *t, const struct offcpu_key *key);

/* Is process PID one of those whose life is followed? */
bool process_table_tracks(const struct process_table *t, uint32_t pid);

/* The mappings of KEY's process, after process_table_emit() of it; NULL = none known. T's, until it changes.
 */
const struct process_maps *process_table_maps(struct process_table *t, const struct offcpu_key *key);

struct file_table *process_table_files(struct process_table *t); /* stay T's */

/* What past_maps_find() looks in: T's, until the next call that changes T. */
void process_table_past(const struct process_table *t, struct past_maps *ret);

/*
 * Since the last call, was something mapped where the same process had had
 * something else? Then waits before and after must not share a sample.
 */
bool process_table_remapped(struct process_table *t);

struct process_table_stats {
	uint64_t images; /* in the capture */
	uint64_t maps_refused; /* of them, without mappings for lack of permission */
	uint64_t maps_lost; /* of them, without mappings */
	uint64_t files_unread;
	uint64_t events_lost; /* records that the kernel dropped */
};

void process_table_stats(const struct process_table *t, struct process_table_stats *ret);

#endif
