/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/privileges.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

/* Room for the names of all capabilities in one clause. */
#define CLAUSE_MAX 1024

/* PROC_USER_INIT_INO of the kernel: the inode of the first user namespace. */
static const char first_user_ns[] = "user:[4026531837]";

/* A string that is built by appending, and cut if it does not fit. */
struct clause {
	char *p;
	size_t len, cap;
};

static void clause_put(struct clause *c, const char *s)
{
	if (c->len + 1 >= c->cap)
		return;
	snprintf(c->p + c->len, c->cap - c->len, "%s", s);
	c->len += strlen(c->p + c->len);
}

static struct clause clause_on(char *buf, size_t cap)
{
	if (cap)
		buf[0] = '\0';
	return (struct clause){ .p = buf, .cap = cap };
}

bool priv_have(int cap)
{
	cap_flag_value_t value = CAP_CLEAR;
	cap_t set = cap_get_proc();

	if (!set)
		return false;
	if (cap_get_flag(set, cap, CAP_EFFECTIVE, &value) != 0)
		value = CAP_CLEAR;
	cap_free(set);
	return value == CAP_SET;
}

static bool admin_stands_in(int cap)
{
	return cap == CAP_BPF || cap == CAP_PERFMON || cap == CAP_CHECKPOINT_RESTORE;
}

bool priv_allow(int cap)
{
	return priv_have(cap) || (admin_stands_in(cap) && priv_have(CAP_SYS_ADMIN));
}

uint64_t priv_bits(const int *caps, size_t n)
{
	uint64_t set = 0;

	for (size_t i = 0; i < n; i++)
		if (priv_have(caps[i]))
			set |= UINT64_C(1) << caps[i];
		else if (priv_allow(caps[i]))
			set |= UINT64_C(1) << CAP_SYS_ADMIN;
	return set;
}

bool priv_set_allows(uint64_t set, int cap)
{
	uint64_t bits = UINT64_C(1) << cap;

	if (admin_stands_in(cap))
		bits |= UINT64_C(1) << CAP_SYS_ADMIN;
	return (set & bits) != 0;
}

const char *priv_name(int cap, char *buf, size_t size)
{
	char *name = cap_to_name(cap);

	/* libcap returns the bare number for a capability that it does not know */
	if (!name || isdigit((unsigned char)name[0])) {
		snprintf(buf, size, "CAP_%d", cap);
	} else {
		snprintf(buf, size, "%s", name);
		for (char *p = buf; *p; p++)
			*p = (char)toupper((unsigned char)*p);
	}
	if (name)
		cap_free(name);
	return buf;
}

size_t priv_missing(const int *caps, size_t n, char *buf, size_t cap)
{
	struct clause c = clause_on(buf, cap);
	size_t missing = 0, named = 0;
	char name[32];

	for (size_t i = 0; i < n; i++)
		missing += !priv_allow(caps[i]);
	for (size_t i = 0; i < n; i++) {
		if (priv_allow(caps[i]))
			continue;
		if (named)
			clause_put(&c, named + 1 == missing ? " and " : ", ");
		clause_put(&c, priv_name(caps[i], name, sizeof(name)));
		named++;
	}
	if (missing)
		clause_put(&c, missing == 1 ? " is missing" : " are missing");
	return missing;
}

/* Read the start of the file at PATH; "" if it cannot be read. */
static void read_whole(const char *path, char *buf, size_t cap)
{
	FILE *f = fopen(path, "re");
	size_t n = 0;

	if (f) {
		n = fread(buf, 1, cap - 1, f);
		fclose(f);
	}
	buf[n] = '\0';
}

/* The value of "KEY:" at the start of a line of TEXT, or NULL. */
static const char *status_field(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *p = text; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (strncmp(p, key, len) == 0 && p[len] == ':')
			return p + len + 1 + strspn(p + len + 1, " \t");
	return NULL;
}

static bool status_set(const char *text, const char *key, uint64_t *ret)
{
	const char *v = status_field(text, key);

	return v && sscanf(v, "%" SCNx64, ret) == 1;
}

static int status_small(const char *text, const char *key)
{
	const char *v = status_field(text, key);

	return v && isdigit((unsigned char)*v) ? *v - '0' : -1;
}

int priv_status_parse(const char *text, struct priv_status *ret)
{
	const char *uid = status_field(text, "Uid");

	*ret = (struct priv_status){ 0 };
	/* real, effective, saved and file system uid */
	if (!uid || sscanf(uid, "%*u %" SCNu32, &ret->uid) != 1)
		return -EINVAL;
	if (!status_set(text, "CapEff", &ret->effective) || !status_set(text, "CapPrm", &ret->permitted) ||
		!status_set(text, "CapInh", &ret->inheritable) || !status_set(text, "CapBnd", &ret->bounding))
		return -EINVAL;
	status_set(text, "CapAmb", &ret->ambient); /* since 4.3 */
	ret->seccomp = status_small(text, "Seccomp");
	ret->no_new_privs = status_small(text, "NoNewPrivs");
	return 0;
}

static bool in_user_ns(void)
{
	char link[64];
	ssize_t n = readlink("/proc/self/ns/user", link, sizeof(link) - 1);

	if (n < 0)
		return false;
	link[n] = '\0';
	return strcmp(link, first_user_ns) != 0;
}

bool priv_lockdown(char *mode, size_t cap)
{
	char text[128], word[32];
	const char *at;

	read_whole("/sys/kernel/security/lockdown", text, sizeof(text));
	at = strchr(text, '[');
	if (!at || sscanf(at, "[%31[a-z]]", word) != 1 || strcmp(word, "none") == 0)
		return false;
	snprintf(mode, cap, "%s", word);
	return true;
}

/*
 * What besides capabilities may forbid BPF here, as a clause: "a seccomp filter is
 * in force", "in a user namespace, where capabilities do not reach the kernel".
 * False with BUF "" if nothing is found.
 */
static bool priv_obstacle(char *buf, size_t cap)
{
	struct clause c = clause_on(buf, cap);
	char text[8192], mode[32];

	if (in_user_ns())
		clause_put(&c, "in a user namespace, where capabilities do not reach the kernel");
	read_whole("/proc/self/status", text, sizeof(text));
	if (status_small(text, "Seccomp") > 0) {
		clause_put(&c, c.len ? "; " : "");
		clause_put(&c, "a seccomp filter is in force");
	}
	if (priv_lockdown(mode, sizeof(mode))) {
		clause_put(&c, c.len ? "; " : "");
		clause_put(&c, "the kernel is locked down: ");
		clause_put(&c, mode);
	}
	return c.len != 0;
}

/* Put S in single quotes, with single quotes in it escaped for sh(1). */
static void put_quoted(struct clause *c, const char *s)
{
	clause_put(c, "'");
	for (; *s; s++)
		clause_put(c, *s == '\'' ? "'\\''" : (const char[]){ *s, '\0' });
	clause_put(c, "'");
}

void priv_command(const char *exe, const int *caps, size_t n, char *buf, size_t cap)
{
	struct clause c = clause_on(buf, cap);
	char name[32];

	clause_put(&c, "setcap ");
	for (size_t i = 0; i < n; i++) {
		clause_put(&c, i ? "," : "");
		priv_name(caps[i], name, sizeof(name));
		for (char *p = name; *p; p++)
			*p = (char)tolower((unsigned char)*p);
		clause_put(&c, name);
	}
	clause_put(&c, "+ep ");
	put_quoted(&c, exe);
}

static bool outside_bounding_set(const int *caps, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (prctl(PR_CAPBSET_READ, caps[i], 0, 0, 0) == 0)
			return true;
	return false;
}

/* Why the capabilities of the file EXE have no effect when this process starts it, or NULL. */
static const char *file_caps_void(const char *exe)
{
	struct statvfs fs;

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return "no_new_privs is set";
	if (statvfs(exe, &fs) == 0 && (fs.f_flag & ST_NOSUID))
		return "its file system is mounted nosuid";
	return NULL;
}

static void grant_hint(const int *caps, size_t n, struct err *e)
{
	char exe[PATH_MAX], command[CLAUSE_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	const char *why;

	exe[MAX(len, 0)] = '\0';
	why = file_caps_void(exe);
	priv_command(exe, caps, n, command, sizeof(command));
	if (outside_bounding_set(caps, n))
		err_hint(e, "the bounding set lacks it, so root here lacks it too: run this outside of the "
			    "container, or start the container with --cap-add=BPF --cap-add=PERFMON");
	else if (len < 0)
		err_hint(e, "run as root");
	else if (why)
		err_hint(e, "run as root; setcap has no effect on '%s' here: %s", exe, why);
	else
		err_hint(e, "run as root, or: %s", command);
}

/* Before Linux 5.11 BPF memory counts against RLIMIT_MEMLOCK, and exceeding that fails with EPERM. */
static bool memlock_bounds(uint64_t *kib)
{
	unsigned int major, minor;
	struct utsname name;
	struct rlimit limit;

	if (uname(&name) != 0 || sscanf(name.release, "%u.%u", &major, &minor) != 2 || major > 5 ||
		(major == 5 && minor >= 11))
		return false;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return false;
	*kib = limit.rlim_cur >> 10;
	return true;
}

int priv_explain(const char *what, int code, const int *caps, size_t n, struct err *e)
{
	char clause[CLAUSE_MAX];
	uint64_t kib;

	if (priv_missing(caps, n, clause, sizeof(clause))) {
		err_set(e, code, "not permitted to %s: %s", what, clause);
		grant_hint(caps, n, e);
		return code;
	}
	if (code == -EPERM && memlock_bounds(&kib)) {
		err_set(e, code,
			"not permitted to %s: RLIMIT_MEMLOCK of %" PRIu64
			" KiB is used up; BPF memory counts against it before Linux 5.11",
			what, kib);
		err_hint(e, "ulimit -l unlimited (as root), or give CAP_SYS_RESOURCE");
		return code;
	}
	if (priv_obstacle(clause, sizeof(clause))) {
		err_set(e, code, "not permitted to %s: no capability is missing, but %s", what, clause);
		err_hint(e, "run it outside of the container or sandbox, or see bpfcheck -v");
		return code;
	}
	err_set(e, code,
		"not permitted to %s: %s, though no capability is missing and neither a user namespace nor "
		"seccomp nor lockdown is seen",
		what, err_name(code));
	err_hint(e, "a security module may forbid it; see bpfcheck -v");
	return code;
}

/* The kernels of Debian and Ubuntu require CAP_SYS_ADMIN for values above 2. */
static bool perf_takes_admin(long *paranoid)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");

	return f && fscanf(f, "%ld", paranoid) == 1 && *paranoid > 2 && !priv_have(CAP_SYS_ADMIN);
}

int priv_explain_perf(const char *what, int code, struct err *e)
{
	static const int caps[] = { CAP_PERFMON };
	long paranoid;

	if (code != -EACCES || !priv_have(CAP_PERFMON) || !perf_takes_admin(&paranoid))
		return priv_explain(what, code, caps, ARRAY_LEN(caps), e);
	err_set(e, code,
		"not permitted to %s: kernel.perf_event_paranoid=%ld takes CAP_SYS_ADMIN for that, "
		"CAP_PERFMON does not do",
		what, paranoid);
	err_hint(e, "sysctl -w kernel.perf_event_paranoid=2, or run as root");
	return code;
}
