/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/configcheck.h"
#include "check/kconfig.h"

#include <errno.h>
#include <string.h>

#define RECORD TOOL_BIT(TOOL_OFFCPU_RECORD)
#define STACKMAP TOOL_BIT(TOOL_STACKMAP_TEST)
#define RESOLVE TOOL_BIT(TOOL_KALLSYMS_RESOLVE)

struct option {
	const char *name, *other; /* each of OTHER, by spaces, serves as well; NULL = none does */
	enum finding_status status; /* of its absence; FINDING_OK = worth a note only */
	unsigned int degrades, forbids, bars;
	const char *without; /* what is lost */
};

static const struct option options[] = {
	{ "CONFIG_BPF_SYSCALL", NULL, FINDING_FAIL, 0, STACKMAP, MODES_BPF, "there is no bpf() system call" },
	{ "CONFIG_PERF_EVENTS", NULL, FINDING_FAIL, 0, STACKMAP, MODES_BPF,
		"there are no perf events, and no stacks" },
	{ "CONFIG_BPF_EVENTS", NULL, FINDING_FAIL, 0, STACKMAP, MODES_BPF,
		"BPF cannot attach to tracepoints" },
	{ "CONFIG_DEBUG_INFO_BTF", NULL, FINDING_FAIL, STACKMAP, 0, MODE_BIT(MODE_BTF),
		"there is no BTF to relocate programs by" },
	{ "CONFIG_KALLSYMS", NULL, FINDING_FAIL, RECORD | RESOLVE, 0, 0, "kernel frames have no names" },
	/* arm64 has no choice: its unwinder goes by frame pointers */
	{ "CONFIG_UNWINDER_ORC", "CONFIG_UNWINDER_FRAME_POINTER CONFIG_ARM64", FINDING_WARN, RECORD, 0, 0,
		"kernel stacks are guesses" },
	{ "CONFIG_BPF_JIT", NULL, FINDING_WARN, 0, 0, 0,
		"BPF is interpreted: each switch costs several times more" },
	{ "CONFIG_KPROBES", NULL, FINDING_OK, 0, 0, 0,
		"stackmap-test skips its kprobe case; nothing else needs them" },
	{ "CONFIG_UPROBE_EVENTS", NULL, FINDING_OK, 0, 0, 0, "stackmap-test skips its uprobe case" },
	{ "CONFIG_FTRACE_SYSCALLS", NULL, FINDING_OK, 0, 0, 0, "stackmap-test skips its raw_syscalls case" },
	{ "CONFIG_SCHED_INFO", NULL, FINDING_OK, 0, 0, 0,
		"/proc/PID/schedstat is missing, so that procfs mode cannot check its estimates" },
	{ "CONFIG_STACKTRACE", NULL, FINDING_OK, 0, 0, 0,
		"/proc/PID/stack is missing: no kernel stacks in procfs mode" },
	{ "CONFIG_CGROUPS", NULL, FINDING_OK, 0, 0, 0, "there are no cgroups to select processes by" },
	{ "CONFIG_SECCOMP_FILTER", NULL, FINDING_WARN, 0, 0, 0,
		"what parses files of traced processes is not confined to a few system calls" },
	{ "CONFIG_SECURITY_LANDLOCK", NULL, FINDING_OK, 0, 0, 0,
		"what parses files of traced processes is kept from opening others by seccomp alone" },
};

/* The first of the options LIST that is set: its name in OTHER, 64 bytes. */
static bool find_other(const struct kconfig *kc, const char *list, char other[64], char *value, size_t cap)
{
	for (const char *p = list; p && *p; p += strspn(p, " ")) {
		size_t len = strcspn(p, " ");

		snprintf(other, 64, "%.*s", (int)len, p);
		if (kconfig_find(kc, other, value, cap))
			return true;
		p += len;
	}
	return false;
}

static void check_option(
	const struct machine *m, const struct kconfig *kc, const struct option *o, struct findings *f)
{
	char id[64], value[64], command[256], other[64];
	struct finding *fi;

	snprintf(id, sizeof(id), "configuration.%s", o->name);
	if (kconfig_find(kc, o->name, value, sizeof(value))) {
		findings_add(f, GROUP_CONFIG, FINDING_OK, id, "%s=%s", o->name, value);
		return;
	}
	if (find_other(kc, o->other, other, value, sizeof(value))) {
		findings_add(f, GROUP_CONFIG, FINDING_OK, id, "%s=%s", other, value);
		return;
	}
	fi = findings_add(f, GROUP_CONFIG, o->status, id, "%s is not set: %s", o->name, o->without);
	if (o->status == FINDING_OK)
		return;
	fi->degrades = o->degrades;
	fi->forbids = o->forbids;
	fi->bars = o->bars;
	finding_mend(fi, "%s", machine_new_kernel(m, command, sizeof(command)));
}

static void check_absent(const struct machine *m, int code, const struct err *e, struct findings *f)
{
	struct finding *fi = findings_add(f, GROUP_CONFIG, FINDING_WARN, "configuration.source", "%s%s; %s",
		code == -ENOENT ? "none to read: " : "", e->msg,
		m->root->live ? "the live probes tell instead" : "what is built in stays unknown");

	if (code == -ENOENT)
		finding_mend(fi, "%s",
			m->pid_ns ? "docker run -v /boot:/boot:ro ..., or on the host: modprobe configs"
				  : "modprobe configs");
	else if (code == -EACCES || code == -EPERM)
		finding_mend(fi, "run bpfcheck as root");
	else if (machine_plain_release(m) &&
		 (strcmp(m->distro, "debian") == 0 || strcmp(m->distro, "ubuntu") == 0))
		finding_mend(fi, "apt-get install --reinstall linux-image-%s", m->release);
	else
		finding_mend(fi, "modprobe configs");
}

void configcheck_run(const struct machine *m, struct findings *f)
{
	struct kconfig *kc = NULL;
	struct err e = { 0 };
	int rc = kconfig_load(m->root, m->release, &kc, &e);

	if (rc) {
		check_absent(m, rc, &e, f);
		return;
	}
	findings_add(f, GROUP_CONFIG, FINDING_OK, "configuration.source", "%s%s%s%s", kconfig_path(kc),
		kconfig_complaint(kc)[0] ? " (" : "", kconfig_complaint(kc),
		kconfig_complaint(kc)[0] ? ")" : "");
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		check_option(m, kc, &options[i], f);
	kconfig_free(kc);
}
