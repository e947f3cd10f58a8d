/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * crc32c - the Castagnoli checksum of RFC 3720 (iSCSI).
 *
 * Polynomial 0x1edc6f41, reflected, initial value and final xor all ones;
 * crc32c(0, "123456789", 9) is 0xe3069283. Finds every single changed byte and
 * every burst of up to 32 bits in a block.
 */
#ifndef STACKTOOLS_CRC32C_H
#define STACKTOOLS_CRC32C_H

#include "base/base.h"

/* Of N bytes at P, continuing CRC, which is 0 at the start. */
uint32_t crc32c(uint32_t crc, const void *p, size_t n);

/* The same without the CPU's instruction: what crc32c() uses where there is none. */
uint32_t crc32c_portable(uint32_t crc, const void *p, size_t n);

#endif
