/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vdso - the code that the kernel maps into every process: its images, which no
 * file has.
 *
 * A kernel has one image for each kind of program. They are the kernel's own
 * here: those in another process may have been changed by it.
 */
#ifndef STACKTOOLS_RECORD_VDSO_H
#define STACKTOOLS_RECORD_VDSO_H

#include "base/base.h"
#include "system/maps.h"

enum vdso_kind { VDSO_NONE, VDSO_WIDE /* of 64-bit programs */, VDSO_I386, VDSO_KINDS };

/*
 * Which image is mapped as M? VDSO_NONE: M is not a vdso. That of an i386 program
 * lies below 4 GiB, as its stack does.
 */
enum vdso_kind vdso_kind(const struct procmap *m);

/*
 * A copy of the image of KIND, released with free(3). NULL: the kernel has none, or
 * does not show it. That of i386 programs is found out by a child process, which
 * takes a millisecond.
 */
uint8_t *vdso_image(enum vdso_kind kind, size_t *len);

#endif
