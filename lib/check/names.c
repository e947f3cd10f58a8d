/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/names.h"
#include "base/text.h"
#include "elf/debugserver.h"
#include "elf/file.h"
#include "elf/section.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>

/*
 * The per-CPU symbols at the beginning of the table can really have address 0: up to some thousand of
 * 122,000. If more bytes than this have only zeros, the addresses are hidden.
 */
#define READ_MAX (1U << 20)

enum visible { VISIBLE, ZEROED, EMPTY };

/*
 * Whether an address in the N bytes at P has a digit other than 0. *IN_ADDRESS is the state between calls.
 */
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

static int read_visible(const struct root *r, enum visible *ret, struct err *e)
{
	_cleanup_close_ int fd = root_openat(r, "proc/kallsyms", O_RDONLY | O_NONBLOCK, e);
	char buf[16384];
	bool in_address = true;
	size_t seen = 0;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "'/proc/kallsyms' is not a regular file");
	for (;;) {
		ssize_t n = read(fd, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, -errno, "cannot read '/proc/kallsyms'");
		if (n == 0 || seen > READ_MAX) {
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

/* The command that makes the addresses visible to the current user. */
static const char *unhide(const struct machine *m)
{
	long long kptr = 0;

	machine_number(m, "proc/sys/kernel/kptr_restrict", &kptr);
	if (machine_allows(m, CAP_SYSLOG))
		return "sysctl -w kernel.kptr_restrict=1";
	return kptr ? "sysctl -w kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"
		    : "sysctl -w kernel.perf_event_paranoid=1";
}

/* Tools that see no addresses. Those whose file grants CAP_SYSLOG see them, if kptr_restrict is below 2. */
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
	int rc = read_visible(m->root, &visible, &e);

	if (!rc && visible == VISIBLE) {
		findings_add(
			f, GROUP_SYMBOLS, FINDING_OK, "symbols.kallsyms", "/proc/kallsyms shows addresses");
		return;
	}
	if (!rc && visible == ZEROED) {
		fi = findings_add(f, GROUP_SYMBOLS, FINDING_WARN, "symbols.kallsyms",
			"every address in /proc/kallsyms is zero: kernel frames stay without names");
		finding_remedy(fi, "%s", unhide(m));
	} else if (rc == -ENOENT && !m->root->live) {
		findings_add(
			f, GROUP_SYMBOLS, FINDING_SKIP, "symbols.kallsyms", "no proc/kallsyms in the tree");
		return;
	} else {
		fi = findings_add(f, GROUP_SYMBOLS, FINDING_WARN, "symbols.kallsyms",
			"%s: kernel frames stay without names", rc ? e.msg : "'/proc/kallsyms' is empty");
		finding_remedy(fi, "%s",
			rc == -EACCES ? "run as root" : machine_new_kernel(m, command, sizeof(command)));
	}
	fi->degrades = blind_tools(m);
}

#define NOTES_MAX (1U << 20)

/* Where each distribution has the kernel's debug information. %s is the kernel's release. */
static const struct distro {
	const char *id, *package, *server; /* the install command and the debuginfod server; NULL = none */
	const char *mark; /* found in /proc/version of its kernels */
} distros[] = {
	{ "debian", "apt-get install linux-image-%s-dbg", "https://debuginfod.debian.net", "Debian" },
	{ "ubuntu",
		"apt-get install ubuntu-dbgsym-keyring && apt-get update && apt-get install "
		"linux-image-%s-dbgsym",
		"https://debuginfod.ubuntu.com", "Ubuntu" },
	{ "fedora", "dnf debuginfo-install kernel-%s", "https://debuginfod.fedoraproject.org", ".fc" },
	{ "rhel", "dnf debuginfo-install kernel-%s", NULL, ".el" },
	{ "centos", "dnf debuginfo-install kernel-%s", "https://debuginfod.centos.org", ".el" },
	{ "rocky", "dnf debuginfo-install kernel-%s", NULL, ".el" },
	{ "almalinux", "dnf debuginfo-install kernel-%s", NULL, ".el" },
	{ "arch", NULL, "https://debuginfod.archlinux.org", "arch" },
	{ "opensuse-leap", "zypper install kernel-default-debuginfo", "https://debuginfod.opensuse.org",
		"-default" },
	{ "opensuse-tumbleweed", "zypper install kernel-default-debuginfo", "https://debuginfod.opensuse.org",
		"-default" },
};

static const struct distro *distro(const struct machine *m)
{
	for (size_t i = 0; i < ARRAY_LEN(distros); i++)
		if (strcmp(distros[i].id, m->distro) == 0)
			return &distros[i];
	return NULL;
}

/* --- debug information of the running kernel --- */

/* The paths of elf/kernelfiles.h, without the leading slash. */
static const char *const places[] = {
	"usr/lib/debug/boot/vmlinux-%s",
	"usr/lib/debug/lib/modules/%s/vmlinux",
	"usr/lib/debug/usr/lib/modules/%s/vmlinux",
	"lib/modules/%s/build/vmlinux",
	"lib/modules/%s/vmlinux",
	"boot/vmlinux-%s",
};

static bool has_debug_info(const struct elffile *f)
{
	struct elfsection_names names = { 0 };
	bool has = elfsection_names(f, &names, NULL) == 0 && elfsection_has(f, &names, ".debug_info");

	elfsection_names_free(&names);
	return has;
}

/* If PATH does not exist, WHY stays unchanged. */
static bool is_vmlinux(
	const struct machine *m, const char *path, const struct cap_build_id *id, char *why, size_t cap)
{
	struct elffile *f = NULL;
	struct err e = { 0 };
	int rc = elffile_open(m->root->fd, path, true, &f, &e);
	bool same, debug;

	if (rc) {
		if (rc != -ENOENT && rc != -ENOTDIR && rc != -ELOOP)
			snprintf(why, cap, "'/%.200s' %.150s", path, e.msg);
		return false;
	}
	same = f->build_id.len == id->len && memcmp(f->build_id.bytes, id->bytes, id->len) == 0;
	debug = same && has_debug_info(f);
	elffile_close(f);
	if (!same)
		snprintf(why, cap, "'/%.200s' is another kernel's", path);
	else if (!debug)
		snprintf(why, cap, "'/%.200s' has no debug information", path);
	return same && debug;
}

static bool find_vmlinux(const struct machine *m, const struct cap_build_id *id, char *path, size_t cap,
	char *why, size_t why_cap)
{
	char hex[2 * CAPTURE_BUILD_ID_MAX + 1];

	text_hex(hex, id->bytes, id->len);
	snprintf(path, cap, "usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
	if (is_vmlinux(m, path, id, why, why_cap))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		size_t len = strcspn(places[i], "%");

		snprintf(path, cap, "%.*s%s%s", (int)len, places[i], m->release, places[i] + len + 2);
		if (is_vmlinux(m, path, id, why, why_cap))
			return true;
	}
	return false;
}

/* Whether the kernel is the distribution's own, as far as can be determined. */
static bool is_packaged(const struct machine *m, const struct distro *d)
{
	char version[512];

	/* in a container, the kernel does not belong to the distribution */
	if (m->pid_ns || !machine_plain_release(m))
		return false;
	if (root_line(m->root, "proc/version", version, sizeof(version), NULL) != 0)
		return true;
	return strstr(version, d->mark) || root_exists(m->root, "proc/version_signature");
}

static void remedy_for_vmlinux(const struct machine *m, const struct cap_build_id *id, struct finding *fi)
{
	const struct distro *d = distro(m);
	char hex[2 * CAPTURE_BUILD_ID_MAX + 1], archive[160] = "";
	size_t len;

	text_hex(hex, id->bytes, id->len);
	if (d && d->package && is_packaged(m, d)) {
		/* a separate archive, not enabled by default; os_field() passes only letters, digits and
		 * "._-", so the codename is safe in a command */
		if (strcmp(d->id, "ubuntu") == 0 && m->codename[0])
			snprintf(archive, sizeof(archive),
				"echo 'deb http://ddebs.ubuntu.com %s main restricted universe' "
				">/etc/apt/sources.list.d/ddebs.list && ",
				m->codename);
		len = strcspn(d->package, "%");
		finding_remedy(fi, "%s%.*s%s%s", archive, (int)len, d->package,
			d->package[len] ? m->release : "", d->package[len] ? d->package + len + 2 : "");
	} else {
		finding_remedy(fi, "DEBUGINFOD_URLS=%s debuginfod-find debuginfo %s",
			d && d->server && !m->pid_ns ? d->server : "https://debuginfod.elfutils.org", hex);
	}
}

static void check_vmlinux(const struct machine *m, struct findings *f)
{
	char hex[2 * CAPTURE_BUILD_ID_MAX + 1], path[512], why[400] = "";
	struct cap_build_id id = { .len = 0 };
	_cleanup_free_ char *notes = NULL;
	struct finding *fi;
	size_t len = 0;

	if (root_read(m->root, "sys/kernel/notes", NOTES_MAX, &notes, &len, NULL) != 0 ||
		!elfnote_build_id(notes, len, 4, &id)) {
		findings_add(f, GROUP_SYMBOLS, FINDING_SKIP, "symbols.vmlinux",
			"no build ID of the kernel in /sys/kernel/notes");
		return;
	}
	if (find_vmlinux(m, &id, path, sizeof(path), why, sizeof(why))) {
		findings_add(f, GROUP_SYMBOLS, FINDING_OK, "symbols.vmlinux",
			"'/%s' is the running kernel's, with debug information", path);
		return;
	}
	text_hex(hex, id.bytes, id.len);
	fi = findings_add(f, GROUP_SYMBOLS, FINDING_OK, "symbols.vmlinux",
		"no debug information of this kernel (build ID %s)%s%s: its frames have names, but neither "
		"lines "
		"nor inlined calls",
		hex, why[0] ? "; " : "", why);
	remedy_for_vmlinux(m, &id, fi);
}

/* --- debug servers --- */

static bool has_library(const struct machine *m)
{
	static const char *const dirs[] = { "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu",
		"usr/lib64", "usr/lib", "lib64", "lib", "usr/local/lib64", "usr/local/lib" };
	char path[64];

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		snprintf(path, sizeof(path), "%s/libdebuginfod.so.1", dirs[i]);
		if (root_exists(m->root, path))
			return true;
	}
	return false;
}

static void no_servers(const struct machine *m, struct findings *f)
{
	const struct distro *d = distro(m);
	struct finding *fi = findings_add(f, GROUP_SYMBOLS, FINDING_OK, "symbols.debuginfod",
		"DEBUGINFOD_URLS is not set: debug files are searched for on this machine only");

	finding_remedy(fi, "export DEBUGINFOD_URLS=%s",
		d && d->server ? d->server : "https://debuginfod.elfutils.org");
}

static void check_debuginfod(const struct machine *m, struct findings *f)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct finding *fi;

	if (!debugserver_possible()) {
		findings_add(f, GROUP_SYMBOLS, FINDING_OK, "symbols.debuginfod",
			"static programs ask no debug servers: debug files are searched for on this machine "
			"only");
		return;
	}
	if (!m->root->live) {
		findings_add(f, GROUP_SYMBOLS, FINDING_SKIP, "symbols.debuginfod",
			"DEBUGINFOD_URLS is the caller's, not the recorded machine's");
		return;
	}
	if (!urls || !urls[strspn(urls, " \t\n")]) {
		no_servers(m, f);
		return;
	}
	if (has_library(m)) {
		findings_add(f, GROUP_SYMBOLS, FINDING_OK, "symbols.debuginfod",
			"debug servers: %.300s (cached in %s)", urls,
			getenv("DEBUGINFOD_CACHE_PATH") ? "DEBUGINFOD_CACHE_PATH"
							: "~/.cache/debuginfod_client");
		return;
	}
	fi = findings_add(f, GROUP_SYMBOLS, FINDING_WARN, "symbols.debuginfod",
		"DEBUGINFOD_URLS is set, but libdebuginfod.so.1 is in none of the usual directories: no "
		"server "
		"is asked");
	finding_remedy(fi, "%s",
		strcmp(m->distro, "debian") == 0 || strcmp(m->distro, "ubuntu") == 0
			? "apt-get install libdebuginfod1"
			: "dnf install elfutils-debuginfod-client");
}

void debugcheck_run(const struct machine *m, struct findings *f)
{
	check_vmlinux(m, f);
	check_debuginfod(m, f);
}
