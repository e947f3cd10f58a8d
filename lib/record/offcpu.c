/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "offcpu.h"
#include "aggmap.h"
#include "caps.h"
#include "capture.h"
#include "now.h"
#include "taskiter.h"

#include "offcpu.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

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

#define LOG_CAP 65536

struct offcpu {
	struct offcpu_bpf *skel;
	struct ring_buffer *rb;
	const struct offcpu_sink *sink; /* during a drain */
	struct aggmap agg;
	uint64_t inserted_at_swap;
	uint32_t n_comms;
	int cpus;
	uint32_t only; /* the one process that is recorded; 0 = there are more */
	bool first_ns; /* this process is in the first PID namespace */
	struct offcpu_opts opts;
	struct offcpu_counters open; /* of the waits that were cut at the end */
	char *log;
};

static int refused(const char *what, int code, struct err *e)
{
	static const int caps[] = { CAP_BPF, CAP_PERFMON };

	if (code == -EPERM || code == -EACCES)
		return caps_explain(what, code, caps, ARRAY_LEN(caps), e);
	return err_sys(e, code, "cannot %s", what);
}

/* Without these the programs cannot be relocated; libbpf would only say EINVAL or ESRCH. */
static int check_btf(struct err *e)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		return 0;
	err_sys(e, -errno, "cannot read the kernel's BTF, '/sys/kernel/btf/vmlinux'");
	return err_hint(
		e, "the kernel needs CONFIG_DEBUG_INFO_BTF=y; 'bpfcheck --tool offcpu-record' looks closer");
}

/* In the first PID namespace an id needs no translation: /proc/self/ns/pid is PROC_PID_INIT_INO. */
static bool in_first_pid_ns(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == 0xeffffffcu;
}

static uint32_t sysctl_u32(const char *name, uint32_t otherwise)
{
	char path[64];
	_cleanup_fclose_ FILE *f = NULL;
	uint32_t value;

	snprintf(path, sizeof(path), "/proc/sys/%s", name);
	f = fopen(path, "re");
	return f && fscanf(f, "%u", &value) == 1 ? value : otherwise;
}

/* Ring buffer and caches follow the machine's memory: 1/512 of it, a power of two. */
static uint32_t ring_bytes(bool all)
{
	struct sysinfo si;
	uint64_t want = all ? 16 << 20 : 4 << 20, have = want * 512;

	if (sysinfo(&si) == 0)
		have = (uint64_t)si.totalram * si.mem_unit;
	while (want > 256 << 10 && want > have / 512)
		want /= 2;
	return (uint32_t)want;
}

static void configure(struct offcpu *o)
{
	struct offcpu_bpf__rodata *ro = o->skel->rodata;
	const struct offcpu_opts *opts = &o->opts;
	uint32_t ring = ring_bytes(opts->all), words = sysctl_u32("kernel/pid_max", 4194304) / 64 + 1;
	uint64_t key[4];

	ro->all_tasks = opts->all;
	ro->with_kthreads = opts->kthreads;
	ro->follow = opts->follow;
	ro->single = opts->single;
	ro->use_tids = opts->use_tids;
	ro->use_comms = opts->use_comms;
	ro->kernel_stacks = !opts->no_kernel_stacks;
	ro->user_stacks = !opts->no_user_stacks;
	ro->record_preempted = opts->preempted;
	ro->depth = opts->depth ? opts->depth : 127;
	ro->max_stack = sysctl_u32("kernel/perf_event_max_stack", 127);
	ro->state_mask = opts->state_mask;
	ro->min_ns = opts->min_ns;
	ro->max_ns = opts->max_ns ? opts->max_ns : UINT64_MAX;
	ro->ring_wake_bytes = ring / 4;
	/* a kernel without entropy yet gives a weaker key, not a failure */
	if (getrandom(key, sizeof(key), GRND_NONBLOCK) != sizeof(key))
		key[0] = key[1] = key[2] = key[3] = now_ns() * 0x9e3779b97f4a7c15u;
	for (size_t i = 0; i < ARRAY_LEN(key); i++)
		ro->hash_key[i] = key[i];
	bpf_map__set_max_entries(o->skel->maps.ring, ring);
	bpf_map__set_max_entries(o->skel->maps.seen, opts->all ? 65536 : 16384);
	bpf_map__set_max_entries(o->skel->maps.tgids, opts->all ? 1 : words);
	bpf_map__set_max_entries(o->skel->maps.tids, opts->use_tids ? words : 1);
	/* one process, and nothing but it: when its PID is free again, the recording is over */
	bpf_program__set_autoload(o->skel->progs.on_fork, !opts->all && !opts->single);
	bpf_program__set_autoload(o->skel->progs.on_exec, opts->use_comms || opts->use_exec);
	bpf_program__set_autoload(o->skel->progs.on_rename, opts->use_comms);
	bpf_program__set_autoload(o->skel->progs.find_self, !o->first_ns);
	ro->by_table = opts->tables != NULL;
	/* without the events nobody knows later what was mapped */
	ro->snapshots = opts->tables && !opts->forks_untold;
	bpf_program__set_autoload(
		o->skel->progs.tables_fork, opts->tables && !opts->forks_untold && !opts->single);
	bpf_program__set_autoload(o->skel->progs.tables_exec, opts->tables != NULL);
	bpf_program__set_autoload(o->skel->progs.find_images, opts->tables != NULL);
	bpf_program__set_autoload(
		o->skel->progs.find_targets, !opts->all && (!o->first_ns || opts->use_comms));
	o->skel->bss->self_tgid = (uint32_t)getpid(); /* find_self corrects it in a namespace */
}

/* The last line of the verifier's complaint about the program that failed. */
static void add_log(struct offcpu *o, struct err *e)
{
	char *line, *save = NULL, *last = NULL;

	for (line = strtok_r(o->log, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (strncmp(line, "processed ", 10) != 0)
			last = line;
	if (last)
		err_hint(e, "the verifier says: %s", last);
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
	else if (type == OFFCPU_EV_IMAGE && o->sink->image)
		o->sink->image(o->sink->ctx, data);
	else if (type == OFFCPU_EV_SNAPSHOT && o->sink->snapshot)
		o->sink->snapshot(o->sink->ctx, data);
	return 0;
}

static int silent(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level, (void)fmt, (void)ap;
	return 0;
}

/* The maps that are made by others. */
static int use_maps(struct offcpu *o, struct err *e)
{
	const struct unwindspace_fds *t = o->opts.tables;
	int rc = bpf_map__reuse_fd(o->skel->maps.agg, o->agg.outer_fd);

	if (rc)
		return err_sys(e, rc, "cannot use the aggregation map");
	if (!t)
		return 0;
	rc = bpf_map__reuse_fd(o->skel->maps.unwind_chunks, t->chunks);
	if (!rc)
		rc = bpf_map__reuse_fd(o->skel->maps.unwind_segs, t->segs);
	if (!rc)
		rc = bpf_map__reuse_fd(o->skel->maps.unwind_rules, t->rules);
	if (!rc)
		rc = bpf_map__reuse_fd(o->skel->maps.unwind_used, t->used);
	if (!rc)
		rc = bpf_map__reuse_fd(o->skel->maps.unwind_procs, t->procs);
	return rc ? err_sys(e, rc, "cannot use the maps of the unwind tables") : 0;
}

static int load_programs(struct offcpu *o, struct err *e)
{
	struct bpf_program *prog;
	int rc;

	o->skel = offcpu_bpf__open();
	if (!o->skel)
		return err_nomem(e, "the BPF programs");
	configure(o);
	rc = use_maps(o, e);
	if (rc)
		return rc;
	bpf_object__for_each_program(prog, o->skel->obj) bpf_program__set_log_buf(prog, o->log, LOG_CAP);
	rc = offcpu_bpf__load(o->skel);
	if (!rc)
		return 0;
	refused("load the BPF programs", rc, e);
	if (rc != -EPERM)
		add_log(o, e);
	return rc;
}

static int load_parts(struct offcpu *o, struct err *e)
{
	int rc = aggmap_open(&o->agg, o->opts.all ? 32768 : 8192, e);

	if (rc)
		return refused("create the aggregation maps", rc, e);
	rc = load_programs(o, e);
	if (rc)
		return rc;
	o->rb = ring_buffer__new(bpf_map__fd(o->skel->maps.ring), on_event, o, NULL);
	return o->rb ? 0 : refused("map the ring buffer", -errno, e);
}

int offcpu_load(const struct offcpu_opts *opts, struct offcpu **ret, struct err *e)
{
	struct offcpu *o = calloc(1, sizeof(*o));
	int rc = o ? check_btf(e) : err_nomem(e, "the recorder");

	if (rc) {
		free(o);
		return rc;
	}
	o->opts = *opts;
	o->cpus = libbpf_num_possible_cpus();
	o->first_ns = in_first_pid_ns();
	o->log = calloc(1, LOG_CAP);
	libbpf_set_print(silent); /* what went wrong is told through E */
	rc = o->log && o->cpus > 0 ? load_parts(o, e) : err_nomem(e, "the BPF programs");
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
	offcpu_bpf__destroy(o->skel);
	aggmap_close(&o->agg);
	free(o->log);
	free(o);
}

/* In the first namespace the bit is set at once, elsewhere the iterator has to find the global id. */
static int ask(struct offcpu *o, struct bpf_map *bits, struct bpf_map *asked, uint32_t id, struct err *e)
{
	uint32_t one = 1, word = id >> 6;
	uint64_t value = 0;
	int rc;

	if (o->first_ns) {
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
	if (o->first_ns)
		o->skel->bss->single_tgid = pid;
	if (o->opts.single)
		o->only = pid;
	return ask(o, o->skel->maps.tgids, o->skel->maps.asked_pids, pid, e);
}

int offcpu_ask_tid(struct offcpu *o, uint32_t tid, struct err *e)
{
	return ask(o, o->skel->maps.tids, o->skel->maps.asked_tids, tid, e);
}

int offcpu_ask_comm(struct offcpu *o, const char *comm, struct err *e)
{
	if (o->n_comms == OFFCPU_COMMS_MAX)
		return err_set(e, -E2BIG, "more than %d names", OFFCPU_COMMS_MAX);
	snprintf(o->skel->bss->comms[o->n_comms++], OFFCPU_COMM_LEN, "%s", comm);
	o->skel->bss->n_comms = o->n_comms;
	return 0;
}

int offcpu_attach(struct offcpu *o, struct err *e)
{
	struct bpf_program *prog;
	int rc;

	/* iterators are attached when they are run */
	bpf_object__for_each_program(prog, o->skel->obj)
		bpf_program__set_autoattach(prog, strncmp(bpf_program__section_name(prog), "iter", 4) != 0);
	bpf_program__set_autoattach(o->skel->progs.record_switch, false); /* sched_switch tail-calls it */
	rc = o->first_ns ? 0 : taskiter_run(o->skel->progs.find_self, 0, 1, NULL, NULL, e);
	if (rc)
		return rc;
	rc = offcpu_bpf__attach(o->skel);
	return rc ? refused("attach to the scheduler's tracepoints", rc, e) : 0;
}

int offcpu_ask_exec(struct offcpu *o, uint32_t pid, struct err *e)
{
	(void)e;
	o->skel->bss->exec_target = pid;
	return 0;
}

/* In a PID namespace the iterator has to find the global id. */
void offcpu_leave_out(struct offcpu *o, uint32_t pid)
{
	if (o->first_ns) {
		o->skel->bss->worker_tgid = pid;
	} else if (o->skel->bss->worker_id != pid) {
		o->skel->bss->worker_id = pid;
		taskiter_run(o->skel->progs.find_self, 0, 1, NULL, NULL, NULL);
	}
}

void offcpu_hold(struct offcpu *o, uint32_t pid)
{
	__atomic_store_n(&o->skel->bss->held, pid, __ATOMIC_SEQ_CST);
}

static void set_phase(struct offcpu *o, uint32_t phase)
{
	__atomic_store_n(&o->skel->bss->phase, phase, __ATOMIC_SEQ_CST);
}

static int look_around(struct offcpu *o, struct err *e)
{
	return taskiter_run(o->skel->progs.waiting, o->only, 1, NULL, NULL, e);
}

int offcpu_look_again(struct offcpu *o, struct err *e)
{
	return look_around(o, e);
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

	return taskiter_run(
		o->skel->progs.find_images, pid, sizeof(struct offcpu_ev_image), take_image, &copy, e);
}

int offcpu_start(struct offcpu *o, uint64_t *start_ns, struct err *e)
{
	int rc = aggmap_settle(&o->agg, e);

	if (!rc && bpf_program__autoload(o->skel->progs.find_targets))
		rc = taskiter_run(o->skel->progs.find_targets, 0, 1, NULL, NULL, e);
	if (rc)
		return rc;
	set_phase(o, OFFCPU_ARMED);
	rc = look_around(o, e);
	if (rc)
		return rc;
	*start_ns = now_ns();
	o->skel->bss->record_start_boot = now_on(CLOCK_BOOTTIME);
	o->skel->bss->record_start_ns = *start_ns;
	set_phase(o, OFFCPU_RECORDING);
	return 0;
}

int offcpu_fd(const struct offcpu *o)
{
	return ring_buffer__epoll_fd(o->rb);
}

void offcpu_drain(struct offcpu *o, const struct offcpu_sink *sink)
{
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
	o->inserted_at_swap = o->skel->bss->inserted;
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
	return o->skel->bss->inserted - o->inserted_at_swap > aggmap_room(&o->agg) / 2;
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
	rc = taskiter_run(
		o->skel->progs.open_waits, o->only, sizeof(struct offcpu_ev_open), take_open, &oc, e);
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
	size_t size = bpf_map__value_size(o->skel->maps.scratches), step = (size + 7) / 8 * 8;
	_cleanup_free_ char *values = calloc((size_t)o->cpus, step);
	_cleanup_free_ char *iter = calloc(1, step);
	uint32_t zero = 0;

	*ret = o->open;
	if (!values || !iter)
		return;
	if (bpf_map_lookup_elem(bpf_map__fd(o->skel->maps.scratches), &zero, values) == 0)
		for (int i = 0; i < o->cpus; i++)
			add_counters(ret,
				(const struct offcpu_counters *)(const void *)(values + (size_t)i * step));
	if (bpf_map_lookup_elem(bpf_map__fd(o->skel->maps.iter_scratch), &zero, iter) == 0)
		add_counters(ret, (const struct offcpu_counters *)(const void *)iter);
}
