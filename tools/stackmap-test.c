/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/cli.h"
#include "base/tap.h"
#include "stackmap/cases.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <string.h>

static const struct cli cli = {
	.name = "stackmap-test",
	.synopsis = "[-l] [-r PATTERN]... [-v]",
	.help = "Test the kernel's stack-trace map and its helpers; TAP on standard output.\n"
		"\n"
		"  -r, --run PATTERN   only cases whose name matches the shell pattern, or\n"
		"                      contains it; may be given several times\n"
		"  -l, --list          print the names of the cases\n"
		"  -v, --verbose       show frames and other details of every case\n"
		"  -h, --help          this text\n"
		"  -V, --version       the version\n"
		"\n"
		"Exit status: 0 no case failed (skipped ones do not count), 1 some did,\n"
		"2 could not, 64 bad command line.\n",
};

#define MAX_PATTERNS 32

struct opts {
	const char *patterns[MAX_PATTERNS];
	size_t n_patterns;
	bool list, verbose;
};

static const struct stackcase_set *const sets[] = { &mapcases, &idcases, &framecases, &typecases,
	&countcases };

static bool chosen(const struct opts *o, const char *name)
{
	for (size_t i = 0; i < o->n_patterns; i++)
		if (strstr(name, o->patterns[i]) || fnmatch(o->patterns[i], name, 0) == 0)
			return true;
	return o->n_patterns == 0;
}

/* A hint that repeats the last one says nothing new. */
static void show_hint(char last[512], const char *hint)
{
	if (hint[0] && strcmp(last, hint) != 0)
		tap_diag("hint: %s", hint);
	snprintf(last, 512, "%s", hint);
}

static void show(struct tap *t, const struct opts *o, const struct stackcase *c, struct stackcase_report *r)
{
	if (r->verdict == STACKCASE_SKIP) {
		tap_skip(t, c->name, "%s", r->reason);
	} else {
		tap_ok(t, r->verdict == STACKCASE_PASS, "%s", c->name);
		tap_diag("%s", r->reason);
	}
	if (!o->verbose && r->verdict != STACKCASE_FAIL)
		return;
	buf_put(&r->detail, "", 1);
	for (char *save = NULL, *line = strtok_r((char *)r->detail.p, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save))
		tap_diag("  %s", line);
}

static int run(const struct opts *o, struct err *e)
{
	struct stackcase_env env;
	char hint[512] = "";
	struct tap tap = { 0 };
	size_t n = 0;

	libbpf_set_print(NULL);
	stackcase_env_init(&env);
	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		for (size_t j = 0; j < sets[i]->n; j++) {
			const struct stackcase *c = &sets[i]->cases[j];
			struct stackcase_report r;

			if (!chosen(o, c->name))
				continue;
			n++;
			if (o->list) {
				puts(c->name);
				continue;
			}
			stackcase_run(c, &env, &r);
			show(&tap, o, c, &r);
			show_hint(hint, r.hint);
			buf_free(&r.detail);
		}
	}
	if (!n) {
		err_set(e, -ENOENT, "no case matches '%s'", o->patterns[0]);
		err_hint(e, "stackmap-test --list prints their names");
		return CLI_FAILED;
	}
	return o->list ? CLI_OK : tap_done(&tap);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "run", required_argument, NULL, 'r' },
		{ "list", no_argument, NULL, 'l' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	struct opts o = { .n_patterns = 0 };
	struct err e = { .code = 0 };
	int c, status;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":r:lvhV", options, NULL)) != -1) {
		switch (c) {
		case 'r':
			if (o.n_patterns == MAX_PATTERNS)
				return cli_usage(&cli, "more than %d patterns", MAX_PATTERNS);
			o.patterns[o.n_patterns++] = optarg;
			break;
		case 'l':
			o.list = true;
			break;
		case 'v':
			o.verbose = true;
			break;
		case 'h':
			return cli_help(&cli);
		case 'V':
			return cli_version(&cli);
		default:
			return cli_bad_option(&cli, c, argv);
		}
	}
	if (optind < argc)
		return cli_usage(&cli, "unexpected argument '%s'", argv[optind]);
	status = run(&o, &e);
	if (e.code)
		cli_error(&cli, &e);
	return cli_finish(&cli, status);
}
