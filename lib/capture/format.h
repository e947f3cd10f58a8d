/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * format - the bytes of a capture's records: the one place that knows
 * them, for the writer and the reader alike. docs/capture.5
 * describes the format.
 *
 * A block (capblock_*()) has records of one type; a record is its length in
 * bytes (uleb) and its fields. A record may hold more fields than are known
 * here: they are left unread. Or fewer: an earlier version ended it there.
 *
 * Decoders look at one record alone. They refuse what no writer makes (a
 * mapping that ends before it starts, a string with a NUL inside), but not a
 * reference to a record that is not there: that is for the reader. Decoded
 * strings and images point into the bytes that were read.
 */
#ifndef STACKTOOLS_CAPTURE_FORMAT_H
#define STACKTOOLS_CAPTURE_FORMAT_H

#include "base/bytes.h"
#include "capture/types.h"

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
	CAPCODEC_JIT = 14, /* this and the next two: capnames_*() */
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

/*
 * capblock - what a capture's records are wrapped in: the file header, and
 * blocks with their checksums. docs/capture.5 describes the format.
 */

#define CAPBLOCK_MAGIC "\211stkcap\n" /* 8 bytes, no NUL */
#define CAPBLOCK_MAGIC_LEN 8
#define CAPBLOCK_MAJOR 1
#define CAPBLOCK_HEADER_LEN 24 /* of the file header of this version */
#define CAPBLOCK_SYNC 0x6b6c6253 /* "Sblk" */
#define CAPBLOCK_HEAD_LEN 20 /* of a block header */
#define CAPBLOCK_PAYLOAD_GOAL (1 << 20) /* where the writer begins another one */

/* --- the file header --- */

enum capblock_header {
	CAPBLOCK_OK,
	CAPBLOCK_FOREIGN, /* another file: the magic is not there */
	CAPBLOCK_SHORT, /* the magic, or its beginning, and then the end */
	CAPBLOCK_BYTE_ORDER, /* written in the other byte order */
	CAPBLOCK_DAMAGED, /* a header whose checksum is wrong */
	CAPBLOCK_NEWER, /* a greater major version */
};

struct capblock_version {
	unsigned int major, minor;
	uint32_t header_len; /* where the first block begins */
};

void capblock_put_header(struct buf *b);
enum capblock_header capblock_get_header(const void *bytes, size_t len, struct capblock_version *v);

/* --- blocks --- */

struct capblock {
	uint16_t type, flags;
	uint32_t len; /* of the payload */
	uint32_t seq; /* counts from 0 */
	uint32_t crc; /* crc32c of the header before it and of the payload */
};

/* The CAPBLOCK_HEAD_LEN bytes that go before the LEN bytes of PAYLOAD. */
void capblock_put(
	uint8_t header[CAPBLOCK_HEAD_LEN], unsigned int type, uint32_t seq, const void *payload, size_t len);

/* False where no block header is: the sync word is wrong or the length absurd. */
bool capblock_get(const uint8_t header[CAPBLOCK_HEAD_LEN], struct capblock *b);

/* Is the payload, which follows the header at once, what was written? */
bool capblock_intact(const uint8_t header[CAPBLOCK_HEAD_LEN], const struct capblock *b);

/*
 * capnames - the bytes of the records that name code (strings, JIT code,
 * names), and these records gathered. docs/capture.5 describes the format.
 *
 * Names and paths repeat much. Each is written once, as a string record with
 * an id; the others refer to it: 0 is "", else the id plus one.
 */

/* --- writing: fields without the length before them --- */

/* REF gives the number that stands for TEXT (CTX is its own). */
typedef uint64_t capnames_ref(void *ctx, const char *text);

void capnames_put_string(struct buf *b, uint32_t id, const char *text);
void capnames_put_jit(struct buf *b, const struct cap_jit *j, capnames_ref *ref, void *ctx);
void capnames_put_name(struct buf *b, const struct cap_name *n, capnames_ref *ref, void *ctx);

/* --- reading --- */

struct capnames_counts {
	size_t strings, jits, names, frames;
};

/* Zero it. What `n` counts is taken: to forget a block, put the old `n` back. */
struct capnames {
	struct capnames_counts n, room;
	const char **strings; /* where they were read */
	struct cap_jit *jits;
	struct cap_name *names;
	struct cap_name_frame *frames; /* of all names, in the order they came in */
};

void capnames_free(struct capnames *c);

/*
 * Take the record of R; N_PROCS and N_FILES are known so far. NULL, or what is
 * wrong: a constant, "" where memory ran out.
 */
const char *capnames_take_string(struct capnames *c, struct rd *r);
const char *capnames_take_jit(struct capnames *c, struct rd *r, size_t n_procs);
const char *capnames_take_name(struct capnames *c, struct rd *r, size_t n_files);

/*
 * After the last record: JIT code sorted by process, start, from_ns and kind, names by
 * file and offset, the last of each key alone. 0 or -ENOMEM.
 */
int capnames_settle(struct capnames *c);

#endif
