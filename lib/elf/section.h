/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * section - the bytes of a section by its name, uncompressed.
 *
 * Compressed sections: SHF_COMPRESSED with zlib or zstd (System V ABI, chapter 4), and
 * the older form with "ZLIB" and a big-endian size in front, whose name begins
 * with ".z". Sizes that no compressor reaches are refused before memory is taken.
 */
#ifndef STACKTOOLS_ELF_SECTION_H
#define STACKTOOLS_ELF_SECTION_H

#include "elf/file.h"

struct elfsection {
	const struct elffile_section *header;
	uint8_t *bytes; /* free them with elfsection_free() */
	size_t len;
};

/* The names of the sections, to search several of them. */
struct elfsection_names {
	uint8_t *bytes;
	size_t len;
};

/* No names is no error: then no section is found. Release with elfsection_names_free(). */
int elfsection_names(const struct elffile *f, struct elfsection_names *ret, struct err *e);
void elfsection_names_free(struct elfsection_names *n);

/* Is there a section NAME (".debug_frame"; ".zdebug_frame" too) that occupies room in the file? */
bool elfsection_has(const struct elffile *f, const struct elfsection_names *names, const char *name);

/*
 * The header of the section NAME, by the rules of elfsection_load(); NULL = none.
 * *PACKED: its bytes in the file are compressed.
 */
const struct elffile_section *elfsection_find(
	const struct elffile *f, const struct elfsection_names *names, const char *name, bool *packed);

/*
 * The section NAME (".debug_frame"; ".zdebug_frame" is found too) that
 * occupies room in the file; 1 and *RET, or 0 when there is none. -E2BIG for
 * more than MAX bytes, -EOPNOTSUPP for another compression, -EINVAL for one
 * that is malformed.
 */
int elfsection_load(const struct elffile *f, const struct elfsection_names *names, const char *name,
	uint64_t max, struct elfsection *ret, struct err *e);
void elfsection_free(struct elfsection *s); /* a zeroed one is fine */

#endif
