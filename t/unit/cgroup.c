/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests in the mounted hierarchies. They create cgroups if that is permitted, and remove them. */
#include "base/tap.h"
#include "system/container.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ID_A "aaaabbbbccccddddeeeeffff0000111122223333444455556666777788889999"

static char v2_point[PATH_MAX], v1_point[PATH_MAX], named_point[PATH_MAX];

static int note_mount(void *ctx, const struct cgroup_mount *m)
{
	char *to = m->v2 ? v2_point : m->controller[0] ? v1_point : named_point;

	(void)ctx;
	/* not for tests: a mount of a subtree, and a place where cgroups cannot be created */
	if (!*to && strcmp(m->root, "/") == 0 && strcmp(m->controller, "cpuset") != 0 &&
		access(m->point, W_OK) == 0)
		snprintf(to, PATH_MAX, "%s", m->point);
	return 0;
}

/* Does C hold PID, according to /proc/PID/cgroup? */
static bool holds(const struct cgroup *c, uint32_t pid)
{
	char path[64], text[8192];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n < 0 ? 0 : n] = '\0';
	return cgroup_lists(c, text);
}

/* Text that is malformed or truncated is in no cgroup. */
static void texts(struct tap *t)
{
	const struct cgroup v2 = { .path = (char *)"/a/b" },
			    v1 = { .controller = "pids", .path = (char *)"/a" };
	static const struct {
		const char *text;
		bool v2, v1;
	} all[] = { { "0::/a/b\n", true, false }, { "0::/a/b/c d:e\n", true, false },
		{ "0::/a/bc\n", false, false }, { "0::/a/b", false, false }, { "", false, false },
		{ "\n\n", false, false }, { "0\n", false, false }, { "7:cpu,pids:/a\n0::/\n", false, true },
		{ "7:cpu,pidsx:/a\n0::/a/b\n", true, false }, { "0::/x\n0::/a/b\n", false, false },
		{ "8:pids:/a/../x\n", false, false }, { "8:pids:/a (deleted)\n", false, false } };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		char two[64], one[64];

		snprintf(two, sizeof(two), "%s", all[i].text);
		snprintf(one, sizeof(one), "%s", all[i].text);
		tap_ok(t, cgroup_lists(&v2, two) == all[i].v2 && cgroup_lists(&v1, one) == all[i].v1,
			"text %zu of /proc/PID/cgroup is in the cgroups that it names", i);
	}
}

static void names(struct tap *t)
{
	static const struct {
		const char *name, *id;
	} all[] = { { ID_A, ID_A }, { "docker-" ID_A ".scope", ID_A },
		{ "cri-containerd-" ID_A ".scope", ID_A }, { "libpod-" ID_A ".scope", ID_A },
		{ "libpod-" ID_A, ID_A }, { "crio-" ID_A ".scope", ID_A }, { "crio-" ID_A, ID_A },
		{ "lxc.payload.web", "web" }, { "machine-db.scope", "db" },
		{ "systemd-nspawn@db.service", "db" }, { "crio-conmon-" ID_A ".scope", NULL },
		{ "libpod-conmon-" ID_A ".scope", NULL }, { "lxc.monitor.web", NULL },
		{ "docker-" ID_A ".slice", NULL }, { "docker-" ID_A "0.scope", NULL }, { ID_A "0", NULL },
		{ "docker-AAAA" ID_A ".scope", NULL }, { "libpod_parent", NULL }, { "kubepods.slice", NULL },
		{ "kubepods-burstable-pod0b1c_2.slice", NULL }, { "docker-.scope", NULL }, { "", NULL },
		{ "machine-.scope", NULL }, { ".scope", NULL }, { "lxc.payload.", NULL } };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		size_t len;
		const char *id = container_id(all[i].name, &len);
		bool right =
			all[i].id ? id && len == strlen(all[i].id) && memcmp(id, all[i].id, len) == 0 : !id;

		tap_ok(t, right, "'%s' is %s", all[i].name,
			all[i].id ? "the name of a container" : "not the name of a container");
	}
}

static void refusals(struct tap *t)
{
	struct cgroup *c;
	struct err e = { 0 };

	tap_ok(t, cgroup_open("/tmp", &c, &e) == -EINVAL && strstr(e.msg, "is not a cgroup"),
		"a directory outside the hierarchies is not a cgroup");
	tap_ok(t, cgroup_open("/no/such", &c, &e) == -ENOENT && e.hint[0],
		"a path that does not exist is not a cgroup");
	tap_ok(t, cgroup_open("", &c, NULL) != 0 || (cgroup_close(c), true), "an empty path does no harm");
	tap_ok(t, container_open("", &c, &e) == -EINVAL, "an empty id is refused");
	tap_ok(t, container_open("a/b", &c, &e) == -EINVAL, "a path as id is refused");
	tap_ok(t, container_open("no such container", &c, &e) == -ENOENT && e.hint[0],
		"a container that does not exist is reported, with a hint");
	tap_ok(t, container_open("0123456", &c, &e) == -ENOENT && strstr(e.hint, "12 digits"),
		"an id with too few digits is reported");
}

/* Start a child that waits, in the cgroup of DIR. */
static pid_t child_in(const char *dir)
{
	char path[PATH_MAX + 32];
	pid_t pid = fork();
	FILE *f;

	if (pid == 0) {
		pause();
		_exit(0);
	}
	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	f = fopen(path, "we");
	if (f) {
		fprintf(f, "%d\n", (int)pid);
		fclose(f);
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Retries, because members that were killed take a moment to leave. */
static bool remove_dir(const char *dir)
{
	for (int i = 0; i < 100; i++) {
		if (rmdir(dir) == 0 || errno == ENOENT)
			return true;
		usleep(20000);
	}
	return false;
}

static void one(struct tap *t, const char *point, bool v2)
{
	char top[PATH_MAX], sub[PATH_MAX + 16], beside[PATH_MAX + 16];
	const char *what = v2 ? "v2" : "v1";
	struct cgroup *c = NULL;
	struct err e = { 0 };
	struct stat st;
	pid_t in, out;

	snprintf(top, sizeof(top), "%s/stacktools-unit.%d", point, (int)getpid());
	snprintf(sub, sizeof(sub), "%s/sub", top);
	snprintf(beside, sizeof(beside), "%s-beside", top);
	mkdir(top, 0755);
	mkdir(sub, 0755);
	mkdir(beside, 0755);
	in = child_in(sub);
	out = child_in(beside);
	if (tap_ok(t, cgroup_open(top, &c, &e) == 0, "%s: a cgroup is opened by its directory", what)) {
		/* on 64 bits the inode number is the id */
		tap_ok(t, stat(top, &st) == 0 && c->id == st.st_ino,
			"%s: the id of a cgroup is its inode number", what);
		tap_ok(t, !c->controller[0] == v2, "%s: the hierarchy of a cgroup is recognized", what);
		tap_eq_str(t, c->dir, top, "the directory of a cgroup is kept");
		tap_eq_str(t, c->path, top + strlen(point), "the path of a cgroup in its hierarchy is kept");
		tap_ok(t, holds(c, (uint32_t)in), "%s: a cgroup holds a process in a cgroup below it", what);
		tap_ok(t, !holds(c, (uint32_t)out),
			"%s: a cgroup does not hold a process of a sibling with the same prefix", what);
		tap_ok(t, !holds(c, 4194305), "%s: a cgroup does not hold a process that does not exist",
			what);
		tap_ok(t, !cgroup_removed(c), "%s: a cgroup that exists is not reported as removed", what);
	} else {
		tap_diag("%s", e.msg);
	}
	end(in);
	end(out);
	tap_ok(t, remove_dir(sub) && remove_dir(beside) && remove_dir(top),
		"%s: the directories of the cgroups can be removed", what);
	mkdir(top, 0755);
	tap_ok(t, c && cgroup_removed(c),
		"%s: a removed cgroup is reported as removed, even if another has its name", what);
	remove_dir(top);
	cgroup_close(c);
}

static void relative(struct tap *t)
{
	char top[2 * PATH_MAX], name[64];
	struct cgroup *c;
	struct err e = { 0 };

	snprintf(name, sizeof(name), "stacktools-unit.%d", (int)getpid());
	snprintf(top, sizeof(top), "%s/%s", v2_point, name);
	mkdir(top, 0755);
	if (tap_ok(t, cgroup_open(name, &c, &e) == 0,
		    "a path below the mount point of cgroup v2 is opened")) {
		tap_eq_str(t, c->dir, top, "a path below the mount point of cgroup v2 is that directory");
		cgroup_close(c);
	}
	snprintf(name, sizeof(name), "/stacktools-unit.%d", (int)getpid());
	if (tap_ok(t, cgroup_open(name, &c, &e) == 0,
		    "a path as /proc/PID/cgroup shows it, with a slash, is opened")) {
		tap_ok(t, holds(c, (uint32_t)getpid()) == false, "a new cgroup does not hold this process");
		cgroup_close(c);
	}
	if (tap_ok(t, cgroup_open("/", &c, &e) == 0, "/ is the root of cgroup v2")) {
		tap_ok(t, holds(c, (uint32_t)getpid()), "the root of cgroup v2 holds this process");
		cgroup_close(c);
	}
	remove_dir(top);
}

/* 64 digits that no other container has, from the PID and COUNT. */
static const char *made_id(unsigned int count)
{
	static char ids[8][CONTAINER_ID_LEN + 1];
	char *id = ids[count % 8];

	snprintf(id, CONTAINER_ID_LEN + 1, "%016x%08x%040x", (unsigned int)getpid(), 0xc0ffeeu, count);
	return id;
}

struct made {
	char dirs[64][PATH_MAX];
	size_t n;
};

/* Create the cgroup TOP/BEFORE ID AFTER and those above it. A cgroup's name cannot have a newline. */
static void make(struct made *m, const char *top, const char *before, const char *id, const char *after)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s%s%s", top, before, id, after);
	for (char *p = path + strlen(top); p && m->n < ARRAY_LEN(m->dirs);) {
		p = strchr(p + 1, '/');
		if (p)
			*p = '\0';
		if (mkdir(path, 0755) == 0)
			memcpy(m->dirs[m->n++], path, sizeof(path));
		if (p)
			*p = '/';
	}
}

static void finds(struct tap *t, const char *id, const char *want, const char *name)
{
	struct cgroup *c;
	struct err e = { 0 };

	if (!tap_ok(t, container_open(id, &c, &e) == 0, "%s is found", name)) {
		tap_diag("%s: %s", e.msg, e.hint);
		return;
	}
	if (!tap_ok(t, strstr(c->dir, want) != NULL, "the container is found where its runtime puts it"))
		tap_diag("%s", c->dir);
	cgroup_close(c);
}

static void containers(struct tap *t, const char *point)
{
	static const struct {
		const char *before, *after, *name;
	} all[] = { { "system.slice/docker-", ".scope", "a container of Docker by systemd" },
		{ "docker/", "", "a container of Docker by cgroupfs" },
		{ "kubepods.slice/pod1.slice/cri-containerd-", ".scope",
			"a container of Kubernetes with containerd" },
		{ "kubepods/besteffort/pod1/", "", "a container of Kubernetes by cgroupfs" },
		{ "default/", "", "a container of containerd" },
		{ "machine.slice/libpod-", ".scope/container", "a container of Podman" },
		{ "libpod_parent/libpod-", "", "a container of Podman by cgroupfs" },
		{ "kubepods.slice/crio-", ".scope", "a container of CRI-O" } };
	_cleanup_free_ struct made *m = calloc(1, sizeof(*m));
	char top[PATH_MAX], name[64];
	struct cgroup *c;
	struct err e = { 0 };

	snprintf(top, sizeof(top), "%s/stacktools-unit.%d", point, (int)getpid());
	mkdir(top, 0755);
	for (unsigned int i = 0; m && i < ARRAY_LEN(all); i++) {
		make(m, top, all[i].before, made_id(i), all[i].after);
		make(m, top, "machine.slice/libpod-conmon-", made_id(i), ".scope");
		make(m, top, "kubepods.slice/crio-conmon-", made_id(i), ".scope");
		finds(t, made_id(i), made_id(i), all[i].name);
	}
	snprintf(name, sizeof(name), "redis-%d", (int)getpid());
	make(m, top, "default/", name, "");
	finds(t, name, "/default/redis-", "a container of containerd with a name");
	make(m, top, "lxc.payload.", name + 1, "");
	finds(t, name + 1, "/lxc.payload.edis-", "a container of LXC");
	tap_ok(t, container_open("kubepods.slice", &c, &e) == -ENOENT, "a slice is not a container");

	/* all of them begin with the PID and the same eight digits */
	snprintf(name, sizeof(name), "%.20s", made_id(0));
	tap_ok(t, container_open(name, &c, &e) == -ENOTUNIQ && strstr(e.hint, made_id(1)),
		"the beginning of several ids is refused, and the hint lists them");
	make(m, top, "a/docker-", ID_A, ".scope");
	snprintf(name, sizeof(name), "%.12s", ID_A);
	finds(t, name, ID_A, "a container by the first twelve digits of its id");
	snprintf(name, sizeof(name), "%.11s", ID_A);
	tap_ok(t, container_open(name, &c, &e) == -ENOENT && strstr(e.hint, "12 digits"),
		"eleven digits of an id are not enough");
	make(m, top, "a/docker-" ID_A ".scope/docker/", ID_A, "");
	finds(t, ID_A, "/a/docker-" ID_A ".scope", "a container with a cgroup inside that has the same id");
	make(m, top, "lxc.payload.\033[2J\t", "x", "");
	finds(t, "\033[2J\tx", "lxc.payload.", "a container whose name has control characters");
	for (size_t i = m ? m->n : 0; i--;)
		remove_dir(m->dirs[i]);
	tap_ok(t, remove_dir(top), "the cgroup of the tests can be removed");
}

int main(void)
{
	struct tap t = { 0 };
	struct cgroup *c;
	struct err e = { 0 };

	texts(&t);
	names(&t);
	refusals(&t);
	if (cgroup_mounts(note_mount, NULL, NULL) != 0 || geteuid() != 0) {
		tap_skip(&t, "cgroups", "only root can create them");
		return tap_done(&t);
	}
	if (*v2_point) {
		one(&t, v2_point, true);
		relative(&t);
		containers(&t, v2_point);
	} else {
		tap_skip(&t, "cgroup v2", "it is not mounted here");
	}
	if (*v1_point) {
		one(&t, v1_point, false);
		containers(&t, v1_point);
	} else {
		tap_skip(&t, "cgroup v1", "no controller is mounted here");
	}
	if (*named_point)
		tap_ok(&t,
			cgroup_open(named_point, &c, &e) == -EINVAL && strstr(e.msg, "without controllers"),
			"a hierarchy without controllers is refused");
	else
		tap_skip(&t, "a named hierarchy", "none is mounted here");
	return tap_done(&t);
}
