/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recargs - the command line of offcpu-record.
 */
#ifndef STACKTOOLS_RECARGS_H
#define STACKTOOLS_RECARGS_H

#include "base/cli.h"
#include "record/options.h"

#define RECARGS_LIST_MAX 256

struct recargs {
	struct recorder_opts rec;
	uint32_t pids[RECARGS_LIST_MAX], tids[RECARGS_LIST_MAX];
	const char *comms[RECARGS_LIST_MAX];
	char *const *command; /* NULL = none */
	uint64_t duration_ns; /* 0 = no limit */
	int follow; /* -1 = not said */
	bool no_unwind; /* --unwind none */
	bool quiet, verbose;
};

/*
 * Parse the command line of C into O, whose lists are O's own, so that it may
 * not be moved afterwards. Returns CLI_OK with *DONE false: go on; else the
 * exit status, with what there is to say said.
 */
int recargs_parse(const struct cli *c, int argc, char **argv, struct recargs *o, bool *done);

#endif
