/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cli - the contract every tool has with its user.
 *
 *   status 0   did everything
 *   status 1   ran, but the answer is no or incomplete (stderr says why)
 *   status 2   could not (stderr says why, with a hint)
 *   status 64  bad command line (two lines on stderr, nothing on stdout)
 *
 * stdout carries the documented result only. Each message is one write, with
 * control characters escaped. A tool ends with `return cli_finish(&cli, st)`,
 * which flushes and closes stdout checked, so /dev/full is never a success.
 */
#ifndef STACKTOOLS_BASE_CLI_H
#define STACKTOOLS_BASE_CLI_H

#include "base/err.h"

enum cli_status { CLI_OK = 0, CLI_INCOMPLETE = 1, CLI_FAILED = 2, CLI_USAGE = 64 };

struct cli {
	const char *name; /* "capinfo" */
	const char *synopsis; /* "[--maps|--verify] FILE" */
	const char *help; /* the whole --help text after the synopsis line, ends in a newline */
};

/* The version that --version prints and captures record, "0.1.0". */
extern const char cli_version_string[];

/* Print help or version on stdout; return cli_finish()'s status. */
int cli_help(const struct cli *c);
int cli_version(const struct cli *c);

/* "name: <message>" and "usage: name synopsis" on stderr. Returns CLI_USAGE. */
int cli_usage(const struct cli *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * For getopt_long()'s '?' and ':' with opterr = 0 and an optstring that
 * begins with ':': name the offending option. Returns CLI_USAGE.
 */
int cli_bad_option(const struct cli *c, int opt, char *const argv[]);

/* "name: msg" and, where there is one, "name: hint: ..." on stderr, one write. */
void cli_error(const struct cli *c, const struct err *e);
void cli_warn(const struct cli *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * Flush and close stdout checked. Returns STATUS, or CLI_FAILED with a
 * message when the result did not reach its reader. Never called twice.
 */
int cli_finish(const struct cli *c, int status);

/* Strict numbers: the whole of S, in [MIN, MAX]. 0, or -EINVAL / -ERANGE with the message. */
int cli_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret, struct err *e);

/* A whole number of bytes, or of KiB, MiB, GiB ("16M"), in [MIN, MAX] bytes. */
int cli_size(const char *s, uint64_t min, uint64_t max, uint64_t *ret, struct err *e);

/* A time with unit ns, us, ms, s or m ("10us", "1.5s"); without a unit, of DEFAULT_UNIT_NS. */
int cli_duration(const char *s, uint64_t default_unit_ns, uint64_t *ret_ns, struct err *e);

#endif
