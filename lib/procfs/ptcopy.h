/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ptcopy - the registers of a thread and a copy of its stack.
 *
 * It lies in memory that the process which walks it can read at an offset (a
 * memfd), so nothing is copied twice. Registers have their DWARF numbers:
 * System V ABI for x86-64, figure 3.36; 16 is the PC.
 */
#ifndef STACKTOOLS_PTCOPY_H
#define STACKTOOLS_PTCOPY_H

#include "base/base.h"

#include <sys/types.h>

#define PTCOPY_REGS 17
#define PTCOPY_BP 6
#define PTCOPY_SP 7
#define PTCOPY_PC 16
#define PTCOPY_ALL ((1u << PTCOPY_REGS) - 1) /* of `known` */

#define PTCOPY_AREAS 4
#define PTCOPY_AREA_BYTES (64u << 10)
#define PTCOPY_BELOW_SP 128 /* a leaf's own, by the same ABI */

struct ptcopy_area {
	uint64_t from, len; /* what was at FROM; LEN bytes could be read */
};

struct ptcopy_head {
	uint64_t regs[PTCOPY_REGS];
	uint32_t known; /* which of them are: bit N for register N */
	uint32_t n_areas;
	struct ptcopy_area areas[PTCOPY_AREAS];
};

struct ptcopy {
	struct ptcopy_head head;
	uint8_t bytes[PTCOPY_AREAS][PTCOPY_AREA_BYTES];
};

/* Forget what it holds: no register known, no area. */
void ptcopy_reset(struct ptcopy *c);

/*
 * Copy what thread or process ID has from FROM upwards, as far as it is
 * mapped and an area is long. False when nothing could be read, or there are
 * PTCOPY_AREAS already.
 */
bool ptcopy_area(struct ptcopy *c, pid_t id, uint64_t from);

/* The area of its stack, by its SP. */
bool ptcopy_stack(struct ptcopy *c, pid_t id);

#endif
