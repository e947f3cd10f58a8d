/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/session.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/text.h"
#include "capture/stats.h"
#include "procfs/estimator.h"
#include "procfs/helper.h"
#include "procfs/kernel_stacks.h"
#include "procfs/sampler.h"
#include "procfs/threads.h"
#include "procfs/user_stacks.h"
#include "record/files.h"
#include "record/host.h"
#include "record/jit.h"
#include "record/names.h"
#include "record/processes.h"
#include "record/stacks.h"
#include "symbols/kallsyms.h"
#include "system/privileges.h"
#include "system/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>

/*
 * procrows - waits of a recording by /proc, summed by key until they are
 * written.
 */

struct procrows_row {
	struct offcpu_key key;
	struct offcpu_value value;
};

/* A zeroed one is empty. The caller owns the first four. */
struct procrows {
	struct process_table *procs;
	struct stack_table *stacks;
	struct name_requests *names; /* NULL = none are stored */
	struct jit_store *jit; /* NULL = likewise */
	struct procrows_row *rows;
	size_t n, cap;
	struct hashtable by_key;
	struct idmap looked_up; /* (process, user stack) whose mappings were checked */
	struct cap_outcomes user; /* how the user stacks of the waits written ended */
	uint64_t lost, lost_ns; /* waits for which there was no memory */
};

static void procrows_free(struct procrows *r)
{
	free(r->rows);
	hashtable_free(&r->by_key);
	idmap_free(&r->looked_up);
	r->rows = NULL;
	r->n = r->cap = 0;
}

static void procrows_add(struct procrows *r, const struct offcpu_key *key, const struct offcpu_value *value)
{
	uint64_t hash = hash_bytes(key, sizeof(*key), 0);
	uint32_t at = HASHTABLE_FIND(&r->by_key, hash, i, memcmp(&r->rows[i].key, key, sizeof(*key)) == 0);
	struct offcpu_value *v;

	if (at == HASHTABLE_NONE) {
		if (hashtable_reserve(&r->by_key, 1) != 0 ||
			base_grow(&r->rows, &r->cap, r->n + 1, sizeof(*r->rows)) != 0) {
			r->lost += value->count;
			r->lost_ns += value->total_ns;
			return;
		}
		r->rows[r->n] = (struct procrows_row){ *key, *value };
		hashtable_add(&r->by_key, hash, (uint32_t)r->n++);
		return;
	}
	v = &r->rows[at].value;
	v->total_ns += value->total_ns;
	v->count += value->count;
	v->max_ns = MAX(v->max_ns, value->max_ns);
	v->first_ns = MIN(v->first_ns, value->first_ns);
	v->last_ns = MAX(v->last_ns, value->last_ns);
	v->runnable_ns += value->runnable_ns;
	v->split += value->split;
}

/* Is something mapped where the frames are? Checked once for each stack of a process. */
static bool is_mapped(struct procrows *r, const struct offcpu_key *k, uint32_t proc, uint32_t ustack)
{
	const struct process_maps *maps;
	struct cap_stack s;
	bool added = false;

	idmap_put(&r->looked_up, proc, ustack, 0, &added);
	if (!added || !stack_table_frames(r->stacks, &k->user, &s))
		return true;
	maps = process_table_maps(r->procs, k);
	for (uint32_t i = 0; i < s.len; i++)
		if (!process_maps_at(maps, s.frames[i]))
			return false;
	return true;
}

static void want_names(struct procrows *r, const struct offcpu_key *k, const struct cap_sample *s)
{
	struct cap_stack stack;

	if (!r->names || !name_requests_is_new(r->names, s->proc, s->ustack, s->flags / CAPTURE_SAMPLE_EPOCH))
		return;
	if (stack_table_frames(r->stacks, &k->user, &stack))
		name_requests_add(r->names, process_table_maps(r->procs, k), &stack, s->first_ns, s->last_ns);
	else
		name_requests_miss(r->names, stack.len);
}

static void write_row(struct procrows *r, const struct procrows_row *row, struct cap_writer *w,
	void (*unmapped)(void *ctx, uint32_t tgid), void *ctx)
{
	const struct offcpu_key *k = &row->key;
	const struct offcpu_value *v = &row->value;
	struct stack_table_end end = { 0 };
	struct cap_sample s = { .tid = k->tid,
		.state = k->state,
		.flags = k->flags,
		.total_ns = v->total_ns,
		.count = v->count,
		.max_ns = v->max_ns,
		.first_ns = v->first_ns,
		.last_ns = v->last_ns,
		.is_split = v->split == v->count,
		.runnable_ns = v->runnable_ns };

	s.proc = process_table_emit(r->procs, k, v->first_ns, false, w);
	s.flags |= process_table_epoch(r->procs, k, v->first_ns, v->last_ns) * CAPTURE_SAMPLE_EPOCH;
	jit_store_see(r->jit, r->procs, r->stacks, k, s.proc, v->first_ns);
	s.kstack = stack_table_emit(r->stacks, CAPTURE_STACK_KERNEL, &k->kernel, w, NULL);
	s.ustack = stack_table_emit(r->stacks, CAPTURE_STACK_USER, &k->user, w, &end);
	if (s.proc == CAPTURE_NONE || s.kstack == CAPTURE_NONE || s.ustack == CAPTURE_NONE) {
		r->lost += v->count;
		r->lost_ns += v->total_ns;
		return;
	}
	cap_outcomes_add(&r->user, end.verdict, end.reason, v->count);
	cap_writer_sample(w, &s);
	if (!is_mapped(r, k, s.proc, s.ustack))
		unmapped(ctx, k->tgid);
	want_names(r, k, &s);
}

/*
 * Write all rows. Calls UNMAPPED for a process that has a user frame where nothing
 * is known to be mapped: it may scan the process again.
 */
static void procrows_write(
	struct procrows *r, struct cap_writer *w, void (*unmapped)(void *ctx, uint32_t tgid), void *ctx)
{
	for (size_t i = 0; i < r->n; i++)
		write_row(r, &r->rows[i], w, unmapped, ctx);
	r->n = 0;
	hashtable_clear(&r->by_key);
}

/*
 * procfs_reported - what a recording by /proc has seen, estimated and missed, as
 * counters of the capture and as text.
 */

/* Waits, and their time. */
struct procfs_reported_sum {
	uint64_t n, ns;
};

struct procfs_reported {
	uint64_t start_ns, now_ns, bytes;
	uint32_t hz;
	uint64_t samples, late, skipped; /* see docs/capture.5 */
	uint64_t sample_ns, sample_max_ns; /* CPU time that they took */
	uint64_t threads, unchecked; /* sampled; of them, without schedstat */
	uint64_t ended; /* threads that ended: what they did since their last sample is not known */
	uint64_t stops, stopped_ns, longest_stop_ns; /* of threads, by --ptrace */
	struct procfs_reported_sum seen, recorded, unwritten, preempted, state, min, max, unseen;
	struct estimator_sums sums;
	/* threads, by the file that could not be read */
	uint64_t no_syscall, no_stack, no_wchan;
	bool ptrace, admin, deepest; /* as for counters_hint() */
	uint64_t no_user_walk; /* how often --ptrace gave no stack; the first one's message: */
	char walk_why[512];
	uint64_t names_overflow;
	/* lost */
	uint64_t beyond; /* threads that the last scan could not add: beyond PROCSET_MAX, or no memory */
	uint64_t children; /* of the targets, at the beginning, not recorded */
	uint64_t unread; /* threads whose files could not be read */
	uint64_t rows_lost, rows_lost_ns;
	struct worker_stats helper, broker;
	struct process_table_stats procs;
	struct stack_table_stats stacks;
	struct cap_outcomes user;
	bool by_table; /* with --ptrace: */
	struct walktables_stats tables;
	bool by_name;
	struct name_requests_stats names;
	const char *degraded; /* "" = nothing */
	const char *privileges; /* what was dropped, kept and confined */
};

/* A lag at the end can make the sum negative. */
static uint64_t whole(uint64_t sum)
{
	return (int64_t)sum < 0 ? 0 : sum;
}

static void add_waits(const struct procfs_reported *t, struct counters *c)
{
	const struct cap_counter all[] = {
		{ "waits.seen", t->seen.n },
		{ "waits.seen_ns", t->seen.ns },
		{ "waits.recorded", t->recorded.n },
		{ "waits.recorded_ns", t->recorded.ns },
		{ "waits.unwritten", t->unwritten.n },
		{ "waits.unwritten_ns", t->unwritten.ns },
		{ "filtered.preempted", t->preempted.n },
		{ "filtered.preempted_ns", t->preempted.ns },
		{ "filtered.state", t->state.n },
		{ "filtered.state_ns", t->state.ns },
		{ "filtered.min", t->min.n },
		{ "filtered.min_ns", t->min.ns },
		{ "filtered.max", t->max.n },
		{ "filtered.max_ns", t->max.ns },
		{ "lost.threads", t->beyond },
		{ "lost.threads_unread", t->unread },
		{ "lost.memory", t->rows_lost },
		{ "lost.memory_ns", t->rows_lost_ns },
		{ "lost.maps", t->procs.maps_lost },
		{ "threads.lives_lost", t->procs.lives_lost },
		{ "helper.requests", t->helper.requested },
		{ "helper.lost", t->helper.lost },
		{ "broker.requests", t->broker.requested },
		{ "broker.lost", t->broker.lost },
		{ "maps.refused", t->procs.maps_refused },
		{ "stacks.distinct", t->stacks.stacks },
		{ "stacks.truncated", t->stacks.truncated },
		{ "names.kernel_missing", t->stacks.kernel_unnamed },
		{ "files.unread", t->procs.files_unread },
		{ "processes", t->procs.images },
		{ "processes.children", t->children },
	};

	counters_add(c, all, ARRAY_LEN(all));
}

static void add_samples(const struct procfs_reported *t, struct counters *c)
{
	const struct cap_counter all[] = {
		{ "procfs.samples", t->samples },
		{ "procfs.samples_late", t->late },
		{ "procfs.samples_skipped", t->skipped },
		{ "procfs.sample_ns", t->sample_ns },
		{ "procfs.sample_max_ns", t->sample_max_ns },
		{ "procfs.threads", t->threads },
		{ "procfs.threads_ended", t->ended },
		{ "procfs.unchecked", t->unchecked },
		{ "procfs.estimated_ns", t->sums.estimated_ns },
		{ "procfs.schedstat_ns", whole(t->sums.schedstat_ns) },
		{ "procfs.unsettled_ns", t->sums.unsettled_ns },
		{ "procfs.unseen", t->unseen.n },
		{ "procfs.unseen_ns", t->unseen.ns },
		{ "procfs.no_syscall", t->no_syscall },
		{ "procfs.no_stack", t->no_stack },
		{ "procfs.no_wait_channel", t->no_wchan },
		{ "procfs.names_overflow", t->names_overflow },
		{ "procfs.stops", t->stops },
		{ "procfs.stopped_ns", t->stopped_ns },
		{ "procfs.longest_stop_ns", t->longest_stop_ns },
		{ "procfs.not_walked", t->no_user_walk },
	};

	counters_add(c, all, ARRAY_LEN(all));
}

/* The same counters as in mode btf. */
static void add_tables(const struct walktables_stats *t, struct counters *c)
{
	const struct cap_counter all[] = {
		{ "unwind.files", t->files },
		{ "unwind.files_failed", t->source.failed },
		{ "unwind.files_bare", t->source.bare },
		{ "unwind.tables_dropped", t->dropped },
		{ "unwind.tables_cached", t->source.cached },
		{ "unwind.worker_lost", t->source.worker_lost },
		{ "unwind.rows", t->rows },
		{ "unwind.bytes", t->bytes },
	};

	counters_add(c, all, ARRAY_LEN(all));
	counters_because(c, "unwind.files_failed", t->source.why);
	counters_because(c, "unwind.worker_lost", t->source.worker_why);
}

static void procfs_reported_counters(const struct procfs_reported *t, struct counters *ret)
{
	*ret = (struct counters){ .user = t->user, .degraded = t->degraded, .privileges = t->privileges };
	add_waits(t, ret);
	add_samples(t, ret);
	counters_hint(ret, t->ptrace, t->admin, t->deepest);
	if (t->by_table)
		add_tables(&t->tables, ret);
	if (t->by_name)
		counters_add_names(ret, &t->names);
	counters_because(ret, "procfs.not_walked", t->walk_why);
}

static void procfs_reported_write(const struct procfs_reported *t, struct cap_writer *w)
{
	struct counters c;

	procfs_reported_counters(t, &c);
	counters_write(&c, w);
}

/* --- as text --- */

static void procfs_reported_progress(struct buf *b, const struct procfs_reported *t)
{
	struct counters c;

	procfs_reported_counters(t, &c);
	counters_put_progress(b, &c, t->now_ns - t->start_ns);
}

static void put_checked(struct buf *b, const struct procfs_reported *t)
{
	const struct cap_mode m = { .sampled = true,
		.checked = t->threads != t->unchecked,
		.hz = t->hz,
		.samples = t->samples,
		.late = t->late,
		.skipped = t->skipped,
		.estimated_ns = t->sums.estimated_ns,
		.schedstat_ns = whole(t->sums.schedstat_ns) };

	buftext_str(b, "  ");
	cap_mode_put(b, &m);
	buftext_str(b, "\n");
}

static void put_cost(struct buf *b, const struct procfs_reported *t)
{
	uint64_t elapsed = MAX(t->now_ns - t->start_ns, 1);

	buftext_printf(b,
		"  a sample took %" PRIu64 " us of CPU time on average, %" PRIu64 " us at most, %" PRIu64
		" %% of a CPU\n",
		t->sample_ns / MAX(t->samples, 1) / 1000, t->sample_max_ns / 1000,
		t->sample_ns * 100 / elapsed);
}

static void procfs_reported_summary(
	struct buf *b, const struct procfs_reported *t, const struct record_text_report *reported)
{
	struct counters c;

	procfs_reported_counters(t, &c);
	record_text_head(b, &c, reported, t->now_ns - t->start_ns, t->bytes);
	put_checked(b, t);
	if (reported->verbose || t->skipped)
		put_cost(b, t);
	counters_put(b, &c, reported->verbose);
}

/*
 * procwalk - user stacks for a recording by /proc with --ptrace: the walker of
 * each process, and the effect of a stop on a thread's account.
 */

/* Count a failure, and keep the message of the first one. */
static bool refuse(struct procfs_reported *reported, const struct err *e)
{
	if (!reported->no_user_walk++)
		snprintf(reported->walk_why, sizeof(reported->walk_why), "%.300s%s%.200s", e->msg,
			e->hint[0] ? "; " : "", e->hint);
	return false;
}

static struct user_stacks *walker(
	const struct thread_memory *r, struct walktables *tables, struct procset_process *p, struct err *e)
{
	struct user_stacks *w = p->walker;

	if (w || p->no_walker) {
		err_set(e, -ESRCH, "the process cannot be traced");
		return w;
	}
	p->no_walker = user_stacks_open(r, tables, p->tgid, &w, e) != 0;
	p->walker = p->no_walker ? NULL : w;
	return p->walker;
}

/* The sample came first: meanwhile the thread may have gone on to wait elsewhere. */
static bool is_there_still(const struct sampler_seen *s, const struct cap_stack *stack)
{
	return !s->has_syscall || !stack->len || stack->frames[0] == s->syscall.pc;
}

/* The copy of the thread that belongs to the sample S; false if there is none. */
static bool copy_of(const struct sampler_seen *s, struct user_stacks_copy *ret)
{
	const struct procparse_syscall *c = &s->syscall;
	const int32_t len = s->copied ? s->copied->stack_len : -ENODATA;

	*ret = (struct user_stacks_copy){ .call = { .number = c->nr, .sp = c->sp, .pc = c->pc },
		.state = s->stat.state };
	if (!s->has_syscall || !(len > 0 || len == -EFAULT))
		return false;
	memcpy(ret->call.args, c->args, sizeof(ret->call.args));
	if (len > 0) {
		ret->from = s->copied->stack_from;
		ret->bytes = s->copied->stack;
		ret->len = (size_t)len;
	}
	return true;
}

/*
 * The user stack of T, which waits where the sample S saw it, read through R and
 * walked by TABLES. The walker owns it, until it walks again. False if there is
 * none, which is counted, or if T waits elsewhere by now: then only what S saw is
 * known.
 */
static bool procwalk_take(const struct thread_memory *r, struct walktables *tables, struct procset_thread *t,
	const struct sampler_seen *s, struct cap_stack *ret, struct procfs_reported *reported)
{
	struct err e = { 0 };
	struct user_stacks *w = walker(r, tables, t->proc, &e);
	struct user_stacks_stats before, after;
	struct user_stacks_copy copy;
	int rc;

	if (!w)
		return refuse(reported, &e);
	user_stacks_stats(w, &before);
	rc = user_stacks_take_copied(w, t->sampled.tid, copy_of(s, &copy) ? &copy : NULL, ret, &e);
	user_stacks_stats(w, &after);
	t->stopped = after.stops != before.stops;
	reported->stops += after.stops - before.stops;
	reported->stopped_ns += after.stopped_ns - before.stopped_ns;
	reported->longest_stop_ns = MAX(reported->longest_stop_ns, after.longest_ns);
	if (rc)
		return refuse(reported, &e);
	return is_there_still(s, ret);
}

static void procwalk_end(struct procset_process *p)
{
	user_stacks_close(p->walker);
	p->walker = NULL;
	p->no_walker = false;
}

/*
 * Was T stopped by the last procwalk_take(), and does it wait again where it did,
 * by the sample S: in the same call, which the kernel may have restarted? To be
 * called once after each sample.
 */
static bool procwalk_waits_on(struct procset_thread *t, const struct sampler_seen *s)
{
	const struct procparse_syscall *was = &t->call, *is = &s->syscall;

	/* a thread that is still on its way back is checked again at the next sample */
	if (!t->stopped || !s->waiting)
		return false;
	t->stopped = false;
	if (!t->has_call || !s->has_syscall)
		return false;
	return was->sp == is->sp && was->pc == is->pc && (was->nr == is->nr || is->nr == SYS_restart_syscall);
}

/*
 * sample_round - rounds of samples of all threads of a recording by /proc: which
 * threads exist, what each did, and which waits that makes.
 */

/* The caller owns the pointers, which must outlive it. sample_round_init() sets the fields below them. */
struct sample_round {
	const struct recorder_opts *o;
	struct thread_memory reach; /* how other processes are read, */
	struct walktables *tables; /* and with --ptrace how their user stacks are walked; else NULL */
	struct process_table *procs;
	struct procthreads *threads;
	struct kernel_stacks *places;
	struct procrows *rows; /* where waits go */
	struct procfs_reported *reported; /* and counts */
	struct procset set;
	struct sampler sampler;
	struct procset_thread *ran[HELPER_THREADS]; /* threads whose files are to be requested */
	size_t n_ran;
	uint64_t period_ns; /* between samples, as requested */
	uint64_t cost_ns; /* CPU time of the last round */
	uint64_t scan_due_ns; /* when to scan for threads next, */
	uint64_t scanned_ns; /* and when that was done last; 0 = never */
	uint64_t since_ns; /* waits that are found now began after this */
	uint64_t boot_ahead_ns; /* CLOCK_BOOTTIME - CLOCK_MONOTONIC */
	struct cap_stack walked; /* by --ptrace, of the current thread; no frames = it was not */
	uint64_t began_ns; /* the current round */
	bool last; /* this is the last round */
	bool baseline; /* threads that are found now existed before */
};

#define SECOND_NS UINT64_C(1000000000)
#define SCAN_SHARE 20 /* scanning for new threads takes a twentieth of a CPU at most */
#define STATE_UNKNOWN 0x80000000u /* no sample saw it: see docs/capture.5 */

/* --- waits --- */

struct whose {
	struct sample_round *r;
	const struct procset_thread *t;
};

static void count(struct procfs_reported_sum *sum, uint64_t n, uint64_t ns)
{
	sum->n += n;
	sum->ns += ns;
}

static bool state_wanted(uint32_t mask, uint32_t state)
{
	const uint32_t noload = 0x400; /* of state I, which D does not include */

	return !mask || (state & (state & noload ? mask & noload : mask));
}

/* The sum that counts waits excluded by their state or average length; NULL = they are recorded. */
static struct procfs_reported_sum *filtered(
	struct sample_round *r, const struct offcpu_key *key, const struct offcpu_value *v)
{
	const struct offcpu_opts *o = &r->o->bpf;
	uint64_t each = v->total_ns / v->count;

	if (key->flags & CAPTURE_SAMPLE_PREEMPTED) {
		if (!o->preempted)
			return &r->reported->preempted;
	} else if (!state_wanted(o->state_mask, key->state)) {
		return &r->reported->state;
	}
	if (each < o->min_ns)
		return &r->reported->min;
	return o->max_ns && each > o->max_ns ? &r->reported->max : NULL;
}

static void take(const struct whose *w, struct offcpu_key *key, const struct offcpu_value *v)
{
	struct procfs_reported_sum *out;

	key->tgid = w->t->sampled.pid;
	key->tid = w->t->sampled.tid;
	key->start_boot_ns = w->t->proc->start_boot_ns;
	key->exec_id = w->t->proc->exec_id;
	count(&w->r->reported->seen, v->count, v->total_ns);
	out = filtered(w->r, key, v);
	count(out ? out : &w->r->reported->unwritten, v->count, v->total_ns);
	if (!out)
		procrows_add(w->r->rows, key, v);
}

static void take_done(void *ctx, const struct estimator_done *d)
{
	const struct whose *w = ctx;
	struct offcpu_key key = { .state = STATE_UNKNOWN };
	/* the account counts apart how long it was runnable */
	const struct offcpu_value v = { d->total_ns, d->count, d->max_ns, d->first_ns, d->last_ns, 0,
		w->t->wait.has_account ? d->count : 0 };

	key.flags = (d->open ? CAPTURE_SAMPLE_OPEN : 0) | (d->initial ? CAPTURE_SAMPLE_INITIAL : 0);
	if (d->place) {
		key.state = d->place->state;
		key.kernel = (struct offcpu_stack_id){ d->place->kernel[0], d->place->kernel[1] };
		key.user = (struct offcpu_stack_id){ d->place->user[0], d->place->user[1] };
	} else {
		kernel_stacks_named(w->r->places, "not seen waiting", &key.kernel);
		kernel_stacks_between(w->r->places, &key.user);
		count(&w->r->reported->unseen, d->count, d->total_ns);
	}
	take(w, &key, &v);
}

static void take_delayed(void *ctx, uint64_t n, uint64_t ns, uint64_t until_ns)
{
	const struct whose *w = ctx;
	struct offcpu_key key = { .flags = CAPTURE_SAMPLE_PREEMPTED };
	uint64_t from_ns = until_ns - MIN(ns, until_ns);
	const struct offcpu_value v = { ns, n, ns / n, from_ns, from_ns, ns, n };

	kernel_stacks_named(w->r->places, "waiting for a CPU", &key.kernel);
	kernel_stacks_between(w->r->places, &key.user);
	take(w, &key, &v);
}

/* --- threads --- */

/* Ticks since the machine started, as nanoseconds. */
static uint64_t ticks_ns(uint64_t ticks)
{
	long hz = sysconf(_SC_CLK_TCK);

	return hz > 0 && ticks < UINT64_MAX / SECOND_NS ? ticks * (SECOND_NS / (uint64_t)hz) : 0;
}

static void announce(struct sample_round *r, struct procset_thread *t)
{
	const struct procparse_status *st = &t->sampled.status;
	struct offcpu_ev_thread ev = { .type = OFFCPU_EV_THREAD,
		.task_flags = t->proc->kthread ? 0x00200000 : 0, /* PF_KTHREAD */
		.tgid = t->sampled.pid,
		.tid = t->sampled.tid,
		.ns_tgid = st->ns_tgid ? st->ns_tgid : t->sampled.pid,
		.ns_tid = st->ns_tid ? st->ns_tid : t->sampled.tid,
		.start_boot_ns = t->proc->start_boot_ns,
		.exec_id = t->proc->exec_id };

	memcpy(ev.comm, t->comm, sizeof(ev.comm));
	process_table_announce(r->procs, &ev);
}

/* What T did up to its last sample is to be written, if it is known. */
static void take_life(struct sample_round *r, struct procset_thread *t)
{
	const struct procparse_status *st = &t->sampled.status;
	struct offcpu_ev_life ev = { .ns_tid = st->ns_tid ? st->ns_tid : t->sampled.tid,
		.key = { .tgid = t->sampled.pid,
			.tid = t->sampled.tid,
			.start_boot_ns = t->proc->start_boot_ns,
			.exec_id = t->proc->exec_id } };
	struct estimator_life life;

	if (!estimator_life(&t->wait, &life))
		return;
	ev.life = (struct offcpu_life){ life.from_ns, life.to_ns, life.run_ns, life.delay_ns, 0 };
	memcpy(ev.comm, t->comm, sizeof(ev.comm));
	process_table_life(r->procs, &ev);
}

/* P is another image now, or was not known before. */
static void scan_image(struct sample_round *r, struct procset_process *p)
{
	p->scanned_ns = p->rescanned_ns = now_ns();
	process_table_scan(r->procs, p->tgid, r->since_ns, NULL);
	process_table_identify(r->procs, p->tgid, p->exec_id, p->start_boot_ns);
}

static void new_process(struct sample_round *r, struct procset_process *p)
{
	struct procparse_stat st;

	if (!procthreads_stat(r->threads, p->tgid, &st))
		return;
	p->start_boot_ns = ticks_ns(st.start_ticks);
	p->image = st.image;
	p->kthread = st.kthread;
	if (p->kthread)
		return;
	scan_image(r, p);
}

static void end_process(void *ctx, struct procset_process *p)
{
	struct sample_round *r = ctx;
	const struct procevent ev = {
		.type = PROCEVENT_EXIT, .pid = p->tgid, .tid = p->tgid, .time_ns = now_ns()
	};

	procwalk_end(p);
	if (r->procs)
		process_table_event(r->procs, &ev);
}

static void on_thread(void *ctx, uint32_t pid, uint32_t tid)
{
	struct sample_round *r = ctx;
	struct procset_thread *t;

	if (procset_find(&r->set, pid, tid))
		return;
	t = procset_add(&r->set, pid, tid);
	if (!t) {
		r->reported->beyond++;
		return;
	}
	r->reported->threads++;
	if (t->proc->n_threads == 1)
		new_process(r, t->proc);
}

static uint64_t cpu_ns(const struct sample_round *r)
{
	return now_on(CLOCK_THREAD_CPUTIME_ID) + helper_cpu_ns(r->sampler.helper);
}

/* CPU time since cpu_ns() returned CPU. */
static uint64_t spent_ns(const struct sample_round *r, uint64_t cpu)
{
	uint64_t now = cpu_ns(r);

	/* when the helper ends, its CPU time is no longer included */
	return now - MIN(cpu, now);
}

/*
 * Find out which threads exist, as often as that takes no more than its share of a
 * CPU. Only CPU time counts, not the time that other processes took from the scan:
 * else, on a busy machine, the next scan would come a second later.
 */
static void scan(struct sample_round *r)
{
	uint64_t began = now_ns(), cpu = cpu_ns(r);

	r->reported->beyond = 0;
	procthreads_scan(r->threads, on_thread, r);
	r->scan_due_ns = began + MIN(spent_ns(r, cpu) * SCAN_SHARE, SECOND_NS);
}

static void forget(struct sample_round *r, size_t at)
{
	struct procset_thread *t = r->set.threads[at];
	struct whose whose = { r, t };
	const struct estimator_sink sink = { &whose, take_done, take_delayed };

	take_life(r, t);
	estimator_end(&t->wait, false, &sink, &r->reported->sums);
	sampler_forget(&r->sampler, &t->sampled);
	procset_remove(&r->set, at);
	r->reported->ended++;
}

/* --- a sample --- */

/* Count the files that could not be read, once for each thread. */
static void count_refused(struct sample_round *r, struct procset_thread *t, const struct sampler_seen *s)
{
	if (t->reported)
		return;
	t->reported = true;
	r->reported->unchecked += !s->has_schedstat;
	r->reported->no_syscall += t->sampled.refused[PROCFILE_SYSCALL] != 0;
	r->reported->no_wchan += t->sampled.refused[PROCFILE_WCHAN] != 0;
	r->reported->no_stack += t->sampled.refused[PROCFILE_STACK] && !t->sampled.refused[PROCFILE_SYSCALL];
}

static void on_exec(struct sample_round *r, struct procset_thread *t, const struct procparse_stat *st)
{
	const struct procevent ev = { .type = PROCEVENT_EXEC,
		.pid = t->sampled.pid,
		.tid = t->sampled.tid,
		.time_ns = r->since_ns,
		.text = st->comm };

	t->proc->exec_id++;
	procwalk_end(t->proc);
	process_table_event(r->procs, &ev);
	scan_image(r, t->proc);
}

/* Note changes of its name and of its process's image. Call it after its last wait was handed out. */
static void note_changes(struct sample_round *r, struct procset_thread *t, const struct procparse_stat *st,
	const struct estimator_sink *sink)
{
	bool exec = st->image && t->proc->image && st->image != t->proc->image;

	/* in the middle of an exec: it will run before it waits again, and is read then */
	if (st->image == PROCPARSE_NO_IMAGE)
		return;
	if (exec) {
		/* the thread that did it has this number now: of several, it may have been any */
		if (t->proc->n_threads == 1)
			take_life(r, t);
		else
			estimator_life(&t->wait, &(struct estimator_life){ 0 });
		estimator_exec(&t->wait, sink);
		on_exec(r, t, st);
	}
	if (st->image)
		t->proc->image = st->image;
	if (!exec && strcmp(t->comm, st->comm) == 0)
		return;
	memcpy(t->comm, st->comm, sizeof(t->comm));
	announce(r, t);
}

/* Find where T waits. It has run since the last sample. */
static void find_place(struct sample_round *r, struct procset_thread *t, const struct sampler_seen *s)
{
	bool kthread = s->stat.kthread, walk = r->tables && !kthread;
	struct offcpu_stack_id kernel, user;

	kernel_stacks_kernel(r->places, s, &kernel);
	if (walk && procwalk_take(&r->reach, r->tables, t, s, &r->walked, r->reported)) {
		kernel_stacks_walked(r->places, &r->walked, &user);
	} else {
		r->walked.len = 0;
		kernel_stacks_user(r->places, s, kthread, t->sampled.refused[PROCFILE_SYSCALL], &user);
	}
	t->place = (struct estimator_place){ .kernel = { kernel.hi, kernel.lo },
		.user = { user.hi, user.lo },
		.state = sampler_state(s->stat.state) };
}

/*
 * Read the mappings of P's image again, because a program that has just begun is
 * still mapping its libraries. Not until as much time has passed since the last
 * scan as between the first and the last one, or a second.
 */
static void rescan(struct sample_round *r, struct procset_process *p)
{
	uint64_t now = now_ns();

	if (p->kthread || now - p->rescanned_ns < MIN(SECOND_NS, p->rescanned_ns - p->scanned_ns))
		return;
	p->rescanned_ns = now;
	process_table_rescan(r->procs, p->tgid, r->since_ns, NULL);
}

/* The mappings of T's frames have to be read while its process lives. */
static void know_frames(struct sample_round *r, struct procset_thread *t, const struct sampler_seen *s)
{
	const uint64_t *frames = r->walked.len ? r->walked.frames : &s->syscall.pc;
	uint32_t n = r->walked.len ? r->walked.len : s->has_syscall;

	if (t->proc->kthread || r->o->bpf.no_user_stacks)
		return;
	for (uint32_t i = 0; i < n; i++) {
		if (process_table_covers(r->procs, t->proc->tgid, frames[i]))
			continue;
		rescan(r, t->proc);
		return;
	}
}

/*
 * With many threads, a round takes a large part of a short recording. So in the
 * last round, all threads count as sampled when the round began; in the first
 * one, so do threads that have not run since the sample before.
 */
static uint64_t time_of(const struct sample_round *r, const struct sampler_seen *s)
{
	return r->last || (r->baseline && s->same) ? MIN(r->began_ns, s->at_ns) : s->at_ns;
}

static struct estimator_sample account_of(
	const struct sample_round *r, const struct procset_thread *t, const struct sampler_seen *s)
{
	return (struct estimator_sample){ .at_ns = time_of(r, s),
		.has_account = s->has_schedstat,
		.run_ns = s->sched.run_ns,
		.delay_ns = s->sched.delay_ns,
		.slices = s->sched.slices,
		.voluntary = s->status.voluntary,
		.same = s->same,
		.waiting = s->same ? t->wait.waiting : s->waiting,
		.place = t->place };
}

/*
 * A thread that began during the recording had done nothing when it began. One that existed already at the
 * scan before is recorded since now.
 */
static void begin_thread(struct sample_round *r, struct procset_thread *t, const struct sampler_seen *s)
{
	uint64_t began = ticks_ns(s->stat.start_ticks);

	t->start_ticks = s->stat.start_ticks;
	memcpy(t->comm, s->stat.comm, sizeof(t->comm));
	announce(r, t);
	began -= MIN(r->boot_ahead_ns, began);
	if (r->baseline || began + ticks_ns(1) < r->scanned_ns)
		return;
	estimator_born(&t->wait, MIN(MAX(began, r->scanned_ns), time_of(r, s)));
}

/* Count the sample S of T. False if T's number belongs to another thread by now. */
static bool take_sample(struct sample_round *r, struct procset_thread *t, const struct sampler_seen *s)
{
	struct whose whose = { r, t };
	const struct estimator_sink sink = { &whose, take_done, take_delayed };
	struct estimator_sample sampled;
	bool again;

	if (!s->first && !s->same && s->stat.start_ticks != t->start_ticks)
		return false;
	if (s->first)
		begin_thread(r, t, s);
	again = !s->same && procwalk_waits_on(t, s);
	if (!s->same && !again && s->waiting)
		find_place(r, t, s);
	if (!s->same && s->waiting)
		count_refused(r, t, s);
	if (!s->same && s->waiting) {
		t->has_call = s->has_syscall;
		t->call = s->syscall;
	}
	sampled = account_of(r, t, s);
	if (r->baseline)
		t->wait = (struct estimator){ 0 };
	if (again && !r->baseline)
		estimator_disturbed(&t->wait, &sampled, &r->reported->sums);
	else
		estimator_sample(&t->wait, &sampled, &sink, &r->reported->sums);
	if (!s->same)
		note_changes(r, t, &s->stat, &sink);
	if (!s->same && !again && s->waiting)
		know_frames(r, t, s);
	return true;
}

/* T was sampled, which gave RC and S. */
static void on_sample(struct sample_round *r, struct procset_thread *t, const struct sampler_seen *s, int rc)
{
	if (!rc) {
		t->gone = !take_sample(r, t, s);
	} else if (rc == -ESRCH) {
		t->gone = true;
	} else {
		r->reported->unread += !t->unreadable;
		t->unreadable = true;
	}
}

/* Take the samples of the threads that have run. */
static void sample_ran(struct sample_round *r)
{
	struct sampler_thread *threads[HELPER_THREADS];
	struct sampler_seen s;
	size_t n;

	for (size_t i = 0; i < r->n_ran; i++)
		threads[i] = &r->ran[i]->sampled;
	for (size_t done = 0; done < r->n_ran; done += n) {
		n = sampler_request(&r->sampler, threads + done, r->n_ran - done);
		for (size_t i = 0; i < n; i++) {
			int rc = sampler_requested(&r->sampler, i, threads[done + i], &s, NULL);

			on_sample(r, r->ran[done + i], &s, rc);
		}
	}
	r->n_ran = 0;
}

/* Sample T: now, or with those of `ran`. */
static void sample_thread(struct sample_round *r, struct procset_thread *t)
{
	struct sampler_seen s;
	int rc = sampler_take(&r->sampler, &t->sampled, &s, NULL);

	if (rc != SAMPLER_RAN) {
		on_sample(r, t, &s, rc);
		return;
	}
	r->ran[r->n_ran++] = t;
	if (r->n_ran == ARRAY_LEN(r->ran))
		sample_ran(r);
}

static void sample_round_take(struct sample_round *r)
{
	uint64_t began = now_ns(), cpu = cpu_ns(r);
	bool fresh = began >= r->scan_due_ns;

	r->began_ns = began;
	/* the estimated begin of a wait is early by up to the time between two samples */
	r->since_ns = MIN(r->scanned_ns ? r->scanned_ns : began, began - 2 * r->period_ns);
	if (fresh)
		scan(r);
	for (size_t i = r->set.n; i-- > 0;)
		sample_thread(r, r->set.threads[i]);
	sample_ran(r);
	for (size_t i = r->set.n; i-- > 0;)
		if (r->set.threads[i]->gone)
			forget(r, i);
	if (fresh)
		r->scanned_ns = began;
	r->baseline = false;
	r->reported->samples++;
	r->cost_ns = spent_ns(r, cpu);
	r->reported->sample_ns += r->cost_ns;
	r->reported->sample_max_ns = MAX(r->reported->sample_max_ns, r->cost_ns);
}

/* The last round, which counts as made in an instant. Returns when it began. */
static uint64_t sample_round_last(struct sample_round *r)
{
	r->last = true;
	sample_round_take(r);
	return r->began_ns;
}

/* --- interface --- */

static void sample_round_init(struct sample_round *r, unsigned int wanted)
{
	r->period_ns = SECOND_NS / MAX(r->o->hz, 1);
	r->set = (struct procset){ .end = end_process, .ctx = r };
	/* on a machine that was never suspended the clocks are equal; in this order, not negative */
	r->boot_ahead_ns = now_ns();
	r->boot_ahead_ns = now_on(CLOCK_BOOTTIME) - r->boot_ahead_ns;
	sampler_init(&r->sampler, wanted, r->tables != NULL, r->reach.helper);
}

static void sample_round_release(struct sample_round *r)
{
	for (size_t i = 0; i < r->set.n; i++)
		sampler_forget(&r->sampler, &r->set.threads[i]->sampled);
	procset_free(&r->set);
}

/* Threads that the next round finds existed before. All of them count from that round on. */
static void sample_round_before(struct sample_round *r)
{
	r->baseline = true;
	r->scan_due_ns = 0;
}

/* Process PID, the command, begins now and counts from here on. */
static void sample_round_command(struct sample_round *r, uint32_t pid)
{
	struct procset_thread *t;

	on_thread(r, pid, pid);
	t = procset_find(&r->set, pid, pid);
	r->scanned_ns = now_ns();
	r->since_ns = r->scanned_ns - 2 * r->period_ns;
	r->scan_due_ns = 0;
	if (!t)
		return;
	r->baseline = true;
	sample_thread(r, t);
	sample_ran(r);
	r->baseline = false;
	/* being held until it may run is not a wait of its own; any other wait began since its exec */
	if (t->place.state == sampler_state('t'))
		t->wait.current = t->wait.waiting = false;
	t->wait.initial = false;
}

/* Process TGID has a user frame where nothing is known to be mapped: read its mappings, but not too often. */
static void sample_round_rescan(struct sample_round *r, uint32_t tgid)
{
	struct procset_process *p = procset_process(&r->set, tgid);

	if (p)
		rescan(r, p);
}

/* The recording ends: hand out every open wait as it is now. */
static void sample_round_end(struct sample_round *r)
{
	for (size_t i = 0; i < r->set.n; i++) {
		struct whose whose = { r, r->set.threads[i] };
		const struct estimator_sink sink = { &whose, take_done, take_delayed };

		take_life(r, r->set.threads[i]);
		estimator_end(&r->set.threads[i]->wait, true, &sink, &r->reported->sums);
	}
}

#define FRAMES_KEPT (UINT64_C(64) << 20) /* bytes of stacks that other processes may have too */
#define NAMES_NS UINT64_C(2000000000) /* how long a recording waits for names at its end */
#define OPEN_NS UINT64_C(4000000000) /* and for files that are to be opened */

struct procfs_session {
	const struct recorder_opts *o;
	struct cap_writer *out;
	struct stack_table *stacks;
	struct process_table *procs;
	struct name_requests *names; /* NULL = none are stored */
	struct name_store *namer;
	struct jit_store *jit;
	struct kallsyms *ks;
	int kallsyms; /* opened with privileges; -1 = unavailable */
	struct procthreads *threads;
	struct kernel_stacks *places;
	struct procrows rows;
	struct procfs_reported reported;
	struct sample_round round;
	struct procfs_priv priv;
	struct walktables *tables; /* NULL = user stacks are not walked */
	uint64_t due_ns, flush_ns;
	uint64_t planned_ns; /* when due_ns was set */
	int64_t credit_ns; /* CPU time that sampling may take at once; below 0: it took too much */
	uint64_t stop_ns;
	bool all;
	char degraded[1024];
	char privileges[512];
};

static void degrade(struct procfs_session *r, const char *what, const struct err *e)
{
	size_t len = strlen(r->degraded);

	snprintf(r->degraded + len, sizeof(r->degraded) - len, "%s%s%s%s%s%s", len ? "; " : "", what,
		e ? ": " : "", e ? e->msg : "", e && e->hint[0] ? "; " : "", e ? e->hint : "");
}

/* CPU time by which one sample, or a few in turn, may exceed their share. */
#define CREDIT_NS 50000000

/*
 * Set when the next sample is due. Samples for which there is no time are skipped: sampling takes at most
 * half of the time, not of each period, as some samples take longer than others.
 */
static void plan(struct procfs_session *r, uint64_t began)
{
	uint64_t now = now_ns(), earliest = now, n;

	r->credit_ns += (int64_t)(now - r->planned_ns) / 2;
	r->credit_ns = MIN(r->credit_ns, CREDIT_NS) - (int64_t)r->round.cost_ns;
	r->planned_ns = now;
	if (r->credit_ns < 0)
		earliest += 2 * (uint64_t)-r->credit_ns;
	r->reported.late += began - r->due_ns > r->round.period_ns / 2;
	r->due_ns += r->round.period_ns;
	if (r->due_ns >= earliest)
		return;
	n = (earliest - r->due_ns + r->round.period_ns - 1) / r->round.period_ns;
	r->reported.skipped += n;
	r->due_ns += n * r->round.period_ns;
}

/* --- the capture --- */

static void rescan_process(void *ctx, uint32_t tgid)
{
	struct procfs_session *r = ctx;

	sample_round_rescan(&r->round, tgid);
}

/* Report that the helper or the broker has ended: counters alone do not say when. */
static void miss(struct procfs_session *r)
{
	struct err why;

	helper_stats(r->priv.helper, &r->reported.helper);
	worker_stats(r->priv.broker, &r->reported.broker);
	if (!procfs_priv_missed(&r->priv, &why))
		return;
	degrade(r, "other users' threads: limited to your own permissions", &why);
	cap_writer_option(r->out, &(struct cap_option){ "helper", why.msg });
}

/* What was to be recorded is in the capture by now, or lost, or comes with the next flush. */
static void count_written(struct procfs_session *r)
{
	struct procfs_reported *t = &r->reported;
	const struct procfs_reported_sum before = { t->recorded.n + t->rows_lost,
		t->recorded.ns + t->rows_lost_ns };

	cap_writer_waits(r->out, &t->recorded.n, &t->recorded.ns);
	t->rows_lost = r->rows.lost;
	t->rows_lost_ns = r->rows.lost_ns;
	t->unwritten.n -= t->recorded.n + t->rows_lost - before.n;
	t->unwritten.ns -= t->recorded.ns + t->rows_lost_ns - before.ns;
}

static void bring_up(struct procfs_session *r)
{
	struct procfs_reported *t = &r->reported;

	t->now_ns = r->stop_ns ? r->stop_ns : now_ns();
	t->bytes = cap_writer_bytes(r->out);
	count_written(r);
	t->user = r->rows.user;
	t->names_overflow = kernel_stacks_overflow(r->places);
	process_table_stats(r->procs, &t->procs);
	stack_table_stats(r->stacks, &t->stacks);
	t->by_name = r->namer != NULL;
	if (r->namer)
		name_store_stats(r->namer, &t->names);
	t->by_table = r->tables != NULL;
	if (r->tables)
		walktables_stats(r->tables, &t->tables);
	miss(r);
	t->degraded = r->degraded;
	t->privileges = r->privileges;
}

static int flush(struct procfs_session *r, struct err *e)
{
	procrows_write(&r->rows, r->out, rescan_process, r);
	process_table_write_lives(r->procs, false, r->out);
	kernel_stacks_write(r->places, r->out);
	process_table_flush(r->procs, now_ns(), r->out);
	bring_up(r);
	procfs_reported_write(&r->reported, r->out);
	return cap_writer_flush(r->out, now_ns(), e);
}

static void write_options(struct procfs_session *r)
{
	const struct recorder_opts *o = r->o;
	char number[32];

	snprintf(number, sizeof(number), "%u", o->hz);
	cap_writer_option(r->out, &(struct cap_option){ "frequency", number });
	record_options_write(r->out, o,
		o->bpf.no_user_stacks ? "none"
		: o->ptrace           ? "ptrace"
				      : "pc",
		r->degraded);
}

/* --- the recording --- */

/* Report the limits of this mode for the requested options. */
static void check_options(struct procfs_session *r, const struct recorder_opts *o)
{
	if (o->unwind != RECORDER_UNWIND_AUTO && !o->bpf.no_user_stacks)
		degrade(r, "user stacks are not walked as --unwind says, for that takes BPF", NULL);
	if (o->ptrace && !o->bpf.no_user_stacks)
		degrade(r, "--ptrace stops a thread for a moment where its stack cannot be read otherwise",
			NULL);
	if (!o->ptrace && !o->bpf.no_user_stacks)
		degrade(r,
			"of user stacks there is the program counter alone; --ptrace walks those of your own "
			"processes",
			NULL);
	if (procthreads_hidden() && (r->all || o->bpf.follow))
		degrade(r,
			"/proc hides the processes of other users (hidepid); root, and the group that its "
			"option gid= names, see them",
			NULL);
}

/* The last step with privileges. */
static int drop(struct procfs_session *r, struct err *e)
{
	const struct recorder_opts *o = r->o;
	struct buf b = { 0 };
	struct err why;
	bool walk = o->ptrace && !o->bpf.no_user_stacks;
	int rc = walk ? walktables_open(&(struct walktables_opts){ 0 }, &r->tables, e) : 0;

	rc = rc ? rc : procfs_priv_drop(&r->priv, walk, &why, e);
	if (rc)
		return rc;
	if (why.msg[0])
		degrade(r, "other users' threads: limited to your own permissions", &why);
	procfs_priv_put(&r->priv, &b);
	snprintf(r->privileges, sizeof(r->privileges), "%.*s", (int)b.len, b.p ? (const char *)b.p : "");
	buf_free(&b);
	cap_writer_option(r->out, &(struct cap_option){ "privileges", r->privileges });
	return 0;
}

/* Addresses of kernel functions are useless if stacks may not be read. */
static void read_symbols(struct procfs_session *r)
{
	char text[64];
	_cleanup_close_ int fd = open("/proc/self/stack", O_RDONLY | O_CLOEXEC);
	struct err why;

	if (r->o->bpf.no_kernel_stacks || r->o->mask_kernel || fd < 0 || read(fd, text, sizeof(text)) < 0)
		return;
	r->kallsyms = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	if (kallsyms_load(NULL, &r->ks, &why) != 0)
		degrade(r, "kernel frames are names without addresses", &why);
}

static int open_tables(struct procfs_session *r, struct err *e)
{
	const struct recorder_opts *o = r->o;
	const struct procthreads_opts to = { .all = o->bpf.all,
		.no = { helper_pid(r->priv.helper), worker_pid(r->priv.broker),
			(uint32_t)walktables_worker(r->tables), walktables_store(r->tables) },
		.kthreads = o->bpf.kthreads,
		.follow = o->bpf.follow,
		.pids = o->pids,
		.n_pids = o->n_pids,
		.tids = o->tids,
		.n_tids = o->n_tids,
		.comms = o->comms,
		.n_comms = o->n_comms,
		.helper = r->priv.helper,
		.in = o->in };
	struct kernel_stacks_opts so = { .no_kernel = o->bpf.no_kernel_stacks,
		.no_user = o->bpf.no_user_stacks };
	int rc = stack_table_new(o->bpf.depth ? o->bpf.depth : 127, &r->stacks, e);

	rc = rc ? rc : process_table_new(false, false, &r->procs, e);
	if (!rc)
		process_table_broker(r->procs, r->priv.broker);
	rc = rc ? rc : procthreads_open(&to, &r->threads, e);
	so.ks = r->ks;
	rc = rc ? rc : kernel_stacks_new(&so, r->stacks, &r->places, e);
	if (rc || o->no_symbols || o->bpf.no_user_stacks)
		return rc;
	rc = name_requests_new(&r->names, e);
	rc = rc ? rc : jit_store_new(&r->jit, e);
	if (!rc)
		jit_store_broker(r->jit, r->priv.broker);
	return rc;
}

static unsigned int files_wanted(const struct recorder_opts *o)
{
	unsigned int kernel = 1u << PROCFILE_STACK | 1u << PROCFILE_WCHAN;

	return 1u << PROCFILE_SYSCALL | (o->bpf.no_kernel_stacks ? 0 : kernel);
}

int procfs_session_open(const struct recorder_opts *opts, struct procfs_session **ret, struct err *e)
{
	struct procfs_session *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return err_nomem(e, "the recorder");
	r->o = opts;
	r->kallsyms = -1;
	r->all = opts->bpf.all || opts->n_comms;
	r->reported.hz = opts->hz;
	r->reported.ptrace = priv_have(CAP_SYS_PTRACE);
	r->reported.admin = priv_have(CAP_SYS_ADMIN);
	r->reported.deepest = opts->bpf.depth >= OFFCPU_DEPTH_MAX;
	r->reported.degraded = "";
	rc = opts->bpf.owner_only ? procfs_priv_renounce(e) : 0;
	check_options(r, opts);
	if (!rc)
		read_symbols(r);
	rc = rc ? rc : cap_writer_open(opts->path, opts->force, &r->out, e);
	rc = rc ? rc : drop(r, e);
	rc = rc ? rc : open_tables(r, e);
	if (!rc && r->names)
		rc = name_store_new(r->names, process_table_files(r->procs), r->out, &r->namer, e);
	if (rc) {
		procfs_session_close(r);
		return rc;
	}
	r->rows.procs = r->procs;
	r->rows.stacks = r->stacks;
	r->rows.names = r->names;
	r->rows.jit = r->jit;
	stack_table_symbols(r->stacks, r->ks);
	stack_table_keep(r->stacks, FRAMES_KEPT);
	r->round = (struct sample_round){ .o = opts,
		.reach = { r->priv.helper, r->priv.broker },
		.tables = r->tables,
		.procs = r->procs,
		.threads = r->threads,
		.places = r->places,
		.rows = &r->rows,
		.reported = &r->reported };
	sample_round_init(&r->round, files_wanted(opts));
	write_options(r);
	*ret = r;
	return 0;
}

void procfs_session_close(struct procfs_session *r)
{
	if (!r)
		return;
	sample_round_release(&r->round);
	walktables_close(r->tables);
	name_store_free(r->namer);
	procrows_free(&r->rows);
	kernel_stacks_free(r->places);
	procthreads_close(r->threads);
	jit_store_free(r->jit);
	process_table_free(r->procs);
	stack_table_free(r->stacks);
	name_requests_free(r->names);
	cap_writer_close(r->out);
	kallsyms_free(r->ks);
	if (r->kallsyms >= 0)
		close(r->kallsyms);
	procfs_priv_close(&r->priv);
	free(r);
}

int procfs_session_start(struct procfs_session *r, struct err *e)
{
	r->reported.children = record_options_children(r->o);
	/* the first round is slow, because it opens all files and reads mappings: only the second counts */
	sample_round_before(&r->round);
	sample_round_take(&r->round);
	r->reported.samples = r->reported.sample_ns = r->reported.sample_max_ns = 0;
	r->reported.start_ns = r->due_ns = now_ns();
	r->flush_ns = r->due_ns + SECOND_NS;
	if (r->o->duration_ns != UINT64_MAX)
		worker_limit(r->priv.broker, r->due_ns + r->o->duration_ns + OPEN_NS);
	sample_round_before(&r->round);
	sample_round_take(&r->round);
	plan(r, r->due_ns);
	return cap_host_write(r->out, r->reported.start_ns, r->kallsyms, r->o->mask_kernel, e);
}

int procfs_session_command(struct procfs_session *r, uint32_t pid, struct err *e)
{
	int rc = procthreads_add(r->threads, pid, e);

	sample_round_command(&r->round, pid);
	r->due_ns = now_ns();
	return rc;
}

uint64_t procfs_session_timeout_ns(const struct procfs_session *r)
{
	uint64_t now = now_ns();

	return r->due_ns <= now ? 0 : r->due_ns - now;
}

int procfs_session_service(struct procfs_session *r, struct err *e)
{
	uint64_t now = now_ns();
	int rc;

	if (now < r->due_ns)
		return 0;
	sample_round_take(&r->round);
	plan(r, now);
	rc = cap_writer_service(r->out, e);
	/* while a pipe is not read, sums go on */
	if (rc || now < r->flush_ns || cap_writer_behind(r->out))
		return rc;
	while (r->flush_ns <= now)
		r->flush_ns += SECOND_NS;
	jit_store_poll(r->jit, now);
	rc = flush(r, e);
	/* if every process is recorded, the process that looks up names would be too */
	if (r->namer && !r->all)
		name_store_service(r->namer);
	return rc;
}

int procfs_session_stop(struct procfs_session *r, const char *why, struct err *e)
{
	int rc;

	r->stop_ns = sample_round_last(&r->round);
	sample_round_end(&r->round);
	rc = flush(r, e);
	if (!rc && r->namer) {
		worker_limit(r->priv.broker, now_ns() + OPEN_NS);
		jit_store_write(r->jit, r->out);
		name_store_finish(r->namer, NAMES_NS);
		bring_up(r);
		procfs_reported_write(&r->reported, r->out);
	}
	return rc ? rc
		  : cap_writer_finish(r->out, &(struct cap_trailer){ .stop_ns = r->stop_ns, .why = why }, e);
}

bool procfs_session_comm_seen(const struct procfs_session *r, const char *comm)
{
	return procthreads_comm_seen(r->threads, comm);
}

void procfs_session_stats(const struct procfs_session *r, struct procfs_session_stats *ret)
{
	struct counters c;

	procfs_reported_counters(&r->reported, &c);
	*ret = (struct procfs_session_stats){ .start_ns = r->reported.start_ns,
		.now_ns = r->stop_ns ? r->stop_ns : now_ns(),
		.bytes = cap_writer_bytes(r->out),
		.place = cap_writer_place(r->out),
		.lost = counters_lost(&c) };
}

void procfs_session_progress(const struct procfs_session *r, struct buf *b)
{
	struct procfs_reported t = r->reported;

	t.now_ns = now_ns();
	stack_table_stats(r->stacks, &t.stacks);
	process_table_stats(r->procs, &t.procs);
	procfs_reported_progress(b, &t);
}

void procfs_session_summary(
	const struct procfs_session *r, const struct record_text_report *reported, struct buf *b)
{
	struct procfs_reported t = r->reported;

	t.bytes = cap_writer_bytes(r->out);
	t.now_ns = r->stop_ns ? r->stop_ns : now_ns();
	procfs_reported_summary(b, &t, reported);
}
