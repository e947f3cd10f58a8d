/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/cli.h"
#include "base/clock.h"
#include "base/out.h"
#include "base/text.h"
#include "capture/counters.h"
#include "capture/reader.h"
#include "symbols/print.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

static const struct cli cli = {
	.name = "symbolize",
	.synopsis =
		"[-qv] [-p PID]... [-t TID]... [-c COMM]... [--format=text|json] [--lines] "
		"[--no-inline] [--no-demangle] [--symfs DIR] [--debug-dir DIR]... [--vmlinux FILE] [-j N] "
		"[--max-memory SIZE] [--no-cache] [--stats] [FILE|-]",
	.help = "Name the addresses of a capture; print its waits in perf script's grammar.\n"
		"\n"
		"  -p, --pid PID       only this process (may be repeated, as the next two)\n"
		"  -t, --tid TID       only this thread\n"
		"  -c, --comm NAME     only threads of this name\n"
		"      --format=text   perf script's grammar (default)\n"
		"      --format=json   one JSON object a line, with every field\n"
		"      --lines         source lines, where debug information has them (JSON: always)\n"
		"      --no-inline     leave out the functions that were inlined into others\n"
		"      --no-demangle   C++, Rust and D names as the symbol table has them\n"
		"      --symfs DIR     look for binaries under DIR too\n"
		"      --debug-dir DIR look for debug files under DIR first (may be repeated)\n"
		"      --vmlinux FILE  the kernel's file with debug information (default: looked for)\n"
		"  -j, --jobs N        processes that read symbols side by side (default: one a CPU)\n"
		"      --max-memory N  memory of all of these together (default 2G; K, M, G)\n"
		"      --no-cache      read all debug information again, and keep nothing of it\n"
		"      --stats         say where names came from and what took how long\n"
		"  -q, --quiet         no warnings\n"
		"  -v, --verbose       say for each file whether it was used\n"
		"  -h, --help          this text\n"
		"  -V, --version       the version\n",
};

#define MEMORY_LEAST (UINT64_C(64) << 20)
#define PROGRESS_AFTER_NS UINT64_C(1000000000)
#define PROGRESS_EVERY_NS UINT64_C(200000000)

struct numbers {
	uint32_t *p;
	size_t n, cap;
};

struct words {
	const char **p;
	size_t n, cap;
};

struct opts {
	const char *path, *symfs, *vmlinux;
	struct numbers pids, tids;
	struct words comms, debug_dirs;
	unsigned int jobs;
	uint64_t memory_bytes;
	bool json, lines, no_inline, no_demangle, no_cache, stats, quiet, verbose;
};

struct job {
	const struct opts *o;
	struct capread *c;
	struct resolve *r;
	struct waitlist list;
};

static void job_free(struct job *j)
{
	free(j->list.records);
	stackids_free(j->list.stacks);
	resolve_close(j->r);
	capread_free(j->c);
}

static bool has_number(const struct numbers *s, uint32_t v)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->p[i] == v)
			return true;
	return s->n == 0;
}

static bool is_selected(const struct job *j, const struct cap_sample *s)
{
	const struct opts *o = j->o;
	uint32_t ns_tid;
	const char *comm;

	if (!has_number(&o->pids, j->c->procs[s->proc].tgid) || !has_number(&o->tids, s->tid))
		return false;
	if (!o->comms.n)
		return true;
	comm = waitlist_comm(j->c, s, &ns_tid);
	for (size_t i = 0; i < o->comms.n; i++)
		if (strcmp(o->comms.p[i], comm) == 0)
			return true;
	return false;
}

static int by_time(const void *a, const void *b)
{
	const struct waitlist_record *x = a, *y = b;
	int c = CMP(x->last_ns, y->last_ns);

	return c ? c : CMP(x->sample, y->sample);
}

/* The samples that were asked for, in order of time. */
static int select_samples(struct job *j, struct err *e)
{
	const struct capread *c = j->c;
	bool sorted = true;

	j->list.records = calloc(c->n_samples + 1, sizeof(*j->list.records));
	if (!j->list.records)
		return err_nomem(e, "samples");
	for (size_t i = 0; i < c->n_samples; i++) {
		const struct cap_sample *s = &c->samples[i];

		if (!is_selected(j, s))
			continue;
		sorted = sorted &&
			 (!j->list.n_records || j->list.records[j->list.n_records - 1].last_ns <= s->last_ns);
		j->list.records[j->list.n_records++] =
			(struct waitlist_record){ .last_ns = s->last_ns, .sample = s };
		j->list.totals.waits += s->count;
		j->list.totals.total_ns += s->total_ns;
	}
	if (!sorted)
		qsort(j->list.records, j->list.n_records, sizeof(*j->list.records), by_time);
	j->list.totals.records = j->list.n_records;
	j->list.totals.lost = perftext_lost(c);
	return 0;
}

/* Resolve every address before the first line: the head names the files that were not used. */
static int resolve_all(struct job *j, struct err *e)
{
	int rc = stackids_new(j->c, j->r, &j->list.stacks);

	for (size_t i = 0; i < j->list.n_records && rc == 0; i++) {
		struct waitlist_record *r = &j->list.records[i];

		rc = stackids_kernel(j->list.stacks, r->sample, &r->kernel);
		rc = rc ? rc : stackids_user(j->list.stacks, r->sample, &r->user);
	}
	return rc ? err_nomem(e, "frames") : resolve_run(j->r, e);
}

static int print_all(struct job *j, struct err *e)
{
	struct out out;
	int rc = out_init(&out, STDOUT_FILENO, e);

	if (rc)
		return rc;
	j->list.c = j->c;
	j->list.r = j->r;
	j->list.json = j->o->json;
	j->list.lines = j->o->lines;
	rc = waitlist_print(&j->list, &out, e);
	rc = rc ? rc : out_flush(&out, e);
	out_free(&out);
	return rc;
}

static void tell_file(const char *path, const struct modules_file *f)
{
	if (f->problem)
		cli_warn(&cli, "'%s' is not used: it %s", path, f->problem);
	else if (f->debug)
		cli_warn(&cli, "'%s' is used: %" PRIu64 " symbols, debug file '%s'", path, f->symbols,
			f->debug);
	else
		cli_warn(&cli, "'%s' is used: %" PRIu64 " symbols", path, f->symbols);
	if (f->missed)
		cli_warn(&cli, "'%s' has a debug file that is not used: %s", path, f->missed);
	if (f->message)
		cli_warn(&cli, "'%s' is used as far as it goes: %s", path, f->message);
}

/* MODULE "" = the kernel itself. */
static void tell_kernel(const char *module, const struct modules_file *f)
{
	char who[256] = "the kernel";

	if (*module)
		snprintf(who, sizeof(who), "kernel module '%s'", module);
	if (f->debug)
		cli_warn(&cli, "%s's debug information is used: '%s'%s", who, f->debug,
			!*module || f->proven
				? ""
				: " (of the same release; captures have no build ID of modules)");
	if (f->problem || f->missed)
		cli_warn(&cli, "%s has no lines: %s", who, f->problem ? f->problem : f->missed);
	if (f->message)
		cli_warn(&cli, "%s's file is used as far as it goes: %s", who, f->message);
}

static void tell_files(const struct job *j)
{
	struct modules_file f;
	const char *part;
	size_t unused = 0;

	for (uint32_t i = 0; i < j->c->n_files; i++) {
		if (!resolve_file(j->r, i, &f))
			continue;
		unused += f.problem != NULL;
		if (j->o->verbose)
			tell_file(j->c->files[i].path, &f);
	}
	for (uint32_t i = 0; j->o->verbose && (part = resolve_kernel_part(j->r, i)); i++)
		if (resolve_file(j->r, (uint32_t)j->c->n_files + i, &f))
			tell_kernel(part, &f);
	if (unused && !j->o->verbose)
		cli_warn(&cli, "%zu file%s could not be used, so %s frames have no names: -v says why",
			unused, unused == 1 ? "" : "s", unused == 1 ? "its" : "their");
}

/* In the words of the recorder. */
static void tell_lost(const struct capread *c)
{
	for (size_t i = 0; i < c->n_counters; i++) {
		struct buf b = { 0 };

		if (!perftext_is_loss(&c->counters[i]))
			continue;
		counter_put(&b, c->counters[i].name, c->counters[i].value);
		cli_warn(&cli, "the recording lost %.*s", (int)b.len, b.p ? (const char *)b.p : "");
		buf_free(&b);
	}
}

/* What the reader of the result should know: STATUS, or CLI_INCOMPLETE where something is missing. */
static int tell(const struct job *j)
{
	const struct capread *c = j->c;

	if (!j->o->quiet) {
		tell_files(j);
		tell_lost(c);
	}
	if (!c->complete) {
		cli_warn(&cli, "the capture is incomplete: %s", c->damage[0] ? c->damage : "no trailer");
		return CLI_INCOMPLETE;
	}
	if (!j->list.n_records && (j->o->pids.n || j->o->tids.n || j->o->comms.n)) {
		cli_warn(&cli, "no wait in the capture is of the given processes and threads");
		return CLI_INCOMPLETE;
	}
	return CLI_OK;
}

/* On a terminal, and only where there is something to wait for. */
struct progress {
	uint64_t began_ns, shown_ns;
};

static void show_progress(void *ctx, const char *what, uint64_t done, uint64_t total)
{
	struct progress *p = ctx;
	uint64_t now = now_ns();
	char text[256];

	if (now - p->began_ns < PROGRESS_AFTER_NS || now - p->shown_ns < PROGRESS_EVERY_NS)
		return;
	p->shown_ns = now;
	text_escape(text, sizeof(text), what, strlen(what), TEXT_LINE);
	if (total)
		fprintf(stderr, "\r%s: %s: %" PRIu64 " of %" PRIu64 " files\033[K", cli.name, text, done,
			total);
	else
		fprintf(stderr, "\r%s: %s\033[K", cli.name, text);
}

static void end_progress(const struct progress *p)
{
	if (p->shown_ns)
		fputs("\r\033[K", stderr);
}

/* How often each frame is in what was printed. */
static void count_span(const struct job *j, const struct stackids_span *s, uint64_t *times)
{
	const uint32_t *ids = stackids_at(j->list.stacks, s);

	for (uint32_t i = 0; i < s->len; i++)
		times[ids[i]]++;
}

static int tell_stats(const struct job *j, struct err *e)
{
	_cleanup_free_ uint64_t *times = calloc(resolve_count(j->r) + 1, sizeof(*times));
	struct modules_stats s;
	struct ladder l = { 0 };
	struct buf b = { 0 };
	int rc = times ? 0 : -ENOMEM;

	for (size_t i = 0; i < j->list.n_records && rc == 0; i++) {
		count_span(j, &j->list.records[i].kernel, times);
		count_span(j, &j->list.records[i].user, times);
	}
	for (uint32_t i = 0; i < resolve_count(j->r) && rc == 0; i++)
		rc = ladder_add(&l, resolve_frame(j->r, i), times[i]);
	resolve_stats(j->r, &s);
	ladder_text(&b, &l, &s, "symbolize: ");
	if (rc == 0 && !b.failed)
		fwrite(b.p, 1, b.len, stderr);
	rc = rc ? rc : b.failed ? -ENOMEM : 0;
	ladder_free(&l);
	buf_free(&b);
	return rc ? err_nomem(e, "statistics") : 0;
}

static int run(const struct opts *o, int *status, struct err *e)
{
	const bool tty = !o->quiet && isatty(STDERR_FILENO);
	struct progress p = { .began_ns = now_ns() };
	const struct resolve_opts ro = { .files = { .symfs = o->symfs,
						 .debug_dirs = o->debug_dirs.p,
						 .n_debug_dirs = o->debug_dirs.n,
						 .vmlinux = o->vmlinux,
						 .demangle = !o->no_demangle,
						 .inlines = !o->no_inline,
						 .lines = o->lines || o->json,
						 .no_cache = o->no_cache,
						 .jobs = o->jobs,
						 .memory_bytes = o->memory_bytes,
						 .debuginfod = true,
						 .progress = tty ? show_progress : NULL,
						 .progress_ctx = &p } };
	CLEANUP(job_free) struct job j = { .o = o };
	int rc = capread_load(o->path, &j.c, e);

	rc = rc ? rc : resolve_open(j.c, &ro, &j.r, e);
	rc = rc ? rc : select_samples(&j, e);
	rc = rc ? rc : resolve_all(&j, e);
	end_progress(&p);
	rc = rc ? rc : print_all(&j, e);
	rc = rc || !o->stats ? rc : tell_stats(&j, e);
	if (rc == 0)
		*status = tell(&j);
	return rc;
}

static int add_number(struct numbers *s, const char *arg, struct err *e)
{
	uint64_t v;

	if (cli_u64(arg, 0, UINT32_MAX, &v, e) != 0)
		return e->code;
	if (base_grow(&s->p, &s->cap, s->n + 1, sizeof(*s->p)) != 0)
		return err_nomem(e, "options");
	s->p[s->n++] = (uint32_t)v;
	return 0;
}

static int add_word(struct words *w, const char *arg, struct err *e)
{
	if (base_grow(&w->p, &w->cap, w->n + 1, sizeof(*w->p)) != 0)
		return err_nomem(e, "options");
	w->p[w->n++] = arg;
	return 0;
}

static int set_jobs(struct opts *o, const char *arg, struct err *e)
{
	uint64_t v;
	int rc = cli_u64(arg, 1, 1024, &v, e);

	o->jobs = (unsigned int)v;
	return rc;
}

static int set_format(struct opts *o, const char *arg, struct err *e)
{
	o->json = strcmp(arg, "json") == 0;
	if (!o->json && strcmp(arg, "text") != 0)
		return err_set(e, -EINVAL, "'%s' is no format: text or json", arg);
	return 0;
}

enum {
	OPT_FORMAT = 256,
	OPT_NO_DEMANGLE,
	OPT_SYMFS,
	OPT_LINES,
	OPT_NO_INLINE,
	OPT_DEBUG_DIR,
	OPT_MAX_MEMORY,
	OPT_NO_CACHE,
	OPT_STATS,
	OPT_VMLINUX
};

static const struct option longopts[] = {
	{ "pid", required_argument, NULL, 'p' },
	{ "tid", required_argument, NULL, 't' },
	{ "comm", required_argument, NULL, 'c' },
	{ "format", required_argument, NULL, OPT_FORMAT },
	{ "no-demangle", no_argument, NULL, OPT_NO_DEMANGLE },
	{ "symfs", required_argument, NULL, OPT_SYMFS },
	{ "lines", no_argument, NULL, OPT_LINES },
	{ "no-inline", no_argument, NULL, OPT_NO_INLINE },
	{ "debug-dir", required_argument, NULL, OPT_DEBUG_DIR },
	{ "vmlinux", required_argument, NULL, OPT_VMLINUX },
	{ "jobs", required_argument, NULL, 'j' },
	{ "max-memory", required_argument, NULL, OPT_MAX_MEMORY },
	{ "no-cache", no_argument, NULL, OPT_NO_CACHE },
	{ "stats", no_argument, NULL, OPT_STATS },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

/* An option with an argument. 0 or -EINVAL; 1 for any other option. */
static int take_argument(struct opts *o, int opt, const char *arg, struct err *e)
{
	switch (opt) {
	case 'p':
		return add_number(&o->pids, arg, e);
	case 't':
		return add_number(&o->tids, arg, e);
	case 'c':
		return add_word(&o->comms, arg, e);
	case 'j':
		return set_jobs(o, arg, e);
	case OPT_FORMAT:
		return set_format(o, arg, e);
	case OPT_SYMFS:
		o->symfs = arg;
		return 0;
	case OPT_VMLINUX:
		o->vmlinux = arg;
		return 0;
	case OPT_DEBUG_DIR:
		return add_word(&o->debug_dirs, arg, e);
	case OPT_MAX_MEMORY:
		return cli_size(arg, MEMORY_LEAST, UINT64_C(1) << 50, &o->memory_bytes, e);
	default:
		return 1;
	}
}

/* Where the switch OPT is kept, NULL for none. */
static bool *switch_of(struct opts *o, int opt)
{
	switch (opt) {
	case OPT_NO_DEMANGLE:
		return &o->no_demangle;
	case OPT_NO_INLINE:
		return &o->no_inline;
	case OPT_LINES:
		return &o->lines;
	case OPT_NO_CACHE:
		return &o->no_cache;
	case OPT_STATS:
		return &o->stats;
	case 'q':
		return &o->quiet;
	case 'v':
		return &o->verbose;
	default:
		return NULL;
	}
}

/* -1 = go on, else the exit status. */
static int parse_option(struct opts *o, int opt, char *const argv[])
{
	struct err e = { 0 };
	bool *on = switch_of(o, opt);
	int rc = on ? 0 : take_argument(o, opt, optarg, &e);

	if (on)
		*on = true;
	if (rc < 0)
		return cli_usage(&cli, "%s", e.msg);
	if (rc == 0)
		return -1;
	if (opt == 'h')
		return cli_help(&cli);
	return opt == 'V' ? cli_version(&cli) : cli_bad_option(&cli, opt, argv);
}

static int parse(int argc, char *argv[], struct opts *o)
{
	int opt, st;

	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":p:t:c:j:qvhV", longopts, NULL)) != -1) {
		st = parse_option(o, opt, argv);
		if (st >= 0)
			return st;
	}
	if (argc - optind > 1)
		return cli_usage(&cli, "only one capture can be read");
	if (optind == argc && isatty(STDIN_FILENO))
		return cli_usage(&cli, "no capture given, and standard input is a terminal");
	o->path = optind < argc ? argv[optind] : "-";
	return -1;
}

static void opts_free(struct opts *o)
{
	free(o->pids.p);
	free(o->tids.p);
	free(o->comms.p);
	free(o->debug_dirs.p);
}

int main(int argc, char *argv[])
{
	CLEANUP(opts_free) struct opts o = { 0 };
	struct err e = { 0 };
	int status = parse(argc, argv, &o);

	if (status >= 0)
		return status;
	status = CLI_OK;
	if (run(&o, &status, &e) == 0)
		return cli_finish(&cli, status);
	cli_error(&cli, &e);
	return CLI_FAILED;
}
