/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/pathlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* What can be denied, by version: a kernel refuses bits that it does not know. */
static const uint64_t known[] = { 0, (1 << 13) - 1, (1 << 14) - 1, (1 << 15) - 1, (1 << 15) - 1,
	(1 << 16) - 1 };

#define READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define OF_FILES                                                                                             \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | (1 << 14) /* truncate */) /* what is no right of a directory */

int pathlock_version(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return version > 0 ? (int)version : 0;
}

/* A descriptor of a set of rules that denies all of WHAT that the kernel knows. */
static int new_rules(uint64_t what, uint64_t *handled)
{
	int version = pathlock_version();
	struct landlock_ruleset_attr attr = { 0 };

	if (!version)
		return -1;
	*handled = attr.handled_access_fs = known[MIN((size_t)version, ARRAY_LEN(known) - 1)] & what;
	return (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
}

static void permit(int rules, const char *path, uint64_t handled)
{
	_cleanup_close_ int fd = path ? open(path, O_PATH | O_CLOEXEC) : -1;
	struct landlock_path_beneath_attr rule = { .parent_fd = fd };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return;
	rule.allowed_access =
		handled & (S_ISDIR(st.st_mode) ? ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE : OF_FILES);
	syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

bool pathlock_all(void)
{
	uint64_t handled;
	_cleanup_close_ int rules = new_rules(UINT64_MAX, &handled);

	return rules >= 0 && syscall(SYS_landlock_restrict_self, rules, 0) == 0;
}

bool pathlock_writing(const char *const *paths, size_t n)
{
	uint64_t handled;
	_cleanup_close_ int rules = new_rules(~(uint64_t)READS, &handled);

	if (rules < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		permit(rules, paths[i], handled);
	return syscall(SYS_landlock_restrict_self, rules, 0) == 0;
}
