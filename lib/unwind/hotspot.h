/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hotspot - the tables that a libjvm exports for debuggers: where its variables
 * are, and how large its structures.
 *
 * Format: src/hotspot/share/runtime/vmStructs.hpp of OpenJDK: arrays of struct
 * VMStructEntry and VMTypeEntry, which end with one whose names are NULL. The
 * pointers in them are filled in by relative relocations. The offsets of members
 * are not in the file: libjvm computes them when it is loaded, so they are
 * known by version (record/hotspot.h), which the sizes have to confirm. Runs in
 * the worker that compiles tables.
 */
#ifndef STACKTOOLS_UNWIND_HOTSPOT_H
#define STACKTOOLS_UNWIND_HOTSPOT_H

#include "elf/file.h"
#include "unwind/table.h"

enum hotspot_size {
	HOTSPOT_CODE_HEAP,
	HOTSPOT_HEAP_BLOCK,
	HOTSPOT_CODE_BLOB,
	HOTSPOT_STUB_QUEUE,
	HOTSPOT_NMETHOD,
	HOTSPOT_PC_DESC,
	HOTSPOT_METHOD,
	HOTSPOT_CONST_METHOD,
	HOTSPOT_CONSTANT_POOL,
	HOTSPOT_INSTANCE_KLASS,
	HOTSPOT_SIZES
};

_Static_assert(HOTSPOT_SIZES == UNWINDTAB_HOTSPOT_SIZES, "sizes in a table");

/*
 * Read the tables that the variables at STRUCTS and TYPES point to. Returns the
 * version: 0x11000f00 = 17.0.15. 0 and zeros in RET if the file makes no sense.
 */
uint32_t hotspot_read(
	const struct elffile *f, uint64_t structs, uint64_t types, struct unwindtab_hotspot *ret);

#endif
