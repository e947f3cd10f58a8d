/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reloc - a relocatable ELF file (ET_REL) as if it were linked.
 *
 * A kernel module is such a file: all its sections are at address 0, and its
 * debug information has zeros where relocations put addresses and offsets. This
 * module assigns an address to each section that would be loaded (the same one
 * for the same headers) and relocates in memory what DWARF needs.
 *
 * Format: System V ABI, chapter 4, "Relocation"; the processor supplements of
 * x86-64 and AArch64.
 */
#ifndef STACKTOOLS_ELF_RELOC_H
#define STACKTOOLS_ELF_RELOC_H

#include "elf/file.h"

bool elfrel_is(const struct elffile *f);

/*
 * The address of each of the n_sections sections of F; 0 = it is not loaded.
 * Depends only on the section headers. No two sections touch. Release *RET with
 * free(3). -EINVAL for alignments and sizes that no module has.
 */
int elfrel_layout(const struct elffile *f, uint64_t **ret, struct err *e);

struct elfrel {
	struct elffile *elf; /* over BYTES; same section indexes as the original */
	uint8_t *bytes;
};

/*
 * F with addresses assigned to its sections. Symbols, their names and the
 * sections for lines and inlined calls are uncompressed and relocated; other
 * sections have only a header. Relocations change only bytes of debug
 * information, whatever they request. Besides allocating memory, it only calls
 * pread(2), so that it works inside a sandbox. -E2BIG above MAX_BYTES,
 * -EOPNOTSUPP for an unknown machine, class or relocation, -EINVAL if the file
 * is malformed. Release with elfrel_close().
 */
int elfrel_open(const struct elffile *f, uint64_t max_bytes, struct elfrel *ret, struct err *e);
void elfrel_close(struct elfrel *r); /* a zeroed one is fine */

#endif
