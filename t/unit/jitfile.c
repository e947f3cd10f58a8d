/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/clock.h"
#include "base/tap.h"
#include "record/jit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define SECOND UINT64_C(1000000000)

static char path[64];

/* Write TEXT to the perf map of this process. */
static void make(const char *text)
{
	FILE *f;

	unlink(path);
	f = fopen(path, "w");
	if (f) {
		fputs(text, f);
		fclose(f);
	}
}

static void opening(struct tap *t, const struct jitfile_owner *o)
{
	struct jitfile_owner gone = *o;
	struct stat st;
	int fd;

	unlink(path);
	tap_ok(t, jitfile_map(o, &st) == -ENOENT, "a process that wrote no map is -ENOENT");
	make("1000 10 a\n");
	fd = jitfile_map(o, &st);
	tap_ok(t, fd >= 0 && st.st_size == 10, "the map of a process is found through its root");
	close(fd);
	gone.pid = 4194304;
	tap_ok(t, jitfile_map(&gone, &st) < 0, "the map of a missing process is not found");
	gone.end_ns = now_ns();
	fd = jitfile_map(&gone, &st);
	tap_ok(t, fd >= 0, "the map of a process that ended is found in our /tmp if it shared that");
	close(fd);
	gone.shares_tmp = false;
	tap_ok(t, jitfile_map(&gone, &st) == -ENOENT,
		"the map of a process that ended is not found if it had another /tmp");
	unlink(path);
	tap_ok(t, symlink("/etc/passwd", path) == 0 && jitfile_map(o, &st) == -EMEDIUMTYPE,
		"a symbolic link is refused");
	unlink(path);
	tap_ok(t, mkfifo(path, 0600) == 0 && jitfile_map(o, &st) == -EMEDIUMTYPE, "a FIFO is refused");
	unlink(path);
	tap_ok(t, mkdir(path, 0700) == 0 && jitfile_map(o, &st) == -EMEDIUMTYPE, "a directory is refused");
	rmdir(path);
}

static void owners(struct tap *t, struct jitfile_owner o)
{
	struct stat st = { .st_uid = 1000 };
	struct err e = { 0 };

	clock_gettime(CLOCK_REALTIME, &st.st_mtim);
	o.uid = 1000;
	tap_ok(t, jitfile_check(&o, &st, &e) == 0, "a file of the process's user is accepted");
	st.st_uid = 0;
	tap_ok(t, jitfile_check(&o, &st, &e) == 0, "a file of root is accepted");
	st.st_uid = 1001;
	tap_ok(t, jitfile_check(&o, &st, &e) == -EPERM && strstr(e.msg, "1001"),
		"a file of another user is refused: %s", e.msg);
	o.uid = 0;
	tap_ok(t, jitfile_check(&o, &st, &e) == -EPERM,
		"a file of another user is refused also for a process of root");
}

static void times(struct tap *t, struct jitfile_owner o)
{
	struct stat st = { .st_uid = 0 };
	struct err e = { 0 };

	clock_gettime(CLOCK_REALTIME, &st.st_mtim);
	st.st_mtim.tv_sec -= 100;
	tap_ok(t, jitfile_check(&o, &st, &e) == 0,
		"if the start of the process is unknown, any time is accepted");
	o.start_boot_ns = now_on(CLOCK_BOOTTIME) - 200 * SECOND;
	tap_ok(t, jitfile_check(&o, &st, &e) == 0, "a file written while the process lived is accepted");
	o.start_boot_ns += 150 * SECOND;
	tap_ok(t, jitfile_check(&o, &st, &e) == -ESTALE,
		"a file written before the process began is refused: %s", e.msg);
	o.start_boot_ns -= 150 * SECOND;
	o.end_ns = now_ns() - 50 * SECOND;
	tap_ok(t, jitfile_check(&o, &st, &e) == 0, "a file written before the process ended is accepted");
	o.end_ns -= 100 * SECOND;
	tap_ok(t, jitfile_check(&o, &st, &e) == -ESTALE,
		"a file written after the process ended is refused: %s", e.msg);
}

int main(void)
{
	struct tap t = { 0 };
	struct jitfile_owner o = { 0 }, none = { 0 };

	tap_ok(&t, jitfile_owner((uint32_t)getpid(), &o) && o.uid == geteuid() && o.pid == (uint32_t)getpid(),
		"the owner of a map has the user and PID of the process");
	tap_ok(&t, o.shares_tmp && o.ns_pid, "this process shares our /tmp and has a PID in its namespace");
	tap_ok(&t, !jitfile_owner(4194304, &none), "a missing process has no owner");
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", o.ns_pid);
	opening(&t, &o);
	owners(&t, (struct jitfile_owner){ .pid = o.pid });
	times(&t, (struct jitfile_owner){ .pid = o.pid });
	o.ns_pid = 42;
	tap_ok(&t,
		jitfile_is_dump(&o, "/some/where/jit-42.dump") && !jitfile_is_dump(&o, "/jit-43.dump") &&
			!jitfile_is_dump(&o, "/xjit-42.dump") && !jitfile_is_dump(&o, "/jit-42.dumpling"),
		"a jitdump file is recognized by its name");
	return tap_done(&t);
}
