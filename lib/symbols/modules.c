/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/modules.h"
#include "base/clock.h"
#include "symbols/binaries.h"
#include "symbols/kernparts.h"
#include "symbols/symread.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define BATCH 64 /* files that are open at the same time */

static const char no_function[] = "the module's file has no function of this name there, or more than one";
static const char no_module[] = "no debug information of its module was found that fits";

struct module {
	bool asked, proven;
	uint32_t proc; /* the first that asked */
	char *problem, *debug, *missed, *story;
	uint64_t symbols, addresses;
};

/* What is asked of one file in this run. */
struct part {
	struct modhits_ask *asks;
	size_t n;
	uint64_t *vaddrs;
	struct binary bin;
	struct kernpart kernel; /* instead, of the kernel */
	struct symlook_dwo *dwos;
};

struct modules {
	const struct capread *c;
	struct modules_opts o;
	struct binaries binaries;
	struct module *files; /* by cap_file id; behind them, the kernel and its modules */
	size_t n_files, files_cap;
	struct kernparts kernel;
	struct modhits_ask *asks;
	size_t n_asks, asks_cap;
	struct modhits hits;
	struct symkeep *keep; /* NULL = no cache */
	struct modules_stats stats;
	size_t done, total; /* files of this run, for progress */
};

/* --- open and close --- */

/* Bytes of one file, not files. */
static int on_bytes(void *ctx, const char *what, uint64_t done, uint64_t total)
{
	const struct modules *m = ctx;
	char text[512];

	if (!m->o.progress)
		return 0;
	snprintf(text, sizeof(text),
		total ? "debug file of %s: %" PRIu64 " of %" PRIu64 " MiB"
		      : "debug file of %s: %" PRIu64 " MiB",
		what, done >> 20, total >> 20);
	m->o.progress(m->o.progress_ctx, text, 0, 0);
	return 0;
}

static int init(struct modules *m, const struct capread *c, const struct modules_opts *o, struct err *e)
{
	const struct binaries_opts bo = { .symfs = o->symfs,
		.debug_dirs = o->debug_dirs,
		.n_debug_dirs = o->n_debug_dirs,
		.debuginfod = o->debuginfod,
		.progress = on_bytes,
		.progress_ctx = m };
	struct kernparts_opts ko = {
		.places = { .file = o->vmlinux, .dirs = o->debug_dirs, .n_dirs = o->n_debug_dirs }
	};
	int rc;

	m->c = c;
	m->o = *o;
	m->binaries.where.symfs = -1;
	if (!o->no_cache)
		symkeep_open(&m->keep, NULL); /* without it, everything is read */
	rc = base_grow(&m->files, &m->files_cap, c->n_files + 1, sizeof(*m->files));
	if (rc)
		return err_nomem(e, "files");
	m->n_files = c->n_files + 1;
	rc = binaries_open(&m->binaries, c, &bo, e);
	ko.places.symfs = m->binaries.where.symfs;
	ko.same_boot = m->binaries.where.same_boot;
	kernparts_init(&m->kernel, c, &ko);
	return rc;
}

int modules_open(const struct capread *c, const struct modules_opts *o, struct modules **ret, struct err *e)
{
	struct modules *m = calloc(1, sizeof(*m));
	int rc = m ? init(m, c, o, e) : err_nomem(e, "files");

	if (rc) {
		modules_close(m);
		return rc;
	}
	*ret = m;
	return 0;
}

void modules_close(struct modules *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n_files; i++) {
		free(m->files[i].problem);
		free(m->files[i].debug);
		free(m->files[i].missed);
		free(m->files[i].story);
	}
	modhits_free(&m->hits);
	kernparts_free(&m->kernel);
	binaries_close(&m->binaries);
	symkeep_close(m->keep);
	free(m->files);
	free(m->asks);
	free(m);
}

bool modules_has_image(const struct modules *m, uint32_t file)
{
	return m->binaries.images[file] != NULL;
}

int modules_ask(struct modules *m, uint32_t file, uint32_t proc, uint64_t offset, uint32_t frame)
{
	struct module *mod = &m->files[file];

	if (base_grow(&m->asks, &m->asks_cap, m->n_asks + 1, sizeof(*m->asks)) != 0)
		return -ENOMEM;
	m->asks[m->n_asks++] = (struct modhits_ask){ .file = file, .offset = offset, .frame = frame };
	if (!mod->asked)
		mod->proc = proc;
	mod->asked = true;
	return 0;
}

int modules_ask_kernel(struct modules *m, const char *module, uint64_t addr, uint32_t frame)
{
	const uint32_t id = kernparts_id(&m->kernel, module);
	const size_t n = m->c->n_files + kernparts_count(&m->kernel);

	if (id == UINT32_MAX || n > UINT32_MAX ||
		base_grow(&m->files, &m->files_cap, n, sizeof(*m->files)) != 0)
		return -ENOMEM;
	m->n_files = n;
	return modules_ask(m, (uint32_t)m->c->n_files + id, 0, addr, frame);
}

const char *modules_kernel_part(const struct modules *m, size_t i)
{
	return kernparts_name(&m->kernel, i);
}

/* --- before: files are found --- */

static int by_vaddr(const void *a, const void *b)
{
	const struct modhits_ask *x = a, *y = b;
	int c = CMP(x->lost, y->lost);

	return c ? c : CMP(x->vaddr, y->vaddr);
}

static bool is_kernel(const struct modules *m, const struct part *p)
{
	return p->asks->file >= m->c->n_files;
}

static bool vaddr_of(const struct part *p, uint64_t offset, uint64_t *ret)
{
	return p->bin.elf ? elffile_vaddr(p->bin.elf, offset, ret) : kernpart_vaddr(&p->kernel, offset, ret);
}

/* Offsets become addresses of the file, ascending and distinct: mostly they are already. */
static int locate(struct part *p)
{
	bool sorted = true;
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct modhits_ask *a = &p->asks[i];

		a->lost = !vaddr_of(p, a->offset, &a->vaddr);
		sorted = sorted && (!i || by_vaddr(a - 1, a) <= 0);
	}
	if (!sorted)
		qsort(p->asks, p->n, sizeof(*p->asks), by_vaddr);
	p->vaddrs = malloc((p->n + 1) * sizeof(*p->vaddrs));
	if (!p->vaddrs)
		return -ENOMEM;
	for (size_t i = 0; i < p->n && !p->asks[i].lost; i++) /* those come last */
		if (!n || p->vaddrs[n - 1] != p->asks[i].vaddr)
			p->vaddrs[n++] = p->asks[i].vaddr;
	return (int)n;
}

static void set_problem(struct module *mod, const char *context, const char *why)
{
	char text[1200];

	snprintf(text, sizeof(text), "%s%s", context, why);
	if (!mod->problem)
		mod->problem = strdup(text);
}

static void tell(struct modules *m, const char *what)
{
	if (m->o.progress)
		m->o.progress(m->o.progress_ctx, what, m->done, m->total);
}

static char *text_or_null(const char *text)
{
	return *text ? strdup(text) : NULL;
}

/* 1 = it is there, 0 = it is not, or -errno where it was named. */
static int find_kernel(struct modules *m, struct part *p, struct err *e)
{
	const uint32_t id = p->asks->file - (uint32_t)m->c->n_files;
	struct module *mod = &m->files[p->asks->file];
	int rc = kernpart_find(&m->kernel, id, p->asks, p->n, &p->kernel, e);

	mod->missed = mod->missed ? mod->missed : text_or_null(p->kernel.missed);
	mod->debug = mod->debug ? mod->debug : text_or_null(p->kernel.debug);
	mod->proven = mod->proven || p->kernel.module.proven;
	return rc;
}

static int find_part(struct modules *m, struct part *p, struct err *e)
{
	struct module *mod = &m->files[p->asks->file];
	struct err mine = { 0 };

	if (is_kernel(m, p))
		return find_kernel(m, p, e);
	if (binary_find(&m->binaries, p->asks->file, m->c->procs[mod->proc].tgid, &p->bin, &mine) == 0)
		return 1;
	set_problem(mod, "", mine.msg);
	return 0;
}

/* 1 with JOB to be done, 0 where there is no file to use, -errno. */
static int prepare(struct modules *m, struct part *p, struct symchild_job *job, struct err *e)
{
	struct module *mod = &m->files[p->asks->file];
	int n;

	tell(m, "finding files");
	n = find_part(m, p, e);
	if (n <= 0)
		return n;
	n = locate(p);
	if (n < 0)
		return err_nomem(e, "symbols");
	mod->debug = mod->debug ? mod->debug : text_or_null(p->bin.debug.where);
	mod->missed = mod->missed ? mod->missed : text_or_null(p->bin.debug.missed);
	*job = (struct symchild_job){ .ctx = p,
		.in = { .elf = p->bin.elf ? p->bin.elf : kernpart_file(&p->kernel),
			.debug = p->bin.debug.debug,
			.alt = p->bin.debug.alt,
			.dwp = p->bin.debug.dwp,
			.vaddrs = p->vaddrs,
			.n_vaddrs = (size_t)n,
			.inlines = m->o.inlines,
			.lines = m->o.lines,
			.demangle = m->o.demangle } };
	mod->addresses += (uint64_t)n;
	m->stats.addresses += (uint64_t)n;
	return 1;
}

/* --- afterwards: addresses are told what became of them --- */

static void count(struct modules *m, struct module *mod, const struct symchild_job *j)
{
	const struct symanswer_head *h = j->answer.head;
	struct modules_stats *s = &m->stats;

	if (h->story && !mod->story)
		mod->story = strdup(symanswer_text(&j->answer, h->story));
	mod->symbols = h->symbols;
	if (!j->ns) /* kept by an earlier run: it took nothing of this one */
		return;
	s->units += h->units;
	s->units_read += h->units_read;
	s->ns_symbols += h->ns_symbols;
	s->ns_units += h->ns_units;
	s->ns_lines += h->ns_lines;
	s->ns_names += h->ns_names;
}

/* Tell of a part by what was read of its file, which may be nothing, and what is stored. */
static int tell_part(struct modules *m, const struct part *p, const struct modhits_answer *read,
	modules_sink *sink, void *ctx)
{
	const uint32_t id = p->asks->file;
	const struct storednames_opts o = {
		.demangle = m->o.demangle, .inlines = m->o.inlines, .lines = m->o.lines
	};
	const char *why = m->files[id].problem;
	struct modhits_answer stored = { 0 };
	int rc = is_kernel(m, p) ? 0 : modhits_stored(&m->hits, m->c, id, &o, &stored, NULL);

	if (!why && id > m->c->n_files)
		why = no_module;
	if (rc == 0)
		modhits_tell(p->asks, p->n, read, &stored, why, sink, ctx);
	return rc;
}

/* What became of a job. */
static int take(struct modules *m, struct symchild_job *j, modules_sink *sink, void *ctx)
{
	const struct part *p = j->ctx;
	struct module *mod = &m->files[p->asks->file];
	struct modhits_answer read = { 0 };

	m->stats.ns_processes += j->ns;
	m->stats.memory_bytes = MAX(m->stats.memory_bytes, j->memory_bytes);
	if (!j->bytes)
		set_problem(mod, "cannot be read: ", j->why);
	else if (modhits_take(&m->hits, j->bytes, &j->answer, &read) != 0)
		return -ENOMEM;
	if (read.calls)
		count(m, mod, j);
	if (p->kernel.module.file)
		read.lost = no_function;
	return tell_part(m, p, &read, sink, ctx);
}

/* --- a run --- */

static void on_done(void *ctx, struct symchild_job *j)
{
	struct modules *m = ctx;

	(void)j;
	m->done++;
	tell(m, "reading symbols");
}

static void on_tick(void *ctx)
{
	tell(ctx, "reading symbols");
}

static void read_all(struct modules *m, struct symchild_job *jobs, size_t n)
{
	const struct symread r = { .jobs = m->o.jobs,
		.memory_bytes = m->o.memory_bytes,
		.seconds = m->o.seconds,
		.keep = m->keep,
		.done = on_done,
		.tick = on_tick,
		.ctx = m };
	uint64_t began = now_ns();

	symread_run(&r, jobs, n);
	m->stats.ns_wall += now_ns() - began;
}

/* J again, with the files that its answer lacked; false where none is there. */
static bool again(struct modules *m, struct symchild_job *j, struct symchild_job *to)
{
	struct part *p = j->ctx;

	if (!j->bytes || !j->answer.head->n_wants || is_kernel(m, p) ||
		binary_find_dwos(&m->binaries, p->asks->file, &j->answer, &p->bin, NULL) != 0 ||
		!p->bin.n_dwos)
		return false;
	p->dwos = calloc(p->bin.n_dwos, sizeof(*p->dwos));
	if (!p->dwos)
		return false;
	for (size_t i = 0; i < p->bin.n_dwos; i++)
		p->dwos[i] = (struct symlook_dwo){ p->bin.dwo_ids[i], p->bin.dwos[i] };
	*to = (struct symchild_job){ .in = j->in, .ctx = j };
	to->in.dwos = p->dwos;
	to->in.n_dwos = p->bin.n_dwos;
	return true;
}

/* Split debug information tells only when it is read where the rest is. */
static void read_dwos(struct modules *m, struct symchild_job *jobs, size_t n)
{
	_cleanup_free_ struct symchild_job *second = calloc(n + 1, sizeof(*second));
	size_t n_second = 0;

	for (size_t i = 0; second && i < n; i++)
		n_second += again(m, &jobs[i], &second[n_second]);
	if (!n_second)
		return;
	m->total += n_second;
	read_all(m, second, n_second);
	for (size_t i = 0; i < n_second; i++) {
		struct symchild_job *first = second[i].ctx;

		if (!second[i].bytes) /* what was there without is what remains */
			continue;
		free(first->bytes);
		second[i].ctx = first->ctx;
		*first = second[i];
	}
}

static void close_part(struct part *p)
{
	free(p->vaddrs);
	free(p->dwos);
	binary_close(&p->bin);
	kernpart_close(&p->kernel);
}

/* The files of N parts. */
static int run_batch(
	struct modules *m, struct part *parts, size_t n, modules_sink *sink, void *ctx, struct err *e)
{
	_cleanup_free_ struct symchild_job *jobs = calloc(n, sizeof(*jobs));
	uint64_t began = now_ns();
	size_t n_jobs = 0, taken = 0;
	int rc = jobs ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && rc >= 0; i++) {
		rc = prepare(m, &parts[i], &jobs[n_jobs], e);
		n_jobs += rc > 0;
		if (rc == 0) {
			m->done++;
			rc = tell_part(m, &parts[i], &(struct modhits_answer){ 0 }, sink, ctx);
		}
	}
	m->stats.ns_find += now_ns() - began;
	if (rc >= 0)
		read_all(m, jobs, n_jobs);
	if (rc >= 0)
		read_dwos(m, jobs, n_jobs);
	for (rc = MIN(rc, 0); taken < n_jobs && rc == 0; taken++)
		rc = take(m, &jobs[taken], sink, ctx);
	for (; taken < n_jobs; taken++)
		free(jobs[taken].bytes);
	return rc;
}

/* The parts of what was asked, one for each file; their number. */
static size_t split(struct modhits_ask *asks, size_t n, struct part *parts)
{
	size_t n_parts = 0;

	for (size_t i = 0; i < n; i++) {
		if (!i || asks[i].file != asks[i - 1].file)
			parts[n_parts++].asks = &asks[i];
		parts[n_parts - 1].n++;
	}
	return n_parts;
}

int modules_run(struct modules *m, modules_sink *sink, void *ctx, struct err *e)
{
	_cleanup_free_ struct part *parts = calloc(m->n_files + 1, sizeof(*parts));
	size_t n = 0;
	int rc = parts ? 0 : -ENOMEM;

	rc = rc ? rc : modhits_sort(m->asks, m->n_asks);
	if (rc == 0)
		n = split(m->asks, m->n_asks, parts);
	m->done = 0;
	m->total = n;
	m->stats.files += n;
	for (size_t i = 0; i < n && rc == 0; i += BATCH) {
		size_t some = MIN(n - i, (size_t)BATCH);

		rc = run_batch(m, parts + i, some, sink, ctx, e);
		for (size_t k = i; k < i + some; k++)
			close_part(&parts[k]);
	}
	m->n_asks = 0;
	return rc == -ENOMEM ? err_nomem(e, "symbols") : rc;
}

bool modules_file(const struct modules *m, uint32_t file, struct modules_file *ret)
{
	const struct module *mod = &m->files[file];

	*ret = (struct modules_file){ .problem = mod->problem,
		.debug = mod->debug,
		.missed = mod->missed,
		.story = mod->story,
		.proven = mod->proven,
		.symbols = mod->symbols,
		.addresses = mod->addresses };
	return mod->asked;
}

void modules_stats(const struct modules *m, struct modules_stats *ret)
{
	struct symkeep_stats kept = { 0 };

	if (m->keep)
		symkeep_stats(m->keep, &kept);
	*ret = m->stats;
	ret->cache_hits = kept.hits;
	ret->cache_misses = kept.misses;
	ret->cache_kept = kept.kept;
	ret->cache_bad = kept.bad;
}
