/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/cli.h"
#include "base/tap.h"
#include "stackmap/cases.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

struct opts {
	struct cli_list patterns;
	bool list, verbose;
};

static const struct cli_option options[] = {
	{ 'r', "run", "PATTERN",
		"only cases whose name matches the shell pattern, or contains it; may be given several times",
		CLI_TEXTS(struct opts, patterns), .times = 32 },
	{ 'l', "list", NULL, "print the names of the cases", CLI_FLAG(struct opts, list) },
	{ 'v', "verbose", NULL, "show frames and other details of every case",
		CLI_FLAG(struct opts, verbose) },
};

static const struct cli cli = {
	.name = "stackmap-test",
	.about = "Test the kernel's stack-trace map and its helpers; TAP on standard output.",
	.status = "Exit status: 0 no case failed (skipped ones do not count), 1 some did, 2 could not, "
		  "64 bad command line.",
	CLI_OPTIONS(options),
};

static const struct stackcase_set *const sets[] = { &mapcases, &idcases, &framecases, &typecases,
	&countcases };

static bool chosen(const struct opts *o, const char *name)
{
	const char *const *patterns = o->patterns.p;

	for (size_t i = 0; i < o->patterns.n; i++)
		if (strstr(name, patterns[i]) || fnmatch(patterns[i], name, 0) == 0)
			return true;
	return o->patterns.n == 0;
}

/* Print HINT unless it repeats the last one. */
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
		err_set(e, -ENOENT, "no case matches '%s'", *(const char *const *)o->patterns.p);
		err_hint(e, "stackmap-test --list prints their names");
		return CLI_FAILED;
	}
	return o->list ? CLI_OK : tap_done(&tap);
}

int main(int argc, char **argv)
{
	struct opts o = { 0 };
	struct err e = { 0 };
	int status;

	if (!cli_parse(&cli, argc, argv, &o, &status))
		return status;
	status = run(&o, &e);
	if (e.code)
		cli_error(&cli, &e);
	cli_free(&cli, &o);
	return cli_finish(&cli, status);
}
