/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procreach - which processes and threads /proc shows, and the text of their
 * files, by this process's own rights or else through the looker (NULL is
 * fine).
 */
#ifndef STACKTOOLS_PROCREACH_H
#define STACKTOOLS_PROCREACH_H

#include "procfs/looker.h"

/*
 * FN for the number of each process, or with PID of each thread of that one.
 * Where there is a looker it is asked first: /proc hides from us what it does
 * not hide from that one (hidepid). 0, or -errno where there is no such list.
 */
int procreach_list(struct looker *l, uint32_t pid, void (*fn)(void *ctx, uint32_t number), void *ctx);

/* The text of file F of thread TID of process PID, up to CAP bytes: its length, or -errno. */
ssize_t procreach_text(struct looker *l, uint32_t pid, uint32_t tid, enum procfile f, char *text, size_t cap);

#endif
