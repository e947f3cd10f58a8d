/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reloc - a relocatable ELF file (ET_REL) as if it were linked.
 *
 * A kernel module is one: all its sections lie at address 0, and its debug
 * information has zeros where relocations will put addresses and offsets. Here
 * each section that would be loaded gets an address of its own, made up but
 * always the same for the same headers, and what DWARF needs is relocated in memory.
 *
 * Format: System V ABI, chapter 4, "Relocation"; the processor supplements of x86-64 and AArch64.
 */
#ifndef STACKTOOLS_ELF_RELOC_H
#define STACKTOOLS_ELF_RELOC_H

#include "elf/file.h"

bool elfrel_is(const struct elffile *f);

/*
 * The address of each section of F, of n_sections; 0 = it is not loaded. A function of the section headers
 * alone. No two sections touch. *RET is the caller's to free. -EINVAL for alignments and sizes that no module
 * has.
 */
int elfrel_layout(const struct elffile *f, uint64_t **ret, struct err *e);

struct elfrel {
	struct elffile *elf; /* over BYTES; its sections have the indexes of the original's */
	uint8_t *bytes;
};

/*
 * F with its sections laid out: symbols, their names and what lines and inlined calls are read from,
 * uncompressed and relocated; other sections have a header alone. Whatever relocation asks for, bytes are
 * changed inside of debug information only. Takes memory and pread(2) and nothing else of the kernel, so that
 * it works inside a sandbox. -E2BIG for more than MAX_BYTES, -EOPNOTSUPP for a machine, class or relocation
 * that is not known, -EINVAL for what is malformed. Release with elfrel_close().
 */
int elfrel_open(const struct elffile *f, uint64_t max_bytes, struct elfrel *ret, struct err *e);
void elfrel_close(struct elfrel *r); /* a zeroed one is fine */

#endif
