/* SPDX-License-Identifier: GPL-2.0-or-later */
/* v8 - the layout of V8's structures by version, for bpf/v8.bpf.h. See docs/runtimes.md. */
#ifndef STACKTOOLS_RECORD_V8_H
#define STACKTOOLS_RECORD_V8_H

#include "runtime_abi.h"

#include <stdbool.h>
#include <stdint.h>

/* Fill in the offsets of RET->version; CONSTANTS is the checksum of unwind/v8.h. False if that is not known.
 */
bool v8_layout(struct runtime_file *ret, uint64_t constants);

#endif
