/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "check/probes.h"

#include <errno.h>
#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Install a filter such as those of container runtimes: NR gets VERDICT. */
static bool filter(long nr, uint32_t verdict)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, verdict),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = ARRAY_LEN(code), .filter = code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) == 0;
}

struct kind {
	const char *name;
	bool nobody; /* without privileges */
	long nr; /* 0 = no filter */
	uint32_t verdict;
	probe_fn fn;
	int code;
	const char *says;
};

static const struct kind kinds[] = {
	{ "bpf: no filter", false, 0, 0, callprobe_bpf, 0, "no filter" },
	{ "perf: no filter", false, 0, 0, callprobe_perf, 0, "no filter" },
	{ "perf: no filter, as nobody", true, 0, 0, callprobe_perf, 0, "no filter" },
	{ "bpf: EPERM by a filter", false, SYS_bpf, SECCOMP_RET_ERRNO | EPERM, callprobe_bpf, -EPERM,
		"bpf() is forbidden by a seccomp filter" },
	{ "bpf: ENOSYS by a filter", false, SYS_bpf, SECCOMP_RET_ERRNO | ENOSYS, callprobe_bpf, -EPERM,
		"bpf() is forbidden by a seccomp filter" },
	{ "bpf: EACCES by a filter", false, SYS_bpf, SECCOMP_RET_ERRNO | EACCES, callprobe_bpf, -EPERM,
		"bpf() is forbidden by a seccomp filter" },
	{ "bpf: a filter that kills", false, SYS_bpf, SECCOMP_RET_TRAP, callprobe_bpf, -EPERM,
		"killed by signal 31 (SYS)" },
	{ "perf: EPERM by a filter", false, SYS_perf_event_open, SECCOMP_RET_ERRNO | EPERM, callprobe_perf,
		-EPERM, "perf_event_open() is forbidden by a seccomp filter" },
	{ "perf: EPERM by a filter, as nobody", true, SYS_perf_event_open, SECCOMP_RET_ERRNO | EPERM,
		callprobe_perf, -EPERM, "perf_event_open() is forbidden by a seccomp filter" },
	{ "perf: ENOSYS by a filter", false, SYS_perf_event_open, SECCOMP_RET_ERRNO | ENOSYS, callprobe_perf,
		-EPERM, "perf_event_open() is forbidden by a seccomp filter" },
	{ "perf: EACCES by a filter", false, SYS_perf_event_open, SECCOMP_RET_ERRNO | EACCES, callprobe_perf,
		-EPERM, "perf_event_open() is forbidden by a seccomp filter" },
	{ "perf: a filter that kills", false, SYS_perf_event_open, SECCOMP_RET_TRAP, callprobe_perf, -EPERM,
		"killed by signal 31 (SYS)" },
	{ "perf: a filter of bpf() does not apply to perf_event_open()", false, SYS_bpf,
		SECCOMP_RET_ERRNO | EPERM, callprobe_perf, 0, "no filter" },
};

/* Run in a child. Returns 0 if the probe reports what it should. */
static int run(const struct kind *k)
{
	char found[256] = "";
	struct err e = { 0 };
	int rc;

	if (k->nobody && (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0))
		return 100;
	if (k->nr && !filter(k->nr, k->verdict))
		return 101;
	rc = k->fn(found, sizeof(found), &e);
	if (rc == k->code && strstr(rc ? e.msg : found, k->says) && (!rc || strstr(e.hint, "seccomp")))
		return 0;
	printf("# %d '%s' '%s' '%s'\n", rc, found, e.msg, e.hint);
	fflush(stdout);
	return 1;
}

static int in_child(int (*fn)(const struct kind *), const struct kind *k)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(fn(k));
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* In a process without /proc not even `stat` can be read. */
static int without_proc(const struct kind *k)
{
	char found[256] = "";
	struct err e = { 0 };
	int rc;

	(void)k;
	if (chroot("/sys") != 0 || chdir("/") != 0)
		return 100;
	rc = callprobe_task_files(found, sizeof(found), &e);
	return rc == -ENOENT && strstr(e.msg, "not even procfs mode") && strstr(e.hint, "mount -t proc") ? 0
													 : 1;
}

static void test_files(struct tap *t)
{
	char found[256] = "";
	struct err e = { 0 };
	int rc = callprobe_task_files(found, sizeof(found), &e);

	if (!tap_ok(t, rc == 0 && strstr(found, "stat, status") && strstr(found, "wchan"),
		    "the files of an own thread can be read, and are named"))
		tap_diag("%d %s%s", rc, found, e.msg);
	if (geteuid() == 0)
		tap_ok(t, in_child(without_proc, NULL) == 0,
			"without /proc the error says that not even procfs mode works");
	else
		tap_skip(t, "without /proc the error says that not even procfs mode works", "not root");
}

int main(void)
{
	struct tap t = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (kinds[i].nobody && geteuid() != 0)
			tap_skip(&t, kinds[i].name, "not root");
		else
			tap_ok(&t, in_child(run, &kinds[i]) == 0, "%s", kinds[i].name);
	}
	test_files(&t);
	return tap_done(&t);
}
