/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kallsyms-resolve - name kernel addresses, from arguments or in a stream of text. */
#include "base/cli.h"
#include "base/out.h"
#include "symbols/filter.h"
#include "symbols/kallsyms.h"
#include "system/elevated.h"
#include "system/privilege_sets.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>

DEFINE_CLEANUP(struct kallsyms *, kallsyms_free);

struct opts {
	const char *kallsyms;
	const char *save;
	bool force, modules, return_addresses, relocate;
	uint64_t stext; /* 0 = not given */
	struct cli_list addrs; /* uint64_t */
};

static const struct cli_option options[] = {
	{ 'k', "kallsyms", "FILE", "a saved copy of /proc/kallsyms, or a System.map",
		CLI_FILE(struct opts, kallsyms) },
	{ 'm', "modules", NULL, "name the module of every address, [kernel] too",
		CLI_FLAG(struct opts, modules) },
	{ 'r', "return-addresses", NULL, "the addresses are return addresses: look one byte back",
		CLI_FLAG(struct opts, return_addresses) },
	{ 0, "relocate", NULL, "the symbols are the same kernel's, booted another time",
		CLI_FLAG(struct opts, relocate) },
	{ 0, "stext", "ADDR", "_stext of the kernel that the addresses are of",
		CLI_ADDRESS(struct opts, stext), .min = 1 },
	{ 0, "save", "FILE", "copy /proc/kallsyms to FILE, readable by its owner only",
		CLI_FILE(struct opts, save) },
	{ 0, "force", NULL, "--save over a file that is not such a copy", CLI_FLAG(struct opts, force) },
	{ .arg = "ADDR", CLI_ADDRESSES(struct opts, addrs) },
};

static int check(const struct cli *c, void *opts)
{
	const struct opts *o = opts;

	if (o->save && (o->addrs.n || o->modules || o->return_addresses || o->relocate || o->stext))
		return cli_usage(c, "--save goes with -k and --force only");
	if (o->save && (!*o->save || strcmp(o->save, "-") == 0))
		return cli_usage(c, "--save needs the name of a file");
	if (o->force && !o->save)
		return cli_usage(c, "--force goes with --save only");
	return CLI_OK;
}

static const struct cli cli = {
	.name = "kallsyms-resolve",
	.about = "Name kernel addresses. Without ADDR, read standard input: lines that are an address, and "
		 "the "
		 "raw kernel frames of perf script's text, are named; all other lines pass unchanged.",
	CLI_OPTIONS(options),
	.check = check,
};

static int resolve_args(struct kallsyms_filter *f, const struct opts *o, struct out *out, struct err *e)
{
	int err = kallsyms_filter_place_live(f, e);

	for (size_t i = 0; !err && i < o->addrs.n; i++) {
		kallsyms_filter_address(f, ((const uint64_t *)o->addrs.p)[i], out);
		out_char(out, '\n');
	}
	return err ? err : out_flush(out, e);
}

/* Report what the result does not show. Returns the exit status. */
static int report(const struct kallsyms_filter *f)
{
	if (f->dropped)
		cli_warn(&cli,
			"%zu symbols of modules and BPF programs are not used: each boot places them anew",
			f->dropped);
	if (!f->unnamed)
		return CLI_OK;
	cli_warn(&cli, "%zu of %zu kernel addresses belong to no symbol", f->unnamed, f->named + f->unnamed);
	return CLI_INCOMPLETE;
}

/* Exit status, or -errno. */
static int run(const struct opts *o, struct err *e)
{
	CLEANUP(kallsyms_free_p) struct kallsyms *ks = NULL;
	CLEANUP(out_free) struct out out = { 0 };
	struct kallsyms_filter f = { .file = o->kallsyms,
		.relocate = o->relocate,
		.fixed = o->stext != 0,
		.modules = o->modules,
		.return_addresses = o->return_addresses };
	int err;

	if (o->save)
		return kallsyms_copy_save(o->kallsyms, o->save, o->force, e);
	err = kallsyms_load(o->kallsyms, &ks, e);
	if (err)
		return err;
	f.ks = ks;
	if (o->stext)
		err = kallsyms_filter_place(&f, o->stext, e);
	if (!err)
		err = out_init(&out, STDOUT_FILENO, e);
	if (!err && o->addrs.n)
		err = resolve_args(&f, o, &out, e);
	else if (!err)
		err = kallsyms_filter_run(&f, STDIN_FILENO, &out, e);
	return err ? err : report(&f);
}

int main(int argc, char **argv)
{
	struct opts opts = { 0 };
	struct err e = { 0 };
	int status;

	if (!cli_parse(&cli, argc, argv, &opts, &status))
		return status;
	/* files are read and written with the caller's own permissions, but for the kernel's addresses */
	status = elevated_keep(PRIV_BIT(CAP_SYSLOG));
	if (status)
		err_sys(&e, status, "cannot give up rights that user %u has not", getuid());
	else
		status = run(&opts, &e);
	cli_free(&cli, &opts);
	if (status < 0) {
		cli_error(&cli, &e);
		return CLI_FAILED;
	}
	return cli_finish(&cli, status);
}
