/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * modhits - answers about a file handed to those who asked: the frames of
 * addresses, from what was read of the file and from what the capture itself has
 * stored.
 */
#ifndef STACKTOOLS_MODHITS_H
#define STACKTOOLS_MODHITS_H

#include "capture/reader.h"
#include "symbols/frame.h"
#include "symbols/storednames.h"
#include "symbols/symanswer.h"

/* The byte at OFFSET of a file is to be named, for frame number FRAME. */
struct modhits_ask {
	uint64_t offset, vaddr; /* VADDR is the file's own address of it */
	uint32_t file, frame;
	bool lost; /* no segment of the file holds it, so there is no vaddr */
};

/* By file, then offset; what is equal stays in its order. 0 or -ENOMEM. O(n). */
int modhits_sort(struct modhits_ask *asks, size_t n);

/* What became of an ask. */
struct modules_hit {
	uint64_t offset; /* as asked for */
	const struct symanswer_addr *addr; /* NULL: nothing is known */
	const struct frame_call *calls; /* of ADDR: n_frames of them, innermost first */
	const char *reason; /* why there is no name, or why it is less certain; NULL = all is well */
	bool stored; /* by the recorder; the file here does not know as much */
};

typedef void modules_sink(void *ctx, uint32_t frame, const struct modules_hit *hit);

/* Answers that were told of stay here, for frames point to their strings. Zero it. */
struct modhits {
	void **kept;
	size_t n, cap;
};

void modhits_free(struct modhits *h);

/* An answer with its frames. */
struct modhits_answer {
	struct symanswer a;
	struct frame_call *calls; /* of all; NULL = there is no answer */
	const char *lost; /* why an address is not in the file; NULL = no segment holds it */
};

/* Take BYTES, which are checked (A): they are H's from here on, whatever happens. 0 or -ENOMEM. */
int modhits_take(struct modhits *h, uint8_t *bytes, const struct symanswer *a, struct modhits_answer *ret);

/* What C stored of FILE: an empty answer where there is nothing. 0 or -ENOMEM. */
int modhits_stored(struct modhits *h, const struct capread *c, uint32_t file,
	const struct storednames_opts *o, struct modhits_answer *ret, struct err *e);

/*
 * Tell SINK of each of N asks: by READ, where that knows it, or by STORED, where
 * that knows more; WHY is the reason where neither does and READ is not there.
 */
void modhits_tell(const struct modhits_ask *asks, size_t n, const struct modhits_answer *read,
	const struct modhits_answer *stored, const char *why, modules_sink *sink, void *ctx);

#endif
