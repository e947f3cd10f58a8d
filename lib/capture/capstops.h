/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capstops - where the walks of user stacks stopped: for each reason and
 * file, how many waits have such a stack.
 */
#ifndef STACKTOOLS_CAPSTOPS_H
#define STACKTOOLS_CAPSTOPS_H

#include "capture/capread.h"

struct capstops_stop {
	uint8_t reason; /* enum cap_reason, or a number that is none */
	bool mapped; /* the PC lay in a known mapping: of `file`, or of memory that is no file's */
	uint32_t file; /* CAP_NONE where there is none */
	uint64_t places; /* distinct ones */
	uint64_t waits, off_ns; /* sums saturate */
	/* Where most of these waits stopped: bytes into the file, or the PC itself where no file is. */
	uint64_t place;
};

struct capstops {
	struct capstops_stop *list; /* most waits first */
	size_t n;
};

/* 0 or -ENOMEM. Release with capstops_free(). */
int capstops_make(const struct capread *c, struct capstops *ret);
void capstops_free(struct capstops *s);

#endif
