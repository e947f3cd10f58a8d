/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * machine - the facts that several checks judge by, read once.
 *
 * Sources under the prefix: proc/sys/kernel/osrelease, proc/self/status,
 * proc/self/ns/{user,pid}, etc/os-release; and, for the live machine, the
 * file capabilities of the tools beside this very binary.
 */
#ifndef STACKTOOLS_CHECK_MACHINE_H
#define STACKTOOLS_CHECK_MACHINE_H

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
	struct priv_status status;
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

/*
 * kconfig - the configuration that a kernel was built with.
 *
 * Format: Documentation/kbuild/kconfig.rst of Linux; lines "CONFIG_X=value"
 * and "# CONFIG_X is not set". Looked for, in this order, in proc/config.gz,
 * boot/config-RELEASE, lib/modules/RELEASE/config and
 * lib/modules/RELEASE/build/.config; any of them may be compressed by gzip.
 */

struct kconfig;

/*
 * The first usable file for RELEASE. On success *RET is the caller's; release
 * it with kconfig_free(). -ENOENT where there is no file at all (the message
 * lists where it was looked for); otherwise the error of the first that is
 * there but of no use: cut, not gzip, larger than 16 MiB, no configuration.
 */
int kconfig_load(const struct root *r, const char *release, struct kconfig **ret, struct err *e);
void kconfig_free(struct kconfig *kc); /* NULL is fine */

/* Take the LEN bytes of a file, compressed or not, as found at PATH. Errors as above. */
int kconfig_parse(const char *path, const void *data, size_t len, struct kconfig **ret, struct err *e);

/* Where it was found, with a leading slash; belongs to KC. */
const char *kconfig_path(const struct kconfig *kc);

/* What was wrong with a file that came before it in the order; "" = nothing. Belongs to KC. */
const char *kconfig_complaint(const struct kconfig *kc);

/*
 * The value of OPTION ("CONFIG_BPF") into BUF: "y", "m", a number or a quoted
 * string, cut to CAP. False with BUF "" where it is not set or not known to
 * that kernel: the same, as what depends on it is not built.
 */
bool kconfig_find(const struct kconfig *kc, const char *option, char *buf, size_t cap);

#endif
