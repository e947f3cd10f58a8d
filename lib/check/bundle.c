/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/bundle.h"
#include "base/loader.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pwd.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

struct text {
	const char *p;
	size_t len;
};

/* Remove the next line from T; LINE is without its newline. False at the end. */
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

/* Keep what decides about privileges; drop the names and numbers of processes. */
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

/* Keep the kernel's own file systems; disks, servers and users' directories are private. */
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

/* Keep the kernel parameters that affect tracing; drop the others with their names. */
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

/* Keep only whether addresses are shown. */
static void kallsyms(struct text t, struct buf *ret, char *note, size_t cap)
{
	struct text line;
	bool shown = false;

	while (!shown && next_line(&t, &line))
		shown = line.len > 16 && strspn(line.p, "0") < 16;
	buftext_str(ret, shown ? "ffffffff81000000 T _stext\n" : "0000000000000000 T _stext\n");
	snprintf(note, cap, "one line that says whether addresses are shown; no address");
}

/* The length of the run of hexadecimal digits at P. */
static size_t digits(const char *p, size_t left)
{
	size_t n = 0;

	while (n < left && isxdigit((unsigned char)p[n]))
		n++;
	return n;
}

/* Whether the RUN of digits at P is an id in a path, as in those of cgroups. Build IDs are not secret. */
static bool is_id(const char *text, const char *p, size_t run)
{
	static const char build[] = ".build-id/";
	const size_t len = sizeof(build) - 1;

	if (run < 12 || p == text || (p[-1] != '/' && p[-1] != '-'))
		return false;
	/* .build-id/6e/cd6e... */
	return (size_t)(p - text) < len + 3 || memcmp(p - len - 3, build, len) != 0;
}

/* Replace the digits of container, user and session ids by zeroes; the name of the runtime stays. */
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

/* Whether NAME identifies anything: replacing a common word would garble a text. */
static bool identifies(const char *name)
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
	if (name && identifies(name))
		snprintf(to, cap, "%s", name);
}

void secrets_names(struct secrets_names *ret)
{
	const char *sudo = getenv("SUDO_USER"), *home = getenv("HOME");
	const struct passwd *pw = loader_user(getuid());
	struct utsname u;

	*ret = (struct secrets_names){ 0 };
	if (uname(&u) == 0)
		take(ret->host, sizeof(ret->host), u.nodename);
	take(ret->user, sizeof(ret->user), sudo ? sudo : pw ? pw->pw_name : NULL);
	if (home && strcmp(home, "/root") != 0)
		take(ret->home, sizeof(ret->home), home);
}

/* Whether NAME is at P, and not part of a longer word. */
static bool is_word(const char *text, const char *p, size_t left, const char *name)
{
	size_t len = strlen(name);

	return len && left >= len && memcmp(p, name, len) == 0 &&
	       (p == text || !isalnum((unsigned char)p[-1])) &&
	       (left == len || !isalnum((unsigned char)p[len]));
}

/* The length of the login (name and password) if P is at the "://" of a URL with one; 0 = none. */
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

/* The name of PATH in the bundle, with ids replaced by zeroes; BUF has CAP bytes. */
static void secrets_path(const char *path, char *buf, size_t cap)
{
	struct buf b = { 0 };

	put_without_ids(&b, path, strlen(path));
	buf_put(&b, "", 1);
	snprintf(buf, cap, "%s", b.failed ? "" : (const char *)b.p);
	buf_free(&b);
}

#define BLOCK 512

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8];
	char type;
	char link[100];
	char magic[6], version[2], uname[32], gname[32], major[8], minor[8], prefix[155], pad[12];
};

_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

static int set_name(struct header *h, const char *name, struct err *e)
{
	size_t len = strlen(name), cut = 0;

	if (len <= sizeof(h->name)) {
		memcpy(h->name, name, len);
		return 0;
	}
	/* the last slash at which both parts fit */
	for (size_t i = 0; i < len && i <= sizeof(h->prefix); i++)
		if (name[i] == '/' && len - i - 1 <= sizeof(h->name))
			cut = i;
	if (!cut)
		return err_set(e, -ENAMETOOLONG, "the name '%s' is too long for an archive", name);
	memcpy(h->prefix, name, cut);
	memcpy(h->name, name + cut + 1, len - cut - 1);
	return 0;
}

static void put_octal(char *field, size_t size, uint64_t value)
{
	field[size - 1] = '\0';
	for (size_t i = size - 1; i-- > 0; value >>= 3)
		field[i] = (char)('0' + (value & 7));
}

static int put_header(
	struct tarfile *t, const char *name, char type, const char *target, uint64_t len, struct err *e)
{
	struct header h = {
		.type = type, .magic = "ustar", .version = { '0', '0' }, .uname = "root", .gname = "root"
	};
	const unsigned char *bytes = (const void *)&h;
	unsigned int sum = 0;
	int rc = set_name(&h, name, e);

	if (!rc && strlen(target) > sizeof(h.link))
		rc = err_set(e, -ENAMETOOLONG, "the link '%s' is too long for an archive", name);
	if (rc)
		return rc;
	memcpy(h.link, target, strlen(target));
	put_octal(h.mode, sizeof(h.mode), 0644);
	put_octal(h.uid, sizeof(h.uid), 0);
	put_octal(h.gid, sizeof(h.gid), 0);
	put_octal(h.size, sizeof(h.size), len);
	put_octal(h.mtime, sizeof(h.mtime), t->time);
	/* the checksum is calculated with spaces in its own field */
	memset(h.sum, ' ', sizeof(h.sum));
	for (size_t i = 0; i < sizeof(h); i++)
		sum += bytes[i];
	put_octal(h.sum, sizeof(h.sum) - 1, sum);
	out_put(t->o, &h, sizeof(h));
	return 0;
}

int tarfile_put(struct tarfile *t, const char *name, const void *bytes, size_t len, struct err *e)
{
	static const char zeroes[BLOCK];
	int rc = put_header(t, name, '0', "", len, e);

	if (rc)
		return rc;
	out_put(t->o, bytes, len);
	out_put(t->o, zeroes, (BLOCK - len % BLOCK) % BLOCK);
	return 0;
}

int tarfile_link(struct tarfile *t, const char *name, const char *target, struct err *e)
{
	return put_header(t, name, '2', target, 0, e);
}

void tarfile_end(struct tarfile *t)
{
	static const char zeroes[2 * BLOCK];

	out_put(t->o, zeroes, sizeof(zeroes));
}

#define TOP "bpfcheck-bundle/"
#define FILE_MAX (64u << 20) /* bytes per file; BTF has about six million */

static void note_path(void *ctx, const char *path)
{
	struct bundle *b = ctx;
	char *copy;

	for (size_t i = 0; i < b->n; i++)
		if (strcmp(b->paths[i], path) == 0)
			return;
	copy = strdup(path);
	if (!copy || base_grow(&b->paths, &b->cap, b->n + 1, sizeof(*b->paths)) != 0) {
		free(copy);
		b->failed = true;
		return;
	}
	b->paths[b->n++] = copy;
}

void bundle_watch(struct bundle *b, struct root *r)
{
	r->requested = note_path;
	r->requested_ctx = b;
}

void bundle_free(struct bundle *b)
{
	for (size_t i = 0; i < b->n; i++)
		free(b->paths[i]);
	free(b->paths);
	*b = (struct bundle){ 0 };
}

struct writing {
	struct tarfile tar;
	const struct root *root;
	struct buf *list;
	struct err *e;
};

static void list_line(struct buf *list, const char *path, size_t len, const char *note)
{
	size_t at = strlen(path);

	buftext_escaped(list, path, TEXT_LINE);
	for (; at < 44; at++)
		buftext_str(list, " ");
	buftext_printf(list, " %9zu bytes", len);
	buftext_printf(list, "%s%s\n", *note ? ", " : "", note);
}

static void list_excluded(struct buf *list, const char *path, const char *why)
{
	size_t at = strlen(path);

	buftext_escaped(list, path, TEXT_LINE);
	for (; at < 44; at++)
		buftext_str(list, " ");
	buftext_printf(list, " left out: %s\n", why);
}

static int put(struct writing *w, const char *path, const void *bytes, size_t len)
{
	char name[512];

	if (snprintf(name, sizeof(name), TOP "%s", path) >= (int)sizeof(name))
		return err_set(w->e, -ENAMETOOLONG, "the name '%s' is too long for an archive", path);
	return tarfile_put(&w->tar, name, bytes, len, w->e);
}

static int put_link(struct writing *w, const char *path)
{
	char target[128], name[512];
	int rc;

	if (!root_link(w->root, path, target, sizeof(target)))
		return 0;
	snprintf(name, sizeof(name), TOP "%s", path);
	rc = tarfile_link(&w->tar, name, target, w->e);
	if (!rc)
		list_line(w->list, path, strlen(target), "a link");
	return rc;
}

/* A missing file is skipped: it is missing in the unpacked tree too. */
static int put_file(struct writing *w, const char *path)
{
	_cleanup_free_ char *text = NULL;
	struct buf out = { 0 };
	struct err why = { 0 };
	char note[128], name[512];
	size_t len = 0;
	int rc;

	secrets_path(path, name, sizeof(name));
	if (fnmatch("proc/self/ns/*", path, 0) == 0)
		return put_link(w, path);
	rc = root_read(w->root, path, FILE_MAX, &text, &len, &why);
	if (rc == -ENOENT || rc == -EISDIR)
		return 0;
	if (rc) {
		list_excluded(w->list, name, "it cannot be read");
		return 0;
	}
	if (!secrets_filter(path, text, len, &out, note, sizeof(note))) {
		list_excluded(w->list, name, "no rule says what of it may leave the machine");
		return 0;
	}
	rc = out.failed ? err_nomem(w->e, path) : put(w, name, out.p, out.len);
	if (!rc)
		list_line(w->list, name, out.len, note);
	buf_free(&out);
	return rc;
}

static int put_text(struct writing *w, const struct secrets_names *names, const struct bundle_text *t)
{
	struct buf out = { 0 };
	int rc;

	secrets_scrub(names, t->text, t->len, &out);
	rc = out.failed ? err_nomem(w->e, t->name) : put(w, t->name, out.p, out.len);
	if (!rc)
		list_line(w->list, t->name, out.len, "");
	buf_free(&out);
	return rc;
}

static int put_all(struct writing *w, const struct bundle *b, const struct bundle_text *texts, size_t n)
{
	struct secrets_names names;
	int rc = b->failed ? err_nomem(w->e, "the list of files") : 0;

	secrets_names(&names);
	for (size_t i = 0; i < n && !rc; i++)
		rc = put_text(w, &names, &texts[i]);
	for (size_t i = 0; i < b->n && !rc; i++)
		rc = put_file(w, b->paths[i]);
	if (!rc && w->list->failed)
		rc = err_nomem(w->e, "the list of contents");
	if (!rc)
		rc = put(w, "CONTENTS", w->list->p, w->list->len);
	if (!rc)
		tarfile_end(&w->tar);
	return rc;
}

static int open_new(const char *file, struct err *e)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	fd = err_sys(e, -errno, "cannot create '%s'", file);
	if (fd == -EEXIST)
		err_hint(e, "choose a name that is free: nothing is written over");
	return fd;
}

static int refuse_terminal(struct err *e)
{
	if (!isatty(STDOUT_FILENO))
		return STDOUT_FILENO;
	err_set(e, -EINVAL, "an archive is not written to a terminal");
	err_hint(e, "give the name of a file");
	return -EINVAL;
}

int bundle_write(const struct bundle *b, const struct root *r, const struct bundle_text *texts, size_t n,
	const char *file, struct buf *list, struct err *e)
{
	bool to_stdout = strcmp(file, "-") == 0;
	int fd = to_stdout ? refuse_terminal(e) : open_new(file, e), rc;
	struct out out;
	struct writing w = {
		.tar = { .o = &out, .time = (uint64_t)time(NULL) }, .root = r, .list = list, .e = e
	};

	if (fd < 0)
		return fd;
	rc = out_init(&out, fd, e);
	if (!rc) {
		rc = put_all(&w, b, texts, n);
		if (!rc) {
			rc = out_flush(&out, e);
			if (rc)
				err_prefix(e, "cannot write the bundle");
		}
		out_free(&out);
	}
	if (!to_stdout && close(fd) != 0 && !rc)
		rc = err_sys(e, -errno, "cannot write '%s'", file);
	if (rc && !to_stdout)
		unlink(file);
	return rc;
}
