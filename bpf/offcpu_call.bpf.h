/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the arguments of a system call say of a wait: that it ends by itself, and that it is for nothing else.
 * The same for a thread that leaves the CPU and for one that waits already. Part of offcpu.bpf.c.
 */
#ifndef STACKTOOLS_OFFCPU_CALL_BPF_H
#define STACKTOOLS_OFFCPU_CALL_BPF_H

#ifndef OFFCPU_RAW

#if defined(__TARGET_ARCH_arm64)
#define CALL_FUTEX 98
#define CALL_PPOLL 73
#define CALL_PSELECT6 72
#define CALL_SIGTIMEDWAIT 137
#define CALL_ARG(regs, n) ((n) ? (regs)->user.regs[n] : (regs)->orig_x0)
#else
#define CALL_FUTEX 202
#define CALL_POLL 7
#define CALL_PPOLL 271
#define CALL_PSELECT6 270
#define CALL_SELECT 23
#define CALL_SIGTIMEDWAIT 128
#define CALL_ARG(regs, n)                                                                                    \
	((n) == 0          ? (regs)->rdi                                                                     \
		: (n) == 1 ? (regs)->rsi                                                                     \
		: (n) == 2 ? (regs)->rdx                                                                     \
		: (n) == 3 ? (regs)->r10                                                                     \
			   : (regs)->r8)
#endif

/* OFFCPU_F_TIMED and OFFCPU_F_NO_DESCRIPTORS of the system call that TASK is in. */
static __always_inline __u32 call_flags(struct task_struct *task)
{
	const struct pt_regs *regs;
	__u32 call, timed, none;

	if (task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return 0;
	regs = (void *)bpf_task_pt_regs(task);
	if (!arch_in_syscall(regs) || arch_is_32bit(regs))
		return 0;
	call = arch_syscall(regs);
	if (call == CALL_FUTEX) /* the other commands that have a timeout are those of locks */
		return CALL_ARG(regs, 3) && (CALL_ARG(regs, 1) & 0x7f) % 9 == 0 ? OFFCPU_F_TIMED : 0;
	if (call == CALL_SIGTIMEDWAIT)
		return CALL_ARG(regs, 2) ? OFFCPU_F_TIMED : 0;
#ifdef CALL_POLL
	if (call == CALL_POLL) {
		none = !(__u32)CALL_ARG(regs, 1);
		timed = (__s32)CALL_ARG(regs, 2) >= 0;
	} else
#endif
		if (call == CALL_PPOLL) {
		none = !(__u32)CALL_ARG(regs, 1);
		timed = CALL_ARG(regs, 2) != 0;
	} else if (call == CALL_PSELECT6
#ifdef CALL_SELECT
		   || call == CALL_SELECT
#endif
	) {
		none = !(__u32)CALL_ARG(regs, 0);
		timed = CALL_ARG(regs, 4) != 0;
	} else {
		return 0;
	}
	return (timed ? OFFCPU_F_TIMED : 0) | (none ? OFFCPU_F_NO_DESCRIPTORS : 0);
}

#else

/* Not worth a copy of the registers. */
static __always_inline __u32 call_flags(struct task_struct *task)
{
	return 0;
}

#endif

#endif
