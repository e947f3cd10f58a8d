/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/sysctlcheck.h"
#include "check/callprobe.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>

/* Judge VALUE of one setting. */
struct setting {
	const char *name, *path, *absent; /* what its absence means */
	void (*judge)(const struct machine *m, struct findings *f, const char *id, long long value);
};

static void judge_kptr(const struct machine *m, struct findings *f, const char *id, long long v)
{
	struct finding *fi;

	if (v < 2) {
		findings_add(f, GROUP_SYSCTL, FINDING_OK, id, "kernel.kptr_restrict=%lld", v);
		return;
	}
	fi = findings_add(f, GROUP_SYSCTL, FINDING_WARN, id,
		"kernel.kptr_restrict=%lld hides kernel addresses from everyone, root too", v);
	fi->degrades = TOOL_BIT(TOOL_OFFCPU_RECORD);
	finding_mend(fi, "sysctl -w kernel.kptr_restrict=1");
	(void)m;
}

static void judge_paranoid(const struct machine *m, struct findings *f, const char *id, long long v)
{
	bool admin = machine_tool_allows(m, TOOL_OFFCPU_RECORD, CAP_SYS_ADMIN);
	bool perfmon = machine_tool_allows(m, TOOL_OFFCPU_RECORD, CAP_PERFMON);
	struct finding *fi;

	if (v > 2 && perfmon && !admin && (!m->root->live || callprobe_own_event() == EACCES)) {
		fi = findings_add(f, GROUP_SYSCTL, FINDING_WARN, id,
			"kernel.perf_event_paranoid=%lld takes CAP_SYS_ADMIN for perf events, CAP_PERFMON "
			"does not do: offcpu-record follows processes by /proc alone, which misses what one "
			"maps shortly before its end, and renames",
			v);
		fi->degrades = TOOLS_LIVE;
		finding_mend(fi, "sysctl -w kernel.perf_event_paranoid=2, or run it as root");
		return;
	}
	findings_add(f, GROUP_SYSCTL, FINDING_OK, id, "kernel.perf_event_paranoid=%lld%s", v,
		v <= 0           ? ": perf events for everyone"
		: v > 2 && admin ? ": no matter with CAP_SYS_ADMIN"
		: perfmon        ? ": no matter with CAP_PERFMON"
		: v > 2 ? ": the whole system needs CAP_PERFMON, or CAP_SYS_ADMIN in Debian's and Ubuntu's "
			  "kernels"
			: ": the whole system needs CAP_PERFMON");
}

static void judge_max_stack(const struct machine *m, struct findings *f, const char *id, long long v)
{
	struct finding *fi;

	if (v >= 127) {
		findings_add(f, GROUP_SYSCTL, FINDING_OK, id, "kernel.perf_event_max_stack=%lld", v);
		return;
	}
	fi = findings_add(
		f, GROUP_SYSCTL, FINDING_WARN, id, "kernel.perf_event_max_stack=%lld cuts stacks there", v);
	fi->degrades = TOOLS_LIVE;
	finding_mend(fi, "sysctl -w kernel.perf_event_max_stack=127");
	(void)m;
}

static void judge_unprivileged(const struct machine *m, struct findings *f, const char *id, long long v)
{
	findings_add(f, GROUP_SYSCTL, FINDING_OK, id, "kernel.unprivileged_bpf_disabled=%lld%s", v,
		machine_allows(m, CAP_BPF) ? ": no matter with CAP_BPF"
					   : ": the recorder needs CAP_BPF in any case");
}

static void judge_yama(const struct machine *m, struct findings *f, const char *id, long long v)
{
	static const char *const means[] = { "",
		"; procfs mode reads system calls of its own children alone, without CAP_SYS_PTRACE",
		"; procfs mode reads system calls with CAP_SYS_PTRACE alone",
		"; nobody may attach: --ptrace cannot work" };
	bool may = machine_tool_allows(m, TOOL_OFFCPU_RECORD, CAP_SYS_PTRACE);

	findings_add(f, GROUP_SYSCTL, FINDING_OK, id,
		"kernel.yama.ptrace_scope=%lld: reading maps does not attach, so it is free%s", v,
		v < 0 || v > 3 || (may && v < 3) ? "" : means[v]);
}

static void judge_jit(const struct machine *m, struct findings *f, const char *id, long long v)
{
	struct finding *fi;

	if (v == 1) {
		findings_add(f, GROUP_SYSCTL, FINDING_OK, id, "net.core.bpf_jit_enable=1");
		return;
	}
	fi = findings_add(f, GROUP_SYSCTL, FINDING_WARN, id, "net.core.bpf_jit_enable=%lld: %s", v,
		v == 0 ? "BPF is interpreted, each switch costs several times more"
		       : "every program that is loaded is dumped to the kernel's log");
	finding_mend(fi, "sysctl -w net.core.bpf_jit_enable=1");
	(void)m;
}

/* Each run of a program is timed then, by two readings of the clock. */
static void judge_stats(const struct machine *m, struct findings *f, const char *id, long long v)
{
	struct finding *fi;

	if (v == 0) {
		findings_add(f, GROUP_SYSCTL, FINDING_OK, id, "kernel.bpf_stats_enabled=0");
		return;
	}
	fi = findings_add(f, GROUP_SYSCTL, FINDING_WARN, id,
		"kernel.bpf_stats_enabled=%lld: every run of a BPF program is timed, so each switch costs "
		"more",
		v);
	finding_mend(fi, "sysctl -w kernel.bpf_stats_enabled=0");
	(void)m;
}

static void judge_harden(const struct machine *m, struct findings *f, const char *id, long long v)
{
	findings_add(f, GROUP_SYSCTL, FINDING_OK, id, "net.core.bpf_jit_harden=%lld%s", v,
		v ? ": BPF programs have no names in kernel stacks" : "");
	(void)m;
}

static const struct setting settings[] = {
	{ "kernel.kptr_restrict", "proc/sys/kernel/kptr_restrict", "", judge_kptr },
	{ "kernel.perf_event_paranoid", "proc/sys/kernel/perf_event_paranoid",
		"the kernel has no perf events", judge_paranoid },
	{ "kernel.perf_event_max_stack", "proc/sys/kernel/perf_event_max_stack",
		"the kernel takes no perf stacks", judge_max_stack },
	{ "kernel.unprivileged_bpf_disabled", "proc/sys/kernel/unprivileged_bpf_disabled",
		"the kernel has no bpf() system call", judge_unprivileged },
	{ "kernel.yama.ptrace_scope", "proc/sys/kernel/yama/ptrace_scope", "the kernel has no Yama",
		judge_yama },
	{ "kernel.bpf_stats_enabled", "proc/sys/kernel/bpf_stats_enabled",
		"the kernel has no BPF, or none that counts (Linux 5.1)", judge_stats },
	{ "net.core.bpf_jit_enable", "proc/sys/net/core/bpf_jit_enable", "not in this network namespace",
		judge_jit },
	{ "net.core.bpf_jit_harden", "proc/sys/net/core/bpf_jit_harden", "not in this network namespace",
		judge_harden },
};

static void check(const struct machine *m, const struct setting *s, struct findings *f)
{
	char id[64], line[64];
	struct err e = { 0 };
	long long value;
	int rc;

	snprintf(id, sizeof(id), "sysctls.%s", s->name);
	if (machine_number(m, s->path, &value)) {
		s->judge(m, f, id, value);
		return;
	}
	rc = root_line(m->root, s->path, line, sizeof(line), &e);
	if (rc == -ENOENT)
		findings_add(f, GROUP_SYSCTL, FINDING_SKIP, id, "no %s%s%s", s->name,
			s->absent[0] ? ": " : "", s->absent);
	else if (rc)
		findings_add(f, GROUP_SYSCTL, FINDING_SKIP, id, "%s", e.msg);
	else
		findings_add(f, GROUP_SYSCTL, FINDING_SKIP, id, "%s is no number: '%s'", s->name, line);
}

void sysctlcheck_run(const struct machine *m, struct findings *f)
{
	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		check(m, &settings[i], f);
}
