/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * php - where the structures of PHP's versions have their members. docs/runtimes.md names the source of each
 * fact.
 */
#ifndef STACKTOOLS_RECORD_PHP_H
#define STACKTOOLS_RECORD_PHP_H

#include "base/base.h"
#include "runtime_abi.h"

/*
 * Set the offsets of RET, which has the version and the addresses of its file,
 * whose executor_globals have STATE_BYTES. False if the version is not known,
 * or if it cannot be the one that the file states.
 */
bool php_layout(struct runtime_file *ret, uint64_t state_bytes);

#endif
