/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plt - stubs of the procedure linkage table, named after the function that
 * they call: "name@plt".
 *
 * Symbol tables do not contain them. A stub jumps to the address in a slot of
 * the global offset table, and a relocation says which function that is. So
 * stubs are recognized by their instructions (pltx86_*()) in sections whose
 * names begin with ".plt" or ".iplt", independent of the linker's layout, and
 * named by the relocations of their slots.
 *
 *   - JUMP_SLOT, GLOB_DAT: the name of the symbol in .dynsym.
 *   - IRELATIVE, whose slot holds the result of a resolver: the first indirect
 *     function (STT_GNU_IFUNC) at the resolver's address in .symtab, then
 *     .dynsym. The resolver's own symbol does not name the called function.
 *     Without one, as binutils: "*ABS*+0xADDRESS@plt".
 *   - Code before the first stub and other code there has no name.
 */
#ifndef STACKTOOLS_ELF_PLT_H
#define STACKTOOLS_ELF_PLT_H

#include "elf/file.h"

struct pltsym;

struct pltsym_hit {
	uint64_t start, end; /* of the stub, without padding */
	const char *name; /* with "@plt"; owned by the table */
	size_t name_len; /* without "@plt": the length of the symbol's own name, for demangling */
};

/*
 * Load the stubs of F that contain one of VADDRS (ascending), or all stubs if
 * VADDRS is NULL. If no address is in such a section, nothing else is read. F
 * may be closed afterwards. A file without stubs or of another architecture is
 * not an error. -EINVAL etc. with the message for tables that cannot be read.
 * Release *RET with pltsym_free(). O(file) time, O(stubs and symbols) memory.
 */
int pltsym_load(
	const struct elffile *f, const uint64_t *vaddrs, size_t n, struct pltsym **ret, struct err *e);
void pltsym_free(struct pltsym *p); /* NULL is fine */

/* Find the stub that contains VADDR. Returns false if there is none. */
bool pltsym_find(const struct pltsym *p, uint64_t vaddr, struct pltsym_hit *ret);

/* Stub I in order of address. Returns false if I is past the last one. */
bool pltsym_stub(const struct pltsym *p, size_t i, struct pltsym_hit *ret);

#endif
