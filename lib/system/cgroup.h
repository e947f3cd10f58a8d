/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cgroup - one control group, identified for BPF and for /proc.
 *
 * Sources: mount points from /proc/self/mountinfo (proc_pid_mountinfo(5)); the
 * id from name_to_handle_at(2), which is kernfs_node.id of the kernel and is
 * valid in its hierarchy only; the cgroups of a process from /proc/PID/cgroup
 * (cgroups(7)). In a cgroup namespace the paths in both files begin at its root.
 */
#ifndef STACKTOOLS_SYSTEM_CGROUP_H
#define STACKTOOLS_SYSTEM_CGROUP_H

#include "base/err.h"

#define CGROUP_CONTROLLER_LEN 16

struct cgroup {
	int fd; /* O_PATH of its directory */
	uint64_t id;
	char controller[CGROUP_CONTROLLER_LEN]; /* of cgroup v1, named as in /proc/cgroups; "" = cgroup v2 */
	char *dir; /* absolute path of its directory */
	char *path; /* in its hierarchy, as /proc/PID/cgroup shows it */
};

/* A mounted hierarchy. `root` and `point` are valid only during the call by cgroup_mounts(). */
struct cgroup_mount {
	int id; /* of the mount */
	bool v2;
	char controller[CGROUP_CONTROLLER_LEN]; /* v1: the first of its controllers; "" = a named hierarchy
						   without any */
	const char *root, *point;
};

/*
 * Call TAKE for each mounted hierarchy. The first nonzero result of TAKE ends the
 * walk and is returned. -errno if mountinfo cannot be read.
 */
int cgroup_mounts(int (*take)(void *ctx, const struct cgroup_mount *m), void *ctx, struct err *e);

/*
 * Open the cgroup of directory PATH in any mounted hierarchy, v2 or v1. If PATH
 * is not a cgroup, it is looked up below the mount point of cgroup v2. Release
 * *RET with cgroup_close(). -EINVAL: PATH is not a cgroup, or its hierarchy has
 * no controllers and BPF programs cannot see it.
 */
int cgroup_open(const char *path, struct cgroup **ret, struct err *e);
void cgroup_close(struct cgroup *c); /* NULL is fine */

/*
 * Whether the process (or thread) whose /proc/PID/cgroup is TEXT is in the cgroup
 * or below it. TEXT is modified; a line without a newline is ignored.
 */
bool cgroup_lists(const struct cgroup *c, char *text);

/* Whether its directory is gone: no process can ever be in it again. */
bool cgroup_removed(const struct cgroup *c);

#endif
