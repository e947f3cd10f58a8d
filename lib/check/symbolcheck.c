/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/symbolcheck.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>

/*
 * The per-CPU symbols at the table's beginning can be zero in truth: up to
 * some thousand of 122,000. Beyond this many bytes zeros are hidden ones.
 */
#define LOOK_MAX (1U << 20)

enum visible { VISIBLE, ZEROED, EMPTY };

/* Is there a digit other than 0 in an address of the N bytes at P? *IN_ADDRESS carries on between calls. */
static bool nonzero_in(const char *p, size_t n, bool *in_address)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '\n')
			*in_address = true;
		else if (p[i] == ' ')
			*in_address = false;
		else if (*in_address && p[i] != '0')
			return true;
	}
	return false;
}

static int look(const struct root *r, enum visible *ret, struct err *e)
{
	_cleanup_close_ int fd = root_openat(r, "proc/kallsyms", O_RDONLY | O_NONBLOCK, e);
	char buf[16384];
	bool in_address = true;
	size_t seen = 0;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "'/proc/kallsyms' is no regular file");
	for (;;) {
		ssize_t n = read(fd, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, -errno, "cannot read '/proc/kallsyms'");
		if (n == 0 || seen > LOOK_MAX) {
			*ret = seen ? ZEROED : EMPTY;
			return 0;
		}
		if (nonzero_in(buf, (size_t)n, &in_address)) {
			*ret = VISIBLE;
			return 0;
		}
		seen += (size_t)n;
	}
}

/* The setting that shows them to whoever asks now. */
static const char *unhide(const struct machine *m)
{
	long long kptr = 0;

	machine_number(m, "proc/sys/kernel/kptr_restrict", &kptr);
	if (machine_allows(m, CAP_SYSLOG))
		return "sysctl -w kernel.kptr_restrict=1";
	return kptr ? "sysctl -w kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"
		    : "sysctl -w kernel.perf_event_paranoid=1";
}

/* Tools that see them in spite of it: their file grants CAP_SYSLOG. */
static unsigned int blind_tools(const struct machine *m)
{
	unsigned int blind =
		TOOL_BIT(TOOL_OFFCPU_RECORD) | TOOL_BIT(TOOL_KALLSYMS_RESOLVE) | TOOL_BIT(TOOL_STACKMAP_TEST);
	long long kptr = 0;

	machine_number(m, "proc/sys/kernel/kptr_restrict", &kptr);
	for (enum finding_tool tool = 0; tool < TOOL_COUNT; tool++)
		if (kptr < 2 && m->tools[tool].file_caps && machine_tool_allows(m, tool, CAP_SYSLOG))
			blind &= ~TOOL_BIT(tool);
	return blind;
}

void symbolcheck_run(const struct machine *m, struct findings *f)
{
	enum visible visible = EMPTY;
	struct err e = { 0 };
	struct finding *fi;
	char command[256];
	int rc = look(m->root, &visible, &e);

	if (!rc && visible == VISIBLE) {
		findings_add(
			f, GROUP_SYMBOLS, FINDING_OK, "symbols.kallsyms", "/proc/kallsyms shows addresses");
		return;
	}
	if (!rc && visible == ZEROED) {
		fi = findings_add(f, GROUP_SYMBOLS, FINDING_WARN, "symbols.kallsyms",
			"every address in /proc/kallsyms is zero: kernel frames stay without names");
		finding_mend(fi, "%s", unhide(m));
	} else if (rc == -ENOENT && !m->root->live) {
		findings_add(
			f, GROUP_SYMBOLS, FINDING_SKIP, "symbols.kallsyms", "no proc/kallsyms in the tree");
		return;
	} else {
		fi = findings_add(f, GROUP_SYMBOLS, FINDING_WARN, "symbols.kallsyms",
			"%s: kernel frames stay without names", rc ? e.msg : "'/proc/kallsyms' is empty");
		finding_mend(fi, "%s",
			rc == -EACCES ? "run as root" : machine_new_kernel(m, command, sizeof(command)));
	}
	fi->degrades = blind_tools(m);
}
