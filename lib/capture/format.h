/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * format - the bytes of a capture's records, for both the writer and the reader.
 *
 * No other code knows these bytes. docs/capture.5 describes the format.
 *
 * A block (cap_block_*()) has records of one type. A record is its length in
 * bytes (uleb) and its fields. Decoders ignore fields after the last one that
 * they know. A record may also have fewer fields, if an earlier version wrote it.
 *
 * Decoders check each record on its own. They reject what no writer makes (a
 * mapping that ends before it starts, a string with a NUL inside), but not a
 * reference to a missing record: the reader checks that. Decoded strings and
 * images point into the bytes that were read.
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
	CAPTURE_RECORD_JIT = 14, /* this and the next two: cap_code_names_*() */
	CAPTURE_RECORD_NAME = 15,
	CAPTURE_RECORD_STRING = 16,
	CAPTURE_RECORD_SCRIPT = 17,
	CAPTURE_RECORD_WAKER = 18,
	CAPTURE_RECORD_KEY = 19,
	CAPTURE_RECORD_WAIT = 20,
	CAPTURE_RECORD_CHANGE = 21,
	CAPTURE_RECORD_LIFE = 22,
	CAPTURE_RECORD_TYPES /* one more than the last */
};

/* "samples" for CAPTURE_RECORD_SAMPLE; "unknown" for an unknown type. */
const char *cap_record_type_name(unsigned int type);

/* --- records --- */

/*
 * State that the samples or waits of a block share: times are written as differences.
 * Zero it at the start of each block.
 */
struct cap_record_state {
	uint64_t first_ns;
};

/* Append the fields, without the record's length. */
void cap_record_put_host(struct buf *b, const struct cap_host *h);
void cap_record_put_option(struct buf *b, const struct cap_option *o);
void cap_record_put_file(struct buf *b, const struct cap_file *f);
void cap_record_put_proc(struct buf *b, const struct cap_proc *p);
void cap_record_put_thread(struct buf *b, const struct cap_thread *t);
void cap_record_put_life(struct buf *b, const struct cap_life *l);
void cap_record_put_map(struct buf *b, const struct cap_map *m);
void cap_record_put_image(struct buf *b, const struct cap_image *i);
void cap_record_put_ksym(struct buf *b, const struct cap_ksym *s);
void cap_record_put_script(struct buf *b, const struct cap_script *s);
void cap_record_put_stack(struct buf *b, const struct cap_stack *s);
void cap_record_put_waker(struct buf *b, const struct cap_waker *w);
void cap_record_put_sample(struct buf *b, const struct cap_sample *s, struct cap_record_state *state);
void cap_record_put_key(struct buf *b, uint32_t id, const struct cap_sample *s); /* not its numbers */
void cap_record_put_wait(struct buf *b, const struct cap_wait *w, struct cap_record_state *state);
void cap_record_put_counter(struct buf *b, const struct cap_counter *c);
void cap_record_put_change(struct buf *b, const struct cap_change *c);
void cap_record_put_flush(struct buf *b, const struct cap_flush *f);
void cap_record_put_trailer(struct buf *b, const struct cap_trailer *t);

/* Set *RECORD to the next record of block R. False at the end, or if R is bad. */
bool cap_record_next(struct rd *r, struct rd *record);

/*
 * False if the record is malformed. cap_record_get_stack() stops before the
 * frames: read them with cap_record_get_frames(), which needs room for s->len of
 * them. Then cap_record_get_n_exact() sets s->n_exact, the number of indexes that
 * cap_record_get_exact() needs room for; and likewise cap_record_get_n_scripts().
 */
bool cap_record_get_host(struct rd *r, struct cap_host *h);
bool cap_record_get_option(struct rd *r, struct cap_option *o);
bool cap_record_get_file(struct rd *r, struct cap_file *f);
bool cap_record_get_proc(struct rd *r, struct cap_proc *p);
bool cap_record_get_thread(struct rd *r, struct cap_thread *t);
bool cap_record_get_life(struct rd *r, struct cap_life *l);
bool cap_record_get_map(struct rd *r, struct cap_map *m);
bool cap_record_get_image(struct rd *r, struct cap_image *i);
bool cap_record_get_ksym(struct rd *r, struct cap_ksym *s);
bool cap_record_get_stack(struct rd *r, struct cap_stack *s);
bool cap_record_get_frames(struct rd *r, uint64_t *frames, size_t n);
bool cap_record_get_n_exact(struct rd *r, struct cap_stack *s);
bool cap_record_get_exact(struct rd *r, uint32_t *exact, const struct cap_stack *s);
bool cap_record_get_n_scripts(struct rd *r, struct cap_stack *s);
bool cap_record_get_scripts(struct rd *r, struct cap_script_at *scripts, const struct cap_stack *s);
bool cap_record_get_script(struct rd *r, struct cap_script *s);
bool cap_record_get_waker(struct rd *r, struct cap_waker *w);
bool cap_record_get_sample(struct rd *r, struct cap_sample *s, struct cap_record_state *state);
bool cap_record_get_key(struct rd *r, uint32_t *id, struct cap_sample *s); /* numbers are 0 */
bool cap_record_get_wait(struct rd *r, struct cap_wait *w, struct cap_record_state *state);
bool cap_record_get_counter(struct rd *r, struct cap_counter *c);
bool cap_record_get_change(struct rd *r, struct cap_change *c);
bool cap_record_get_flush(struct rd *r, struct cap_flush *f);
bool cap_record_get_trailer(struct rd *r, struct cap_trailer *t);

/*
 * cap_block - the container of a capture's records: the file header, and blocks
 * with checksums. docs/capture.5 describes the format.
 */

#define CAPTURE_BLOCK_MAGIC "\211stkcap\n" /* 8 bytes, no NUL */
#define CAPTURE_BLOCK_MAGIC_LEN 8
#define CAPTURE_BLOCK_MAJOR 1
#define CAPTURE_BLOCK_HEADER_LEN 24 /* bytes of the file header in this version */
#define CAPTURE_BLOCK_SYNC 0x6b6c6253 /* "Sblk" */
#define CAPTURE_BLOCK_HEAD_LEN 20 /* bytes of a block header */
#define CAPTURE_BLOCK_PAYLOAD_GOAL (1 << 20) /* bytes: the writer ends a block that has reached it */

/* --- the file header --- */

enum cap_block_header {
	CAPTURE_BLOCK_OK,
	CAPTURE_BLOCK_FOREIGN, /* not a capture: the magic is missing */
	CAPTURE_BLOCK_SHORT, /* begins like a capture, but ends inside the header */
	CAPTURE_BLOCK_BYTE_ORDER, /* written in the other byte order */
	CAPTURE_BLOCK_DAMAGED, /* wrong checksum, byte order mark or length */
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
	uint32_t crc; /* crc32c of the header bytes before it and of the payload */
};

/* Make the block header for the LEN bytes of PAYLOAD. */
void cap_block_put(uint8_t header[CAPTURE_BLOCK_HEAD_LEN], unsigned int type, uint32_t seq,
	const void *payload, size_t len);

/* False if HEADER is not a block header: the sync word is wrong or the payload too long. */
bool cap_block_get(const uint8_t header[CAPTURE_BLOCK_HEAD_LEN], struct cap_block *b);

/* Is the checksum right? The payload must directly follow HEADER. */
bool cap_block_intact(const uint8_t header[CAPTURE_BLOCK_HEAD_LEN], const struct cap_block *b);

/*
 * cap_code_names - the records that name code (strings, JIT code, names): their
 * bytes, and a collection of them. docs/capture.5 describes the format.
 *
 * Names and paths repeat often. Each is written once, as a string record with an
 * id. The other records refer to it: 0 is "", another value is the id plus one.
 */

/* --- writing: the fields, without the record's length --- */

/* Returns the number that stands for TEXT. CTX is passed through. */
typedef uint64_t cap_code_names_ref(void *ctx, const char *text);

void cap_code_names_put_string(struct buf *b, uint32_t id, const char *text);
void cap_code_names_put_jit(struct buf *b, const struct cap_jit *j, cap_code_names_ref *ref, void *ctx);
void cap_code_names_put_name(struct buf *b, const struct cap_name *n, cap_code_names_ref *ref, void *ctx);

/* --- reading --- */

struct cap_code_names_counts {
	size_t strings, jits, names, frames;
};

/* Zero it to initialize. `n` counts accepted records: to forget a block, restore the old `n`. */
struct cap_code_names {
	struct cap_code_names_counts n, room;
	const char **strings; /* they point into the bytes that were read */
	struct cap_jit *jits;
	struct cap_name *names;
	struct cap_name_frame *frames; /* of all names, in file order */
	struct cap_code_names_counts settled; /* those that cap_code_names_settle() has seen already, */
	const struct cap_name_frame *settled_at; /* and where its `frames` were */
};

void cap_code_names_free(struct cap_code_names *c);

/*
 * Decode the record in R and add it. N_PROCS and N_FILES are the numbers of
 * processes and files so far. NULL, or a constant error message: "" if memory ran
 * out.
 */
const char *cap_code_names_take_string(struct cap_code_names *c, struct rd *r);
const char *cap_code_names_take_jit(struct cap_code_names *c, struct rd *r, size_t n_procs);
const char *cap_code_names_take_name(struct cap_code_names *c, struct rd *r, size_t n_files);

/*
 * Call after the last record, or of a capture that grows, after each flush. Sets the frames of the names,
 * sorts JIT code by process, start, from_ns and kind, and names by file and offset, and keeps only the last
 * record of each key. 0 or -ENOMEM.
 */
int cap_code_names_settle(struct cap_code_names *c);

#endif
