/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/fdlimit.h"

#include <sys/resource.h>

size_t fdlimit_raise(size_t most)
{
	struct rlimit rl;
	rlim_t before;

	if (getrlimit(RLIMIT_NOFILE, &rl) != 0)
		return 0;
	before = rl.rlim_cur;
	if (before < MIN(rl.rlim_max, (rlim_t)most)) {
		rl.rlim_cur = MIN(rl.rlim_max, (rlim_t)most);
		if (setrlimit(RLIMIT_NOFILE, &rl) != 0)
			rl.rlim_cur = before;
	}
	return (size_t)MIN(rl.rlim_cur, (rlim_t)SIZE_MAX);
}
