/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* A directory descriptor of a tracefs that is in no mount table, or -errno. */
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
	struct stat st;
	int fd;

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/*
		 * The directory exists even if nothing is mounted on it. Not faccessat(2): for an
		 * ordinary user it ignores capabilities, and only root may access tracefs.
		 */
		if (fd >= 0 && fstatat(fd, "events", &st, 0) == 0)
			return fd;
		if (fd >= 0)
			close(fd);
	}
	fd = mount_detached();
	return fd < 0 ? err_sys(e, fd, "tracefs is not mounted, and cannot be") : fd;
}

/* Read FILE of EVENT into TEXT. Its length, or -errno with the message. */
static int read_file(const char *event, const char *file, char *text, size_t size, struct err *e)
{
	_cleanup_close_ int fs = open_tracefs(e);
	_cleanup_close_ int fd = -1;
	char path[256];
	ssize_t n;
	int code;

	if (fs < 0)
		return fs;
	snprintf(path, sizeof(path), "events/%s/%s", event, file);
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
	n = read(fd, text, size - 1);
	if (n < 0)
		return err_sys(e, -errno, "cannot read '%s' of tracefs", path);
	text[n] = '\0';
	return (int)n;
}

int tracefs_event_id(const char *event, struct err *e)
{
	char text[32];
	int rc = read_file(event, "id", text, sizeof(text), e), id;

	if (rc < 0)
		return rc;
	id = atoi(text);
	return id > 0 ? id : err_set(e, -EINVAL, "'events/%s/id' of tracefs holds no number", event);
}

/* Whether DECL, LEN bytes such as "char name[16]", declares NAME. */
static bool declares(const char *decl, size_t len, const char *name)
{
	size_t n = strlen(name);
	const char *array = memchr(decl, '[', len);

	len = array ? (size_t)(array - decl) : len;
	return len > n && decl[len - n - 1] == ' ' && memcmp(decl + len - n, name, n) == 0;
}

/* A line "field:DECLARATION; offset:N; size:N; signed:N;" */
static bool take_field(const char *line, struct tracefs_field *f)
{
	const char *decl = line + strlen("\tfield:"), *end = strchr(decl, ';');
	unsigned int offset, size;

	/* "__data_loc char[] name": the record holds the location of the field, not the field */
	if (!end || !declares(decl, (size_t)(end - decl), f->name) ||
		memmem(decl, (size_t)(end - decl), "_loc ", 5))
		return false;
	if (sscanf(end, ";\toffset:%u;\tsize:%u;", &offset, &size) != 2 || size != f->size || offset > 4096)
		return false;
	f->offset = (uint16_t)offset;
	return true;
}

static bool find_field(const char *text, struct tracefs_field *f)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, "print fmt", 9) == 0)
			break;
		if (strncmp(line, "\tfield:", 7) == 0 && take_field(line, f))
			return true;
	}
	return false;
}

int tracefs_parse(const char *text, const char *event, struct tracefs_field *fields, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!find_field(text, &fields[i]))
			return err_set(e, -EINVAL, "tracepoint '%s' has no field '%s' of %u bytes", event,
				fields[i].name, fields[i].size);
	return 0;
}

int tracefs_fields(const char *event, struct tracefs_field *fields, size_t n, struct err *e)
{
	char text[8192];
	int rc = read_file(event, "format", text, sizeof(text), e);

	return rc < 0 ? rc : tracefs_parse(text, event, fields, n, e);
}
