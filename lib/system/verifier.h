/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * verifier - the log of the kernel's verifier for a program that it refuses.
 *
 * The verifier refuses with EACCES, EINVAL or E2BIG, as do other parts of the
 * kernel, but only the verifier writes a log: without a log, something else
 * refused the load.
 */
#ifndef STACKTOOLS_SYSTEM_VERIFIER_H
#define STACKTOOLS_SYSTEM_VERIFIER_H

#include "base/err.h"

struct bpf_object;

struct verifier_log {
	struct bpf_object *obj;
	char *buf;
};

/*
 * Call before OBJ is loaded: L gets the log of a program that is refused, and must
 * live until the load has finished. Release L with verifier_log_close().
 */
int verifier_log_open(struct verifier_log *l, struct bpf_object *obj, struct err *e);

/*
 * Call when the load of L's object has failed with CODE. True if the verifier
 * refused a program: E gets the program and the verifier's reason, and if FD is
 * above 0 the whole log is appended to it. False, with nothing done, if something
 * else refused the load.
 */
bool verifier_log_refused(const struct verifier_log *l, int code, int fd, struct err *e);

/* If the kernel's lockdown forbids BPF programs to read memory, make that the hint of E. */
bool verifier_log_lockdown(struct err *e);

void verifier_log_close(struct verifier_log *l); /* a zeroed log is fine */

/* The line of LOG that gives the reason, *LEN bytes; NULL = none. LOG contains no NUL before its end. */
const char *verifier_log_reason(const char *log, size_t *len);

#endif
