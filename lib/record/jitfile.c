/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/jitfile.h"
#include "base/clock.h"
#include "system/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>

#define SLACK_NS INT64_C(1000000000) /* clocks are read one after the other, and may be set */

/* The folder /tmp of process PID, 0 = ours. */
static int open_tmp(uint32_t pid)
{
	const struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	_cleanup_close_ int root = -1;
	char path[64] = "/";
	int fd;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%u/root", pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root, "tmp", &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

static bool stat_tmp(struct opener *o, uint32_t pid, struct stat *st)
{
	_cleanup_close_ int fd = open_tmp(pid);

	return (fd >= 0 && fstat(fd, st) == 0) || opener_tmp_stat(o, pid, st) == 0;
}

static bool shares_tmp(struct opener *o, uint32_t pid)
{
	struct stat a, b;

	return stat_tmp(o, pid, &a) && stat_tmp(o, 0, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* The last one of the numbers in LINE. */
static uint32_t last_number(const char *line)
{
	const char *blank = strrchr(line, '\t');

	return blank ? (uint32_t)strtoul(blank, NULL, 10) : 0;
}

bool jitfile_owner(uint32_t pid, struct jitfile_owner *ret)
{
	int fd = procaccess_open(ret->opener, OPENWIRE_STATUS, pid);
	_cleanup_fclose_ FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	unsigned int uid, found = 0;
	char line[256];

	if (fd >= 0 && !f)
		close(fd);
	ret->pid = ret->ns_pid = pid;
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Uid: %*u %u", &uid) == 1) {
			ret->uid = uid;
			found++;
		} else if (strncmp(line, "NSpid:", 6) == 0) {
			ret->ns_pid = last_number(line);
		}
	}
	ret->shares_tmp = found && shares_tmp(ret->opener, pid);
	return found;
}

/* Looked at first: opening a device can have effects, opening a FIFO would wait. */
static int open_regular(int dir, const char *name, struct stat *st)
{
	_cleanup_close_ int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char again[64];
	int ret;

	if (fd < 0 || fstat(fd, st) != 0)
		return -errno;
	if (!S_ISREG(st->st_mode))
		return -EMEDIUMTYPE;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	ret = open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return ret < 0 ? -errno : ret;
}

static int open_map(uint32_t pid, uint32_t number, struct stat *st)
{
	_cleanup_close_ int tmp = open_tmp(pid);
	char name[64];

	if (tmp < 0)
		return tmp;
	snprintf(name, sizeof(name), "perf-%u.map", number);
	return open_regular(tmp, name, st);
}

int jitfile_map(const struct jitfile_owner *o, struct stat *st)
{
	uint32_t pid = o->end_ns ? 0 : o->pid;
	int fd, asked;

	if (o->end_ns && !o->shares_tmp)
		return -ENOENT;
	fd = open_map(pid, o->ns_pid, st);
	if (fd >= 0 || fd == -EMEDIUMTYPE)
		return fd;
	asked = opener_perf_map(o->opener, pid, o->ns_pid, st);
	return asked == -ENOTCONN ? fd : asked;
}

bool jitfile_is_dump(const struct jitfile_owner *o, const char *path)
{
	const char *base = strrchr(path, '/');
	char name[64];

	snprintf(name, sizeof(name), "/jit-%u.dump", o->ns_pid);
	return base && strcmp(base, name) == 0;
}

int jitfile_check(const struct jitfile_owner *o, const struct stat *st, struct err *e)
{
	int64_t real = (int64_t)now_on(CLOCK_REALTIME), boot = (int64_t)now_on(CLOCK_BOOTTIME),
		mono = (int64_t)now_ns();
	int64_t written = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;

	if (st->st_uid != o->uid && st->st_uid != 0)
		return err_set(
			e, -EPERM, "it belongs to user %u, and the process to user %u", st->st_uid, o->uid);
	if (o->start_boot_ns && written + SLACK_NS < real - (boot - (int64_t)o->start_boot_ns))
		return err_set(e, -ESTALE, "it was written before the process began");
	if (o->end_ns && written - SLACK_NS > real - (mono - (int64_t)o->end_ns))
		return err_set(e, -ESTALE, "it was written after the process had ended");
	return 0;
}
