/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/procaccess.h"
#include "system/procinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

/* By a call that sees processes which /proc may hide: for one that is gone nobody need be asked. */
static bool is_gone(uint32_t pid)
{
	return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

int procaccess_open(struct opener *o, enum openwire_kind kind, uint32_t pid)
{
	char path[64];
	int fd, asked;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, kind == OPENWIRE_MAPS ? "maps" : "status");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	fd = -errno;
	if (is_gone(pid))
		return -ESRCH;
	asked = opener_proc(o, kind, pid);
	return asked == -ENOTCONN ? fd : asked;
}

int procaccess_maps(struct opener *o, uint32_t pid, int (*fn)(void *ctx, const struct procmap *m), void *ctx,
	struct err *e)
{
	_cleanup_close_ int fd = procaccess_open(o, OPENWIRE_MAPS, pid);

	return procmaps_each_of(fd, pid, fn, ctx, e);
}

int procaccess_maps_exe(struct opener *o, uint32_t pid, char **exe)
{
	char *path = NULL;
	int fd;

	if (!*exe)
		*exe = procinfo_exe(pid);
	if (*exe || is_gone(pid))
		return procaccess_open(o, OPENWIRE_MAPS, pid);
	/* what may not be read here is not to be asked for twice */
	fd = opener_maps_exe(o, pid, &path);
	if (fd == -ENOTCONN)
		return procaccess_open(NULL, OPENWIRE_MAPS, pid);
	if (path)
		procinfo_strip_deleted(path);
	*exe = path;
	return fd;
}

uint32_t procaccess_living(struct opener *o, uint32_t pid)
{
	uint32_t shown = procinfo_living(pid);
	int fd;

	if (shown || is_gone(pid))
		return shown;
	fd = opener_proc(o, OPENWIRE_STATUS, pid);
	if (fd < 0)
		return 0;
	return procinfo_lives(fd) ? pid : 0;
}
