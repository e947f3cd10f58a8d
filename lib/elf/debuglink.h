/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debuglink - what a file says of the file that has its debug information.
 *
 * .gnu_debuglink: NAME, NUL, padding to a multiple of 4, CRC32 of the whole
 * debug file (in the file's byte order), as "Separate Debug Files" of gdb's
 * manual has it. .gnu_debugaltlink, as of dwz(1): NAME, NUL, build ID.
 */
#ifndef STACKTOOLS_DEBUGLINK_H
#define STACKTOOLS_DEBUGLINK_H

#include "elf/elffile.h"

#define DEBUGLINK_NAME_MAX 4096 /* with the NUL */

struct debuglink {
	char name[DEBUGLINK_NAME_MAX];
	uint32_t crc; /* of .gnu_debuglink */
	struct cap_build_id build_id; /* of .gnu_debugaltlink */
};

/*
 * The section's contents into *RET. 1, or 0 where there is none; -EINVAL for
 * one that is malformed: no name, a name that is no place below a directory
 * (absolute, or with ".."), no CRC.
 */
int debuglink_read(const struct elffile *f, struct debuglink *ret, struct err *e);

/* The same of .gnu_debugaltlink; its name may be absolute and have "..". A build ID is never missing. */
int debuglink_alt(const struct elffile *f, struct debuglink *ret, struct err *e);

/* The parts of both that take LEN bytes which nobody vouches for; 0 or -EINVAL. */
int debuglink_parse(const void *bytes, size_t len, struct debuglink *ret, struct err *e);
int debuglink_parse_alt(const void *bytes, size_t len, struct debuglink *ret, struct err *e);

/*
 * The CRC32 of all of F into *RET. STOP (may be NULL) is called every few
 * MiB: nonzero ends it with -ECANCELED. -EIO where the file became shorter.
 */
int debuglink_crc(const struct elffile *f, int (*stop)(void *ctx, uint64_t done, uint64_t total), void *ctx,
	uint32_t *ret, struct err *e);

#endif
