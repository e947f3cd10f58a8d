/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfarun - runs the call frame instructions of an FDE and gives the rows of
 * the table that they describe.
 *
 * DWARF 5, section 6.4.2, and the GNU extensions of .eh_frame. Of the
 * columns only five are kept: the CFA, and the registers that a walk needs,
 * whose numbers the caller gives. The rules for all other registers are read
 * over. Nothing is believed: a state is remembered CFARUN_DEPTH deep at most,
 * a location never goes back, operands never pass the instructions' end.
 */
#ifndef STACKTOOLS_CFARUN_H
#define STACKTOOLS_CFARUN_H

#include "base/bytes.h"
#include "unwind/cfi.h"

#define CFARUN_DEPTH 32

enum cfarule_kind {
	CFARULE_UNSPECIFIED = 0, /* the ABI's default */
	CFARULE_UNDEFINED,
	CFARULE_SAME,
	CFARULE_OFFSET, /* saved at CFA + off; of the CFA: reg + off */
	CFARULE_VAL_OFFSET, /* is CFA + off */
	CFARULE_REGISTER, /* in reg */
	CFARULE_EXPRESSION, /* saved where the expression says; of the CFA: what it says */
	CFARULE_VAL_EXPRESSION, /* is what the expression says */
};

struct cfarule {
	uint32_t kind; /* enum cfarule_kind */
	uint32_t reg; /* or the length of the expression */
	union {
		int64_t off;
		const uint8_t *expr; /* in the section */
	};
};

enum cfarun_column { CFARUN_CFA, CFARUN_SP, CFARUN_FP, CFARUN_RA, CFARUN_BX, CFARUN_COLUMNS };

struct cfarules {
	struct cfarule col[CFARUN_COLUMNS];
};

/* Which registers the columns stand for. */
struct cfarun_regs {
	uint64_t sp, fp, ra;
	uint64_t bx; /* one more that is callee-saved */
};

struct cfarun {
	const struct cfi_cie *cie;
	const struct cfi_section *section;
	const struct cfarules *initial; /* what DW_CFA_restore goes back to */
	struct cfarun_regs regs;
	struct rd insns;
	uint64_t loc, end; /* where the instructions are, and the range's end */
	struct cfarules now;
	bool changed,
		moved; /* since the last row; moved: the offset of the CFA, by register before and now */
	bool same; /* the row that was given differs from the one before by that offset alone */
	bool bad; /* an instruction that is unknown or makes no sense: the rest of the range is not known */
	unsigned int depth;
	struct cfarules saved[CFARUN_DEPTH];
};

/*
 * The rules that CIE begins with, into *RET. False where its instructions
 * make no sense. A register that they do not mention is CFARULE_UNSPECIFIED.
 */
bool cfarun_initial(const struct cfi_section *s, const struct cfi_cie *cie, const struct cfarun_regs *regs,
	struct cfarules *ret);

/* Begin FDE of CIE; INITIAL is what cfarun_initial() gave and must outlive the run. */
void cfarun_begin(struct cfarun *r, const struct cfi_section *s, const struct cfi_cie *cie,
	const struct cfi_fde *f, const struct cfarun_regs *regs, const struct cfarules *initial);

/*
 * The next row: R->now holds from *START up to the next row or the range's
 * end. False when there is none. Once R->bad is set, it holds for nothing:
 * *START is where the knowledge ends.
 */
bool cfarun_next(struct cfarun *r, uint64_t *start);

#endif
