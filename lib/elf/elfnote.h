/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elfnote - the notes of an ELF file: the GNU build ID among them.
 * Source: the ELF specification (Nhdr) and NT_GNU_BUILD_ID of <elf.h>.
 */
#ifndef STACKTOOLS_ELFNOTE_H
#define STACKTOOLS_ELFNOTE_H

#include "capture/types.h"

#define ELFNOTE_BYTES_MAX (1u << 20) /* of a section or segment of notes that is worth reading */

/*
 * The first build ID in LEN bytes of notes, from anywhere, into *RET; false
 * when there is none, or one only behind a note that is cut. ALIGN is that of
 * the section or segment: each note and its descriptor begin at a multiple of
 * 8 bytes where it is 8, else of 4.
 */
bool elfnote_build_id(const void *notes, size_t len, uint64_t align, struct cap_build_id *ret);

#endif
