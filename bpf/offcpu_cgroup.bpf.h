/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a task is in the recorded cgroup or below it. Part of offcpu.bpf.c.
 *
 * User space knows the ID of the cgroup. The programs learn its address and its
 * level (the number of cgroups above it) from the first task inside that they
 * see. From then on a task is inside if the cgroup at that level, on the path
 * from the root to the task's own cgroup, has that address. Until then no task
 * is inside. When the cgroup is removed, the address is forgotten, because
 * another cgroup may get it.
 */
#ifndef STACKTOOLS_OFFCPU_CGROUP_BPF_H
#define STACKTOOLS_OFFCPU_CGROUP_BPF_H

#define CGROUP_LEVELS_MAX 256 /* levels searched for the cgroup */

const volatile bool use_cgroup;
const volatile bool cgroup_v1;
const volatile __u32 cgroup_subsys; /* v1: the controller's enum cgroup_subsys_id */
const volatile __u64 cgroup_id; /* kernfs_node.id: unique only within its hierarchy */

/* Read at every switch, so it has a cache line of its own. */
struct {
	__u64 address; /* 0 = not known yet */
	__u32 level;
	__u32 left; /* how often tasks have left the cgroup, or moved elsewhere outside */
	__u64 looked_ns; /* before that time user space has looked for their waits: offcpu_left.bpf.h */
	__u64 pad[5];
} cgroup_at __attribute__((aligned(64))) = {};

static __always_inline struct cgroup *cgroup_of(struct task_struct *task)
{
	struct css_set *set = task->cgroups;
	struct cgroup_subsys_state **css;

	if (!cgroup_v1)
		return set->dfl_cgrp;
	css = (void *)set + bpf_core_field_offset(struct css_set, subsys) + cgroup_subsys * sizeof(*css);
	return (*css)->cgroup;
}

/* For kernels without `ancestors`: the ID of the cgroup at LEVEL above CGRP. */
static __always_inline __u64 ancestor_id(struct cgroup *cgrp, __u32 level)
{
	__u64 id = 0;

	bpf_probe_read_kernel(&id, sizeof(id),
		(void *)cgrp + bpf_core_field_offset(struct cgroup___ids, ancestor_ids) + level * sizeof(id));
	return id;
}

/* The address of the cgroup at LEVEL above CGRP. LEVEL must not exceed CGRP's own level. */
static __always_inline struct cgroup *ancestor(struct cgroup *cgrp, __u32 level)
{
	struct cgroup *above = NULL;

	bpf_probe_read_kernel(&above, sizeof(above),
		(void *)cgrp + bpf_core_field_offset(struct cgroup, ancestors) + level * sizeof(above));
	return above;
}

/* If the recorded cgroup is CGRP or above it, remember its level and address. */
static __always_inline void learn_cgroup(struct cgroup *cgrp)
{
	bool ids = !bpf_core_field_exists(cgrp->ancestors);
	__u32 own = cgrp->level;

	if (cgroup_at.address)
		return;
	for (__u32 level = 0; level < CGROUP_LEVELS_MAX && level <= own; level++) {
		struct cgroup *above = ids ? NULL : ancestor(cgrp, level);

		if ((ids ? ancestor_id(cgrp, level) : BPF_CORE_READ(above, kn, id)) != cgroup_id)
			continue;
		cgroup_at.level = level;
		/* if only IDs are available, the address only says that the level is known */
		__sync_lock_test_and_set(&cgroup_at.address, ids ? ~0ULL : (__u64)above);
		return;
	}
}

static __always_inline bool is_inside(struct cgroup *cgrp, __u64 address, __u32 level)
{
	if ((__u64)cgrp == address)
		return true;
	if (!bpf_core_field_exists(cgrp->ancestors))
		return (__u32)cgrp->level >= level && ancestor_id(cgrp, level) == cgroup_id;
	return (__u32)cgrp->level > level && (__u64)ancestor(cgrp, level) == address;
}

static __always_inline bool in_cgroup(struct task_struct *task)
{
	__u64 address = cgroup_at.address;

	return address && is_inside(cgroup_of(task), address, cgroup_at.level);
}

/* For two tasks: usually they share a cgroup, or both are far from the recorded one. */
static __always_inline bool either_in_cgroup(struct task_struct *a, struct task_struct *b)
{
	__u64 address = cgroup_at.address;
	__u32 level = cgroup_at.level;
	struct cgroup *of_a, *of_b;

	if (!address)
		return false;
	of_a = cgroup_of(a);
	of_b = cgroup_of(b);
	return is_inside(of_a, address, level) || (of_a != of_b && is_inside(of_b, address, level));
}

#endif
