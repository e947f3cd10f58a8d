/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/capcheck.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <string.h>

static void check_self(const struct machine *m, struct findings *f)
{
	const struct caps_status *s = &m->status;

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
	finding_mend(fi, "run it as root of the host, outside of the container or 'unshare -U'");
}

/* NEED is outside of the bounding set, or file capabilities have no effect: what does instead; false where
 * setcap works. */
static bool mend_otherwise(const struct machine *m, uint64_t need, struct finding *fi)
{

	if ((m->status.bounding & need) != need) {
		finding_mend(fi, "docker run --cap-add=BPF --cap-add=PERFMON --cap-add=SYS_PTRACE "
				 "--cap-add=SYSLOG ...");
		return true;
	}
	if (m->status.no_new_privs == 1) {
		finding_mend(fi, "docker run --security-opt no-new-privileges=false ..., or run as root");
		return true;
	}
	return false;
}

/* What TOOL cannot do without: CAP_BPF and CAP_PERFMON. */
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
		return; /* told already, and no capability would help */
	fi = findings_add(f, GROUP_CAPS, FINDING_FAIL, id, "%s lacks %s%s%s", finding_tool_name(tool),
		bpf ? "" : "CAP_BPF", !bpf && !perfmon ? " and " : "", perfmon ? "" : "CAP_PERFMON");
	if (tool == TOOL_OFFCPU_RECORD)
		fi->bars = MODES_BPF;
	else if (bpf) /* it makes maps, and takes no stack */
		fi->degrades = TOOL_BIT(tool);
	else
		fi->forbids = TOOL_BIT(tool);
	if (!mend_otherwise(m, UINT64_C(1) << CAP_BPF | UINT64_C(1) << CAP_PERFMON, fi))
		finding_mend(fi, "%s", machine_grant(m, tool, command, sizeof(command)));
}

/* Uprobes are for CAP_SYS_ADMIN alone; the ids of tracepoints are in a folder that is root's. */
static void check_probes(const struct machine *m, struct findings *f)
{
	const enum finding_tool tool = TOOL_STACKMAP_TEST;
	bool admin = machine_tool_allows(m, tool, CAP_SYS_ADMIN);
	bool tracefs = m->status.uid == 0 || (admin && machine_tool_allows(m, tool, CAP_DAC_READ_SEARCH));
	struct finding *fi;

	if (!machine_tool_allows(m, tool, CAP_BPF) || !machine_tool_allows(m, tool, CAP_PERFMON))
		return; /* told already */
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
	finding_mend(fi, "run stackmap-test as root; nothing else needs them");
}

static void check_ptrace(const struct machine *m, struct findings *f)
{
	struct finding *fi;

	if (m->tools[TOOL_OFFCPU_RECORD].file_caps && m->status.uid) {
		fi = findings_add(f, GROUP_CAPS, FINDING_WARN, "capabilities.ptrace",
			"offcpu-record has its capabilities from its file: it records the processes of its "
			"caller, and no others, and not in mode raw");
		fi->bars = MODE_BIT(MODE_RAW);
		finding_mend(fi, "sudo offcpu-record ..., for all processes");
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
		return; /* what else it lacks is told by capabilities.offcpu-record, with a command for both
			 */
	fi = findings_add(f, GROUP_CAPS, FINDING_WARN, "capabilities.ptrace",
		"offcpu-record lacks CAP_SYS_PTRACE: of other users' processes it cannot open what they have "
		"mapped, so that their user stacks are walked by frame pointer and may have no names; and a "
		"command after -- is not held until its unwind tables are there");
	fi->degrades = TOOL_BIT(TOOL_OFFCPU_RECORD);
	/* given to the file it would be of no use: owner.h */
	if (!mend_otherwise(m, UINT64_C(1) << CAP_SYS_PTRACE, fi))
		finding_mend(fi, "sudo offcpu-record ...");
}

static void mend_lockdown(const struct machine *m, struct finding *fi)
{
	_cleanup_free_ char *cmdline = NULL;

	if (root_read(m->root, "proc/cmdline", 65536, &cmdline, NULL, NULL) == 0 &&
		strstr(cmdline, "lockdown=confidentiality"))
		finding_mend(fi, "sed -i s/lockdown=confidentiality/lockdown=integrity/ /etc/default/grub && "
				 "update-grub && reboot");
	else
		finding_mend(fi, "reboot without it (it cannot be lowered while the kernel runs): add "
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
	finding_mend(fi, "mount -t securityfs securityfs /sys/kernel/security");
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
		fi->degrades =
			TOOL_BIT(TOOL_STACKMAP_TEST); /* its programs read none, but tracefs is closed */
		mend_lockdown(m, fi);
	}
}

/* On the machine itself the calls are tried (callprobe.h); of a recorded one only this is known. */
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
	finding_mend(fi, "docker run --security-opt seccomp=unconfined ...");
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

void capcheck_run(const struct machine *m, struct findings *f)
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
