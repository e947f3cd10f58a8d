/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host - the registers of the threads that are walked here: those of the machine
 * that this program was compiled for. Files of any machine can be compiled
 * (unwind/machine.h).
 */
#ifndef STACKTOOLS_UNWIND_HOST_H
#define STACKTOOLS_UNWIND_HOST_H

#include "unwind_abi.h"

/* LR: the register in which a call leaves the return address; 0 = it is on the stack. */
#if defined(UNWIND_ARM64)
#include "unwind/arm64.h"
enum {
	HOST_REGS = UNWINDARM64_REGS,
	HOST_FP = UNWINDARM64_FP,
	HOST_SP = UNWINDARM64_SP,
	HOST_PC = UNWINDARM64_PC,
	HOST_BX = UNWINDARM64_BX,
};
#define HOST_LR 30
#define HOST(name) unwindarm64_##name
#else
#include "unwind/x86.h"
enum {
	HOST_REGS = UNWINDX86_REGS,
	HOST_FP = UNWINDX86_FP,
	HOST_SP = UNWINDX86_SP,
	HOST_PC = UNWINDX86_RA,
	HOST_BX = UNWINDX86_BX,
};
#define HOST_LR 0
#define HOST(name) unwindx86_##name
#endif

#endif
