/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tracefs - ids and fields of tracepoints from tracefs, wherever it is mounted.
 *
 * If tracefs is not mounted (a minimal system, a container), it is mounted
 * detached: only this process sees it, and it is gone when the function returns.
 */
#ifndef STACKTOOLS_SYSTEM_TRACEFS_H
#define STACKTOOLS_SYSTEM_TRACEFS_H

#include "base/err.h"

/*
 * The id of EVENT ("raw_syscalls/sys_enter") for PERF_TYPE_TRACEPOINT. Positive,
 * or -errno with the message: -ENOENT if this kernel does not have the tracepoint,
 * -EPERM if tracefs is not mounted and cannot be.
 */
int tracefs_event_id(const char *event, struct err *e);

struct tracefs_field {
	const char *name;
	uint16_t size; /* required size in bytes */
	uint16_t offset; /* the result, from the first byte of the record */
};

/*
 * Find the N fields of EVENT in its format file. -errno with the message: as above;
 * -EINVAL if a field is missing, has another size or cannot be parsed. Format:
 * Documentation/trace/events.rst of the kernel, "Event formats".
 */
int tracefs_fields(const char *event, struct tracefs_field *fields, size_t n, struct err *e);

/* The same with TEXT, the content of the format file. */
int tracefs_parse(const char *text, const char *event, struct tracefs_field *fields, size_t n, struct err *e);

#endif
