/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether the recorder's caller could read the memory of a task without
 * privileges: the rule of the kernel's __ptrace_may_access() with
 * PTRACE_MODE_READ, for a caller in the initial user namespace who has no
 * capability in it. Part of offcpu.bpf.c.
 *
 * Checked at both ends of a wait. The IDs of a thread cannot change while it
 * waits, but another thread of its process can make the memory undumpable: a
 * wait is recorded only if the caller may trace the thread both when it begins
 * and when it ends.
 */
#ifndef STACKTOOLS_OFFCPU_OWNER_BPF_H
#define STACKTOOLS_OFFCPU_OWNER_BPF_H

const volatile bool owner_only;
const volatile __u32 owner_uid;
const volatile __u32 owner_gid;

#define USER_NS_DEPTH 32 /* maximum nesting depth: include/linux/user_namespace.h */
#define SUID_DUMP_USER 1 /* include/linux/sched/coredump.h, and the mask of those bits */
#define DUMPABLE_MASK 3

static __always_inline __u32 read_u32(const void *base, __u32 offset)
{
	__u32 value = ~0u;

	bpf_probe_read_kernel(&value, sizeof(value), base + offset);
	return value;
}

static __always_inline __u64 read_u64(const void *base, __u32 offset)
{
	__u64 value = ~0ULL;

	bpf_probe_read_kernel(&value, sizeof(value), base + offset);
	return value;
}

#define CRED_IS(cred, member, id) (read_u32(cred, bpf_core_field_offset(struct cred, member)) == (id))

static __always_inline bool owner_ids(const struct cred *cred)
{
	return CRED_IS(cred, euid, owner_uid) && CRED_IS(cred, suid, owner_uid) &&
	       CRED_IS(cred, uid, owner_uid) && CRED_IS(cred, egid, owner_gid) &&
	       CRED_IS(cred, sgid, owner_gid) && CRED_IS(cred, gid, owner_gid);
}

/* Did the caller create NS or one of its ancestors? The creator has every capability in it. */
static __always_inline bool owner_made(struct user_namespace *ns)
{
	for (int i = 0; i < USER_NS_DEPTH && ns; i++) {
		__u32 level = BPF_CORE_READ(ns, level);

		if (level <= 1)
			return level == 1 &&
			       read_u32(ns, bpf_core_field_offset(struct user_namespace, owner)) == owner_uid;
		ns = BPF_CORE_READ(ns, parent);
	}
	return false;
}

/* Since 6.18 the flags are a bit map, which may grow to more than one word. */
static __always_inline bool mm_dumpable(struct mm_struct *mm)
{
	__u64 flags = 0;

	if (bpf_core_field_exists(struct mm_struct___word, flags))
		flags = read_u64(mm, bpf_core_field_offset(struct mm_struct___word, flags));
	else if (bpf_core_field_exists(struct mm_struct___bits, flags))
		flags = read_u64(mm, bpf_core_field_offset(struct mm_struct___bits, flags));
	return (flags & DUMPABLE_MASK) == SUID_DUMP_USER;
}

/*
 * 7.3 keeps this in the task; 7.0 and earlier keep it in its memory descriptor.
 * An exiting thread has no memory descriptor any more: some of these kernels
 * keep the last value, others do not provide it.
 */
static __always_inline bool owner_dumpable(struct task_struct *task)
{
	const struct task_struct___exec *since = (void *)task;
	const struct task_struct___dumpable *exiting = (void *)task;
	struct mm_struct *mm;

	if (bpf_core_field_exists(since->exec_state))
		return BPF_CORE_READ(since, exec_state, dumpable) == TASK_DUMPABLE_OWNER ||
		       owner_made(BPF_CORE_READ(since, exec_state, user_ns));
	mm = BPF_CORE_READ(task, mm);
	if (mm)
		return mm_dumpable(mm) || owner_made(BPF_CORE_READ(mm, user_ns));
	return bpf_core_field_exists(exiting->user_dumpable) &&
	       BPF_CORE_READ_BITFIELD_PROBED(exiting, user_dumpable);
}

/* Most recordings ask nobody: a function of its own is removed in one piece, and only once. */
static __noinline bool owner_allows(struct task_struct *task)
{
	const struct cred *cred = BPF_CORE_READ(task, real_cred);
	struct user_namespace *ns = BPF_CORE_READ(cred, user_ns);
	bool made;

	if (task->flags & PF_KTHREAD)
		return false;
	made = owner_made(ns);
	if (!made && (!owner_ids(cred) || BPF_CORE_READ(ns, level)))
		return false;
	if (!made && read_u64(cred, bpf_core_field_offset(struct cred, cap_permitted)))
		return false;
	return owner_dumpable(task);
}

/* A target that the caller may not trace. */
static __always_inline bool not_owned(struct task_struct *task)
{
	return owner_only && !owner_allows(task);
}

#endif
