/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * section - the uncompressed bytes of a section, by its name.
 *
 * Reads compressed sections: SHF_COMPRESSED with zlib or zstd (System V ABI,
 * chapter 4), and the older form, whose name begins with ".z" and whose bytes
 * begin with "ZLIB" and a big-endian size. A size that no compressor can reach
 * is refused before memory is allocated.
 */
#ifndef STACKTOOLS_ELF_SECTION_H
#define STACKTOOLS_ELF_SECTION_H

#include "elf/file.h"

struct elfsection {
	const struct elffile_section *header;
	uint8_t *bytes; /* release with elfsection_free() */
	size_t len;
};

/* The section name string table, for several searches. */
struct elfsection_names {
	uint8_t *bytes;
	size_t len;
};

/* A file without names is not an error: then no section is found. Release with elfsection_names_free(). */
int elfsection_names(const struct elffile *f, struct elfsection_names *ret, struct err *e);
void elfsection_names_free(struct elfsection_names *n);

/*
 * Does F have a non-empty section NAME (".debug_frame"; ".zdebug_frame" also
 * matches) with bytes in the file?
 */
bool elfsection_has(const struct elffile *f, const struct elfsection_names *names, const char *name);

/*
 * The header of the section that elfsection_load() would load; NULL = none.
 * *PACKED: its bytes in the file are compressed.
 */
const struct elffile_section *elfsection_find(
	const struct elffile *f, const struct elfsection_names *names, const char *name, bool *packed);

/*
 * Load the section NAME (".debug_frame"; ".zdebug_frame" also matches) that has
 * bytes in the file. Returns 1 and sets *RET, or 0 if there is none. -E2BIG
 * above MAX bytes, -EOPNOTSUPP for an unknown compression, -EINVAL if it is
 * malformed.
 */
int elfsection_load(const struct elffile *f, const struct elfsection_names *names, const char *name,
	uint64_t max, struct elfsection *ret, struct err *e);
void elfsection_free(struct elfsection *s); /* a zeroed one is fine */

#endif
