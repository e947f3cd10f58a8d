/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * verifier - what the kernel's verifier says of a program that it refuses.
 *
 * A refusal is EACCES, EINVAL or E2BIG, as is much else, but only the verifier
 * writes a log: where there is none, something else refused the load.
 */
#ifndef STACKTOOLS_SYSTEM_VERIFIER_H
#define STACKTOOLS_SYSTEM_VERIFIER_H

#include "base/err.h"

struct bpf_object;

struct verifier_log {
	struct bpf_object *obj;
	char *buf;
};

/* Before OBJ is loaded: the log of a program that is refused goes into L, which has to live as long as the
 * load lasts. Release L with verifier_log_close(). */
int verifier_log_open(struct verifier_log *l, struct bpf_object *obj, struct err *e);

/*
 * The load of L's object failed with CODE. True when the verifier refused a
 * program: E names the program and the verifier's reason, and the whole log is
 * appended to FD where that is above 0. False, and nothing done, when it was
 * not the verifier.
 */
bool verifier_log_refused(const struct verifier_log *l, int code, int fd, struct err *e);

/* Where BPF programs may read no memory because the kernel is locked down, make that the hint of E. */
bool verifier_log_lockdown(struct err *e);

void verifier_log_close(struct verifier_log *l); /* a zeroed one is fine */

/* The line of LOG, which holds no NUL before its end, that tells why; LEN bytes of it. NULL = there is none.
 */
const char *verifier_log_reason(const char *log, size_t *len);

#endif
