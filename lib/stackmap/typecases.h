/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * typecases - a known call chain seen from every program type.
 */
#ifndef STACKTOOLS_TYPECASES_H
#define STACKTOOLS_TYPECASES_H

#include "stackmap/stackcase.h"

extern const struct stackcase_set typecases;

#endif
