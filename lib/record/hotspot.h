/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hotspot - where HotSpot's structures have their members, by version.
 *
 * docs/runtimes.md names the source of each fact.
 */
#ifndef STACKTOOLS_RECORD_HOTSPOT_H
#define STACKTOOLS_RECORD_HOTSPOT_H

#include "base/base.h"
#include "hotspot_abi.h"
#include "runtime_abi.h"
#include "unwind/hotspot.h"

/* As python_layout(): is the version of F known? */
bool hotspot_version(struct runtime_file *f, uint64_t state_bytes);

/*
 * Set RET for the libjvm of VERSION whose file says H. False if the version is
 * not known, or if the sizes of its structures are others.
 */
bool hotspot_layout(uint32_t version, const struct unwindtab_hotspot *h, struct hotspot_file *ret);

/*
 * The line of the bytecode at POSITION, by the N bytes at LINES of a compressed
 * line number table, which are untrusted. CUT: the table has more. 0 = it has no
 * line, or it is not known. As python_line(); VERSION and FIRST_LINE are not used.
 */
uint32_t hotspot_line(
	uint32_t version, uint32_t first_line, const uint8_t *lines, size_t n, bool cut, uint32_t position);

#endif
