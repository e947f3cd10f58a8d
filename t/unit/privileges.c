/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Each refusal is a real one: a child drops what the test is about, and sends
 * back the message that it then gets.
 */
#include "base/tap.h"
#include "system/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static const int bpf_caps[] = { CAP_BPF, CAP_PERFMON };

static bool drop_all(void)
{
	cap_t none = cap_init();
	bool ok = none && cap_set_proc(none) == 0;

	cap_free(none);
	return ok;
}

static bool keep_only_admin(void)
{
	cap_value_t admin = CAP_SYS_ADMIN;
	cap_t set = cap_init();
	bool ok = set && cap_set_flag(set, CAP_PERMITTED, 1, &admin, CAP_SET) == 0 &&
		  cap_set_flag(set, CAP_EFFECTIVE, 1, &admin, CAP_SET) == 0 && cap_set_proc(set) == 0;

	cap_free(set);
	return ok;
}

static bool drop_perfmon(void)
{
	cap_value_t away[] = { CAP_PERFMON, CAP_SYS_ADMIN };
	cap_t set = cap_get_proc();
	bool ok = set && cap_set_flag(set, CAP_EFFECTIVE, 2, away, CAP_CLEAR) == 0 && cap_set_proc(set) == 0;

	cap_free(set);
	return ok;
}

static bool drop_bounding(void)
{
	return prctl(PR_CAPBSET_DROP, CAP_BPF, 0, 0, 0) == 0 && drop_all();
}

static bool no_new_privs(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && drop_all();
}

static bool seccomp_filter(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = { .len = 1, .filter = &allow };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) == 0;
}

static bool user_namespace(void)
{
	return unshare(CLONE_NEWUSER) == 0;
}

static bool nothing(void)
{
	return true;
}

/* Store the err that priv_explain() makes in a child after GIVE_UP; false if GIVE_UP fails. */
static bool message(bool (*give_up)(void), struct err *e)
{
	int fds[2];
	pid_t pid;
	bool whole;

	fflush(stdout);
	if (pipe(fds) != 0 || (pid = fork()) < 0)
		return false;
	if (pid == 0) {
		if (!give_up())
			_exit(77);
		priv_explain("attach to sched_switch", -EPERM, bpf_caps, ARRAY_LEN(bpf_caps), e);
		_exit(write(fds[1], e, sizeof(*e)) == (ssize_t)sizeof(*e) ? 0 : 1);
	}
	close(fds[1]);
	whole = read(fds[0], e, sizeof(*e)) == (ssize_t)sizeof(*e);
	close(fds[0]);
	waitpid(pid, NULL, 0);
	return whole;
}

static void test_refusal(
	struct tap *t, const char *name, bool (*give_up)(void), const char *msg, const char *hint)
{
	struct err e = { 0 };

	if (!message(give_up, &e)) {
		tap_skip(t, name, "this process cannot drop that");
		return;
	}
	if (!tap_ok(t, e.code == -EPERM && strstr(e.msg, msg) && strstr(e.hint, hint), "%s", name))
		tap_diag("got '%s' and '%s'\nwant '%s' and '%s'", e.msg, e.hint, msg, hint);
}

static void test_stories(struct tap *t)
{
	char exe[4096], setcap[8192];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	exe[MAX(n, 0)] = '\0';
	snprintf(setcap, sizeof(setcap), "run as root, or: setcap cap_bpf,cap_perfmon+ep '%s'", exe);
	test_refusal(t, "without capabilities both are named, and the hint is setcap on this binary",
		drop_all, "not permitted to attach to sched_switch: CAP_BPF and CAP_PERFMON are missing",
		setcap);
	test_refusal(t, "for a capability outside the bounding set, the hint is --cap-add", drop_bounding,
		"CAP_BPF", "--cap-add=BPF");
	test_refusal(t, "with no_new_privs the hint says that setcap has no effect", no_new_privs, "CAP_BPF",
		"no effect");
	if (!priv_allow(CAP_BPF) || !priv_allow(CAP_PERFMON)) {
		tap_skip(t, "a refusal says what is missing or what else forbids it", "not privileged");
		return;
	}
	test_refusal(t, "a single missing capability is named alone", drop_perfmon,
		"not permitted to attach to sched_switch: CAP_PERFMON is missing", setcap);
	test_refusal(t, "CAP_SYS_ADMIN replaces CAP_BPF and CAP_PERFMON", keep_only_admin,
		"no capability is missing", "");
	test_refusal(t, "a refusal with all capabilities says that none is missing", nothing,
		"no capability is missing", "");
	test_refusal(t, "a refusal under seccomp names the filter", seccomp_filter,
		"seccomp filter is in force", "sandbox");
	test_refusal(
		t, "a refusal in a user namespace names it", user_namespace, "user namespace", "container");
}

static void test_parse(struct tap *t)
{
	static const char text[] = "Name:\tx\nUid:\t1000\t1001\t1000\t1000\nCapInh:\t0000000000000000\n"
				   "CapPrm:\t0000000000000001\nCapEff:\t0000004000000000\n"
				   "CapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\n"
				   "Seccomp:\t2\nSeccomp_filters:\t1\n";
	struct priv_status s;

	tap_ok(t, priv_status_parse(text, &s) == 0, "a status file is parsed");
	tap_eq_u64(t, s.uid, 1001, "the user ID is the effective one");
	tap_eq_u64(t, s.effective, UINT64_C(1) << CAP_PERFMON, "the effective set is read");
	tap_eq_u64(t, s.bounding, UINT64_C(0x1ffffffffff), "the bounding set is read");
	tap_ok(t, s.seccomp == 2 && s.no_new_privs == 1, "seccomp and no_new_privs are read");
	tap_ok(t, priv_set_allows(s.effective, CAP_PERFMON) && !priv_set_allows(s.effective, CAP_BPF),
		"a set allows only the capabilities in it");
	tap_ok(t,
		priv_set_allows(UINT64_C(1) << CAP_SYS_ADMIN, CAP_BPF) &&
			!priv_set_allows(UINT64_C(1) << CAP_SYS_ADMIN, CAP_SYSLOG),
		"CAP_SYS_ADMIN allows CAP_BPF, but not CAP_SYSLOG");
	tap_ok(t, priv_status_parse("", &s) == -EINVAL, "an empty file is -EINVAL");
	tap_ok(t, priv_status_parse("Uid:\t0\t0\nCapEff:\tzz\n", &s) == -EINVAL,
		"a set that is not a number is -EINVAL");
	tap_ok(t,
		priv_status_parse("Uid:\t0 0\nCapEff: 1\nCapPrm: 1\nCapInh: 0\nCapBnd: 1\n", &s) == 0 &&
			s.seccomp == -1 && s.no_new_privs == -1,
		"a status without seccomp and no_new_privs gives -1");
}

static void test_text(struct tap *t)
{
	char buf[256], tiny[8];

	priv_command("/opt/it's here/tool", bpf_caps, 2, buf, sizeof(buf));
	tap_eq_str(t, buf, "setcap cap_bpf,cap_perfmon+ep '/opt/it'\\''s here/tool'",
		"a path is quoted for the shell");
	priv_command("/opt/tool", bpf_caps, 2, tiny, sizeof(tiny));
	tap_eq_str(t, tiny, "setcap ", "a command that does not fit is cut and terminated");
	tap_eq_str(t, priv_name(CAP_SYSLOG, buf, sizeof(buf)), "CAP_SYSLOG", "a capability has its name");
	tap_eq_str(t, priv_name(63, buf, sizeof(buf)), "CAP_63", "an unknown capability has its number");
	tap_ok(t, priv_missing(bpf_caps, 0, buf, sizeof(buf)) == 0 && !buf[0],
		"of an empty list no capability is missing");
	tap_ok(t, priv_explain("x", -EPERM, bpf_caps, 2, NULL) == -EPERM,
		"the code is returned also without a message");
}

int main(void)
{
	struct tap t = { 0 };
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	/* before Linux 5.11, a low limit is another reason for a refusal */
	setrlimit(RLIMIT_MEMLOCK, &all);
	test_stories(&t);
	test_parse(&t);
	test_text(&t);
	return tap_done(&t);
}
