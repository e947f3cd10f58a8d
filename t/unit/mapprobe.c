/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "../lib/self.h"
#include "base/tap.h"
#include "check/probes.h"
#include "system/privileges.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <string.h>

static const struct {
	probe_fn fn;
	const char *want;
} maps[] = { { mapprobe_plain, "can be created" }, { mapprobe_ring, "created and mapped" },
	{ mapprobe_mmapable, "written through memory" }, { mapprobe_map_in_map, "into another" },
	{ mapprobe_task_storage, "keeps what is put" }, { mapprobe_memlock, "do not count" } };

/* Why the kernel cannot have FN's map, by libbpf's probes; NULL = it can. */
static const char *lacks(probe_fn fn)
{
	return fn == mapprobe_task_storage && libbpf_probe_bpf_map_type(BPF_MAP_TYPE_TASK_STORAGE, NULL) != 1
		       ? "this kernel has no task storage"
		       : NULL;
}

/* Maps count against RLIMIT_MEMLOCK before Linux 5.11, which also introduced this helper. */
static bool memory_counts(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_SOCKET_FILTER, BPF_FUNC_ktime_get_coarse_ns, NULL) != 1;
}

static void test_here(struct tap *t)
{
	bool counts = memory_counts();
	size_t before = self_open_files();

	for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
		char found[256] = "";
		const char *want = maps[i].want;
		struct err e = { 0 };
		int rc = maps[i].fn(found, sizeof(found), &e);

		if (lacks(maps[i].fn)) {
			tap_skip(t, want, "%s", lacks(maps[i].fn));
			continue;
		}
		if (maps[i].fn == mapprobe_memlock && counts)
			want = "maps count";
		if (!tap_ok(t, rc == 0 && strstr(found, want), "the probe of a map succeeds and reports '%s'",
			    want))
			tap_diag("%d %s%s", rc, found, e.msg);
	}
	tap_eq_u64(t, self_open_files(), before, "no descriptor is left open by the probes");
}

/* As user nobody: the number of probes that are not refused with a message; 100 on failure. */
static int as_nobody(void)
{
	int granted = 0;

	if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)
		return 100;
	for (size_t i = 0; i < ARRAY_LEN(maps) - 1; i++) {
		char found[256] = "";
		struct err e = { 0 };
		int rc = maps[i].fn(found, sizeof(found), &e);

		granted += rc != -EPERM || !strstr(e.msg, "cannot ");
	}
	return granted;
}

static void test_nobody(struct tap *t)
{
	if (geteuid() != 0) {
		tap_skip(t, "without capabilities each map is refused, with a message", "not root");
		return;
	}
	tap_eq_u64(t, self_apart(as_nobody), 0, "without capabilities each map is refused, with a message");
}

int main(void)
{
	const int caps[] = { CAP_BPF, CAP_PERFMON };
	struct tap t = { 0 };
	char why[128];

	libbpf_set_print(NULL);

	if (priv_missing(caps, ARRAY_LEN(caps), why, sizeof(why)))
		tap_skip(&t, "kinds of maps", "%s", why);
	else
		test_here(&t);
	test_nobody(&t);
	return tap_done(&t);
}
