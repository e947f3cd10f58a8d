/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a task is in the cgroup that is recorded, or below it. Part of
 * offcpu.bpf.c.
 *
 * A cgroup is known by its id and by its level, the number of those above it:
 * a task is in it when the cgroup of that level, on the way from the root to
 * the task's own, has the id. Where user space cannot see the root, inside
 * a cgroup namespace, the level is learnt from the first task that is in it.
 */
#ifndef STACKTOOLS_OFFCPU_CGROUP_BPF_H
#define STACKTOOLS_OFFCPU_CGROUP_BPF_H

#define CGROUP_LEVELS_MAX 64 /* that are searched where the level is not known */

const volatile bool use_cgroup;
const volatile bool cgroup_v1;
const volatile __u32 cgroup_subsys; /* v1: the controller's enum cgroup_subsys_id */
const volatile __u64 cgroup_id; /* kernfs_node.id: of its hierarchy alone */

/* Read at every switch, so in a cache line of its own. */
struct {
	__u32 level; /* + 1; 0 = not known yet */
	__u32 moved; /* something has left the cgroup: `moved` has bits */
	__u32 pad[14];
} cgroup_at __attribute__((aligned(64)));

static __always_inline struct cgroup *cgroup_of(struct task_struct *task)
{
	struct css_set *set = task->cgroups;
	struct cgroup_subsys_state **css;

	if (!cgroup_v1)
		return set->dfl_cgrp;
	css = (void *)set + bpf_core_field_offset(struct css_set, subsys) + cgroup_subsys * sizeof(*css);
	return (*css)->cgroup;
}

/* The id of the cgroup of LEVEL above CGRP, which is not above that level. */
static __always_inline __u64 ancestor_id(struct cgroup *cgrp, __u32 level)
{
	struct cgroup *above = NULL;
	__u64 id = 0;

	if (!bpf_core_field_exists(cgrp->ancestors)) {
		bpf_probe_read_kernel(&id, sizeof(id),
			(void *)cgrp + bpf_core_field_offset(struct cgroup___ids, ancestor_ids) +
				level * sizeof(id));
		return id;
	}
	bpf_probe_read_kernel(&above, sizeof(above),
		(void *)cgrp + bpf_core_field_offset(struct cgroup, ancestors) + level * sizeof(above));
	return above ? BPF_CORE_READ(above, kn, id) : 0;
}

/* Where its level is not known: is it on the way to CGRP? */
static __always_inline void learn_level(struct cgroup *cgrp)
{
	__u32 own = cgrp->level;

	if (!use_cgroup || cgroup_at.level)
		return;
	for (__u32 level = 0; level < CGROUP_LEVELS_MAX && level <= own; level++) {
		if (ancestor_id(cgrp, level) == cgroup_id) {
			cgroup_at.level = level + 1;
			return;
		}
	}
}

static __always_inline bool in_cgroup(struct task_struct *task)
{
	__u32 level = cgroup_at.level, own;
	struct cgroup *cgrp;

	/* as long as it is not known, there was nobody inside */
	if (!level)
		return false;
	level--;
	cgrp = cgroup_of(task);
	own = cgrp->level;
	if (own <= level)
		return own == level && cgrp->kn->id == cgroup_id;
	return ancestor_id(cgrp, level) == cgroup_id;
}

#endif
