/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capdamage - where a capture stops being one, in words.
 *
 * "cut at byte 12345: the block at byte 12000 (samples) is incomplete; waits
 * after 12.000 s of recording are missing"
 */
#ifndef STACKTOOLS_CAPDAMAGE_H
#define STACKTOOLS_CAPDAMAGE_H

#include "capture/capblock.h"

enum capdamage_kind {
	CAPDAMAGE_END, /* nothing is wrong but that no trailer came */
	CAPDAMAGE_CUT, /* the file ends inside a block */
	CAPDAMAGE_NO_BLOCK, /* no block header where one is due */
	CAPDAMAGE_CHECKSUM,
	CAPDAMAGE_SEQUENCE, /* a block is missing or there twice */
	CAPDAMAGE_RECORD, /* intact, but not well formed: `wrong` */
	CAPDAMAGE_REST, /* something follows the trailer */
};

struct capdamage {
	enum capdamage_kind kind;
	struct capblock block; /* as far as it is known */
	const char *wrong; /* for CAPDAMAGE_RECORD */
	uint64_t at, total; /* bytes: where it begins, and the file's length */
	uint64_t blocks; /* taken before it */
	uint64_t start_ns, last_flush_ns; /* of the recording and of what was taken; 0 = none */
};

/*
 * Tell it in BUF of CAP bytes. REST are the LEN bytes of the file from `at`
 * on: they are searched for intact blocks, to say up to where the recording
 * had gone on.
 */
void capdamage_describe(const struct capdamage *d, const uint8_t *rest, size_t len, char *buf, size_t cap);

#endif
