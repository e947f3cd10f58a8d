/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tracefs - numbers and fields of tracepoints, from tracefs wherever it is.
 *
 * Where nobody has mounted it (a minimal system, a container), it is mounted
 * detached: seen by this process alone, and gone when the function returns.
 */
#ifndef STACKTOOLS_SYSTEM_TRACEFS_H
#define STACKTOOLS_SYSTEM_TRACEFS_H

#include "base/err.h"

/*
 * The id of EVENT ("raw_syscalls/sys_enter") for PERF_TYPE_TRACEPOINT.
 * Positive, or -errno with the message: -ENOENT for a tracepoint this kernel
 * does not have, -EPERM where tracefs is neither mounted nor can be.
 */
int tracefs_event_id(const char *event, struct err *e);

struct tracefs_field {
	const char *name;
	uint16_t size; /* bytes that it must have */
	uint16_t offset; /* found: from the record's first byte */
};

/*
 * Find the N fields of EVENT by its format. -errno with the message: as above;
 * -EINVAL where one is missing, has another size, or none is to be understood.
 * Format: Documentation/trace/events.rst of the kernel, "Event formats".
 */
int tracefs_fields(const char *event, struct tracefs_field *fields, size_t n, struct err *e);

/* The same from TEXT, the file's content. */
int tracefs_parse(const char *text, const char *event, struct tracefs_field *fields, size_t n, struct err *e);

#endif
