/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procfile - the small files of a thread in /proc/PID/task/TID that are read
 * of it.
 */
#ifndef STACKTOOLS_PROCFILE_H
#define STACKTOOLS_PROCFILE_H

#include <stdint.h>

/* In the order in which they are read. */
enum procfile {
	PROCFILE_SCHEDSTAT,
	PROCFILE_STATUS,
	PROCFILE_STAT,
	PROCFILE_SYSCALL,
	PROCFILE_STACK,
	PROCFILE_WCHAN,
	PROCFILE_CGROUP,
	PROCFILE_EXE, /* of the program: PROCFILE_EXE_BYTES */
	PROCFILE_COUNT
};

#define PROCFILE_LOOK (PROCFILE_WCHAN + 1) /* those before are what a look may take */
#define PROCFILE_EXE_BYTES 16 /* its e_ident: elf(5) */

/* How much of one is read: no kernel writes more of any, but of cgroup where there are many hierarchies. */
#define PROCFILE_TEXT 8192

const char *procfile_name(enum procfile f);

/* The process or thread that an entry of /proc or /proc/PID/task named NAME is of; 0 = of none. */
uint32_t procfile_number(const char *name);

#endif
