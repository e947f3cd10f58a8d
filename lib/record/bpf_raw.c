/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/bpf_raw.h"
#include "capture/types.h"
#include "offcpu-raw.skel.h"
#include "offcpu.skel.h"
#include "record/bpf_code.h"
#include "system/privileges.h"
#include "system/proc.h"
#include "system/tracefs.h"
#include "system/verifier.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define WAITS_ALL 65536
#define WAITS_SOME 16384

/* Both objects are compiled from the same source, so that one can be a view of the other: rawprogs_view(). */
#define SAME_AT(member)                                                                                      \
	(offsetof(struct offcpu_bpf__bss, member) == offsetof(struct offcpu_raw_bpf__bss, member))
_Static_assert(sizeof(struct offcpu_bpf__bss) == sizeof(struct offcpu_raw_bpf__bss) && SAME_AT(hot) &&
		       SAME_AT(held) && SAME_AT(exec_target) && SAME_AT(comms) && SAME_AT(n_comms) &&
		       SAME_AT(record_start_ns) && SAME_AT(record_start_boot) && SAME_AT(inserted) &&
		       SAME_AT(orc) && SAME_AT(ns_level) && SAME_AT(ns_inum),
	"variables of bpf/offcpu.bpf.c need an initializer, to be in the order of the source");

static void add_limit(struct rawprogs *p, const char *text)
{
	size_t len = strlen(p->limits);

	snprintf(p->limits + len, sizeof(p->limits) - len, "%s%s", len ? "; " : "", text);
}

/* --- opening --- */

static bool has(const struct rawprogs *p, enum task_layout_member m)
{
	return p->shape.at[m] >= 0;
}

static int check_shape(const struct rawprogs *p, const struct offcpu_opts *opts, struct err *e)
{
	int missing = task_layout_missing(&p->shape);

	if (missing >= 0)
		return err_set(e, -ENOTSUP, "cannot find out where this kernel keeps %s",
			task_layout_name((enum task_layout_member)missing));
	if (p->shape.ns_level && !has(p, TASK_LAYOUT_INUM))
		return err_set(e, -ENOTSUP, "cannot find out the ids of this PID namespace");
	if (opts->use_cgroup || opts->owner_only) {
		err_set(e, -ENOTSUP, "without the kernel's BTF there is no way to find out %s a thread %s",
			opts->use_cgroup ? "in which cgroup" : "whose",
			opts->use_cgroup ? "is" : "is to the system");
		err_hint(e, "'/sys/kernel/btf/vmlinux' is needed for that");
		return -ENOTSUP;
	}
	return 0;
}

static void set_limits(struct rawprogs *p)
{
	add_limit(p, "waits that began before the recording have no stacks");
	add_limit(p, "functions of interpreters' programs are not known");
	if (!has(p, TASK_LAYOUT_THREAD_PID))
		add_limit(p, "ids of other PID namespaces are not known");
	if (!has(p, TASK_LAYOUT_START_STACK))
		add_limit(p, "where the main thread's stack begins is not known");
	if (!p->classic)
		return;
	add_limit(p, "classic tracepoints, which report states less exactly, for ");
	snprintf(p->limits + strlen(p->limits), sizeof(p->limits) - strlen(p->limits), "%s", p->classic_why);
}

/* Write the kernel's types into a memfd: from P's layout, or from FILE if given. */
static int make_types(struct rawprogs *p, const char *file, struct err *e)
{
	int rc;

	p->types_fd = memfd_create("kernel types", MFD_CLOEXEC);
	if (p->types_fd < 0)
		return err_sys(e, -errno, "cannot create a file in memory");
	if (!file)
		return task_layout_btf_write(&p->shape, p->types_fd, e);
	rc = task_layout_btf_read(&p->shape, file, p->types_fd, e);
	if (rc && e && !e->hint[0])
		err_hint(e,
			"give a copy of /sys/kernel/btf/vmlinux of the kernel that runs, or leave --btf out");
	return rc;
}

static int find_fields(struct offcpu_raw_bpf *skel, struct err *e)
{
	struct tracefs_field sw[] = { { "prev_state", 8, 0 }, { "next_pid", 4, 0 } },
			     task[] = { { "pid", 4, 0 }, { "comm", 16, 0 }, { "clone_flags", 8, 0 } },
			     name[] = { { "pid", 4, 0 }, { "newcomm", 16, 0 } };
	int rc = tracefs_fields("sched/sched_switch", sw, ARRAY_LEN(sw), e);

	if (!rc)
		rc = tracefs_fields("task/task_newtask", task, ARRAY_LEN(task), e);
	/* some kernels do not say which thread is renamed */
	if (!rc && tracefs_fields("task/task_rename", name, 1, NULL) != 0)
		name[0].offset = 0;
	if (!rc)
		rc = tracefs_fields("task/task_rename", name + 1, 1, e);
	if (!rc) {
		skel->rodata_raw->fields.prev_state = sw[0].offset;
		skel->rodata_raw->fields.next_pid = sw[1].offset;
		skel->rodata_raw->fields.newtask_pid = task[0].offset;
		skel->rodata_raw->fields.newtask_comm = task[1].offset;
		skel->rodata_raw->fields.newtask_flags = task[2].offset;
		skel->rodata_raw->fields.rename_pid = name[0].offset;
		skel->rodata_raw->fields.rename_newcomm = name[1].offset;
	}
	return rc;
}

/* Raw tracepoints if they provide all that is needed, else classic ones. */
static int choose_hook(struct rawprogs *p, struct err *e)
{
	int code = p->shape.raw_switch;

	p->classic = code != 0;
	if (!code)
		return 0;
	if (code == -EINVAL || code == -ENOTSUP)
		snprintf(p->classic_why, sizeof(p->classic_why),
			"raw tracepoint sched_switch does not report states");
	else
		snprintf(p->classic_why, sizeof(p->classic_why), "raw tracepoints are refused: %s",
			strerror(-code));
	if (p->shape.ns_level)
		return err_set(e, -ENOTSUP, "%s, and classic ones have no ids of this PID namespace",
			p->classic_why);
	code = find_fields(p->skel, e);
	if (code)
		err_prefix(e, "%s", p->classic_why);
	return code;
}

int rawprogs_open(struct rawprogs *p, const struct offcpu_opts *opts, struct err *e)
{
	LIBBPF_OPTS(bpf_object_open_opts, open);
	char path[32];
	int rc;

	*p = (struct rawprogs){ .types_fd = -1 };
	rc = task_layout_trial_run(&p->shape, e);
	if (rc)
		verifier_log_lockdown(e);
	if (!rc)
		rc = check_shape(p, opts, e);
	if (!rc)
		rc = make_types(p, opts->btf_file, e);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p->types_fd);
	open.btf_custom_path = path;
	p->skel = offcpu_raw_bpf__open_opts(&open);
	if (!p->skel)
		return err_sys(e, -errno, "cannot open the BPF programs");
	rc = choose_hook(p, e);
	set_limits(p);
	return rc;
}

int rawprogs_view(struct rawprogs *p, struct offcpu_bpf *base, struct err *e)
{
	struct bpf_object_skeleton *s = base->skeleton;

	for (int i = 0; i < s->map_cnt; i++) {
		/* mode raw has no task storage: not that of wakers, and hashes for the others; it does not
		   know the layout of the kernel's unwind table, nor cgroups */
		bool absent = bpf_map__type(*s->maps[i].map) == BPF_MAP_TYPE_TASK_STORAGE ||
			      strcmp(s->maps[i].name, "orc_walks") == 0 ||
			      strcmp(s->maps[i].name, "left") == 0;

		*s->maps[i].map = bpf_object__find_map_by_name(p->skel->obj, s->maps[i].name);
		if (!*s->maps[i].map && !absent && !strchr(s->maps[i].name, '.'))
			return err_set(e, -EINVAL, "there is no map '%s' in mode raw", s->maps[i].name);
	}
	base->bss = (void *)p->skel->bss;
	p->base = base;
	base->bss->ns_level = p->shape.ns_level;
	base->bss->ns_inum = p->shape.ns_inum;
	return 0;
}

/* --- loading --- */

static const struct btf_type *constants(const struct btf *btf)
{
	int id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);

	return id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
}

static const char *constant_name(const struct btf *btf, const struct btf_var_secinfo *v)
{
	return btf__name_by_offset(btf, btf__type_by_id(btf, v->type)->name_off);
}

/* The compiler places constants in the order in which it meets them, so copy each by name. */
static int copy_constants(struct rawprogs *p, struct err *e)
{
	const struct btf *from = bpf_object__btf(p->base->obj), *to = bpf_object__btf(p->skel->obj);
	const struct btf_type *f = constants(from), *t = constants(to);
	const struct btf_var_secinfo *fv = f ? btf_var_secinfos(f) : NULL,
				     *tv = t ? btf_var_secinfos(t) : NULL;
	const uint8_t *values = (const void *)p->base->rodata;
	uint8_t *places = (void *)p->skel->rodata;

	for (uint16_t i = 0; i < (t ? btf_vlen(t) : 0); i++) {
		for (uint16_t j = 0; j < (f ? btf_vlen(f) : 0); j++) {
			if (strcmp(constant_name(to, &tv[i]), constant_name(from, &fv[j])) != 0)
				continue;
			if (tv[i].size != fv[j].size)
				return err_set(e, -EINVAL, "the BPF programs do not agree on '%s'",
					constant_name(to, &tv[i]));
			memcpy(places + tv[i].offset, values + fv[j].offset, tv[i].size);
		}
	}
	return t && f ? 0 : err_set(e, -EINVAL, "the BPF programs have no constants");
}

static void choose_programs(struct rawprogs *p, const struct offcpu_opts *opts)
{
	struct offcpu_raw_bpf *k = p->skel;
	bool raw = !p->classic, sets = !opts->all && !opts->single;
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, k->obj) bpf_program__set_autoload(prog, false);
	bpf_program__set_autoload(k->progs.sched_switch, raw);
	bpf_program__set_autoload(k->progs.record_switch, raw);
	bpf_program__set_autoload(k->progs.raw_fork, raw);
	bpf_program__set_autoload(k->progs.raw_rename, raw);
	bpf_program__set_autoload(k->progs.on_fork, raw && sets);
	bpf_program__set_autoload(k->progs.on_exec, raw && (opts->use_comms || opts->use_exec));
	bpf_program__set_autoload(k->progs.on_rename, raw && opts->use_comms);
	bpf_program__set_autoload(k->progs.tables_fork, raw && opts->tables && !opts->single);
	bpf_program__set_autoload(k->progs.tables_map, raw && opts->tables && opts->no_events);
	bpf_program__set_autoload(k->progs.tables_exec, raw && (opts->tables || opts->no_events));
	bpf_program__set_autoload(k->progs.classic_switch, !raw);
	bpf_program__set_autoload(k->progs.classic_record, !raw);
	bpf_program__set_autoload(k->progs.classic_fork, !raw);
	bpf_program__set_autoload(k->progs.classic_exec, !raw && (sets || opts->tables || opts->no_events));
	bpf_program__set_autoload(k->progs.classic_rename, !raw);
	bpf_program__set_autoattach(k->progs.record_switch, false);
}

static int install_switch(const struct rawprogs *p, struct err *e)
{
	const struct bpf_program *prog =
		p->classic ? p->skel->progs.classic_record : p->skel->progs.record_switch;
	int fd = bpf_program__fd(prog), zero = 0;
	int rc = bpf_map__update_elem(p->skel->maps.recording, &zero, sizeof(zero), &fd, sizeof(fd), BPF_ANY);

	return rc ? err_sys(e, rc, "cannot put the recording program in its place") : 0;
}

int rawprogs_load(struct rawprogs *p, const struct offcpu_opts *opts, struct err *e)
{
	struct verifier_log log;
	int rc;

	if (opts->tables && (!p->shape.regs_from_stack || !has(p, TASK_LAYOUT_START_STACK)))
		return err_set(e, -ENOTSUP, "cannot find out where this kernel keeps a thread's registers");
	rc = copy_constants(p, e);
	if (rc)
		return rc;
	p->skel->rodata_raw->regs_from_stack = p->shape.regs_from_stack;
	bpf_map__set_max_entries(p->skel->maps.waits, opts->all ? WAITS_ALL : WAITS_SOME);
	bpf_map__set_max_entries(p->skel->maps.execs, opts->all ? WAITS_ALL : WAITS_SOME);
	choose_programs(p, opts);
	if (opts->single && !p->shape.ns_level)
		bpf_code_set(p->skel->progs.sched_switch,
			&(struct bpf_code){ .who = OFFCPU_WHO_PROCESS, .id = opts->single_pid });
	rc = verifier_log_open(&log, p->skel->obj, e);
	if (rc)
		return rc;
	rc = offcpu_raw_bpf__load(p->skel);
	if (rc && !verifier_log_refused(&log, rc, opts->verifier_log, e))
		err_sys(e, rc, "cannot load the BPF programs");
	verifier_log_close(&log);
	return rc ? rc : install_switch(p, e);
}

/* --- attaching --- */

/* One perf event on one CPU is enough: a tracepoint's BPF programs run on all CPUs. */
static int attach_classic(struct rawprogs *p, const struct bpf_program *prog, struct err *e)
{
	const char *event = strchr(bpf_program__section_name(prog), '/') + 1;
	int id = tracefs_event_id(event, e), fd, code;
	char what[96];
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = (uint32_t)id,
		.sample_period = 1,
		.wakeup_events = 1 };

	if (id < 0)
		return id;
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	code = -errno;
	if (fd < 0 && (code == -EACCES || code == -EPERM)) {
		snprintf(what, sizeof(what), "open tracepoint '%s'", event);
		return priv_explain_perf(what, code, e);
	}
	if (fd < 0)
		return err_sys(e, code, "cannot open tracepoint '%s'", event);
	p->links[p->n_links] = bpf_program__attach_perf_event(prog, fd);
	if (!p->links[p->n_links]) {
		int rc = -errno;

		close(fd);
		return err_sys(e, rc, "cannot attach to tracepoint '%s'", event);
	}
	p->n_links++;
	return 0;
}

int rawprogs_attach(struct rawprogs *p, struct err *e)
{
	const struct bpf_program *const progs[] = { p->skel->progs.classic_fork, p->skel->progs.classic_exec,
		p->skel->progs.classic_rename, p->skel->progs.classic_switch };
	int rc = 0;

	if (!p->classic) {
		rc = offcpu_raw_bpf__attach(p->skel);
		return rc ? err_sys(e, rc, "cannot attach to raw tracepoints of the scheduler") : 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(progs) && !rc; i++)
		if (bpf_program__autoload(progs[i]))
			rc = attach_classic(p, progs[i], e);
	return rc;
}

void rawprogs_close(struct rawprogs *p)
{
	if (!p)
		return;
	for (int i = 0; i < p->n_links; i++)
		bpf_link__destroy(p->links[i]);
	offcpu_raw_bpf__destroy(p->skel);
	if (p->skel || p->types_fd > 0)
		close(p->types_fd);
	*p = (struct rawprogs){ 0 };
}

int rawprogs_waits(const struct rawprogs *p)
{
	return bpf_map__fd(p->skel->maps.waits);
}

int rawprogs_execs(const struct rawprogs *p)
{
	return bpf_map__fd(p->skel->maps.execs);
}

#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */
#define TASK_NOLOAD 0x0400

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* The next numeric name in D; 0 = none. */
static uint32_t next_id(DIR *d)
{
	const struct dirent *ent;

	while ((ent = readdir(d)))
		if (isdigit((unsigned char)ent->d_name[0]))
			return (uint32_t)strtoul(ent->d_name, NULL, 10);
	return 0;
}

static bool bit(int map, uint32_t id)
{
	uint32_t word = id >> 6;
	uint64_t bits = 0;

	return bpf_map_lookup_elem(map, &word, &bits) == 0 && (bits >> (id & 63) & 1);
}

static int set_bit(int map, uint32_t id)
{
	uint32_t word = id >> 6;
	uint64_t bits = 0;
	int rc = bpf_map_lookup_elem(map, &word, &bits);

	bits |= UINT64_C(1) << (id & 63);
	return rc ? rc : bpf_map_update_elem(map, &word, &bits, BPF_ANY);
}

/* Call CALL for every process, or for the only one. */
static int each_process(struct rawtasks *t, int (*call)(struct rawtasks *t, uint32_t pid, const void *arg),
	const void *arg, struct err *e)
{
	CLEANUP(close_dir) DIR *d = t->only ? NULL : opendir("/proc");
	uint32_t pid;
	int rc = 0;

	if (t->only)
		return call(t, t->only, arg);
	if (!d)
		return err_sys(e, -errno, "cannot list the processes in '/proc'");
	while (!rc && (pid = next_id(d)))
		rc = call(t, pid, arg);
	return rc ? err_sys(e, rc, "cannot note a target") : 0;
}

struct names {
	const char (*names)[OFFCPU_COMM_LEN];
	uint8_t *seen;
	size_t n;
};

static int name_process(struct rawtasks *t, uint32_t pid, const void *arg)
{
	const struct names *names = arg;
	struct threadstat st;

	if (threadstat_read(pid, pid, &st) != 0)
		return 0;
	for (size_t i = 0; i < names->n; i++) {
		if (strcmp(st.comm, names->names[i]) != 0)
			continue;
		names->seen[i] = 1;
		return set_bit(t->tgids, pid);
	}
	return 0;
}

int rawtasks_name(
	struct rawtasks *t, const char (*names)[OFFCPU_COMM_LEN], uint8_t *seen, size_t n, struct err *e)
{
	const struct names arg = { names, seen, n };

	return each_process(t, name_process, &arg, e);
}

static uint32_t execs_of(const struct rawtasks *t, uint32_t pid)
{
	uint32_t n = 0;

	bpf_map_lookup_elem(t->execs, &pid, &n);
	return n;
}

bool rawtasks_image(const struct rawtasks *t, uint32_t pid, struct offcpu_ev_image *ret)
{
	struct threadstat st;

	if (threadstat_read(pid, pid, &st) != 0 || (st.flags & PF_KTHREAD))
		return false;
	*ret = (struct offcpu_ev_image){ .type = OFFCPU_EV_IMAGE,
		.tgid = pid,
		.start_boot_ns = st.start_boot_ns,
		.exec_id = execs_of(t, pid) };
	return true;
}

/* prev_state bits of a state letter of ps(1); 0 = the thread runs or has ended. */
static uint32_t state_bits(char letter)
{
	static const struct {
		char letter;
		uint16_t bits;
	} of[] = { { 'S', 1 }, { 'D', 2 }, { 'T', 4 }, { 't', 8 }, { 'P', 0x40 }, { 'I', 2 | TASK_NOLOAD } };

	for (size_t i = 0; i < ARRAY_LEN(of); i++)
		if (of[i].letter == letter)
			return of[i].bits;
	return 0;
}

/* As state_wanted() in bpf/offcpu.bpf.c. */
static bool state_wanted(const struct rawtasks *t, uint32_t state)
{
	uint32_t mask = t->opts->state_mask;

	return !mask || (state & (state & TASK_NOLOAD ? mask & TASK_NOLOAD : mask));
}

static struct offcpu_stack_id no_stack(bool requested)
{
	return (struct offcpu_stack_id){ 0,
		OFFCPU_FAILED(requested ? REASON_NOT_SEEN : REASON_NOT_RECORDED, 0) };
}

static void announce(struct rawtasks *t, const struct threadstat *leader, const struct threadstat *st,
	const struct offcpu_key *key)
{
	struct offcpu_ev_thread ev = { .type = OFFCPU_EV_THREAD,
		.task_flags = st->flags,
		.tgid = key->tgid,
		.tid = key->tid,
		.ns_tgid = threadstat_own_id(key->tgid, key->tgid),
		.ns_tid = threadstat_own_id(key->tgid, key->tid),
		.start_boot_ns = key->start_boot_ns,
		.exec_id = key->exec_id };

	memcpy(ev.comm, st->comm, sizeof(ev.comm));
	memcpy(ev.leader_comm, leader->comm, sizeof(ev.leader_comm));
	t->thread(t->ctx, &ev);
}

/* Note the wait of thread TID of LEADER's process, if it waits. */
static int note_thread(struct rawtasks *t, const struct threadstat *leader, uint32_t tgid, uint32_t tid)
{
	struct offcpu_wait w = { .start = OFFCPU_INITIAL };
	struct offcpu_key *key = &w.initial;
	struct threadstat st;
	int rc;

	if (threadstat_read(tgid, tid, &st) != 0)
		return 0;
	*key = (struct offcpu_key){ .tgid = tgid,
		.tid = tid,
		.start_boot_ns = leader->start_boot_ns,
		.exec_id = execs_of(t, tgid),
		.state = state_bits(st.state),
		.kernel = no_stack(!t->opts->no_kernel_stacks),
		.user = no_stack(!t->opts->no_user_stacks) };
	if (!key->state)
		return 0;
	if (st.flags & PF_KTHREAD && !t->opts->no_user_stacks)
		key->user.lo = OFFCPU_FAILED(REASON_KTHREAD, 0);
	if (!state_wanted(t, key->state))
		key->flags |= OFFCPU_F_DROP_STATE;
	rc = bpf_map_update_elem(t->waits, &tid, &w, BPF_NOEXIST);
	if (rc == -E2BIG)
		t->unkept++;
	if (!rc && !(key->flags & OFFCPU_F_DROP))
		announce(t, leader, &st, key);
	return rc == -E2BIG || rc == -EEXIST ? 0 : rc;
}

static bool is_target(const struct rawtasks *t, const struct threadstat *leader, uint32_t pid)
{
	if (!t->opts->all)
		return t->only == pid || bit(t->tgids, pid);
	return pid != t->own[0] && pid != t->own[1] && pid != t->own[2] && pid != t->own[3] &&
	       (t->opts->kthreads || !(leader->flags & PF_KTHREAD));
}

static int note_process(struct rawtasks *t, uint32_t pid, const void *arg)
{
	struct threadstat leader;
	char path[32];
	CLEANUP(close_dir) DIR *d = NULL;
	bool whole;
	uint32_t tid;
	int rc = 0;

	(void)arg;
	if (threadstat_read(pid, pid, &leader) != 0)
		return 0;
	whole = is_target(t, &leader, pid);
	if (!whole && !t->opts->use_tids)
		return 0;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", pid);
	d = opendir(path);
	while (d && !rc && (tid = next_id(d)))
		if (whole || bit(t->tids, tid))
			rc = note_thread(t, &leader, pid, tid);
	return rc;
}

int rawtasks_waiting(struct rawtasks *t, struct err *e)
{
	return each_process(t, note_process, NULL, e);
}

/* The event for W as the iterator open_waits makes it; false if W is not open. */
static bool is_open(const struct offcpu_wait *w, uint64_t record_start_ns, struct offcpu_ev_open *ev)
{
	if (w->start == OFFCPU_UNKNOWN || w->start == OFFCPU_ON_CPU)
		return false;
	*ev = (struct offcpu_ev_open){ .type = OFFCPU_EV_OPEN,
		.start = w->start,
		.runnable_ns = OFFCPU_UNKNOWN_NS,
		.key = w->start == OFFCPU_INITIAL ? w->initial : w->key };
	if (ev->start < record_start_ns) {
		ev->start = record_start_ns;
		ev->key.flags |= OFFCPU_F_INITIAL;
	}
	return true;
}

int rawtasks_waits(
	const struct rawtasks *t, void (*take)(void *ctx, const void *wait), void *ctx, struct err *e)
{
	uint32_t id, *last = NULL, key;
	struct offcpu_wait w;
	int rc;

	while ((rc = bpf_map_get_next_key(t->waits, last, &id)) == 0) {
		if (bpf_map_lookup_elem(t->waits, &id, &w) == 0)
			take(ctx, &w);
		key = id;
		last = &key;
	}
	return rc == -ENOENT ? 0 : err_sys(e, rc, "cannot read the waits that are open");
}

struct opening {
	uint64_t record_start_ns;
	void (*take)(void *ctx, const void *ev);
	void *ctx;
};

static void take_wait(void *ctx, const void *wait)
{
	const struct opening *o = ctx;
	struct offcpu_ev_open ev;

	if (is_open(wait, o->record_start_ns, &ev))
		o->take(o->ctx, &ev);
}

int rawtasks_open(const struct rawtasks *t, uint64_t record_start_ns, void (*take)(void *ctx, const void *ev),
	void *ctx, struct err *e)
{
	struct opening o = { .record_start_ns = record_start_ns, .take = take, .ctx = ctx };

	return rawtasks_waits(t, take_wait, &o, e);
}
