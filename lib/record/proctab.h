/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proctab - process images, their mappings and their threads, as they were
 * at each time of the recording.
 *
 * Fed by /proc (what was there before) and by procevents (what happened
 * since). An exec, or a PID that is used again, begins another image. Nothing
 * reaches the capture before a sample needs it.
 */
#ifndef STACKTOOLS_PROCTAB_H
#define STACKTOOLS_PROCTAB_H

#include "capture/writer.h"
#include "offcpu_abi.h"
#include "system/broker.h"
#include "system/events.h"

struct image; /* imagetab.h */
struct filetab;
struct mapset;
struct pastmap; /* pastmap.h */
struct proctab;

/* ALL: every process is tracked from its fork on, else only what was scanned (FOLLOW: and its children). */
int proctab_new(bool all, bool follow, struct proctab **ret, struct err *e);

/* What our own rights do not reach is asked of O, which outlives T. */
void proctab_opener(struct proctab *t, struct opener *o);
void proctab_free(struct proctab *t); /* NULL is fine */

/*
 * No process events will come: images are told apart by IDENTITY, which puts
 * the image that process TGID is now into *RET and is false when there is none,
 * and proctab_image_seen() reports new ones. Mappings are read again when
 * proctab_stale() or proctab_refresh() says so. /proc/PID/maps belongs to the
 * image that had it opened, so whoever has its identity afterwards is that image.
 */
typedef bool proctab_identity(void *ctx, uint32_t tgid, struct offcpu_ev_image *ret);
void proctab_without_events(struct proctab *t, proctab_identity *identity, void *ctx);

/* A wait, a fork or an exec of the image EV was seen: it is scanned by proctab_freshen(). */
void proctab_image_seen(struct proctab *t, const struct offcpu_ev_image *ev);

/* What IDENTITY says; true where events tell. */
bool proctab_is_still(struct proctab *t, const struct offcpu_ev_image *ev);

/* That image may have mapped something that is not known; AT_ONCE: it has. */
void proctab_stale(struct proctab *t, const struct offcpu_ev_image *ev, bool at_once);

/* EV, of OFFCPU_EV_MAPPING: what its next scan finds in another's place is there since then. */
void proctab_mapping(struct proctab *t, const struct offcpu_ev_image *ev);

/* Read what is new or stale and due, the newest first, for about BUDGET_NS. */
void proctab_freshen(struct proctab *t, uint64_t budget_ns);

/* The mappings of KEY's process are to be known as they were at TIME_NS, or later. */
void proctab_refresh(struct proctab *t, const struct offcpu_key *key, uint64_t time_ns);

/*
 * Read process PID's mappings, name and executable from /proc; NOW_NS is the
 * time before the reading began. 0, or -errno with the story; the process is
 * tracked all the same, with the error in its record.
 */
int proctab_scan(struct proctab *t, uint32_t pid, uint64_t now_ns, struct err *e);

/*
 * Read the mappings of PID's image again, for nobody told what it mapped since
 * it was scanned: what is new counts from that scan on. As proctab_scan().
 */
int proctab_rescan(struct proctab *t, uint32_t pid, uint64_t now_ns, struct err *e);

/* Is something known to be mapped at ADDR in what PID is now? */
bool proctab_covers(const struct proctab *t, uint32_t pid, uint64_t addr);

/*
 * Scan every process of /proc, in steps: each call of proctab_scan_some()
 * goes on for BUDGET_NS, and is true when there is nothing left to do.
 */
void proctab_scan_all(struct proctab *t);
bool proctab_scan_some(struct proctab *t, uint64_t budget_ns);

/* In the order in which they happened. */
void proctab_event(struct proctab *t, const struct procevent *ev);

/*
 * The image that process TGID is now is the one with this identity: for
 * somebody whose times are too rough to tell which image a wait was of.
 */
void proctab_identify(struct proctab *t, uint32_t tgid, uint32_t exec_id, uint64_t start_boot_ns);

/* A thread's names and ids, from BPF; before the first sample of that thread. */
void proctab_announce(struct proctab *t, const struct offcpu_ev_thread *ev);

/*
 * The capture's id of the image that KEY's process was when a wait began at
 * FIRST_NS; the image, its files, mappings and the thread are written to W
 * first as far as they are new. CAP_NONE when memory ran out.
 */
uint32_t proctab_emit(struct proctab *t, const struct offcpu_key *key, uint64_t first_ns, struct capwrite *w);

/* Write what changed since for images that are in the capture; forget images that ended and have no samples.
 */
void proctab_flush(struct proctab *t, uint64_t now_ns, struct capwrite *w);

/*
 * The mapping epoch (see CAP_SAMPLE_EPOCH) of waits of KEY's process that
 * began from FIRST_NS to LAST_NS; after proctab_emit() of the same key. 0
 * where no address ever changed its meaning.
 */
uint32_t proctab_epoch(struct proctab *t, const struct offcpu_key *key, uint64_t first_ns, uint64_t last_ns);

/* The image that KEY's process was, after proctab_emit() of the same key; NULL. Until the next call that
 * changes T. */
const struct image *proctab_image(struct proctab *t, const struct offcpu_key *key);

/* Is process PID one of those whose life is followed? */
bool proctab_tracks(const struct proctab *t, uint32_t pid);
/* The mappings of KEY's process, after proctab_emit() of it; NULL = none known. T's, until it changes. */
const struct mapset *proctab_maps(struct proctab *t, const struct offcpu_key *key);

struct filetab *proctab_files(struct proctab *t); /* stay T's */

/* What pastmap_find() looks in: T's, until the next call that changes T. */
void proctab_past(const struct proctab *t, struct pastmap *ret);

/*
 * Since the last call, was something mapped where the same process had had
 * something else? Then waits before and after must not share a sample.
 */
bool proctab_remapped(struct proctab *t);

struct proctab_stats {
	uint64_t images; /* in the capture */
	uint64_t maps_refused; /* of them, without mappings for lack of permission */
	uint64_t maps_lost; /* of them, without mappings */
	uint64_t files_unread;
	uint64_t events_lost; /* records that the kernel dropped */
};

void proctab_stats(const struct proctab *t, struct proctab_stats *ret);

#endif
