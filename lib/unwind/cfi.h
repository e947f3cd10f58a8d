/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi - call frame information: the CIEs and FDEs of an .eh_frame or
 * .debug_frame section.
 *
 * Formats: DWARF 5, section 6.4.1; Linux Standard Base, section 10.6
 * (.eh_frame). Versions 1, 3 and 4, 32-bit and 64-bit lengths, all encodings
 * of pointers but indirect ones; textrel, datarel and funcrel count from 0, as
 * no linker for a 64-bit machine makes them. Nothing is believed: every entry
 * lies inside the section, an FDE's CIE is an entry of its own, and the work
 * is one pass over the section.
 */
#ifndef STACKTOOLS_CFI_H
#define STACKTOOLS_CFI_H

#include "base/bytes.h"
#include "base/err.h"

#define CFI_CIES_MAX (1u << 20)
#define CFI_FDES_MAX (1u << 24)

struct cfi_section {
	const uint8_t *p; /* must outlive what is read from it; less than 4 GiB */
	size_t len;
	uint64_t vaddr; /* of its first byte: pointers count from there */
	bool eh; /* .eh_frame, else .debug_frame */
	bool open_end; /* its length is a guess: a zero length word ends it */
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
	size_t n_cies, n_fdes; /* good ones */
	size_t bad_cies, bad_fdes; /* malformed, or FDEs of such a CIE */
	size_t empty; /* FDEs of no code */
};

/*
 * Read all entries of S. Entries that are malformed are left out and counted;
 * where the length of one leads out of the section, the rest is one bad FDE.
 * -E2BIG for 4 GiB or more, or too many of them; -ENOMEM. Release with cfi_free().
 */
int cfi_read(const struct cfi_section *s, struct cfi *ret, struct err *e);
/* An address in the encoding of CIE's FDEs, at R inside the section; R turns bad where it is cut. */
uint64_t cfi_pointer(struct rd *r, const struct cfi_section *s, const struct cfi_cie *cie);

/* Can an address in encoding ENC be read without running the program? */
bool cfi_known_encoding(uint8_t enc);

void cfi_free(struct cfi *c); /* a zeroed one is fine */

#endif
