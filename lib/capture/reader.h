/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reader - reading a capture that nobody vouches for.
 *
 * Everything up to the first damage is taken; nothing after it. Every
 * reference in what is returned has been checked: ids are in range, arrays
 * lie inside the file, so users of these arrays need no checks of their own.
 */
#ifndef STACKTOOLS_CAPTURE_READER_H
#define STACKTOOLS_CAPTURE_READER_H

#include "base/err.h"
#include "capture/types.h"

/*
 * cap_bytes - the bytes of a capture from a file or a pipe.
 *
 * Read, not mapped: a mapped file that its writer cuts back would end its
 * reader with SIGBUS. What does not begin as a capture is refused after the
 * first bytes, and behind the first block header that is none only so much
 * is read as is of use for telling what is missing; so neither /dev/zero nor
 * a pipe without end holds a reader up or fills its memory.
 */

struct cap_bytes {
	uint8_t *bytes; /* free(3) it */
	size_t len;
	uint64_t total; /* of the file, where not all of it was read */
};

/* PATH "-" or NULL is stdin. 0, or -errno with the message; -EINVAL: no capture. */
int cap_bytes_read(const char *path, struct cap_bytes *ret, struct err *e);

struct cap_reader {
	struct cap_host host;
	struct cap_option *options;
	struct cap_proc *procs; /* index = id */
	struct cap_thread *threads; /* the last name of each (proc, tid), sorted by them */
	struct cap_file *files; /* index = id */
	struct cap_map *maps; /* in file order: by process, the later overrides */
	struct cap_image *images;
	struct cap_ksym
		*ksyms; /* sorted by start, disjoint: one ends where the next begins, the later counts */
	struct cap_stack *stacks; /* index = id */
	struct cap_sample *samples; /* merged by key: one for each (proc, tid, stacks, state, flags) */
	struct cap_counter *counters; /* the last value of each name */
	struct cap_jit *jits; /* sorted by proc, start, from_ns, kind */
	struct cap_name *names; /* sorted by file, offset; one of each */
	size_t n_options, n_procs, n_threads, n_files, n_maps, n_images, n_ksyms, n_stacks, n_samples,
		n_counters, n_jits, n_names;

	bool complete; /* the trailer was there and nothing was damaged */
	struct cap_trailer trailer; /* zero and "" when there was none */
	uint64_t last_flush_ns; /* everything up to here is present; 0 when there was no flush */
	uint64_t blocks, unknown_blocks;
	uint64_t good_bytes, total_bytes; /* good_bytes < total_bytes: damage begins there */
	char damage[512]; /* what is wrong and what is missing; "" = nothing */
};

/*
 * Read PATH ("-" or NULL: stdin) whole. Returns 0 with *RET also for a damaged
 * capture: look at `complete` and `damage`. -EINVAL with the message for what is
 * no capture at all, or one of a foreign version or byte order. All of it is
 * read into memory: a mapped file that shrinks would end its reader with
 * SIGBUS. Release with cap_reader_free().
 */
int cap_reader_load(const char *path, struct cap_reader **ret, struct err *e);

/* The same over LEN bytes in memory, which must outlive *RET. */
int cap_reader_parse(const void *bytes, size_t len, struct cap_reader **ret, struct err *e);

void cap_reader_free(struct cap_reader *c); /* NULL is fine */

/* The symbol that covers kernel address ADDR, or NULL. */
const struct cap_ksym *cap_reader_ksym(const struct cap_reader *c, uint64_t addr);

/* What was stored of the byte at OFFSET of file FILE, or NULL. O(log n). */
const struct cap_name *cap_reader_name(const struct cap_reader *c, uint32_t file, uint64_t offset);

/* The name of a thread, or NULL. */
const struct cap_thread *cap_reader_thread(const struct cap_reader *c, uint32_t proc, uint32_t tid);

/* The counter's value, 0 when it is not there. */
uint64_t cap_reader_counter(const struct cap_reader *c, const char *name);

/*
 * The mapping of PROC that held ADDR at FIRST_NS; where it had none yet, the
 * first that came until LAST_NS; or NULL. *UNSURE (may be NULL) is set where
 * the address meant something else at some time in [first_ns, last_ns] of the
 * caller's sample: pass both ends. O(log^2 n) in the process's mappings.
 */
const struct cap_map *cap_reader_map(const struct cap_reader *c, uint32_t proc, uint64_t addr,
	uint64_t first_ns, uint64_t last_ns, bool *unsure);

#endif
