/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ptwalk - walks the copy of a stack by libdwfl.
 *
 * For a process in a sandbox that has libelf's calls (sandbox.h): no file is
 * searched for, the ELF files of a process come as descriptors, memory and
 * registers from a copy (ptcopy.h). The bias of a file follows from where its
 * segments are mapped.
 */
#ifndef STACKTOOLS_PTWALK_H
#define STACKTOOLS_PTWALK_H

#include "procfs/ptcopy.h"
#include "procfs/ptwire.h"

struct ptwalk;

struct ptwalk *ptwalk_new(void); /* NULL without memory */
void ptwalk_free(struct ptwalk *w);

/* An executable mapping; FD is the walker's from now on (-1 = of no file, or of one that cannot be read). */
int ptwalk_map(struct ptwalk *w, const struct ptwire_request *map, int fd);

/*
 * Walk what C holds, BYTES being those of its areas one after the other, each
 * PTCOPY_AREA_BYTES long. Every field of *RET is written.
 *
 * COMPLETE: the row of the outermost frame says that it has no caller, or a
 * row led to a return address of zero. UNVERIFIED: a frame pointer did.
 */
void ptwalk_run(
	struct ptwalk *w, const struct ptcopy_head *c, const uint8_t *bytes, struct ptwire_answer *ret);

/*
 * Answer requests from SOCK with the copy that is in the file COPY, until the
 * other side closes it.
 */
void ptwalk_serve(int sock, int copy);

#endif
