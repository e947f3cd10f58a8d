/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plt - stubs of the procedure linkage table by the function that they
 * lead to: "name@plt".
 *
 * No symbol table has them. A stub jumps to what a slot of the global offset
 * table holds, and a relocation says which function that is; so stubs are
 * found by their instructions (pltx86_*()) in the sections whose names begin with
 * ".plt" or ".iplt", whatever linker laid them out, and named by the
 * relocations of their slots.
 *
 *   - JUMP_SLOT, GLOB_DAT: the name of the symbol in .dynsym.
 *   - IRELATIVE, whose slot holds what a resolver has chosen: the first
 *     indirect function (STT_GNU_IFUNC) of .symtab, then .dynsym, at the resolver's
 *     address. The resolver's own symbol is no name for what is called. Without one, as
 *     binutils: "*ABS*+0xADDRESS@plt".
 *   - What comes before the first stub, and any other code there, has no name.
 */
#ifndef STACKTOOLS_ELF_PLT_H
#define STACKTOOLS_ELF_PLT_H

#include "elf/file.h"

struct pltsym;

struct pltsym_hit {
	uint64_t start, end; /* of the stub, without padding */
	const char *name; /* with "@plt"; belongs to the table */
	size_t name_len; /* without "@plt": as long as the symbol's own name, for who demangles it */
};

/*
 * The stubs of F that hold one of VADDRS (ascending), or all of them for
 * VADDRS NULL. Where no address lies in such a section nothing else is
 * read. F may be closed afterwards. No stubs is no error, nor is another
 * architecture; -EINVAL and the like with the message for tables that cannot be
 * read. Release *RET with pltsym_free(). O(file) in time, O(its stubs and symbols) in memory.
 */
int pltsym_load(
	const struct elffile *f, const uint64_t *vaddrs, size_t n, struct pltsym **ret, struct err *e);
void pltsym_free(struct pltsym *p); /* NULL is fine */

/* The stub that VADDR is in, into *RET; false when there is none. */
bool pltsym_find(const struct pltsym *p, uint64_t vaddr, struct pltsym_hit *ret);

/* Stubs in order of address: false when I is past the last. */
bool pltsym_stub(const struct pltsym *p, size_t i, struct pltsym_hit *ret);

#endif
