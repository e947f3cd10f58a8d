/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/settings.h"
#include "check/probes.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <string.h>

/* One sysctl; judge() adds the finding for its VALUE. */
struct setting {
	const char *name, *path, *absent; /* what it means if the file is missing */
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
	finding_remedy(fi, "sysctl -w kernel.kptr_restrict=1");
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
		finding_remedy(fi, "sysctl -w kernel.perf_event_paranoid=2, or run it as root");
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
	finding_remedy(fi, "sysctl -w kernel.perf_event_max_stack=127");
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
		"; no process may attach: --ptrace cannot work" };
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
	finding_remedy(fi, "sysctl -w net.core.bpf_jit_enable=1");
	(void)m;
}

/* If set, the kernel reads the clock twice for each run of a program. */
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
	finding_remedy(fi, "sysctl -w kernel.bpf_stats_enabled=0");
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
		findings_add(f, GROUP_SYSCTL, FINDING_SKIP, id, "%s is not a number: '%s'", s->name, line);
}

void sysctlcheck_run(const struct machine *m, struct findings *f)
{
	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		check(m, &settings[i], f);
}

#define RECORD TOOL_BIT(TOOL_OFFCPU_RECORD)
#define STACKMAP TOOL_BIT(TOOL_STACKMAP_TEST)
#define RESOLVE TOOL_BIT(TOOL_KALLSYMS_RESOLVE)

struct option {
	const char *name, *other; /* alternatives to it, separated by spaces; NULL = none */
	enum finding_status status; /* if it is not set; FINDING_OK = only a note */
	unsigned int degrades, forbids, bars;
	const char *without; /* what does not work without it */
};

static const struct option kernel_options[] = {
	{ "CONFIG_BPF_SYSCALL", NULL, FINDING_FAIL, 0, STACKMAP, MODES_BPF, "there is no bpf() system call" },
	{ "CONFIG_PERF_EVENTS", NULL, FINDING_FAIL, 0, STACKMAP, MODES_BPF,
		"there are no perf events, and no stacks" },
	{ "CONFIG_BPF_EVENTS", NULL, FINDING_FAIL, 0, STACKMAP, MODES_BPF,
		"BPF cannot attach to tracepoints" },
	{ "CONFIG_DEBUG_INFO_BTF", NULL, FINDING_FAIL, STACKMAP, 0, MODE_BIT(MODE_BTF),
		"there is no BTF to relocate programs by" },
	{ "CONFIG_KALLSYMS", NULL, FINDING_FAIL, RECORD | RESOLVE, 0, 0, "kernel frames have no names" },
	/* arm64 has only one unwinder, which uses frame pointers */
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

/* Find the first option of LIST that is set, and copy its name to OTHER. */
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
	finding_remedy(fi, "%s", machine_new_kernel(m, command, sizeof(command)));
}

static void check_absent(const struct machine *m, int code, const struct err *e, struct findings *f)
{
	struct finding *fi = findings_add(f, GROUP_CONFIG, FINDING_WARN, "configuration.source", "%s%s; %s",
		code == -ENOENT ? "none to read: " : "", e->msg,
		m->root->live ? "the live probes decide instead" : "what is built in stays unknown");

	if (code == -ENOENT)
		finding_remedy(fi, "%s",
			m->pid_ns ? "docker run -v /boot:/boot:ro ..., or on the host: modprobe configs"
				  : "modprobe configs");
	else if (code == -EACCES || code == -EPERM)
		finding_remedy(fi, "run bpfcheck as root");
	else if (machine_plain_release(m) &&
		 (strcmp(m->distro, "debian") == 0 || strcmp(m->distro, "ubuntu") == 0))
		finding_remedy(fi, "apt-get install --reinstall linux-image-%s", m->release);
	else
		finding_remedy(fi, "modprobe configs");
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
	for (size_t i = 0; i < ARRAY_LEN(kernel_options); i++)
		check_option(m, kc, &kernel_options[i], f);
	kconfig_free(kc);
}

/* Mode raw runs BPF programs without attaching them, which this version added. */
#define RAW_SINCE MACHINE_VERSION(5, 10)

static void check_release(const struct machine *m, struct findings *f)
{
	char command[256], arch[64];
	struct finding *fi;
	bool old;

	if (root_line(m->root, "proc/sys/kernel/arch", arch, sizeof(arch), NULL) != 0) /* since 6.1 */
		arch[0] = '\0';
	if (m->version >= MACHINE_VERSION(5, 18)) {
		findings_add(f, GROUP_KERNEL, FINDING_OK, "kernel.release", "Linux %s%s%s", m->release,
			arch[0] ? ", " : "", arch);
		return;
	}
	/* if there is BTF, it decides instead: it shows what is backported */
	old = m->version && m->version < RAW_SINCE && !root_exists(m->root, "sys/kernel/btf/vmlinux");
	fi = findings_add(f, GROUP_KERNEL, FINDING_WARN, "kernel.release", "Linux %s: %s", m->release,
		old ? "before 5.10 BPF lacks what the recorder needs"
		    : "some of what the recorder uses came with 5.18; BTF shows what is backported");
	if (old)
		fi->bars = MODES_BPF;
	finding_remedy(fi, "%s", machine_new_kernel(m, command, sizeof(command)));
}

static void check_pid_ns(const struct machine *m, struct findings *f)
{
	findings_add(f, GROUP_KERNEL, FINDING_OK, "kernel.pid_namespace", "%s",
		m->pid_ns ? "in a PID namespace: PIDs are those seen here" : "the first PID namespace");
}

/* A line of proc/self/timens_offsets: "boottime  100000  0". False if there is no such line. */
static bool offset_of(const char *text, const char *clock, long long *seconds, long long *ns)
{
	const char *at = strstr(text, clock);

	return at && sscanf(at + strlen(clock), "%lld %lld", seconds, ns) == 2;
}

/*
 * BPF's clocks have no offsets, so the recorder subtracts them from its own. Nothing is lost, but the times
 * in logs differ from those in captures.
 */
static void check_time_ns(const struct machine *m, struct findings *f)
{
	long long mono = 0, mono_ns = 0, boot = 0, boot_ns = 0;
	_cleanup_free_ char *text = NULL;

	if (root_read(m->root, "proc/self/timens_offsets", 4096, &text, NULL, NULL) != 0 ||
		!offset_of(text, "monotonic", &mono, &mono_ns) ||
		!offset_of(text, "boottime", &boot, &boot_ns))
		findings_add(f, GROUP_KERNEL, FINDING_SKIP, "kernel.time_namespace",
			"no offsets in /proc/self/timens_offsets: the kernel has no time namespaces");
	else if (!mono && !mono_ns && !boot && !boot_ns)
		findings_add(f, GROUP_KERNEL, FINDING_OK, "kernel.time_namespace", "clocks without offsets");
	else
		findings_add(f, GROUP_KERNEL, FINDING_OK, "kernel.time_namespace",
			"in a time namespace: CLOCK_MONOTONIC is %+lld s and CLOCK_BOOTTIME %+lld s off; "
			"captures "
			"count as the host does",
			mono, boot);
}

void kernelcheck_run(const struct machine *m, struct findings *f)
{
	check_release(m, f);
	check_pid_ns(m, f);
	check_time_ns(m, f);
}

struct version {
	unsigned int major, minor, patch;
};

struct bug {
	const char *id, *what, *concerns;
	struct version since; /* in mainline */
	/* stable releases that backported the bug, and those that fixed it; a zeroed entry ends a list */
	struct version taken[8], fixed[8];
};

/* No release is known to fix it: reported as OK, without a remedy. */
#define NO_FIX(b) (!(b)->fixed[0].major)

static const struct bug bugs[] = {
	{ "kernel.bug.stackid_overflow", "a stack deeper than its stack map is written beyond the map",
		"stackmap-test tries such maps; the recorder has none", { 5, 18, 0 },
		{ { 5, 10, 110 }, { 5, 15, 33 }, { 5, 16, 19 }, { 5, 17, 2 } },
		{ { 6, 12, 63 }, { 6, 17, 13 }, { 6, 18, 2 }, { 6, 19, 0 } } },
	{ "kernel.bug.task_stack", "bpf_get_task_stack reads the stack of a thread that ends",
		"this is how the recorder reads waits in progress", { 5, 9, 0 }, { { 0 } },
		{ { 5, 11, 14 }, { 5, 12, 0 } } },
	{ "kernel.bug.callchain_reuse",
		"a stack taken by an iterator that is preempted can be another thread's",
		"the stacks of waits in progress when a recording begins may be wrong on a preemptible "
		"kernel; those taken at a switch are not",
		{ 5, 9, 0 }, { { 0 } }, { { 0 } } },
};

/* Read the kernel's version into *V. Returns whether the patch level is known. */
static bool patch_known(const struct machine *m, struct version *v)
{
	char line[512];
	const char *at;

	if (sscanf(m->release, "%u.%u.%u", &v->major, &v->minor, &v->patch) < 2)
		return false;
	/* "Ubuntu 6.8.0-45.45-generic 6.8.12" */
	if (root_line(m->root, "proc/version_signature", line, sizeof(line), NULL) == 0) {
		at = strrchr(line, ' ');
		return at && sscanf(at + 1, "%u.%u.%u", &v->major, &v->minor, &v->patch) == 3;
	}
	/* "... #1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)" */
	if (root_line(m->root, "proc/version", line, sizeof(line), NULL) == 0 &&
		(at = strstr(line, " Debian ")) && isdigit((unsigned char)at[8]))
		return sscanf(at + 8, "%u.%u.%u", &v->major, &v->minor, &v->patch) == 3;
	return v->patch || !strchr(m->release, '-');
}

static bool before(const struct version *a, const struct version *b)
{
	return a->major != b->major   ? a->major < b->major
	       : a->minor != b->minor ? a->minor < b->minor
				      : a->patch < b->patch;
}

static const struct version *of_series(const struct version *list, size_t n, const struct version *v)
{
	for (size_t i = 0; i < n && list[i].major; i++)
		if (list[i].major == v->major && list[i].minor == v->minor)
			return &list[i];
	return NULL;
}

enum state { ABSENT, FIXED, PRESENT, UNKNOWN };

/* REBASED: some subsystems are newer than the kernel's version, as in Red Hat's kernels. */
static enum state judge(const struct bug *b, const struct version *v, bool patch, bool rebased)
{
	const struct version *taken = of_series(b->taken, ARRAY_LEN(b->taken), v);
	const struct version *fixed = of_series(b->fixed, ARRAY_LEN(b->fixed), v);
	const struct version *last = NULL;

	for (size_t i = 0; i < ARRAY_LEN(b->fixed) && b->fixed[i].major; i++)
		last = &b->fixed[i];
	if (NO_FIX(b))
		return before(v, &b->since) ? ABSENT : UNKNOWN;
	if (!before(v, last))
		return FIXED;
	if (rebased)
		return UNKNOWN;
	if (before(v, &b->since) && !taken)
		return ABSENT;
	if (!patch)
		return UNKNOWN;
	if (taken && before(v, taken))
		return ABSENT;
	/* a series that is not in the list may have got the fix after the list was made */
	return !fixed ? UNKNOWN : before(v, fixed) ? PRESENT : FIXED;
}

static void describe_fix(const struct bug *b, const struct version *v, char *buf, size_t cap)
{
	const struct version *fixed = of_series(b->fixed, ARRAY_LEN(b->fixed), v);
	size_t len = 0;

	if (fixed) {
		snprintf(buf, cap, "fixed in %u.%u.%u", fixed->major, fixed->minor, fixed->patch);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(b->fixed) && b->fixed[i].major && len < cap; i++)
		len += (size_t)snprintf(buf + len, cap - len, "%s%u.%u.%u", i ? ", " : "fixed in ",
			b->fixed[i].major, b->fixed[i].minor, b->fixed[i].patch);
	if (len < cap)
		snprintf(buf + len, cap - len, "; of %u.%u none is known to be", v->major, v->minor);
}

static void check_bug(
	const struct machine *m, const struct bug *b, const struct version *v, bool patch, struct findings *f)
{
	enum state state = judge(b, v, patch, strstr(m->release, ".el") != NULL);
	char fix[200], command[256];
	struct finding *fi;

	if (state == ABSENT || state == FIXED) {
		findings_add(f, GROUP_KERNEL, FINDING_OK, b->id, "%s: %s", b->what,
			state == FIXED ? "fixed in this kernel" : "not in this kernel");
		return;
	}
	if (NO_FIX(b)) {
		findings_add(f, GROUP_KERNEL, FINDING_OK, b->id,
			"%s: no release is known to have it fixed; %s", b->what, b->concerns);
		return;
	}
	describe_fix(b, v, fix, sizeof(fix));
	fi = findings_add(f, GROUP_KERNEL, FINDING_WARN, b->id, "%s: this kernel %s it (%s): %s", b->what,
		state == PRESENT ? "has" : "may have", fix, b->concerns);
	finding_remedy(fi, "%s", machine_new_kernel(m, command, sizeof(command)));
}

void bugcheck_run(const struct machine *m, struct findings *f)
{
	struct version v = { 0 };
	bool patch = patch_known(m, &v);

	if (!v.major) {
		findings_add(f, GROUP_KERNEL, FINDING_SKIP, "kernel.bug.stackid_overflow",
			"no version is understood in the release '%s': its known bugs cannot be determined",
			m->release);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(bugs); i++)
		check_bug(m, &bugs[i], &v, patch, f);
}

static void check_self(const struct machine *m, struct findings *f)
{
	const struct priv_status *s = &m->status;

	findings_add(f, GROUP_CAPS, FINDING_OK, "capabilities.process",
		"uid %" PRIu32 ", effective %010" PRIx64 ", permitted %010" PRIx64 ", bounding %010" PRIx64
		"%s",
		s->uid, s->effective, s->permitted, s->bounding,
		s->no_new_privs == 1 ? ", no_new_privs" : "");
}

static void check_user_ns(const struct machine *m, struct findings *f)
{
	struct finding *fi;

	if (!m->user_ns) {
		findings_add(
			f, GROUP_CAPS, FINDING_OK, "capabilities.user_namespace", "the first user namespace");
		return;
	}
	fi = findings_add(f, GROUP_CAPS, FINDING_FAIL, "capabilities.user_namespace",
		"in a user namespace: its capabilities, uid 0 included, do not reach BPF and perf events");
	fi->forbids = TOOL_BIT(TOOL_STACKMAP_TEST);
	fi->bars = MODES_BPF;
	finding_remedy(fi, "run it as root of the host, outside of the container or 'unshare -U'");
}

/*
 * If setcap cannot help, because NEED is outside the bounding set or no_new_privs disables file
 * capabilities, set the remedy that does. False if setcap works.
 */
static bool remedy_otherwise(const struct machine *m, uint64_t need, struct finding *fi)
{

	if ((m->status.bounding & need) != need) {
		finding_remedy(fi, "docker run --cap-add=BPF --cap-add=PERFMON --cap-add=SYS_PTRACE "
				   "--cap-add=SYSLOG ...");
		return true;
	}
	if (m->status.no_new_privs == 1) {
		finding_remedy(fi, "docker run --security-opt no-new-privileges=false ..., or run as root");
		return true;
	}
	return false;
}

/* TOOL needs CAP_BPF and CAP_PERFMON. */
static void check_tool(const struct machine *m, enum finding_tool tool, struct findings *f)
{
	bool bpf = machine_tool_allows(m, tool, CAP_BPF), perfmon = machine_tool_allows(m, tool, CAP_PERFMON);
	char id[64], command[700];
	struct finding *fi;

	snprintf(id, sizeof(id), "capabilities.%s", finding_tool_name(tool));
	if (bpf && perfmon) {
		findings_add(f, GROUP_CAPS, FINDING_OK, id, "%s has CAP_BPF and CAP_PERFMON%s",
			finding_tool_name(tool), m->tools[tool].file_caps ? ", granted to its file" : "");
		return;
	}
	if (m->user_ns)
		return; /* already reported, and no capability would help */
	fi = findings_add(f, GROUP_CAPS, FINDING_FAIL, id, "%s lacks %s%s%s", finding_tool_name(tool),
		bpf ? "" : "CAP_BPF", !bpf && !perfmon ? " and " : "", perfmon ? "" : "CAP_PERFMON");
	if (tool == TOOL_OFFCPU_RECORD)
		fi->bars = MODES_BPF;
	else if (bpf) /* it can create maps, but cannot take stacks */
		fi->degrades = TOOL_BIT(tool);
	else
		fi->forbids = TOOL_BIT(tool);
	if (!remedy_otherwise(m, UINT64_C(1) << CAP_BPF | UINT64_C(1) << CAP_PERFMON, fi))
		finding_remedy(fi, "%s", machine_grant(m, tool, command, sizeof(command)));
}

/* Uprobes need CAP_SYS_ADMIN; the ids of tracepoints are in a directory that belongs to root. */
static void check_probes(const struct machine *m, struct findings *f)
{
	const enum finding_tool tool = TOOL_STACKMAP_TEST;
	bool admin = machine_tool_allows(m, tool, CAP_SYS_ADMIN);
	bool tracefs = m->status.uid == 0 || (admin && machine_tool_allows(m, tool, CAP_DAC_READ_SEARCH));
	struct finding *fi;

	if (!machine_tool_allows(m, tool, CAP_BPF) || !machine_tool_allows(m, tool, CAP_PERFMON))
		return; /* already reported */
	if (admin && tracefs) {
		findings_add(f, GROUP_CAPS, FINDING_OK, "capabilities.probes",
			"stackmap-test may attach to uprobes and tracepoints");
		return;
	}
	fi = findings_add(f, GROUP_CAPS, FINDING_WARN, "capabilities.probes",
		"stackmap-test skips its cases of %s: they take CAP_SYS_ADMIN%s",
		admin     ? "tracepoints"
		: tracefs ? "uprobes"
			  : "uprobes and tracepoints",
		tracefs ? "" : " and CAP_DAC_READ_SEARCH");
	fi->degrades = TOOL_BIT(tool);
	finding_remedy(fi, "run stackmap-test as root; nothing else needs them");
}

static void check_ptrace(const struct machine *m, struct findings *f)
{
	struct finding *fi;

	if (m->tools[TOOL_OFFCPU_RECORD].file_caps && m->status.uid) {
		fi = findings_add(f, GROUP_CAPS, FINDING_WARN, "capabilities.ptrace",
			"offcpu-record has its capabilities from its file: it records the processes of its "
			"caller, and no others, and not in mode raw");
		fi->bars = MODE_BIT(MODE_RAW);
		finding_remedy(fi, "sudo offcpu-record ..., for all processes");
		return;
	}
	if (machine_tool_allows(m, TOOL_OFFCPU_RECORD, CAP_SYS_PTRACE)) {
		findings_add(f, GROUP_CAPS, FINDING_OK, "capabilities.ptrace",
			"offcpu-record has CAP_SYS_PTRACE: it reads the maps of every process, and holds a "
			"command "
			"at its exec");
		return;
	}
	if (!machine_tool_allows(m, TOOL_OFFCPU_RECORD, CAP_BPF))
		return; /* already reported by capabilities.offcpu-record, with its own remedy */
	fi = findings_add(f, GROUP_CAPS, FINDING_WARN, "capabilities.ptrace",
		"offcpu-record lacks CAP_SYS_PTRACE: of other users' processes it cannot open what they have "
		"mapped, so that their user stacks are walked by frame pointer and may have no names; and a "
		"command after -- is not held until its unwind tables are there");
	fi->degrades = TOOL_BIT(TOOL_OFFCPU_RECORD);
	/* granting it to the file has no effect: the recorder gives it up (system/owner.h) */
	if (!remedy_otherwise(m, UINT64_C(1) << CAP_SYS_PTRACE, fi))
		finding_remedy(fi, "sudo offcpu-record ...");
}

static void remedy_for_lockdown(const struct machine *m, struct finding *fi)
{
	_cleanup_free_ char *cmdline = NULL;

	if (root_read(m->root, "proc/cmdline", 65536, &cmdline, NULL, NULL) == 0 &&
		strstr(cmdline, "lockdown=confidentiality"))
		finding_remedy(fi,
			"sed -i s/lockdown=confidentiality/lockdown=integrity/ /etc/default/grub && "
			"update-grub && reboot");
	else
		finding_remedy(fi, "reboot without it (it cannot be lowered while the kernel runs): add "
				   "lockdown=integrity to the kernel command line");
}

static void no_securityfs(
	const struct machine *m, const char *id, int code, const struct err *e, struct findings *f)
{
	struct finding *fi;

	if (code == -ENOENT && root_exists(m->root, "sys/kernel/security/lsm")) {
		findings_add(f, GROUP_SECURITY, FINDING_OK, id, "the kernel is built without it");
		return;
	}
	fi = findings_add(f, GROUP_SECURITY, FINDING_SKIP, id, "%s",
		code == -ENOENT ? "securityfs is not mounted, so it cannot be read" : e->msg);
	finding_remedy(fi, "mount -t securityfs securityfs /sys/kernel/security");
}

static void check_lockdown(const struct machine *m, struct findings *f)
{
	char line[128], mode[32];
	struct finding *fi;
	const char *at;
	struct err e = { 0 };
	int rc = root_line(m->root, "sys/kernel/security/lockdown", line, sizeof(line), &e);

	if (rc) {
		no_securityfs(m, "security.lockdown", rc, &e, f);
		return;
	}
	at = strchr(line, '[');
	if (!at || sscanf(at, "[%31[a-z]]", mode) != 1) {
		findings_add(
			f, GROUP_SECURITY, FINDING_SKIP, "security.lockdown", "not understood: '%s'", line);
	} else if (strcmp(mode, "confidentiality") != 0) {
		findings_add(f, GROUP_SECURITY, FINDING_OK, "security.lockdown", "lockdown: %s", mode);
	} else {
		fi = findings_add(f, GROUP_SECURITY, FINDING_FAIL, "security.lockdown",
			"lockdown: confidentiality: BPF programs may not read kernel memory");
		fi->bars = MODES_BPF;
		/* its programs read no kernel memory, but lockdown closes tracefs */
		fi->degrades = TOOL_BIT(TOOL_STACKMAP_TEST);
		remedy_for_lockdown(m, fi);
	}
}

/* On the live machine the calls are tried (check/probes.h); for a recorded tree only the mode is known. */
static void check_seccomp(const struct machine *m, struct findings *f)
{
	struct finding *fi;

	if (m->status.seccomp <= 0) {
		findings_add(f, GROUP_SECURITY, FINDING_OK, "security.seccomp", "%s",
			m->status.seccomp == 0 ? "no seccomp filter" : "the kernel is built without seccomp");
		return;
	}
	if (m->root->live) {
		findings_add(f, GROUP_SECURITY, FINDING_OK, "security.seccomp",
			"a seccomp filter is in force: what it refuses was tried");
		return;
	}
	fi = findings_add(f, GROUP_SECURITY, FINDING_WARN, "security.seccomp",
		"a seccomp filter is in force: it may refuse bpf() and perf_event_open()");
	finding_remedy(fi, "docker run --security-opt seccomp=unconfined ...");
	fi->degrades = TOOLS_LIVE;
}

static void check_lsm(const struct machine *m, struct findings *f)
{
	char line[256];
	struct err e = { 0 };
	int rc = root_line(m->root, "sys/kernel/security/lsm", line, sizeof(line), &e);

	if (rc)
		no_securityfs(m, "security.modules", rc, &e, f);
	else
		findings_add(f, GROUP_SECURITY, FINDING_OK, "security.modules", "security modules: %s", line);
}

void priv_check_run(const struct machine *m, struct findings *f)
{
	if (m->status_known) {
		check_user_ns(m, f);
		check_tool(m, TOOL_OFFCPU_RECORD, f);
		check_tool(m, TOOL_STACKMAP_TEST, f);
		check_ptrace(m, f);
		check_probes(m, f);
		check_self(m, f);
	} else {
		findings_add(
			f, GROUP_CAPS, FINDING_SKIP, "capabilities.process", "no usable /proc/self/status");
	}
	check_lockdown(m, f);
	if (m->status_known)
		check_seccomp(m, f);
	check_lsm(m, f);
}

/* Enough for the recorder's maps and buffers: roughly 4 to 16 MiB of ring, and as much of tables. */
#define MEMORY_ENOUGH (64LL << 20)
#define DEPTH_MAX 64 /* nested cgroups to examine */

/* The soft limit in the line of proc/self/limits that begins with KEY, in bytes; -1 = unlimited. */
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
	finding_remedy(fi, "ulimit -l unlimited");
}

/* "cgroup.memory=nobpf" or "nokmem" on the kernel command line excludes BPF memory (mm/memcontrol.c). */
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

/* A cgroup hierarchy that limits memory: its mount point, and this process's cgroup in it. */
struct hierarchy {
	char dir[128]; /* below the root, no leading slash: "sys/fs/cgroup" */
	char group[384]; /* "/" or "/user.slice/..." */
	const char *limit, *usage; /* file names */
};

/* Whether the LEN bytes at LIST ("cpu,memory") contain NAME. */
static bool in_list(const char *list, size_t len, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = list; p < list + len; p += strcspn(p, ",:") + 1)
		if (strncmp(p, name, n) == 0 && (p + n == list + len || p[n] == ','))
			return true;
	return false;
}

/*
 * The cgroup's path from proc/self/cgroup: from the line "0::/path" if V1 is NULL, else from the line whose
 * controllers include V1.
 */
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

/* The directory of the last mount of TYPE with OPTION (NULL = any) in the text of proc/self/mounts. */
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

static void read_limit(
	const struct machine *m, const struct hierarchy *h, const char *group, struct tightest *t)
{
	char path[600], usage[600];
	long long limit, used = 0;

	snprintf(path, sizeof(path), "%s%s/%s", h->dir, strcmp(group, "/") ? group : "", h->limit);
	/* no limit: v2 shows "max", which is not a number, and v1 LONG_MAX rounded to pages */
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

/* This cgroup and all its ancestors that are visible here. */
static void read_limits(const struct machine *m, const struct hierarchy *h, struct tightest *t)
{
	char group[sizeof(h->group)];

	snprintf(group, sizeof(group), "%s", h->group);
	for (int i = 0; i < DEPTH_MAX && group[0]; i++) {
		read_limit(m, h, group, t);
		if (strrchr(group, '/'))
			*strrchr(group, '/') = '\0';
	}
	read_limit(m, h, "/", t);
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
		read_limits(m, &h, &t);
	h.limit = "memory.limit_in_bytes";
	h.usage = "memory.usage_in_bytes";
	if (mounted(mounts, "cgroup", "memory", h.dir, sizeof(h.dir)) &&
		own_group(groups, "memory", h.group, sizeof(h.group)))
		read_limits(m, &h, &t);
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
		finding_remedy(fi, "docker run --memory=1g ... (or 'docker update --memory=1g' on the host)");
	else if (strpbrk(t.path, "'\n"))
		finding_remedy(fi, "raise the limit of this cgroup: its name cannot stand in a command");
	else
		finding_remedy(fi, "echo %s > '/%s'", strstr(t.path, "memory.max") ? "max" : "-1", t.path);
}

void memcheck_run(const struct machine *m, struct findings *f)
{
	check_accounting(m, f);
	check_cgroup(m, f);
}

struct mount {
	char dir[128], type[32], options[512];
};

/* The next mount in *TEXT, in the format of /proc/PID/mounts (proc(5)); false at the end. */
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

/* The value of the mount option hidepid=; "" if it is off. */
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

static void check_subset(struct findings *f)
{
	struct finding *fi = findings_add(f, GROUP_MOUNTS, FINDING_WARN, "mounts.proc_subset",
		"procfs with subset=pid has no /proc/kallsyms and no /proc/sys: kernel frames stay without "
		"names");

	fi->degrades = RECORD | TOOL_BIT(TOOL_KALLSYMS_RESOLVE) | TOOL_BIT(TOOL_STACKMAP_TEST);
	finding_remedy(fi, "mount -t proc proc /proc");
}

static void check_proc(const struct machine *m, const char *text, struct findings *f)
{
	struct mount proc;
	struct finding *fi;
	char hidden[32];

	if (!find_mount(text, "proc", "/proc", &proc)) {
		fi = findings_add(f, GROUP_MOUNTS, FINDING_WARN, "mounts.proc", "no procfs at /proc");
		fi->degrades = RECORD;
		finding_remedy(fi, "mount -t proc proc /proc");
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
	finding_remedy(fi, "mount -o remount,hidepid=0 /proc");
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
		/* before 5.18 raw tracepoints pass no thread state; the ids of classic ones are in tracefs */
		if (m->version < MACHINE_VERSION(5, 18))
			fi->bars = MODE_BIT(MODE_RAW);
		finding_remedy(fi, "%s",
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
