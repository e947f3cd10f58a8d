/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/procround.h"
#include "base/clock.h"
#include "procfs/procwalk.h"

#include <errno.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)
#define SCAN_SHARE 20 /* to look for new threads takes a twentieth of a CPU at most */
#define STATE_UNKNOWN 0x80000000u /* nobody saw it: see docs/capture.5 */

/* --- waits --- */

struct whose {
	struct procround *r;
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
static struct proctold_sum *left_out(
	struct procround *r, const struct offcpu_key *key, const struct offcpu_value *v)
{
	const struct offcpu_opts *o = &r->o->bpf;
	uint64_t each = v->total_ns / v->count;

	if (key->flags & CAP_SAMPLE_PREEMPTED) {
		if (!o->preempted)
			return &r->told->preempted;
	} else if (!state_wanted(o->state_mask, key->state)) {
		return &r->told->state;
	}
	if (each < o->min_ns)
		return &r->told->min;
	return o->max_ns && each > o->max_ns ? &r->told->max : NULL;
}

static void take(const struct whose *w, struct offcpu_key *key, const struct offcpu_value *v)
{
	struct proctold_sum *out;

	key->tgid = w->t->look.pid;
	key->tid = w->t->look.tid;
	key->start_boot_ns = w->t->proc->start_boot_ns;
	key->exec_id = w->t->proc->exec_id;
	count(&w->r->told->seen, v->count, v->total_ns);
	out = left_out(w->r, key, v);
	count(out ? out : &w->r->told->recorded, v->count, v->total_ns);
	if (!out)
		procrows_add(w->r->rows, key, v);
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
		count(&w->r->told->unseen, d->count, d->total_ns);
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

static void announce(struct procround *r, struct procset_thread *t)
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

/* P is another image now, or was not known before. */
static void scan_image(struct procround *r, struct procset_process *p)
{
	p->scanned_ns = p->rescanned_ns = now_ns();
	proctab_scan(r->procs, p->tgid, r->since_ns, NULL);
	proctab_identify(r->procs, p->tgid, p->exec_id, p->start_boot_ns);
}

static void new_process(struct procround *r, struct procset_process *p)
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
	struct procround *r = ctx;
	const struct procevent ev = {
		.type = PROCEVENT_EXIT, .pid = p->tgid, .tid = p->tgid, .time_ns = now_ns()
	};

	procwalk_end(p);
	if (r->procs)
		proctab_event(r->procs, &ev);
}

static void on_thread(void *ctx, uint32_t pid, uint32_t tid)
{
	struct procround *r = ctx;
	struct procset_thread *t;

	if (procset_find(&r->set, pid, tid))
		return;
	t = procset_add(&r->set, pid, tid);
	if (!t) {
		r->told->skipped++;
		return;
	}
	r->told->threads++;
	if (t->proc->n_threads == 1)
		new_process(r, t->proc);
}

static uint64_t cpu_ns(const struct procround *r)
{
	return now_on(CLOCK_THREAD_CPUTIME_ID) + looker_cpu_ns(r->look.looker);
}

/* CPU time since CPU_NS. */
static uint64_t spent_ns(const struct procround *r, uint64_t cpu)
{
	uint64_t now = cpu_ns(r);

	/* a looker that ends takes its share with it */
	return now - MIN(cpu, now);
}

/*
 * Which threads are there: as often as it takes no more than its share of a
 * CPU. Time that others took from the scan does not count: on a busy machine
 * the next one would come a second later.
 */
static void scan(struct procround *r)
{
	uint64_t began = now_ns(), cpu = cpu_ns(r);

	r->told->skipped = 0;
	procthreads_scan(r->threads, on_thread, r);
	r->scan_due_ns = began + MIN(spent_ns(r, cpu) * SCAN_SHARE, SECOND_NS);
}

static void forget(struct procround *r, size_t at)
{
	struct procset_thread *t = r->set.threads[at];
	struct whose whose = { r, t };
	const struct procwait_sink sink = { &whose, take_done, take_delayed };

	procwait_end(&t->wait, false, &sink, &r->told->sums);
	proclook_forget(&r->look, &t->look);
	procset_remove(&r->set, at);
	r->told->ended++;
}

/* --- a look --- */

/* Once for each thread. */
static void tell_refused(struct procround *r, struct procset_thread *t, const struct proclook_seen *s)
{
	if (t->told)
		return;
	t->told = true;
	r->told->unchecked += !s->has_schedstat;
	r->told->no_syscall += t->look.refused[PROCFILE_SYSCALL] != 0;
	r->told->no_wchan += t->look.refused[PROCFILE_WCHAN] != 0;
	r->told->no_stack += t->look.refused[PROCFILE_STACK] && !t->look.refused[PROCFILE_SYSCALL];
}

static void on_exec(struct procround *r, struct procset_thread *t, const struct procparse_stat *st)
{
	const struct procevent ev = { .type = PROCEVENT_EXEC,
		.pid = t->look.pid,
		.tid = t->look.tid,
		.time_ns = r->since_ns,
		.text = st->comm };

	t->proc->exec_id++;
	procwalk_end(t->proc);
	proctab_event(r->procs, &ev);
	scan_image(r, t->proc);
}

/* Its name, and the image of its process: after its last wait was handed out. */
static void note_changes(struct procround *r, struct procset_thread *t, const struct procparse_stat *st,
	const struct procwait_sink *sink)
{
	bool exec = st->image && t->proc->image && st->image != t->proc->image;

	/* it will run before it waits again, and is read then */
	if (st->image == PROCPARSE_NO_IMAGE)
		return;
	if (exec) {
		procwait_exec(&t->wait, sink);
		on_exec(r, t, st);
	}
	if (st->image)
		t->proc->image = st->image;
	if (!exec && strcmp(t->comm, st->comm) == 0)
		return;
	memcpy(t->comm, st->comm, sizeof(t->comm));
	announce(r, t);
}

/* Where it waits, for a thread that has run since the last look. */
static void find_place(struct procround *r, struct procset_thread *t, const struct proclook_seen *s)
{
	bool kthread = s->stat.kthread, walk = r->o->ptrace && !r->o->bpf.no_user_stacks && !kthread;
	struct offcpu_stack_id kernel, user;

	procstacks_kernel(r->places, s, &kernel);
	if (walk && procwalk_take(&r->reach, t, s, &r->walked, r->told)) {
		procstacks_walked(r->places, &r->walked, &user);
	} else {
		r->walked.len = 0;
		procstacks_user(r->places, s, kthread, t->look.refused[PROCFILE_SYSCALL], &user);
	}
	t->place = (struct procwait_place){ .kernel = { kernel.hi, kernel.lo },
		.user = { user.hi, user.lo },
		.state = proclook_state(s->stat.state) };
}

/*
 * The mappings of P's image are read again, a program that has just begun
 * maps its libraries yet: not before as much time has passed as before the
 * last time, or a second.
 */
static void rescan(struct procround *r, struct procset_process *p)
{
	uint64_t now = now_ns();

	if (p->kthread || now - p->rescanned_ns < MIN(SECOND_NS, p->rescanned_ns - p->scanned_ns))
		return;
	p->rescanned_ns = now;
	proctab_rescan(r->procs, p->tgid, r->since_ns, NULL);
}

/* Where a frame of T lies has to be known while its process lives. */
static void know_frames(struct procround *r, struct procset_thread *t, const struct proclook_seen *s)
{
	const uint64_t *frames = r->walked.len ? r->walked.frames : &s->syscall.pc;
	uint32_t n = r->walked.len ? r->walked.len : s->has_syscall;

	if (t->proc->kthread || r->o->bpf.no_user_stacks)
		return;
	for (uint32_t i = 0; i < n; i++) {
		if (proctab_covers(r->procs, t->proc->tgid, frames[i]))
			continue;
		rescan(r, t->proc);
		return;
	}
}

/*
 * A round takes its time, which with many threads is no little part of a
 * short recording: at its end all threads were looked at when the last round
 * began, and at its beginning those of which that is true.
 */
static uint64_t time_of(const struct procround *r, const struct proclook_seen *s)
{
	return r->last || (r->baseline && s->same) ? MIN(r->began_ns, s->at_ns) : s->at_ns;
}

static struct procwait_look account_of(
	const struct procround *r, const struct procset_thread *t, const struct proclook_seen *s)
{
	return (struct procwait_look){ .at_ns = time_of(r, s),
		.has_account = s->has_schedstat,
		.run_ns = s->sched.run_ns,
		.delay_ns = s->sched.delay_ns,
		.slices = s->sched.slices,
		.voluntary = s->status.voluntary,
		.same = s->same,
		.waiting = s->same ? t->wait.waiting : s->waiting,
		.place = t->place };
}

/* A thread that began during the recording had done nothing then. */
static void begin_thread(struct procround *r, struct procset_thread *t, const struct proclook_seen *s)
{
	uint64_t began = ticks_ns(s->stat.start_ticks);

	t->start_ticks = s->stat.start_ticks;
	memcpy(t->comm, s->stat.comm, sizeof(t->comm));
	announce(r, t);
	if (r->baseline)
		return;
	began -= MIN(r->boot_ahead_ns, began);
	procwait_born(&t->wait, MIN(MAX(began, r->scanned_ns), time_of(r, s)));
}

/* False: it is gone. */
static bool look_at(struct procround *r, struct procset_thread *t)
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
		r->told->unread += !t->unreadable;
		t->unreadable = true;
		return true;
	}
	if (!first && !s.same && s.stat.start_ticks != t->start_ticks)
		return false;
	if (first)
		begin_thread(r, t, &s);
	again = !s.same && procwalk_waits_on(t, &s);
	if (!s.same && !again && s.waiting)
		find_place(r, t, &s);
	if (!s.same && s.waiting)
		tell_refused(r, t, &s);
	if (!s.same && s.waiting) {
		t->has_call = s.has_syscall;
		t->call = s.syscall;
	}
	look = account_of(r, t, &s);
	if (r->baseline)
		t->wait = (struct procwait){ 0 };
	if (again && !r->baseline)
		procwait_disturbed(&t->wait, &look, &r->told->sums);
	else
		procwait_look(&t->wait, &look, &sink, &r->told->sums);
	if (!s.same)
		note_changes(r, t, &s.stat, &sink);
	if (!s.same && !again && s.waiting)
		know_frames(r, t, &s);
	return true;
}

void procround_look(struct procround *r)
{
	uint64_t began = now_ns(), cpu = cpu_ns(r);
	bool fresh = began >= r->scan_due_ns;

	r->began_ns = began;
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
	r->told->looks++;
	r->cost_ns = spent_ns(r, cpu);
	r->told->look_ns += r->cost_ns;
	r->told->look_max_ns = MAX(r->told->look_max_ns, r->cost_ns);
}

uint64_t procround_last(struct procround *r)
{
	r->last = true;
	procround_look(r);
	return r->began_ns;
}

/* --- from outside --- */

void procround_init(struct procround *r, unsigned int wanted)
{
	r->period_ns = SECOND_NS / MAX(r->o->hz, 1);
	r->set = (struct procset){ .end = end_process, .ctx = r };
	/* equal on a machine that was never suspended: read in this order it is not negative */
	r->boot_ahead_ns = now_ns();
	r->boot_ahead_ns = now_on(CLOCK_BOOTTIME) - r->boot_ahead_ns;
	proclook_init(&r->look, wanted, r->reach.looker);
}

void procround_release(struct procround *r)
{
	for (size_t i = 0; i < r->set.n; i++)
		proclook_forget(&r->look, &r->set.threads[i]->look);
	procset_free(&r->set);
}

void procround_before(struct procround *r)
{
	r->baseline = true;
	r->scan_due_ns = 0;
}

void procround_command(struct procround *r, uint32_t pid)
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
	look_at(r, t);
	r->baseline = false;
	/* where it is held until it may run is no wait of its own; else it has begun one since its exec */
	if (t->place.state == proclook_state('t'))
		t->wait.current = t->wait.waiting = false;
	t->wait.initial = false;
}

void procround_rescan(struct procround *r, uint32_t tgid)
{
	struct procset_process *p = procset_process(&r->set, tgid);

	if (p)
		rescan(r, p);
}

void procround_end(struct procround *r)
{
	for (size_t i = 0; i < r->set.n; i++) {
		struct whose whose = { r, r->set.threads[i] };
		const struct procwait_sink sink = { &whose, take_done, take_delayed };

		procwait_end(&r->set.threads[i]->wait, true, &sink, &r->told->sums);
	}
}
