/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/kernelcheck.h"

#include <string.h>

/* What mode raw cannot be without: programs that are run and not attached. */
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
	/* where there is BTF it decides, for it knows what is backported */
	old = m->version && m->version < RAW_SINCE && !root_exists(m->root, "sys/kernel/btf/vmlinux");
	fi = findings_add(f, GROUP_KERNEL, FINDING_WARN, "kernel.release", "Linux %s: %s", m->release,
		old ? "before 5.10 BPF lacks what the recorder needs"
		    : "some of what the recorder uses came with 5.18; BTF tells what is backported");
	if (old)
		fi->bars = MODES_BPF;
	finding_mend(fi, "%s", machine_new_kernel(m, command, sizeof(command)));
}

static void check_pid_ns(const struct machine *m, struct findings *f)
{
	findings_add(f, GROUP_KERNEL, FINDING_OK, "kernel.pid_namespace", "%s",
		m->pid_ns ? "in a PID namespace: PIDs are those seen here" : "the first PID namespace");
}

/* A line of proc/self/timens_offsets: "boottime  100000  0". False where there is none. */
static bool offset_of(const char *text, const char *clock, long long *seconds, long long *ns)
{
	const char *at = strstr(text, clock);

	return at && sscanf(at + strlen(clock), "%lld %lld", seconds, ns) == 2;
}

/* The recorder takes them off, as BPF counts without: nothing is lost, but the times of logs differ. */
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
