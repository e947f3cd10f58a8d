/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi - call frame information: the CIEs and FDEs of an .eh_frame or
 * .debug_frame section.
 *
 * Formats: DWARF 5, section 6.4.1; Linux Standard Base, section 10.6
 * (.eh_frame). Versions 1, 3 and 4, 32-bit and 64-bit lengths, and all pointer
 * encodings except indirect ones. textrel, datarel and funcrel pointers are
 * relative to 0: no linker for x86 generates them. The input is
 * untrusted: every entry must lie inside the section, the CIE of an FDE must be
 * an entry itself, and the work is one pass over the section.
 */
#ifndef STACKTOOLS_UNWIND_CFI_H
#define STACKTOOLS_UNWIND_CFI_H

#include "base/bytes.h"
#include "base/err.h"

struct cfi_section {
	const uint8_t *p; /* must outlive what is read from it; less than 4 GiB */
	size_t len;
	uint64_t vaddr; /* of its first byte: base of pointers */
	bool eh; /* .eh_frame, else .debug_frame */
	bool narrow; /* addresses have 4 bytes, else 8 */
	bool open_end; /* the length is only an upper bound: a zero length word ends the section */
	bool partial; /* it has the first bytes of one entry, which may be longer */
};

struct cfi_cie {
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_reg; /* the column of the return address */
	uint32_t at; /* of the entry */
	uint32_t insns, insns_end; /* its initial instructions */
	uint8_t encoding; /* DW_EH_PE_* of its FDEs' addresses */
	uint8_t address_size;
	bool sized; /* 'z': augmentation data begin with their length */
	bool signal; /* 'S' */
};

struct cfi_fde {
	uint64_t pc, end; /* end exclusive, pc < end */
	uint32_t cie; /* index */
	uint32_t insns, insns_end; /* offsets in the section */
};

struct cfi {
	struct cfi_section section;
	struct cfi_cie *cies;
	struct cfi_fde *fdes; /* in the order of the section */
	size_t n_cies, n_fdes; /* valid ones */
	size_t bad_cies, bad_fdes; /* malformed, or FDEs of a malformed CIE */
	size_t empty; /* FDEs without code */
};

/*
 * Read all entries of S. Malformed entries are skipped and counted; if the
 * length of one leads out of the section, the rest counts as one bad FDE.
 * -E2BIG for 4 GiB or more, or too many entries; -ENOMEM. Release with
 * cfi_free().
 */
int cfi_read(const struct cfi_section *s, struct cfi *ret, struct err *e);

/*
 * Read an address in the encoding of CIE's FDEs at R, which is inside the
 * section. R turns bad if it is truncated.
 */
uint64_t cfi_pointer(struct rd *r, const struct cfi_section *s, const struct cfi_cie *cie);

/* Can an address in encoding ENC be read without running the program? */
bool cfi_known_encoding(uint8_t enc);

/*
 * Single entries, for a reader that has their addresses: S (.eh_frame) begins
 * with one, and may be partial. False if it is not such an entry or malformed.
 * cfi_one_fde() needs the CIE, whose address cfi_one_cie_vaddr() gives; of the
 * instructions it sets only where they begin.
 */
bool cfi_one_cie(const struct cfi_section *s, struct cfi_cie *ret);
bool cfi_one_cie_vaddr(const struct cfi_section *s, uint64_t *ret);
bool cfi_one_fde(const struct cfi_section *s, const struct cfi_cie *cie, struct cfi_fde *ret);

void cfi_free(struct cfi *c); /* a zeroed one is fine */

/*
 * cfarun - the call frame instructions of an FDE, run to get the rows of the
 * table that they describe.
 *
 * DWARF 5, section 6.4.2, and the GNU extensions of .eh_frame. Only five
 * columns are kept: the CFA, and the registers that a walk needs, whose numbers
 * the caller gives. The rules for all other registers are skipped. The input is
 * untrusted: at most CFARUN_DEPTH states are remembered, a location never
 * decreases, and operands never exceed the end of the instructions.
 */

#define CFARUN_DEPTH 32

enum cfarule_kind {
	CFARULE_UNSPECIFIED = 0, /* the ABI's default */
	CFARULE_UNDEFINED,
	CFARULE_SAME,
	CFARULE_OFFSET, /* saved at CFA + off; for the CFA: reg + off */
	CFARULE_VAL_OFFSET, /* is CFA + off */
	CFARULE_REGISTER, /* in reg */
	CFARULE_EXPRESSION, /* saved where the expression says; for the CFA: its value */
	CFARULE_VAL_EXPRESSION, /* is the value of the expression */
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
	uint64_t bx; /* another callee-saved register */
	uint8_t nop; /* an instruction without operands that changes no column; 0 = none */
};

struct cfarun {
	const struct cfi_cie *cie;
	const struct cfi_section *section;
	const struct cfarules *initial; /* what DW_CFA_restore restores */
	struct cfarun_regs regs;
	struct rd insns;
	uint64_t loc, end; /* current location, and end of the range */
	struct cfarules now;
	bool changed, moved; /* since the last row; moved: the offset of a CFA that is reg + off */
	bool same; /* the returned row differs from the one before only by that offset */
	bool bad; /* an instruction is unknown or malformed: the rest of the range is unknown */
	unsigned int depth;
	struct cfarules saved[CFARUN_DEPTH];
};

/*
 * Set *RET to the rules that CIE begins with. Returns false if its instructions
 * are malformed. Registers that they do not mention are CFARULE_UNSPECIFIED.
 */
bool cfarun_initial(const struct cfi_section *s, const struct cfi_cie *cie, const struct cfarun_regs *regs,
	struct cfarules *ret);

/* Begin FDE of CIE. INITIAL is the result of cfarun_initial() and must outlive the run. */
void cfarun_begin(struct cfarun *r, const struct cfi_section *s, const struct cfi_cie *cie,
	const struct cfi_fde *f, const struct cfarun_regs *regs, const struct cfarules *initial);

/*
 * Get the next row: R->now is valid from *START up to the next row or the end
 * of the range. Returns false if there is none. If R->bad is set, nothing is
 * known from *START on.
 */
bool cfarun_next(struct cfarun *r, uint64_t *start);

#endif
