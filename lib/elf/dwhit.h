/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwhit - what debug information says of one address, and the choice between
 * several units that speak of it.
 */
#ifndef STACKTOOLS_DWHIT_H
#define STACKTOOLS_DWHIT_H

#include "base/base.h"

/* One frame; strings are valid during the call. Innermost first, the last one is the function itself. */
struct dwlook_frame {
	const char *name; /* DW_AT_name, NULL = none */
	const char *linkage; /* DW_AT_linkage_name, NULL = none */
	const char *file; /* joined path; NULL = unknown */
	uint32_t line, column;
};

struct dwlook_hit {
	size_t index; /* of the address in the sorted array */
	const struct dwlook_frame *frames;
	size_t n; /* 0: only ERROR is to be told; 1 with no name: only the line is known */
	uint64_t low; /* where the function begins; 0 = not known */
	int error; /* -EINVAL: malformed where it covers the address; -ENOENT: its .dwo or alternate is
		      missing; -ENOMEM */
};

typedef void dwlook_sink(void *ctx, const struct dwlook_hit *hit);

struct dwhit_held;

/*
 * HIT (NULL = none) is what one more unit says of an address. *HELD, NULL at
 * first, is a copy of the hit of lowest RANK until now, of equal ones the first. With
 * LAST the best goes to SINK, and *HELD is NULL again. Where memory for a copy is short the hit is lost to
 * one that comes later.
 */
void dwhit_offer(struct dwhit_held **held, const struct dwlook_hit *hit, uint64_t rank, bool last,
	dwlook_sink *sink, void *ctx);

#endif
