/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cli - the command line conventions of all tools.
 *
 *   status 0   success
 *   status 1   ran, but the answer is no or incomplete (stderr says why)
 *   status 2   failed (stderr says why, with a hint)
 *   status 64  bad command line (two lines on stderr, nothing on stdout)
 *
 * stdout carries only the documented result. Each message is one write(2), with
 * control characters escaped. A tool ends with `return cli_finish(&cli, st)`,
 * which flushes and closes stdout and checks for errors, so that writing to
 * /dev/full never succeeds.
 */
#ifndef STACKTOOLS_BASE_CLI_H
#define STACKTOOLS_BASE_CLI_H

#include "base/bytes.h"
#include "base/err.h"

enum cli_status { CLI_OK = 0, CLI_INCOMPLETE = 1, CLI_FAILED = 2, CLI_USAGE = 64 };

/*
 * One table describes the command line of a tool: the usage line, --help, the
 * parser and the shell completions come from it. A row is an option, an operand
 * (no name) or a heading in --help. -h and -V are added to each table. The kind
 * of an argument decides how it is parsed and what a shell offers for it.
 */
enum cli_kind {
	CLI_KIND_HEADING,
	CLI_KIND_FLAG,
	CLI_KIND_VALUE,
	CLI_KIND_NUMBER,
	CLI_KIND_PID,
	CLI_KIND_TID,
	CLI_KIND_SIZE,
	CLI_KIND_DURATION,
	CLI_KIND_ADDRESS,
	CLI_KIND_WORD,
	CLI_KIND_TEXT,
	CLI_KIND_FILE,
	CLI_KIND_DIR,
	CLI_KIND_CALL,
	CLI_KIND_COMMAND,
	CLI_KIND_HELP,
	CLI_KIND_VERSION,
};

struct cli_option {
	char letter; /* 0 = none */
	const char *name; /* "pid" for --pid; NULL = an operand or a heading */
	const char *arg; /* name of the argument in --help: "PID"; NULL = takes none */
	const char *help; /* wrapped when printed; NULL = an operand shown in the usage line only */
	enum cli_kind kind;
	size_t at, size; /* the member of the tool's options that stores the value */
	bool list; /* may be given several times: the member is a struct cli_list */
	bool commas; /* a list: one argument may have several values, "1,2,3"; "\," is a comma in one */
	uint32_t times; /* a list: the maximum number of values; 0 = any number */
	bool required; /* a mandatory operand */
	bool hidden; /* taken, but not shown */
	uint32_t group; /* not 0: excludes the other options of this group */
	int value;
	uint64_t min, max; /* max 0 = the maximum of the member's type */
	uint64_t unit_ns; /* the unit of a duration given without one */
	const char *const *words; /* NULL-terminated */
	const char *otherwise; /* of a long option whose argument, after =, may be missing: what it then is */
	int (*call)(const char *arg, void *opts, struct err *e); /* of words: for what begins like a number */
};

/* All arguments of an option that may be given several times, or all operands. */
struct cli_list {
	void *p; /* elements of the type in the table */
	size_t n, cap;
};

/*
 * The part of a row after letter, name, arg and help: the kind, and member M of
 * T, the tool's options. The type of M is checked. Further fields may follow:
 *
 *   { 'd', "depth", "N", "frames at most", CLI_NUMBER(struct opts, depth), .min = 1, .max = 512 },
 */
#define CLI_AT(T, m) .at = offsetof(T, m), .size = sizeof(((T *)0)->m)
#define CLI_AT_TYPE(T, m, type)                                                                              \
	.at = offsetof(T, m) + 0 * sizeof(_Generic(&((T *)0)->m, type * : 0)), .size = sizeof(type)
#define CLI_AT_WORD(T, m)                                                                                    \
	.at = offsetof(T, m) + 0 * sizeof(_Generic(&((T *)0)->m, int * : 0, unsigned int * : 0)),            \
	.size = sizeof(int)
#define CLI_AT_LIST(T, m, type)                                                                              \
	.list = true, .at = offsetof(T, m) + 0 * sizeof(_Generic(&((T *)0)->m, struct cli_list * : 0)),      \
	.size = sizeof(type)

#define CLI_HEADING(text) .kind = CLI_KIND_HEADING, .help = (text)
#define CLI_FLAG(T, m) .kind = CLI_KIND_FLAG, CLI_AT_TYPE(T, m, bool)
/* sets an int or an enum to V */
#define CLI_VALUE(T, m, v) .kind = CLI_KIND_VALUE, .value = (v), CLI_AT_WORD(T, m)
/* a whole number in [min, max], of 4 or 8 bytes */
#define CLI_NUMBER(T, m) .kind = CLI_KIND_NUMBER, CLI_AT(T, m)
#define CLI_NUMBERS(T, m, type) .kind = CLI_KIND_NUMBER, CLI_AT_LIST(T, m, type)
/* running processes or threads, one or several with commas between them: uint32_t */
#define CLI_PIDS(T, m)                                                                                       \
	.kind = CLI_KIND_PID, .min = 1, .max = 4194304, .commas = true, CLI_AT_LIST(T, m, uint32_t)
#define CLI_TIDS(T, m)                                                                                       \
	.kind = CLI_KIND_TID, .min = 1, .max = 4194304, .commas = true, CLI_AT_LIST(T, m, uint32_t)
#define CLI_SIZE(T, m) .kind = CLI_KIND_SIZE, CLI_AT_TYPE(T, m, uint64_t)
/* a time, of at least `min` ns */
#define CLI_DURATION(T, m, unit) .kind = CLI_KIND_DURATION, .unit_ns = (unit), CLI_AT_TYPE(T, m, uint64_t)
/* hexadecimal, with or without 0x */
#define CLI_ADDRESS(T, m) .kind = CLI_KIND_ADDRESS, CLI_AT_TYPE(T, m, uint64_t)
#define CLI_ADDRESSES(T, m) .kind = CLI_KIND_ADDRESS, CLI_AT_LIST(T, m, uint64_t)
/* one of WORDS; the int or enum becomes its index */
#define CLI_WORD(T, m, list_of) .kind = CLI_KIND_WORD, .words = (list_of), CLI_AT_WORD(T, m)
#define CLI_TEXT(T, m) .kind = CLI_KIND_TEXT, CLI_AT_TYPE(T, m, const char *)
#define CLI_TEXTS(T, m) .kind = CLI_KIND_TEXT, CLI_AT_LIST(T, m, const char *)
#define CLI_FILE(T, m) .kind = CLI_KIND_FILE, CLI_AT_TYPE(T, m, const char *)
#define CLI_FILES(T, m) .kind = CLI_KIND_FILE, CLI_AT_LIST(T, m, const char *)
#define CLI_DIR(T, m) .kind = CLI_KIND_DIR, CLI_AT_TYPE(T, m, const char *)
#define CLI_DIRS(T, m) .kind = CLI_KIND_DIR, CLI_AT_LIST(T, m, const char *)
/* F stores the value in the options */
#define CLI_CALL(f) .kind = CLI_KIND_CALL, .call = (f)
/* the words after --, which ends the options: a char *const *, NULL if there are none */
#define CLI_COMMAND(T, m) .kind = CLI_KIND_COMMAND, CLI_AT_TYPE(T, m, char *const *)

struct cli {
	const char *name; /* "capinfo" */
	const char *about; /* in --help before the options; a newline begins a new line */
	const char *status; /* in --help after the options: what the exit status means; NULL = nothing */
	const struct cli_option *options;
	size_t n_options;
	/* Check the combination of the options: CLI_OK, or the status of cli_usage(). May be NULL. */
	int (*check)(const struct cli *c, void *opts);
};

#define CLI_OPTIONS_MAX 64
#define CLI_OPTIONS(table)                                                                                   \
	.options = (table),                                                                                  \
	.n_options = ARRAY_LEN(table) + 0 * sizeof(char[ARRAY_LEN(table) <= CLI_OPTIONS_MAX ? 1 : -1])

/*
 * Parse the command line into OPTS, the struct that the table refers to; OPTS
 * holds the defaults. True: continue, and release the lists with cli_free() at
 * the end. False: an error message or the output of --help, --version or
 * --completion=SHELL was printed; exit with *STATUS.
 */
bool cli_parse(const struct cli *c, int argc, char *argv[], void *opts, int *status);
void cli_free(const struct cli *c, void *opts);

/* "[-jm] [-p PID]... FILE": one line, without the tool's name. */
void cli_synopsis(const struct cli *c, struct buf *b);

/* The text of --help, in lines of at most 80 columns. */
void cli_help(const struct cli *c, struct buf *b);

/* The completion file for "bash", "zsh" or "fish" (base/completion.c). */
extern const char *const cli_shells[]; /* NULL-terminated */
void cli_completion(const struct cli *c, const char *shell, struct buf *b);

/* The row at *I, which is incremented. -h and -V follow the rows of the table, then NULL. */
const struct cli_option *cli_next(const struct cli *c, size_t *i);
const struct cli_option *cli_next_shown(const struct cli *c, size_t *i); /* without hidden ones */

/* The version, "0.1.0": --version prints it and captures record it. */
extern const char cli_version_string[];

/* Print "name: <message>" and "usage: name synopsis" on stderr. Returns CLI_USAGE. */
int cli_usage(const struct cli *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Print "name: msg" and, if there is a hint, "name: hint: ..." on stderr with one write(2). */
void cli_error(const struct cli *c, const struct err *e);
void cli_warn(const struct cli *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * Flush and close stdout, and check for errors. Returns STATUS, or prints a
 * message and returns CLI_FAILED if the result was not written. Call it once.
 */
int cli_finish(const struct cli *c, int status);

/*
 * What the main() of most tools is: parse into OPTS, then RUN, which returns the status. If that is
 * CLI_FAILED, the error that it set is printed. cli_free(), cli_finish().
 */
int cli_main(const struct cli *c, int argc, char *argv[], void *opts, int (*run)(void *opts, struct err *e));

/*
 * Strict number parsers: all of S must be valid. Each returns 0, or -EINVAL or
 * -ERANGE with the message. This one takes a decimal number in [MIN, MAX].
 */
int cli_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret, struct err *e);

/* A whole number of bytes, or of KiB, MiB, GiB ("16M"), in [MIN, MAX] bytes. */
int cli_size(const char *s, uint64_t min, uint64_t max, uint64_t *ret, struct err *e);

/* An address: 1 to 16 hexadecimal digits, with or without 0x. */
int cli_address(const char *s, uint64_t *ret, struct err *e);

/*
 * A time in ns, us, ms, s, m or h, with or without a decimal fraction, rounded to
 * ns ("10us", "1.5s", ".2"); without a unit, in DEFAULT_UNIT_NS.
 */
int cli_duration(const char *s, uint64_t default_unit_ns, uint64_t *ret_ns, struct err *e);

#endif
