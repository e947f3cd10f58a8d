/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pltx86 - what a stub of a procedure linkage table does, on x86-64.
 *
 * Formats: System V ABI for x86-64, "Procedure Linkage Table"; the variants for
 * indirect branch tracking (endbr64, .plt.sec) and against speculation
 * (retpolines) as the linkers lay them out. All of them begin with one
 * instruction that reads the slot of the global offset table, or, where that
 * is in .plt.sec, with one that pushes the number of the relocation. Another
 * architecture is another such file.
 */
#ifndef STACKTOOLS_PLTX86_H
#define STACKTOOLS_PLTX86_H

#include "base/base.h"

#define PLTX86_ALIGN 8 /* stubs begin at multiples of it, counted from the section's beginning */

struct pltx86_stub {
	size_t len; /* of its instructions, without padding */
	bool by_index; /* `index` tells which function, else `slot` */
	uint64_t slot; /* address in the global offset table */
	uint32_t index; /* of the relocation in .rela.plt */
};

/* Is there a stub at P (LEN bytes, more than one stub maybe), which lies at VADDR? */
bool pltx86_stub(const uint8_t *p, size_t len, uint64_t vaddr, struct pltx86_stub *ret);

enum pltx86_fills {
	PLTX86_OTHER, /* no function's address */
	PLTX86_SYMBOL, /* the address of the relocation's symbol */
	PLTX86_RESOLVER, /* what the function at the relocation's addend returns (IFUNC) */
};

/* What a relocation of TYPE (R_X86_64_*) puts into its slot. */
enum pltx86_fills pltx86_fills(uint32_t type);

#endif
