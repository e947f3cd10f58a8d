/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capwrite - writing a capture.
 *
 * Records are encoded into the block of their type and reach the file at
 * capwrite_flush(), in an order in which every reference points backwards.
 * Each flush is fdatasync-free but handed to the kernel whole, so a killed
 * recorder loses only what came since. Errors are kept: the first one is
 * returned by this and every later flush. When the disk is full, the blocks
 * that did fit stay, and a torn one is taken back where the file allows it.
 *
 * Ids that are not 0, 1, 2 ..., a reference to what was not written by the
 * time of a flush, and a mapping, kernel symbol or piece of JIT code that is
 * empty would make a file that no reader takes: the flush gives -EINVAL and says which.
 */
#ifndef STACKTOOLS_CAPWRITE_H
#define STACKTOOLS_CAPWRITE_H

#include "base/err.h"
#include "capture/capture.h"

struct capwrite;

#define CAPWRITE_RECORD_MAX (32 << 20) /* bytes: a longer record is refused */

/*
 * PATH "-" is stdout. A regular file is created with mode 0600 and never
 * through a symbolic link; an existing file is replaced only if it is a
 * capture (or empty), or with FORCE; -EEXIST otherwise. A terminal is refused
 * with -EINVAL. On success *RET is the caller's, with the file header written.
 */
int capwrite_open(const char *path, bool force, struct capwrite **ret, struct err *e);

/*
 * The two halves of it, for different processes: make the file, a descriptor
 * or -errno; begin a capture in FD, which is the writer's whatever comes of it.
 */
int capwrite_create(const char *path, bool force, struct err *e);
int capwrite_begin(int fd, const char *path, struct capwrite **ret, struct err *e);

/* Flushes nothing: a capture without trailer is an incomplete one. NULL is fine. */
void capwrite_close(struct capwrite *w);

void capwrite_host(struct capwrite *w, const struct cap_host *h);
void capwrite_option(struct capwrite *w, const struct cap_option *o);
void capwrite_proc(struct capwrite *w, const struct cap_proc *p);
void capwrite_thread(struct capwrite *w, const struct cap_thread *t);
void capwrite_file(struct capwrite *w, const struct cap_file *f);
void capwrite_map(struct capwrite *w, const struct cap_map *m);
void capwrite_image(struct capwrite *w, const struct cap_image *i);
void capwrite_ksym(struct capwrite *w, const struct cap_ksym *s);
void capwrite_stack(struct capwrite *w, const struct cap_stack *s);
void capwrite_sample(struct capwrite *w, const struct cap_sample *s);
void capwrite_counter(struct capwrite *w, const struct cap_counter *c);
void capwrite_jit(struct capwrite *w, const struct cap_jit *j);
void capwrite_name(struct capwrite *w, const struct cap_name *n);

/* Write everything so far and a flush record. -ENOSPC and the like, with the story. */
int capwrite_flush(struct capwrite *w, uint64_t time_ns, struct err *e);

/* Flush, then the trailer; fsync where it is a file. */
int capwrite_finish(struct capwrite *w, const struct cap_trailer *t, struct err *e);

uint64_t capwrite_bytes(const struct capwrite *w); /* written so far */

#endif
