/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procaccess - what /proc tells of a process, by this process's own rights or
 * else through the opener (NULL is fine).
 */
#ifndef STACKTOOLS_PROCACCESS_H
#define STACKTOOLS_PROCACCESS_H

#include "system/opener.h"
#include "system/procmaps.h"

/* A descriptor of its file of that KIND (opener_proc()), or -errno. */
int procaccess_open(struct opener *o, enum openwire_kind kind, uint32_t pid);

/* As procmaps_each(). */
int procaccess_maps(struct opener *o, uint32_t pid, int (*fn)(void *ctx, const struct procmap *m), void *ctx,
	struct err *e);

/* A descriptor of the maps, or -errno; and *EXE, where it is NULL and can be told, as procinfo_exe(). */
int procaccess_maps_exe(struct opener *o, uint32_t pid, char **exe);

/* As procinfo_living(): a process that is hidden from us lives if the opener sees it. */
uint32_t procaccess_living(struct opener *o, uint32_t pid);

#endif
