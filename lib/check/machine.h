/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * machine - the facts that several checks judge by, read once.
 *
 * Sources under the prefix: proc/sys/kernel/osrelease, proc/self/status,
 * proc/self/ns/{user,pid}, etc/os-release; and, for the live machine, the
 * file capabilities of the tools beside this very binary.
 */
#ifndef STACKTOOLS_MACHINE_H
#define STACKTOOLS_MACHINE_H

#include "base/fs.h"
#include "check/finding.h"
#include "system/privileges.h"

#define MACHINE_VERSION(major, minor) ((uint32_t)(major) << 16 | (uint32_t)(minor))

/* What capabilities one tool has once it is started by whoever runs this. */
struct machine_tool {
	char path[512]; /* where it is; only a name where that is not known */
	uint64_t caps; /* effective after exec */
	bool file_caps; /* the file grants some, and they take effect */
};

struct machine {
	const struct root *root;
	char release[128]; /* "6.1.0-18-amd64" */
	uint32_t version; /* MACHINE_VERSION(6, 1); 0 = cannot be told */
	bool status_known;
	struct caps_status status;
	bool user_ns, pid_ns; /* not the first of their kind */
	char distro[32], distro_version[32], codename[32]; /* of etc/os-release; "" = not known */
	struct machine_tool tools[TOOL_COUNT];
};

/*
 * Read them. ROOT has to live as long as *RET. Fails only where there is no
 * kernel release: then ROOT is no machine at all.
 */
int machine_read(const struct root *root, struct machine *ret, struct err *e);

/* This process may use CAP (or CAP_SYS_ADMIN in its stead); false in a user namespace. */
bool machine_allows(const struct machine *m, int cap);

/* The same for TOOL as it is installed: file capabilities count. */
bool machine_tool_allows(const struct machine *m, enum finding_tool tool, int cap);

/* The command that gives TOOL all the capabilities it can use; BUF is returned. */
const char *machine_grant(const struct machine *m, enum finding_tool tool, char *buf, size_t cap);

/*
 * The command that brings a kernel that has what is needed; BUF is returned. In
 * a PID namespace only words: the kernel is that of another system, the host.
 */
const char *machine_new_kernel(const struct machine *m, char *buf, size_t cap);

/*
 * The release, if it can stand in a command: of letters, digits and ".-_+~" alone,
 * as a kernel's is. Else NULL: a recorded tree can hold anything there.
 */
const char *machine_plain_release(const struct machine *m);

/* A number in the first line of PATH under the root. False where there is none. */
bool machine_number(const struct machine *m, const char *path, long long *ret);

#endif
