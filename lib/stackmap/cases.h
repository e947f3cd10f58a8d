/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cases - the test cases of stackmap-test, in groups.
 */
#ifndef STACKTOOLS_STACKMAP_CASES_H
#define STACKTOOLS_STACKMAP_CASES_H

#include "stackmap/case.h"

extern const struct stackcase_set mapcases; /* creating a stack-trace map, and access from user space */
extern const struct stackcase_set idcases; /* results of bpf_get_stackid(): ids, collisions, full maps */
extern const struct stackcase_set
	framecases; /* frames in a stack: skip, truncation, bpf_get_stack(), build IDs */
extern const struct stackcase_set typecases; /* a known call chain seen from every program type */
extern const struct stackcase_set
	countcases; /* the two-map pattern: stacks in one map, counts by id in the other */

#endif
