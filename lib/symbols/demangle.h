/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * demangle - C++, Rust and D names as people write them.
 *
 * A bounded wrapper of libiberty's demanglers: names come from the files of
 * the observed process, and a short mangled name can stand for an endless
 * text, so both ends have a limit.
 */
#ifndef STACKTOOLS_DEMANGLE_H
#define STACKTOOLS_DEMANGLE_H

#include "base/base.h"

#define DEMANGLE_IN_MAX 2048 /* longer names stay mangled */
#define DEMANGLE_OUT_MAX 16384 /* names that become longer stay mangled */

/*
 * NAME demangled into BUF of CAP bytes, always terminated, never cut (a text
 * that does not fit counts as too long): with parameters, Rust without its
 * hash. Returns the length, or 0 when NAME is no mangled name or goes beyond
 * the limits.
 */
size_t demangle(const char *name, char *buf, size_t cap);

#endif
