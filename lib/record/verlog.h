/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * verlog - what the verifier says of a program that it refuses. Floor 2.
 */
#ifndef STACKTOOLS_VERLOG_H
#define STACKTOOLS_VERLOG_H

#include "err.h"

/* Make the last line of its complaint LOG, which is cut up here, the hint of E; none where there is no line.
 */
void verlog_hint(char *log, struct err *e);

#endif
