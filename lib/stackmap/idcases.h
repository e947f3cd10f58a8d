/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * idcases - what bpf_get_stackid() answers: ids, collisions, full maps.
 */
#ifndef STACKTOOLS_IDCASES_H
#define STACKTOOLS_IDCASES_H

#include "stackmap/stackcase.h"

extern const struct stackcase_set idcases;

#endif
