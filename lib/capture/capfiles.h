/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capfiles - the files of a capture that frames of its user stacks lie in.
 */
#ifndef STACKTOOLS_CAPFILES_H
#define STACKTOOLS_CAPFILES_H

#include "capture/capread.h"

struct capfiles {
	uint32_t *files; /* cap_file ids, ascending */
	uint32_t *procs; /* of each, one process that mapped it: its cap_proc id */
	size_t n;
};

/*
 * Every file that an address of a sample's user stack is looked up in. 0 or
 * -ENOMEM. O(frames of the distinct pairs of process and stack). Release with capfiles_free().
 */
int capfiles_make(const struct capread *c, struct capfiles *ret);
void capfiles_free(struct capfiles *f); /* a zeroed one is fine */

#endif
