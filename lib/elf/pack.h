/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pack - what names the code of an ELF file, as a small ELF image.
 *
 * Section headers keep their numbers, addresses and sizes; of their bytes
 * only those stay that symbols are read from: .symtab, .dynsym and their
 * strings, .gnu_debugdata, and what names PLT entries (.plt sections,
 * relocations). A file without .symtab gets the one of its debug file. Segments keep their
 * offsets, so that offsets into the file mean the same addresses, and the build ID is
 * in a note. To elf/file.h, and to readelf(1), the image is an ELF file.
 */
#ifndef STACKTOOLS_ELF_PACK_H
#define STACKTOOLS_ELF_PACK_H

#include "base/bytes.h"
#include "elf/file.h"

/*
 * The image of F behind what is in OUT; DEBUG is its debug file or NULL. -EFBIG
 * for one of more than MAX bytes, -EOPNOTSUPP for 32 bits, or what reading a section gives, with
 * the message; OUT is to be thrown away then. -ENOMEM also where OUT failed.
 */
int elfpack_make(
	const struct elffile *f, const struct elffile *debug, uint64_t max, struct buf *out, struct err *e);

#endif
