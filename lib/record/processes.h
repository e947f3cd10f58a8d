/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * processes - process images, their mappings and their threads, at each time of
 * the recording.
 *
 * /proc supplies what existed before the recording, process events
 * (system/events.h) what happened since. An exec, or the reuse of a PID, begins
 * another image. Nothing is written to the capture before a sample needs it.
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
 * threadtab - the threads that waited: what BPF reported about each, and the
 * process image it belongs to.
 *
 * A thread is identified by (tgid, tid, start of its process, number of execs),
 * as in struct offcpu_key. Pointers are valid until the next announce, get or
 * drop.
 */

struct thread_name {
	uint64_t from_ns; /* 0 = since before its first sample, or its time is not known */
	char comm[OFFCPU_COMM_LEN];
};

struct thread {
	uint32_t tgid, tid;
	uint32_t ns_tgid, ns_tid;
	uint64_t start_boot_ns;
	uint32_t exec_id;
	uint32_t task_flags; /* PF_*; 0 = not reported */
	uint32_t image; /* number in imagetab; UINT32_MAX = no sample yet */
	bool timed; /* BPF reports each name with its time */
	bool named; /* the capture has a name of it */
	uint32_t n_written; /* of `names`: those in the capture */
	uint32_t n_names, max_names;
	struct thread_name *names; /* in order of time: the last that was written, and those after it */
	char leader_comm[OFFCPU_COMM_LEN];
};

/*
 * process_maps - the executable mappings of a process, in the order in which
 * they were made.
 *
 * Append-only: what was already written to a capture is a prefix. A forked
 * child shares its parent's set until one of them changes.
 */

struct mapping {
	uint64_t from_ns, start, end, offset; /* as in struct cap_map */
	uint32_t prot, flags;
	uint32_t file; /* number in the file table; UINT32_MAX = anonymous */
};

struct process_maps {
	unsigned int refs;
	struct mapping *maps;
	size_t n, cap;
};

/*
 * Append NEW to *M (NULL = the empty set). A shared set is replaced by a copy
 * first. A mapping that *M already has is not added again. False if out of
 * memory.
 */
bool process_maps_add(struct process_maps **m, const struct mapping *new);

/* The newest mapping that contains ADDR, or NULL. M may be NULL. */
const struct mapping *process_maps_at(const struct process_maps *m, uint64_t addr);

/* The same among the mappings made up to TIME_NS. */
const struct mapping *process_maps_then(const struct process_maps *m, uint64_t addr, uint64_t time_ns);

struct process_maps *process_maps_share(struct process_maps *m); /* another reference; NULL is fine */
void process_maps_drop(struct process_maps *m); /* drops a reference; NULL is fine */

/*
 * imagetab - process images by number, by tgid and time, and by identity.
 *
 * An image is the life of a process from its fork or exec to its next exec or
 * its end. Numbers stay valid until imagetab_forget(), pointers until the next
 * imagetab_add().
 */

/* How long a mapping that BPF reported may still be incomplete when the mappings are read. */
#define IMAGE_SETTLE_NS UINT64_C(200000000)

/* At `at_ns` the addresses [start, end) got another meaning, which BPF did not know until `until_ns`. */
struct image_change {
	uint64_t at_ns, until_ns; /* UINT64_MAX = it does not know it yet */
	uint64_t start, end;
};

struct image {
	uint32_t tgid, ns_tgid;
	uint32_t cap_id; /* CAPTURE_NONE = not in the capture yet */
	int32_t maps_missing; /* -errno: it was written without mappings, which is not counted yet */
	uint32_t older; /* the previous image of the same tgid; UINT32_MAX = none */
	uint32_t flags; /* enum cap_proc_flags */
	int32_t maps_error;
	bool claimed; /* the key of a wait gave it its identity (start_boot_ns, exec_id) */
	bool reported; /* its identity is known from another source: imagetab_set_start() */
	bool stale; /* its mappings must be read again: process_table_stale() */
	uint64_t mapped_ns; /* when it mapped something that a scan may not have seen whole; 0 = never */
	uint64_t due_ns; /* a stale image is not read before this time */
	bool gone; /* its mappings can no longer be read: it ended or called exec */
	bool over; /* ended, and all its waits are reported: imagetab_forget() removes it */
	bool free; /* the slot is empty */
	uint32_t exec_id;
	bool from_exec; /* began with an exec: its first mapping of a file is its executable */
	uint64_t begin_ns; /* 0 = before the recording */
	uint64_t end_ns; /* UINT64_MAX = still alive */
	uint64_t scan_ns; /* when its last scan began, which includes all earlier events; 0 = not scanned */
	uint64_t overtaken_ns; /* time of the newest mapping event that the scan includes */
	bool mixed; /* forked before its parent was scanned: may have mappings that the parent made after the
		       fork */
	uint64_t start_boot_ns;
	struct process_maps *maps;
	size_t maps_written;
	struct image_change *changes; /* in order of time */
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
 * A wrong answer would produce a wrong stack. If lost events or a late scan may
 * have hidden a mapping, the answer is "unsure", even if it is probably right.
 */

/* What past_maps_find() searches; see process_table_past(). */
struct past_maps {
	const struct imagetab *images;
	const struct file_table *files;
	bool scanning; /* the scan of the processes from before the recording is not complete */
	bool no_events; /* mappings are known only from scans */
	uint64_t lost_ns; /* when process events were last lost; 0 = never */
};

enum past_maps_code {
	PAST_MAPS_MAPPED = 1,
	PAST_MAPS_NOT_MAPPED,
	PAST_MAPS_LATER, /* not known yet: needs later events, or another scan */
	PAST_MAPS_UNSURE /* can no longer be determined: events were lost, or a scan came too late */
};

/* Which process, and when; process events up to SETTLED_NS were processed. Both times are CLOCK_MONOTONIC. */
struct past_maps_when {
	uint32_t tgid, exec_id;
	uint64_t start_boot_ns, time_ns, settled_ns;
};

/*
 * Find the executable mapping that contained ADDR at that time. *RET is its
 * place and file (path "" = anonymous; the path belongs to P's files), *MADE_NS
 * a time before which it did not exist (0 = before the recording). Both are set
 * only with PAST_MAPS_MAPPED.
 */
enum past_maps_code past_maps_find(const struct past_maps *p, const struct past_maps_when *when,
	uint64_t addr, struct procmap *ret, uint64_t *made_ns);

struct image;
struct file_table;
struct process_maps;
struct past_maps;
struct process_table;

/* ALL: track every process from its fork on; else only scanned processes and, with FOLLOW, their children. */
int process_table_new(bool all, bool follow, struct process_table **ret, struct err *e);

/* Request from O what this process may not open itself. O must outlive T. */
void process_table_broker(struct process_table *t, struct worker *o);
void process_table_free(struct process_table *t); /* NULL is fine */

/*
 * Work without process events. IDENTITY distinguishes images: it stores the
 * current image of process TGID in *RET, or returns false if there is none.
 * process_table_image_seen() reports new images. process_table_stale() and
 * process_table_refresh() cause mappings to be read again. An open
 * /proc/PID/maps belongs to the image that was current at the open, so the
 * identity is checked after the open.
 */
typedef bool process_table_identity(void *ctx, uint32_t tgid, struct offcpu_ev_image *ret);
void process_table_without_events(struct process_table *t, process_table_identity *identity, void *ctx);

/*
 * SOME: the events are those of some processes, and what these start.
 * process_table_unwatched(): since the last call, did the events of a process end
 * before it, or was there an image that none had reported? Then the events of all
 * are needed, and process_table_freshen() after their begin.
 */
void process_table_of_some(struct process_table *t, bool some);
bool process_table_unwatched(struct process_table *t);

/* BPF reported a wait, a fork or an exec of image EV. process_table_freshen() scans it. */
void process_table_image_seen(struct process_table *t, const struct offcpu_ev_image *ev);

/* Is EV still the current image of its process, according to IDENTITY? Always true with process events. */
bool process_table_is_still(struct process_table *t, const struct offcpu_ev_image *ev);

/* Image EV may have mappings that are not known. AT_ONCE: it has some, so read them without delay. */
void process_table_stale(struct process_table *t, const struct offcpu_ev_image *ev, bool at_once);

/*
 * EV is an OFFCPU_EV_MAPPING: if the next scan of its image finds a mapping in
 * place of another one, the new one dates from EV.
 */
void process_table_mapping(struct process_table *t, const struct offcpu_ev_image *ev);

/* Scan the images that are new, or stale and due, newest first, for about BUDGET_NS. */
void process_table_freshen(struct process_table *t, uint64_t budget_ns);

/* Scan KEY's process again unless its mappings were read after TIME_NS. */
void process_table_refresh(struct process_table *t, const struct offcpu_key *key, uint64_t time_ns);

/*
 * Read the mappings, name and executable of process PID from /proc. NOW_NS is a
 * time before the call. 0, or -errno with the message; the process is tracked
 * even then, with the error in its record.
 */
int process_table_scan(struct process_table *t, uint32_t pid, uint64_t now_ns, struct err *e);

/*
 * Read the mappings of PID's image again, because nothing reported what it
 * mapped since its last scan. New mappings date from that last scan. Returns as
 * process_table_scan().
 */
int process_table_rescan(struct process_table *t, uint32_t pid, uint64_t now_ns, struct err *e);

/* Is PID known, and has nothing reported its end, or only one after TIME_NS? */
bool process_table_lived(const struct process_table *t, uint32_t pid, uint64_t time_ns);

/* Does the current image of PID have a known mapping at ADDR? */
bool process_table_covers(const struct process_table *t, uint32_t pid, uint64_t addr);

/*
 * Scan every process in /proc, in steps. Each process_table_scan_some() runs
 * for about BUDGET_NS and returns true when the scan is complete.
 */
void process_table_scan_all(struct process_table *t);
bool process_table_scan_some(struct process_table *t, uint64_t budget_ns);

/* Process EV. Events must come in the order in which they happened. */
void process_table_event(struct process_table *t, const struct procevent *ev);

/*
 * Give the current image of process TGID this identity: for a caller whose
 * times are too coarse to find the image of a wait.
 */
void process_table_identify(struct process_table *t, uint32_t tgid, uint32_t exec_id, uint64_t start_boot_ns);

/* Store the names and ids of a thread, from BPF. Call it before the first sample of that thread. */
void process_table_announce(struct process_table *t, const struct offcpu_ev_thread *ev);

/*
 * Return the capture's id of the image that KEY's process had when a wait began
 * at FIRST_NS. Writes the image, its files and mappings and the thread to W
 * first, if they are new. WAKER: it did not wait, but woke then. CAPTURE_NONE if out of memory.
 */
uint32_t process_table_emit(struct process_table *t, const struct offcpu_key *key, uint64_t first_ns,
	bool waker, struct cap_writer *w);

/* What a thread did is to be written; copied. */
void process_table_life(struct process_table *t, const struct offcpu_ev_life *ev);

/*
 * Write that, after the waits of a flush, with the threads that had none. A process that is not in the
 * capture yet may come with the next flush or, while there are MORE waits whose stacks are not known yet,
 * with a later one. What threads of any other did is dropped.
 */
void process_table_write_lives(struct process_table *t, bool more, struct cap_writer *w);

/*
 * Write what changed since then for images in the capture. Forget images that
 * ended and whose waits are all reported.
 */
void process_table_flush(struct process_table *t, uint64_t now_ns, struct cap_writer *w);

/*
 * The mapping epoch (see CAPTURE_SAMPLE_EPOCH) of waits of KEY's process that
 * began from FIRST_NS to LAST_NS; after process_table_emit() of the same key. 0
 * if no address ever changed its meaning.
 */
uint32_t process_table_epoch(
	struct process_table *t, const struct offcpu_key *key, uint64_t first_ns, uint64_t last_ns);

/*
 * Is user stack S, of KEY's process, surely walked by what was mapped at that time? Then UINT32_MAX. If an
 * address had changed its meaning and BPF did not know that yet, the number of frames up to the first one
 * there, whose caller may be another; unless SAME (NULL = never) says that it has the same caller by what is
 * there since AT_NS and by what was there before. The stack was taken from FIRST_NS to LAST_NS.
 */
typedef bool process_table_same(void *ctx, const struct offcpu_key *key, uint64_t addr, uint64_t at_ns);
uint32_t process_table_trusted(struct process_table *t, const struct offcpu_key *key, uint64_t first_ns,
	uint64_t last_ns, const struct cap_stack *s, process_table_same *same, void *ctx);

/*
 * Has any address changed its meaning? Then BPF knows the changes of process TGID up to TIME_NS since
 * PUBLISHED() returned that time; 0 = not yet.
 */
void process_table_published(struct process_table *t,
	uint64_t (*published)(void *ctx, uint32_t tgid, uint64_t time_ns), void *ctx);

/*
 * The number for CAPTURE_SAMPLE_EPOCH of samples in mapping epoch EPOCH whose thread had been renamed NAME
 * times: another one for each of the last 64 names.
 */
static inline uint32_t process_table_number(uint32_t epoch, uint32_t name)
{
	return epoch << 6 | (name & 63);
}

/*
 * The image of KEY's process, or NULL; after process_table_emit() of the same
 * key. Valid until the next call that changes T.
 */
const struct image *process_table_image(struct process_table *t, const struct offcpu_key *key);

/* Does T have an image of process PID? */
bool process_table_tracks(const struct process_table *t, uint32_t pid);

/*
 * The mappings of KEY's process, NULL = none known; after process_table_emit()
 * of the same key. They belong to T and are valid until it changes.
 */
const struct process_maps *process_table_maps(struct process_table *t, const struct offcpu_key *key);

/* Those of the newest image of process PID that is known; as valid. */
const struct process_maps *process_table_newest_maps(const struct process_table *t, uint32_t pid);

struct file_table *process_table_files(struct process_table *t); /* belong to T */

/* Fill *RET for past_maps_find(). It refers to T and is valid until the next call that changes T. */
void process_table_past(const struct process_table *t, struct past_maps *ret);

/*
 * Since the last call, did a process map something over addresses that had
 * another meaning? Then waits before and after must not share a sample.
 */
bool process_table_remapped(struct process_table *t);

struct process_table_stats {
	uint64_t images; /* in the capture */
	uint64_t maps_refused; /* of these, without mappings for lack of permission */
	uint64_t maps_lost; /* of these, without mappings for another reason */
	uint64_t waker_maps_lost; /* the same, of processes that only woke others */
	uint64_t files_unread;
	uint64_t events_lost; /* records that the kernel dropped */
	uint64_t lives_lost; /* for lack of memory */
};

void process_table_stats(const struct process_table *t, struct process_table_stats *ret);

#endif
