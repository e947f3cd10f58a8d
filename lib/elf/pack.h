/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pack - a small ELF image of what names the code of an ELF file.
 *
 * Section headers keep their numbers, addresses and sizes. The image has only
 * the bytes of the sections that symbols are read from: .symtab, .dynsym and
 * their strings, .gnu_debugdata, and what names PLT entries (.plt sections,
 * relocations). A file without .symtab gets that of its debug file. Segments
 * keep their offsets, so that a file offset means the same address, and a note
 * has the build ID. elf/file.h and readelf(1) read the image as an ELF file.
 */
#ifndef STACKTOOLS_ELF_PACK_H
#define STACKTOOLS_ELF_PACK_H

#include "base/bytes.h"
#include "elf/file.h"

/*
 * Append the image of F to OUT. DEBUG is its debug file, or NULL. -EFBIG if the
 * image takes more than MAX bytes, -EOPNOTSUPP for a 32-bit file, -ENOMEM (also
 * if OUT failed), else the error from reading a section. On failure the caller
 * must discard OUT.
 */
int elfpack_make(
	const struct elffile *f, const struct elffile *debug, uint64_t max, struct buf *out, struct err *e);

#endif
