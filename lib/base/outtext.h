/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * outtext - foreign text into an out, escaped.
 */
#ifndef STACKTOOLS_OUTTEXT_H
#define STACKTOOLS_OUTTEXT_H

#include "base/out.h"
#include "base/text.h"

/* The whole of S, however long it is. */
void outtext_put(struct out *o, const char *s, enum text_style style);

#endif
