/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ruby - where the structures of Ruby's versions (MRI) have their members, and
 * their line tables. docs/runtimes.md names the source of each fact.
 */
#ifndef STACKTOOLS_RECORD_RUBY_H
#define STACKTOOLS_RECORD_RUBY_H

#include "base/base.h"
#include "unwind/table.h"
#include "runtime_abi.h"

/*
 * Set the offsets of RET, which has the version and the addresses of its file;
 * STATE_BYTES is not used. False if the version is not known.
 */
bool ruby_layout(struct runtime_file *ret, uint64_t state_bytes);

/* Set what differs between files of one version: addresses of the file, which is I. */
void ruby_places(struct runtime_file *ret, const struct unwindtab_interpreter *i);

/*
 * The line of POSITION, which is the number of words up to the instruction that
 * follows, by the line table as bpf/ruby.bpf.h sends it: N bytes at LINES, CUT
 * if there would be more. 0 = not known.
 */
uint32_t ruby_line(
	uint32_t version, uint32_t first_line, const uint8_t *lines, size_t n, bool cut, uint32_t position);

#endif
