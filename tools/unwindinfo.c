/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unwindinfo - the unwind table of an ELF file, as the recorder compiles it */
#include "base/cli.h"
#include "base/out.h"
#include "base/text.h"
#include "elf/file.h"
#include "unwind/compile.h"
#include "unwind/text.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define RULE_MAX (4 * UNWINDTEXT_MAX + 24)

struct opts {
	bool summary;
	const char *path;
	struct cli_list pcs; /* uint64_t */
};

static const struct cli_option options[] = {
	{ 's', "summary", NULL, "a summary of the table and of what was omitted, but no rows",
		CLI_FLAG(struct opts, summary) },
	{ .arg = "FILE", CLI_FILE(struct opts, path), .required = true },
	{ .arg = "PC", CLI_ADDRESSES(struct opts, pcs) },
};

static int check(const struct cli *c, void *opts)
{
	const struct opts *o = opts;

	if (o->pcs.n && o->summary)
		return cli_usage(c, "--summary takes no addresses");
	return CLI_OK;
}

static const struct cli cli = {
	.name = "unwindinfo",
	.about = "Show how the frames of an ELF file's code are left: the rows of its unwind table, or those "
		 "of the addresses PC (hexadecimal, as in the file).",
	.status = "Exit status: 0 done, 1 no unwind information or no row for a PC, 2 not readable, 64 bad "
		  "usage.",
	CLI_OPTIONS(options),
	.check = check,
};

DEFINE_CLEANUP(struct elffile *, elffile_close);

/* --- the header --- */

static void put_label(struct out *o, const char *label)
{
	out_printf(o, "%-12s", label);
}

static void put_path(struct out *o, const char *path)
{
	size_t len = strlen(path);
	char *buf = malloc(TEXT_ESCAPED_MAX(len));

	if (!buf)
		return;
	out_put(o, buf, text_escape(buf, TEXT_ESCAPED_MAX(len), path, len, TEXT_LINE));
	free(buf);
}

static void put_build_id(struct out *o, const struct cap_build_id *id)
{
	char digits[2 * CAPTURE_BUILD_ID_MAX + 1];

	put_label(o, "build ID");
	out_printf(o, "%s\n", id->len ? text_hex(digits, id->bytes, id->len) : "none");
}

static void put_sections(struct out *o, uint32_t sections)
{
	static const char *const names[] = { ".eh_frame", ".debug_frame", ".gopclntab" };
	const char *between = "";

	put_label(o, "section");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!(sections >> i & 1))
			continue;
		out_printf(o, "%s%s", between, names[i]);
		between = ", ";
	}
	out_printf(o, "%s\n", *between ? "" : "none");
}

static void put_count(struct out *o, const char *label, uint64_t n)
{
	out_printf(o, "%-12s%" PRIu64 "\n", label, n);
}

static void put_left(struct out *o, const struct unwindtab_head *h)
{
	const char *label = "left out";

	for (unsigned int i = 0; i < UNWINDTAB_LEFT; i++) {
		if (!h->left[i])
			continue;
		put_label(o, label);
		out_printf(o, "%" PRIu64 " %s\n", h->left[i], unwindtab_left_text(i));
		label = "";
	}
	if (*label)
		out_printf(o, "%-12snothing\n", label);
}

static void put_head(
	struct out *o, const struct opts *opts, const struct elffile *f, const struct unwindtab *t)
{
	const struct unwindtab_head *h = t->head;

	put_label(o, "file");
	put_path(o, opts->path);
	out_char(o, '\n');
	put_build_id(o, &f->build_id);
	put_sections(o, h->section);
	put_count(o, "CIEs", h->n_cies);
	put_count(o, "FDEs", h->n_fdes);
	put_count(o, "rows", h->n_rows);
	put_count(o, "rules", h->n_rules);
	put_count(o, "segments", h->n_segs);
	put_label(o, "bytes");
	out_printf(o, "%" PRIu64, h->bytes);
	if (h->n_rows)
		out_printf(o, ", %.2f a row", (double)h->bytes / (double)h->n_rows);
	out_char(o, '\n');
	put_left(o, h);
}

/* --- rows --- */

/* "rsp+16       c-16     c-8     c-24\n" */
static void format_rule(const struct unwind_rule *rule, uint32_t machine, char *buf, size_t cap)
{
	const char *flag = rule->flags & UNWIND_SIGNAL       ? " signal"
			   : rule->flags & UNWIND_IN_SYSCALL ? " in-syscall"
			   : rule->flags & UNWIND_GO_COPIES  ? " copies-stack"
							     : "";
	struct unwindtext text;

	unwindtext(rule, machine, &text);
	if (*text.ra)
		snprintf(buf, cap, "%-12s %-8s %s%s%s%s\n", text.cfa, text.fp, text.ra,
			*text.bx ? "     " : "", text.bx, flag);
	else
		snprintf(buf, cap, "%s%s\n", text.cfa, flag);
}

static void put_pc(struct out *o, uint64_t pc)
{
	char digits[17];

	for (size_t i = 16; i-- > 0; pc >>= 4)
		digits[i] = "0123456789abcdef"[pc & 15];
	digits[16] = ' ';
	out_put(o, digits, sizeof(digits));
}

static void put_row(struct out *o, uint64_t pc, uint32_t machine, const struct unwind_rule *rule)
{
	char buf[RULE_MAX];

	format_rule(rule, machine, buf, sizeof(buf));
	put_pc(o, pc);
	out_str(o, buf);
}

static void put_heading(struct out *o, uint32_t machine)
{
	if (machine == EM_AARCH64)
		out_printf(o, "%-16s %-12s %-8s %s\n", "LOC", "CFA", "x29", "ra");
	else
		out_printf(o, "%-16s %-12s %-8s %-7s %s\n", "LOC", "CFA", "rbp", "ra", "rbx");
}

/*
 * Print every row; a segment without unwind information is one row. Each rule is
 * formatted once, because there are few rules and many rows.
 */
static int put_rows(struct out *o, const struct unwindtab *t, struct err *e)
{
	_cleanup_free_ char *texts = malloc((size_t)t->head->n_rules * RULE_MAX);
	uint64_t at = t->head->vaddr, end = 0;
	const struct unwind_rule *rule;

	if (!texts)
		return err_nomem(e, "rules");
	for (size_t i = 0; i < t->head->n_rules; i++)
		format_rule(&t->rules[i], t->head->machine, texts + i * RULE_MAX, RULE_MAX);
	out_char(o, '\n');
	put_heading(o, t->head->machine);
	while (!o->code && (rule = unwindtab_find(t, at, NULL, &end)) != NULL) {
		put_pc(o, at);
		out_str(o, texts + (size_t)(rule - t->rules) * RULE_MAX);
		at = end;
	}
	return 0;
}

/* Print the rows of the given addresses. Returns the number of addresses without a row. */
static size_t put_requested(struct out *o, const struct opts *opts, const struct unwindtab *t)
{
	size_t missing = 0;

	put_heading(o, t->head->machine);
	for (size_t i = 0; i < opts->pcs.n; i++) {
		uint64_t pc = ((const uint64_t *)opts->pcs.p)[i], start;
		const struct unwind_rule *rule = unwindtab_find(t, pc, &start, NULL);

		if (rule && rule->cfa != UNWIND_CFA_NONE) {
			put_row(o, start, t->head->machine, rule);
			continue;
		}
		out_printf(o, "%016" PRIx64 " no row\n", pc);
		missing++;
	}
	return missing;
}

/* --- */

/* 0; 1 with a message if the answer is no; or -errno. */
static int print(struct out *o, const struct opts *opts, const struct elffile *f, const struct unwindtab *t,
	struct err *e)
{
	size_t missing = 0;
	int rc = 0;

	if (opts->pcs.n)
		missing = put_requested(o, opts, t);
	else
		put_head(o, opts, f, t);
	if (!opts->summary && !opts->pcs.n)
		rc = put_rows(o, t, e);
	rc = rc ? rc : out_flush(o, e);
	if (rc)
		return rc;
	if (!t->head->n_segs)
		return err_set(e, 1, "'%s' has no unwind information", opts->path);
	if (missing)
		return err_set(e, 1, "no row for %zu of %zu addresses", missing, opts->pcs.n);
	return 0;
}

static int load(
	const struct opts *opts, struct elffile **f, uint8_t **bytes, struct unwindtab *t, struct err *e)
{
	size_t len;
	int rc = elffile_open(AT_FDCWD, opts->path, false, f, e);

	rc = rc ? rc : unwindcomp(*f, bytes, &len, e);
	rc = rc ? rc : unwindtab_view(*bytes, len, t, e);
	if (rc)
		err_prefix(e, "'%s'", opts->path);
	return rc;
}

/* Returns the exit status, with the message in E if it is not 0. */
static int run(const struct opts *opts, struct err *e)
{
	CLEANUP(elffile_close_p) struct elffile *f = NULL;
	_cleanup_free_ uint8_t *bytes = NULL;
	struct unwindtab t;
	struct out o;
	int rc;

	if (load(opts, &f, &bytes, &t, e) != 0 || out_init(&o, STDOUT_FILENO, e) != 0)
		return CLI_FAILED;
	rc = print(&o, opts, f, &t, e);
	out_free(&o);
	return rc < 0 ? CLI_FAILED : rc;
}

int main(int argc, char *argv[])
{
	struct opts opts = { 0 };
	struct err e = { 0 };
	int status;

	if (!cli_parse(&cli, argc, argv, &opts, &status))
		return status;
	status = run(&opts, &e);
	if (status != CLI_OK)
		cli_error(&cli, &e);
	cli_free(&cli, &opts);
	return cli_finish(&cli, status);
}
