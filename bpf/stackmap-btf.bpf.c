/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stackmap-btf - programs that take stacks at BTF-typed tracepoints. A separate
 * object, so that the other program types work on a kernel without BTF. Their
 * sections are those of system/kernel_btf.h, so that libbpf does not parse the
 * kernel's BTF for each case.
 */
#include "stackmap-take.h"
#include "stackmap-kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

SEC("kern_tp/sys_enter")
int BPF_PROG(at_tp_btf, void *regs, long id)
{
	return (__u64)id == state.nr ? take(ctx) : 0;
}

static __always_inline long state_of(struct task_struct *t)
{
	if (bpf_core_field_exists(t->__state))
		return t->__state;
	return ((struct task_struct___old *)t)->state;
}

/*
 * `current` is still the thread that leaves. Only an interruptible sleep is the
 * expected one: a page fault waits uninterruptibly, and a thread that is
 * preempted on its way to sleep has the state already.
 */
SEC("kern_tp/sched_switch")
int BPF_PROG(at_sched_switch, _Bool preempt, struct task_struct *prev)
{
	if (state.armed == STACKMAP_KTHREAD) {
		/* pid 0 is the idle task, which was not started by a process */
		if ((prev->flags & PF_KTHREAD) && prev->pid != 0)
			take_once(ctx);
		return 0;
	}
	return !preempt && (state_of(prev) & TASK_INTERRUPTIBLE) ? take(ctx) : 0;
}
