/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/arm64.h"

#define UCONTEXT_REGS (128 + 184) /* in a struct rt_sigframe: siginfo, and what precedes x0 in ucontext */
#define MODE32_BIT 0x10

uint64_t unwindarm64_saved(const __u64 *pt_regs, unsigned int reg)
{
	return pt_regs[reg];
}

unsigned int unwindarm64_ucontext(unsigned int reg, bool narrow)
{
	(void)narrow;
	return UCONTEXT_REGS + 8 * reg;
}

bool unwindarm64_is_narrow(const __u64 *pt_regs)
{
	return pt_regs[UNWINDARM64_PSTATE_WORD] & MODE32_BIT;
}

void unwindarm64_set_narrow(__u64 *pt_regs)
{
	pt_regs[UNWINDARM64_PSTATE_WORD] |= MODE32_BIT;
}

bool unwindarm64_in_syscall(const __u64 *pt_regs)
{
	return (int32_t)pt_regs[UNWINDARM64_CALL_WORD] >= 0;
}
