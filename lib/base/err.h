/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * err - the message of a failure, passed up to whoever can print it.
 *
 * A function that can fail returns 0 or -errno and takes a `struct err *` as
 * its last parameter (NULL allowed: the caller does not want the message). The
 * message says what failed and on what, lower case, subject in quotes, no
 * full stop; the hint says what to do. Library code never prints: a tool
 * shows the err with cli_error(), which escapes control characters.
 */
#ifndef STACKTOOLS_BASE_ERR_H
#define STACKTOOLS_BASE_ERR_H

#include "base/base.h"

struct err {
	int code; /* -errno, 0 = no error */
	char msg[1024]; /* what failed, on what, why */
	char hint[512]; /* what to do; "" = nothing to say */
};

/* Set code and message; clears the hint. Returns CODE. */
int err_set(struct err *e, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* As err_set(), with ": <strerror of CODE>" appended. Returns CODE. */
int err_sys(struct err *e, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Add or replace the hint. Returns the code already set (0 when E is NULL). */
int err_hint(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Put "<context>: " before the message. Returns the code (0 when E is NULL). */
int err_prefix(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* "out of memory" for WHAT. Returns -ENOMEM. */
int err_nomem(struct err *e, const char *what);

/* The name of an errno, "EFAULT" for 14 or -14; "E?" for an unknown one. */
const char *err_name(int code);

#endif
