/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mountcheck.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>

#define RECORD TOOL_BIT(TOOL_OFFCPU_RECORD)
/* The recorder's maps and buffers, roughly: 4 to 16 MiB of ring, as much of tables. */
#define MEMORY_ENOUGH (64LL << 20)

struct mount {
	char dir[128], type[32], options[512];
};

/* The next line of *TEXT, in the syntax of proc(5)'s mounts; false at the end. */
static bool next_mount(const char **text, struct mount *ret)
{
	while (**text) {
		const char *line = *text;
		int n = sscanf(line, "%*s %127s %31s %511s", ret->dir, ret->type, ret->options);

		*text += strcspn(line, "\n");
		*text += **text == '\n';
		if (n == 3)
			return true;
	}
	return false;
}

/* The last mount of TYPE (at DIR, NULL = anywhere): later ones cover earlier ones. */
static bool find_mount(const char *text, const char *type, const char *dir, struct mount *ret)
{
	struct mount m;
	bool found = false;

	while (next_mount(&text, &m)) {
		if (strcmp(m.type, type) == 0 && (!dir || strcmp(m.dir, dir) == 0)) {
			*ret = m;
			found = true;
		}
	}
	return found;
}

/* The value of hidepid= among the mount options; "" where it is off. */
static const char *hidepid(const struct mount *proc, char *buf, size_t cap)
{
	const char *at = strstr(proc->options, "hidepid=");

	buf[0] = '\0';
	if (!at)
		return buf;
	at += strlen("hidepid=");
	snprintf(buf, cap, "%.*s", (int)MIN(strcspn(at, ","), cap - 1), at);
	if (strcmp(buf, "0") == 0 || strcmp(buf, "off") == 0)
		buf[0] = '\0';
	return buf;
}

static void check_proc(const struct machine *m, const char *text, struct findings *f)
{
	struct mount proc;
	struct finding *fi;
	char hidden[32];

	if (!find_mount(text, "proc", "/proc", &proc)) {
		fi = findings_add(f, GROUP_MOUNTS, FINDING_WARN, "mounts.proc", "no procfs at /proc");
		fi->degrades = RECORD;
		finding_mend(fi, "mount -t proc proc /proc");
		return;
	}
	hidepid(&proc, hidden, sizeof(hidden));
	if (!hidden[0] || machine_tool_allows(m, TOOL_OFFCPU_RECORD, CAP_SYS_PTRACE)) {
		findings_add(f, GROUP_MOUNTS, FINDING_OK, "mounts.proc", "procfs at /proc%s%s%s",
			hidden[0] ? ", hidepid=" : "", hidden,
			hidden[0] ? ": no matter with CAP_SYS_PTRACE" : "");
		return;
	}
	fi = findings_add(f, GROUP_MOUNTS, FINDING_WARN, "mounts.proc",
		"procfs with hidepid=%s hides the processes of other users", hidden);
	fi->degrades = RECORD;
	finding_mend(fi, "mount -o remount,hidepid=0 /proc");
}

static void check_tracefs(const struct machine *m, const char *text, struct findings *f)
{
	struct finding *fi;
	struct mount at;

	if (find_mount(text, "tracefs", NULL, &at)) {
		findings_add(f, GROUP_MOUNTS, FINDING_OK, "mounts.tracefs", "tracefs at %s", at.dir);
	} else if (find_mount(text, "debugfs", NULL, &at)) {
		findings_add(f, GROUP_MOUNTS, FINDING_OK, "mounts.tracefs", "tracefs through debugfs at %s",
			at.dir);
	} else if (machine_tool_allows(m, TOOL_STACKMAP_TEST, CAP_SYS_ADMIN)) {
		findings_add(f, GROUP_MOUNTS, FINDING_OK, "mounts.tracefs",
			"no tracefs: stackmap-test mounts it for itself; nothing else needs it");
	} else {
		fi = findings_add(f, GROUP_MOUNTS, FINDING_WARN, "mounts.tracefs",
			"no tracefs: stackmap-test skips its tracepoint case; nothing else needs it");
		finding_mend(fi, "mount -t tracefs tracefs /sys/kernel/tracing");
	}
}

static void check_unneeded(const char *text, const char *type, struct findings *f)
{
	struct mount at;
	char id[64];

	snprintf(id, sizeof(id), "mounts.%s", type);
	if (find_mount(text, type, NULL, &at))
		findings_add(f, GROUP_MOUNTS, FINDING_OK, id, "%s at %s", type, at.dir);
	else
		findings_add(f, GROUP_MOUNTS, FINDING_OK, id, "no %s: no tool needs it", type);
}

static void check_mounts(const struct machine *m, struct findings *f)
{
	_cleanup_free_ char *text = NULL;
	struct err e = { 0 };
	int rc = root_read(m->root, "proc/self/mounts", 16 << 20, &text, NULL, &e);

	if (rc) {
		findings_add(f, GROUP_MOUNTS, FINDING_SKIP, "mounts.proc", "%s", e.msg);
		return;
	}
	check_proc(m, text, f);
	check_tracefs(m, text, f);
	check_unneeded(text, "debugfs", f);
	check_unneeded(text, "bpf", f);
}

/* Of the line that begins with KEY in proc/self/limits: the soft limit in bytes, -1 = unlimited. */
static bool soft_limit(const char *text, const char *key, long long *ret)
{
	const char *at = strstr(text, key);

	if (!at)
		return false;
	at += strlen(key);
	at += strspn(at, " ");
	if (strncmp(at, "unlimited", 9) == 0) {
		*ret = -1;
		return true;
	}
	return sscanf(at, "%lld", ret) == 1;
}

static void check_memlock(const struct machine *m, struct findings *f)
{
	_cleanup_free_ char *text = NULL;
	struct finding *fi;
	struct err e = { 0 };
	long long limit;

	if (m->version >= MACHINE_VERSION(5, 11)) {
		findings_add(f, GROUP_MEMORY, FINDING_OK, "memory.accounting",
			"BPF memory counts against the memory cgroup, not RLIMIT_MEMLOCK");
		return;
	}
	if (root_read(m->root, "proc/self/limits", 65536, &text, NULL, &e) != 0 ||
		!soft_limit(text, "Max locked memory", &limit)) {
		findings_add(f, GROUP_MEMORY, FINDING_SKIP, "memory.accounting", "%s",
			e.code ? e.msg : "no limit of locked memory in /proc/self/limits");
		return;
	}
	if (limit < 0 || limit >= MEMORY_ENOUGH || machine_allows(m, CAP_SYS_RESOURCE)) {
		findings_add(f, GROUP_MEMORY, FINDING_OK, "memory.accounting",
			"RLIMIT_MEMLOCK is high enough, or may be raised");
		return;
	}
	fi = findings_add(f, GROUP_MEMORY, FINDING_WARN, "memory.accounting",
		"RLIMIT_MEMLOCK of %lld KiB: BPF memory counts against it before Linux 5.11", limit >> 10);
	fi->degrades = TOOLS_LIVE;
	finding_mend(fi, "ulimit -l unlimited");
}

/* This process's place in the cgroup v2 hierarchy, "" for none. */
static void own_cgroup(const struct machine *m, char *buf, size_t cap)
{
	_cleanup_free_ char *text = NULL;
	const char *at = NULL;

	buf[0] = '\0';
	if (root_read(m->root, "proc/self/cgroup", 65536, &text, NULL, NULL) != 0)
		return;
	if (strncmp(text, "0::", 3) == 0)
		at = text;
	else if (strstr(text, "\n0::"))
		at = strstr(text, "\n0::") + 1;
	if (at)
		snprintf(buf, cap, "%.*s", (int)MIN(strcspn(at + 3, "\n"), cap - 1), at + 3);
}

static void check_cgroup(const struct machine *m, struct findings *f)
{
	char group[512], path[640];
	struct finding *fi;
	long long max;

	own_cgroup(m, group, sizeof(group));
	snprintf(path, sizeof(path), "sys/fs/cgroup%s/memory.max", group);
	if (!group[0] || !machine_number(m, path, &max) || max >= MEMORY_ENOUGH) {
		findings_add(f, GROUP_MEMORY, FINDING_OK, "memory.cgroup",
			"no tight limit of this cgroup's memory");
		return;
	}
	fi = findings_add(f, GROUP_MEMORY, FINDING_WARN, "memory.cgroup",
		"this cgroup is limited to %lld KiB: the recorder's maps may not fit", max >> 10);
	fi->degrades = RECORD;
	finding_mend(fi, "echo max > '/sys/fs/cgroup%s/memory.max'", group);
}

void mountcheck_run(const struct machine *m, struct findings *f)
{
	check_mounts(m, f);
	check_memlock(m, f);
	check_cgroup(m, f);
}
