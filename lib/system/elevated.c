/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/elevated.h"
#include "system/privilege_sets.h"

#include <errno.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

bool elevated_rule(bool secure, uint32_t uid)
{
	return secure && uid != 0;
}

bool elevated(void)
{
	return elevated_rule(getauxval(AT_SECURE) != 0, getuid());
}

int elevated_real_ids(void)
{
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0)
		return -errno;
	if (setresgid(getgid(), getgid(), getgid()) != 0 || setresuid(getuid(), getuid(), getuid()) != 0)
		return -errno;
	return prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) == 0 ? 0 : -errno;
}

int elevated_keep(uint64_t keep)
{
	uint64_t have = 0;
	int rc;

	if (!elevated())
		return 0;
	rc = priv_sets_get(&have, NULL);
	rc = rc ? rc : elevated_real_ids();
	return rc ? rc : priv_sets_set(have & keep, have & keep);
}

int elevated_shed(void)
{
	int rc = elevated_keep(0);

	return !rc && elevated() && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0 ? -errno : rc;
}
