/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * writer - writing a capture.
 *
 * Each record is encoded into a block of its type. cap_writer_flush() writes the
 * blocks to the file, in an order in which every reference points backwards. It
 * hands all of them to the kernel, without fdatasync(2), so a killed recorder
 * loses only what came after. Errors are kept: that flush and every later one
 * return the first error. If the disk is full, the flushes before stay, and what
 * was written of this one is cut off if the file allows it; of the first flush,
 * and of a ring, the blocks that fit stay.
 *
 * No reader accepts ids that are not 0, 1, 2 ..., a reference to a record that
 * was not written by the time of the flush, or an empty mapping, kernel symbol or
 * piece of JIT code. The flush then returns -EINVAL and says which it was.
 */
#ifndef STACKTOOLS_CAPTURE_WRITER_H
#define STACKTOOLS_CAPTURE_WRITER_H

#include "base/err.h"
#include "base/result.h"
#include "capture/types.h"

struct cap_writer;

extern const struct result_type cap_writer_type; /* of a capture */

#define CAPTURE_WRITER_RECORD_MAX (32 << 20) /* bytes; a longer record is refused */

/*
 * PATH "-" is stdout. A regular file is created with mode 0600 and never
 * through a symbolic link. An existing file is replaced only if it is a capture
 * or empty, or with FORCE; otherwise -EEXIST. -EINVAL for a terminal. On success
 * the file header is written, and the caller owns *RET. A regular file is ours
 * until cap_writer_close() (base/result.h): another writer gets -EBUSY. If it is
 * deleted or replaced meanwhile, the next flush returns -ESTALE.
 */
int cap_writer_open(const char *path, bool force, struct cap_writer **ret, struct err *e);

/*
 * The two halves of cap_writer_open(), for different processes.
 * cap_writer_create() creates the file and returns a descriptor or -errno.
 * cap_writer_begin() begins a capture in FD and owns FD, even on failure.
 */
int cap_writer_create(const char *path, bool force, struct err *e);
int cap_writer_begin(int fd, const char *path, struct cap_writer **ret, struct err *e);

/* Does not flush: a capture without a trailer is incomplete. NULL is fine. */
void cap_writer_close(struct cap_writer *w);

void cap_writer_host(struct cap_writer *w, const struct cap_host *h);
void cap_writer_option(struct cap_writer *w, const struct cap_option *o);
void cap_writer_proc(struct cap_writer *w, const struct cap_proc *p);
void cap_writer_thread(struct cap_writer *w, const struct cap_thread *t);
void cap_writer_life(struct cap_writer *w, const struct cap_life *l);
void cap_writer_file(struct cap_writer *w, const struct cap_file *f);
void cap_writer_map(struct cap_writer *w, const struct cap_map *m);
void cap_writer_image(struct cap_writer *w, const struct cap_image *i);
void cap_writer_ksym(struct cap_writer *w, const struct cap_ksym *s);
void cap_writer_script(struct cap_writer *w, const struct cap_script *s);
void cap_writer_stack(struct cap_writer *w, const struct cap_stack *s);
void cap_writer_waker(struct cap_writer *w, const struct cap_waker *k);
void cap_writer_sample(struct cap_writer *w, const struct cap_sample *s);
/* The only wait of S, or its sample, by itself: readers have it also as part of the sum. -EINVAL unless count
 * is 1. */
void cap_writer_wait(struct cap_writer *w, const struct cap_sample *s);
/* The value of now: the next flush writes by how much it has changed, the end of the capture all of it. */
void cap_writer_counter(struct cap_writer *w, const struct cap_counter *c);
void cap_writer_jit(struct cap_writer *w, const struct cap_jit *j);
void cap_writer_name(struct cap_writer *w, const struct cap_name *n);

/*
 * From now on keep samples, waits and lives only of the last KEEP_NS (UINT64_MAX: of all time), and as many
 * as a capture of MAX_BYTES has room for (0: any number), in the file FD of result_file_scratch(), which is
 * ours then: cap_writer_flush() drops older ones and writes neither them nor counters to the capture.
 */
void cap_writer_ring(struct cap_writer *w, int fd, uint64_t keep_ns, uint64_t max_bytes);

/* Does the capture have so much already that three quarters of MAX_BYTES are taken? Then end it. */
bool cap_writer_full(const struct cap_writer *w);

/* As cap_writer_flush(), with what the ring has, which is then empty, and an option that says since when. */
int cap_writer_release(struct cap_writer *w, uint64_t time_ns, struct err *e);

/* How many waits were written, or are queued for the next flush, without those that a ring has dropped. */
void cap_writer_waits(const struct cap_writer *w, uint64_t *count, uint64_t *ns);

/* How many waits the ring has dropped, and their time. */
void cap_writer_overwritten(const struct cap_writer *w, uint64_t *count, uint64_t *ns);

/*
 * Write everything so far and a flush record. A pipe (anything but a regular file) is never waited for: what
 * it does not take stays in memory, and cap_writer_service() writes it when the pipe is read again. While
 * cap_writer_behind(), it is better not to flush. 0, or -ENOSPC and the like, with the message;
 * -ETIMEDOUT if 256 MiB wait.
 */
int cap_writer_flush(struct cap_writer *w, uint64_t time_ns, struct err *e);
bool cap_writer_behind(const struct cap_writer *w);
int cap_writer_service(struct cap_writer *w, struct err *e);

/*
 * Flush, with the trailer; fsync(2) if it is a regular file. -ESTALE: it was written, but PATH is another
 * file. -ETIMEDOUT: a pipe did not take everything within 2 s.
 */
int cap_writer_finish(struct cap_writer *w, const struct cap_trailer *t, struct err *e);

/* Where what was written is, as far as finish and flush have found out: PATH, the name that the file has got
 * instead, or NULL if it has none. */
const char *cap_writer_place(const struct cap_writer *w);

uint64_t cap_writer_bytes(const struct cap_writer *w); /* bytes written so far */

#endif
