/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>

/* A directory descriptor of a tracefs that no mount table shows, or -errno. */
static int mount_detached(void)
{
	_cleanup_close_ int fs = fsopen("tracefs", FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0)
		return -errno;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSUID);
	return fd < 0 ? -errno : fd;
}

static int open_tracefs(struct err *e)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	int fd;

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* the directory is there whether something is mounted on it or not */
		if (fd >= 0 && faccessat(fd, "events", F_OK, 0) == 0)
			return fd;
		if (fd >= 0)
			close(fd);
	}
	fd = mount_detached();
	return fd < 0 ? err_sys(e, fd, "tracefs is not mounted, and cannot be") : fd;
}

int tracefs_event_id(const char *event, struct err *e)
{
	_cleanup_close_ int fs = open_tracefs(e);
	_cleanup_close_ int fd = -1;
	char path[256], text[32] = "";
	int id, code;

	if (fs < 0)
		return fs;
	snprintf(path, sizeof(path), "events/%s/id", event);
	fd = openat(fs, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		code = -errno;
		if (code == -ENOENT)
			return err_set(e, code, "this kernel has no tracepoint '%s'", event);
		err_sys(e, code, "cannot open '%s' of tracefs", path);
		if (code == -EACCES)
			err_hint(e, "run as root: the files of tracefs are root's");
		return code;
	}
	if (read(fd, text, sizeof(text) - 1) < 0)
		return err_sys(e, -errno, "cannot read '%s' of tracefs", path);
	id = atoi(text);
	return id > 0 ? id : err_set(e, -EINVAL, "'%s' of tracefs holds no number", path);
}
