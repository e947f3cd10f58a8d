/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mapcases - creating a stack-trace map, and what user space may do to it.
 */
#ifndef STACKTOOLS_MAPCASES_H
#define STACKTOOLS_MAPCASES_H

#include "stackmap/stackcase.h"

extern const struct stackcase_set mapcases;

#endif
