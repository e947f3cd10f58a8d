/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/clock.h"
#include "base/tap.h"
#include "check/least_privileges.h"
#include "system/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define BIT(cap) (UINT64_C(1) << (cap))

static int succeed(const struct priv_targets *w, pid_t pid, struct err *e)
{
	(void)w, (void)pid, (void)e;
	return 0;
}

static int crash(const struct priv_targets *w, pid_t pid, struct err *e)
{
	const struct rlimit none = { 0 };

	(void)w, (void)pid, (void)e;
	setrlimit(RLIMIT_CORE, &none);
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	return 0;
}

static int hang(const struct priv_targets *w, pid_t pid, struct err *e)
{
	(void)w, (void)pid, (void)e;
	while (pause() == -1)
		;
	return 0;
}

static int refuse(const struct priv_targets *w, pid_t pid, struct err *e)
{
	(void)w, (void)pid;
	return err_set(e, -EPERM, "refused");
}

static struct priv_status status(void)
{
	struct priv_status s = { 0 };
	char text[8192] = "";
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n < 0 || priv_status_parse(text, &s) != 0)
		s.uid = 12345;
	if (fd >= 0)
		close(fd);
	return s;
}

/* By /proc/self/status: has this process only CAP_SYSLOG, also in its bounding set? */
static int have_syslog_only(const struct priv_targets *w, pid_t pid, struct err *e)
{
	struct priv_status s = status();
	uint64_t want = BIT(CAP_SYSLOG);

	(void)w, (void)pid;
	if (s.effective != want || s.permitted != want || s.inheritable || s.ambient || s.bounding != want ||
		s.no_new_privs != 1)
		return err_set(e, -ENOTRECOVERABLE, "other capabilities");
	return 0;
}

static int be_root(const struct priv_targets *w, pid_t pid, struct err *e)
{
	(void)w, (void)pid;
	return getuid() == 0 && status().uid == 0 ? 0 : err_set(e, -ENOTRECOVERABLE, "another user");
}

static int be_nobody(const struct priv_targets *w, pid_t pid, struct err *e)
{
	uid_t r, eff, saved;

	(void)w, (void)pid;
	return getresuid(&r, &eff, &saved) == 0 && r == w->user && eff == w->user && saved == w->user &&
			       getgroups(0, NULL) == 0
		       ? 0
		       : err_set(e, -ENOTRECOVERABLE, "another user");
}

/* Are all target processes alive? */
static int see_world(const struct priv_targets *w, pid_t pid, struct err *e)
{
	(void)pid;
	for (int i = 0; i < PRIV_TARGETS_PROCESSES; i++)
		if (!worker_pid(w->process[i]) ||
			(kill((pid_t)worker_pid(w->process[i]), 0) != 0 && errno != EPERM))
			return err_set(e, -ESRCH, "process %d is not there", i);
	return 0;
}

static void set_steps(struct priv_trials *t, const priv_proc_fn *fns, size_t n)
{
	t->steps.n = n;
	for (size_t i = 0; i < n; i++)
		t->steps.list[i] = (struct priv_step){ .proc = fns[i], .whose = PRIV_TARGETS_OF_USER };
}

static bool open_trials(struct priv_trials *t, unsigned int limit_ms, const priv_proc_fn *fns, size_t n)
{
	struct err e = { 0 };

	fflush(stdout);
	if (priv_trials_open(limit_ms, t, &e) != 0) {
		tap_diag("%s", e.msg);
		return false;
	}
	set_steps(t, fns, n);
	return true;
}

static uint8_t state(const struct priv_trials *t, size_t user, uint64_t caps, size_t step)
{
	return priv_trials_cell(t, user, caps, step).state;
}

static void test_child(struct tap *t)
{
	const priv_proc_fn fns[] = { have_syslog_only, be_root, be_nobody, see_world };
	const uint64_t set = BIT(CAP_SYSLOG);
	struct priv_trials trials;

	if (!tap_ok(t, open_trials(&trials, 60000, fns, ARRAY_LEN(fns)), "the trials start"))
		return;
	tap_ok(t, priv_trials_all(&trials, &set, 1, NULL) == 0, "every step is tried as every user");
	tap_ok(t,
		state(&trials, 0, set, 0) == PRIV_CELL_WORKS && state(&trials, 1, set, 0) == PRIV_CELL_WORKS,
		"/proc says that the child has exactly the set, as both users");
	tap_ok(t,
		state(&trials, 0, set, 1) == PRIV_CELL_WORKS && state(&trials, 1, set, 1) != PRIV_CELL_WORKS,
		"the first user is root, and the second is not");
	tap_ok(t,
		state(&trials, 1, set, 2) == PRIV_CELL_WORKS && state(&trials, 0, set, 2) != PRIV_CELL_WORKS,
		"the ordinary user has its user ID and no supplementary groups");
	tap_ok(t, state(&trials, 0, set, 3) == PRIV_CELL_WORKS, "the target processes are alive");
	tap_ok(t, state(&trials, 0, 0, 0) == PRIV_CELL_UNKNOWN,
		"the result for a set that was not requested is unknown");
	priv_trials_close(&trials);
	tap_ok(t, waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "no process is left after the trials");
}

static void test_bad(struct tap *t)
{
	const priv_proc_fn fns[] = { succeed, crash, refuse, succeed, hang, succeed };
	const uint16_t first[] = { 0, 1, 2, 3 }, fine[] = { 0, 3 }, last[] = { 4, 5 };
	struct priv_trials trials;
	uint64_t began = now_ns();

	if (!tap_ok(t, open_trials(&trials, 1500, fns, ARRAY_LEN(fns)), "trials with failing steps start"))
		return;
	tap_ok(t, !priv_trials_ask(&trials, 0, 0, first, ARRAY_LEN(first)),
		"a step that crashes does not work");
	tap_ok(t,
		priv_trials_cell(&trials, 0, 0, 1).code == -ECHILD &&
			state(&trials, 0, 0, 1) == PRIV_CELL_FAILED,
		"a crash is a failure");
	tap_ok(t,
		state(&trials, 0, 0, 2) == PRIV_CELL_REFUSED &&
			priv_trials_cell(&trials, 0, 0, 2).code == -EPERM,
		"a refused step is reported as refused, with its error");
	tap_ok(t, priv_trials_ask(&trials, 0, 0, fine, ARRAY_LEN(fine)), "the steps after a crash are tried");
	tap_ok(t, !priv_trials_ask(&trials, 0, 0, last, ARRAY_LEN(last)), "a step that hangs does not work");
	tap_ok(t,
		priv_trials_cell(&trials, 0, 0, 4).code == -ETIMEDOUT &&
			state(&trials, 0, 0, 4) == PRIV_CELL_NOT_TRIED,
		"a step that hangs ends at the time limit and counts as not tried");
	tap_ok(t, state(&trials, 0, 0, 5) == PRIV_CELL_NOT_TRIED && trials.late,
		"a step after the time limit is not tried, and the trials are late");
	tap_ok(t, now_ns() - began < UINT64_C(20000000000), "the trials end within 20 seconds");
	priv_trials_close(&trials);
	tap_ok(t, waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD,
		"no process is left after trials that crashed or hung");
}

static void test_not_granted(struct tap *t)
{
	const priv_proc_fn fns[] = { succeed };
	const uint16_t which[] = { 0 };
	const uint64_t set = BIT(CAP_SYSLOG);
	struct priv_trials trials;

	if (!open_trials(&trials, 60000, fns, 1))
		return;
	trials.granted &= ~set;
	tap_ok(t,
		!priv_trials_ask(&trials, 1, set, which, 1) &&
			state(&trials, 1, set, 0) == PRIV_CELL_NOT_GRANTED,
		"a set that cannot be granted is not tried");
	snprintf(trials.untried_why, sizeof(trials.untried_why), "why");
	trials.steps.list[0].kernel_memory = true;
	tap_ok(t, !priv_trials_ask(&trials, 1, 0, which, 1) && state(&trials, 1, 0, 0) == PRIV_CELL_NOT_TRIED,
		"a step that reads kernel memory is not tried if these are skipped");
	priv_trials_close(&trials);
	priv_trials_close(&(struct priv_trials){ 0 });
}

int main(void)
{
	static const int needed[] = { CAP_SETUID, CAP_SETGID, CAP_SETPCAP, CAP_SYSLOG };
	struct tap t = { 0 };
	char why[128];

	if (geteuid() != 0 || priv_missing(needed, ARRAY_LEN(needed), why, sizeof(why))) {
		tap_skip(&t, "trials", "not root");
		return tap_done(&t);
	}
	test_child(&t);
	test_bad(&t);
	test_not_granted(&t);
	return tap_done(&t);
}
