/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/privilege_sets.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

int priv_sets_get(uint64_t *permitted, uint64_t *effective)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, data) != 0)
		return -errno;
	if (permitted)
		*permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	if (effective)
		*effective = data[0].effective | (uint64_t)data[1].effective << 32;
	return 0;
}

int priv_sets_set(uint64_t permitted, uint64_t effective)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
		{ .effective = (uint32_t)effective, .permitted = (uint32_t)permitted },
		{ .effective = (uint32_t)(effective >> 32), .permitted = (uint32_t)(permitted >> 32) },
	};

	return syscall(SYS_capset, &head, data) == 0 ? 0 : -errno;
}
