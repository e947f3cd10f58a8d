/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kallsyms-resolve - name kernel addresses, given or in a stream of text. */
#include "base/cli.h"
#include "base/out.h"
#include "symbols/filter.h"
#include "symbols/kallsyms.h"
#include "system/owner.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

DEFINE_CLEANUP(struct kallsyms *, kallsyms_free);

static const struct cli cli = {
	.name = "kallsyms-resolve",
	.synopsis = "[-k FILE] [-m] [--relocate] [--stext ADDR] [ADDR...] | [-k FILE] --save FILE [--force]",
	.help = "Name kernel addresses. Without ADDR, read standard input: lines that are an\n"
		"address, and the raw kernel frames of perf script's text, are named; all other\n"
		"lines pass unchanged.\n"
		"\n"
		"  -k, --kallsyms FILE     a saved copy of /proc/kallsyms, or a System.map\n"
		"  -m, --modules           name the module of every address, [kernel] too\n"
		"  -r, --return-addresses  the addresses are return addresses: look one byte back\n"
		"      --relocate          the symbols are the same kernel's, booted another time\n"
		"      --stext ADDR        _stext of the kernel that the addresses are of\n"
		"      --save FILE         copy /proc/kallsyms to FILE, readable by its owner only\n"
		"      --force             --save over a file that is no such copy\n"
		"  -h, --help              this text\n"
		"  -V, --version           the version\n",
};

struct opts {
	const char *kallsyms;
	const char *save;
	bool force, modules, return_addresses, relocate;
	uint64_t stext; /* 0 = not given */
	char **addrs;
	int naddrs;
};

enum { OPT_RELOCATE = 256, OPT_STEXT, OPT_SAVE, OPT_FORCE };

static const struct option long_opts[] = {
	{ "kallsyms", required_argument, NULL, 'k' },
	{ "modules", no_argument, NULL, 'm' },
	{ "return-addresses", no_argument, NULL, 'r' },
	{ "relocate", no_argument, NULL, OPT_RELOCATE },
	{ "stext", required_argument, NULL, OPT_STEXT },
	{ "save", required_argument, NULL, OPT_SAVE },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

/* -1 to go on, else the exit status. */
static int check_opts(const struct opts *o)
{
	uint64_t addr;

	if (o->save && (o->naddrs || o->modules || o->return_addresses || o->relocate || o->stext))
		return cli_usage(&cli, "--save goes with -k and --force only");
	if (o->save && (!*o->save || strcmp(o->save, "-") == 0))
		return cli_usage(&cli, "--save needs the name of a file");
	if (o->force && !o->save)
		return cli_usage(&cli, "--force goes with --save only");
	for (int i = 0; i < o->naddrs; i++)
		if (!ksymfilter_hex(o->addrs[i], strlen(o->addrs[i]), &addr))
			return cli_usage(&cli, "'%s' is not an address: hex digits, 16 at most", o->addrs[i]);
	return -1;
}

/* -1 to go on, else the exit status. */
static int parse_opts(int argc, char **argv, struct opts *o)
{
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":k:mrhV", long_opts, NULL)) != -1) {
		switch (c) {
		case 'k':
			o->kallsyms = optarg;
			break;
		case 'm':
			o->modules = true;
			break;
		case 'r':
			o->return_addresses = true;
			break;
		case OPT_RELOCATE:
			o->relocate = true;
			break;
		case OPT_STEXT:
			if (!ksymfilter_hex(optarg, strlen(optarg), &o->stext) || !o->stext)
				return cli_usage(
					&cli, "'%s' is not an address: hex digits, 16 at most", optarg);
			break;
		case OPT_SAVE:
			o->save = optarg;
			break;
		case OPT_FORCE:
			o->force = true;
			break;
		case 'h':
			return cli_help(&cli);
		case 'V':
			return cli_version(&cli);
		default:
			return cli_bad_option(&cli, c, argv);
		}
	}
	o->addrs = argv + optind;
	o->naddrs = argc - optind;
	return check_opts(o);
}

static int resolve_args(struct ksymfilter *f, const struct opts *o, struct out *out, struct err *e)
{
	int err = ksymfilter_place_live(f, e);

	for (int i = 0; !err && i < o->naddrs; i++) {
		uint64_t addr = 0;

		ksymfilter_hex(o->addrs[i], strlen(o->addrs[i]), &addr);
		ksymfilter_address(f, addr, out);
		out_char(out, '\n');
	}
	return err ? err : out_flush(out, e);
}

/* What the result does not tell. Returns the exit status. */
static int report(const struct ksymfilter *f)
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
	struct ksymfilter f = { .file = o->kallsyms,
		.relocate = o->relocate,
		.fixed = o->stext != 0,
		.modules = o->modules,
		.return_addresses = o->return_addresses };
	int err;

	if (o->save)
		return kallcopy_save(o->kallsyms, o->save, o->force, e);
	err = kallsyms_load(o->kallsyms, &ks, e);
	if (err)
		return err;
	f.ks = ks;
	if (o->stext)
		err = ksymfilter_place(&f, o->stext, e);
	if (!err)
		err = out_init(&out, STDOUT_FILENO, e);
	if (!err && o->naddrs)
		err = resolve_args(&f, o, &out, e);
	else if (!err)
		err = ksymfilter_run(&f, STDIN_FILENO, &out, e);
	return err ? err : report(&f);
}

int main(int argc, char **argv)
{
	struct opts opts = { 0 };
	struct owner owner;
	struct err e = { 0 };
	int status = parse_opts(argc, argv, &opts);

	if (status >= 0)
		return status;
	/* files are read and written with the caller's own rights */
	status = owner_become(&owner, &e);
	if (!status)
		status = run(&opts, &e);
	if (status < 0) {
		cli_error(&cli, &e);
		return CLI_FAILED;
	}
	return cli_finish(&cli, status);
}
