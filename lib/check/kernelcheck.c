/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernelcheck.h"
#include "kconfig.h"

#include <errno.h>
#include <string.h>

#define RECORD TOOL_BIT(TOOL_OFFCPU_RECORD)
#define STACKMAP TOOL_BIT(TOOL_STACKMAP_TEST)
#define RESOLVE TOOL_BIT(TOOL_KALLSYMS_RESOLVE)

struct option {
	const char *name, *other; /* OTHER serves as well; NULL = none does */
	enum finding_status status; /* of its absence; FINDING_OK = worth a note only */
	unsigned int degrades, forbids;
	const char *without; /* what is lost */
};

static const struct option options[] = {
	{ "CONFIG_BPF_SYSCALL", NULL, FINDING_FAIL, 0, TOOLS_LIVE, "there is no bpf() system call" },
	{ "CONFIG_PERF_EVENTS", NULL, FINDING_FAIL, 0, TOOLS_LIVE,
		"there are no perf events, and no stacks" },
	{ "CONFIG_BPF_EVENTS", NULL, FINDING_FAIL, 0, TOOLS_LIVE, "BPF cannot attach to tracepoints" },
	{ "CONFIG_DEBUG_INFO_BTF", NULL, FINDING_FAIL, STACKMAP, RECORD,
		"there is no BTF to relocate programs by" },
	{ "CONFIG_KALLSYMS", NULL, FINDING_FAIL, RECORD | RESOLVE, 0, "kernel frames have no names" },
	{ "CONFIG_UNWINDER_ORC", "CONFIG_UNWINDER_FRAME_POINTER", FINDING_WARN, RECORD, 0,
		"kernel stacks are guesses" },
	{ "CONFIG_BPF_JIT", NULL, FINDING_WARN, 0, 0,
		"BPF is interpreted: each switch costs several times more" },
	{ "CONFIG_KPROBES", NULL, FINDING_OK, 0, 0,
		"stackmap-test skips its kprobe case; nothing else needs them" },
	{ "CONFIG_UPROBE_EVENTS", NULL, FINDING_OK, 0, 0, "stackmap-test skips its uprobe case" },
	{ "CONFIG_FTRACE_SYSCALLS", NULL, FINDING_OK, 0, 0, "stackmap-test skips its raw_syscalls case" },
};

static void check_release(const struct machine *m, struct findings *f)
{
	char command[256], arch[64];
	struct finding *fi;

	if (root_line(m->root, "proc/sys/kernel/arch", arch, sizeof(arch), NULL) != 0) /* since 6.1 */
		arch[0] = '\0';
	if (m->version >= MACHINE_VERSION(5, 18)) {
		findings_add(f, GROUP_KERNEL, FINDING_OK, "kernel.release", "Linux %s%s%s", m->release,
			arch[0] ? ", " : "", arch);
		return;
	}
	fi = findings_add(f, GROUP_KERNEL, FINDING_WARN, "kernel.release",
		"Linux %s: the recorder is made for 5.18 and later; BTF tells what is backported",
		m->release);
	finding_mend(fi, "%s", machine_new_kernel(m, command, sizeof(command)));
}

static void check_pid_ns(const struct machine *m, struct findings *f)
{
	findings_add(f, GROUP_KERNEL, FINDING_OK, "kernel.pid_namespace", "%s",
		m->pid_ns ? "in a PID namespace: PIDs are those seen here" : "the first PID namespace");
}

static void check_option(
	const struct machine *m, const struct kconfig *kc, const struct option *o, struct findings *f)
{
	char id[64], value[64], command[256];
	struct finding *fi;

	snprintf(id, sizeof(id), "configuration.%s", o->name);
	if (kconfig_find(kc, o->name, value, sizeof(value))) {
		findings_add(f, GROUP_CONFIG, FINDING_OK, id, "%s=%s", o->name, value);
		return;
	}
	if (o->other && kconfig_find(kc, o->other, value, sizeof(value))) {
		findings_add(f, GROUP_CONFIG, FINDING_OK, id, "%s=%s", o->other, value);
		return;
	}
	fi = findings_add(f, GROUP_CONFIG, o->status, id, "%s is not set: %s", o->name, o->without);
	if (o->status == FINDING_OK)
		return;
	fi->degrades = o->degrades;
	fi->forbids = o->forbids;
	finding_mend(fi, "%s", machine_new_kernel(m, command, sizeof(command)));
}

static void check_absent(const struct machine *m, int code, const struct err *e, struct findings *f)
{
	struct finding *fi = findings_add(f, GROUP_CONFIG, FINDING_WARN, "configuration.source", "%s%s; %s",
		code == -ENOENT ? "none to read: " : "", e->msg,
		m->root->live ? "the live probes tell instead" : "what is built in stays unknown");

	if (code == -ENOENT)
		finding_mend(fi, "modprobe configs");
	else if (code == -EACCES || code == -EPERM)
		finding_mend(fi, "run bpfcheck as root");
	else if (strcmp(m->distro, "debian") == 0 || strcmp(m->distro, "ubuntu") == 0)
		finding_mend(fi, "apt-get install --reinstall linux-image-%s", m->release);
	else
		finding_mend(fi, "modprobe configs");
}

void kernelcheck_run(const struct machine *m, struct findings *f)
{
	struct kconfig *kc = NULL;
	struct err e = { 0 };
	int rc;

	check_release(m, f);
	check_pid_ns(m, f);
	rc = kconfig_load(m->root, m->release, &kc, &e);
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
