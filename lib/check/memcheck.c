/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/memcheck.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <string.h>

#define RECORD TOOL_BIT(TOOL_OFFCPU_RECORD)
/* The recorder's maps and buffers, roughly: 4 to 16 MiB of ring, as much of tables. */
#define MEMORY_ENOUGH (64LL << 20)
#define DEPTH_MAX 64 /* cgroups above each other that are looked at */

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

static void check_rlimit(const struct machine *m, struct findings *f)
{
	_cleanup_free_ char *text = NULL;
	struct finding *fi;
	struct err e = { 0 };
	long long limit;

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

/* kernel/cgroup.c's "cgroup.memory=nobpf" and "nokmem" on the command line take BPF memory out. */
static bool not_accounted(const struct machine *m)
{
	_cleanup_free_ char *cmdline = NULL;
	const char *at;

	if (root_read(m->root, "proc/cmdline", 65536, &cmdline, NULL, NULL) != 0)
		return false;
	at = strstr(cmdline, "cgroup.memory=");
	if (!at)
		return false;
	cmdline[(at - cmdline) + (ptrdiff_t)strcspn(at, " \n")] = '\0';
	return strstr(at, "nobpf") || strstr(at, "nokmem");
}

static void check_accounting(const struct machine *m, struct findings *f)
{
	if (m->version < MACHINE_VERSION(5, 11))
		check_rlimit(m, f);
	else if (not_accounted(m))
		findings_add(f, GROUP_MEMORY, FINDING_OK, "memory.accounting",
			"BPF memory counts against no limit: cgroup.memory= of the kernel command line");
	else
		findings_add(f, GROUP_MEMORY, FINDING_OK, "memory.accounting",
			"BPF memory counts against the memory cgroup, not RLIMIT_MEMLOCK");
}

/* A hierarchy that limits memory: where it is mounted, and this process's place in it. */
struct hierarchy {
	char dir[128]; /* below the root, no leading slash: "sys/fs/cgroup" */
	char group[384]; /* "/" or "/user.slice/..." */
	const char *limit, *usage; /* the files' names */
};

/* Does the list "cpu,memory" hold NAME? LEN bytes of it. */
static bool in_list(const char *list, size_t len, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = list; p < list + len; p += strcspn(p, ",:") + 1)
		if (strncmp(p, name, n) == 0 && (p + n == list + len || p[n] == ','))
			return true;
	return false;
}

/* Of proc/self/cgroup: "0::/path" where V1 is NULL, else the line whose controllers hold V1. */
static bool own_group(const char *text, const char *v1, char *buf, size_t cap)
{
	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");
		const char *a = memchr(line, ':', len);
		const char *b = a ? memchr(a + 1, ':', len - (size_t)(a + 1 - line)) : NULL;

		if (b && (v1 ? in_list(a + 1, (size_t)(b - a - 1), v1) : (line[0] == '0' && b == a + 1))) {
			snprintf(buf, cap, "%.*s", (int)MIN((size_t)(line + len - b - 1), cap - 1), b + 1);
			return buf[0] == '/';
		}
		line += len;
		line += *line == '\n';
	}
	return false;
}

/* The last mount of TYPE in the text of proc/self/mounts, with OPTION (NULL = any): its directory. */
static bool mounted(const char *text, const char *type, const char *option, char *dir, size_t cap)
{
	char at[128], is[32], options[512];
	bool found = false;

	for (const char *line = text; *line; line += *line == '\n') {
		if (sscanf(line, "%*s %127s %31s %511s", at, is, options) == 3 && strcmp(is, type) == 0 &&
			(!option || in_list(options, strlen(options), option))) {
			snprintf(dir, cap, "%s", at + (at[0] == '/'));
			found = true;
		}
		line += strcspn(line, "\n");
	}
	return found;
}

struct tightest {
	bool found;
	long long limit, used, left;
	char path[640]; /* of the file that holds the limit */
};

static void look(const struct machine *m, const struct hierarchy *h, const char *group, struct tightest *t)
{
	char path[600], usage[600];
	long long limit, used = 0;

	snprintf(path, sizeof(path), "%s%s/%s", h->dir, strcmp(group, "/") ? group : "", h->limit);
	/* "max" is no number; v1 says LONG_MAX rounded to pages */
	if (!machine_number(m, path, &limit) || limit < 0 || limit > INT64_MAX / 2)
		return;
	snprintf(usage, sizeof(usage), "%s%s/%s", h->dir, strcmp(group, "/") ? group : "", h->usage);
	if (!machine_number(m, usage, &used) || used < 0)
		used = 0;
	if (t->found && limit - used >= t->left)
		return;
	t->found = true;
	t->limit = limit;
	t->used = used;
	t->left = limit - used;
	snprintf(t->path, sizeof(t->path), "%s", path);
}

/* This group and all above it, as far as they are seen here. */
static void look_up(const struct machine *m, const struct hierarchy *h, struct tightest *t)
{
	char group[sizeof(h->group)];

	snprintf(group, sizeof(group), "%s", h->group);
	for (int i = 0; i < DEPTH_MAX && group[0]; i++) {
		look(m, h, group, t);
		if (strrchr(group, '/'))
			*strrchr(group, '/') = '\0';
	}
	look(m, h, "/", t);
}

static void check_cgroup(const struct machine *m, struct findings *f)
{
	_cleanup_free_ char *groups = NULL, *mounts = NULL;
	struct hierarchy h = { .limit = "memory.max", .usage = "memory.current" };
	struct tightest t = { 0 };
	struct finding *fi;

	if (root_read(m->root, "proc/self/cgroup", 65536, &groups, NULL, NULL) != 0 ||
		root_read(m->root, "proc/self/mounts", 16 << 20, &mounts, NULL, NULL) != 0) {
		findings_add(f, GROUP_MEMORY, FINDING_SKIP, "memory.cgroup",
			"no /proc/self/cgroup: the cgroup of this process is not known");
		return;
	}
	if (mounted(mounts, "cgroup2", NULL, h.dir, sizeof(h.dir)) &&
		own_group(groups, NULL, h.group, sizeof(h.group)))
		look_up(m, &h, &t);
	h.limit = "memory.limit_in_bytes";
	h.usage = "memory.usage_in_bytes";
	if (mounted(mounts, "cgroup", "memory", h.dir, sizeof(h.dir)) &&
		own_group(groups, "memory", h.group, sizeof(h.group)))
		look_up(m, &h, &t);
	if (!t.found || t.left >= MEMORY_ENOUGH) {
		findings_add(f, GROUP_MEMORY, FINDING_OK, "memory.cgroup",
			"no tight limit of this cgroup's memory");
		return;
	}
	fi = findings_add(f, GROUP_MEMORY, FINDING_WARN, "memory.cgroup",
		"this cgroup is limited to %lld KiB of memory, %lld KiB used: the recorder's maps may not "
		"fit",
		t.limit >> 10, t.used >> 10);
	if (m->version >= MACHINE_VERSION(5, 11) && !not_accounted(m))
		fi->degrades = RECORD;
	if (m->pid_ns)
		finding_mend(fi, "docker run --memory=1g ... (or 'docker update --memory=1g' on the host)");
	else if (strpbrk(t.path, "'\n"))
		finding_mend(fi, "raise the limit of this cgroup: its name cannot stand in a command");
	else
		finding_mend(fi, "echo %s > '/%s'", strstr(t.path, "memory.max") ? "max" : "-1", t.path);
}

void memcheck_run(const struct machine *m, struct findings *f)
{
	check_accounting(m, f);
	check_cgroup(m, f);
}
