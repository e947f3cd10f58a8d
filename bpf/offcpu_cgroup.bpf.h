/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a task is in the cgroup that is recorded, or below it. Part of
 * offcpu.bpf.c.
 *
 * User space knows its id. Its address and its level, the number of those
 * above it, are learnt from the first task inside, when it comes; from then on
 * a task is in it when the cgroup of that level, on the way from the root to
 * the task's own, has that address. Until then nobody is inside. As it is
 * removed the address is forgotten, for another may get it.
 */
#ifndef STACKTOOLS_OFFCPU_CGROUP_BPF_H
#define STACKTOOLS_OFFCPU_CGROUP_BPF_H

#define CGROUP_LEVELS_MAX 256 /* that are searched for it */

const volatile bool use_cgroup;
const volatile bool cgroup_v1;
const volatile __u32 cgroup_subsys; /* v1: the controller's enum cgroup_subsys_id */
const volatile __u64 cgroup_id; /* kernfs_node.id: of its hierarchy alone */

/* Read at every switch, so in a cache line of its own. */
struct {
	__u64 address; /* 0 = not known yet */
	__u32 level;
	__u32 moved; /* something has left the cgroup: `moved` has bits */
	__u64 pad[6];
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

/* Of kernels before `ancestors`: the id of the cgroup of LEVEL above CGRP. */
static __always_inline __u64 ancestor_id(struct cgroup *cgrp, __u32 level)
{
	__u64 id = 0;

	bpf_probe_read_kernel(&id, sizeof(id),
		(void *)cgrp + bpf_core_field_offset(struct cgroup___ids, ancestor_ids) + level * sizeof(id));
	return id;
}

/* Its address. LEVEL is not below CGRP's own. */
static __always_inline struct cgroup *ancestor(struct cgroup *cgrp, __u32 level)
{
	struct cgroup *above = NULL;

	bpf_probe_read_kernel(&above, sizeof(above),
		(void *)cgrp + bpf_core_field_offset(struct cgroup, ancestors) + level * sizeof(above));
	return above;
}

/* Is it on the way to CGRP? */
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
		/* with ids alone the address says no more than that the level is known */
		__sync_lock_test_and_set(&cgroup_at.address, ids ? ~0ULL : (__u64)above);
		return;
	}
}

static __always_inline bool is_inside(struct cgroup *cgrp, __u64 address)
{
	__u32 level = cgroup_at.level;

	if ((__u64)cgrp == address)
		return true;
	if (!bpf_core_field_exists(cgrp->ancestors))
		return (__u32)cgrp->level >= level && ancestor_id(cgrp, level) == cgroup_id;
	return (__u32)cgrp->level > level && (__u64)ancestor(cgrp, level) == address;
}

static __always_inline bool in_cgroup(struct task_struct *task)
{
	__u64 address = cgroup_at.address;

	return address && is_inside(cgroup_of(task), address);
}

/* Either of two: most are neighbours, or both far from it. */
static __always_inline bool either_in_cgroup(struct task_struct *a, struct task_struct *b)
{
	__u64 address = cgroup_at.address;
	struct cgroup *of_a, *of_b;

	if (!address)
		return false;
	of_a = cgroup_of(a);
	of_b = cgroup_of(b);
	return is_inside(of_a, address) || (of_a != of_b && is_inside(of_b, address));
}

#endif
