/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * writer - writing a capture.
 *
 * Records are encoded into the block of their type and reach the file at
 * cap_writer_flush(), in an order in which every reference points backwards.
 * Each flush is fdatasync-free but handed to the kernel whole, so a killed
 * recorder loses only what came since. Errors are kept: the first one is
 * returned by this and every later flush. When the disk is full, the blocks
 * that did fit stay, and a torn one is taken back where the file allows it.
 *
 * Ids that are not 0, 1, 2 ..., a reference to what was not written by the
 * time of a flush, and a mapping, kernel symbol or piece of JIT code that is
 * empty would make a file that no reader takes: the flush gives -EINVAL and says which.
 */
#ifndef STACKTOOLS_CAPTURE_WRITER_H
#define STACKTOOLS_CAPTURE_WRITER_H

#include "base/err.h"
#include "capture/types.h"

/*
 * result_file - a file for a result that others must not read, redirect or lose
 * by accident.
 *
 * A capture holds kernel addresses and is often written by root into a folder
 * that others can write to. So the file is always a new one with mode 0600
 * (whoever had the old one open does not see the new one), never reached
 * through a symbolic link, and what is not known to be an older result is not
 * replaced unasked.
 */

/* A new file that takes the name of an older one when it is whole. */
struct result_file {
	int fd; /* to write to */
	char *temp; /* its name until then; NULL = written to as it is: a FIFO or a device */
	bool fresh; /* the name was free */
};

/*
 * As result_file_create(), but a regular file PATH stays until result_file_commit().
 * 0 or -errno. Release RET with result_file_close(): what was not committed is gone then.
 */
int result_file_begin(const char *path, bool force, const void *magic, size_t magic_len,
	struct result_file *ret, struct err *e);
int result_file_commit(struct result_file *f, const char *path, struct err *e);
void result_file_close(struct result_file *f);

/* A duplicate of standard output, or -errno: -EINVAL for a terminal. */
int result_file_stdout(struct err *e);

struct cap_writer;

#define CAPTURE_WRITER_RECORD_MAX (32 << 20) /* bytes: a longer record is refused */

/*
 * PATH "-" is stdout. A regular file is created with mode 0600 and never
 * through a symbolic link; an existing file is replaced only if it is a
 * capture (or empty), or with FORCE; -EEXIST otherwise. A terminal is refused
 * with -EINVAL. On success *RET is the caller's, with the file header written.
 */
int cap_writer_open(const char *path, bool force, struct cap_writer **ret, struct err *e);

/*
 * The two halves of it, for different processes: make the file, a descriptor
 * or -errno; begin a capture in FD, which is the writer's whatever comes of it.
 */
int cap_writer_create(const char *path, bool force, struct err *e);
int cap_writer_begin(int fd, const char *path, struct cap_writer **ret, struct err *e);

/* Flushes nothing: a capture without trailer is an incomplete one. NULL is fine. */
void cap_writer_close(struct cap_writer *w);

void cap_writer_host(struct cap_writer *w, const struct cap_host *h);
void cap_writer_option(struct cap_writer *w, const struct cap_option *o);
void cap_writer_proc(struct cap_writer *w, const struct cap_proc *p);
void cap_writer_thread(struct cap_writer *w, const struct cap_thread *t);
void cap_writer_file(struct cap_writer *w, const struct cap_file *f);
void cap_writer_map(struct cap_writer *w, const struct cap_map *m);
void cap_writer_image(struct cap_writer *w, const struct cap_image *i);
void cap_writer_ksym(struct cap_writer *w, const struct cap_ksym *s);
void cap_writer_stack(struct cap_writer *w, const struct cap_stack *s);
void cap_writer_sample(struct cap_writer *w, const struct cap_sample *s);
void cap_writer_counter(struct cap_writer *w, const struct cap_counter *c);
void cap_writer_jit(struct cap_writer *w, const struct cap_jit *j);
void cap_writer_name(struct cap_writer *w, const struct cap_name *n);

/* Write everything so far and a flush record. -ENOSPC and the like, with the message. */
int cap_writer_flush(struct cap_writer *w, uint64_t time_ns, struct err *e);

/* Flush, then the trailer; fsync where it is a file. */
int cap_writer_finish(struct cap_writer *w, const struct cap_trailer *t, struct err *e);

uint64_t cap_writer_bytes(const struct cap_writer *w); /* written so far */

#endif
