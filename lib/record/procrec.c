/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procrec.h"
#include "caphost.h"
#include "jitkeep.h"
#include "kallsyms.h"
#include "namekeep.h"
#include "now.h"
#include "procrows.h"
#include "procset.h"
#include "procstacks.h"
#include "procthreads.h"
#include "proctold.h"
#include "procwalk.h"
#include "runsoon.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)
#define FRAMES_KEPT (UINT64_C(64) << 20) /* bytes of stacks that other processes may have too */
#define NAMES_NS UINT64_C(2000000000) /* how long a recording waits, at its end, for names */
#define SCAN_SHARE 20 /* to look for new threads takes a twentieth of the time at most */
#define STATE_UNKNOWN 0x80000000u /* nobody saw it: see docs/capture.5 */

struct procrec {
	const struct recorder_opts *o;
	struct capwrite *out;
	struct stacktab *stacks;
	struct proctab *procs;
	struct namewant *names; /* NULL = none are stored */
	struct namekeep *namer;
	struct jitkeep *jit;
	struct kallsyms *ks;
	struct procthreads *threads;
	struct procstacks *places;
	struct procset set;
	struct proclook look;
	struct procrows rows;
	struct proctold told;
	uint64_t period_ns, due_ns, flush_ns, scan_due_ns;
	uint64_t scanned_ns; /* when threads were looked for last; 0 = never */
	uint64_t since_ns; /* waits that are found now began after this */
	bool baseline; /* threads that are found now were there before */
	uint64_t cost_ns; /* of the last look: time on a CPU */
	uint64_t boot_ahead_ns; /* CLOCK_BOOTTIME - CLOCK_MONOTONIC */
	uint64_t stop_ns;
	bool all;
	char degraded[1024];
};

static void degrade(struct procrec *r, const char *what, const struct err *e)
{
	size_t len = strlen(r->degraded);

	snprintf(r->degraded + len, sizeof(r->degraded) - len, "%s%s%s%s%s%s", len ? "; " : "", what,
		e ? ": " : "", e ? e->msg : "", e && e->hint[0] ? "; " : "", e ? e->hint : "");
}

/* --- waits --- */

struct whose {
	struct procrec *r;
	const struct procset_thread *t;
};

static void count(struct proctold_sum *sum, uint64_t n, uint64_t ns)
{
	sum->n += n;
	sum->ns += ns;
}

static bool state_wanted(uint32_t mask, uint32_t state)
{
	const uint32_t noload = 0x400; /* I: D does not include it */

	return !mask || (state & (state & noload ? mask & noload : mask));
}

/* Why waits of that state and of VALUE's average are left out; NULL = they are recorded. */
static struct proctold_sum *left_out(struct procrec *r, const struct offcpu_key *key, const struct offcpu_value *v)
{
	const struct offcpu_opts *o = &r->o->bpf;
	uint64_t each = v->total_ns / v->count;

	if (key->flags & CAP_SAMPLE_PREEMPTED) {
		if (!o->preempted)
			return &r->told.preempted;
	} else if (!state_wanted(o->state_mask, key->state)) {
		return &r->told.state;
	}
	if (each < o->min_ns)
		return &r->told.min;
	return o->max_ns && each > o->max_ns ? &r->told.max : NULL;
}

static void take(const struct whose *w, struct offcpu_key *key, const struct offcpu_value *v)
{
	struct proctold_sum *out;

	key->tgid = w->t->look.pid;
	key->tid = w->t->look.tid;
	key->start_boot_ns = w->t->proc->start_boot_ns;
	key->exec_id = w->t->proc->exec_id;
	count(&w->r->told.seen, v->count, v->total_ns);
	out = left_out(w->r, key, v);
	count(out ? out : &w->r->told.recorded, v->count, v->total_ns);
	if (!out)
		procrows_add(&w->r->rows, key, v);
}

static void take_done(void *ctx, const struct procwait_done *d)
{
	const struct whose *w = ctx;
	struct offcpu_key key = { .state = STATE_UNKNOWN };
	const struct offcpu_value v = { d->total_ns, d->count, d->max_ns, d->first_ns, d->last_ns };

	key.flags = (d->open ? CAP_SAMPLE_OPEN : 0) | (d->initial ? CAP_SAMPLE_INITIAL : 0);
	if (d->place) {
		key.state = d->place->state;
		key.kernel = (struct offcpu_stack_id){ d->place->kernel[0], d->place->kernel[1] };
		key.user = (struct offcpu_stack_id){ d->place->user[0], d->place->user[1] };
	} else {
		procstacks_named(w->r->places, "not seen waiting", &key.kernel);
		procstacks_between(w->r->places, &key.user);
		count(&w->r->told.unseen, d->count, d->total_ns);
	}
	take(w, &key, &v);
}

static void take_delayed(void *ctx, uint64_t n, uint64_t ns, uint64_t until_ns)
{
	const struct whose *w = ctx;
	struct offcpu_key key = { .flags = CAP_SAMPLE_PREEMPTED };
	uint64_t from_ns = until_ns - MIN(ns, until_ns);
	const struct offcpu_value v = { ns, n, ns / n, from_ns, from_ns };

	procstacks_named(w->r->places, "waiting for a CPU", &key.kernel);
	procstacks_between(w->r->places, &key.user);
	take(w, &key, &v);
}

/* --- threads --- */

/* Ticks since the machine started as nanoseconds. */
static uint64_t ticks_ns(uint64_t ticks)
{
	long hz = sysconf(_SC_CLK_TCK);

	return hz > 0 && ticks < UINT64_MAX / SECOND_NS ? ticks * (SECOND_NS / (uint64_t)hz) : 0;
}

static void announce(struct procrec *r, struct procset_thread *t)
{
	const struct procparse_status *st = &t->look.status;
	struct offcpu_ev_thread ev = { .type = OFFCPU_EV_THREAD,
		.task_flags = t->proc->kthread ? 0x00200000 : 0, /* PF_KTHREAD */
		.tgid = t->look.pid,
		.tid = t->look.tid,
		.ns_tgid = st->ns_tgid ? st->ns_tgid : t->look.pid,
		.ns_tid = st->ns_tid ? st->ns_tid : t->look.tid,
		.start_boot_ns = t->proc->start_boot_ns,
		.exec_id = t->proc->exec_id };

	memcpy(ev.comm, t->comm, sizeof(ev.comm));
	proctab_announce(r->procs, &ev);
}

static void new_process(struct procrec *r, struct procset_process *p)
{
	struct procparse_stat st;

	if (!procthreads_stat(p->tgid, &st))
		return;
	p->start_boot_ns = ticks_ns(st.start_ticks);
	p->image = st.image;
	p->kthread = st.kthread;
	if (!p->kthread)
		proctab_scan(r->procs, p->tgid, r->since_ns, NULL);
}

static void end_process(void *ctx, struct procset_process *p)
{
	struct procrec *r = ctx;
	const struct procevent ev = {
		.type = PROCEVENT_EXIT, .pid = p->tgid, .tid = p->tgid, .time_ns = now_ns()
	};

	procwalk_end(p);
	if (r->procs)
		proctab_event(r->procs, &ev);
}

static void on_thread(void *ctx, uint32_t pid, uint32_t tid)
{
	struct procrec *r = ctx;
	struct procset_thread *t;

	if (procset_find(&r->set, pid, tid))
		return;
	t = procset_add(&r->set, pid, tid);
	if (!t) {
		r->told.skipped++;
		return;
	}
	r->told.threads++;
	if (t->proc->n_threads == 1)
		new_process(r, t->proc);
}

/* Which threads are there: as often as it takes no more than its share of the time. */
static void scan(struct procrec *r)
{
	uint64_t began = now_ns();

	r->told.skipped = 0;
	procthreads_scan(r->threads, on_thread, r);
	r->scan_due_ns = began + MIN((now_ns() - began) * SCAN_SHARE, SECOND_NS);
}

static void forget(struct procrec *r, size_t at)
{
	struct procset_thread *t = r->set.threads[at];
	struct whose whose = { r, t };
	const struct procwait_sink sink = { &whose, take_done, take_delayed };

	procwait_end(&t->wait, false, &sink, &r->told.sums);
	proclook_forget(&r->look, &t->look);
	procset_remove(&r->set, at);
	r->told.ended++;
}

/* --- a look --- */

/* Once for each thread. */
static void tell_refused(struct procrec *r, struct procset_thread *t, const struct proclook_seen *s)
{
	if (t->told)
		return;
	t->told = true;
	r->told.unchecked += !s->has_schedstat;
	r->told.no_syscall += t->look.refused[PROCLOOK_SYSCALL] != 0;
	r->told.no_wchan += t->look.refused[PROCLOOK_WCHAN] != 0;
	r->told.no_stack += t->look.refused[PROCLOOK_STACK] && !t->look.refused[PROCLOOK_SYSCALL];
}

static void on_exec(struct procrec *r, struct procset_thread *t, const struct procparse_stat *st)
{
	const struct procevent ev = { .type = PROCEVENT_EXEC,
		.pid = t->look.pid,
		.tid = t->look.tid,
		.time_ns = r->since_ns,
		.text = st->comm };

	t->proc->exec_id++;
	procwalk_end(t->proc);
	proctab_event(r->procs, &ev);
	proctab_scan(r->procs, t->look.pid, r->since_ns, NULL);
}

/* Its name, and the image of its process: after its last wait was handed out. */
static void note_changes(struct procrec *r, struct procset_thread *t, const struct procparse_stat *st)
{
	bool exec = st->image && t->proc->image && st->image != t->proc->image;

	if (exec)
		on_exec(r, t, st);
	if (st->image)
		t->proc->image = st->image;
	if (!exec && strcmp(t->comm, st->comm) == 0)
		return;
	memcpy(t->comm, st->comm, sizeof(t->comm));
	announce(r, t);
}

/* Where it waits, for a thread that has run since the last look. */
static void find_place(struct procrec *r, struct procset_thread *t, const struct proclook_seen *s)
{
	struct offcpu_stack_id kernel, user;
	bool kthread = s->stat.kthread;

	procstacks_kernel(r->places, s, &kernel);
	if (!r->o->ptrace || r->o->bpf.no_user_stacks || kthread ||
		!procwalk_take(t, r->places, &user, &r->told))
		procstacks_user(r->places, s, kthread, t->look.refused[PROCLOOK_SYSCALL], &user);
	t->place = (struct procwait_place){ .kernel = { kernel.hi, kernel.lo },
		.user = { user.hi, user.lo },
		.state = proclook_state(s->stat.state) };
}

static struct procwait_look account_of(const struct procset_thread *t, const struct proclook_seen *s)
{
	return (struct procwait_look){ .at_ns = s->at_ns,
		.has_account = s->has_schedstat,
		.run_ns = s->sched.run_ns,
		.delay_ns = s->sched.delay_ns,
		.slices = s->sched.slices,
		.voluntary = s->status.voluntary,
		.same = s->same,
		.waiting = s->waiting,
		.place = t->place };
}

/* A thread that began during the recording had done nothing then. */
static void begin_thread(struct procrec *r, struct procset_thread *t, const struct proclook_seen *s)
{
	uint64_t began = ticks_ns(s->stat.start_ticks);

	memcpy(t->comm, s->stat.comm, sizeof(t->comm));
	announce(r, t);
	if (r->baseline)
		return;
	began -= MIN(r->boot_ahead_ns, began);
	procwait_born(&t->wait, MIN(MAX(began, r->scanned_ns), s->at_ns));
}

/* False: it is gone. */
static bool look_at(struct procrec *r, struct procset_thread *t)
{
	struct whose whose = { r, t };
	const struct procwait_sink sink = { &whose, take_done, take_delayed };
	struct proclook_seen s;
	struct procwait_look look;
	bool first = !t->look.looked, again;
	int rc = proclook_take(&r->look, &t->look, &s, NULL);

	if (rc == -ESRCH)
		return false;
	if (rc) {
		r->told.unread += !t->unreadable;
		t->unreadable = true;
		return true;
	}
	if (first)
		begin_thread(r, t, &s);
	again = !s.same && procwalk_waits_on(t, &s);
	if (!s.same && !again && s.waiting)
		find_place(r, t, &s);
	if (!s.same && s.waiting)
		tell_refused(r, t, &s);
	t->has_call = s.same ? t->has_call : s.has_syscall;
	if (s.has_syscall)
		t->call = s.syscall;
	look = account_of(t, &s);
	if (again)
		procwait_disturbed(&t->wait, &look, &r->told.sums);
	else
		procwait_look(&t->wait, &look, &sink, &r->told.sums);
	if (!s.same)
		note_changes(r, t, &s.stat);
	return true;
}

static void look_at_all(struct procrec *r)
{
	uint64_t began = now_ns(), cpu = now_on(CLOCK_THREAD_CPUTIME_ID);
	bool fresh = began >= r->scan_due_ns;

	/* an estimate of when something began is early by up to the time between two looks */
	r->since_ns = MIN(r->scanned_ns ? r->scanned_ns : began, began - 2 * r->period_ns);
	if (fresh)
		scan(r);
	for (size_t i = r->set.n; i-- > 0;)
		if (!look_at(r, r->set.threads[i]))
			forget(r, i);
	if (fresh)
		r->scanned_ns = began;
	r->baseline = false;
	r->told.looks++;
	r->cost_ns = now_on(CLOCK_THREAD_CPUTIME_ID) - cpu;
	r->told.look_ns += r->cost_ns;
	r->told.look_max_ns = MAX(r->told.look_max_ns, r->cost_ns);
}

/* When the next look is due; those for which there was no time are left out. At most half of the time is spent. */
static void plan(struct procrec *r, uint64_t began)
{
	uint64_t now = now_ns(), earliest = now + r->cost_ns, n;

	r->told.late += began - r->due_ns > r->period_ns / 2;
	r->due_ns += r->period_ns;
	if (r->due_ns >= earliest)
		return;
	n = (earliest - r->due_ns + r->period_ns - 1) / r->period_ns;
	r->told.left_out += n;
	r->due_ns += n * r->period_ns;
}

/* --- the capture --- */

static void rescan(void *ctx, uint32_t tgid)
{
	struct procrec *r = ctx;
	struct procset_process *p = procset_process(&r->set, tgid);
	uint64_t now = now_ns();

	if (!p || p->kthread || now - p->rescanned_ns < SECOND_NS)
		return;
	p->rescanned_ns = now;
	proctab_rescan(r->procs, tgid, r->since_ns, NULL);
}

static void bring_up(struct procrec *r)
{
	struct proctold *t = &r->told;

	t->now_ns = r->stop_ns ? r->stop_ns : now_ns();
	t->bytes = capwrite_bytes(r->out);
	t->rows_lost = r->rows.lost;
	t->user = r->rows.user;
	t->names_overflow = procstacks_overflow(r->places);
	proctab_stats(r->procs, &t->procs);
	stacktab_stats(r->stacks, &t->stacks);
	t->by_name = r->namer != NULL;
	if (r->namer)
		namekeep_stats(r->namer, &t->names);
	t->degraded = r->degraded;
}

static int flush(struct procrec *r, struct err *e)
{
	procrows_write(&r->rows, r->out, rescan, r);
	procstacks_write(r->places, r->out);
	proctab_flush(r->procs, now_ns(), r->out);
	bring_up(r);
	proctold_write(&r->told, r->out);
	return capwrite_flush(r->out, now_ns(), e);
}

static void write_options(struct procrec *r)
{
	const struct recorder_opts *o = r->o;
	char number[32];
	const struct cap_option all[] = { { "mode", recmode_name(RECMODE_PROCFS) }, { "frequency", number },
		{ "unwind", o->bpf.no_user_stacks ? "none"
			    : o->ptrace           ? "ptrace"
						  : "pc" },
		{ "preempted", o->bpf.preempted ? "recorded" : "filtered" } };

	for (size_t i = 0; i < o->n_words; i++)
		capwrite_option(r->out, &(struct cap_option){ "argv", o->words[i] });
	snprintf(number, sizeof(number), "%u", o->hz);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		capwrite_option(r->out, &all[i]);
	if (o->tried)
		capwrite_option(r->out, &(struct cap_option){ "tried", o->tried });
	snprintf(number, sizeof(number), "%u", o->bpf.depth);
	capwrite_option(r->out, &(struct cap_option){ "depth", number });
	if (r->degraded[0])
		capwrite_option(r->out, &(struct cap_option){ "degraded", r->degraded });
}

/* --- the recording --- */

/* What only BPF can do is refused; what goes without saying else is told. */
static int check_options(struct procrec *r, const struct recorder_opts *o, struct err *e)
{
	if (o->cgroup || o->container) {
		err_set(e, -ENOTSUP, "mode procfs cannot choose by cgroup or container");
		return err_hint(e, "choose its processes with -p, or record with BPF (--mode btf says what that takes)");
	}
	if (o->unwind != RECORDER_UNWIND_AUTO && !o->bpf.no_user_stacks)
		degrade(r, "user stacks are not walked as --unwind says, for that takes BPF", NULL);
	if (!o->ptrace && !o->bpf.no_user_stacks)
		degrade(r, "of user stacks there is the program counter alone; --ptrace walks those of your own "
			   "processes", NULL);
	if (procthreads_hidden() && (r->all || o->bpf.follow))
		degrade(r, "/proc hides the processes of other users (hidepid); root, and the group that its "
			   "option gid= names, see them", NULL);
	return 0;
}

/* Addresses of kernel functions serve for nothing where stacks may not be read. */
static void read_symbols(struct procrec *r)
{
	char text[64];
	_cleanup_close_ int fd = open("/proc/self/stack", O_RDONLY | O_CLOEXEC);
	struct err why;

	if (r->o->bpf.no_kernel_stacks || fd < 0 || read(fd, text, sizeof(text)) < 0)
		return;
	if (kallsyms_load(NULL, &r->ks, &why) != 0)
		degrade(r, "kernel frames are names without addresses", &why);
}

static int open_tables(struct procrec *r, struct err *e)
{
	const struct recorder_opts *o = r->o;
	const struct procthreads_opts to = { .all = o->bpf.all,
		.kthreads = o->bpf.kthreads,
		.follow = o->bpf.follow,
		.pids = o->pids,
		.n_pids = o->n_pids,
		.tids = o->tids,
		.n_tids = o->n_tids,
		.comms = o->comms,
		.n_comms = o->n_comms };
	struct procstacks_opts so = { .no_kernel = o->bpf.no_kernel_stacks,
		.no_user = o->bpf.no_user_stacks };
	int rc = stacktab_new(o->bpf.depth ? o->bpf.depth : 127, &r->stacks, e);

	rc = rc ? rc : proctab_new(false, false, &r->procs, e);
	rc = rc ? rc : procthreads_open(&to, &r->threads, e);
	so.ks = r->ks;
	rc = rc ? rc : procstacks_new(&so, r->stacks, &r->places, e);
	if (rc || o->no_symbols || o->bpf.no_user_stacks)
		return rc;
	rc = namewant_new(&r->names, e);
	return rc ? rc : jitkeep_new(&r->jit, e);
}

static unsigned int files_wanted(const struct recorder_opts *o)
{
	unsigned int kernel = 1u << PROCLOOK_WCHAN | 1u << PROCLOOK_STACK;

	return 1u << PROCLOOK_SYSCALL | (o->bpf.no_kernel_stacks ? 0 : kernel);
}

int procrec_open(const struct recorder_opts *opts, struct procrec **ret, struct err *e)
{
	struct procrec *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return err_nomem(e, "the recorder");
	r->o = opts;
	r->all = opts->bpf.all || opts->n_comms;
	r->set = (struct procset){ .end = end_process, .ctx = r };
	r->told.hz = opts->hz;
	r->told.degraded = "";
	r->period_ns = SECOND_NS / MAX(opts->hz, 1);
	rc = check_options(r, opts, e);
	if (!rc)
		read_symbols(r);
	rc = rc ? rc : open_tables(r, e);
	rc = rc ? rc : capwrite_open(opts->path, opts->force, &r->out, e);
	if (!rc && r->names)
		rc = namekeep_new(r->names, proctab_files(r->procs), r->out, &r->namer, e);
	if (rc) {
		procrec_close(r);
		return rc;
	}
	r->rows.procs = r->procs;
	r->rows.stacks = r->stacks;
	r->rows.names = r->names;
	r->rows.jit = r->jit;
	stacktab_symbols(r->stacks, r->ks);
	stacktab_keep(r->stacks, FRAMES_KEPT);
	proclook_init(&r->look, files_wanted(opts));
	runsoon();
	write_options(r);
	*ret = r;
	return 0;
}

void procrec_close(struct procrec *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->set.n; i++)
		proclook_forget(&r->look, &r->set.threads[i]->look);
	procset_free(&r->set);
	namekeep_free(r->namer);
	procrows_free(&r->rows);
	procstacks_free(r->places);
	procthreads_close(r->threads);
	jitkeep_free(r->jit);
	proctab_free(r->procs);
	stacktab_free(r->stacks);
	namewant_free(r->names);
	capwrite_close(r->out);
	kallsyms_free(r->ks);
	free(r);
}

int procrec_start(struct procrec *r, struct err *e)
{
	r->boot_ahead_ns = now_on(CLOCK_BOOTTIME) - now_ns();
	r->told.start_ns = r->due_ns = now_ns();
	r->flush_ns = r->due_ns + SECOND_NS;
	r->baseline = true;
	look_at_all(r);
	plan(r, r->due_ns);
	return caphost_write(r->out, r->told.start_ns, e);
}

/*
 * What it did before its exec is no part of the recording: it counts from the
 * next look, which is made at once, when nobody holds it any more.
 */
int procrec_command(struct procrec *r, uint32_t pid, struct err *e)
{
	int rc = procthreads_add(r->threads, pid, e);

	r->baseline = true;
	r->scan_due_ns = 0;
	r->due_ns = now_ns();
	return rc;
}

uint64_t procrec_timeout_ns(const struct procrec *r)
{
	uint64_t now = now_ns();

	return r->due_ns <= now ? 0 : r->due_ns - now;
}

int procrec_service(struct procrec *r, struct err *e)
{
	uint64_t now = now_ns();
	int rc;

	if (now < r->due_ns)
		return 0;
	look_at_all(r);
	plan(r, now);
	if (now < r->flush_ns)
		return 0;
	while (r->flush_ns <= now)
		r->flush_ns += SECOND_NS;
	jitkeep_look(r->jit, now);
	rc = flush(r, e);
	/* what looks names up would be recorded with every process */
	if (r->namer && !r->all)
		namekeep_service(r->namer);
	return rc;
}

/* Every wait that goes on is handed out as it is now. */
static void hand_out_open(struct procrec *r)
{
	for (size_t i = 0; i < r->set.n; i++) {
		struct whose whose = { r, r->set.threads[i] };
		const struct procwait_sink sink = { &whose, take_done, take_delayed };

		procwait_end(&r->set.threads[i]->wait, true, &sink, &r->told.sums);
	}
}

int procrec_stop(struct procrec *r, const char *why, struct err *e)
{
	int rc;

	look_at_all(r);
	r->stop_ns = now_ns();
	hand_out_open(r);
	if (r->namer && !r->all)
		namekeep_hurry(r->namer);
	rc = flush(r, e);
	if (!rc && r->namer) {
		jitkeep_write(r->jit, r->out);
		namekeep_finish(r->namer, NAMES_NS);
		bring_up(r);
		proctold_write(&r->told, r->out);
	}
	return rc ? rc
		  : capwrite_finish(r->out, &(struct cap_trailer){ .stop_ns = r->stop_ns, .why = why }, e);
}

void procrec_stats(const struct procrec *r, struct procrec_stats *ret)
{
	*ret = (struct procrec_stats){ .start_ns = r->told.start_ns,
		.now_ns = r->stop_ns ? r->stop_ns : now_ns(),
		.bytes = capwrite_bytes(r->out),
		.lost = proctold_lost(&r->told) };
}

void procrec_progress(const struct procrec *r, struct buf *b)
{
	struct proctold t = r->told;

	t.now_ns = now_ns();
	stacktab_stats(r->stacks, &t.stacks);
	proctab_stats(r->procs, &t.procs);
	proctold_progress(b, &t);
}

void procrec_summary(const struct procrec *r, const struct rectext_told *told, struct buf *b)
{
	struct proctold t = r->told;

	t.bytes = capwrite_bytes(r->out);
	t.now_ns = r->stop_ns ? r->stop_ns : now_ns();
	proctold_summary(b, &t, told);
}
