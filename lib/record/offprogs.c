/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/offprogs.h"
#include "base/clock.h"
#include "offcpu_abi.h"
#include "record/cgroupbtf.h"
#include "record/unwindspace.h"
#include "system/owner.h"
#include "system/privileges.h"
#include "system/verifier.h"

#include "offcpu.skel.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

int offprogs_refused(const char *what, int code, struct err *e)
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

/* A key that nobody can guess; a kernel without entropy yet gives a weaker one, not a failure. */
static void draw_key(uint64_t key[4])
{
	if (getrandom(key, 4 * sizeof(*key), GRND_NONBLOCK) == 4 * sizeof(*key))
		return;
	for (int i = 0; i < 4; i++)
		key[i] = now_ns() * 0x9e3779b97f4a7c15u;
}

static void add_limit(struct offprogs *p, const char *what, const struct err *why)
{
	size_t len = strlen(p->limits);

	snprintf(p->limits + len, sizeof(p->limits) - len, "%s%s: %s%s%s", len ? "; " : "", what, why->msg,
		why->hint[0] ? "; " : "", why->hint);
}

static void set_constants(struct offcpu_bpf *skel, const struct offcpu_opts *opts)
{
	struct offcpu_bpf__rodata *ro = skel->rodata;
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
	ro->ring_wake_bytes = ring_bytes(opts->all) / 4;
	ro->owner_only = opts->owner_only;
	ro->owner_uid = opts->owner_uid;
	ro->owner_gid = opts->owner_gid;
	ro->use_cgroup = opts->use_cgroup;
	ro->cgroup_v1 = opts->cgroup_v1 != NULL;
	ro->cgroup_id = opts->cgroup_id;
	ro->by_table = opts->tables != NULL;
	ro->snapshots = opts->tables != NULL;
	ro->tell_forks = opts->no_events;
	draw_key(key);
	for (size_t i = 0; i < ARRAY_LEN(key); i++)
		ro->hash_key[i] = key[i];
	skel->bss->hot.self_tgid = (uint32_t)getpid(); /* find_self corrects it in a namespace */
}

static void set_sizes(struct offcpu_bpf *skel, const struct offcpu_opts *opts)
{
	uint32_t words = sysctl_u32("kernel/pid_max", 4194304) / 64 + 1;

	bpf_map__set_max_entries(skel->maps.ring, ring_bytes(opts->all));
	bpf_map__set_max_entries(skel->maps.seen, opts->all ? 65536 : 16384);
	bpf_map__set_max_entries(skel->maps.tgids, opts->all ? 1 : words);
	bpf_map__set_max_entries(skel->maps.tids, opts->use_tids ? words : 1);
	bpf_map__set_max_entries(skel->maps.moved, opts->use_cgroup ? words : 1);
}

static void choose_events(struct offcpu_bpf *skel, const struct offcpu_opts *opts)
{
	/* one process, and nothing but it: when its PID is free again, the recording is over */
	bpf_program__set_autoload(skel->progs.on_fork, (!opts->all && !opts->single) || opts->use_cgroup);
	bpf_program__set_autoload(skel->progs.on_rmdir, opts->use_cgroup);
	bpf_program__set_autoload(skel->progs.on_attach, opts->use_cgroup);
	bpf_program__set_autoload(skel->progs.on_exec, opts->use_comms || opts->use_exec);
	bpf_program__set_autoload(skel->progs.on_rename, opts->use_comms);
	bpf_program__set_autoload(skel->progs.tables_fork, opts->tables && !opts->single);
	bpf_program__set_autoload(skel->progs.tables_map, opts->tables && opts->no_events);
	bpf_program__set_autoload(skel->progs.tables_exec, opts->tables || opts->no_events);
	bpf_program__set_autoattach(skel->progs.record_switch, false); /* sched_switch tail-calls it */
}

static void choose_iters(struct offcpu_bpf *skel, const struct offcpu_opts *opts, bool first_ns)
{
	bpf_program__set_autoload(skel->progs.waiting_no_user, false);
	bpf_program__set_autoload(skel->progs.find_self, !first_ns);
	bpf_program__set_autoload(skel->progs.find_cgroup, opts->use_cgroup);
	bpf_program__set_autoload(skel->progs.find_images, opts->tables != NULL);
	bpf_program__set_autoload(skel->progs.find_targets, !opts->all && (!first_ns || opts->use_comms));
}

/* The maps that are made by others. */
static int use_maps(struct offcpu_bpf *skel, const struct unwindspace_fds *t, int agg_fd, struct err *e)
{
	int rc = bpf_map__reuse_fd(skel->maps.agg, agg_fd);

	if (rc)
		return err_sys(e, rc, "cannot use the aggregation map");
	if (!t)
		return 0;
	rc = bpf_map__reuse_fd(skel->maps.unwind_chunks, t->chunks);
	if (!rc)
		rc = bpf_map__reuse_fd(skel->maps.unwind_segs, t->segs);
	if (!rc)
		rc = bpf_map__reuse_fd(skel->maps.unwind_rules, t->rules);
	if (!rc)
		rc = bpf_map__reuse_fd(skel->maps.unwind_used, t->used);
	if (!rc)
		rc = bpf_map__reuse_fd(skel->maps.unwind_procs, t->procs);
	return rc ? err_sys(e, rc, "cannot use the maps of the unwind tables") : 0;
}

/* Is MEMBER there, in STRUCT or in an anonymous part of it? */
static bool has_member(const struct btf *btf, const struct btf_type *t, const char *member)
{
	for (uint16_t i = 0; i < btf_vlen(t); i++) {
		const struct btf_member *m = btf_members(t) + i;
		const char *name = btf__name_by_offset(btf, m->name_off);
		const struct btf_type *part = btf__type_by_id(btf, m->type);

		if (*name ? strcmp(name, member) == 0
			  : part && btf_is_composite(part) && has_member(btf, part, member))
			return true;
	}
	return false;
}

/* Members that the programs can do without, by bpf_core_field_exists(), and what is lost then. */
static const struct spare {
	const char *of, *member, *lost;
} spares[] = {
	{ "task_struct", "on_cpu", "stacks of waits that began before the recording" },
	{ "sched_entity", "prev_sum_exec_runtime", "the end of a wait that the kernel does not show" },
};

static bool is_spare(const char *of, const char *member)
{
	for (size_t i = 0; i < ARRAY_LEN(spares); i++)
		if (strcmp(spares[i].of, of) == 0 && strcmp(spares[i].member, member) == 0)
			return true;
	return false;
}

/* The kernel's struct NAME; NULL: it has none, or its BTF is not understood. */
static const struct btf_type *kernel_struct(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);

	return id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
}

static void note_spares(struct offprogs *p)
{
	struct btf *btf = p->hook.known ? btf__parse(p->hook.path, NULL) : NULL;

	for (size_t i = 0; btf && i < ARRAY_LEN(spares); i++) {
		const struct btf_type *t = kernel_struct(btf, spares[i].of);
		struct err why = { 0 };

		if (t && has_member(btf, t, spares[i].member))
			continue;
		err_set(&why, -ENOENT, "this kernel's %s has no member '%s'", spares[i].of, spares[i].member);
		add_limit(p, spares[i].lost, &why);
	}
	btf__free(btf);
}

/* The verifier refused the programs, perhaps for want of a member: then it has said nothing about that. */
static void explain_missing(const struct offprogs *p, struct err *e)
{
	const struct btf *ours = p->base ? bpf_object__btf(p->base->obj) : NULL;
	struct btf *btf = ours && p->hook.known ? btf__parse(p->hook.path, NULL) : NULL;

	for (uint32_t id = 1; btf && id < btf__type_cnt(ours); id++) {
		const struct btf_type *t = btf__type_by_id(ours, id);
		const char *of = btf__name_by_offset(ours, t->name_off);
		const struct btf_type *theirs = btf_is_struct(t) && *of ? kernel_struct(btf, of) : NULL;

		for (uint16_t i = 0; theirs && i < btf_vlen(t); i++) {
			const char *member = btf__name_by_offset(ours, btf_members(t)[i].name_off);

			if (!*member || is_spare(of, member) || has_member(btf, theirs, member))
				continue;
			err_hint(e, "this kernel's %s has no member '%s', which the programs read", of,
				member);
			btf__free(btf);
			return;
		}
	}
	btf__free(btf);
}

/* What the programs have to know of the kernel. */
static void set_kernel(struct offprogs *p)
{
	int args = kernhook_args(&p->hook, "sched_switch");

	/* preempt, prev, next; BTF that is not understood is that of a newer kernel */
	p->base->rodata->switch_has_state = args < 0 || args > 3;
	note_spares(p);
}

static struct offcpu_bpf *open_object(const struct offprogs *p)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = kernhook_path(&p->hook));

	return offcpu_bpf__open_opts(&opts);
}

static int open_base(struct offprogs *p, const char *btf_file, struct err *e)
{
	int rc = kernhook_open(&p->hook, btf_file, e);

	if (rc)
		return rc;
	p->base = open_object(p);
	if (!p->base)
		return err_nomem(e, "the BPF programs");
	rc = kernhook_read(&p->hook, p->base->obj, e);
	if (rc || p->hook.known)
		return rc;
	offcpu_bpf__destroy(p->base);
	p->base = open_object(p);
	return p->base ? 0 : err_nomem(e, "the BPF programs");
}

static int load_base(struct offprogs *p, const struct offcpu_opts *opts, int agg_fd, struct err *e)
{
	struct bpf_program *prog;
	uint32_t subsys = 0;
	int rc = open_base(p, opts->btf_file, e);

	if (rc)
		return rc;
	set_constants(p->base, opts);
	set_kernel(p);
	if (opts->cgroup_v1)
		rc = cgroupbtf_subsys(opts->btf_file, opts->cgroup_v1, &subsys, e);
	if (rc)
		return rc;
	p->base->rodata->cgroup_subsys = subsys;
	set_sizes(p->base, opts);
	rc = use_maps(p->base, opts->tables, agg_fd, e);
	if (rc)
		return rc;
	bpf_object__for_each_program(prog, p->base->obj) bpf_program__set_autoload(prog, false);
	rc = offcpu_bpf__load(p->base);
	if (!rc)
		return 0;
	offprogs_refused("create the BPF maps", rc, e);
	if (rc == -EINVAL && libbpf_probe_bpf_map_type(BPF_MAP_TYPE_TASK_STORAGE, NULL) == 0)
		err_hint(e, "this kernel has no task storage; Linux 5.11 brought it");
	return rc;
}

/* With the maps and data of another object in its place, P's base is opened and never loaded. */
static int load_raw(struct offprogs *p, const struct offcpu_opts *opts, int agg_fd, struct err *e)
{
	int rc;

	p->raw = calloc(1, sizeof(*p->raw));
	if (!p->raw)
		return err_nomem(e, "the BPF programs");
	rc = rawprogs_open(p->raw, opts, e);
	p->base = rc ? NULL : offcpu_bpf__open();
	if (!rc && !p->base)
		rc = err_nomem(e, "the BPF programs");
	if (!rc)
		rc = rawprogs_view(p->raw, p->base, e);
	if (rc)
		return rc;
	set_constants(p->base, opts);
	p->base->rodata->switch_has_state = true; /* else rawprogs takes classic tracepoints */
	set_sizes(p->base, opts);
	rc = use_maps(p->base, opts->tables, agg_fd, e);
	if (!rc)
		rc = rawprogs_load(p->raw, opts, e);
	return rc;
}

/* SKEL is the same object as P's base, so its maps come in the same order. */
static int share_maps(const struct offprogs *p, struct offcpu_bpf *skel, struct err *e)
{
	struct bpf_map *mine, *theirs = NULL;
	int rc = 0;

	bpf_object__for_each_map(mine, skel->obj)
	{
		theirs = bpf_object__next_map(p->base->obj, theirs);
		rc = rc ? rc : bpf_map__reuse_fd(mine, bpf_map__fd(theirs));
	}
	return rc ? err_sys(e, rc, "cannot share the BPF maps") : 0;
}

/* Either half of the programs: open, and ready to be loaded. */
static int open_part(struct offprogs *p, bool iters, struct offcpu_bpf **ret, struct err *e)
{
	struct bpf_program *prog;

	*ret = open_object(p);
	if (!*ret)
		return err_nomem(e, "the BPF programs");
	kernhook_set(&p->hook, (*ret)->obj);
	bpf_object__for_each_program(prog, (*ret)->obj)
		bpf_program__set_autoload(prog, kernhook_is_iter(prog) == iters);
	return share_maps(p, *ret, e);
}

static int load_part(struct offcpu_bpf *skel, int log_fd, struct err *e)
{
	struct verlog log;
	int rc = verlog_open(&log, skel->obj, e);

	if (rc)
		return rc;
	rc = offcpu_bpf__load(skel);
	if (rc && !verlog_refused(&log, rc, log_fd, e))
		offprogs_refused("load the BPF programs", rc, e);
	verlog_close(&log);
	return rc;
}

struct loading {
	struct offprogs *p;
	const struct offcpu_opts *opts;
	struct err e;
	int rc;
};

/* Without the program that reads the memory of other tasks, which not every kernel has the means for. */
static int load_iters_again(struct offprogs *p, const struct offcpu_opts *opts, struct err *e)
{
	int rc;

	offcpu_bpf__destroy(p->iters);
	p->iters = NULL;
	rc = open_part(p, true, &p->iters, e);
	if (rc)
		return rc;
	choose_iters(p->iters, opts, p->first_ns);
	bpf_program__set_autoload(p->iters->progs.waiting, false);
	bpf_program__set_autoload(p->iters->progs.waiting_no_user, true);
	return load_part(p->iters, p->verifier_log, e);
}

static void *load_iters(void *ctx)
{
	struct loading *l = ctx;
	struct err why = { 0 };

	l->rc = load_part(l->p->iters, l->p->verifier_log, &l->e);
	if (l->rc && l->rc != -EPERM && load_iters_again(l->p, l->opts, &why) == 0) {
		l->rc = 0;
		if (!l->opts->no_user_stacks)
			add_limit(l->p, "user stacks of waits that began before the recording", &l->e);
	}
	return NULL;
}

/* Both parts at once; where there is no thread to be had, one after the other. */
static int load_parts(struct offprogs *p, const struct offcpu_opts *opts, struct err *e)
{
	struct loading iters = { .p = p, .opts = opts };
	pthread_t thread;
	bool begun = pthread_create(&thread, NULL, load_iters, &iters) == 0;
	int rc = load_part(p->events, p->verifier_log, e);

	if (begun)
		pthread_join(thread, NULL);
	else if (!rc)
		load_iters(&iters);
	if (!rc && iters.rc && e)
		*e = iters.e;
	return rc ? rc : iters.rc;
}

static int install_switch(const struct offprogs *p, struct err *e)
{
	int fd = bpf_program__fd(p->events->progs.record_switch);
	uint32_t zero = 0;
	int rc = bpf_map_update_elem(bpf_map__fd(p->base->maps.recording), &zero, &fd, BPF_ANY);

	return rc ? offprogs_refused("put the recording program in its place", rc, e) : 0;
}

/*
 * A thread's wait is allocated inside the scheduler, from a pool per CPU (kernel/bpf/memalloc.c) that starts
 * with one element of this size and is refilled by irq_work. On PREEMPT_RT that runs in a kernel thread, and
 * a thread that leaves the CPU before it has run finds the pool empty: its wait is lost. So take and return
 * an element on each CPU beforehand; the kernel then fills the pool.
 */
static void fill_pools(int waits)
{
	static const struct offcpu_wait none;
	_cleanup_close_ int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	cpu_set_t all, one;

	/* more CPUs than a cpu_set_t has: their pools fill up as they are used */
	if (self < 0 || sched_getaffinity(0, sizeof(all), &all) != 0)
		return;
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (sched_setaffinity(0, sizeof(one), &one) == 0 &&
			bpf_map_update_elem(waits, &self, &none, BPF_ANY) == 0)
			bpf_map_delete_elem(waits, &self);
	}
	sched_setaffinity(0, sizeof(all), &all);
}

static int load_all(struct offprogs *p, const struct offcpu_opts *opts, int agg_fd, struct err *e)
{
	int rc;

	*p = (struct offprogs){ .first_ns = opts->raw || in_first_pid_ns(),
		.verifier_log = opts->verifier_log };
	if (opts->raw)
		return load_raw(p, opts, agg_fd, e);
	rc = check_btf(e);
	if (!rc)
		rc = load_base(p, opts, agg_fd, e);
	if (!rc)
		rc = open_part(p, false, &p->events, e);
	if (!rc)
		rc = open_part(p, true, &p->iters, e);
	if (rc)
		return rc;
	choose_events(p->events, opts);
	choose_iters(p->iters, opts, p->first_ns);
	rc = load_parts(p, opts, e);
	if (rc && rc != -EPERM)
		explain_missing(p, e);
	if (!rc)
		fill_pools(bpf_map__fd(p->base->maps.waits));
	return rc ? rc : install_switch(p, e);
}

int offprogs_load(struct offprogs *p, const struct offcpu_opts *opts, int agg_fd, struct err *e)
{
	int rc;

	owner_raise();
	rc = load_all(p, opts, agg_fd, e);
	owner_lower();
	return rc;
}

struct bpf_program *offprogs_waiting(const struct offprogs *p)
{
	struct bpf_program *full = p->iters->progs.waiting;

	return bpf_program__autoload(full) ? full : p->iters->progs.waiting_no_user;
}

int offprogs_attach(struct offprogs *p, struct err *e)
{
	int rc;

	owner_raise();
	rc = p->raw ? rawprogs_attach(p->raw, e) : offcpu_bpf__attach(p->events);
	if (rc && !p->raw)
		offprogs_refused("attach to the scheduler's tracepoints", rc, e);
	owner_lower();
	return rc;
}

void offprogs_close(struct offprogs *p)
{
	offcpu_bpf__destroy(p->events);
	offcpu_bpf__destroy(p->iters);
	offcpu_bpf__destroy(p->base);
	rawprogs_close(p->raw);
	free(p->raw);
	kernhook_close(&p->hook);
	*p = (struct offprogs){ 0 };
}

int offprogs_load_maps(struct offprogs *p, const struct offcpu_opts *opts, int agg_fd, struct err *e)
{
	int rc = check_btf(e);

	*p = (struct offprogs){ .first_ns = in_first_pid_ns() };
	libbpf_set_print(NULL);
	return rc ? rc : load_base(p, opts, agg_fd, e);
}

int offprogs_load_one(struct offprogs *p, const char *name, struct offcpu_bpf **ret, struct err *e)
{
	struct bpf_program *prog, *chosen;
	int rc = open_part(p, false, ret, e);

	if (rc)
		return rc;
	bpf_object__for_each_program(prog, (*ret)->obj) bpf_program__set_autoload(prog, false);
	chosen = bpf_object__find_program_by_name((*ret)->obj, name);
	if (!chosen)
		return err_set(e, -ENOENT, "no program of the recorder is called '%s'", name);
	bpf_program__set_autoload(chosen, true);
	return load_part(*ret, 0, e);
}
