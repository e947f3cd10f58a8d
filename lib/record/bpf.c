/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/bpf.h"
#include "base/clock.h"
#include "capture/types.h"
#include "cgroup.skel.h"
#include "offcpu.skel.h"
#include "record/bpf_code.h"
#include "record/bpf_variants.h"
#include "record/unwind_memory.h"
#include "system/owner.h"
#include "system/privilege_sets.h"
#include "system/privileges.h"
#include "system/verifier.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define SIZE_MAX_ELEMENTS (1u << 22)
#define BATCH 4096

static uint32_t key_bytes(const struct aggmap *m)
{
	return m->wakers ? sizeof(struct offcpu_key) : OFFCPU_KEY_BARE;
}

static int create(const struct aggmap *m, uint32_t size)
{
	return bpf_map_create(
		BPF_MAP_TYPE_HASH, "agg", key_bytes(m), sizeof(struct offcpu_value), size, NULL);
}

static int install_map(const struct aggmap *m, int fd)
{
	uint32_t zero = 0;

	return bpf_map_update_elem(m->outer_fd, &zero, &fd, BPF_ANY);
}

static int create_outer(int inner_fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = (uint32_t)inner_fd);

	return bpf_map_create(
		BPF_MAP_TYPE_ARRAY_OF_MAPS, "agg", sizeof(uint32_t), sizeof(uint32_t), 1, &opts);
}

static void *run_install(void *ctx)
{
	struct aggmap *m = ctx;

	if (m->before)
		m->before(m->before_ctx);
	m->installed = install_map(m, m->installing_fd);
	__atomic_store_n(&m->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Put FD into the slot in a thread, which waits for the kernel; without one, in this thread. */
static void begin_install(struct aggmap *m, int fd)
{
	m->installing_fd = fd;
	m->done = 0;
	m->installing = pthread_create(&m->installer, NULL, run_install, m) == 0;
	if (!m->installing)
		run_install(m);
}

int aggmap_open(struct aggmap *m, uint32_t size, bool wakers, struct err *e)
{
	int rc;

	*m = (struct aggmap){ .size = size, .spare_size = size, .wakers = wakers };
	m->fd = create(m, size);
	m->spare_fd = m->fd < 0 ? m->fd : create(m, size);
	m->outer_fd = m->spare_fd < 0 ? m->spare_fd : create_outer(m->fd);
	if (m->outer_fd < 0) {
		rc = m->outer_fd;
		aggmap_close(m);
		return err_sys(e, rc, "cannot create the aggregation maps");
	}
	begin_install(m, m->fd);
	return 0;
}

int aggmap_settle(struct aggmap *m, struct err *e)
{
	if (m->installing)
		pthread_join(m->installer, NULL);
	m->installing = false;
	return m->installed ? err_sys(e, m->installed, "cannot install an aggregation map") : 0;
}

void aggmap_close(struct aggmap *m)
{
	aggmap_settle(m, NULL);
	if (m->outer_fd > 0)
		close(m->outer_fd);
	if (m->fd > 0)
		close(m->fd);
	if (m->spare_fd > 0)
		close(m->spare_fd);
	m->outer_fd = m->fd = m->spare_fd = 0;
}

/*
 * Exchange the spare map and the map in use, which keeps its content. A thread
 * waits for the kernel; once aggmap_swapped() is true, aggmap_end_swap() does
 * not wait. aggmap_swap() does both at once. Call no other function in between.
 */
static void aggmap_begin_swap(struct aggmap *m)
{
	begin_install(m, m->spare_fd);
}

static bool aggmap_swapped(struct aggmap *m)
{
	return __atomic_load_n(&m->done, __ATOMIC_ACQUIRE);
}

static int aggmap_end_swap(struct aggmap *m, struct err *e)
{
	struct aggmap old = *m;

	if (aggmap_settle(m, NULL) != 0)
		return err_sys(e, m->installed, "cannot swap the aggregation map");
	m->fd = old.spare_fd;
	m->size = old.spare_size;
	m->spare_fd = old.fd;
	m->spare_size = old.size;
	return 0;
}

int aggmap_swap(struct aggmap *m, struct err *e)
{
	aggmap_begin_swap(m);
	return aggmap_end_swap(m, e);
}

static void grow_spare(struct aggmap *m)
{
	int bigger = create(m, m->spare_size * 2);

	if (bigger == -EPERM)
		bigger = broker_bpf_map(m->broker, BROKER_AGG_MAP, m->spare_size * 2, m->wakers);
	if (bigger < 0)
		return;
	close(m->spare_fd);
	m->spare_fd = bigger;
	m->spare_size *= 2;
}

/* Pass what map FD has to TAKE, and delete it. */
static int empty_map(const struct aggmap *m, int fd, uint32_t *n, aggmap_take *take, void *ctx, struct err *e)
{
	const size_t step = key_bytes(m);
	_cleanup_free_ char *keys = calloc(BATCH, step);
	_cleanup_free_ struct offcpu_value *values = calloc(BATCH, sizeof(*values));
	uint32_t at = 0, count;
	bool first = true;
	int rc = 0;

	if (!keys || !values)
		return err_nomem(e, "the samples of a flush");
	*n = 0;
	while (rc == 0) {
		count = BATCH;
		rc = bpf_map_lookup_and_delete_batch(fd, first ? NULL : &at, &at, keys, values, &count, NULL);
		first = false;
		/* ENOENT: this was the last batch */
		if (rc && rc != -ENOENT)
			return err_sys(e, rc, "cannot read the aggregation map");
		for (uint32_t i = 0; i < count && take; i++) {
			struct offcpu_key key = { 0 };

			memcpy(&key, keys + i * step, step);
			take(ctx, &key, &values[i]);
		}
		*n += count;
	}
	return 0;
}

int aggmap_empty(struct aggmap *m, aggmap_take *take, void *ctx, struct err *e)
{
	uint32_t n;
	int rc = empty_map(m, m->spare_fd, &n, take, ctx, e);

	if (!rc && n >= m->spare_size / 2 && m->spare_size < SIZE_MAX_ELEMENTS)
		grow_spare(m);
	return rc;
}

int aggmap_finish(struct aggmap *m, aggmap_take *take, void *ctx, struct err *e)
{
	return empty_map(m, m->fd, &(uint32_t){ 0 }, take, ctx, e);
}

uint32_t aggmap_room(const struct aggmap *m)
{
	return m->size;
}

static struct bpf_link *attach(struct bpf_program *prog, uint32_t pid)
{
	union bpf_iter_link_info info = { .task.pid = pid };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));
	struct bpf_link *link = pid ? bpf_program__attach_iter(prog, &opts) : NULL;

	return link ? link : bpf_program__attach_iter(prog, NULL);
}

static int read_all(
	int fd, size_t size, void (*take)(void *ctx, const void *record), void *ctx, struct err *e)
{
	char buf[16384];
	size_t have = 0, at;
	ssize_t n;

	while ((n = read(fd, buf + have, sizeof(buf) - have)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, -errno, "cannot read the task iterator");
		have += (size_t)n;
		for (at = 0; take && have - at >= size; at += size)
			take(ctx, buf + at);
		memmove(buf, buf + at, have - at);
		have = take ? have - at : 0;
	}
	return 0;
}

int taskiter_run(struct bpf_program *prog, uint32_t pid, size_t size,
	void (*take)(void *ctx, const void *record), void *ctx, struct err *e)
{
	struct bpf_link *link = attach(prog, pid);
	_cleanup_close_ int fd = -1;
	int rc;

	if (!link)
		return err_sys(e, -errno, "cannot attach the task iterator");
	fd = bpf_iter_create(bpf_link__fd(link));
	rc = fd < 0 ? err_sys(e, fd, "cannot create the task iterator") : read_all(fd, size, take, ctx, e);
	bpf_link__destroy(link);
	return rc;
}

/*
 * cgroupbtf - a v1 controller's index in the kernel's css_set.subsys.
 *
 * It depends on the kernel's configuration; enum cgroup_subsys_id in its BTF
 * has it.
 */

/* The value of enumerator NAME_cgrp_id. */
static bool find(const struct btf *btf, const char *name, uint32_t *ret)
{
	int id = btf__find_by_name_kind(btf, "cgroup_subsys_id", BTF_KIND_ENUM);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	char full[64];

	snprintf(full, sizeof(full), "%s_cgrp_id", name);
	for (uint32_t i = 0; t && i < btf_vlen(t); i++) {
		if (strcmp(btf__name_by_offset(btf, btf_enum(t)[i].name_off), full) == 0) {
			*ret = (uint32_t)btf_enum(t)[i].val;
			return true;
		}
	}
	return false;
}

/*
 * Set *RET to the index of CONTROLLER ("memory", as in /proc/cgroups), from the
 * BTF in FILE (NULL: the running kernel's). -ENOTSUP: no such BTF, or no such
 * controller in it.
 */
static int cgroupbtf_subsys(const char *file, const char *controller, uint32_t *ret, struct err *e)
{
	struct btf *btf = file ? btf__parse(file, NULL) : btf__load_vmlinux_btf();
	bool found;

	if (!btf)
		return err_sys(e, -ENOTSUP,
			"cannot filter by a cgroup of controller '%s' without the kernel's BTF", controller);
	/* the kernel has since renamed blkio */
	found = find(btf, strcmp(controller, "blkio") == 0 ? "io" : controller, ret);
	btf__free(btf);
	if (found)
		return 0;
	return err_set(e, -ENOTSUP, "the kernel's BTF does not know cgroup controller '%s'", controller);
}

/* Set the message for CODE, "cannot WHAT", with the missing capabilities. Returns CODE. */
static int offprogs_refused(const char *what, int code, struct err *e)
{
	static const int caps[] = { CAP_BPF, CAP_PERFMON };

	if (code == -EPERM || code == -EACCES)
		return priv_explain(what, code, caps, ARRAY_LEN(caps), e);
	return err_sys(e, code, "cannot %s", what);
}

/* Without the kernel's BTF the programs cannot be relocated; libbpf would only return EINVAL or ESRCH. */
static int check_btf(struct err *e)
{
	int code;

	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		return 0;
	code = err_sys(e, -errno, "cannot read the kernel's BTF, '/sys/kernel/btf/vmlinux'");
	err_hint(e, "the kernel needs CONFIG_DEBUG_INFO_BTF=y; 'bpfcheck --tool offcpu-record' shows "
		    "the details");
	return code;
}

/* In the first PID namespace ids need no translation: /proc/self/ns/pid has inode PROC_PID_INIT_INO. */
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

/* Size of the ring buffer: up to 1/512 of the memory, a power of two; 256 KiB to 4 MiB, 16 MiB with ALL. */
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

/* An unpredictable key. If the kernel has no entropy yet, a weaker one from the clock, not a failure. */
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

/* As the kernel's clock takes it, rounded: 99 Hz is 10,101,010 ns. */
static uint64_t cpu_period_ns(uint32_t hz)
{
	return (1000000000 + hz / 2) / hz;
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
	ro->verify_stacks = opts->verify_stacks;
	ro->user_stacks = !opts->no_user_stacks;
	ro->record_preempted = opts->preempted;
	ro->depth = opts->depth ? opts->depth : 127;
	ro->max_stack = sysctl_u32("kernel/perf_event_max_stack", 127);
	ro->state_mask = opts->state_mask;
	ro->min_ns = opts->min_ns;
	ro->max_ns = opts->max_ns ? opts->max_ns : UINT64_MAX;
	ro->ring_wake_bytes = ring_bytes(opts->all || opts->events) / 4;
	ro->owner_only = opts->owner_only;
	ro->owner_uid = opts->owner_uid;
	ro->owner_gid = opts->owner_gid;
	ro->use_cgroup = opts->use_cgroup;
	ro->cgroup_v1 = opts->cgroup_v1 != NULL;
	ro->cgroup_id = opts->cgroup_id;
	ro->by_table = opts->tables != NULL;
	ro->snapshots = opts->tables != NULL;
	ro->scripts = opts->tables && !opts->raw ? opts->scripts : 0;
	ro->report_forks = opts->no_events;
	ro->waker_steps = opts->wakers;
	ro->single_waits = opts->events;
	ro->trigger_ns = opts->trigger_ns ? opts->trigger_ns : UINT64_MAX;
	ro->sample_stacks = opts->sample_stacks || opts->overhead;
	ro->measure = opts->overhead;
	skel->bss->stack_every = opts->sample_stacks;
	ro->cpu_period_ns = opts->cpu_hz ? cpu_period_ns(opts->cpu_hz) : 0;
	draw_key(key);
	for (size_t i = 0; i < ARRAY_LEN(key); i++)
		ro->hash_key[i] = key[i];
	skel->bss->hot.self_tgid = (uint32_t)getpid(); /* find_self corrects it in a namespace */
}

static void set_sizes(struct offcpu_bpf *skel, const struct offcpu_opts *opts)
{
	uint32_t words = sysctl_u32("kernel/pid_max", 4194304) / 64 + 1;

	bpf_map__set_max_entries(skel->maps.ring, ring_bytes(opts->all || opts->events));
	bpf_map__set_max_entries(skel->maps.seen, opts->all ? 65536 : 16384);
	bpf_map__set_max_entries(skel->maps.tgids, opts->all ? 1 : words);
	bpf_map__set_max_entries(skel->maps.tids, opts->use_tids ? words : 1);
	if (skel->maps.left && !opts->use_cgroup)
		bpf_map__set_max_entries(skel->maps.left, 1);
}

static void choose_events(struct offcpu_bpf *skel, const struct offcpu_opts *opts)
{
	/* a single target needs no forks: its PID is not reused before the recording is over */
	bpf_program__set_autoload(skel->progs.on_fork, (!opts->all && !opts->single) || opts->use_cgroup);
	bpf_program__set_autoload(skel->progs.on_rmdir, opts->use_cgroup);
	bpf_program__set_autoload(skel->progs.on_attach, opts->use_cgroup);
	bpf_program__set_autoload(skel->progs.on_exit, opts->use_cgroup);
	bpf_program__set_autoload(skel->progs.on_exec, opts->use_comms || opts->use_exec);
	bpf_program__set_autoload(skel->progs.on_rename, opts->use_comms);
	bpf_program__set_autoload(skel->progs.tables_fork, opts->tables && !opts->single);
	bpf_program__set_autoload(skel->progs.tables_map, opts->tables && opts->no_events);
	bpf_program__set_autoload(
		skel->progs.tables_exec, opts->tables || opts->no_events || !opts->no_waits);
	bpf_program__set_autoattach(skel->progs.record_switch, false); /* sched_switch tail-calls it */
	bpf_program__set_autoattach(skel->progs.sched_switch, !opts->no_waits);
	bpf_program__set_autoload(skel->progs.sched_waking, opts->wakers);
	bpf_program__set_autoload(skel->progs.record_waking, opts->wakers);
	bpf_program__set_autoattach(skel->progs.record_waking, false);
	bpf_program__set_autoload(skel->progs.sample_cpu, opts->cpu_hz);
	bpf_program__set_autoattach(skel->progs.sample_cpu, false); /* to a clock on each CPU */
}

static void choose_iters(struct offcpu_bpf *skel, const struct offcpu_opts *opts, bool first_ns)
{
	bpf_program__set_autoload(skel->progs.waiting_no_user, false);
	bpf_program__set_autoload(skel->progs.find_self, !first_ns);
	bpf_program__set_autoload(skel->progs.find_cgroup, opts->use_cgroup);
	bpf_program__set_autoload(
		skel->progs.find_images, opts->tables || opts->use_comms || opts->use_cgroup);
	bpf_program__set_autoload(skel->progs.find_targets, !opts->all && (!first_ns || opts->use_comms));
}

/* Use the maps that exist already. */
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
	if (!rc)
		rc = bpf_map__reuse_fd(skel->maps.runtimes, t->runtimes);
	if (!rc)
		rc = bpf_map__reuse_fd(skel->maps.hotspots, t->hotspots);
	return rc ? err_sys(e, rc, "cannot use the maps of the unwind tables") : 0;
}

/* Does struct T have MEMBER, directly or in an anonymous part? */
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

/* Members that the programs can do without (bpf_core_field_exists()), and what is lost without them. */
static const struct spare {
	const char *of, *member, *lost;
} spares[] = {
	{ "task_struct", "on_cpu", "stacks of waits that began before the recording" },
	{ "sched_entity", "prev_sum_exec_runtime", "the end of a wait that the kernel does not show" },
	{ "thread_struct", "fsbase", "functions of interpreters' programs" },
};

static bool is_spare(const char *of, const char *member)
{
	for (size_t i = 0; i < ARRAY_LEN(spares); i++)
		if (strcmp(spares[i].of, of) == 0 && strcmp(spares[i].member, member) == 0)
			return true;
	return false;
}

/* The kernel's struct NAME; NULL: it has none. */
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
#if !defined(__x86_64__)
		/* base of a thread's local storage, by which states of interpreters are found */
		if (strcmp(spares[i].member, "fsbase") == 0)
			err_set(&why, -ENOENT, "they are known on x86-64 alone");
#endif
		add_limit(p, spares[i].lost, &why);
	}
	btf__free(btf);
}

/* The verifier refused the programs: hint at a struct member that is missing, which it does not report. */
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

/* What the programs must know about the kernel. */
static void set_kernel(struct offprogs *p)
{
	int args = bpf_hooks_args(&p->hook, "sched_switch");

	/* without state 3: preempt, prev, next; BTF that is not understood is from a newer kernel */
	p->base->rodata->switch_has_state = args < 0 || args > 3;
	p->base->rodata->cast_type = p->hook.cast_type;
	note_spares(p);
}

/* The programs that find SCRIPTS, as in offcpu_opts. */
static struct offcpu_bpf *open_object(const struct offprogs *p, uint32_t scripts)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = bpf_hooks_path(&p->hook));
	struct offcpu_bpf *skel = calloc(1, sizeof(*skel));
	_cleanup_free_ void *elf = NULL;
	size_t size;

	if (!skel || offcpu_bpf__create_skeleton(skel) != 0) {
		free(skel);
		return NULL;
	}
	if (bpf_variant(scripts, &elf, &size) == 0) {
		if (elf) {
			skel->skeleton->data = elf;
			skel->skeleton->data_sz = size;
		}
		/* it keeps nothing of the file */
		if (bpf_object__open_skeleton(skel->skeleton, &opts) == 0)
			return skel;
	}
	offcpu_bpf__destroy(skel);
	return NULL;
}

static int open_base(struct offprogs *p, const char *btf_file, struct err *e)
{
	int rc = bpf_hooks_open(&p->hook, btf_file, e);

	if (rc)
		return rc;
	p->base = open_object(p, p->scripts);
	if (!p->base)
		return err_nomem(e, "the BPF programs");
	rc = bpf_hooks_read(&p->hook, p->base->obj, e);
	if (rc || p->hook.known)
		return rc;
	offcpu_bpf__destroy(p->base);
	p->base = open_object(p, p->scripts);
	return p->base ? 0 : err_nomem(e, "the BPF programs");
}

/* The address and level of the cgroup, if a task is in it already. */
static void find_cgroup(const struct offprogs *p, struct bpf_code *code)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = bpf_hooks_path(&p->hook));
	const struct offcpu_bpf__rodata *ro = p->base->rodata;
	struct cgroup_bpf *skel = cgroup_bpf__open_opts(&opts);

	if (!skel)
		return;
	bpf_hooks_set(&p->hook, skel->obj);
	skel->rodata->cgroup_v1 = ro->cgroup_v1;
	skel->rodata->cgroup_subsys = ro->cgroup_subsys;
	skel->rodata->cgroup_id = ro->cgroup_id;
	if (cgroup_bpf__load(skel) == 0 &&
		taskiter_run(skel->progs.find_cgroup_first, 0, 1, NULL, NULL, NULL) == 0) {
		code->id = skel->bss->cgroup_at.address;
		code->level = skel->bss->cgroup_at.level;
	}
	cgroup_bpf__destroy(skel);
}

/*
 * Write into the programs of each switch and wake-up whom the recording concerns, if that is known: one
 * process by its ID in the initial PID namespace, or a cgroup that is not empty. Wakers of wakers may be
 * anyone.
 */
static void write_code(const struct offprogs *p, const struct offcpu_opts *opts)
{
	const struct offcpu_bpf__rodata *ro = p->base->rodata;
	struct bpf_code code = { 0 };

	if (opts->single && !opts->use_cgroup && p->first_ns) {
		code.who = OFFCPU_WHO_PROCESS;
		code.id = opts->single_pid;
	} else if (opts->use_cgroup && opts->all) {
		code.subsys = opts->cgroup_v1 ? ro->cgroup_subsys + 1 : 0;
		find_cgroup(p, &code);
		if (code.id)
			code.who = opts->kthreads ? OFFCPU_WHO_CGROUP_KTHREADS : OFFCPU_WHO_CGROUP;
	}
	bpf_code_set(p->events->progs.sched_switch, &code);
	if (opts->wakers <= 1)
		bpf_code_set(p->events->progs.sched_waking, &code);
}

static int load_base(struct offprogs *p, const struct offcpu_opts *opts, int agg_fd, struct err *e)
{
	struct bpf_program *prog;
	uint32_t subsys = 0;
	int rc;

	p->scripts = opts->tables ? opts->scripts : 0;
	rc = open_base(p, opts->btf_file, e);
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

/* P's base is opened but never loaded: it is a view of the maps and data of P->raw. */
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
	p->base->rodata->switch_has_state = true; /* else rawprogs uses classic tracepoints */
	set_sizes(p->base, opts);
	rc = use_maps(p->base, opts->tables, agg_fd, e);
	if (!rc)
		rc = rawprogs_load(p->raw, opts, e);
	return rc;
}

/* SKEL has the same maps as P's base, in the same order. Its own are the constants that differ. */
static int share_maps(const struct offprogs *p, struct offcpu_bpf *skel, struct err *e)
{
	struct bpf_map *mine, *theirs = NULL;
	int rc = 0;

	bpf_object__for_each_map(mine, skel->obj)
	{
		theirs = bpf_object__next_map(p->base->obj, theirs);
		if (mine != skel->maps.rodata_part)
			rc = rc ? rc : bpf_map__reuse_fd(mine, bpf_map__fd(theirs));
	}
	return rc ? err_sys(e, rc, "cannot share the BPF maps") : 0;
}

/* Open one half of the programs, ready to be loaded. BARE: without what finds script frames. */
static int open_part(struct offprogs *p, bool iters, bool bare, struct offcpu_bpf **ret, struct err *e)
{
	struct bpf_program *prog;

	*ret = open_object(p, bare ? 0 : p->scripts);
	if (!*ret)
		return err_nomem(e, "the BPF programs");
	bpf_hooks_set(&p->hook, (*ret)->obj);
	(*ret)->rodata_part->remote = iters;
	bpf_object__for_each_program(prog, (*ret)->obj)
		bpf_program__set_autoload(prog, bpf_hooks_is_iter(prog) == iters);
	return share_maps(p, *ret, e);
}

static int load_part(struct offcpu_bpf *skel, int log_fd, struct err *e)
{
	struct verifier_log log;
	int rc = verifier_log_open(&log, skel->obj, e);

	if (rc)
		return rc;
	rc = offcpu_bpf__load(skel);
	if (rc && !verifier_log_refused(&log, rc, log_fd, e))
		offprogs_refused("load the BPF programs", rc, e);
	verifier_log_close(&log);
	return rc;
}

struct loading {
	struct offprogs *p;
	const struct offcpu_opts *opts;
	struct err e;
	int rc;
};

/* With USER: without script frames. Else without the program that reads the memory of other tasks. */
static int load_iters_again(struct offprogs *p, const struct offcpu_opts *opts, bool user, struct err *e)
{
	int rc;

	offcpu_bpf__destroy(p->iters);
	p->iters = NULL;
	rc = open_part(p, true, true, &p->iters, e);
	if (rc)
		return rc;
	choose_iters(p->iters, opts, p->first_ns);
	if (!user) {
		bpf_program__set_autoload(p->iters->progs.waiting, false);
		bpf_program__set_autoload(p->iters->progs.waiting_no_user, true);
	}
	return load_part(p->iters, p->verifier_log, e);
}

/* Not every kernel has room on its stack for script frames here, or reads the memory of other tasks. */
static void *load_iters(void *ctx)
{
	struct loading *l = ctx;
	struct err why = { 0 };

	l->rc = open_part(l->p, true, false, &l->p->iters, &l->e);
	if (l->rc)
		return NULL;
	choose_iters(l->p->iters, l->opts, l->p->first_ns);
	l->rc = load_part(l->p->iters, l->p->verifier_log, &l->e);
	if (l->rc && l->rc != -EPERM && l->opts->scripts) {
		l->rc = load_iters_again(l->p, l->opts, true, &why);
		l->p->iters_bare = !l->rc;
		l->e = why; /* the reason why there are no user stacks at all */
	}
	if (l->rc && l->rc != -EPERM && load_iters_again(l->p, l->opts, false, &why) == 0) {
		l->rc = 0;
		if (!l->opts->no_user_stacks)
			add_limit(l->p, "user stacks of waits that began before the recording", &l->e);
	}
	return NULL;
}

static int load_events(struct offprogs *p, const struct offcpu_opts *opts, struct err *e)
{
	int rc = open_part(p, false, false, &p->events, e);

	if (rc)
		return rc;
	choose_events(p->events, opts);
	write_code(p, opts);
	return load_part(p->events, p->verifier_log, e);
}

/* Load both parts at once; if no thread can be created, one after the other. */
static int load_parts(struct offprogs *p, const struct offcpu_opts *opts, struct err *e)
{
	struct loading iters = { .p = p, .opts = opts };
	pthread_t thread;
	bool begun = pthread_create(&thread, NULL, load_iters, &iters) == 0;
	int rc = load_events(p, opts, e);

	if (begun)
		pthread_join(thread, NULL);
	else if (!rc)
		load_iters(&iters);
	if (!rc && iters.rc && e)
		*e = iters.e;
	return rc ? rc : iters.rc;
}

/* Put the programs that others tail-call in their places. */
static int install(const struct offprogs *p, struct err *e)
{
	int fd = bpf_program__fd(p->events->progs.record_switch);
	uint32_t zero = 0;
	int rc = bpf_map_update_elem(bpf_map__fd(p->base->maps.recording), &zero, &fd, BPF_ANY);

	fd = bpf_program__fd(p->events->progs.record_waking);
	if (!rc && bpf_program__autoload(p->events->progs.record_waking))
		rc = bpf_map_update_elem(bpf_map__fd(p->base->maps.recording_wakers), &zero, &fd, BPF_ANY);
	return rc ? offprogs_refused("put the recording programs in their places", rc, e) : 0;
}

/*
 * The kernel allocates a thread's wait inside the scheduler, from a pool per CPU (kernel/bpf/memalloc.c) that
 * starts with one element of this size and is refilled by irq_work. On PREEMPT_RT irq_work runs in a kernel
 * thread; a thread that leaves the CPU before that finds the pool empty, and its wait is lost. So allocate
 * and free an element on each CPU beforehand: the kernel then fills the pool.
 */
static void fill_pools(int map, const void *none)
{
	_cleanup_close_ int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	cpu_set_t all, one;

	/* the pools of CPUs beyond a cpu_set_t fill up as they are used */
	if (self < 0 || sched_getaffinity(0, sizeof(all), &all) != 0)
		return;
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (sched_setaffinity(0, sizeof(one), &one) == 0 &&
			bpf_map_update_elem(map, &self, none, BPF_ANY) == 0)
			bpf_map_delete_elem(map, &self);
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
	if (rc)
		return rc;
	rc = load_parts(p, opts, e);
	if (rc && rc != -EPERM)
		explain_missing(p, e);
	if (!rc)
		fill_pools(bpf_map__fd(p->base->maps.waits), &(struct offcpu_wait){ 0 });
	if (!rc && opts->wakers)
		fill_pools(bpf_map__fd(p->base->maps.woken), &(struct offcpu_woken){ 0 });
	return rc ? rc : install(p, e);
}

/*
 * Size and load everything for OPTS, with the aggregation maps behind AGG_FD;
 * nothing runs yet. The error message names the step, the missing capability
 * or kernel feature, and the remedy. Call offprogs_close() even on failure.
 */
static int offprogs_load(struct offprogs *p, const struct offcpu_opts *opts, int agg_fd, struct err *e)
{
	int rc;

	owner_raise();
	rc = load_all(p, opts, agg_fd, e);
	owner_lower();
	return rc;
}

/* The iterator over threads that wait already. */
static struct bpf_program *offprogs_waiting(const struct offprogs *p)
{
	struct bpf_program *full = p->iters->progs.waiting;

	return bpf_program__autoload(full) ? full : p->iters->progs.waiting_no_user;
}

/* Let the clock of each CPU run the program. */
static int attach_clocks(struct offprogs *p, uint32_t hz, struct err *e)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = cpu_period_ns(hz) };
	const int cpus = libbpf_num_possible_cpus();

	p->clocks = cpus > 0 ? calloc((size_t)cpus, sizeof(struct bpf_link *)) : NULL;
	if (!p->clocks)
		return err_nomem(e, "the clocks of the CPUs");
	for (int cpu = 0; cpu < cpus; cpu++) {
		int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
		int rc;

		if (fd < 0 && errno == ENODEV) /* the CPU is offline */
			continue;
		if (fd < 0)
			return offprogs_refused("open the clock of a CPU", -errno, e);
		p->clocks[p->n_clocks] = bpf_program__attach_perf_event(p->events->progs.sample_cpu, fd);
		if (!p->clocks[p->n_clocks]) {
			rc = -errno;
			close(fd);
			return offprogs_refused("attach to the clock of a CPU", rc, e);
		}
		p->n_clocks++;
	}
	return 0;
}

/* Attach the programs that run at events. */
static int offprogs_attach(struct offprogs *p, const struct offcpu_opts *opts, struct err *e)
{
	int rc;

	owner_raise();
	rc = p->raw ? rawprogs_attach(p->raw, e) : offcpu_bpf__attach(p->events);
	if (rc && !p->raw)
		offprogs_refused("attach to the scheduler's tracepoints", rc, e);
	if (!rc && opts->cpu_hz && p->events)
		rc = attach_clocks(p, opts->cpu_hz, e);
	owner_lower();
	return rc;
}

/* Detaches and frees; a zeroed one is fine. */
static void offprogs_close(struct offprogs *p)
{
	for (size_t i = 0; i < p->n_clocks; i++)
		bpf_link__destroy(p->clocks[i]);
	free(p->clocks);
	offcpu_bpf__destroy(p->events);
	offcpu_bpf__destroy(p->iters);
	offcpu_bpf__destroy(p->base);
	rawprogs_close(p->raw);
	free(p->raw);
	bpf_hooks_close(&p->hook);
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
	int rc = open_part(p, false, false, ret, e);

	if (rc)
		return rc;
	bpf_object__for_each_program(prog, (*ret)->obj) bpf_program__set_autoload(prog, false);
	chosen = bpf_object__find_program_by_name((*ret)->obj, name);
	if (!chosen)
		return err_set(e, -ENOENT, "no program of the recorder is called '%s'", name);
	bpf_program__set_autoload(chosen, true);
	return load_part(*ret, 0, e);
}

#define CPUS_MAX 8192 /* of any kernel: CONFIG_NR_CPUS of arch/x86/Kconfig */

/* bpf/offcpu.bpf.c repeats these values, because it cannot include lib/ */
_Static_assert(OFFCPU_F_OPEN == CAPTURE_SAMPLE_OPEN && OFFCPU_F_INITIAL == CAPTURE_SAMPLE_INITIAL &&
		       OFFCPU_F_PREEMPTED == CAPTURE_SAMPLE_PREEMPTED &&
		       OFFCPU_F_THROTTLED == CAPTURE_SAMPLE_THROTTLED &&
		       OFFCPU_F_TIMED == CAPTURE_SAMPLE_TIMED &&
		       OFFCPU_F_NO_DESCRIPTORS == CAPTURE_SAMPLE_NO_DESCRIPTORS &&
		       OFFCPU_F_ON_CPU == CAPTURE_SAMPLE_ON_CPU,
	"sample flags");
_Static_assert(CAPTURE_STACK_KERNEL == 1 && CAPTURE_STACK_USER == 2, "stack kinds");
_Static_assert(
	VERDICT_COMPLETE == 1 && VERDICT_UNVERIFIED == 2 && VERDICT_TRUNCATED == 3 && VERDICT_STOPPED == 4,
	"verdicts");
_Static_assert(REASON_ERRNO == 1 && REASON_KTHREAD == 2 && REASON_EXEC == 3 && REASON_NOT_RECORDED == 4 &&
		       REASON_NOT_SEEN == 5 && REASON_EXITING == 7 && REASON_COMPAT == 8 && REASON_EMPTY == 9,
	"reasons");
_Static_assert(REASON_MEMORY == 10 && REASON_NO_MAPPING == 11 && REASON_NO_ROW == 12 &&
		       REASON_EXPRESSION == 13 && REASON_REGISTER == 14 && REASON_LOOP == 15 &&
		       REASON_NOT_READY == 16 && REASON_DROPPED == 17 && REASON_NO_FRAME_POINTER == 18 &&
		       REASON_DEPTH == 22 && REASON_USER_MODE == 23,
	"reasons of a walk that stopped");

struct offcpu {
	struct offprogs progs;
	struct ring_buffer *rb;
	const struct offcpu_sink *sink; /* during a drain */
	struct aggmap agg;
	uint64_t inserted_at_swap;
	uint32_t n_comms;
	int cpus;
	uint32_t only; /* the only process that is recorded; 0 = there are more */
	struct offcpu_opts opts;
	struct offcpu_counters open; /* added to BPF's: waits that were cut, corrections */
	uint32_t left; /* cgroup_at.left when the waits were looked for that this cut */
	uint64_t stop_ns; /* the end of the recording */
	struct rawtasks tasks; /* mode raw */
	struct offcpu_ev_thread *reported; /* threads that no event reports: for the next drain */
	size_t n_reported, max_reported;
	struct offcpu_ev_life *lives; /* of the threads that live at a swap, or when the recording ends */
	size_t n_lives, max_lives;
	bool lives_wanted; /* with this swap */
};

static bool is_raw(const struct offcpu *o)
{
	return o->progs.raw != NULL;
}

/* Without memory the thread has no name until its next wait. */
static void keep_thread(void *ctx, const struct offcpu_ev_thread *ev)
{
	struct offcpu *o = ctx;

	if (base_grow(&o->reported, &o->max_reported, o->n_reported + 1, sizeof(*o->reported)) == 0)
		o->reported[o->n_reported++] = *ev;
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
		.own = { (uint32_t)getpid() },
		.ctx = o,
		.thread = keep_thread };
}

static void take_wait(const struct offcpu_sink *sink, const struct offcpu_ev_wait *ev)
{
	const bool split = ev->runnable_ns != OFFCPU_UNKNOWN_NS;
	const struct offcpu_value value = { .total_ns = ev->total_ns,
		.count = 1,
		.max_ns = ev->total_ns,
		.first_ns = ev->start_ns,
		.last_ns = ev->start_ns,
		.runnable_ns = split ? ev->runnable_ns : 0,
		.split = split };

	sink->sample(sink->ctx, &ev->key, &value);
}

/* Account for a wait that was cut, as account() in bpf/offcpu.bpf.c does for one that ended. */
static void take_open(void *ctx, const void *record)
{
	struct offcpu *o = ctx;
	struct offcpu_counters *c = &o->open;
	struct offcpu_ev_open ev;
	uint64_t end, ns;

	memcpy(&ev, record, sizeof(ev));
	end = ev.end ? ev.end : o->stop_ns;
	if (ev.type != OFFCPU_EV_OPEN || ev.start >= end)
		return;
	ns = end - ev.start;
	c->seen++, c->seen_ns += ns;
	if (ev.key.flags & OFFCPU_F_DROP_PREEMPTED) {
		c->preempted++, c->preempted_ns += ns;
	} else if (ev.key.flags & OFFCPU_F_DROP_STATE) {
		c->state++, c->state_ns += ns;
	} else if (ns < o->opts.min_ns) {
		c->min++, c->min_ns += ns;
	} else if (o->opts.max_ns && ns > o->opts.max_ns) {
		c->max++, c->max_ns += ns;
	} else {
		struct offcpu_value v = {
			.total_ns = ns, .count = 1, .max_ns = ns, .first_ns = ev.start, .last_ns = ev.start
		};

		if (ev.runnable_ns != OFFCPU_UNKNOWN_NS) {
			v.runnable_ns = ev.key.flags & OFFCPU_F_PREEMPTED ? ns : MIN(ev.runnable_ns, ns);
			v.split = 1;
		}
		c->recorded++, c->recorded_ns += ns;
		ev.key.flags |= OFFCPU_F_OPEN;
		if (o->sink->sample)
			o->sink->sample(o->sink->ctx, &ev.key, &v);
	}
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
	else if (type == OFFCPU_EV_WAIT && o->sink->sample)
		take_wait(o->sink, data);
	else if (type == OFFCPU_EV_OPEN)
		take_open(o, data);
	else if (type == OFFCPU_EV_LIFE && o->sink->life)
		o->sink->life(o->sink->ctx, data);
	else if (type == OFFCPU_EV_WAKER && o->sink->waker)
		o->sink->waker(o->sink->ctx, data);
	else if (type == OFFCPU_EV_THREAD && o->sink->thread)
		o->sink->thread(o->sink->ctx, data);
	else if ((type == OFFCPU_EV_IMAGE || type == OFFCPU_EV_FORK || type == OFFCPU_EV_MAPPING) &&
		 o->sink->image)
		o->sink->image(o->sink->ctx, data);
	else if (type == OFFCPU_EV_CODE && o->sink->code)
		o->sink->code(o->sink->ctx, data, len);
	else if (type == OFFCPU_EV_METHOD && o->sink->method)
		o->sink->method(o->sink->ctx, data, len);
	else if (type == OFFCPU_EV_INLINED && o->sink->inlined)
		o->sink->inlined(o->sink->ctx, data, len);
	else if (type == OFFCPU_EV_SNAPSHOT && o->sink->snapshot)
		o->sink->snapshot(o->sink->ctx, data);
	return 0;
}

static int load_programs_and_maps(struct offcpu *o, struct err *e)
{
	int rc = aggmap_open(&o->agg, o->opts.all ? 32768 : 8192, o->opts.wakers, e);

	o->agg.broker = o->opts.broker;
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

static int load_once(const struct offcpu_opts *opts, struct offcpu **ret, struct err *e)
{
	struct offcpu *o = calloc(1, sizeof(*o));
	int rc;

	if (!o)
		return err_nomem(e, "the recorder");
	o->opts = *opts;
	libbpf_set_print(NULL); /* errors are reported through E */
	o->cpus = libbpf_num_possible_cpus();
	/* without /sys: extra room does no harm, the values of missing CPUs stay zero */
	if (o->cpus <= 0)
		o->cpus = CPUS_MAX;
	rc = load_programs_and_maps(o, e);
	if (rc) {
		offcpu_close(o);
		return rc;
	}
	*ret = o;
	return 0;
}

int offcpu_load(const struct offcpu_opts *opts, struct offcpu **ret, struct err *e)
{
	struct offcpu_opts without = *opts;
	struct err why = { 0 };
	int rc = load_once(opts, ret, &why);

	/* the part that finds script frames may be too much for a verifier */
	without.scripts = 0;
	if (rc && rc != -EPERM && opts->scripts && load_once(&without, ret, NULL) == 0) {
		add_limit(&(*ret)->progs, "functions of interpreters' programs", &why);
		return 0;
	}
	if (rc && e)
		*e = why;
	return rc;
}

bool offcpu_scripts_partial(const struct offcpu *o)
{
	return o->progs.iters_bare;
}

void offcpu_close(struct offcpu *o)
{
	if (!o)
		return;
	ring_buffer__free(o->rb);
	offprogs_close(&o->progs);
	aggmap_close(&o->agg);
	free(o->reported);
	free(o->lives);
	free(o);
}

const char *offcpu_limits(const struct offcpu *o)
{
	return is_raw(o) ? o->progs.raw->limits : o->progs.limits;
}

/* In the first PID namespace set the bit now; elsewhere the iterator must find the global id first. */
static int ask(struct offcpu *o, struct bpf_map *bits, struct bpf_map *requested, uint32_t id, struct err *e)
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
		rc = bpf_map_update_elem(bpf_map__fd(requested), &id, &one, BPF_ANY);
	}
	return rc ? err_sys(e, rc, "cannot add target %u", id) : 0;
}

int offcpu_ask_pid(struct offcpu *o, uint32_t pid, struct err *e)
{
	if (o->progs.first_ns)
		o->progs.base->bss->hot.single_tgid = pid;
	if (o->opts.single)
		o->only = o->tasks.only = pid;
	return ask(o, o->progs.base->maps.tgids, o->progs.base->maps.target_pids, pid, e);
}

int offcpu_ask_tid(struct offcpu *o, uint32_t tid, struct err *e)
{
	return ask(o, o->progs.base->maps.tids, o->progs.base->maps.target_tids, tid, e);
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
		rc = offprogs_attach(&o->progs, &o->opts, e);
	/* after attaching, so that tasks that enter the cgroup meanwhile are seen */
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

/* In a PID namespace the iterator must find the global id. */
void offcpu_exclude(struct offcpu *o, const struct offcpu_own *own)
{
	struct offcpu_bpf__bss *bss = o->progs.base->bss;

	if (o->progs.first_ns) {
		bss->hot.worker_tgid = own->worker;
		bss->hot.broker_tgid = own->broker;
		bss->hot.store_tgid = own->store;
		o->tasks.own[1] = own->worker;
		o->tasks.own[2] = own->broker;
		o->tasks.own[3] = own->store;
	} else if (bss->worker_id != own->worker || bss->broker_id != own->broker ||
		   bss->store_id != own->store) {
		bss->worker_id = own->worker;
		bss->broker_id = own->broker;
		bss->store_id = own->store;
		taskiter_run(o->progs.iters->progs.find_self, 0, 1, NULL, NULL, NULL);
	}
}

/* Tests with an iterator that is created but never read. */
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

/* Capabilities are per thread: dropping them here does not affect the other threads. */
static void *try_without(void *ctx)
{
	struct trial *t = ctx;
	uint32_t zero = 0, id;

	t->works = priv_sets_set(0, 0) == 0 &&
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

void offcpu_interrupts(struct offcpu *o, uint64_t start, uint64_t end)
{
	o->progs.base->bss->interrupts.start = start;
	o->progs.base->bss->interrupts.end = end;
}

/* What tracers put in place of return addresses: of functions that they see return. */
static const char *const hooks[] = { "return_to_handler", "arch_rethook_trampoline", "__kretprobe_trampoline",
	"kretprobe_trampoline" };
_Static_assert(ARRAY_LEN(hooks) == ARRAY_LEN(((struct offcpu_orc *)0)->hooks), "hooks");

void offcpu_kernel_symbols(struct offcpu *o, const struct kallsyms *ks)
{
	const uint64_t ips = kallsyms_address(ks, "__start_orc_unwind_ip"),
		       ips_end = kallsyms_address(ks, "__stop_orc_unwind_ip"),
		       entries = kallsyms_address(ks, "__start_orc_unwind"),
		       entries_end = kallsyms_address(ks, "__stop_orc_unwind"), rows = (ips_end - ips) / 4;
	struct offcpu_orc *orc = &o->progs.base->bss->orc;

	if (is_raw(o) || !ips || !entries || !rows || rows > INT32_MAX || entries_end - entries != 6 * rows)
		return;
	orc->ips = ips;
	orc->entries = entries;
	orc->text_start = kallsyms_address(ks, "_stext");
	orc->text_end = kallsyms_address(ks, "_etext");
	orc->modules = kallsyms_address(ks, "mod_tree");
	for (size_t i = 0; i < ARRAY_LEN(hooks); i++)
		orc->hooks[i] = kallsyms_address(ks, hooks[i]);
	__atomic_store_n(&orc->rows, (uint32_t)rows, __ATOMIC_RELEASE);
}

uint64_t offcpu_triggered(const struct offcpu *o, uint32_t *tid)
{
	const uint64_t value = __atomic_load_n(&o->progs.base->bss->triggered, __ATOMIC_RELAXED);

	*tid = (uint32_t)(value >> 32);
	return (value & UINT32_MAX) * 1000;
}

uint64_t offcpu_schedule_address(const struct offcpu *o)
{
	return o->progs.base->bss->schedule_address;
}

void offcpu_unseen(const struct offcpu *o, char *ret, size_t size)
{
	const struct offcpu_bpf__bss *bss = o->progs.base->bss;

	*ret = '\0';
	if (bss->unseen.tgid && !bss->unseen.comm[0])
		snprintf(ret, size, "most recently process %" PRIu32, bss->unseen.tgid);
	else if (bss->unseen.tgid)
		snprintf(ret, size, "most recently %.*s (PID %" PRIu32 ")", OFFCPU_COMM_LEN - 1,
			(const char *)bss->unseen.comm, bss->unseen.tgid);
}

void offcpu_sample_stacks(struct offcpu *o, uint32_t every)
{
	o->progs.base->bss->stack_every = every;
}

void offcpu_hold(struct offcpu *o, uint32_t pid)
{
	__atomic_store_n(&o->progs.base->bss->held, pid, __ATOMIC_SEQ_CST);
}

static void set_phase(struct offcpu *o, uint32_t phase)
{
	__atomic_store_n(&o->progs.base->bss->hot.phase, phase, __ATOMIC_SEQ_CST);
}

static int iterate_tasks(struct offcpu *o, struct err *e)
{
	int rc;

	if (is_raw(o)) {
		rc = rawtasks_waiting(&o->tasks, e);
		o->open.seen += o->tasks.unkept;
		o->open.storage += o->tasks.unkept;
		return rc;
	}
	return taskiter_run(offprogs_waiting(&o->progs), o->only, 1, NULL, NULL, e);
}

#define PASSES 5

/*
 * Find every wait in progress; none is counted yet. On a real-time kernel a
 * thread that takes the CPU while the kernel looks up another thread's storage
 * there gets no storage itself (bpf_task_storage_trylock()). The next pass
 * finds it, so only what the last pass misses is counted as lost.
 */
static int find_waiting(struct offcpu *o, struct err *e)
{
	struct offcpu_counters before, after;
	int rc = 0, pass = 0;

	do {
		offcpu_counters(o, &before);
		rc = iterate_tasks(o, e);
		offcpu_counters(o, &after);
		if (is_raw(o) || after.storage == before.storage)
			break;
		if (++pass < PASSES) {
			o->open.seen -= after.storage - before.storage;
			o->open.storage -= after.storage - before.storage;
		}
	} while (!rc && pass < PASSES);
	return rc;
}

int offcpu_rewalk(struct offcpu *o, struct err *e)
{
	return is_raw(o) ? 0 : iterate_tasks(o, e);
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

/* Find the targets given by name; in a PID namespace also those given by id. */
static int find_targets(struct offcpu *o, struct err *e)
{
	struct offcpu_bpf__bss *bss = o->progs.base->bss;

	if (is_raw(o))
		return o->n_comms ? rawtasks_name(&o->tasks, (const char(*)[OFFCPU_COMM_LEN])bss->comms,
					    bss->comm_seen, o->n_comms, e)
				  : 0;
	if (!bpf_program__autoload(o->progs.iters->progs.find_targets))
		return 0;
	return taskiter_run(o->progs.iters->progs.find_targets, 0, 1, NULL, NULL, e);
}

int offcpu_mark(struct offcpu *o, struct err *e)
{
	return o->progs.first_ns && !o->n_comms ? 0 : find_targets(o, e);
}

bool offcpu_comm_seen(const struct offcpu *o, const char *comm)
{
	const struct offcpu_bpf__bss *bss = o->progs.base->bss;

	for (uint32_t i = 0; i < o->n_comms; i++)
		if (strcmp((const char *)bss->comms[i], comm) == 0)
			return bss->comm_seen[i];
	return false;
}

int offcpu_start(struct offcpu *o, uint64_t *start_ns, struct err *e)
{
	int rc = aggmap_settle(&o->agg, e);

	if (!rc)
		rc = find_targets(o, e);
	if (rc)
		return rc;
	/* storage for every thread, before programs of the scheduler need it */
	if (!o->opts.no_waits && !is_raw(o))
		rc = iterate_tasks(o, e);
	if (rc)
		return rc;
	set_phase(o, OFFCPU_ARMED);
	rc = o->opts.no_waits ? 0 : find_waiting(o, e);
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
	for (size_t i = 0; i < o->n_reported; i++)
		if (sink->thread)
			sink->thread(sink->ctx, &o->reported[i]);
	o->n_reported = 0;
	o->sink = sink;
	ring_buffer__consume(o->rb);
	o->sink = NULL;
}

/* Without memory it is not known. */
static void keep_life(void *ctx, const void *record)
{
	struct offcpu *o = ctx;

	if (base_grow(&o->lives, &o->max_lives, o->n_lives + 1, sizeof(*o->lives)) == 0)
		memcpy(&o->lives[o->n_lives++], record, sizeof(*o->lives));
	else
		o->open.ring_life++;
}

static int find_lives(struct offcpu *o, enum offcpu_storage what, struct err *e)
{
	int rc;

	if (o->opts.no_waits || is_raw(o))
		return 0;
	o->progs.base->bss->storage = what;
	rc = taskiter_run(
		o->progs.iters->progs.open_waits, o->only, sizeof(struct offcpu_ev_life), keep_life, o, e);
	o->progs.base->bss->storage = OFFCPU_STORAGE_WAITS;
	return rc;
}

static void divide_lives(void *ctx)
{
	find_lives(ctx, OFFCPU_STORAGE_LIVES_SO_FAR, NULL);
}

/* Have the waits sent that were cut when threads left the cgroup. If the iterator fails, it runs next time.
 */
static void look_for_cut(struct offcpu *o)
{
	struct offcpu_bpf__bss *bss = o->progs.base->bss;
	const uint32_t left = __atomic_load_n(&bss->cgroup_at.left, __ATOMIC_ACQUIRE);
	const uint64_t now = now_ns();

	if (left == o->left || o->opts.no_waits || bss->hot.phase != OFFCPU_RECORDING)
		return;
	bss->storage = OFFCPU_STORAGE_CUT;
	if (taskiter_run(o->progs.iters->progs.open_waits, o->only, 1, NULL, NULL, NULL) == 0) {
		o->left = left;
		__atomic_store_n(&bss->cgroup_at.looked_ns, now, __ATOMIC_RELEASE);
	}
	bss->storage = OFFCPU_STORAGE_WAITS;
}

/* At the time of the swap, or of the drain: then each wait is passed with the life that it is a part of. */
void offcpu_begin_swap(struct offcpu *o, bool lives)
{
	o->lives_wanted = lives;
	o->agg.before = lives && !o->opts.events ? divide_lives : NULL;
	o->agg.before_ctx = o;
	look_for_cut(o);
	aggmap_begin_swap(&o->agg);
}

bool offcpu_swapped(struct offcpu *o)
{
	return aggmap_swapped(&o->agg);
}

/* Pass what threads did, then the stacks that the samples refer to. */
static void drain_lives(struct offcpu *o, const struct offcpu_sink *sink)
{
	for (size_t i = 0; i < o->n_lives && sink->life; i++)
		sink->life(sink->ctx, &o->lives[i]);
	o->n_lives = 0;
	offcpu_drain(o, sink);
}

/* Drains the ring buffer between swap and samples: it then has every stack of the old map's samples. */
int offcpu_end_swap(struct offcpu *o, const struct offcpu_sink *sink, struct err *e)
{
	int rc = aggmap_end_swap(&o->agg, e);

	if (rc)
		return rc;
	o->inserted_at_swap = o->progs.base->bss->inserted;
	if (o->lives_wanted && o->opts.events)
		divide_lives(o);
	drain_lives(o, sink);
	return aggmap_empty(&o->agg, sink->sample, sink->ctx, e);
}

/*
 * Put an empty aggregation map into the slot, wait until no CPU uses the old
 * one (the kernel's update of a map in map does), drain the ring buffer, and
 * pass the samples of the old map to the sink. So every stack that a sample
 * names arrives before the sample, or was lost.
 */
static int offcpu_swap(struct offcpu *o, const struct offcpu_sink *sink, struct err *e)
{
	offcpu_begin_swap(o, false);
	return offcpu_end_swap(o, sink, e);
}

bool offcpu_crowded(const struct offcpu *o)
{
	return o->progs.base->bss->inserted - o->inserted_at_swap > aggmap_room(&o->agg) / 2;
}

void offcpu_turn(struct offcpu *o)
{
	o->progs.base->bss->epoch++;
}

static void take_waiting(void *ctx, const void *record)
{
	const struct offcpu_sink *sink = ctx;
	struct offcpu_wait w;

	memcpy(&w, record, sizeof(w));
	if (w.start == OFFCPU_UNKNOWN || w.start == OFFCPU_ON_CPU)
		return;
	if (w.start == OFFCPU_INITIAL)
		w.key = w.initial;
	if (w.pending && w.late_start == w.start)
		w.key.user = w.late;
	sink->waiting(sink->ctx, &w.key);
}

static void take_held_wait(void *ctx, const void *record)
{
	const struct offcpu_sink *sink = ctx;
	struct offcpu_wait w;

	memcpy(&w, record, sizeof(w));
	sink->held_stack(sink->ctx, CAPTURE_STACK_KERNEL, &w.key.kernel);
	sink->held_stack(sink->ctx, CAPTURE_STACK_KERNEL, &w.initial.kernel);
	sink->held_stack(sink->ctx, CAPTURE_STACK_USER, &w.key.user);
	sink->held_stack(sink->ctx, CAPTURE_STACK_USER, &w.initial.user);
	sink->held_stack(sink->ctx, CAPTURE_STACK_USER, &w.late);
}

static void take_held_waker(void *ctx, const void *record)
{
	const struct offcpu_sink *sink = ctx;
	struct offcpu_woken w;

	memcpy(&w, record, sizeof(w));
	sink->held_stack(sink->ctx, CAPTURE_STACK_KERNEL, &w.kernel);
	sink->held_stack(sink->ctx, CAPTURE_STACK_USER, &w.user);
	for (int i = 0; i < OFFCPU_WAKERS_MAX; i++)
		sink->held_waker(sink->ctx, &w.by[i]);
}

/* The storages of TARGETS, or of all threads. */
static int each_wait(struct offcpu *o, bool targets, void (*take)(void *ctx, const void *record),
	const struct offcpu_sink *sink, struct err *e)
{
	struct offcpu_sink to = *sink;

	return is_raw(o) ? rawtasks_waits(&o->tasks, take, &to, e)
			 : taskiter_run(o->progs.iters->progs.open_waits, targets ? o->only : 0,
				   sizeof(struct offcpu_wait), take, &to, e);
}

int offcpu_waiting(struct offcpu *o, const struct offcpu_sink *sink, struct err *e)
{
	return each_wait(o, true, take_waiting, sink, e);
}

int offcpu_held(struct offcpu *o, const struct offcpu_sink *sink, struct err *e)
{
	struct offcpu_sink to = *sink;
	int rc = 0;

	/* wakers need not be targets */
	if (o->opts.wakers && !is_raw(o)) {
		o->progs.base->bss->storage = OFFCPU_STORAGE_WAKERS;
		rc = taskiter_run(o->progs.iters->progs.open_waits, 0, sizeof(struct offcpu_woken),
			take_held_waker, &to, e);
		o->progs.base->bss->storage = OFFCPU_STORAGE_WAITS;
	}
	return rc ? rc : each_wait(o, !o->opts.wakers, take_held_wait, sink, e);
}

/* Whoever runs, or does not, is taken to do so until the end. */
static void end_lives(struct offcpu *o, uint64_t stop_ns)
{
	for (size_t i = 0; i < o->n_lives; i++) {
		struct offcpu_life *life = &o->lives[i].life;

		if (life->runs)
			life->ran_ns += stop_ns - life->to_ns;
		life->to_ns = stop_ns;
	}
}

int offcpu_freeze(struct offcpu *o, struct procevents *events, const struct offcpu_sink *sink,
	uint64_t *stop_ns, struct err *e)
{
	/* just before the end, since threads run on after it */
	int rc = find_lives(o, OFFCPU_STORAGE_LIVES, e);

	if (rc)
		return rc;
	o->stop_ns = *stop_ns = now_ns();
	set_phase(o, OFFCPU_FROZEN);
	end_lives(o, *stop_ns);
	/*
	 * No program is inside the recording part after this: those that record run with interrupts
	 * disabled, and a swap waits for all
	 */
	if (procevents_interrupt(events))
		drain_lives(o, sink);
	else
		rc = offcpu_swap(o, sink, e);
	if (rc)
		return rc;
	o->sink = sink;
	rc = o->opts.no_waits ? 0
	     : is_raw(o)      ? rawtasks_open(&o->tasks, o->progs.base->bss->record_start_ns, take_open, o, e)
			      : taskiter_run(o->progs.iters->progs.open_waits, o->only,
					sizeof(struct offcpu_ev_open), take_open, o, e);
	o->sink = NULL;
	if (rc)
		return rc;
	/* what programs that were past the phase test then have added to the new map */
	offcpu_drain(o, sink);
	return aggmap_finish(&o->agg, sink->sample, sink->ctx, e);
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
