/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/machine.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <zlib.h>

/* include/linux/proc_ns.h */
static const char first_user_ns[] = "user:[4026531837]";
static const char first_pid_ns[] = "pid:[4026531836]";

static uint32_t parse_version(const char *release)
{
	unsigned int major, minor;

	if (sscanf(release, "%u.%u", &major, &minor) != 2 || major > 0xffff || minor > 0xffff)
		return 0;
	return MACHINE_VERSION(major, minor);
}

static bool in_other_ns(const struct root *r, const char *path, const char *first)
{
	char link[64];

	return root_link(r, path, link, sizeof(link)) && strcmp(link, first) != 0;
}

/* The value of KEY in os-release(5), without quotes. */
static void os_field(const char *text, const char *key, char *buf, size_t cap)
{
	size_t len = strlen(key);

	buf[0] = '\0';
	for (const char *p = text; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
		if (strncmp(p, key, len) != 0 || p[len] != '=')
			continue;
		p += len + 1;
		p += *p == '"' || *p == '\'';
		for (; cap > 1 && (isalnum((unsigned char)*p) || *p == '.' || *p == '-' || *p == '_'); cap--)
			*buf++ = *p++;
		*buf = '\0';
		return;
	}
}

static void read_distro(const struct root *r, struct machine *m)
{
	_cleanup_free_ char *text = NULL;

	if (root_read(r, "etc/os-release", 65536, &text, NULL, NULL) != 0)
		return;
	os_field(text, "ID", m->distro, sizeof(m->distro));
	os_field(text, "VERSION_ID", m->distro_version, sizeof(m->distro_version));
	os_field(text, "VERSION_CODENAME", m->codename, sizeof(m->codename));
}

static void read_status(const struct root *r, struct machine *m)
{
	_cleanup_free_ char *text = NULL;

	if (root_read(r, "proc/self/status", 65536, &text, NULL, NULL) == 0)
		m->status_known = priv_status_parse(text, &m->status) == 0;
	m->user_ns = in_other_ns(r, "proc/self/ns/user", first_user_ns);
	m->pid_ns = in_other_ns(r, "proc/self/ns/pid", first_pid_ns);
}

/* The file's permitted capabilities, if its effective bit is set; else none. */
static uint64_t file_caps(const char *path)
{
	cap_t set = cap_get_file(path);
	uint64_t bits = 0;

	for (int i = 0; set && i <= CAP_LAST_CAP; i++) {
		cap_flag_value_t permitted = CAP_CLEAR, effective = CAP_CLEAR;

		if (cap_get_flag(set, i, CAP_PERMITTED, &permitted) == 0 &&
			cap_get_flag(set, i, CAP_EFFECTIVE, &effective) == 0 && permitted && effective)
			bits |= UINT64_C(1) << i;
	}
	if (set)
		cap_free(set);
	return bits;
}

/* Rules: capabilities(7), "Transformation of capabilities during execve()". */
static void read_tool(struct machine *m, const char *dir, enum finding_tool tool)
{
	struct machine_tool *t = &m->tools[tool];
	struct statvfs fs;
	uint64_t granted;

	snprintf(t->path, sizeof(t->path), "%s/%s", dir, finding_tool_name(tool));
	if (m->status.no_new_privs == 1 || statvfs(t->path, &fs) != 0 || (fs.f_flag & ST_NOSUID))
		return;
	granted = file_caps(t->path);
	/* a file with capabilities outside the bounding set cannot be executed at all */
	if (granted & ~m->status.bounding)
		granted = 0;
	t->file_caps = granted != 0;
	if (granted)
		t->caps = granted | (m->status.uid ? 0 : t->caps);
}

static void read_tools(struct machine *m)
{
	char dir[PATH_MAX];
	ssize_t n = m->root->live ? readlink("/proc/self/exe", dir, sizeof(dir) - 1) : -1;

	dir[MAX(n, 0)] = '\0';
	if (strrchr(dir, '/'))
		*strrchr(dir, '/') = '\0';
	for (enum finding_tool tool = 0; tool < TOOL_COUNT; tool++) {
		snprintf(m->tools[tool].path, sizeof(m->tools[tool].path), "%s", finding_tool_name(tool));
		/* for an ordinary user, only ambient ones survive exec, not those of bpfcheck's own file */
		m->tools[tool].caps =
			m->root->live && m->status.uid ? m->status.ambient : m->status.effective;
		if (n > 0 && strlen(dir) < 400)
			read_tool(m, dir, tool);
	}
}

/* A procfs with subset=pid has processes but no /proc/sys. */
static bool by_uname(const struct root *root, struct machine *m)
{
	struct utsname name;

	if (!root->live || !root_exists(root, "proc/self/status") || uname(&name) != 0)
		return false;
	snprintf(m->release, sizeof(m->release), "%s", name.release);
	return true;
}

int machine_read(const struct root *root, struct machine *ret, struct err *e)
{
	int rc;

	*ret = (struct machine){ .root = root };
	rc = root_line(root, "proc/sys/kernel/osrelease", ret->release, sizeof(ret->release), e);
	if (rc && by_uname(root, ret))
		rc = 0;
	if (rc) {
		if (root->live)
			err_hint(e, "mount -t proc proc /proc");
		else
			err_hint(e, "give a directory that holds a recorded proc, sys and boot");
		return rc;
	}
	ret->version = parse_version(ret->release);
	read_status(root, ret);
	read_distro(root, ret);
	read_tools(ret);
	return 0;
}

bool machine_allows(const struct machine *m, int cap)
{
	return m->status_known && !m->user_ns && priv_set_allows(m->status.effective, cap);
}

bool machine_tool_allows(const struct machine *m, enum finding_tool tool, int cap)
{
	return m->status_known && !m->user_ns && priv_set_allows(m->tools[tool].caps, cap);
}

const char *machine_grant(const struct machine *m, enum finding_tool tool, char *buf, size_t cap)
{
	/* each tool gets the first n[TOOL] of them */
	static const int useful[] = { CAP_SYSLOG, CAP_BPF, CAP_PERFMON, CAP_CHECKPOINT_RESTORE };
	static const size_t n[TOOL_COUNT] = {
		[TOOL_OFFCPU_RECORD] = 4, [TOOL_STACKMAP_TEST] = 3, [TOOL_KALLSYMS_RESOLVE] = 1
	};

	priv_command(m->tools[tool].path, useful, n[tool], buf, cap);
	/* the path is not known: let the shell find the tool */
	if (!strchr(m->tools[tool].path, '/')) {
		size_t at = strcspn(buf, "'");

		snprintf(buf + at, cap - at, "\"$(command -v %s)\"", m->tools[tool].path);
	}
	return buf;
}

const char *machine_new_kernel(const struct machine *m, char *buf, size_t cap)
{
	static const struct {
		const char *distro, *command;
	} known[] = {
		{ "fedora", "dnf upgrade kernel && reboot" },
		{ "rhel", "dnf upgrade kernel && reboot" },
		{ "centos", "dnf upgrade kernel && reboot" },
		{ "rocky", "dnf upgrade kernel && reboot" },
		{ "almalinux", "dnf upgrade kernel && reboot" },
		{ "arch", "pacman -Syu linux && reboot" },
		{ "alpine", "apk add linux-lts && reboot" },
		{ "opensuse-leap", "zypper install kernel-default && reboot" },
		{ "opensuse-tumbleweed", "zypper install kernel-default && reboot" },
	};

	const char *newer = m->version < MACHINE_VERSION(5, 18) ? "Linux 5.18 or later" : "a newer kernel";

	/* etc/os-release describes the container, not the system that the kernel belongs to */
	if (m->pid_ns) {
		snprintf(buf, cap, "on the host, boot %s, built with BPF, perf events and BTF", newer);
		return buf;
	}
	if (strcmp(m->distro, "ubuntu") == 0 && m->distro_version[0]) {
		snprintf(buf, cap, "apt-get install linux-generic-hwe-%s && reboot", m->distro_version);
		return buf;
	}
	if (strcmp(m->distro, "debian") == 0) {
		int release = atoi(m->distro_version);
		/* the release's own kernel; 0 = not new enough. If it is not newer than the running one,
		 * use backports. */
		uint32_t own = release == 12  ? MACHINE_VERSION(6, 1)
			       : release > 12 ? MACHINE_VERSION(6, 12)
					      : 0;
		bool old = m->codename[0] && m->version >= own;

		snprintf(buf, cap, "apt-get install %s%s%slinux-image-amd64 && reboot", old ? "-t " : "",
			old ? m->codename : "", old ? "-backports " : "");
		return buf;
	}
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (strcmp(m->distro, known[i].distro) == 0) {
			snprintf(buf, cap, "%s", known[i].command);
			return buf;
		}
	}
	snprintf(buf, cap, "boot %s, built with BPF, perf events and BTF", newer);
	return buf;
}

const char *machine_plain_release(const struct machine *m)
{
	for (const char *p = m->release; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr(".-_+~", *p))
			return NULL;
	return m->release[0] ? m->release : NULL;
}

bool machine_number(const struct machine *m, const char *path, long long *ret)
{
	char line[64], *end;

	if (root_line(m->root, path, line, sizeof(line), NULL) != 0)
		return false;
	errno = 0;
	*ret = strtoll(line, &end, 10);
	return end != line && !errno && !line[strspn(line, "-+0123456789 \t")];
}

/* Real configurations have 100 to 300 KB; the limits reject a file that is made to fill memory. */
#define PACKED_MAX (4U << 20)
#define TEXT_MAX (16U << 20)

struct kconfig {
	char path[512];
	char complaint[1024];
	char *text; /* begins with a newline, so that each line follows one */
};

void kconfig_free(struct kconfig *kc)
{
	if (!kc)
		return;
	free(kc->text);
	free(kc);
}

/* Inflate Z into *OUT, which grows as needed; -EFBIG beyond TEXT_MAX. 0 at the end of the stream. */
static int inflate_all(z_stream *z, char **out, size_t *len)
{
	size_t cap = 0, used = 0;

	for (;;) {
		int rc;

		if (base_grow(out, &cap, used + 65536, 1) != 0)
			return -ENOMEM;
		z->next_out = (Bytef *)*out + used;
		z->avail_out = (uInt)(cap - used);
		rc = inflate(z, Z_NO_FLUSH);
		used = cap - z->avail_out;
		*len = used;
		if (used > TEXT_MAX)
			return -EFBIG;
		if (rc == Z_STREAM_END)
			return 0;
		if (rc != Z_OK)
			return rc == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
	}
}

static int gunzip(const void *data, size_t size, char **out, size_t *len)
{
	z_stream z = { .avail_in = (uInt)size };
	int rc;

	/* next_in is not const unless ZLIB_CONST is defined, although zlib only reads it */
	memcpy(&z.next_in, &data, sizeof(data));
	if (inflateInit2(&z, 15 + 16) != Z_OK) /* 16: gzip's header and checksum */
		return -ENOMEM;
	rc = inflate_all(&z, out, len);
	inflateEnd(&z);
	return rc;
}

static bool looks_like_config(const char *text, size_t len)
{
	if (memchr(text, '\0', len))
		return false;
	return strstr(text, "\nCONFIG_") || strstr(text, "\n# CONFIG_");
}

/* Copy the text of the file to *OUT, with a newline before it and a NUL after it. */
static int unpack(const char *path, const void *data, size_t size, char **out, size_t *len, struct err *e)
{
	_cleanup_free_ char *plain = NULL;
	int rc = 0;

	*len = size;
	if (size >= 2 && memcmp(data, "\x1f\x8b", 2) == 0) {
		rc = gunzip(data, size, &plain, len);
		data = plain;
	}
	if (rc == -EFBIG)
		return err_set(e, rc, "'%s' is larger than a kernel configuration can be", path);
	if (rc && rc != -ENOMEM)
		return err_set(e, rc, "'%s' is damaged or cut: it cannot be decompressed", path);
	*out = rc ? NULL : malloc(*len + 2);
	if (!*out)
		return err_nomem(e, "a kernel configuration");
	(*out)[0] = '\n';
	memcpy(*out + 1, data, *len);
	(*out)[++*len] = '\0';
	return 0;
}

int kconfig_parse(const char *path, const void *data, size_t size, struct kconfig **ret, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	int rc = unpack(path, data, size, &text, &len, e);

	if (rc)
		return rc;
	if (!looks_like_config(text, len))
		return err_set(e, -EINVAL, "'%s' is not a kernel configuration", path);
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return err_nomem(e, "a kernel configuration");
	snprintf((*ret)->path, sizeof((*ret)->path), "%s", path);
	(*ret)->text = TAKE_PTR(text);
	return 0;
}

static int load_one(const struct root *r, const char *path, struct kconfig **ret, struct err *e)
{
	_cleanup_free_ char *data = NULL;
	char shown[512];
	size_t len;
	int rc = root_read(r, path, PACKED_MAX, &data, &len, e);

	if (rc)
		return rc;
	snprintf(shown, sizeof(shown), "/%s", path);
	return kconfig_parse(shown, data, len, ret, e);
}

int kconfig_load(const struct root *r, const char *release, struct kconfig **ret, struct err *e)
{
	const struct {
		const char *before, *after;
	} places[] = { { "proc/config.gz", NULL }, { "boot/config-", "" }, { "lib/modules/", "/config" },
		{ "lib/modules/", "/build/.config" } };
	struct err first = { 0 }, one;

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		bool named = places[i].after != NULL;
		char path[384];
		int rc;

		snprintf(path, sizeof(path), "%s%s%s", places[i].before, named ? release : "",
			named ? places[i].after : "");
		rc = load_one(r, path, ret, &one);
		if (!rc) {
			snprintf((*ret)->complaint, sizeof((*ret)->complaint), "%s", first.msg);
			return 0;
		}
		if (rc != -ENOENT && rc != -ENOTDIR && !first.code)
			first = one;
	}
	if (first.code) {
		if (e)
			*e = first;
		return first.code;
	}
	return err_set(e, -ENOENT,
		"no /proc/config.gz, /boot/config-%s or /lib/modules/%s/{config,build/.config}", release,
		release);
}

const char *kconfig_path(const struct kconfig *kc)
{
	return kc->path;
}

const char *kconfig_complaint(const struct kconfig *kc)
{
	return kc->complaint;
}

bool kconfig_find(const struct kconfig *kc, const char *option, char *buf, size_t cap)
{
	char key[128];
	const char *at;

	snprintf(key, sizeof(key), "\n%s=", option);
	at = strstr(kc->text, key);
	if (!at) {
		buf[0] = '\0';
		return false;
	}
	at += strlen(key);
	snprintf(buf, cap, "%.*s", (int)MIN(strcspn(at, "\r\n"), 512), at);
	return true;
}
