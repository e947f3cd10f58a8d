/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tap.h"
#include "tracefs.h"

#include <errno.h>
#include <string.h>

static void read_mounts(char *buf, size_t cap)
{
	FILE *f = fopen("/proc/self/mounts", "re");
	size_t n = f ? fread(buf, 1, cap - 1, f) : 0;

	buf[n] = '\0';
	if (f)
		fclose(f);
}

int main(void)
{
	static char before[65536], after[65536];
	struct tap t = { 0 };
	struct err e;
	int id, other;

	read_mounts(before, sizeof(before));
	id = tracefs_event_id("raw_syscalls/sys_enter", &e);
	if (id == -EPERM || id == -EACCES || id == -ENODEV) {
		tap_ok(&t, e.msg[0], "a refusal has a story");
		tap_skip(&t, "ids of tracepoints", "%s", e.msg);
		return tap_done(&t);
	}
	tap_ok(&t, id > 0, "a tracepoint has a positive id");
	other = tracefs_event_id("raw_syscalls/sys_exit", &e);
	tap_ok(&t, other > 0 && other != id, "another tracepoint has another");
	tap_eq_u64(&t, (uint64_t)tracefs_event_id("raw_syscalls/sys_enter", NULL), (uint64_t)id,
		"asked again it is the same");
	tap_eq_u64(&t, (uint64_t)-tracefs_event_id("raw_syscalls/no_such", &e), ENOENT,
		"a tracepoint that does not exist is -ENOENT");
	tap_eq_str(&t, e.msg, "this kernel has no tracepoint 'raw_syscalls/no_such'", "named in the story");
	read_mounts(after, sizeof(after));
	tap_eq_str(&t, after, before, "nothing was mounted that anybody sees");
	return tap_done(&t);
}
