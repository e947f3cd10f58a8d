/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * err - an error message, passed up to the caller that prints it.
 *
 * A function that can fail returns 0 or -errno and takes a `struct err *` as
 * its last parameter (NULL if the caller does not want the message). The
 * message says what failed and on what: lower case, subject in quotes, no
 * full stop. The hint says what to do. Library code never prints: a tool
 * prints the err with cli_error(), which escapes control characters.
 */
#ifndef STACKTOOLS_BASE_ERR_H
#define STACKTOOLS_BASE_ERR_H

#include "base/base.h"

struct err {
	int code; /* -errno, 0 = no error */
	char msg[1024]; /* what failed, on what, why */
	char hint[512]; /* what to do; "" = no hint */
};

/* Set the code and the message, and clear the hint. Returns CODE. */
int err_set(struct err *e, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Like err_set(), with ": <strerror of CODE>" appended. Returns CODE. */
int err_sys(struct err *e, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Add or replace the hint. */
void err_hint(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Put "<context>: " before the message. */
void err_prefix(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* "out of memory" for WHAT. Returns -ENOMEM. */
int err_nomem(struct err *e, const char *what);

/* The name of an errno: "EFAULT" for 14 or -14, "E?" for an unknown one. */
const char *err_name(int code);

#endif
