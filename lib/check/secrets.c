/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/secrets.h"
#include "base/text.h"

#include <ctype.h>
#include <fnmatch.h>
#include <pwd.h>
#include <string.h>
#include <sys/utsname.h>

struct text {
	const char *p;
	size_t len;
};

/* The next line of T, without its newline. */
static bool next_line(struct text *t, struct text *line)
{
	const char *end = t->len ? memchr(t->p, '\n', t->len) : NULL;

	if (!t->len)
		return false;
	*line = (struct text){ t->p, end ? (size_t)(end - t->p) : t->len };
	t->len -= line->len + (end != NULL);
	t->p += line->len + (end != NULL);
	return true;
}

static bool begins(const struct text *t, const char *with)
{
	return t->len >= strlen(with) && memcmp(t->p, with, strlen(with)) == 0;
}

static void put_line(struct buf *b, const struct text *line)
{
	buf_put(b, line->p, line->len);
	buf_put(b, "\n", 1);
}

static void whole(struct text t, struct buf *ret, char *note, size_t cap)
{
	(void)note, (void)cap;
	buf_put(ret, t.p, t.len);
}

/* What decides about privileges; not what the process is called or which processes are around it. */
static void status(struct text t, struct buf *ret, char *note, size_t cap)
{
	static const char *const kept[] = { "Uid:", "Gid:", "Cap", "NoNewPrivs:", "Seccomp" };
	struct text line;

	while (next_line(&t, &line))
		for (size_t i = 0; i < ARRAY_LEN(kept); i++)
			if (begins(&line, kept[i]))
				put_line(ret, &line);
	snprintf(note, cap, "only ids, capabilities and seccomp");
}

/* The Nth word of LINE, from 0. */
static struct text word(struct text line, int n)
{
	const char *end;

	for (; n > 0 && line.len; n--) {
		end = memchr(line.p, ' ', line.len);
		if (!end)
			return (struct text){ "", 0 };
		line.len -= (size_t)(end + 1 - line.p);
		line.p = end + 1;
	}
	end = memchr(line.p, ' ', line.len);
	return (struct text){ line.p, end ? (size_t)(end - line.p) : line.len };
}

/* File systems of the kernel; disks, servers and users' folders are nobody's business. */
static void mounts(struct text t, struct buf *ret, char *note, size_t cap)
{
	static const char *const kept[] = { "proc", "sysfs", "tracefs", "debugfs", "bpf", "securityfs",
		"cgroup", "cgroup2", "devtmpfs", "hugetlbfs" };
	size_t dropped = 0;
	struct text line;

	while (next_line(&t, &line)) {
		struct text type = word(line, 2);
		bool keep = false;

		for (size_t i = 0; i < ARRAY_LEN(kept); i++)
			keep |= type.len == strlen(kept[i]) && memcmp(type.p, kept[i], type.len) == 0;
		if (keep)
			put_line(ret, &line);
		dropped += !keep;
	}
	if (dropped)
		snprintf(note, cap, "without %zu mounts of disks and servers", dropped);
}

/* Settings of the kernel that bear on tracing; of others not even the names. */
static void cmdline(struct text t, struct buf *ret, char *note, size_t cap)
{
	static const char *const kept[] = { "lockdown", "lsm", "security", "selinux", "apparmor",
		"mitigations", "nokaslr", "kaslr", "cgroup", "systemd.unified_cgroup_hierarchy",
		"unprivileged_bpf_disabled", "bpf", "debug_boot_weak_hash", "nosmap", "nopti", "isolcpus",
		"nohz_full", "rcu_nocbs", "slub_debug", "kasan", "hash_pointers", "no_hash_pointers" };
	size_t dropped = 0, len;

	while (t.len) {
		struct text w = word(t, 0);
		bool keep = false;

		if (w.len && w.p[w.len - 1] == '\n')
			w.len--;
		len = 0;
		while (len < w.len && w.p[len] != '=')
			len++;
		for (size_t i = 0; i < ARRAY_LEN(kept); i++)
			keep |= len == strlen(kept[i]) && memcmp(w.p, kept[i], len) == 0;
		if (keep) {
			if (ret->len)
				buf_put(ret, " ", 1);
			buf_put(ret, w.p, w.len);
		}
		dropped += !keep && w.len;
		len = MIN(t.len, w.len + 1);
		t.p += len;
		t.len -= len;
	}
	buf_put(ret, "\n", 1);
	if (dropped)
		snprintf(note, cap, "without %zu words", dropped);
}

/* Whether addresses are shown is all that is asked of it. */
static void kallsyms(struct text t, struct buf *ret, char *note, size_t cap)
{
	struct text line;
	bool shown = false;

	while (!shown && next_line(&t, &line))
		shown = line.len > 16 && strspn(line.p, "0") < 16;
	buftext_str(ret, shown ? "ffffffff81000000 T _stext\n" : "0000000000000000 T _stext\n");
	snprintf(note, cap, "one line that says whether addresses are shown; no address");
}

/* The length of a run of hexadecimal digits at P, which is an id when it is long. */
static size_t digits(const char *p, size_t left)
{
	size_t n = 0;

	while (n < left && isxdigit((unsigned char)p[n]))
		n++;
	return n;
}

/* Part of a path of cgroups: build IDs, which stand in paths too, are no secret. */
static bool is_id(const char *text, const char *p, size_t run)
{
	static const char build[] = ".build-id/";
	const size_t len = sizeof(build) - 1;

	if (run < 12 || p == text || (p[-1] != '/' && p[-1] != '-'))
		return false;
	/* .build-id/6e/cd6e... */
	return (size_t)(p - text) < len + 3 || memcmp(p - len - 3, build, len) != 0;
}

/* Ids of containers, users and sessions: digits go, what names the runtime stays. */
static void put_without_ids(struct buf *b, const char *text, size_t len)
{
	size_t run, i = 0;

	while (i < len) {
		run = digits(text + i, len - i);
		if (is_id(text, text + i, run))
			for (size_t k = 0; k < run; k++)
				buf_put(b, "0", 1);
		else
			buf_put(b, text + i, run);
		i += run;
		if (i < len)
			buf_put(b, text + i++, 1);
	}
}

static void cgroup(struct text t, struct buf *ret, char *note, size_t cap)
{
	put_without_ids(ret, t.p, t.len);
	snprintf(note, cap, "ids of containers are zeroes");
}

static const struct rule {
	const char *path; /* fnmatch(3) */
	void (*filter)(struct text t, struct buf *ret, char *note, size_t cap);
} rules[] = {
	{ "proc/self/status", status },
	{ "proc/self/mounts", mounts },
	{ "proc/mounts", mounts },
	{ "proc/self/mountinfo", NULL },
	{ "proc/cmdline", cmdline },
	{ "proc/kallsyms", kallsyms },
	{ "proc/self/cgroup", cgroup },
	{ "proc/sys/kernel/*", whole },
	{ "proc/sys/net/core/bpf_*", whole },
	{ "proc/sys/user/*", whole },
	{ "proc/sys/fs/*", whole },
	{ "proc/sys/vm/*", whole },
	{ "proc/config.gz", whole },
	{ "proc/meminfo", whole },
	{ "proc/version", whole },
	{ "proc/self/limits", whole },
	{ "proc/self/timens_offsets", whole },
	{ "proc/self/schedstat", whole },
	{ "proc/self/uid_map", whole },
	{ "proc/self/gid_map", whole },
	{ "boot/config-*", whole },
	{ "lib/modules/*/config", whole },
	{ "lib/modules/*/build/.config", whole },
	{ "etc/os-release", whole },
	{ "usr/lib/os-release", whole },
	{ "sys/kernel/btf/*", whole },
	{ "sys/kernel/notes", whole },
	{ "sys/kernel/security/lsm", whole },
	{ "sys/kernel/security/lockdown", whole },
	{ "sys/fs/cgroup/*memory*", whole },
	{ "sys/devices/system/cpu/*", whole },
};

bool secrets_filter(const char *path, const char *text, size_t len, struct buf *ret, char *note, size_t cap)
{
	note[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		if (fnmatch(rules[i].path, path, 0) != 0)
			continue;
		if (!rules[i].filter)
			return false;
		rules[i].filter((struct text){ text, len }, ret, note, cap);
		return true;
	}
	return false;
}

/* A word that is in every text for other reasons would spoil it. */
static bool telling(const char *name)
{
	static const char *const common[] = { "root", "localhost", "user", "debian", "ubuntu", "linux", "vm",
		"host", "kernel", "bpf", "nobody", "stacktools", "bpfcheck", "admin" };

	for (size_t i = 0; i < ARRAY_LEN(common); i++)
		if (strcasecmp(name, common[i]) == 0)
			return false;
	return strlen(name) > 2;
}

static void take(char *to, size_t cap, const char *name)
{
	if (name && telling(name))
		snprintf(to, cap, "%s", name);
}

void secrets_names(struct secrets_names *ret)
{
	const char *sudo = getenv("SUDO_USER"), *home = getenv("HOME");
	const struct passwd *pw = getpwuid(getuid());
	struct utsname u;

	*ret = (struct secrets_names){ 0 };
	if (uname(&u) == 0)
		take(ret->host, sizeof(ret->host), u.nodename);
	take(ret->user, sizeof(ret->user), sudo ? sudo : pw ? pw->pw_name : NULL);
	if (home && strcmp(home, "/root") != 0)
		take(ret->home, sizeof(ret->home), home);
}

/* NAME stands at P, and is no part of a longer word. */
static bool is_word(const char *text, const char *p, size_t left, const char *name)
{
	size_t len = strlen(name);

	return len && left >= len && memcmp(p, name, len) == 0 &&
	       (p == text || !isalnum((unsigned char)p[-1])) &&
	       (left == len || !isalnum((unsigned char)p[len]));
}

/* Who logs in at a server, where a URL says it: the bytes between "://" and "@"; 0 = nobody. */
static size_t login(const char *p, size_t left)
{
	size_t len = 3;

	if (left < 4 || memcmp(p, "://", 3) != 0)
		return 0;
	while (len < left && !strchr("/ \"'@\n", p[len]))
		len++;
	return len < left && p[len] == '@' ? len - 3 : 0;
}

static void scrub_names(const struct secrets_names *n, const char *text, size_t len, struct buf *ret)
{
	const struct {
		const char *name, *instead;
	} known[] = { { n->home, "HOME" }, { n->host, "HOST" }, { n->user, "USER" } };
	size_t at = 0;

	while (at < len) {
		size_t i = 0, who = login(text + at, len - at);

		if (who) {
			buftext_str(ret, "://LOGIN");
			at += 3 + who;
			continue;
		}
		while (i < ARRAY_LEN(known) && !is_word(text, text + at, len - at, known[i].name))
			i++;
		if (i < ARRAY_LEN(known)) {
			buftext_str(ret, known[i].instead);
			at += strlen(known[i].name);
		} else {
			buf_put(ret, text + at++, 1);
		}
	}
}

void secrets_scrub(const struct secrets_names *n, const char *text, size_t len, struct buf *ret)
{
	struct buf named = { 0 };

	scrub_names(n, text, len, &named);
	put_without_ids(ret, (const char *)named.p, named.len);
	ret->failed |= named.failed;
	buf_free(&named);
}

void secrets_path(const char *path, char *buf, size_t cap)
{
	struct buf b = { 0 };

	put_without_ids(&b, path, strlen(path));
	buf_put(&b, "", 1);
	snprintf(buf, cap, "%s", b.failed ? "" : (const char *)b.p);
	buf_free(&b);
}
