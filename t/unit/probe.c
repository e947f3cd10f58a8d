/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "../lib/self.h"
#include "base/tap.h"
#include "check/probe.h"
#include "system/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int succeed(char *found, size_t cap, struct err *e)
{
	(void)e;
	snprintf(found, cap, "fine");
	return 0;
}

static int refuse(char *found, size_t cap, struct err *e)
{
	(void)found, (void)cap;
	err_set(e, -EACCES, "refused");
	err_hint(e, "ask");
	return -EACCES;
}

static int sleep_on(char *found, size_t cap, struct err *e)
{
	(void)found, (void)cap, (void)e;
	while (pause() == -1)
		;
	return 0;
}

static int crash(char *found, size_t cap, struct err *e)
{
	const struct rlimit none = { 0 };

	(void)found, (void)cap, (void)e;
	setrlimit(RLIMIT_CORE, &none);
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	return 0;
}

static int chatter(char *found, size_t cap, struct err *e)
{
	ssize_t a = write(STDOUT_FILENO, "noise\n", 6), b = write(STDERR_FILENO, "noise\n", 6);

	(void)found, (void)cap, (void)e;
	return a == 6 && b == 6 ? 0 : -EIO;
}

static bool run(const probe_fn *list, size_t n, unsigned int limit_ms, struct probe_result *results)
{
	struct probe_run *run = NULL;

	fflush(stdout);
	if (probe_start(list, n, limit_ms, &run, NULL) != 0)
		return false;
	probe_finish(run, results);
	return true;
}

static void test_child(struct tap *t)
{
	const probe_fn list[] = { succeed, refuse, chatter, crash, succeed };
	struct probe_result r[ARRAY_LEN(list)];

	tap_ok(t, run(list, ARRAY_LEN(list), 60000, r), "probes run");
	tap_ok(t, r[0].code == 0 && strcmp(r[0].found, "fine") == 0,
		"a successful probe reports what it found");
	tap_ok(t,
		r[1].code == -EACCES && strcmp(r[1].err.msg, "refused") == 0 &&
			strcmp(r[1].err.hint, "ask") == 0,
		"a failed probe has its message and hint");
	tap_ok(t, r[2].code == 0, "the output of a probe is discarded without an error");
	tap_ok(t, r[3].code == -ECHILD && strstr(r[3].err.msg, "killed by SIGSEGV"),
		"a crash is a result that names the signal");
	tap_ok(t, r[4].code == 0, "the probe after a crash is tried");
	tap_ok(t, waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "no child is left after the probes");
}

static void test_limit(struct tap *t)
{
	unsigned int limit = probe_limit_ms(1000);

	const probe_fn list[] = { succeed, sleep_on, succeed };
	struct probe_result r[ARRAY_LEN(list)];

	tap_ok(t, limit >= 1000 && limit <= 60000 && limit % 1000 == 0,
		"the limit is a multiple of the given one, as a slow machine needs more time");
	tap_diag("the limit is multiplied by %u", limit / 1000);
	tap_ok(t, run(list, ARRAY_LEN(list), 300, r), "a blocked probe ends at the time limit");
	tap_ok(t, r[0].code == 0, "a probe that ended before the limit keeps its result");
	tap_ok(t, r[1].code == -ETIMEDOUT && strstr(r[1].err.msg, "300 ms"),
		"the message about a blocked probe has the limit");
	tap_ok(t, r[2].code == 0, "the probe after a blocked one is tried");
	tap_ok(t, waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD,
		"no child is left after a blocked probe");
	probe_finish(NULL, NULL);
}

static int enter_badly(void *ctx, struct err *e)
{
	(void)ctx;
	return err_set(e, -ENOTRECOVERABLE, "the door is shut");
}

static int enter_well(void *ctx, struct err *e)
{
	(void)e;
	*(int *)ctx += 1;
	/* the kernel no longer ends this process when its parent ends */
	return prctl(PR_SET_PDEATHSIG, 0) ? -errno : 0;
}

/* Is this the child that ran enter_well(), and does the kernel again end it with its parent? */
static int look_around(void *ctx, size_t i, char *found, size_t cap, struct err *e)
{
	int sig = 0;

	(void)e;
	snprintf(found, cap, "attempt %zu", i);
	return prctl(PR_GET_PDEATHSIG, &sig) == 0 && sig == SIGKILL && *(int *)ctx == 8 ? 0 : -EINVAL;
}

static void test_job(struct tap *t)
{
	int value = 7;
	struct probe_job job = {
		.n = 2, .enter = enter_well, .attempt = look_around, .ctx = &value, .limit_ms = 60000
	};
	struct probe_result r[2];
	struct probe_run *run = NULL;

	fflush(stdout);
	tap_ok(t, probe_start_job(&job, &run, NULL) == 0, "a job starts");
	probe_finish(run, r);
	tap_ok(t, r[0].code == 0 && r[1].code == 0 && strcmp(r[1].found, "attempt 1") == 0,
		"the child enters once, and ends with its parent even if entering cleared that");
	tap_eq_u64(t, (uint64_t)value, 7, "the caller's context is not changed");
	job.enter = enter_badly;
	fflush(stdout);
	probe_start_job(&job, &run, NULL);
	probe_finish(run, r);
	tap_ok(t, r[0].code == -ENOTRECOVERABLE && r[1].code == r[0].code && strstr(r[1].err.msg, "shut"),
		"if entering fails, every attempt has that error");
}

/* The limit of an hour shows that nothing waits for the probe. */
static void test_no_results(struct tap *t)
{
	const probe_fn list[] = { sleep_on };
	struct probe_run *run = NULL;

	fflush(stdout);
	tap_ok(t, probe_start(list, 1, 3600000, &run, NULL) == 0, "a probe that never ends starts");
	probe_finish(run, NULL);
	tap_ok(t, waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD,
		"without memory for results the child is ended, not waited for");
}

static void test_real(struct tap *t)
{
	static const probe_fn list[] = { probe_stack_map, probe_take_stack, probe_process_events };
	static const char *const names[] = { "a stack map is created",
		"both stacks of this process are taken", "process events are available" };
	struct probe_result r[ARRAY_LEN(list)];
	int caps[] = { CAP_BPF, CAP_PERFMON };
	char why[128];

	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		if (priv_missing(caps, 2, why, sizeof(why)))
			tap_skip(t, names[i], "%s", why);
	if (priv_missing(caps, 2, why, sizeof(why)))
		return;
	run(list, ARRAY_LEN(list), 20000, r);
	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		if (!tap_ok(t, r[i].code == 0, "%s", names[i]))
			tap_diag("%s", r[i].err.msg);
}

/* As in a container: bpf() and perf_event_open() are refused regardless of capabilities. */
static int under_seccomp(char *found, size_t cap, struct err *e)
{
	if (!self_refuse(SYS_bpf, -1, EPERM) || !self_refuse(SYS_perf_event_open, -1, EPERM))
		return -errno;
	return probe_stack_map(found, cap, e);
}

static void test_seccomp(struct tap *t)
{
	const probe_fn list[] = { under_seccomp };
	int caps[] = { CAP_BPF, CAP_PERFMON };
	struct probe_result r[1];
	char why[128];

	if (priv_missing(caps, 2, why, sizeof(why))) {
		tap_skip(t, "a refusal by seccomp names the filter", "%s", why);
		return;
	}
	run(list, 1, 20000, r);
	if (!tap_ok(t, r[0].code == -EPERM && strstr(r[0].err.msg, "seccomp filter"),
		    "a refusal by seccomp names the filter"))
		tap_diag("%d %s", r[0].code, r[0].err.msg);
}

int main(void)
{
	struct tap t = { 0 };

	test_child(&t);
	test_limit(&t);
	test_no_results(&t);
	test_job(&t);
	test_real(&t);
	test_seccomp(&t);
	return tap_done(&t);
}
