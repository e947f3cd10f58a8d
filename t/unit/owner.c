/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rule itself; t/bpf/owner.t has the processes to which it applies. */
#include "base/tap.h"
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

	tap_ok(&t, owner_rule(true, 1000), "a user whose exec gave rights has to keep to his own");
	tap_ok(&t, !owner_rule(false, 1000), "not one whose rights are his own (ambient capabilities)");
	tap_ok(&t, !owner_rule(false, 0) && !owner_rule(true, 0), "nor root");
	tap_ok(&t, owner_applies() == (getauxval(AT_SECURE) && getuid() != 0), "it is AT_SECURE that tells");
	if (owner_applies())
		return tap_done(&t);
	tap_ok(&t, owner_become(&o, &e) == 0 && !o.only && o.uid == getuid() && o.gid == getgid(),
		"where the rule does not apply");
	tap_ok(&t, !o.no_kernel && priv_have(CAP_SYS_PTRACE) == could,
		"nothing is hidden and no right given up");
	tap_ok(&t, owner_check(&first, 1, &e) == 0 && owner_check(&self, 1, &e) == 0, "nobody is refused");
	tap_ok(&t, owner_check(NULL, 0, NULL) == 0 && owner_check(&gone, 1, &e) == 0,
		"no process is not refused");
	return tap_done(&t);
}
