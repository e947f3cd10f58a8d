/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "check/live.h"

#include <errno.h>
#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Ask the kernel which layers it has. */
static bool kernel_has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
}

static bool kernel_has_seccomp(void)
{
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) < 0 && errno == EFAULT;
}

/* Make NR fail as if the kernel did not have it. */
static bool take_away(long nr)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = ARRAY_LEN(code), .filter = code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) == 0;
}

static int plain(void)
{
	struct confinement c;
	char found[256] = "";
	struct err e = { 0 };

	if (confinement_try(&c, &e) != 0 || confinement_probe(found, sizeof(found), &e) != 0)
		return 1;
	if (!c.no_caps || c.other_user != (geteuid() == 0) || c.landlock != kernel_has_landlock() ||
		c.seccomp != kernel_has_seccomp())
		return 2;
	if (!strstr(found, "no capability") ||
		!strstr(found, c.landlock ? "no path (Landlock)" : "no Landlock"))
		return 3;
	return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : 4;
}

static int as_nobody(void)
{
	if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)
		return 100;
	return plain();
}

static int without_landlock(void)
{
	struct confinement c;
	char found[256] = "";
	struct err e = { 0 };

	if (!take_away(SYS_landlock_create_ruleset) || confinement_try(&c, &e) != 0)
		return 100;
	confinement_probe(found, sizeof(found), &e);
	return c.no_caps && c.seccomp && !c.landlock && strstr(found, "; no Landlock") ? 0 : 1;
}

/* A step that the sandbox needs is refused: the error names the step. */
static int without_capset(void)
{
	char found[256] = "";
	struct err e = { 0 };

	if (!take_away(SYS_capset))
		return 100;
	return confinement_probe(found, sizeof(found), &e) == -ENOSYS &&
			       strstr(e.msg, "cannot be parsed in a sandbox: ") &&
			       strstr(e.msg, "cannot give up capabilities")
		       ? 0
		       : 1;
}

static void check(struct tap *t, int (*fn)(void), const char *name)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(fn());
	waitpid(pid, &status, 0);
	if (!tap_ok(t, WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", name))
		tap_diag("wait status 0x%x", (unsigned int)status);
}

int main(void)
{
	struct tap t = { 0 };

	check(&t, plain, "every layer that this kernel has is in force, and no child is left");
	if (geteuid() == 0)
		check(&t, as_nobody, "every layer that this kernel has is in force for user nobody");
	else
		tap_skip(&t, "every layer that this kernel has is in force for user nobody", "not root");
	check(&t, without_landlock,
		"without Landlock the other layers are in force, and its absence is reported");
	check(&t, without_capset, "a sandbox that cannot be entered is reported with the step that failed");
	return tap_done(&t);
}
