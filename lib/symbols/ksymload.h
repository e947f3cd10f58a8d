/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ksymload - the kernel's symbols, read by a thread meanwhile: it takes some
 * tens of milliseconds, in which a recorder has other things to do.
 */
#ifndef STACKTOOLS_KSYMLOAD_H
#define STACKTOOLS_KSYMLOAD_H

#include "symbols/kallsyms.h"

#include <pthread.h>

/* A zeroed one is idle. */
struct ksymload {
	pthread_t thread;
	bool running; /* begun and not taken */
	int fd, rc;
	struct kallsyms *ks;
	struct err why;
};

/*
 * Begin to read; by FD, a descriptor of /proc/kallsyms that stays the
 * caller's and whose rights are those of who opened it, or -1: it is opened
 * now. Does nothing while one is under way. Without threads it reads at once.
 */
void ksymload_begin(struct ksymload *l, int fd);

/* Wait for what was begun. As kallsyms_load(): *RET is the caller's. -ENODATA when nothing was begun. */
int ksymload_take(struct ksymload *l, struct kallsyms **ret, struct err *e);

/* Wait for what was begun and drop it. */
void ksymload_close(struct ksymload *l);

#endif
