/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * countcases - the two-map pattern: stacks in one map, counts by id in the other.
 */
#ifndef STACKTOOLS_COUNTCASES_H
#define STACKTOOLS_COUNTCASES_H

#include "stackmap/stackcase.h"

extern const struct stackcase_set countcases;

#endif
