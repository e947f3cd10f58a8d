/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * namekeep - names for the places of a recording, written beside it, so that
 * it can be read where the files are not. Floor 13.
 *
 * Files are opened as the processes that mapped them reach them, and are used
 * when they are proven to be those that were mapped. Reading their symbols is
 * left to processes that can do nothing else (symchild.h); no server is asked.
 */
#ifndef STACKTOOLS_NAMEKEEP_H
#define STACKTOOLS_NAMEKEEP_H

#include "capwrite.h"
#include "filetab.h"
#include "namewant.h"

#define NAMEKEEP_SECONDS 2

/*
 * The names of W's places, those of the files with the most places first, into OUT, as far as
 * they are there in SECONDS. Whatever does not get its name is counted in RET: nothing of it
 * is an error.
 */
void namekeep_write(struct namewant *w, struct filetab *files, unsigned int seconds, struct capwrite *out,
	struct namewant_stats *ret);

#endif
