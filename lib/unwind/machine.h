/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * machine - what differs between the machines whose call frame information is
 * compiled: the numbers of registers, where a call leaves the return address,
 * and thus which rules of call frame information a row can hold. Not the machine
 * that this program runs on: any file can be compiled anywhere (unwind/host.h).
 *
 * System V ABI for x86-64, section 3.7.2 (registers), 3.4 and figure 3.36
 * (DWARF numbers), and for i386, table 2.14; DWARF for the Arm 64-bit
 * Architecture, section 4 (DWARF numbers, signed return addresses).
 */
#ifndef STACKTOOLS_UNWIND_MACHINE_H
#define STACKTOOLS_UNWIND_MACHINE_H

#include "unwind/cfi.h"
#include "unwind_abi.h"

#define UNWINDMACHINE_REGS 32 /* general registers, at most */

struct unwindmachine {
	uint16_t elf; /* EM_* */
	uint8_t word, word_shift; /* bytes of a word */
	uint8_t sp, fp, ra, bx; /* DWARF numbers in the file; bx: UNWINDMACHINE_NO_REG = there is none */
	uint8_t general; /* number of general registers, which come first */
	/* a call leaves the return address in register `ra`, which is a general one, and not on the stack */
	bool link;
	uint8_t nop; /* a call frame instruction without operands that changes no column; 0 = none */
	uint8_t number[UNWINDMACHINE_REGS]; /* in rules: of i386, the numbers of x86-64 */
	const char *name[UNWINDMACHINE_REGS]; /* by the number in rules */
};

enum { UNWINDMACHINE_NO_REG = 255 };

/* The machine of ELF files with e_machine ELF of the class that IS64 says; NULL if it is not known here. */
const struct unwindmachine *unwindmachine_find(uint16_t elf, bool is64);

/* The same by e_machine alone, as unwind/table.h has it. Never NULL: of an unknown machine, x86-64. */
const struct unwindmachine *unwindmachine_of(uint32_t elf);

/* Can code of that machine run where this program runs? A walk follows only tables of which it can. */
bool unwindmachine_is_here(uint32_t elf);

/* The columns of a CIE with return address RA. Returns false if it cannot be one of M. */
bool unwindmachine_columns(const struct unwindmachine *m, uint64_t ra, struct cfarun_regs *ret);

/* What a rule cannot express. */
enum unwindmachine_lost {
	UNWINDMACHINE_LOST_CFA = 1, /* the frame or the return address: the rule is UNWIND_CFA_UNSUPPORTED */
	UNWINDMACHINE_LOST_FP = 2, /* the frame pointer: UNWIND_FP_UNKNOWN */
};

/*
 * Convert RULES to *RET; SIGNAL: the frame is that of a signal handler. Returns
 * what was lost, 0 = nothing.
 */
unsigned int unwindmachine_rule(
	const struct unwindmachine *m, const struct cfarules *rules, bool signal, struct unwind_rule *ret);

/*
 * libc of x86 ends the unwind information of clone and clone3 right before their
 * system call, because it would be wrong in the child. The parent blocks there
 * (as after vfork), and for it the last row is still valid. The length of a
 * system call instruction, and are these bytes one?
 */
#define UNWINDMACHINE_SYSCALL_MAX 4
unsigned int unwindmachine_syscall_bytes(const struct unwindmachine *m);
bool unwindmachine_is_syscall(const struct unwindmachine *m, const uint8_t *code);

/* The name of register REG of a rule ("rbp", "ebp", "x29"); NULL if it is not a general register. */
const char *unwindmachine_register(const struct unwindmachine *m, unsigned int reg);

#endif
