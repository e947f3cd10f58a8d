/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perl - where the structures of Perl's versions have their members.
 * docs/runtimes.md names the source of each fact.
 */
#ifndef STACKTOOLS_RECORD_PERL_H
#define STACKTOOLS_RECORD_PERL_H

#include "base/base.h"
#include "runtime_abi.h"

/*
 * Set the offsets of RET, which has the version and the addresses of its file,
 * by the STATE_BYTES of unwind/interpreter.c: the CRC-32C of the options of the
 * build, and the distance to PL_curinterp. False if the version is not known, or
 * was built with other options.
 */
bool perl_layout(struct runtime_file *ret, uint64_t state_bytes);

#endif
