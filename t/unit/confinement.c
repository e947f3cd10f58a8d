/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "../lib/self.h"
#include "base/tap.h"
#include "check/live.h"

#include <errno.h>
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

	if (!self_refuse(SYS_landlock_create_ruleset, -1, ENOSYS) || confinement_try(&c, &e) != 0)
		return 100;
	confinement_probe(found, sizeof(found), &e);
	return c.no_caps && c.seccomp && !c.landlock && strstr(found, "; no Landlock") ? 0 : 1;
}

/* A step that the sandbox needs is refused: the error names the step. */
static int without_capset(void)
{
	char found[256] = "";
	struct err e = { 0 };

	if (!self_refuse(SYS_capset, -1, ENOSYS))
		return 100;
	return confinement_probe(found, sizeof(found), &e) == -ENOSYS &&
			       strstr(e.msg, "cannot be parsed in a sandbox: ") &&
			       strstr(e.msg, "cannot give up capabilities")
		       ? 0
		       : 1;
}

int main(void)
{
	struct tap t = { 0 };

	tap_eq_u64(&t, self_apart(plain), 0,
		"every layer that this kernel has is in force, and no child is left");
	if (geteuid() == 0)
		tap_eq_u64(&t, self_apart(as_nobody), 0,
			"every layer that this kernel has is in force for user nobody");
	else
		tap_skip(&t, "every layer that this kernel has is in force for user nobody", "not root");
	tap_eq_u64(&t, self_apart(without_landlock), 0,
		"without Landlock the other layers are in force, and its absence is reported");
	tap_eq_u64(&t, self_apart(without_capset), 0,
		"a sandbox that cannot be entered is reported with the step that failed");
	return tap_done(&t);
}
