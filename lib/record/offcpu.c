/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/offcpu.h"
#include "base/clock.h"
#include "capture/types.h"
#include "record/aggmap.h"
#include "record/offprogs.h"
#include "record/rawtasks.h"
#include "record/taskiter.h"

#include "offcpu.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>

#define CPUS_MAX 8192 /* of any kernel: CONFIG_NR_CPUS of arch/x86/Kconfig */

/* bpf/offcpu.bpf.c spells these again, for it cannot include lib/ */
_Static_assert(OFFCPU_F_OPEN == CAP_SAMPLE_OPEN && OFFCPU_F_INITIAL == CAP_SAMPLE_INITIAL &&
		       OFFCPU_F_PREEMPTED == CAP_SAMPLE_PREEMPTED,
	"sample flags");
_Static_assert(CAP_STACK_KERNEL == 1 && CAP_STACK_USER == 2, "stack kinds");
_Static_assert(
	CAP_COMPLETE == 1 && CAP_UNVERIFIED == 2 && CAP_TRUNCATED == 3 && CAP_STOPPED == 4, "verdicts");
_Static_assert(CAP_R_ERRNO == 1 && CAP_R_KTHREAD == 2 && CAP_R_EXEC == 3 && CAP_R_NOT_ASKED == 4 &&
		       CAP_R_NOT_SEEN == 5 && CAP_R_EXITING == 7 && CAP_R_COMPAT == 8 && CAP_R_EMPTY == 9,
	"reasons");
_Static_assert(CAP_R_MEMORY == 10 && CAP_R_NO_MAPPING == 11 && CAP_R_NO_ROW == 12 && CAP_R_EXPRESSION == 13 &&
		       CAP_R_REGISTER == 14 && CAP_R_LOOP == 15 && CAP_R_NOT_READY == 16 &&
		       CAP_R_DROPPED == 17 && CAP_R_NO_FRAME_POINTER == 18,
	"reasons of a walk that stopped");

struct offcpu {
	struct offprogs progs;
	struct ring_buffer *rb;
	const struct offcpu_sink *sink; /* during a drain */
	struct aggmap agg;
	uint64_t inserted_at_swap;
	uint32_t n_comms;
	int cpus;
	uint32_t only; /* the one process that is recorded; 0 = there are more */
	struct offcpu_opts opts;
	struct offcpu_counters open; /* of the waits that were cut at the end */
	struct rawtasks tasks; /* mode raw */
	struct offcpu_ev_thread *told; /* threads that no event tells of: for the next drain */
	size_t n_told, cap_told;
};

static bool is_raw(const struct offcpu *o)
{
	return o->progs.raw != NULL;
}

/* Without memory a thread has no name before its next wait. */
static void keep_thread(void *ctx, const struct offcpu_ev_thread *ev)
{
	struct offcpu *o = ctx;

	if (base_grow(&o->told, &o->cap_told, o->n_told + 1, sizeof(*o->told)) == 0)
		o->told[o->n_told++] = *ev;
	else
		o->open.ring_thread++;
}

static void open_tasks(struct offcpu *o)
{
	o->tasks = (struct rawtasks){ .opts = &o->opts,
		.waits = rawprogs_waits(o->progs.raw),
		.execs = rawprogs_execs(o->progs.raw),
		.tgids = bpf_map__fd(o->progs.base->maps.tgids),
		.tids = bpf_map__fd(o->progs.base->maps.tids),
		.left_out = { (uint32_t)getpid() },
		.ctx = o,
		.thread = keep_thread };
}

static int on_event(void *ctx, void *data, size_t len)
{
	struct offcpu *o = ctx;
	uint32_t type;

	if (!o->sink || len < sizeof(type))
		return 0;
	memcpy(&type, data, sizeof(type));
	if (type == OFFCPU_EV_STACK && o->sink->stack)
		o->sink->stack(o->sink->ctx, data);
	else if (type == OFFCPU_EV_THREAD && o->sink->thread)
		o->sink->thread(o->sink->ctx, data);
	else if ((type == OFFCPU_EV_IMAGE || type == OFFCPU_EV_FORK || type == OFFCPU_EV_MAPPING) &&
		 o->sink->image)
		o->sink->image(o->sink->ctx, data);
	else if (type == OFFCPU_EV_SNAPSHOT && o->sink->snapshot)
		o->sink->snapshot(o->sink->ctx, data);
	return 0;
}

static int load_parts(struct offcpu *o, struct err *e)
{
	int rc = aggmap_open(&o->agg, o->opts.all ? 32768 : 8192, e);

	o->agg.opener = o->opts.opener;
	if (rc)
		return offprogs_refused("create the aggregation maps", rc, e);
	rc = offprogs_load(&o->progs, &o->opts, o->agg.outer_fd, e);
	if (rc)
		return rc;
	if (is_raw(o))
		open_tasks(o);
	o->rb = ring_buffer__new(bpf_map__fd(o->progs.base->maps.ring), on_event, o, NULL);
	return o->rb ? 0 : offprogs_refused("map the ring buffer", -errno, e);
}

int offcpu_load(const struct offcpu_opts *opts, struct offcpu **ret, struct err *e)
{
	struct offcpu *o = calloc(1, sizeof(*o));
	int rc;

	if (!o)
		return err_nomem(e, "the recorder");
	o->opts = *opts;
	libbpf_set_print(NULL); /* what went wrong is told through E */
	o->cpus = libbpf_num_possible_cpus();
	/* without /sys: room for more does no harm, what is not there stays zero */
	if (o->cpus <= 0)
		o->cpus = CPUS_MAX;
	rc = load_parts(o, e);
	if (rc) {
		offcpu_close(o);
		return rc;
	}
	*ret = o;
	return 0;
}

void offcpu_close(struct offcpu *o)
{
	if (!o)
		return;
	ring_buffer__free(o->rb);
	offprogs_close(&o->progs);
	aggmap_close(&o->agg);
	free(o->told);
	free(o);
}

const char *offcpu_limits(const struct offcpu *o)
{
	return is_raw(o) ? o->progs.raw->limits : o->progs.limits;
}

/* In the first namespace the bit is set at once, elsewhere the iterator has to find the global id. */
static int ask(struct offcpu *o, struct bpf_map *bits, struct bpf_map *asked, uint32_t id, struct err *e)
{
	uint32_t one = 1, word = id >> 6;
	uint64_t value = 0;
	int rc;

	if (o->progs.first_ns) {
		rc = bpf_map_lookup_elem(bpf_map__fd(bits), &word, &value);
		value |= UINT64_C(1) << (id & 63);
		if (!rc)
			rc = bpf_map_update_elem(bpf_map__fd(bits), &word, &value, BPF_ANY);
	} else {
		rc = bpf_map_update_elem(bpf_map__fd(asked), &id, &one, BPF_ANY);
	}
	return rc ? err_sys(e, rc, "cannot add target %u", id) : 0;
}

int offcpu_ask_pid(struct offcpu *o, uint32_t pid, struct err *e)
{
	if (o->progs.first_ns)
		o->progs.base->bss->hot.single_tgid = pid;
	if (o->opts.single)
		o->only = o->tasks.only = pid;
	return ask(o, o->progs.base->maps.tgids, o->progs.base->maps.asked_pids, pid, e);
}

int offcpu_ask_tid(struct offcpu *o, uint32_t tid, struct err *e)
{
	return ask(o, o->progs.base->maps.tids, o->progs.base->maps.asked_tids, tid, e);
}

int offcpu_ask_comm(struct offcpu *o, const char *comm, struct err *e)
{
	if (o->n_comms == OFFCPU_COMMS_MAX)
		return err_set(e, -E2BIG, "more than %d names", OFFCPU_COMMS_MAX);
	snprintf(o->progs.base->bss->comms[o->n_comms++], OFFCPU_COMM_LEN, "%s", comm);
	o->progs.base->bss->n_comms = o->n_comms;
	return 0;
}

int offcpu_attach(struct offcpu *o, struct err *e)
{
	int rc = o->progs.first_ns ? 0 : taskiter_run(o->progs.iters->progs.find_self, 0, 1, NULL, NULL, e);

	if (!rc)
		rc = offprogs_attach(&o->progs, e);
	/* afterwards: who comes in from now on is seen */
	if (!rc && o->opts.use_cgroup)
		rc = taskiter_run(o->progs.iters->progs.find_cgroup, 0, 1, NULL, NULL, e);
	return rc;
}

int offcpu_ask_exec(struct offcpu *o, uint32_t pid, struct err *e)
{
	(void)e;
	o->progs.base->bss->exec_target = pid;
	return 0;
}

/* In a PID namespace the iterator has to find the global id. */
void offcpu_leave_out(struct offcpu *o, uint32_t worker, uint32_t opener)
{
	struct offcpu_bpf__bss *bss = o->progs.base->bss;

	if (o->progs.first_ns) {
		bss->hot.worker_tgid = worker;
		bss->hot.opener_tgid = opener;
		o->tasks.left_out[1] = worker;
		o->tasks.left_out[2] = opener;
	} else if (bss->worker_id != worker || bss->opener_id != opener) {
		bss->worker_id = worker;
		bss->opener_id = opener;
		taskiter_run(o->progs.iters->progs.find_self, 0, 1, NULL, NULL, NULL);
	}
}

/* An iterator that is attached but never read. */
static bool may_iterate(struct bpf_program *prog)
{
	struct bpf_link *link = bpf_program__attach_iter(prog, NULL);
	_cleanup_close_ int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;

	bpf_link__destroy(link);
	return fd >= 0;
}

struct trial {
	struct offcpu *o;
	bool works;
};

/* Capabilities are a thread's own: what this one gives up nobody else misses. */
static void *try_without(void *ctx)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
	struct trial *t = ctx;
	uint32_t zero = 0, id;

	t->works = syscall(SYS_capset, &head, none) == 0 &&
		   bpf_map_lookup_elem(t->o->agg.outer_fd, &zero, &id) != -EPERM &&
		   (!t->o->progs.iters || may_iterate(offprogs_waiting(&t->o->progs)));
	return NULL;
}

bool offcpu_needs_caps(struct offcpu *o)
{
	struct trial t = { .o = o };
	pthread_t thread;

	if (pthread_create(&thread, NULL, try_without, &t) != 0)
		return true;
	pthread_join(thread, NULL);
	return !t.works;
}

void offcpu_hold(struct offcpu *o, uint32_t pid)
{
	__atomic_store_n(&o->progs.base->bss->held, pid, __ATOMIC_SEQ_CST);
}

static void set_phase(struct offcpu *o, uint32_t phase)
{
	__atomic_store_n(&o->progs.base->bss->hot.phase, phase, __ATOMIC_SEQ_CST);
}

static int look_around(struct offcpu *o, struct err *e)
{
	int rc;

	if (is_raw(o)) {
		rc = rawtasks_waiting(&o->tasks, e);
		o->open.storage += o->tasks.unkept;
		return rc;
	}
	return taskiter_run(offprogs_waiting(&o->progs), o->only, 1, NULL, NULL, e);
}

#define PASSES 5

/*
 * Every wait in progress, and none is counted yet. On a real-time kernel a
 * thread that takes the CPU while the kernel looks up another one's storage on
 * it gets none itself (bpf_task_storage_trylock()); it is found by the next
 * pass, so what was missed by one before the last is not lost.
 */
static int find_waiting(struct offcpu *o, struct err *e)
{
	struct offcpu_counters before, after;
	int rc = 0, pass = 0;

	do {
		offcpu_counters(o, &before);
		rc = look_around(o, e);
		offcpu_counters(o, &after);
		if (is_raw(o) || after.storage == before.storage)
			break;
		if (++pass < PASSES)
			o->open.storage -= after.storage - before.storage;
	} while (!rc && pass < PASSES);
	return rc;
}

int offcpu_look_again(struct offcpu *o, struct err *e)
{
	return is_raw(o) ? 0 : look_around(o, e);
}

static void take_image(void *ctx, const void *record)
{
	const struct offcpu_sink *sink = ctx;
	struct offcpu_ev_image ev;

	memcpy(&ev, record, sizeof(ev));
	sink->image(sink->ctx, &ev);
}

int offcpu_images(struct offcpu *o, uint32_t pid, const struct offcpu_sink *sink, struct err *e)
{
	struct offcpu_sink copy = *sink;
	struct offcpu_ev_image ev;

	if (is_raw(o)) {
		if (rawtasks_image(&o->tasks, pid, &ev))
			sink->image(sink->ctx, &ev);
		return 0;
	}
	return taskiter_run(
		o->progs.iters->progs.find_images, pid, sizeof(struct offcpu_ev_image), take_image, &copy, e);
}

/* The targets that were asked for by name, and in a PID namespace by whatever. */
static int find_targets(struct offcpu *o, struct err *e)
{
	struct offcpu_bpf__bss *bss = o->progs.base->bss;

	if (is_raw(o))
		return o->n_comms ? rawtasks_name(&o->tasks, (const char(*)[OFFCPU_COMM_LEN])bss->comms,
					    o->n_comms, e)
				  : 0;
	if (!bpf_program__autoload(o->progs.iters->progs.find_targets))
		return 0;
	return taskiter_run(o->progs.iters->progs.find_targets, 0, 1, NULL, NULL, e);
}

int offcpu_start(struct offcpu *o, uint64_t *start_ns, struct err *e)
{
	int rc = aggmap_settle(&o->agg, e);

	if (!rc)
		rc = find_targets(o, e);
	if (rc)
		return rc;
	set_phase(o, OFFCPU_ARMED);
	rc = find_waiting(o, e);
	if (rc)
		return rc;
	*start_ns = now_ns();
	o->progs.base->bss->record_start_boot = now_on(CLOCK_BOOTTIME);
	o->progs.base->bss->record_start_ns = *start_ns;
	set_phase(o, OFFCPU_RECORDING);
	return 0;
}

int offcpu_fd(const struct offcpu *o)
{
	return ring_buffer__epoll_fd(o->rb);
}

void offcpu_drain(struct offcpu *o, const struct offcpu_sink *sink)
{
	for (size_t i = 0; i < o->n_told; i++)
		if (sink->thread)
			sink->thread(sink->ctx, &o->told[i]);
	o->n_told = 0;
	o->sink = sink;
	ring_buffer__consume(o->rb);
	o->sink = NULL;
}

void offcpu_begin_swap(struct offcpu *o)
{
	aggmap_begin_swap(&o->agg);
}

bool offcpu_swapped(struct offcpu *o)
{
	return aggmap_swapped(&o->agg);
}

/* The ring buffer is drained between: after the swap every stack of the old map's samples is in it. */
int offcpu_end_swap(struct offcpu *o, const struct offcpu_sink *sink, struct err *e)
{
	int rc = aggmap_end_swap(&o->agg, e);

	if (rc)
		return rc;
	o->inserted_at_swap = o->progs.base->bss->inserted;
	offcpu_drain(o, sink);
	return aggmap_empty(&o->agg, sink->sample, sink->ctx, e);
}

int offcpu_swap(struct offcpu *o, const struct offcpu_sink *sink, struct err *e)
{
	offcpu_begin_swap(o);
	return offcpu_end_swap(o, sink, e);
}

bool offcpu_crowded(const struct offcpu *o)
{
	return o->progs.base->bss->inserted - o->inserted_at_swap > aggmap_room(&o->agg) / 2;
}

struct open_ctx {
	struct offcpu *o;
	const struct offcpu_sink *sink;
	uint64_t stop_ns;
	struct offcpu_counters *extra;
};

/* What account() in bpf/offcpu.bpf.c does for a wait that ends, for one that is cut here. */
static void take_open(void *ctx, const void *record)
{
	struct open_ctx *oc = ctx;
	struct offcpu_counters *c = oc->extra;
	struct offcpu_ev_open ev;
	uint64_t ns;

	memcpy(&ev, record, sizeof(ev));
	if (ev.type != OFFCPU_EV_OPEN || ev.start >= oc->stop_ns)
		return;
	ns = oc->stop_ns - ev.start;
	c->seen++, c->seen_ns += ns;
	if (ev.key.flags & OFFCPU_F_DROP_PREEMPTED) {
		c->preempted++, c->preempted_ns += ns;
	} else if (ev.key.flags & OFFCPU_F_DROP_STATE) {
		c->state++, c->state_ns += ns;
	} else if (ns < oc->o->opts.min_ns) {
		c->min++, c->min_ns += ns;
	} else if (oc->o->opts.max_ns && ns > oc->o->opts.max_ns) {
		c->max++, c->max_ns += ns;
	} else {
		struct offcpu_value v = {
			.total_ns = ns, .count = 1, .max_ns = ns, .first_ns = ev.start, .last_ns = ev.start
		};

		c->recorded++, c->recorded_ns += ns;
		ev.key.flags |= OFFCPU_F_OPEN;
		if (oc->sink->sample)
			oc->sink->sample(oc->sink->ctx, &ev.key, &v);
	}
}

int offcpu_freeze(struct offcpu *o, const struct offcpu_sink *sink, uint64_t *stop_ns, struct err *e)
{
	struct open_ctx oc = { .o = o, .sink = sink, .extra = &o->open };
	int rc;

	oc.stop_ns = *stop_ns = now_ns();
	set_phase(o, OFFCPU_FROZEN);
	/* after the swap no program is inside the recording part any more */
	rc = offcpu_swap(o, sink, e);
	if (rc)
		return rc;
	rc = is_raw(o) ? rawtasks_open(&o->tasks, o->progs.base->bss->record_start_ns, take_open, &oc, e)
		       : taskiter_run(o->progs.iters->progs.open_waits, o->only,
				 sizeof(struct offcpu_ev_open), take_open, &oc, e);
	if (rc)
		return rc;
	/* what a program that was past the phase test added after the swap */
	return offcpu_swap(o, sink, e);
}

static void add_counters(struct offcpu_counters *to, const struct offcpu_counters *from)
{
	const uint64_t *f = (const uint64_t *)(const void *)from;
	uint64_t *t = (uint64_t *)(void *)to;

	for (size_t i = 0; i < sizeof(*to) / sizeof(*t); i++)
		t[i] += f[i];
}

void offcpu_counters(struct offcpu *o, struct offcpu_counters *ret)
{
	size_t size = bpf_map__value_size(o->progs.base->maps.scratches), step = (size + 7) / 8 * 8;
	_cleanup_free_ char *values = calloc((size_t)o->cpus, step);
	_cleanup_free_ char *iter = calloc(1, step);
	uint32_t zero = 0;

	*ret = o->open;
	if (!values || !iter)
		return;
	if (bpf_map_lookup_elem(bpf_map__fd(o->progs.base->maps.scratches), &zero, values) == 0)
		for (int i = 0; i < o->cpus; i++)
			add_counters(ret,
				(const struct offcpu_counters *)(const void *)(values + (size_t)i * step));
	if (bpf_map_lookup_elem(bpf_map__fd(o->progs.base->maps.iter_scratch), &zero, iter) == 0)
		add_counters(ret, (const struct offcpu_counters *)(const void *)iter);
}
