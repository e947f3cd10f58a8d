/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cgroup - one control group: which it is, for BPF and for /proc.
 *
 * Sources: mount points by /proc/self/mountinfo (proc_pid_mountinfo(5)), the
 * id by name_to_handle_at(2), which is kernfs_node.id of the kernel and belongs
 * to its hierarchy alone, and what a process is in by /proc/PID/cgroup
 * (cgroups(7)). In a cgroup namespace the paths of these files begin at its
 * root, for both in the same way.
 */
#ifndef STACKTOOLS_SYSTEM_CGROUP_H
#define STACKTOOLS_SYSTEM_CGROUP_H

#include "base/err.h"

#define CGROUP_CONTROLLER_LEN 16

struct cgroup {
	int fd; /* O_PATH of its directory */
	uint64_t id;
	char controller[CGROUP_CONTROLLER_LEN]; /* of cgroup v1, as /proc/cgroups has it; "" = cgroup v2 */
	char *dir; /* absolute path of its directory */
	char *path; /* in its hierarchy, as /proc/PID/cgroup shows it */
};

/* A mounted hierarchy; what `point` and `root` say belongs to whom cgroup_mounts() gives it, for the call. */
struct cgroup_mount {
	int id; /* of the mount */
	bool v2;
	char controller[CGROUP_CONTROLLER_LEN]; /* v1: the first of those that it has; "" = a named one
						   without */
	const char *root, *point;
};

/* Hand each mounted hierarchy to TAKE, until it returns another number than 0, which is returned. -errno. */
int cgroup_mounts(int (*take)(void *ctx, const struct cgroup_mount *m), void *ctx, struct err *e);

/*
 * The cgroup of directory PATH: of any mounted hierarchy, v2 or v1; or, where
 * that is none, below the mount point of cgroup v2. Release *RET with
 * cgroup_close(). -EINVAL: PATH is no cgroup, or one of a hierarchy without
 * controller, which BPF programs cannot tell.
 */
int cgroup_open(const char *path, struct cgroup **ret, struct err *e);
void cgroup_close(struct cgroup *c); /* NULL is fine */

/* Is a process (or thread) in it, or below, whose /proc/PID/cgroup is TEXT? TEXT is cut up; a line without
 * its end is none. */
bool cgroup_lists(const struct cgroup *c, char *text);

/* Its directory is gone: nothing can ever be in it again. */
bool cgroup_removed(const struct cgroup *c);

#endif
