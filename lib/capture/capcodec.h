/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capcodec - the bytes of a capture's records: the one place that knows
 * them (with capnames.h), for the writer and the reader alike. docs/capture.5
 * describes the format.
 *
 * A block (capblock.h) has records of one type; a record is its length in
 * bytes (uleb) and its fields. A record may hold more fields than are known
 * here: they are left unread. Or fewer: an earlier version ended it there.
 *
 * Decoders look at one record alone. They refuse what no writer makes (a
 * mapping that ends before it starts, a string with a NUL inside), but not a
 * reference to a record that is not there: that is for the reader. Decoded
 * strings and images point into the bytes that were read.
 */
#ifndef STACKTOOLS_CAPCODEC_H
#define STACKTOOLS_CAPCODEC_H

#include "base/bytes.h"
#include "capture/capture.h"

enum capcodec_type {
	CAPCODEC_HOST = 1,
	CAPCODEC_OPTION = 2,
	CAPCODEC_FILE = 3,
	CAPCODEC_PROC = 4,
	CAPCODEC_THREAD = 5,
	CAPCODEC_MAP = 6,
	CAPCODEC_IMAGE = 7,
	CAPCODEC_KSYM = 8,
	CAPCODEC_STACK = 9,
	CAPCODEC_SAMPLE = 10,
	CAPCODEC_COUNTER = 11,
	CAPCODEC_FLUSH = 12,
	CAPCODEC_TRAILER = 13,
	CAPCODEC_JIT = 14, /* this and the next two: capnames.h */
	CAPCODEC_NAME = 15,
	CAPCODEC_STRING = 16,
	CAPCODEC_TYPES /* one more than the last */
};

/* "samples" for CAPCODEC_SAMPLE; "unknown" for what is none. */
const char *capcodec_type_name(unsigned int type);

/* --- records --- */

/*
 * What the samples of a block have in common: times are written as distances.
 * Zero it at the start of each block.
 */
struct capcodec_state {
	uint64_t first_ns;
};

/* The fields without the length before them. */
void capcodec_put_host(struct buf *b, const struct cap_host *h);
void capcodec_put_option(struct buf *b, const struct cap_option *o);
void capcodec_put_file(struct buf *b, const struct cap_file *f);
void capcodec_put_proc(struct buf *b, const struct cap_proc *p);
void capcodec_put_thread(struct buf *b, const struct cap_thread *t);
void capcodec_put_map(struct buf *b, const struct cap_map *m);
void capcodec_put_image(struct buf *b, const struct cap_image *i);
void capcodec_put_ksym(struct buf *b, const struct cap_ksym *s);
void capcodec_put_stack(struct buf *b, const struct cap_stack *s);
void capcodec_put_sample(struct buf *b, const struct cap_sample *s, struct capcodec_state *state);
void capcodec_put_counter(struct buf *b, const struct cap_counter *c);
void capcodec_put_flush(struct buf *b, const struct cap_flush *f);
void capcodec_put_trailer(struct buf *b, const struct cap_trailer *t);

/* The next record of a block as a reader of its own; false: no more, or R is bad. */
bool capcodec_next(struct rd *r, struct rd *record);

/*
 * False where the record is not well formed. capcodec_get_stack() does not
 * read the frames: it leaves R at them, for capcodec_get_frames() into room
 * for s->len of them; then capcodec_get_n_exact() says how many numbers
 * capcodec_get_exact() needs room for.
 */
bool capcodec_get_host(struct rd *r, struct cap_host *h);
bool capcodec_get_option(struct rd *r, struct cap_option *o);
bool capcodec_get_file(struct rd *r, struct cap_file *f);
bool capcodec_get_proc(struct rd *r, struct cap_proc *p);
bool capcodec_get_thread(struct rd *r, struct cap_thread *t);
bool capcodec_get_map(struct rd *r, struct cap_map *m);
bool capcodec_get_image(struct rd *r, struct cap_image *i);
bool capcodec_get_ksym(struct rd *r, struct cap_ksym *s);
bool capcodec_get_stack(struct rd *r, struct cap_stack *s);
bool capcodec_get_frames(struct rd *r, uint64_t *frames, size_t n);
bool capcodec_get_n_exact(struct rd *r, struct cap_stack *s);
bool capcodec_get_exact(struct rd *r, uint32_t *exact, const struct cap_stack *s);
bool capcodec_get_sample(struct rd *r, struct cap_sample *s, struct capcodec_state *state);
bool capcodec_get_counter(struct rd *r, struct cap_counter *c);
bool capcodec_get_flush(struct rd *r, struct cap_flush *f);
bool capcodec_get_trailer(struct rd *r, struct cap_trailer *t);

#endif
