/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define HANDLE_BYTES 8 /* of kernfs: the id */

/* All v1 controllers, named as in mount options. */
static const char *const controllers[] = { "memory", "pids", "cpu", "cpuacct", "cpuset", "blkio", "devices",
	"freezer", "net_cls", "net_prio", "perf_event", "hugetlb", "rdma", "misc", "debug" };

/* --- what is mounted --- */

static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = list; (p = strstr(p, word)); p += len)
		if ((p == list || p[-1] == ',') && (p[len] == ',' || !p[len]))
			return true;
	return false;
}

static void set_controller(char to[CGROUP_CONTROLLER_LEN], const char *options)
{
	*to = '\0';
	for (size_t i = 0; i < ARRAY_LEN(controllers) && !*to; i++)
		if (has_word(options, controllers[i]))
			snprintf(to, CGROUP_CONTROLLER_LEN, "%s", controllers[i]);
}

/* The fields of mountinfo escape spaces and similar characters as \040. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && strspn(s + 1, "01234567") >= 3) {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG...] - TYPE SOURCE OPTIONS */
static bool parse_mount(char *line, struct cgroup_mount *m)
{
	char *words[7] = { 0 }, *save, *type, *options;
	size_t n = 0;

	line[strcspn(line, "\n")] = '\0';
	options = strstr(line, " - ");
	if (!options)
		return false;
	*options = '\0';
	type = strtok_r(options + 3, " ", &save);
	m->v2 = type && strcmp(type, "cgroup2") == 0;
	if (!type || (!m->v2 && strcmp(type, "cgroup") != 0) || !strtok_r(NULL, " ", &save))
		return false;
	options = strtok_r(NULL, "", &save);
	for (char *w = strtok_r(line, " ", &save); w && n < 5; w = strtok_r(NULL, " ", &save))
		words[n++] = w;
	if (n < 5 || !options)
		return false;
	unescape(words[3]);
	unescape(words[4]);
	m->id = atoi(words[0]);
	m->root = words[3];
	m->point = words[4];
	set_controller(m->controller, m->v2 ? "" : options);
	return true;
}

int cgroup_mounts(int (*take)(void *ctx, const struct cgroup_mount *m), void *ctx, struct err *e)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/mountinfo", "re");
	_cleanup_free_ char *line = NULL;
	struct cgroup_mount m;
	size_t cap = 0;
	int rc = 0;

	if (!f)
		return err_sys(e, -errno, "cannot read '/proc/self/mountinfo'");
	while (!rc && getline(&line, &cap, f) > 0)
		if (parse_mount(line, &m))
			rc = take(ctx, &m);
	return rc;
}

/* --- which one it is --- */

/* Read the id of the directory at FD, and the id of its mount; 0 or -errno. */
static int read_id(int fd, uint64_t *id, int *mount)
{
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} u = { .h.handle_bytes = MAX_HANDLE_SZ };

	if (name_to_handle_at(fd, "", &u.h, mount, AT_EMPTY_PATH) != 0)
		return -errno;
	if (u.h.handle_bytes < HANDLE_BYTES)
		return -EINVAL;
	memcpy(id, u.h.f_handle, sizeof(*id));
	return 0;
}

struct place {
	struct cgroup *c;
	int mount; /* id of the mount that it is in */
	bool found;
};

/* If M is the mount, set the path: M's root and the part of the directory below M's mount point. */
static int set_path(void *ctx, const struct cgroup_mount *m)
{
	struct place *p = ctx;
	size_t len = strcmp(m->point, "/") == 0 ? 0 : strlen(m->point);
	const char *below = p->c->dir + len;

	if (m->id != p->mount)
		return 0;
	p->found = true;
	memcpy(p->c->controller, m->controller, sizeof(p->c->controller));
	if (strncmp(p->c->dir, m->point, len) != 0 || (*below && *below != '/'))
		below = "";
	if (asprintf(&p->c->path, "%s%s", strcmp(m->root, "/") == 0 && *below ? "" : m->root, below) < 0) {
		p->c->path = NULL;
		return -ENOMEM;
	}
	return 1;
}

static char *path_of_fd(int fd)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0 || *path != '/')
		return NULL;
	path[n] = '\0';
	return strdup(path);
}

/* Fill in C, whose fd is that of PATH, a directory of a cgroup file system. */
static int identify(struct cgroup *c, const char *path, bool v2, struct err *e)
{
	struct place p = { .c = c };
	int rc = read_id(c->fd, &c->id, &p.mount);

	if (rc)
		return err_sys(e, rc, "cannot find out the id of cgroup '%s'", path);
	c->dir = path_of_fd(c->fd);
	if (!c->dir)
		return err_set(e, -ENOENT, "cannot find out where cgroup '%s' is", path);
	rc = cgroup_mounts(set_path, &p, e);
	if (rc < 0)
		return rc == -ENOMEM ? err_nomem(e, "the cgroup") : rc;
	if (!p.found)
		return err_set(e, -ENOENT, "cannot find out where cgroup '%s' is mounted", path);
	if (v2 || c->controller[0])
		return 0;
	err_set(e, -EINVAL, "'%s' is in a hierarchy without controllers, which BPF programs do not see",
		path);
	err_hint(e, "give the same cgroup of cgroup v2, or of a controller's hierarchy");
	return -EINVAL;
}

/* --- where it is --- */

/* Whether FD is in a cgroup file system. */
static bool is_cgroup(int fd, bool *v2)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return false;
	*v2 = fs.f_type == CGROUP2_SUPER_MAGIC;
	return *v2 || fs.f_type == CGROUP_SUPER_MAGIC;
}

struct lookup {
	const char *path;
	int fd;
	char point[PATH_MAX]; /* mount point of cgroup v2, for the hint */
	int code; /* -errno of opening PATH, or 0 */
};

static int search_below(void *ctx, const struct cgroup_mount *m)
{
	struct lookup *l = ctx;
	char full[2 * PATH_MAX];

	if (!m->v2 || l->fd >= 0)
		return 0;
	if (!l->point[0])
		snprintf(l->point, sizeof(l->point), "%s", m->point);
	if ((size_t)snprintf(full, sizeof(full), "%s/%s", m->point, l->path) >= sizeof(full))
		return 0;
	l->fd = open(full, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return 0;
}

static int no_cgroup(const struct lookup *l, struct err *e)
{
	int code = l->code ? l->code : -EINVAL;

	if (l->code)
		err_sys(e, code, "cannot open cgroup '%s'", l->path);
	else
		err_set(e, code, "'%s' is not a cgroup: it is not in a cgroup file system", l->path);
	if (l->point[0])
		err_hint(e, "give a directory below '%s', or what /proc/PID/cgroup shows after '0::'",
			l->point);
	else
		err_hint(e,
			"give a directory of a cgroup file system; 'findmnt -t cgroup,cgroup2' lists them");
	return code;
}

static int find_dir(struct lookup *l, bool *v2, struct err *e)
{
	int rc;

	l->fd = open(l->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	l->code = l->fd < 0 ? -errno : 0;
	if (l->fd >= 0 && is_cgroup(l->fd, v2))
		return 0;
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	rc = cgroup_mounts(search_below, l, e);
	if (rc < 0)
		return rc;
	if (l->fd >= 0 && is_cgroup(l->fd, v2))
		return 0;
	return no_cgroup(l, e);
}

int cgroup_open(const char *path, struct cgroup **ret, struct err *e)
{
	struct lookup l = { .path = path, .fd = -1 };
	bool v2 = false;
	int rc = find_dir(&l, &v2, e);
	struct cgroup *c = rc ? NULL : calloc(1, sizeof(*c));

	if (!c) {
		if (l.fd >= 0)
			close(l.fd);
		return rc ? rc : err_nomem(e, "the cgroup");
	}
	c->fd = l.fd;
	rc = identify(c, path, v2, e);
	if (rc) {
		cgroup_close(c);
		return rc;
	}
	*ret = c;
	return 0;
}

void cgroup_close(struct cgroup *c)
{
	if (!c)
		return;
	close(c->fd);
	free(c->dir);
	free(c->path);
	free(c);
}

/* --- who is in it --- */

static bool is_below(const char *path, const char *top)
{
	size_t len = strcmp(top, "/") == 0 ? 0 : strlen(top);

	/* a cgroup outside of the cgroup namespace is shown relative to its root: "/.." */
	return strncmp(path, top, len) == 0 && (!path[len] || path[len] == '/') &&
	       strncmp(path + len, "/..", 3) != 0;
}

/* LINE is NUMBER:CONTROLLERS:PATH; *IN says whether PATH is in C. False: LINE is for another hierarchy. */
static bool is_of_ours(const struct cgroup *c, char *line, bool *in)
{
	char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

	if (!path)
		return false;
	*list++ = *path++ = '\0';
	if (c->controller[0] ? !has_word(list, c->controller) : strcmp(line, "0") != 0)
		return false;
	*in = is_below(path, c->path);
	return true;
}

bool cgroup_lists(const struct cgroup *c, char *text)
{
	bool in = false;

	for (char *end; (end = strchr(text, '\n')); text = end + 1) {
		*end = '\0';
		if (is_of_ours(c, text, &in))
			return in;
	}
	return false;
}

bool cgroup_removed(const struct cgroup *c)
{
	_cleanup_close_ int fd = openat(c->fd, "cgroup.procs", O_PATH | O_CLOEXEC);

	return fd < 0 && (errno == ENOENT || errno == ENODEV);
}
