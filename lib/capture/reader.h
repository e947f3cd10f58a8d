/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reader - reading a capture, which is untrusted input.
 *
 * The reader accepts everything up to the first damage and nothing after it. It
 * checks every reference: ids are in range and arrays lie inside the file, so
 * users of these arrays need no checks of their own.
 */
#ifndef STACKTOOLS_CAPTURE_READER_H
#define STACKTOOLS_CAPTURE_READER_H

#include "base/err.h"
#include "capture/types.h"

/*
 * cap_bytes - the bytes of a capture from a file or a pipe.
 *
 * The file is read, not mapped: SIGBUS would kill the reader of a mapped file
 * that its writer truncates. If the input does not begin like a capture, reading
 * stops after its first bytes. After the first invalid block header, it stops
 * when it has enough to report what is missing. So neither /dev/zero nor an
 * endless pipe hangs a reader or fills its memory.
 */

struct cap_bytes {
	uint8_t *bytes; /* free(3) it */
	size_t len;
	uint64_t total; /* bytes of the file, more than `len` if not all of it was read */
	bool growing; /* its recorder has it locked */
};

/* PATH "-" or NULL is stdin. 0, or -errno with the message; -EINVAL for a terminal. */
int cap_bytes_read(const char *path, struct cap_bytes *ret, struct err *e);

struct cap_reader {
	struct cap_host host;
	struct cap_option *options;
	struct cap_proc *procs; /* index = id */
	struct cap_thread *threads; /* each name, sorted by proc, tid, from_ns */
	struct cap_life *lives; /* in file order; those of one thread are to be added up */
	struct cap_file *files; /* index = id */
	struct cap_map *maps; /* in file order; see cap_reader_map() */
	struct cap_image *images;
	struct cap_script *scripts; /* by id */
	struct cap_ksym *ksyms; /* sorted by start, one of each; none extends beyond the start of the next */
	struct cap_stack *stacks; /* index = id */
	struct cap_waker *wakers; /* index = id - 1; `next` is a smaller id */
	struct cap_sample *samples; /* merged by key: one for each (proc, tid, stacks, state, flags, waker) */
	struct cap_wait *waits; /* in file order; NULL but for cap_reader_load_waits() */
	struct cap_counter *counters; /* the last value of each name */
	struct cap_jit *jits; /* sorted by proc, start, from_ns, kind */
	struct cap_name *names; /* sorted by file, offset; one for each pair */
	size_t n_options, n_procs, n_threads, n_lives, n_files, n_maps, n_images, n_ksyms, n_scripts,
		n_stacks, n_wakers, n_samples, n_counters, n_jits, n_names;
	uint64_t n_waits; /* how many are by themselves in the file */

	bool complete; /* there is a trailer and no damage */
	bool no_trailer; /* that is all that is missing */
	struct cap_trailer trailer; /* zero and "" if there is none */
	uint64_t last_flush_ns; /* everything up to here is present; 0 = there was no flush */
	uint64_t blocks, unknown_blocks;
	uint64_t good_bytes, total_bytes; /* good_bytes < total_bytes: damage begins there */
	char damage[512]; /* what is wrong and what is missing; "" = nothing */
};

/*
 * Read all of PATH ("-" or NULL: stdin) into memory. Also returns 0 with *RET for
 * a damaged capture: check `complete` and `damage`. -EINVAL with the message if
 * PATH is not a capture, its file header is damaged, or it has a newer major
 * version or the other byte order. Release with cap_reader_free().
 */
int cap_reader_load(const char *path, struct cap_reader **ret, struct err *e);

/*
 * The same, but each wait that is by itself in the file is one of `waits`, in 32 bytes, and no part of its
 * sample's numbers: these are of the other waits with the same key, and 0 if there is none. Only the times
 * of a sample, first_ns and last_ns, are of all.
 */
int cap_reader_load_waits(const char *path, struct cap_reader **ret, struct err *e);

/* As cap_reader_load(), for LEN bytes in memory, which must outlive *RET. */
int cap_reader_parse(const void *bytes, size_t len, struct cap_reader **ret, struct err *e);

/*
 * A capture that is still being written, from PATH ("-" or NULL: stdin), which may be a pipe. With WAITS as
 * cap_reader_load_waits(). The errors are those of cap_reader_load(); nothing is read but the file header.
 */
int cap_reader_follow(const char *path, bool waits, struct cap_reader **ret, struct err *e);

/*
 * Wait for the next flush and read up to it: 1. Then the numbers of `samples`, and `waits`, are those of this
 * flush alone; a sample without any is all 0. Indexes stay what they were, pointers into arrays do not. 0 at
 * the end, or at damage: see `complete` and `damage`; then there may be samples after the last flush. Or
 * -errno. Memory grows with what is distinct.
 */
int cap_reader_next(struct cap_reader *c, struct err *e);

void cap_reader_free(struct cap_reader *c); /* NULL is fine */

/* The symbol that covers kernel address ADDR, or NULL. */
const struct cap_ksym *cap_reader_ksym(const struct cap_reader *c, uint64_t addr);

/* What the capture stores about the byte at OFFSET of file FILE, or NULL. O(log n). */
const struct cap_name *cap_reader_name(const struct cap_reader *c, uint32_t file, uint64_t offset);

/* The name of a thread at TIME_NS, its first one if it had none yet, or NULL. UINT64_MAX: its last name. */
const struct cap_thread *cap_reader_thread(
	const struct cap_reader *c, uint32_t proc, uint32_t tid, uint64_t time_ns);

/* How long the times that a recorder with --keep kept are in all; 0 = all of the recording was kept. */
uint64_t cap_reader_kept_ns(const struct cap_reader *c);

/* The counter's value, 0 if it is missing. */
uint64_t cap_reader_counter(const struct cap_reader *c, const char *name);

/*
 * The mapping of PROC that held ADDR at FIRST_NS; if there was none yet, the
 * first that appeared until LAST_NS; or NULL. Pass first_ns and last_ns of the
 * sample: sets *UNSURE (may be NULL) to whether the address meant something else
 * at some time between them. O(log^2 n) in the process's mappings.
 */
const struct cap_map *cap_reader_map(const struct cap_reader *c, uint32_t proc, uint64_t addr,
	uint64_t first_ns, uint64_t last_ns, bool *unsure);

#endif
