/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Build IDs that are read by a process without privileges. */
#include "buildid.h"
#include "caps.h"
#include "idchild.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

static void test_confined(struct tap *t, pid_t pid)
{
	char path[64], text[8192] = "";
	struct caps_status st = { 0 };
	int fd, rc = -EIO;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		rc = caps_status_parse(text, &st);
	if (fd >= 0)
		close(fd);
	tap_ok(t, rc == 0 && !st.permitted && !st.effective && (!st.bounding || getuid() != 0) && !st.ambient,
		"it has no capability");
	tap_ok(t, st.no_new_privs == 1 && st.seccomp == 2,
		"nor can it get one, and its system calls are filtered");
}

int main(void)
{
	struct cap_build_id want = { 0 }, got = { 0 };
	struct idchild c = { .sock = -1 };
	int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), none = memfd_create("none", MFD_CLOEXEC), rc;
	struct tap t = { 0 };
	struct err e;

	tap_ok(&t, exe >= 0 && buildid_read(exe, &want) == 0 && want.len, "this program has a build ID");
	rc = idchild_start(&c, &e);
	tap_ok(&t, rc == 0, "a process is begun");
	if (rc) {
		tap_diag("%s", e.msg);
		return tap_done(&t);
	}
	test_confined(&t, c.pid);
	rc = idchild_read(&c, exe, &got);
	tap_ok(&t, rc == 0 && got.len == want.len && memcmp(got.bytes, want.bytes, want.len) == 0,
		"it reads the same one");
	rc = idchild_read(&c, none, &got);
	tap_ok(&t, rc == 0 && got.len == 0, "a file without one has none");
	for (int i = 0; i < 200; i++)
		rc |= idchild_read(&c, exe, &got);
	tap_ok(&t, rc == 0 && got.len == want.len, "two hundred files leave no descriptor behind");
	kill(c.pid, SIGKILL);
	rc = idchild_read(&c, exe, &got);
	tap_ok(&t, rc == -ECHILD && got.len == 0, "its end costs one file");
	rc = idchild_read(&c, exe, &got);
	tap_ok(&t, rc == 0 && got.len == want.len, "and it is begun again");
	for (int i = 0; i < 8 && c.pid; i++) {
		kill(c.pid, SIGKILL);
		idchild_read(&c, exe, &got);
		rc = idchild_read(&c, exe, &got);
	}
	tap_ok(&t, rc == -ECHILD && !c.pid, "a few times");
	idchild_stop(&c);
	tap_ok(&t, waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "nothing of it is left");
	return tap_done(&t);
}
