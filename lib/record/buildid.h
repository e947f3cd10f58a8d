/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buildid - the GNU build ID of an ELF file.
 * Source: the ELF specification (Ehdr, Phdr, note segments).
 *
 * The file belongs to the process that is observed, so it is read with
 * bounded preads and nothing else: no mapping, no library.
 */
#ifndef STACKTOOLS_BUILDID_H
#define STACKTOOLS_BUILDID_H

#include "capture/types.h"

/*
 * Read the build ID of FD, a regular file. *RET has length 0 when the file is
 * no little-endian ELF or has no build ID in the first MiB of its notes. 0 or -errno of a failed read.
 */
int buildid_read(int fd, struct cap_build_id *ret);

/* The image of LEN bytes at IMAGE, such as the vdso's. */
void buildid_in_image(const void *image, size_t len, struct cap_build_id *ret);

#endif
