/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * python - what differs between versions of CPython: where its structures have
 * their members, and how line tables are encoded.
 *
 * docs/runtimes.md names the source of each fact.
 */
#ifndef STACKTOOLS_RECORD_PYTHON_H
#define STACKTOOLS_RECORD_PYTHON_H

#include "base/base.h"
#include "unwind/table.h"
#include "runtime_abi.h"

/*
 * Set the offsets of RET, which has the version and the addresses of its file,
 * whose _PyRuntime has STATE_BYTES (0: its members are others). False if the version is not known, or if it
 * cannot be the one that the file states.
 */
bool python_layout(struct runtime_file *ret, uint64_t state_bytes);

/*
 * Set where F, which has its offsets, counts code objects, if that is known: by the
 * address of a variable of file I, or by the size of its _PyRuntime.
 */
void python_places(struct runtime_file *f, const struct unwindtab_interpreter *i);

/*
 * The line of code unit POSITION, by the N bytes at LINES of a line table of
 * VERSION, which are untrusted. CUT: the table has more. 0 = it has no line, or
 * the rest would be needed.
 */
uint32_t python_line(
	uint32_t version, uint32_t first_line, const uint8_t *lines, size_t n, bool cut, uint32_t position);

#endif
