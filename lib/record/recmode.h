/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recmode - the ways in which waits can be recorded, best first.
 *
 *   btf     tp_btf programs and task iterators, relocated by the kernel's BTF
 *   raw     raw or classic tracepoints; no kernel BTF, no iterators
 *   procfs  no BPF: /proc is looked at again and again, waits are estimated
 */
#ifndef STACKTOOLS_RECMODE_H
#define STACKTOOLS_RECMODE_H

#include "base/err.h"

enum recmode {
	RECMODE_AUTO = 0, /* the first that works */
	RECMODE_BTF,
	RECMODE_RAW,
	RECMODE_PROCFS,
	RECMODE_COUNT,
};

const char *recmode_name(enum recmode mode); /* "auto", "btf", "raw", "procfs" */

/* The mode of that name; -EINVAL with the story. */
int recmode_parse(const char *name, enum recmode *ret, struct err *e);

#endif
