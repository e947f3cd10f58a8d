/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capblock - what a capture's records are wrapped in: the file header, and
 * blocks with their checksums. docs/capture.5 describes the format.
 */
#ifndef STACKTOOLS_CAPBLOCK_H
#define STACKTOOLS_CAPBLOCK_H

#include "base/bytes.h"
#include "capture/capture.h"

#define CAPBLOCK_MAGIC "\211stkcap\n" /* 8 bytes, no NUL */
#define CAPBLOCK_MAGIC_LEN 8
#define CAPBLOCK_MAJOR 1
#define CAPBLOCK_MINOR 2 /* 1.1: stacks tell which frames are exact; 1.2: strings, JIT code, names */
#define CAPBLOCK_HEADER_LEN 24 /* of the file header of this version */
#define CAPBLOCK_HEADER_MAX 4096 /* of any version */
#define CAPBLOCK_SYNC 0x6b6c6253 /* "Sblk" */
#define CAPBLOCK_HEAD_LEN 20 /* of a block header */
#define CAPBLOCK_PAYLOAD_MAX (64 << 20) /* a longer block is no block */
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

#endif
