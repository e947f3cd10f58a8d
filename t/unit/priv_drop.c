/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "system/drop.h"
#include "system/privileges.h"
#include "system/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define BIT(cap) (UINT64_C(1) << (cap))

static char dir[] = "/tmp/unit-priv_drop.XXXXXX";

static bool own_status(struct priv_status *st)
{
	char text[8192];
	_cleanup_close_ int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	text[n < 0 ? 0 : n] = '\0';
	return priv_status_parse(text, st) == 0;
}

/* Run the tests of FN in a child process, because they drop its privileges. */
static void in_child(struct tap *t, void (*fn)(struct tap *t))
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct tap mine = { .run = t->run };

		fn(&mine);
		fflush(stdout);
		_exit(mine.failed ? 1 : (int)(mine.run - t->run) + 1);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) > 1)
		t->run += (unsigned int)WEXITSTATUS(status) - 1;
	else
		t->failed++;
}

static void everything(struct tap *t)
{
	struct priv_status st = { 0 };
	struct priv_drop d;
	struct err e;

	tap_ok(t, priv_drop_now(&(struct priv_drop_opts){ 0 }, &d, &e) == 0 && !d.kept && d.bounding,
		"all privileges are dropped");
	tap_ok(t, own_status(&st) && !st.permitted && !st.effective && !st.inheritable && !st.ambient,
		"/proc says that no capability is left");
	tap_ok(t, !st.bounding && st.no_new_privs == 1, "/proc says that an exec cannot give a capability");
	tap_ok(t, priv_drop_now(&(struct priv_drop_opts){ 0 }, &d, &e) == 0 && !d.kept && !d.bounding,
		"dropping again succeeds, but cannot empty the bounding set");
}

static void some(struct tap *t)
{
	const uint64_t keep = BIT(CAP_BPF) | BIT(CAP_PERFMON);
	struct priv_status st = { 0 };
	struct buf b = { 0 };
	struct priv_drop d;
	struct err e;

	tap_ok(t, priv_drop_now(&(struct priv_drop_opts){ .keep = keep }, &d, &e) == 0 && d.kept == keep,
		"two capabilities are kept");
	tap_ok(t, own_status(&st) && st.permitted == keep && st.effective == keep && !st.bounding,
		"/proc says that only the kept capabilities are left");
	priv_drop_put(&d, &b);
	buf_put(&b, "", 1);
	tap_ok(t, strncmp((char *)b.p, "kept: CAP_PERFMON, CAP_BPF, none to be had, ", 44) == 0,
		"the report names the kept capabilities: %s", (char *)b.p);
	buf_free(&b);
}

static int try_write(const char *name)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static void writing(struct tap *t)
{
	char cache[64], byte;
	const char *const writable[] = { "/dev/null", NULL, "/no/such/folder", cache };
	const struct priv_drop_opts o = { .writable = writable, .n_writable = ARRAY_LEN(writable) };
	struct priv_drop d;
	int open_fd, fd;

	snprintf(cache, sizeof(cache), "%s/cache", dir);
	mkdir(cache, 0700);
	tap_eq_u64(t, try_write("before"), 0, "a file can be created before the drop");
	snprintf(cache, sizeof(cache), "%s/before", dir);
	open_fd = open(cache, O_RDWR | O_CLOEXEC);
	snprintf(cache, sizeof(cache), "%s/cache", dir);
	tap_ok(t, priv_drop_now(&o, &d, NULL) == 0 && d.landlock == pathlock_version(),
		"write access to other paths is dropped");
	if (!d.landlock) {
		tap_skip(t, "no file can be written", "this kernel has no Landlock");
		return;
	}
	tap_eq_u64(t, try_write("after"), -EACCES,
		"no file can be created after the drop, even in root's directory");
	tap_eq_u64(t, try_write("before"), -EACCES, "no file can be opened for writing after the drop");
	tap_eq_u64(t, try_write("cache/x"), 0, "a file can be created below a writable path");
	snprintf(cache, sizeof(cache), "%s/cache/x", dir);
	tap_ok(t, rename(cache, dir) != 0 && unlink(cache) == 0,
		"a file below a writable path can be removed, but not moved out");
	tap_ok(t, pwrite(open_fd, "x", 1, 0) == 1, "a file that was opened before the drop can be written");
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	tap_ok(t, fd >= 0, "/dev/null can be written after the drop");
	fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	tap_ok(t, fd >= 0 && read(fd, &byte, 1) == 1, "a file can be read after the drop");
	fd = open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC);
	tap_ok(t, fd < 0, "a kernel setting cannot be written after the drop");
}

static void *sleeps(void *ctx)
{
	usleep(*(useconds_t *)ctx);
	return NULL;
}

static void threads(struct tap *t)
{
	useconds_t soon = 50000, never = 100000000;
	pthread_t thread;
	struct priv_drop d;

	pthread_create(&thread, NULL, sleeps, &soon);
	tap_ok(t, priv_drop_now(&(struct priv_drop_opts){ 0 }, &d, NULL) == 0 && !d.kept,
		"the drop waits for a thread that still has privileges");
	pthread_create(&thread, NULL, sleeps, &never);
	tap_ok(t, priv_drop_now(&(struct priv_drop_opts){ 0 }, &d, NULL) == 0 && !d.kept,
		"a thread that started after the drop has no privileges");
}

static void a_thread_stays(struct tap *t)
{
	useconds_t never = 100000000;
	pthread_t thread;
	struct priv_drop d;

	pthread_create(&thread, NULL, sleeps, &never);
	tap_ok(t, priv_drop_now(&(struct priv_drop_opts){ 0 }, &d, NULL) == 0 && (d.kept & BIT(CAP_BPF)),
		"the privileges that a running thread still has are reported as kept");
}

static void a_program(struct tap *t)
{
	struct priv_drop d;
	pid_t pid;
	int status = -1;

	priv_drop_now(&(struct priv_drop_opts){ 0 }, &d, NULL);
	pid = fork();
	if (pid == 0) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(100);
	}
	waitpid(pid, &status, 0);
	if (d.landlock)
		tap_ok(t, WIFEXITED(status) && WEXITSTATUS(status) == 100, "no program can be executed");
	else
		tap_skip(t, "no program can be executed", "this kernel has no Landlock");
}

int main(void)
{
	struct tap t = { 0 };
	char command[96];

	if (geteuid() != 0 || !priv_have(CAP_SETPCAP)) {
		printf("1..0 # SKIP needs root\n");
		return 0;
	}
	if (!mkdtemp(dir))
		abort();
	in_child(&t, everything);
	in_child(&t, some);
	in_child(&t, writing);
	in_child(&t, threads);
	in_child(&t, a_thread_stays);
	in_child(&t, a_program);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	tap_ok(&t, system(command) == 0, "the parent, which dropped nothing, can remove the directory");
	return tap_done(&t);
}
