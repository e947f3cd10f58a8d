/* SPDX-License-Identifier: GPL-2.0-or-later */
/* capinfo - what a capture contains, and whether it is complete */
#include "base/bytes.h"
#include "base/cli.h"
#include "base/out.h"
#include "capture/counters.h"
#include "capture/reader.h"
#include "capture/show.h"
#include "capture/stats.h"
#include "symbols/pack.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

enum mode { SHOW, MAPS, THREADS, VERIFY, JSON, BUILD_IDS, PACK };

#define ANY_PID UINT64_MAX

struct opts {
	const char *path, *pack;
	enum mode mode;
	bool force;
	uint64_t pid;
};

#define NAME_WIDTH 27 /* enough for most counters */
static const struct cli_option options[] = {
	{ 'm', "maps", NULL, "the mappings at the end of the recording, as /proc/PID/maps shows them",
		CLI_VALUE(struct opts, mode, MAPS), .group = 1 },
	{ 't', "threads", NULL, "each thread, by its ids here and in its own PID namespace, and its times",
		CLI_VALUE(struct opts, mode, THREADS), .group = 1 },
	{ 'p', "pid", "PID", "with --maps and --threads: of this process only", CLI_NUMBER(struct opts, pid),
		.max = UINT32_MAX },
	{ 0, "verify", NULL, "check all of it; one line: ok, or what is damaged",
		CLI_VALUE(struct opts, mode, VERIFY), .group = 1 },
	{ 'j', "json", NULL, "one JSON object with everything but frames and samples",
		CLI_VALUE(struct opts, mode, JSON), .group = 1 },
	{ 0, "list-build-ids", NULL, "of each file that user stacks lie in: build ID (- for none), path",
		CLI_VALUE(struct opts, mode, BUILD_IDS), .group = 1 },
	{ 0, "pack", "OUT",
		"write FILE to OUT with the symbol tables of these files inside, for symbolize elsewhere; - "
		"is standard output",
		CLI_FILE(struct opts, pack), .group = 1 },
	{ 0, "force", NULL, "with --pack: replace an OUT that is not a capture",
		CLI_FLAG(struct opts, force) },
	{ .arg = "FILE", CLI_FILE(struct opts, path), .required = true },
};

static int check(const struct cli *c, void *opts)
{
	struct opts *o = opts;

	if (o->pack)
		o->mode = PACK;
	if (o->force && !o->pack)
		return cli_usage(c, "--force goes with --pack");
	if (o->pid != ANY_PID && o->mode != MAPS && o->mode != THREADS)
		return cli_usage(c, "--pid goes with --maps or --threads");
	return CLI_OK;
}

static const struct cli cli = {
	.name = "capinfo",
	.about = "Show what a capture holds: host, options, processes, stacks, losses.\n"
		 "FILE - is standard input.",
	.status = "Exit status: 0 complete, 1 damaged or incomplete, 2 not a capture, 64 bad usage.",
	CLI_OPTIONS(options),
	.check = check,
};

/* --- words --- */

static void put_seconds(struct out *o, uint64_t ns)
{
	out_printf(o, "%" PRIu64 ".%09" PRIu64 " s", ns / 1000000000, ns % 1000000000);
}

static void put_build_id(struct out *o, const struct cap_build_id *id)
{
	char digits[2 * CAPTURE_BUILD_ID_MAX + 1];

	out_str(o, text_hex(digits, id->bytes, id->len));
}

static void put_label(struct out *o, const char *label)
{
	out_printf(o, "%-12s", label);
}

static void put_word(struct out *o, const char *s)
{
	if (*s)
		outtext_put(o, s, TEXT_LINE);
	else
		out_str(o, "unknown");
}

static void put_words(struct out *o, const char *label, const char *s)
{
	put_label(o, label);
	put_word(o, s);
	out_char(o, '\n');
}

/* --- the report --- */

static void show_host(struct out *o, const struct cap_host *h)
{
	time_t s = (time_t)(h->start_real_ns / 1000000000);
	char when[64] = "unknown";
	struct tm tm;

	if (h->start_real_ns && gmtime_r(&s, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &tm);
	put_words(o, "recorder", h->recorder);
	put_words(o, "host", h->hostname);
	put_label(o, "system");
	put_word(o, h->sysname);
	out_char(o, ' ');
	put_word(o, h->release);
	out_char(o, ' ');
	put_word(o, h->machine);
	out_printf(o, ", %" PRIu32 " CPUs online, pages of %" PRIu32 " bytes\n", h->cpus, h->page_size);
	put_words(o, "version", h->version);
	put_label(o, "kernel");
	out_str(o, "build ID ");
	if (h->kernel_build_id.len)
		put_build_id(o, &h->kernel_build_id);
	else
		out_str(o, "unknown");
	if (h->stext)
		out_printf(o, ", _stext at 0x%" PRIx64, h->stext);
	else
		out_str(o, ", _stext hidden");
	out_printf(o, ", stacks of up to %" PRIu32 " frames\n", h->max_stack);
	put_words(o, "boot", h->boot_id);
	put_words(o, "started", when);
}

static void show_outcomes(struct out *o, const struct cap_outcomes *ends, const char *one, const char *many)
{
	struct buf b = { 0 };

	if (!cap_outcomes_waits(ends))
		return;
	put_label(o, "user stacks");
	cap_outcomes_put(&b, ends, one, many);
	out_put(o, b.p, b.len);
	out_char(o, '\n');
	buf_free(&b);
}

/* For how many waits the user stack is complete. */
static void show_ends(struct out *o, const struct cap_stats *st)
{
	struct cap_outcomes ends = { 0 };

	for (size_t i = 0; i < st->n_groups; i++)
		if (st->groups[i].kind == CAPTURE_STACK_USER)
			cap_outcomes_add(
				&ends, st->groups[i].verdict, st->groups[i].reason, st->groups[i].waits);
	show_outcomes(o, &ends, "wait", "waits");
}

/* What threads executed, if that was recorded. */
static void show_cpu(struct out *o, const struct cap_stats *st)
{
	if (!st->cpu_samples)
		return;
	put_label(o, "on CPU");
	out_printf(o, "%" PRIu64 " samples, ", st->cpu_samples);
	put_seconds(o, st->cpu_ns);
	out_char(o, '\n');
	show_outcomes(o, &st->cpu, "sample", "samples");
}

/* For how many waits the user stack has functions of the programs of each interpreter. */
static void show_scripts(struct out *o, const struct cap_reader *c)
{
	const char *shown[16] = { NULL };
	size_t n = 0;

	for (size_t i = 0; i < c->n_scripts && n < ARRAY_LEN(shown); i++) {
		const char *runtime = c->scripts[i].runtime;
		uint64_t waits = 0, frames = 0, unnamed = 0;
		size_t k = 0;

		while (k < n && strcmp(shown[k], runtime) != 0)
			k++;
		if (k < n)
			continue;
		shown[n++] = runtime;
		for (size_t s = 0; s < c->n_samples; s++) {
			const struct cap_stack *stack = &c->stacks[c->samples[s].ustack];
			bool any = false;

			for (uint32_t f = 0; f < stack->n_scripts; f++) {
				const struct cap_script *at = &c->scripts[stack->scripts[f].frame];

				if (strcmp(at->runtime, runtime) != 0)
					continue;
				any = true;
				frames += c->samples[s].count;
				unnamed += *at->function ? 0 : c->samples[s].count;
			}
			waits += any ? c->samples[s].count : 0;
		}
		put_label(o, n == 1 ? "scripts" : "");
		put_word(o, runtime);
		out_printf(o, ": %" PRIu64 " frames in %" PRIu64 " waits, %" PRIu64 " of them not readable\n",
			frames, waits, unnamed);
	}
}

/* Why the recording was not made in the best mode, if so. */
static void show_why(struct out *o, const struct cap_reader *c)
{
	struct cap_mode m;
	struct buf b = { 0 };

	cap_mode_get(c, &m);
	if (m.best)
		return;
	put_label(o, "mode");
	cap_mode_put_why(&b, &m);
	out_put(o, b.p, b.len);
	out_char(o, '\n');
	buf_free(&b);
}

/* If the waits are sampled, and so not exact, say so and return true. */
static bool show_mode(struct out *o, const struct cap_reader *c)
{
	struct cap_mode m;
	struct buf b = { 0 };

	cap_mode_get(c, &m);
	if (!m.sampled)
		return false;
	put_label(o, "holds");
	cap_mode_put(&b, &m);
	out_put(o, b.p, b.len);
	out_char(o, '\n');
	buf_free(&b);
	return true;
}

static void show_holds(struct out *o, const struct cap_reader *c, const struct cap_stats *st)
{
	const struct {
		size_t n;
		bool seldom; /* mentioned if there are any */
		const char *one, *many, *of;
	} all[] = { { c->n_procs, false, "process", "processes", ", " },
		{ st->total.threads, false, "thread", "threads", ", " },
		{ st->total.stacks, false, "distinct stack", "distinct stacks", ", " },
		{ c->n_wakers, true, "waker", "wakers", ", " },
		{ c->n_samples, false, "sample", "samples", ", " },
		{ c->n_waits, true, "event", "events", ", " },
		{ c->n_maps, false, "mapping", "mappings", ", " },
		{ c->n_files, false, "file", "files", " of " },
		{ c->n_ksyms, false, "kernel symbol", "kernel symbols", ", " },
		{ c->n_names, false, "name", "names", ", " },
		{ c->n_jits, false, "piece of JIT code", "pieces of JIT code", ", " },
		{ c->n_scripts, true, "place in a script", "places in scripts", ", " } };
	struct buf b = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (all[i].seldom && !all[i].n)
			continue;
		buftext_str(&b, i ? all[i].of : "");
		buftext_count(&b, all[i].n, all[i].one, all[i].many);
	}
	buftext_str(&b, "\n");
	out_put(o, b.p, b.len);
	buf_free(&b);
}

static void show_totals(struct out *o, const struct cap_reader *c, const struct cap_stats *st)
{
	put_label(o, "duration");
	put_seconds(o, st->end_ns - c->host.start_mono_ns);
	if (cap_reader_kept_ns(c)) {
		out_str(o, ", of which are kept ");
		put_seconds(o, cap_reader_kept_ns(c));
	}
	if (c->complete) {
		out_str(o, ", stopped by: ");
		put_word(o, c->trailer.why);
	} else {
		out_str(o, " at least");
	}
	out_char(o, '\n');
	show_why(o, c);
	for (size_t i = 0; i < c->n_options; i++) {
		put_label(o, i ? "" : "options");
		outtext_put(o, c->options[i].name, TEXT_LINE);
		out_char(o, '=');
		outtext_put(o, c->options[i].value, TEXT_LINE);
		out_char(o, '\n');
	}
	put_label(o, "waits");
	out_printf(o, "%" PRIu64 ", off-CPU ", st->total.waits);
	put_seconds(o, st->total.off_ns);
	out_str(o, ", longest ");
	put_seconds(o, st->total.longest_ns);
	out_printf(o, ", open at the end %" PRIu64 "\n", st->total.open);
	show_ends(o, st);
	show_cpu(o, st);
	show_scripts(o, c);
	put_label(o, show_mode(o, c) ? "" : "holds");
	show_holds(o, c, st);
}

/* The PID of a process in its own namespace, and other remarks. */
static void show_remarks(struct out *o, const struct cap_proc *p)
{
	if (p->ns_tgid != p->tgid)
		out_printf(o, " (PID %" PRIu32 " in its namespace)", p->ns_tgid);
	if (p->flags & CAPTURE_PROC_KTHREAD)
		out_str(o, " (kernel thread)");
	if (p->image_ns)
		out_str(o, " (began during the recording)");
	if (p->flags & CAPTURE_PROC_MAPS_LOST)
		out_printf(o, " (mappings not read: %s)", err_name(p->maps_error));
}

static void show_procs(struct out *o, const struct cap_reader *c, const struct cap_stats *st)
{
	out_str(o, "\nprocesses\n");
	out_printf(o, "  %10s %7s %12s %22s %9s  %s\n", "PID", "THREADS", "WAITS", "OFF-CPU", "STACKS",
		"COMMAND");
	for (size_t i = 0; i < c->n_procs; i++) {
		const struct cap_proc *p = &c->procs[i];
		const struct cap_stats_sum *s = &st->procs[i];

		out_printf(o, "  %10" PRIu32 " %7zu %12" PRIu64 " %10" PRIu64 ".%09" PRIu64 " s %9zu  ",
			p->tgid, s->threads, s->waits, s->off_ns / 1000000000, s->off_ns % 1000000000,
			s->stacks);
		outtext_put(o, p->comm, TEXT_LINE);
		if (*p->exe) {
			out_str(o, "  ");
			outtext_put(o, p->exe, TEXT_LINE);
		}
		show_remarks(o, p);
		out_char(o, '\n');
	}
}

static void show_groups(struct out *o, const struct cap_stats *st)
{
	out_str(o, "\nstacks\n");
	out_printf(o, "  %-7s %9s %12s %22s  %s\n", "KIND", "STACKS", "WAITS", "OFF-CPU", "END");
	for (size_t i = 0; i < st->n_groups; i++) {
		const struct cap_stats_group *g = &st->groups[i];

		out_printf(o, "  %-7s %9" PRIu64 " %12" PRIu64 " %10" PRIu64 ".%09" PRIu64 " s  %s",
			capture_kind_name(g->kind), g->stacks, g->waits, g->off_ns / 1000000000,
			g->off_ns % 1000000000, capture_verdict_name(g->verdict));
		if (g->reason)
			out_printf(o, ": %s", capture_reason_text(g->reason));
		if (g->error)
			out_printf(o, " (%s)", err_name(g->error));
		out_char(o, '\n');
	}
}

/* A counter that this version does not know is shown with its name only. */
static void show_counter(struct out *o, const struct cap_counter *c)
{
	struct buf name = { 0 }, meaning = { 0 };

	buftext_escaped(&name, c->name, TEXT_LINE);
	out_printf(o, "  %20" PRIu64 "  ", c->value);
	out_put(o, name.p, name.len);
	if (counter_put_meaning(&meaning, c->name, c->value)) {
		out_printf(o, "%*s  ", (int)(name.len < NAME_WIDTH ? NAME_WIDTH - name.len : 0), "");
		out_put(o, meaning.p, meaning.len);
	}
	out_char(o, '\n');
	buf_free(&name);
	buf_free(&meaning);
}

static void show_counters(struct out *o, const struct cap_reader *c)
{
	size_t losses = 0;

	out_str(o, "\ncounters\n");
	for (size_t i = 0; i < c->n_counters; i++) {
		if (!counter_is_loss(c->counters[i].name))
			show_counter(o, &c->counters[i]);
		else if (c->counters[i].value)
			losses++;
	}
	out_str(o, "\nlost");
	if (!c->n_counters)
		out_str(o, ": not known, no counters were written");
	else if (!losses)
		out_str(o, ": nothing");
	out_char(o, '\n');
	for (size_t i = 0; i < c->n_counters; i++)
		if (counter_is_loss(c->counters[i].name) && losses)
			show_counter(o, &c->counters[i]);
}

/* "balance     110 waits seen = 100 recorded + 10 filtered + 0 lost" */
static void show_balance(struct out *o, const struct cap_reader *c, const struct cap_stats *st, bool ns)
{
	struct counters_balance b;
	const bool holds = counters_balance(c->counters, c->n_counters, ns, &b);
	const uint64_t has = ns ? st->total.off_ns : st->total.waits;

	out_str(o, ns ? "" : "\n");
	put_label(o, ns ? "" : "balance");
	out_printf(o, "%" PRIu64 " %s seen = %" PRIu64 " recorded", b.seen, ns ? "ns" : "waits", b.recorded);
	if (b.unwritten)
		out_printf(o, " + %" PRIu64 " not written yet", b.unwritten);
	if (b.overwritten)
		out_printf(o, " + %" PRIu64 " older than --keep", b.overwritten);
	out_printf(o, " + %" PRIu64 " filtered + %" PRIu64 " lost%s\n", b.filtered, b.lost,
		holds ? "" : ": this does not hold");
	if (has != b.recorded)
		out_printf(o, "%-12s%" PRIu64 " are in the capture%s\n", "", has,
			c->complete ? "" : ": some came after these counters");
}

static void show(struct out *o, const struct opts *opts, const struct cap_reader *c,
	const struct cap_stats *st, const struct cap_stop_places *stops)
{
	put_words(o, "capture", opts->path);
	put_label(o, "state");
	if (c->complete)
		out_str(o, "complete");
	else
		outtext_put(o, c->damage, TEXT_LINE);
	out_printf(o, "\n%-12s%" PRIu64 " bytes in %" PRIu64 " blocks", "size", c->total_bytes, c->blocks);
	if (c->unknown_blocks)
		out_printf(o, ", %" PRIu64 " of them of a kind that this version does not know",
			c->unknown_blocks);
	out_char(o, '\n');
	show_host(o, &c->host);
	show_totals(o, c, st);
	show_procs(o, c, st);
	show_groups(o, st);
	cap_stops_text_put(o, c, stops);
	show_counters(o, c);
	if (c->n_counters) {
		show_balance(o, c, st, false);
		show_balance(o, c, st, true);
	}
}

/* --- mappings --- */

/* The number of processes that --pid selects, or -ESRCH with the message. */
static ssize_t choose(const struct opts *opts, const struct cap_reader *c, struct err *e)
{
	ssize_t chosen = 0;

	for (size_t i = 0; i < c->n_procs; i++)
		chosen += opts->pid == ANY_PID || c->procs[i].tgid == opts->pid;
	if (opts->pid == ANY_PID || chosen)
		return chosen;
	err_set(e, -ESRCH, "no process %" PRIu64 " in this capture", opts->pid);
	err_hint(e, "capinfo '%s' lists those that are", opts->path);
	return -ESRCH;
}

static int show_maps(struct out *o, const struct opts *opts, const struct cap_reader *c, struct err *e)
{
	ssize_t chosen = choose(opts, c, e);
	int code = 0;

	if (chosen < 0)
		return (int)chosen;
	for (uint32_t i = 0; i < c->n_procs && !code; i++) {
		const struct cap_proc *p = &c->procs[i];

		if (opts->pid != ANY_PID && p->tgid != opts->pid)
			continue;
		if (chosen > 1) {
			out_printf(o, "# pid %" PRIu32 " ", p->tgid);
			outtext_put(o, p->comm, TEXT_LINE);
			out_char(o, '\n');
		}
		code = cap_maps_text_put(o, c, i);
	}
	return code ? err_nomem(e, "the mappings") : 0;
}

static int show_threads(struct out *o, const struct opts *opts, const struct cap_reader *c, struct err *e)
{
	if (choose(opts, c, e) < 0)
		return -ESRCH;
	return cap_threads_text_put(o, c, opts->pid == ANY_PID ? 0 : opts->pid) ? err_nomem(e, "the threads")
										: 0;
}

/* --- files --- */

static int show_build_ids(struct out *o, const struct cap_reader *c, struct err *e)
{
	struct cap_stack_files files;

	if (cap_stack_files_make(c, &files) != 0)
		return err_nomem(e, "the files");
	cap_files_text_put(o, c, &files);
	cap_stack_files_free(&files);
	return 0;
}

static void print_missing(void *ctx, const char *path, const char *why)
{
	bool *missing = ctx;

	*missing = true;
	cli_warn(&cli, "'%s' is not packed: it %s", path, why);
}

/* Returns the exit status, with the message in E if nothing was written or the capture is damaged. */
static int pack(const struct opts *opts, struct err *e)
{
	bool missing = false;
	const struct cap_pack_opts po = {
		.out = opts->pack, .force = opts->force, .missing = print_missing, .ctx = &missing
	};
	struct cap_pack_stats st;

	if (cap_pack_write(opts->path, &po, &st, e) != 0)
		return CLI_FAILED;
	if (st.damage[0])
		err_set(e, -EBADMSG, "'%s': %s; what is whole of it is packed", opts->path, st.damage);
	return missing || st.damage[0] ? CLI_INCOMPLETE : CLI_OK;
}

/* --- */

static int print(const struct opts *opts, const struct cap_reader *c, struct out *o, struct err *e)
{
	struct cap_stats st = { 0 };
	struct cap_stop_places stops = { 0 };
	int code;

	if (opts->mode == VERIFY) {
		out_printf(o, "%s%s\n",
			c->complete     ? "ok"
			: c->no_trailer ? "incomplete: "
					: "damaged: ",
			c->damage);
		return out_flush(o, e);
	}
	if (opts->mode == MAPS || opts->mode == THREADS || opts->mode == BUILD_IDS) {
		code = opts->mode == MAPS      ? show_maps(o, opts, c, e)
		       : opts->mode == THREADS ? show_threads(o, opts, c, e)
					       : show_build_ids(o, c, e);
		return code ? code : out_flush(o, e);
	}
	if (cap_stats_make(c, &st) != 0 || cap_stop_places_make(c, &stops) != 0) {
		cap_stats_free(&st);
		return err_nomem(e, "the sums");
	}
	if (opts->mode == JSON)
		cap_json_put(o, c, &st, &stops);
	else
		show(o, opts, c, &st, &stops);
	cap_stats_free(&st);
	cap_stop_places_free(&stops);
	return out_flush(o, e);
}

/* Returns the exit status, with the message in E if it is not 0. */
static int run(const struct opts *opts, struct err *e)
{
	struct cap_reader *c;
	struct out o;
	int status = CLI_OK, code;

	if (opts->mode == PACK)
		return pack(opts, e);
	if (cap_reader_load(opts->path, &c, e) != 0)
		return CLI_FAILED;
	if (out_init(&o, STDOUT_FILENO, e) != 0) {
		cap_reader_free(c);
		return CLI_FAILED;
	}
	code = print(opts, c, &o, e);
	if (code == -ESRCH) {
		status = CLI_INCOMPLETE;
		if (!c->complete)
			err_hint(e, "the capture is not whole: %s", c->damage);
	} else if (code) {
		status = CLI_FAILED;
	} else if (!c->complete) {
		status = CLI_INCOMPLETE;
		err_set(e, -EBADMSG, "'%s': %s", opts->path, c->damage);
	}
	out_free(&o);
	cap_reader_free(c);
	return status;
}

int main(int argc, char *argv[])
{
	struct opts opts = { .pid = ANY_PID };
	struct err e = { 0 };
	int status;

	if (!cli_parse(&cli, argc, argv, &opts, &status))
		return status;
	status = run(&opts, &e);
	if (status && e.code)
		cli_error(&cli, &e);
	return cli_finish(&cli, status);
}
