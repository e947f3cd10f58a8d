/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stackids - each stack of a capture as frame numbers, resolved once.
 *
 * A kernel stack means the same everywhere; a user stack is kept by process,
 * and resolved anew for each sample where the process's mappings changed
 * under it (resolve_steady()).
 */
#ifndef STACKTOOLS_STACKIDS_H
#define STACKTOOLS_STACKIDS_H

#include "symbols/resolve.h"

struct stackids;

/* A resolved stack: its frames are the numbers [first, first + len) of stackids_at(). */
struct stackids_span {
	size_t first;
	uint32_t len; /* 0 for a stack that failed */
	bool done;
};

/* C and R must stay. 0 or -ENOMEM; release *RET with stackids_free(). */
int stackids_new(const struct capread *c, struct resolve *r, struct stackids **ret);
void stackids_free(struct stackids *s); /* NULL is fine */

/* The kernel and the user stack of sample A. 0 or -ENOMEM. */
int stackids_kernel(struct stackids *s, const struct cap_sample *a, struct stackids_span *ret);
int stackids_user(struct stackids *s, const struct cap_sample *a, struct stackids_span *ret);

/* The frame numbers; valid until the next stack is resolved. */
const uint32_t *stackids_at(const struct stackids *s, const struct stackids_span *span);

#endif
