/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of the rule itself; t/bpf/owner.t tests processes to which it applies. */
#include "base/tap.h"
#include "system/elevated.h"
#include "system/owner.h"
#include "system/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/auxv.h>

int main(void)
{
	const uint32_t first = 1, self = (uint32_t)getpid(), gone = 4194305;
	bool could = priv_have(CAP_SYS_PTRACE);
	struct owner o = { .uid = 77 };
	struct tap t = { 0 };
	struct err e;

	tap_ok(&t, elevated_rule(true, 1000), "the rule applies to a user whose exec gave capabilities");
	tap_ok(&t, !elevated_rule(false, 1000),
		"the rule does not apply to a user with own (ambient) capabilities");
	tap_ok(&t, !elevated_rule(false, 0) && !elevated_rule(true, 0), "the rule does not apply to root");
	tap_ok(&t, elevated() == (getauxval(AT_SECURE) && getuid() != 0),
		"the rule applies if AT_SECURE is set and the user is not root");
	if (elevated())
		return tap_done(&t);
	tap_ok(&t, owner_become(&o, &e) == 0 && !o.only && o.uid == getuid() && o.gid == getgid(),
		"without the rule, owner_become() only reports the user and group");
	tap_ok(&t, !o.no_kernel && priv_have(CAP_SYS_PTRACE) == could,
		"without the rule, kernel addresses are not hidden and no capability is dropped");
	tap_ok(&t, owner_check(&first, 1, &e) == 0 && owner_check(&self, 1, &e) == 0,
		"without the rule, no process is refused");
	tap_ok(&t, owner_check(NULL, 0, NULL) == 0 && owner_check(&gone, 1, &e) == 0,
		"without the rule, an empty list and a missing process are not refused");
	return tap_done(&t);
}
