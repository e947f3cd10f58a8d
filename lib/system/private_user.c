/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/private_user.h"
#include "system/privilege_sets.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <mntent.h>
#include <pwd.h>
#include <string.h>

#define SPREAD 1024 /* IDs near the end of a user namespace that are tried */
#define OVERFLOW_ID 65534 /* of whoever is not mapped; "nobody" */

/* The last range of IDs in the map at PATH; *HAS: whether one of them has WANTED. */
static bool read_map(const char *path, uint32_t wanted, bool *has, uint32_t *end)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	uint32_t inside, outside, n;

	*has = false;
	*end = 0;
	while (f && fscanf(f, "%u %u %u", &inside, &outside, &n) == 3) {
		*has |= wanted - inside < n;
		if (n > 2 * SPREAD)
			*end = MAX(*end, inside + n);
	}
	return *has || *end;
}

/* By the files alone: getpwuid(3) might ask the network. */
static bool is_named(uint32_t id)
{
	_cleanup_fclose_ FILE *users = fopen("/etc/passwd", "re"), *groups = fopen("/etc/group", "re");
	const struct passwd *u;
	const struct group *g;

	while (users && (u = fgetpwent(users)))
		if (u->pw_uid == id)
			return true;
	while (groups && (g = fgetgrent(groups)))
		if (g->gr_gid == id)
			return true;
	return false;
}

bool private_user_of(pid_t tool, struct private_user *ret)
{
	uint32_t wanted = PRIVATE_USER_BASE + (uint32_t)tool, end_uid, end_gid, end;
	bool has_uid, has_gid;

	if (!read_map("/proc/self/uid_map", wanted, &has_uid, &end_uid) ||
		!read_map("/proc/self/gid_map", wanted, &has_gid, &end_gid))
		return false;
	*ret = (struct private_user){ wanted, wanted };
	if (has_uid && has_gid)
		return true;
	end = MIN(end_uid, end_gid);
	for (uint32_t i = 0; end && i < SPREAD; i++) {
		uint32_t id = end - 2 - ((uint32_t)tool + i) % SPREAD;

		if (id == OVERFLOW_ID || is_named(id))
			continue;
		*ret = (struct private_user){ id, id };
		return true;
	}
	return false;
}

bool private_user_possible(void)
{
	const uint64_t needed = PRIV_BIT(CAP_SETUID) | PRIV_BIT(CAP_SETGID);
	uint64_t have = 0;

	priv_sets_get(NULL, &have);
	return geteuid() == 0 && (have & needed) == needed;
}

static bool sees_others(void)
{
	_cleanup_close_ int fd = open("/proc/1/stat", O_RDONLY | O_CLOEXEC);

	return fd >= 0;
}

/* The group that sees all processes in /proc in spite of hidepid: its option gid=, else root's. */
static gid_t proc_group(void)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	struct mntent m;
	char text[4096];
	gid_t gid = 0;

	while (f && getmntent_r(f, &m, text, sizeof(text))) {
		const char *o = strcmp(m.mnt_dir, "/proc") == 0 ? hasmntopt(&m, "gid") : NULL;

		if (o)
			gid = (gid_t)strtoul(o + strlen("gid="), NULL, 10);
	}
	if (f)
		endmntent(f);
	return gid;
}

int private_user_become(const struct private_user *u, bool looks)
{
	const bool saw = looks && sees_others();
	gid_t seeing;

	if (setgroups(0, NULL) != 0 || setresgid(u->gid, u->gid, u->gid) != 0)
		return -errno;
	/* the saved user keeps the way back open, to try what this user sees */
	if (setresuid(u->uid, u->uid, 0) != 0)
		return -errno;
	if (saw && !sees_others()) {
		seeing = proc_group();
		if (setresuid((uid_t)-1, 0, (uid_t)-1) != 0 || setgroups(1, &seeing) != 0)
			return -errno;
	}
	return setresuid(u->uid, u->uid, u->uid) == 0 ? 0 : -errno;
}

bool private_user_expose(pid_t tool)
{
	struct private_user u;

	/* else it is ended by its parent's privileges, or ends with its socket */
	return private_user_possible() && private_user_of(tool, &u) &&
	       setresuid(u.uid, (uid_t)-1, u.uid) == 0;
}

void private_user_before_fork(struct private_user_was *was)
{
	uid_t effective;

	getresuid(&was->real, &effective, &was->saved);
	was->changed = private_user_expose(getpid());
}

bool private_user_after_fork(const struct private_user_was *was)
{
	return !was->changed || setresuid(was->real, (uid_t)-1, was->saved) == 0;
}
