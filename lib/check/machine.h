/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * machine - the facts that several checks use, read once.
 *
 * Sources under the prefix: proc/sys/kernel/osrelease, proc/self/status,
 * proc/self/ns/{user,pid}, etc/os-release; on the live machine also the file
 * capabilities of the tools in the directory of this binary.
 */
#ifndef STACKTOOLS_CHECK_MACHINE_H
#define STACKTOOLS_CHECK_MACHINE_H

#include "base/fs.h"
#include "check/finding.h"
#include "system/privileges.h"

#define MACHINE_VERSION(major, minor) ((uint32_t)(major) << 16 | (uint32_t)(minor))

/* The capabilities that a tool has when the caller starts it. */
struct machine_tool {
	char path[512]; /* only its name if its directory is unknown */
	uint64_t caps; /* effective after exec */
	bool file_caps; /* its file grants capabilities, and they take effect */
};

struct machine {
	const struct root *root;
	char release[128]; /* "6.1.0-18-amd64" */
	uint32_t version; /* MACHINE_VERSION(6, 1); 0 = unknown */
	bool status_known;
	struct priv_status status;
	bool user_ns, pid_ns; /* in a namespace other than the initial one */
	char distro[32], distro_version[32], codename[32]; /* from etc/os-release; "" = unknown */
	struct machine_tool tools[TOOL_COUNT];
};

/*
 * ROOT must live as long as *RET. Fails only if there is no kernel release: then
 * ROOT is not a machine.
 */
int machine_read(const struct root *root, struct machine *ret, struct err *e);

/*
 * Whether this process may use CAP (see priv_set_allows()); false in a user
 * namespace, and if its capabilities are unknown.
 */
bool machine_allows(const struct machine *m, int cap);

/* The same for TOOL as it is installed, file capabilities included. */
bool machine_tool_allows(const struct machine *m, enum finding_tool tool, int cap);

/* The setcap(8) command that gives TOOL its usual capabilities. Returns BUF. */
const char *machine_grant(const struct machine *m, enum finding_tool tool, char *buf, size_t cap);

/*
 * The command that installs a kernel with everything that is needed; only words
 * if the distribution is unknown, and in a PID namespace, where the kernel is
 * that of another system, the host. Returns BUF.
 */
const char *machine_new_kernel(const struct machine *m, char *buf, size_t cap);

/*
 * The release, if it can be part of a command: only letters, digits and ".-_+~",
 * as in a kernel's release. Else NULL: a recorded tree can contain any text there.
 */
const char *machine_plain_release(const struct machine *m);

/* The number in the first line of PATH under the root; false if there is none. */
bool machine_number(const struct machine *m, const char *path, long long *ret);

/*
 * kconfig - the configuration that a kernel was built with.
 *
 * Format: Documentation/kbuild/kconfig.rst of Linux; lines "CONFIG_X=value"
 * and "# CONFIG_X is not set". Searched for, in this order, in proc/config.gz,
 * boot/config-RELEASE, lib/modules/RELEASE/config and
 * lib/modules/RELEASE/build/.config; each may be compressed with gzip.
 */

struct kconfig;

/*
 * Load the first usable file for RELEASE. On success *RET is the caller's;
 * release it with kconfig_free(). -ENOENT if there is no such file (the message
 * lists the paths); otherwise the error of the first file that cannot be used:
 * unreadable, larger than 4 MiB (16 MiB uncompressed), truncated or damaged, not
 * a configuration.
 */
int kconfig_load(const struct root *r, const char *release, struct kconfig **ret, struct err *e);
void kconfig_free(struct kconfig *kc); /* NULL is fine */

/* Parse the LEN bytes of a file, compressed or not, whose path is PATH. Errors as above. */
int kconfig_parse(const char *path, const void *data, size_t len, struct kconfig **ret, struct err *e);

/* The path of the file, with a leading slash; belongs to KC. */
const char *kconfig_path(const struct kconfig *kc);

/* The error of the first unusable file before it in the order; "" = none. Belongs to KC. */
const char *kconfig_complaint(const struct kconfig *kc);

/*
 * Copy the value of OPTION ("CONFIG_BPF") to BUF: "y", "m", a number or a quoted
 * string, cut to CAP. False, with BUF "", if it is not set or that kernel does
 * not know it: both mean that what depends on it is not built.
 */
bool kconfig_find(const struct kconfig *kc, const char *option, char *buf, size_t cap);

#endif
