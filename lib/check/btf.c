/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/btf.h"
#include "system/btf.h"

#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define STACKMAP TOOL_BIT(TOOL_STACKMAP_TEST)
#define RECORD TOOL_BIT(TOOL_OFFCPU_RECORD)

/* A type that one pass over all types looks for. */
struct wanted {
	const char *name;
	uint32_t id; /* 0 = missing */
};

enum { SWITCH, FORK, EXEC, RENAME, N_TRACE };
enum { TASK, MM, PID, UPID, PID_NS, NS, ENTITY, ITER, N_STRUCT, ORC = N_STRUCT, N_ALL };

struct scan {
	struct wanted trace[N_TRACE], structs[N_ALL]; /* ORC: not every kernel has it */
	uint32_t helpers, map_types; /* the ids of the enums; 0 = missing */
	bool mmapable; /* BPF_F_MMAPABLE exists; its enum has no name */
};

/* Members that the programs read, as in bpf/kernel.h; either name is enough. */
static const struct {
	int of;
	const char *name, *other;
} members[] = { { TASK, "__state", "state" }, { TASK, "flags", NULL }, { TASK, "on_cpu", NULL },
	{ TASK, "mm", NULL }, { TASK, "pid", NULL }, { TASK, "tgid", NULL }, { TASK, "se", NULL },
	{ TASK, "group_leader", NULL }, { TASK, "thread_pid", NULL }, { TASK, "start_boottime", NULL },
	{ TASK, "self_exec_id", NULL }, { TASK, "comm", NULL }, { MM, "start_stack", NULL },
	{ PID, "level", NULL }, { PID, "numbers", NULL }, { UPID, "nr", NULL }, { UPID, "ns", NULL },
	{ PID_NS, "ns", NULL }, { NS, "inum", NULL }, { ENTITY, "sum_exec_runtime", NULL },
	{ ENTITY, "prev_sum_exec_runtime", NULL } };

/* A value of an enum, and the modes that do not work without it. */
struct value {
	const char *name;
	unsigned int bars;
};

#define BTF MODE_BIT(MODE_BTF)

/*
 * Helpers that the programs call, except those that every kernel with BTF has.
 * Those that bar no mode are optional: without them there are no unwind tables
 * (task_pt_regs, Linux 5.15), or no user stacks of waits that began before the
 * recording.
 */
static const struct value helpers[] = {
	{ "BPF_FUNC_get_stack", MODES_BPF },
	{ "BPF_FUNC_get_task_stack", BTF },
	{ "BPF_FUNC_task_storage_get", BTF },
	{ "BPF_FUNC_seq_write", BTF },
	{ "BPF_FUNC_ringbuf_output", MODES_BPF },
	{ "BPF_FUNC_ringbuf_reserve", MODES_BPF },
	{ "BPF_FUNC_ringbuf_query", MODES_BPF },
	{ "BPF_FUNC_probe_read_kernel", MODES_BPF },
	{ "BPF_FUNC_probe_read_kernel_str", MODES_BPF },
	{ "BPF_FUNC_probe_read_user", MODES_BPF },
	{ "BPF_FUNC_task_pt_regs", 0 },
	{ "BPF_FUNC_loop", 0 },
	{ "BPF_FUNC_copy_from_user_task", 0 },
};

static const struct value map_types[] = {
	{ "BPF_MAP_TYPE_STACK_TRACE", BTF },
	{ "BPF_MAP_TYPE_TASK_STORAGE", BTF },
	{ "BPF_MAP_TYPE_RINGBUF", MODES_BPF },
	{ "BPF_MAP_TYPE_ARRAY_OF_MAPS", MODES_BPF },
	{ "BPF_MAP_TYPE_PROG_ARRAY", MODES_BPF },
	{ "BPF_MAP_TYPE_PERCPU_ARRAY", MODES_BPF },
	{ "BPF_MAP_TYPE_LRU_HASH", MODES_BPF },
};

/* Append NAME to the list "a, b" in BUF. */
static void append(char *buf, size_t cap, const char *name)
{
	size_t len = strlen(buf);

	snprintf(buf + len, cap - len, "%s%s", len ? ", " : "", name);
}

static bool has_value(const struct btf_image *btf, uint32_t id, const char *name);

static void scan_type(struct scan *s, const struct btf_image *btf, const struct btf_type *t, uint32_t id)
{
	struct wanted *list = btf_is_typedef(t) ? s->trace : s->structs;
	size_t n = btf_is_typedef(t) ? ARRAY_LEN(s->trace) : ARRAY_LEN(s->structs);
	const char *name;

	if (!btf_is_typedef(t) && !btf_is_struct(t) && !btf_is_any_enum(t))
		return;
	name = btf_image_name(btf, t->name_off);
	if (!name)
		return;
	if (btf_is_any_enum(t)) {
		if (strcmp(name, "bpf_func_id") == 0)
			s->helpers = id;
		else if (strcmp(name, "bpf_map_type") == 0)
			s->map_types = id;
		else if (!*name && !s->mmapable)
			s->mmapable = has_value(btf, id, "BPF_F_MMAPABLE");
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].name, name) == 0)
			list[i].id = id;
}

static void scan(struct scan *s, const struct btf_image *btf)
{
	*s = (struct scan){
		.trace = { [SWITCH] = { .name = "btf_trace_sched_switch" },
			[FORK] = { .name = "btf_trace_sched_process_fork" },
			[EXEC] = { .name = "btf_trace_sched_process_exec" },
			[RENAME] = { .name = "btf_trace_task_rename" } },
		.structs = { [TASK] = { .name = "task_struct" },
			[MM] = { .name = "mm_struct" },
			[PID] = { .name = "pid" },
			[UPID] = { .name = "upid" },
			[PID_NS] = { .name = "pid_namespace" },
			[NS] = { .name = "ns_common" },
			[ENTITY] = { .name = "sched_entity" },
			[ITER] = { .name = "bpf_iter__task" },
			[ORC] = { .name = "orc_entry" } },
	};
	for (uint32_t id = 1; id < btf->n; id++)
		scan_type(s, btf, btf_image_type(btf, id), id);
}

/* The number of arguments of tracepoint typedef ID, context pointer included; -1 = not such a typedef. */
static int arity(const struct btf_image *btf, uint32_t id)
{
	const struct btf_type *t = btf_image_type(btf, id);

	t = t ? btf_image_type(btf, t->type) : NULL;
	t = t && btf_is_ptr(t) ? btf_image_type(btf, t->type) : NULL;
	return t && btf_is_func_proto(t) ? btf_vlen(t) : -1;
}

/* BUDGET limits the number of members that are read: a malicious type can nest without end. */
static bool find_member(const struct btf_image *btf, uint32_t id, const char *name, unsigned int *budget)
{
	const struct btf_type *t = btf_image_type(btf, id);
	const struct btf_member *member;

	if (!t || !btf_is_composite(t))
		return false;
	member = btf_members(t);
	for (int i = 0; i < btf_vlen(t) && *budget; i++) {
		const char *is = btf_image_name(btf, member[i].name_off);

		--*budget;
		if (is && strcmp(is, name) == 0)
			return true;
		/* an anonymous struct or union, as in randomized layouts */
		if ((!is || !*is) && find_member(btf, member[i].type, name, budget))
			return true;
	}
	return false;
}

static bool has_member(const struct btf_image *btf, uint32_t id, const char *name)
{
	unsigned int budget = 10000;

	return find_member(btf, id, name, &budget);
}

static bool has_value(const struct btf_image *btf, uint32_t id, const char *name)
{
	const struct btf_type *t = btf_image_type(btf, id);
	const struct btf_enum *value;

	if (!id || !t || !btf_is_enum(t))
		return false;
	value = btf_enum(t);
	for (int i = 0; i < btf_vlen(t); i++) {
		const char *is = btf_image_name(btf, value[i].name_off);

		if (is && strcmp(is, name) == 0)
			return true;
	}
	return false;
}

/* Add a finding: OK if MISSING is empty, a failure if BARS is not; else the recorder is degraded. */
static void judge(const struct machine *m, struct findings *f, const char *id, const char *fine,
	const char *missing, unsigned int bars)
{
	char command[256];
	struct finding *fi;

	if (!missing[0]) {
		findings_add(f, GROUP_BTF, FINDING_OK, id, "%s", fine);
		return;
	}
	fi = findings_add(
		f, GROUP_BTF, bars ? FINDING_FAIL : FINDING_WARN, id, "the kernel lacks %s", missing);
	fi->bars = bars;
	fi->degrades = bars ? 0 : RECORD;
	finding_remedy(fi, "%s", machine_new_kernel(m, command, sizeof(command)));
}

static void check_switch(
	const struct machine *m, const struct scan *s, const struct btf_image *btf, struct findings *f)
{
	int n = s->trace[SWITCH].id ? arity(btf, s->trace[SWITCH].id) : -1;

	judge(m, f, "BTF.sched_switch",
		n >= 5 ? "btf_trace_sched_switch has prev_state"
		       : "btf_trace_sched_switch without prev_state, which is read from the task (before "
			 "5.18)",
		n >= 4 ? "" : "a prototype of the tracepoint sched_switch", BTF);
}

/* Members of missing structures are not listed: the structures are. */
static void missing_members(const struct scan *s, const struct btf_image *btf, char *buf, size_t cap)
{
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		uint32_t of = s->structs[members[i].of].id;
		const char *name = members[i].name, *other = members[i].other;

		if (of && !has_member(btf, of, name) && !(other && has_member(btf, of, other)))
			append(buf, cap, name);
	}
}

/* Append the values of LIST that enum ID lacks to BUF, without their prefix. Returns the modes barred. */
static unsigned int missing_values(
	const struct btf_image *btf, uint32_t id, const struct value *list, size_t n, char *buf, size_t cap)
{
	unsigned int bars = 0;

	for (size_t i = 0; i < n; i++) {
		if (has_value(btf, id, list[i].name))
			continue;
		append(buf, cap,
			list[i].name +
				(strncmp(list[i].name, "BPF_FUNC_", 9) == 0 ? 9 : strlen("BPF_MAP_TYPE_")));
		bars |= list[i].bars;
	}
	return bars;
}

static void check_needs(
	const struct machine *m, const struct scan *s, const struct btf_image *btf, struct findings *f)
{
	char missing[400] = "";
	unsigned int bars;

	check_switch(m, s, btf, f);
	for (size_t i = FORK; i < N_TRACE; i++)
		if (!s->trace[i].id)
			append(missing, sizeof(missing), s->trace[i].name);
	judge(m, f, "BTF.tracepoints", "fork, exec and rename have prototypes", missing, BTF);
	missing[0] = '\0';
	for (size_t i = 0; i < N_STRUCT; i++)
		if (!s->structs[i].id)
			append(missing, sizeof(missing), s->structs[i].name);
	missing_members(s, btf, missing, sizeof(missing));
	judge(m, f, "BTF.task_struct", "every structure member that is read", missing, BTF);
	missing[0] = '\0';
	bars = missing_values(btf, s->helpers, helpers, ARRAY_LEN(helpers), missing, sizeof(missing));
	if (missing[0] && !bars)
		snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing),
			": waits that began before the recording have no user stack");
	judge(m, f, "BTF.helpers", "every BPF helper that is called", missing, bars);
	missing[0] = '\0';
	bars = missing_values(btf, s->map_types, map_types, ARRAY_LEN(map_types), missing, sizeof(missing));
	if (!s->mmapable) {
		append(missing, sizeof(missing), "arrays that can be mapped into memory");
		bars = MODES_BPF;
	}
	judge(m, f, "BTF.maps", "every kind of map that is used", missing, bars);
	findings_add(f, GROUP_BTF, FINDING_OK, "BTF.orc_entry", "%s",
		s->structs[ORC].id
			? "orc_entry: with the kernel's symbols, kernel stacks are walked by its unwind table"
			: "no orc_entry: no unwind table of the kernel to walk kernel stacks by, so that "
			  "bpf_get_stack() takes them, which costs several times more");
}

static void unusable(const struct machine *m, const char *msg, bool absent, struct findings *f)
{
	struct finding *fi = findings_add(f, GROUP_BTF, FINDING_FAIL, "BTF.vmlinux", "%s", msg);
	char command[256];

	fi->bars = MODE_BIT(MODE_BTF);
	fi->degrades = STACKMAP;
	if (absent && m->version >= MACHINE_VERSION(5, 4) && !root_exists(m->root, "sys/kernel"))
		finding_remedy(fi, "mount -t sysfs sysfs /sys");
	else
		finding_remedy(fi, "%s", machine_new_kernel(m, command, sizeof(command)));
}

void btfcheck_run(const struct machine *m, struct findings *f)
{
	struct btf_image btf = { 0 };
	struct err e = { 0 };
	struct scan s;
	int fd = root_openat(m->root, &BTF_VMLINUX[1], O_RDONLY | O_NONBLOCK, &e), rc = fd;

	if (fd >= 0) {
		rc = btf_image_read(&btf, fd, BTF_VMLINUX, m->root->live, &e);
		close(fd);
	}
	if (rc < 0) {
		unusable(m, rc == -ENOENT ? "no " BTF_VMLINUX ": the kernel was built without BTF" : e.msg,
			rc == -ENOENT, f);
		return;
	}
	rc = btf_image_parse(&btf);
	if (rc) {
		char msg[128];

		snprintf(msg, sizeof(msg), BTF_VMLINUX " is damaged: %zu bytes are not BTF (%s)", btf.len,
			err_name(-rc));
		unusable(m, msg, false, f);
	} else {
		findings_add(f, GROUP_BTF, FINDING_OK, "BTF.vmlinux", BTF_VMLINUX ", %u types, %zu KiB",
			btf.n - 1, btf.len >> 10);
		scan(&s, &btf);
		check_needs(m, &s, &btf, f);
	}
	btf_image_release(&btf);
}
