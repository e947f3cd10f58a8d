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

enum cap_record_type {
	CAPTURE_RECORD_HOST = 1,
	CAPTURE_RECORD_OPTION = 2,
	CAPTURE_RECORD_FILE = 3,
	CAPTURE_RECORD_PROC = 4,
	CAPTURE_RECORD_THREAD = 5,
	CAPTURE_RECORD_MAP = 6,
	CAPTURE_RECORD_IMAGE = 7,
	CAPTURE_RECORD_KSYM = 8,
	CAPTURE_RECORD_STACK = 9,
	CAPTURE_RECORD_SAMPLE = 10,
	CAPTURE_RECORD_COUNTER = 11,
	CAPTURE_RECORD_FLUSH = 12,
	CAPTURE_RECORD_TRAILER = 13,
	CAPTURE_RECORD_JIT = 14, /* this and the next two: capnames_*() */
	CAPTURE_RECORD_NAME = 15,
	CAPTURE_RECORD_STRING = 16,
	CAPTURE_RECORD_TYPES /* one more than the last */
};

/* "samples" for CAPTURE_RECORD_SAMPLE; "unknown" for what is none. */
const char *cap_record_type_name(unsigned int type);

/* --- records --- */

/*
 * What the samples of a block have in common: times are written as distances.
 * Zero it at the start of each block.
 */
struct cap_record_state {
	uint64_t first_ns;
};

/* The fields without the length before them. */
void cap_record_put_host(struct buf *b, const struct cap_host *h);
void cap_record_put_option(struct buf *b, const struct cap_option *o);
void cap_record_put_file(struct buf *b, const struct cap_file *f);
void cap_record_put_proc(struct buf *b, const struct cap_proc *p);
void cap_record_put_thread(struct buf *b, const struct cap_thread *t);
void cap_record_put_map(struct buf *b, const struct cap_map *m);
void cap_record_put_image(struct buf *b, const struct cap_image *i);
void cap_record_put_ksym(struct buf *b, const struct cap_ksym *s);
void cap_record_put_stack(struct buf *b, const struct cap_stack *s);
void cap_record_put_sample(struct buf *b, const struct cap_sample *s, struct cap_record_state *state);
void cap_record_put_counter(struct buf *b, const struct cap_counter *c);
void cap_record_put_flush(struct buf *b, const struct cap_flush *f);
void cap_record_put_trailer(struct buf *b, const struct cap_trailer *t);

/* The next record of a block as a reader of its own; false: no more, or R is bad. */
bool cap_record_next(struct rd *r, struct rd *record);

/*
 * False where the record is not well formed. cap_record_get_stack() does not
 * read the frames: it leaves R at them, for cap_record_get_frames() into room
 * for s->len of them; then cap_record_get_n_exact() says how many numbers
 * cap_record_get_exact() needs room for.
 */
bool cap_record_get_host(struct rd *r, struct cap_host *h);
bool cap_record_get_option(struct rd *r, struct cap_option *o);
bool cap_record_get_file(struct rd *r, struct cap_file *f);
bool cap_record_get_proc(struct rd *r, struct cap_proc *p);
bool cap_record_get_thread(struct rd *r, struct cap_thread *t);
bool cap_record_get_map(struct rd *r, struct cap_map *m);
bool cap_record_get_image(struct rd *r, struct cap_image *i);
bool cap_record_get_ksym(struct rd *r, struct cap_ksym *s);
bool cap_record_get_stack(struct rd *r, struct cap_stack *s);
bool cap_record_get_frames(struct rd *r, uint64_t *frames, size_t n);
bool cap_record_get_n_exact(struct rd *r, struct cap_stack *s);
bool cap_record_get_exact(struct rd *r, uint32_t *exact, const struct cap_stack *s);
bool cap_record_get_sample(struct rd *r, struct cap_sample *s, struct cap_record_state *state);
bool cap_record_get_counter(struct rd *r, struct cap_counter *c);
bool cap_record_get_flush(struct rd *r, struct cap_flush *f);
bool cap_record_get_trailer(struct rd *r, struct cap_trailer *t);

/*
 * cap_block - what a capture's records are wrapped in: the file header, and
 * blocks with their checksums. docs/capture.5 describes the format.
 */

#define CAPTURE_BLOCK_MAGIC "\211stkcap\n" /* 8 bytes, no NUL */
#define CAPTURE_BLOCK_MAGIC_LEN 8
#define CAPTURE_BLOCK_MAJOR 1
#define CAPTURE_BLOCK_HEADER_LEN 24 /* of the file header of this version */
#define CAPTURE_BLOCK_SYNC 0x6b6c6253 /* "Sblk" */
#define CAPTURE_BLOCK_HEAD_LEN 20 /* of a block header */
#define CAPTURE_BLOCK_PAYLOAD_GOAL (1 << 20) /* where the writer begins another one */

/* --- the file header --- */

enum cap_block_header {
	CAPTURE_BLOCK_OK,
	CAPTURE_BLOCK_FOREIGN, /* another file: the magic is not there */
	CAPTURE_BLOCK_SHORT, /* the magic, or its beginning, and then the end */
	CAPTURE_BLOCK_BYTE_ORDER, /* written in the other byte order */
	CAPTURE_BLOCK_DAMAGED, /* a header whose checksum is wrong */
	CAPTURE_BLOCK_NEWER, /* a greater major version */
};

struct cap_block_version {
	unsigned int major, minor;
	uint32_t header_len; /* where the first block begins */
};

void cap_block_put_header(struct buf *b);
enum cap_block_header cap_block_get_header(const void *bytes, size_t len, struct cap_block_version *v);

/* --- blocks --- */

struct cap_block {
	uint16_t type, flags;
	uint32_t len; /* of the payload */
	uint32_t seq; /* counts from 0 */
	uint32_t crc; /* crc32c of the header before it and of the payload */
};

/* The CAPTURE_BLOCK_HEAD_LEN bytes that go before the LEN bytes of PAYLOAD. */
void cap_block_put(uint8_t header[CAPTURE_BLOCK_HEAD_LEN], unsigned int type, uint32_t seq,
	const void *payload, size_t len);

/* False where no block header is: the sync word is wrong or the length absurd. */
bool cap_block_get(const uint8_t header[CAPTURE_BLOCK_HEAD_LEN], struct cap_block *b);

/* Is the payload, which follows the header at once, what was written? */
bool cap_block_intact(const uint8_t header[CAPTURE_BLOCK_HEAD_LEN], const struct cap_block *b);

/*
 * cap_code_names - the bytes of the records that name code (strings, JIT code,
 * names), and these records gathered. docs/capture.5 describes the format.
 *
 * Names and paths repeat much. Each is written once, as a string record with
 * an id; the others refer to it: 0 is "", else the id plus one.
 */

/* --- writing: fields without the length before them --- */

/* REF gives the number that stands for TEXT (CTX is its own). */
typedef uint64_t cap_code_names_ref(void *ctx, const char *text);

void cap_code_names_put_string(struct buf *b, uint32_t id, const char *text);
void cap_code_names_put_jit(struct buf *b, const struct cap_jit *j, cap_code_names_ref *ref, void *ctx);
void cap_code_names_put_name(struct buf *b, const struct cap_name *n, cap_code_names_ref *ref, void *ctx);

/* --- reading --- */

struct cap_code_names_counts {
	size_t strings, jits, names, frames;
};

/* Zero it. What `n` counts is taken: to forget a block, put the old `n` back. */
struct cap_code_names {
	struct cap_code_names_counts n, room;
	const char **strings; /* where they were read */
	struct cap_jit *jits;
	struct cap_name *names;
	struct cap_name_frame *frames; /* of all names, in the order they came in */
};

void cap_code_names_free(struct cap_code_names *c);

/*
 * Take the record of R; N_PROCS and N_FILES are known so far. NULL, or what is
 * wrong: a constant, "" where memory ran out.
 */
const char *cap_code_names_take_string(struct cap_code_names *c, struct rd *r);
const char *cap_code_names_take_jit(struct cap_code_names *c, struct rd *r, size_t n_procs);
const char *cap_code_names_take_name(struct cap_code_names *c, struct rd *r, size_t n_files);

/*
 * After the last record: JIT code sorted by process, start, from_ns and kind, names by
 * file and offset, the last of each key alone. 0 or -ENOMEM.
 */
int cap_code_names_settle(struct cap_code_names *c);

#endif
