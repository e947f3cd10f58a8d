/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/show.h"
#include "base/json.h"
#include "capture/counters.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>

/* The name of an error; "" for 0. */
static void error(struct json *j, const char *key, int32_t code)
{
	json_str(j, key, code ? err_name(code) : "");
}

static void build_id(struct json *j, const char *key, const struct cap_build_id *id)
{
	json_bytes(j, key, id->bytes, id->len);
}

/* The id of a file; null for memory without a file. */
static void file(struct json *j, uint32_t number)
{
	if (number == CAPTURE_NONE)
		json_null(j, "file");
	else
		json_u64(j, "file", number);
}

static void put_host(struct json *j, const struct cap_host *h)
{
	json_begin(j, "host", '{');
	json_str(j, "sysname", h->sysname);
	json_str(j, "release", h->release);
	json_str(j, "version", h->version);
	json_str(j, "machine", h->machine);
	json_str(j, "hostname", h->hostname);
	json_str(j, "boot_id", h->boot_id);
	json_str(j, "recorder", h->recorder);
	build_id(j, "kernel_build_id", &h->kernel_build_id);
	json_hex(j, "stext", h->stext);
	json_u64(j, "start_mono_ns", h->start_mono_ns);
	json_u64(j, "start_boot_ns", h->start_boot_ns);
	json_u64(j, "start_real_ns", h->start_real_ns);
	json_u64(j, "max_stack", h->max_stack);
	json_u64(j, "cpus", h->cpus);
	json_u64(j, "page_size", h->page_size);
	json_end(j, '}');
}

static void put_options(struct json *j, const struct cap_reader *c)
{
	json_begin(j, "options", '[');
	for (size_t i = 0; i < c->n_options; i++) {
		json_begin(j, NULL, '{');
		json_str(j, "name", c->options[i].name);
		json_str(j, "value", c->options[i].value);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_mode(struct json *j, const struct cap_reader *c)
{
	struct cap_mode m;

	cap_mode_get(c, &m);
	json_str(j, "mode", m.name);
	json_str(j, "mode_tried", m.tried);
	cap_mode_put_json(j, &m);
}

static void put_sum(struct json *j, const struct cap_stats_sum *s)
{
	json_u64(j, "threads", s->threads);
	json_u64(j, "waits", s->waits);
	json_u64(j, "open", s->open);
	json_u64(j, "off_cpu_ns", s->off_ns);
	json_u64(j, "longest_ns", s->longest_ns);
	json_u64(j, "stacks", s->stacks);
}

static void put_totals(struct json *j, const struct cap_reader *c, const struct cap_stats *s)
{
	json_begin(j, "totals", '{');
	put_sum(j, &s->total);
	json_u64(j, "processes", c->n_procs);
	json_u64(j, "samples", c->n_samples);
	json_u64(j, "mappings", c->n_maps);
	json_u64(j, "files", c->n_files);
	json_u64(j, "images", c->n_images);
	json_u64(j, "kernel_symbols", c->n_ksyms);
	json_u64(j, "names", c->n_names);
	json_u64(j, "jit", c->n_jits);
	json_u64(j, "cpu_samples", s->cpu_samples);
	json_u64(j, "cpu_ns", s->cpu_ns);
	json_end(j, '}');
}

static void put_procs(struct json *j, const struct cap_reader *c, const struct cap_stats *s)
{
	json_begin(j, "processes", '[');
	for (size_t i = 0; i < c->n_procs; i++) {
		const struct cap_proc *p = &c->procs[i];

		json_begin(j, NULL, '{');
		json_u64(j, "pid", p->tgid);
		json_u64(j, "ns_pid", p->ns_tgid);
		json_str(j, "comm", p->comm);
		json_str(j, "exe", p->exe);
		json_bool(j, "kernel_thread", p->flags & CAPTURE_PROC_KTHREAD);
		json_bool(j, "maps_lost", p->flags & CAPTURE_PROC_MAPS_LOST);
		error(j, "maps_error", p->maps_error);
		json_u64(j, "start_boot_ns", p->start_boot_ns);
		json_u64(j, "image_ns", p->image_ns);
		put_sum(j, &s->procs[i]);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_threads(struct json *j, const struct cap_reader *c)
{
	json_begin(j, "threads", '[');
	for (size_t i = 0; i < c->n_threads; i++) {
		json_begin(j, NULL, '{');
		json_u64(j, "process", c->threads[i].proc);
		json_u64(j, "tid", c->threads[i].tid);
		json_u64(j, "ns_tid", c->threads[i].ns_tid);
		json_str(j, "comm", c->threads[i].comm);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_lives(struct json *j, const struct cap_reader *c)
{
	json_begin(j, "lives", '[');
	for (size_t i = 0; i < c->n_lives; i++) {
		const struct cap_life *l = &c->lives[i];

		json_begin(j, NULL, '{');
		json_u64(j, "process", l->proc);
		json_u64(j, "tid", l->tid);
		json_u64(j, "from_ns", l->from_ns);
		json_u64(j, "to_ns", l->to_ns);
		json_u64(j, "on_cpu_ns", l->on_cpu_ns);
		if (l->is_split)
			json_u64(j, "runnable_ns", l->runnable_ns);
		else
			json_null(j, "runnable_ns");
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_files(struct json *j, const struct cap_reader *c)
{
	json_begin(j, "files", '[');
	for (size_t i = 0; i < c->n_files; i++) {
		const struct cap_file *f = &c->files[i];

		json_begin(j, NULL, '{');
		json_str(j, "path", f->path);
		build_id(j, "build_id", &f->build_id);
		json_u64(j, "dev_major", f->dev_major);
		json_u64(j, "dev_minor", f->dev_minor);
		json_u64(j, "inode", f->inode);
		json_u64(j, "size", f->size);
		json_u64(j, "mtime_ns", f->mtime_ns);
		json_bool(j, "deleted", f->flags & CAPTURE_FILE_DELETED);
		json_bool(j, "unread", f->flags & CAPTURE_FILE_UNREAD);
		json_bool(j, "pseudo", f->flags & CAPTURE_FILE_PSEUDO);
		error(j, "error", f->error);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_maps(struct json *j, const struct cap_reader *c)
{
	json_begin(j, "mappings", '[');
	for (size_t i = 0; i < c->n_maps; i++) {
		const struct cap_map *m = &c->maps[i];

		json_begin(j, NULL, '{');
		json_u64(j, "process", m->proc);
		file(j, m->file);
		json_u64(j, "from_ns", m->from_ns);
		json_hex(j, "start", m->start);
		json_hex(j, "end", m->end);
		json_hex(j, "offset", m->offset);
		json_u64(j, "prot", m->prot);
		json_u64(j, "flags", m->flags);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_groups(struct json *j, const struct cap_stats *s)
{
	json_begin(j, "stacks", '[');
	for (size_t i = 0; i < s->n_groups; i++) {
		const struct cap_stats_group *g = &s->groups[i];

		json_begin(j, NULL, '{');
		json_str(j, "kind", capture_kind_name(g->kind));
		json_str(j, "verdict", capture_verdict_name(g->verdict));
		json_str(j, "reason", g->reason ? capture_reason_name(g->reason) : "");
		error(j, "error", g->error);
		json_u64(j, "stacks", g->stacks);
		json_u64(j, "waits", g->waits);
		json_u64(j, "off_cpu_ns", g->off_ns);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_stops(struct json *j, const struct cap_stop_places *s)
{
	json_begin(j, "stops", '[');
	for (size_t i = 0; i < s->n; i++) {
		const struct cap_stop_places_stop *k = &s->list[i];

		json_begin(j, NULL, '{');
		json_str(j, "reason", capture_reason_name(k->reason));
		json_bool(j, "mapped", k->mapped);
		file(j, k->file);
		json_hex(j, "place", k->place);
		json_u64(j, "places", k->places);
		json_u64(j, "waits", k->waits);
		json_u64(j, "off_cpu_ns", k->off_ns);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_counters(struct json *j, const struct cap_reader *c, const char *key, bool losses)
{
	json_begin(j, key, '{');
	for (size_t i = 0; i < c->n_counters; i++)
		if (counter_is_loss(c->counters[i].name) == losses)
			json_u64(j, c->counters[i].name, c->counters[i].value);
	json_end(j, '}');
}

static void put_balance(struct json *j, const struct cap_reader *c, const char *key, bool ns)
{
	struct counters_balance b;
	const bool holds = counters_balance(c->counters, c->n_counters, ns, &b);

	json_begin(j, key, '{');
	json_u64(j, "seen", b.seen);
	json_u64(j, "recorded", b.recorded);
	json_u64(j, "unwritten", b.unwritten);
	json_u64(j, "overwritten", b.overwritten);
	json_u64(j, "filtered", b.filtered);
	json_u64(j, "lost", b.lost);
	json_bool(j, "holds", holds);
	json_end(j, '}');
}

void cap_json_put(struct out *o, const struct cap_reader *c, const struct cap_stats *s,
	const struct cap_stop_places *stops)
{
	struct json j = { .o = o };

	json_begin(&j, NULL, '{');
	json_bool(&j, "complete", c->complete);
	json_str(&j, "damage", c->damage);
	json_u64(&j, "bytes", c->total_bytes);
	json_u64(&j, "good_bytes", c->good_bytes);
	json_u64(&j, "blocks", c->blocks);
	json_u64(&j, "unknown_blocks", c->unknown_blocks);
	json_u64(&j, "last_flush_ns", c->last_flush_ns);
	json_u64(&j, "stop_ns", c->trailer.stop_ns);
	json_str(&j, "stopped_by", c->trailer.why);
	json_u64(&j, "duration_ns", s->end_ns - c->host.start_mono_ns);
	if (cap_reader_kept_ns(c))
		json_u64(&j, "kept_ns", cap_reader_kept_ns(c));
	put_host(&j, &c->host);
	put_mode(&j, c);
	put_options(&j, c);
	put_totals(&j, c, s);
	put_procs(&j, c, s);
	put_threads(&j, c);
	put_lives(&j, c);
	put_files(&j, c);
	put_maps(&j, c);
	put_groups(&j, s);
	put_stops(&j, stops);
	put_counters(&j, c, "counters", false);
	put_counters(&j, c, "lost", true);
	put_balance(&j, c, "balance", false);
	put_balance(&j, c, "balance_ns", true);
	json_end(&j, '}');
	out_char(o, '\n');
}

void cap_files_text_put(struct out *o, const struct cap_reader *c, const struct cap_stack_files *files)
{
	char digits[2 * CAPTURE_BUILD_ID_MAX + 1];

	for (size_t i = 0; i < files->n; i++) {
		const struct cap_file *f = &c->files[files->files[i]];

		out_str(o, f->build_id.len ? text_hex(digits, f->build_id.bytes, f->build_id.len) : "-");
		out_char(o, ' ');
		outtext_put(o, f->path, TEXT_LINE);
		out_char(o, '\n');
	}
}

static int by_address(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return CMP(x, y);
}

/* [START, END) of M in the kernel's own layout: the path begins in column 74. */
static void put_map(
	struct out *o, const struct cap_reader *c, const struct cap_map *m, uint64_t start, uint64_t end)
{
	static const struct cap_file anonymous = { .path = "" };
	const struct cap_file *f = m->file == CAPTURE_NONE ? &anonymous : &c->files[m->file];
	uint64_t offset = f == &anonymous ? 0 : m->offset + (start - m->start);
	char line[160];
	int n = snprintf(line, sizeof(line),
		"%08" PRIx64 "-%08" PRIx64 " %c%c%c%c %08" PRIx64 " %02" PRIx32 ":%02" PRIx32 " %" PRIu64 " ",
		start, end, m->prot & PROT_READ ? 'r' : '-', m->prot & PROT_WRITE ? 'w' : '-',
		m->prot & PROT_EXEC ? 'x' : '-', m->flags & MAP_SHARED ? 's' : 'p', offset, f->dev_major,
		f->dev_minor, f->inode);

	if (*f->path) {
		out_printf(o, "%-73s", line);
		outtext_put(o, f->path, TEXT_LINE);
		if (f->flags & CAPTURE_FILE_DELETED)
			out_str(o, " (deleted)");
	} else {
		out_put(o, line, (size_t)n);
	}
	out_char(o, '\n');
}

int cap_maps_text_put(struct out *o, const struct cap_reader *c, uint32_t proc)
{
	_cleanup_free_ uint64_t *cuts = calloc(2 * c->n_maps + 1, sizeof(*cuts));
	const struct cap_map *open = NULL;
	uint64_t from = 0;
	size_t n = 0;

	if (!cuts)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_maps; i++)
		if (c->maps[i].proc == proc)
			cuts[n++] = c->maps[i].start, cuts[n++] = c->maps[i].end;
	qsort(cuts, n, sizeof(*cuts), by_address);
	for (size_t i = 0; i < n; i++) {
		const struct cap_map *m = cap_reader_map(c, proc, cuts[i], UINT64_MAX, UINT64_MAX, NULL);

		if (m == open)
			continue;
		if (open)
			put_map(o, c, open, from, cuts[i]);
		open = m;
		from = cuts[i];
	}
	return 0;
}

#define SHOWN 20

/* The file, and the place in it where most of the waits stopped; without a file, the PC. */
static void put_place(struct out *o, const struct cap_reader *c, const struct cap_stop_places_stop *k)
{
	if (k->file != CAPTURE_NONE)
		outtext_put(o, c->files[k->file].path, TEXT_LINE);
	else
		out_str(o, k->mapped ? "memory of no file" : "no known mapping");
	out_printf(o, k->file != CAPTURE_NONE ? "+0x%" PRIx64 "\n" : ", 0x%" PRIx64 "\n", k->place);
}

void cap_stops_text_put(struct out *o, const struct cap_reader *c, const struct cap_stop_places *stops)
{
	if (!stops->n)
		return;
	out_str(o, "\nwhere user stacks stopped\n");
	out_printf(o, "  %-16s %12s %22s %9s  %s\n", "REASON", "WAITS", "OFF-CPU", "PLACES",
		"FILE, AND THE PLACE OF MOST WAITS");
	for (size_t i = 0; i < MIN(stops->n, (size_t)SHOWN); i++) {
		const struct cap_stop_places_stop *k = &stops->list[i];

		out_printf(o, "  %-16s %12" PRIu64 " %10" PRIu64 ".%09" PRIu64 " s %9" PRIu64 "  ",
			capture_reason_name(k->reason), k->waits, k->off_ns / 1000000000,
			k->off_ns % 1000000000, k->places);
		put_place(o, c, k);
	}
	if (stops->n > SHOWN)
		out_printf(o, "  %zu more: --json has all\n", stops->n - SHOWN);
}

struct sum {
	uint32_t proc, tid;
	uint64_t waits, off_ns;
	uint64_t queued_ns; /* of off_ns: on a run queue */
	uint64_t blocked_ns; /* of off_ns: the rest, but for waits of threads that lost the CPU */
	uint64_t sampled_ns; /* on the CPU, by samples */
	bool split; /* queued_ns is known of all waits */
	/* by the scheduler's own account */
	bool lives, runnable; /* the three below are known; the last one */
	uint64_t life_ns, on_ns, runnable_ns;
};

static int by_thread(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;
	int c = CMP(x->proc, y->proc);

	return c ? c : CMP(x->tid, y->tid);
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static struct sum sum_of_sample(const struct cap_sample *s)
{
	struct sum sum = { .proc = s->proc, .tid = s->tid, .split = true, .runnable = true };

	if (s->flags & CAPTURE_SAMPLE_ON_CPU) {
		sum.sampled_ns = s->total_ns;
		return sum;
	}
	sum.waits = s->count;
	sum.off_ns = s->total_ns;
	sum.split = s->is_split;
	sum.queued_ns = s->runnable_ns;
	sum.blocked_ns = s->flags & CAPTURE_SAMPLE_PREEMPTED ? 0 : s->total_ns - s->runnable_ns;
	return sum;
}

static struct sum sum_of_life(const struct cap_life *l)
{
	return (struct sum){ .proc = l->proc,
		.tid = l->tid,
		.split = true,
		.lives = true,
		.runnable = l->is_split,
		.life_ns = l->to_ns - l->from_ns,
		.on_ns = l->on_cpu_ns,
		.runnable_ns = l->runnable_ns };
}

static void add_sum(struct sum *to, const struct sum *s)
{
	to->waits = add(to->waits, s->waits);
	to->off_ns = add(to->off_ns, s->off_ns);
	to->queued_ns = add(to->queued_ns, s->queued_ns);
	to->blocked_ns = add(to->blocked_ns, s->blocked_ns);
	to->sampled_ns = add(to->sampled_ns, s->sampled_ns);
	to->split &= s->split;
	to->lives |= s->lives;
	to->runnable &= s->runnable;
	to->life_ns = add(to->life_ns, s->life_ns);
	to->on_ns = add(to->on_ns, s->on_ns);
	to->runnable_ns = add(to->runnable_ns, s->runnable_ns);
}

/* Write an entry per thread to SUMS, which has room for all samples, lives and threads. Returns their number.
 */
static size_t sum_up(const struct cap_reader *c, struct sum *sums)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < c->n_samples; i++)
		sums[n++] = sum_of_sample(&c->samples[i]);
	for (size_t i = 0; i < c->n_lives; i++)
		sums[n++] = sum_of_life(&c->lives[i]);
	for (size_t i = 0; i < c->n_threads; i++)
		sums[n++] = (struct sum){
			.proc = c->threads[i].proc, .tid = c->threads[i].tid, .split = true, .runnable = true
		};
	qsort(sums, n, sizeof(*sums), by_thread);
	for (size_t i = 0; i < n; i++) {
		if (kept && by_thread(&sums[kept - 1], &sums[i]) == 0)
			add_sum(&sums[kept - 1], &sums[i]);
		else
			sums[kept++] = sums[i];
	}
	return kept;
}

static void put_own(struct out *o, uint32_t id, int width)
{
	if (id)
		out_printf(o, " %*" PRIu32, width, id);
	else
		out_printf(o, " %*s", width, "-");
}

static void put_time(struct out *o, bool known, uint64_t ns)
{
	if (known)
		out_printf(o, " %8" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
	else
		out_printf(o, " %18s", "-");
}

/* SAMPLED: the capture has samples of what threads executed. */
static void put_thread(struct out *o, const struct cap_reader *c, const struct sum *s, bool sampled)
{
	const struct cap_thread *t = cap_reader_thread(c, s->proc, s->tid, UINT64_MAX);
	const struct cap_proc *p = &c->procs[s->proc];
	const bool on = s->lives || sampled, runnable = s->lives ? s->runnable : s->split;
	const uint64_t on_ns = s->lives ? s->on_ns : s->sampled_ns,
		       runnable_ns = s->lives ? s->runnable_ns : s->queued_ns;

	out_printf(o, "%10" PRIu32 " %10" PRIu32, p->tgid, s->tid);
	put_own(o, p->ns_tgid, 10);
	put_own(o, t ? t->ns_tid : 0, 10);
	out_printf(o, " %12" PRIu64, s->waits);
	put_time(o, true, s->off_ns);
	put_time(o, s->lives, s->life_ns);
	put_time(o, on, on_ns);
	put_time(o, runnable, runnable_ns);
	put_time(o, s->split, s->blocked_ns);
	put_time(o, on && runnable && s->split, add(add(on_ns, runnable_ns), s->blocked_ns));
	out_str(o, "  ");
	outtext_put(o, t ? t->comm : p->comm, TEXT_LINE);
	out_char(o, '\n');
}

int cap_threads_text_put(struct out *o, const struct cap_reader *c, uint64_t pid)
{
	_cleanup_free_ struct sum *sums = calloc(c->n_samples + c->n_lives + c->n_threads + 1, sizeof(*sums));
	size_t n = sums ? sum_up(c, sums) : 0;
	bool sampled = false;

	if (!sums)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sampled |= sums[i].sampled_ns > 0;
	out_printf(o, "%10s %10s %10s %10s %12s %18s %18s %18s %18s %18s %18s  %s\n", "PID", "TID", "NS-PID",
		"NS-TID", "WAITS", "OFF-CPU", "LIFE", "ON-CPU", "RUNNABLE", "BLOCKED", "SUM", "NAME");
	for (size_t i = 0; i < n; i++)
		if (!pid || c->procs[sums[i].proc].tgid == pid)
			put_thread(o, c, &sums[i], sampled);
	return 0;
}
