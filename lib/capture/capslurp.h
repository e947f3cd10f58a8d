/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capslurp - the bytes of a capture from a file or a pipe.
 *
 * Read, not mapped: a mapped file that its writer cuts back would end its
 * reader with SIGBUS. What does not begin as a capture is refused after the
 * first bytes, and behind the first block header that is none only so much
 * is read as is of use for telling what is missing; so neither /dev/zero nor
 * a pipe without end holds a reader up or fills its memory.
 */
#ifndef STACKTOOLS_CAPSLURP_H
#define STACKTOOLS_CAPSLURP_H

#include "base/err.h"

struct capslurp {
	uint8_t *bytes; /* free(3) it */
	size_t len;
	uint64_t total; /* of the file, where not all of it was read */
};

/* PATH "-" or NULL is stdin. 0, or -errno with the story; -EINVAL: no capture. */
int capslurp_read(const char *path, struct capslurp *ret, struct err *e);

#endif
