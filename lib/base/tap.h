/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tap - Test Anything Protocol, version 12, on stdout.
 *
 * One `struct tap` per program. The plan is printed at the end, so that prove(1)
 * treats a crash in the middle as a failure.
 */
#ifndef STACKTOOLS_BASE_TAP_H
#define STACKTOOLS_BASE_TAP_H

#include "base/base.h"

struct tap {
	unsigned int run, failed, skipped;
};

/* "ok N - name" or "not ok N - name". Returns OK. */
bool tap_ok(struct tap *t, bool ok, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* "ok N - name # SKIP reason" */
void tap_skip(struct tap *t, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* "# text", with each line prefixed. */
void tap_diag(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Print the plan. Returns the exit status: 0 if nothing failed, else 1. */
int tap_done(const struct tap *t);

#define tap_eq_u64(t, got, want, name) tap_eq_u64_((t), (uint64_t)(got), (uint64_t)(want), (name))
bool tap_eq_u64_(struct tap *t, uint64_t got, uint64_t want, const char *name);
bool tap_eq_str(struct tap *t, const char *got, const char *want, const char *name);

#endif
