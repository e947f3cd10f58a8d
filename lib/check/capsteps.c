/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/capsteps.h"
#include "record/bpf.h"

#include <sys/prctl.h>

static const struct {
	const char *title, *reason;
} groups[] = {
	[CAPSTEPS_MAPS] = { "create a BPF map", "create BPF maps and load type information" },
	[CAPSTEPS_PROGRAMS] = { "load a program of offcpu-record", "load the recorder's BPF programs" },
	[CAPSTEPS_ATTACH] = { "attach", "attach BPF programs to the scheduler's tracepoints" },
	[CAPSTEPS_ITERATORS] = { "create and read a task iterator", "go through all tasks by BPF iterators" },
	[CAPSTEPS_RAW] = { "record without the kernel's BTF", "record by raw tracepoints" },
	[CAPSTEPS_STACKMAP] = { "load and attach one of stackmap-test", "load and attach BPF programs" },
	[CAPSTEPS_PERF] = { "open perf dummy events", "open perf events" },
	[CAPSTEPS_KERNEL] = { "read of the kernel", "read of the kernel" },
	[CAPSTEPS_OWN] = { "of a process of one's own", "look at one's own processes" },
	[CAPSTEPS_OTHER] = { "of another user's process", "look at other users' processes" },
	[CAPSTEPS_LIMITS] = { "limits", "raise limits" },
};

/* Before the BPF steps, and behind them. */
static const struct capstep procs[] = {
	{ "proc.own.maps", "read its maps", CAPSTEPS_OWN, capproc_maps, NULL, CAPWORLD_OF_USER, "", false },
	{ "proc.own.map_files", "open a mapped file by map_files", CAPSTEPS_OWN, capproc_map_files, NULL,
		CAPWORLD_OF_USER, "", false },
	{ "proc.own.memory", "read its memory", CAPSTEPS_OWN, capproc_memory, NULL, CAPWORLD_OF_USER, "",
		false },
	{ "proc.own.ptrace", "trace and stop it", CAPSTEPS_OWN, capproc_ptrace, NULL, CAPWORLD_OF_USER, "",
		false },
	{ "proc.own.stack", "read its kernel stack in /proc", CAPSTEPS_OWN, capproc_stack, NULL,
		CAPWORLD_OF_USER, "", false },
	{ "proc.other.maps", "read its maps", CAPSTEPS_OTHER, capproc_maps, NULL, CAPWORLD_OF_OTHER, "",
		false },
	{ "proc.other.maps_hidden", "the same, not dumpable", CAPSTEPS_OTHER, capproc_maps, NULL,
		CAPWORLD_HIDDEN, "", false },
	{ "proc.other.root", "open a mapped file by its root", CAPSTEPS_OTHER, capproc_root, NULL,
		CAPWORLD_OF_OTHER, "", false },
	{ "proc.other.map_files", "open a mapped file by map_files", CAPSTEPS_OTHER, capproc_map_files, NULL,
		CAPWORLD_OF_OTHER, "", false },
	{ "proc.other.private_file", "the same, a file of mode 0600", CAPSTEPS_OTHER, capproc_own_file, NULL,
		CAPWORLD_OF_OTHER, "", false },
	{ "proc.other.memory", "read its memory, process_vm_readv", CAPSTEPS_OTHER, capproc_memory, NULL,
		CAPWORLD_OF_OTHER, "", false },
	{ "proc.other.mem_file", "read its memory, /proc/PID/mem", CAPSTEPS_OTHER, capproc_mem_file, NULL,
		CAPWORLD_OF_OTHER, "", false },
	{ "proc.other.ptrace", "trace and stop it", CAPSTEPS_OTHER, capproc_ptrace, NULL, CAPWORLD_OF_OTHER,
		"", false },
	{ "proc.other.syscall", "read its system call in /proc", CAPSTEPS_OTHER, capproc_syscall, NULL,
		CAPWORLD_OF_OTHER, "", false },
	{ "proc.other.stack", "read its kernel stack in /proc", CAPSTEPS_OTHER, capproc_stack, NULL,
		CAPWORLD_OF_OTHER, "", false },
	{ "perf.own", "for a process of one's own", CAPSTEPS_PERF, capproc_event, NULL, CAPWORLD_OF_USER, "",
		false },
	{ "perf.other", "for another user's process", CAPSTEPS_PERF, capproc_event, NULL, CAPWORLD_OF_OTHER,
		"", false },
	{ "perf.system", "on every CPU, with their buffers", CAPSTEPS_PERF, capproc_events, NULL,
		CAPWORLD_OF_USER, "", false },
	{ "kernel.kallsyms", "addresses of symbols (kallsyms)", CAPSTEPS_KERNEL, capproc_kallsyms, NULL,
		CAPWORLD_OF_USER, "", false },
	{ "kernel.btf", "type information (BTF)", CAPSTEPS_KERNEL, capproc_btf, NULL, CAPWORLD_OF_USER, "",
		false },
	{ "kernel.tracefs", "the id of a tracepoint (tracefs)", CAPSTEPS_KERNEL, capproc_tracefs, NULL,
		CAPWORLD_OF_USER, "", false },
};

static const struct capstep limits[] = {
	{ "limit.memlock", "raise RLIMIT_MEMLOCK", CAPSTEPS_LIMITS, capproc_memlock, NULL, CAPWORLD_OF_USER,
		"", false },
};

const char *capsteps_title(enum capsteps_group group)
{
	return groups[group].title;
}

const char *capsteps_reason(enum capsteps_group group)
{
	return groups[group].reason;
}

/* A step of BPF: PREFIX.NAME, which does FN with ARG. */
static int add(struct capsteps *list, enum capsteps_group group, const char *prefix, const char *name,
	capbpf_fn fn, const char *arg)
{
	struct capstep *s = &list->list[list->n];

	if (list->n == CAPSTEPS_MAX)
		return -ENOSPC;
	*s = (struct capstep){ .group = group, .bpf = fn, .kernel_memory = group != CAPSTEPS_MAPS };
	snprintf(s->id, sizeof(s->id), "%s.%s", prefix, name);
	snprintf(s->does, sizeof(s->does), "%s", name);
	snprintf(s->arg, sizeof(s->arg), "%s", arg);
	list->n++;
	return 0;
}

static int add_all(struct capsteps *list, const struct capstep *steps, size_t n)
{
	if (n > CAPSTEPS_MAX - list->n)
		return -ENOSPC;
	for (size_t i = 0; i < n; i++)
		list->list[list->n++] = steps[i];
	return 0;
}

static int add_program(void *ctx, const char *name)
{
	return add(ctx, CAPSTEPS_PROGRAMS, "record", name, capbpf_load, name);
}

/* Mode raw as a whole: the search for a task's members, its programs, and what they attach to. */
static int try_raw(struct capbpf *b, const char *arg, struct err *e)
{
	const struct offcpu_opts opts = { .raw = true, .follow = true };
	struct offcpu *o = NULL;
	int rc;

	(void)b, (void)arg;
	/* a change of user took that away: a recorder that was started as this user can look at itself */
	prctl(PR_SET_DUMPABLE, 1);
	rc = offcpu_load(&opts, &o, e);
	if (!rc)
		rc = offcpu_attach(o, e);
	offcpu_close(o);
	return rc;
}

static int add_recorder(struct capsteps *list, struct err *e)
{
	int rc = capbpf_programs(add_program, list, e);

	if (!rc)
		rc = add(list, CAPSTEPS_ATTACH, "attach", "tp_btf", capbpf_attach, "sched_switch");
	if (!rc)
		rc = add(list, CAPSTEPS_ATTACH, "attach", "prog_array", capbpf_place, "sched_switch");
	if (!rc)
		rc = add(list, CAPSTEPS_ITERATORS, "iterator", "task", capbpf_iterate, "open_waits");
	if (!rc)
		rc = add(list, CAPSTEPS_ITERATORS, "iterator", "task_sleepable", capbpf_iterate, "waiting");
	return rc ? rc : add(list, CAPSTEPS_RAW, "raw", "load_and_attach", try_raw, "");
}

int capsteps_list(struct capsteps *ret, struct err *e)
{
	const char *name;
	int rc = 0;

	ret->n = 0;
	for (size_t i = 0; !rc && (name = capbpf_map_name(i)); i++)
		rc = add(ret, CAPSTEPS_MAPS, "map", name, capbpf_map, name);
	if (!rc)
		rc = add(ret, CAPSTEPS_MAPS, "map", "btf", capbpf_btf, "");
	if (!rc)
		rc = add_recorder(ret, e);
	for (size_t i = 0; !rc && (name = capbpf_stackshot_name(i)); i++)
		rc = add(ret, CAPSTEPS_STACKMAP, "stackmap", name, capbpf_stackshot, name);
	if (!rc)
		rc = add_all(ret, procs, ARRAY_LEN(procs));
	if (!rc)
		rc = add_all(ret, limits, ARRAY_LEN(limits));
	return rc == -ENOSPC ? err_set(e, rc, "there are more than %d steps to try", CAPSTEPS_MAX) : rc;
}

int capsteps_do(const struct capstep *s, const struct capworld *w, uid_t uid, struct capbpf *b, struct err *e)
{
	enum capworld_process whose = s->whose == CAPWORLD_OF_USER && uid == 0 ? CAPWORLD_OF_ROOT : s->whose;

	if (s->bpf)
		return s->bpf(b, s->arg, e);
	if (!w->pid[whose])
		return err_set(e, CAPSTEPS_UNTRIED, "a process of another user cannot be made here");
	return s->proc(w, w->pid[whose], e);
}
