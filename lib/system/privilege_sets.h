/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * privilege_sets - the capability sets of the calling thread, as bit sets.
 *
 * By capget(2) itself: the programs that only read files, and children in their
 * sandbox, need no more of libcap than this, and start without it.
 */
#ifndef STACKTOOLS_SYSTEM_PRIVILEGE_SETS_H
#define STACKTOOLS_SYSTEM_PRIVILEGE_SETS_H

#include <stdint.h>

#define PRIV_BIT(cap) (UINT64_C(1) << (cap))

/* Either pointer may be NULL. 0 or -errno. */
int priv_sets_get(uint64_t *permitted, uint64_t *effective);

/* Set both. The inheritable and thus the ambient set become empty. 0 or -errno. */
int priv_sets_set(uint64_t permitted, uint64_t effective);

#endif
