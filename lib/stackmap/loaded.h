/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * loaded - the ELF objects loaded into this very process, as the dynamic
 * loader knows them: what an address of our own is in the file.
 */
#ifndef STACKTOOLS_LOADED_H
#define STACKTOOLS_LOADED_H

#include "base/base.h"

struct loaded {
	const char *path; /* "" = the program itself; the loader's, valid while the object is loaded */
	uint64_t vaddr; /* the address as the file's program headers and nm(1) count it */
	uint64_t offset; /* the same as an offset into the file */
	const uint8_t *build_id; /* in the object's mapped note; NULL = it has none */
	size_t build_id_len;
};

/* The object that ADDR lies in into *RET; false when it lies in none. */
bool loaded_find(uint64_t addr, struct loaded *ret);

#endif
