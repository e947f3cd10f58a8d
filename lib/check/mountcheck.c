/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/mountcheck.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>

#define RECORD TOOL_BIT(TOOL_OFFCPU_RECORD)

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

/* Processes alone: no kernel symbols, no settings. */
static void check_subset(struct findings *f)
{
	struct finding *fi = findings_add(f, GROUP_MOUNTS, FINDING_WARN, "mounts.proc_subset",
		"procfs with subset=pid has no /proc/kallsyms and no /proc/sys: kernel frames stay without "
		"names");

	fi->degrades = RECORD | TOOL_BIT(TOOL_KALLSYMS_RESOLVE) | TOOL_BIT(TOOL_STACKMAP_TEST);
	finding_mend(fi, "mount -t proc proc /proc");
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
	if (strstr(proc.options, "subset=pid"))
		check_subset(f);
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
			"no tracefs: stackmap-test mounts it for itself; else raw mode alone reads it");
	} else {
		fi = findings_add(f, GROUP_MOUNTS, FINDING_WARN, "mounts.tracefs",
			"no tracefs: stackmap-test skips its tracepoint case%s",
			m->version < MACHINE_VERSION(5, 18) ? ", and raw mode has nothing to attach to" : "");
		/* raw tracepoints tell no state before that, and the classic ones have their numbers there */
		if (m->version < MACHINE_VERSION(5, 18))
			fi->bars = MODE_BIT(MODE_RAW);
		finding_mend(fi, "%s",
			m->pid_ns ? "docker run -v /sys/kernel/tracing:/sys/kernel/tracing:ro ..."
				  : "mount -t tracefs tracefs /sys/kernel/tracing");
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

void mountcheck_run(const struct machine *m, struct findings *f)
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
