/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proclook - what /proc tells of a process, by this process's own rights or
 * else through the opener (NULL is fine). Floor 4.
 */
#ifndef STACKTOOLS_PROCLOOK_H
#define STACKTOOLS_PROCLOOK_H

#include "opener.h"
#include "procmaps.h"

/* A descriptor of its file of that KIND (opener_proc()), or -errno. */
int proclook_open(struct opener *o, enum openwire_kind kind, uint32_t pid);

/* As procmaps_each(). */
int proclook_maps(struct opener *o, uint32_t pid, int (*fn)(void *ctx, const struct procmap *m), void *ctx,
	struct err *e);

/* A descriptor of the maps, or -errno; and *EXE, where it is NULL and can be told, as procinfo_exe(). */
int proclook_maps_exe(struct opener *o, uint32_t pid, char **exe);

/* As procinfo_living(): a process that is hidden from us lives if the opener sees it. */
uint32_t proclook_living(struct opener *o, uint32_t pid);

#endif
