/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fdlimit - how many descriptors this process may have.
 */
#ifndef STACKTOOLS_FDLIMIT_H
#define STACKTOOLS_FDLIMIT_H

#include "base/base.h"

/* Raise the soft limit to MOST, or as far as the hard one lets; returns what it is then, 0 where that cannot
 * be told. */
size_t fdlimit_raise(size_t most);

#endif
