/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * framecases - which frames are in a stack: skip, truncation, agreement with bpf_get_stack(), build IDs.
 */
#ifndef STACKTOOLS_FRAMECASES_H
#define STACKTOOLS_FRAMECASES_H

#include "stackmap/stackcase.h"

extern const struct stackcase_set framecases;

#endif
