/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * runtimes - the interpreters that processes run, and the functions of their
 * programs, from BPF's events to the capture's records.
 *
 * An interpreter is recognised by what its file says (unwind/interpreter.h).
 * BPF finds script frames by the structure offsets that are returned here for
 * it (bpf/runtime_abi.h), and reads their names. Here strings become UTF-8 and
 * positions become lines. See docs/runtimes.md.
 */
#ifndef STACKTOOLS_RECORD_RUNTIMES_H
#define STACKTOOLS_RECORD_RUNTIMES_H

#include "base/err.h"
#include "capture/writer.h"
#include "hotspot_abi.h"
#include "offcpu_abi.h"
#include "unwind/table.h"

struct runtimes;

/*
 * LIST: names of runtimes, separated by commas; NULL or "auto": all that are
 * known. -EINVAL with the message for an unknown name. On success release *RET
 * with runtimes_free().
 */
int runtimes_new(const char *list, struct runtimes **ret, struct err *e);
void runtimes_free(struct runtimes *r); /* NULL is fine */

/* Is LIST one for runtimes_new(), or "none"? -EINVAL with the message if not. */
int runtimes_check(const char *list, struct err *e);

/*
 * A file with the interpreter I was mapped. Returns its number and fills in RET
 * for BPF; 0 if it is not wanted, or unknown, which is counted.
 */
uint32_t runtimes_file(struct runtimes *r, const struct unwindtab_interpreter *i, struct runtime_file *ret);

/* If FILE is a libjvm whose layout is known: fill in RET for BPF. H is what its file says. */
bool runtimes_hotspot(
	struct runtimes *r, uint32_t file, const struct unwindtab_hotspot *h, struct hotspot_file *ret);

/* Is each libjvm that was mapped known? False if there was none. */
bool runtimes_walks_java(const struct runtimes *r);

uint32_t runtimes_wanted(const struct runtimes *r); /* LIST, as a bit set of enum runtime_kind */

/*
 * The runtime, as a bit set, that a file of this name may be: only its symbols decide. Those of all files
 * that the N processes or threads IDS map; *UNKNOWN is set if that may not be read.
 */
uint32_t runtimes_of_name(const char *path);
uint32_t runtimes_mapped(const uint32_t *ids, size_t n, bool *unknown);

const char *runtimes_list(uint32_t kinds, char *to, size_t size); /* TO: "python, php" */

/*
 * BPF looks for script frames of these KINDS only, a bit set; PARTIAL: not in waits that began before the
 * recording. The summary says so of the runtimes that are recognised; and which of NAMED, what files of the
 * targets are called, are not.
 */
void runtimes_watched(struct runtimes *r, uint32_t kinds, uint32_t named, bool partial);

void runtimes_process(struct runtimes *r, uint32_t file); /* one more process image runs FILE */

/* Keep the names of a function. EV was reported with LEN bytes, its texts without gaps. */
void runtimes_code(struct runtimes *r, const struct offcpu_ev_code *ev, size_t len);

/* The same for a method of Java, and for the methods of a place in compiled code. */
void runtimes_method(struct runtimes *r, const struct offcpu_ev_method *ev, size_t len);
void runtimes_inlined(struct runtimes *r, const struct offcpu_ev_inlined *ev, size_t len);

/* Do the script frames of FILE stand for native frames? */
bool runtimes_instead(const struct runtimes *r, uint32_t file);

#define RUNTIMES_INLINED_MAX HOTSPOT_INLINED_MAX

/*
 * The capture's ids of a script frame, two words of a stack of the interpreter's
 * file FILE: one, or several functions that a compiler has put into each other,
 * innermost first, at most RUNTIMES_INLINED_MAX. Records that are new are
 * written. Returns their number, 0 if out of memory.
 */
size_t runtimes_frames(struct runtimes *r, uint32_t file, uint64_t code, uint64_t position,
	struct cap_writer *w, uint32_t *ids);

struct runtimes_stats {
	uint64_t functions; /* whose names were read */
	uint64_t frames; /* distinct script frames */
	uint64_t unnamed; /* script frames of stacks whose names could not be read, or did not arrive */
	uint64_t processes,
		refused_processes; /* images with a known runtime; with one of an unknown version */
	unsigned int unproved; /* runtimes that files are called like, of which none is recognised */
	char summary[1024]; /* "python 3.11, 12 processes; perl 5.36, 1 process"; "" = none was seen */
};

void runtimes_stats(const struct runtimes *r, struct runtimes_stats *ret);

#endif
