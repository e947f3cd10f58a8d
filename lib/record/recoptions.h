/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recoptions - how a recording was asked for, as options of its capture;
 * docs/capture.5 has their names.
 */
#ifndef STACKTOOLS_RECOPTIONS_H
#define STACKTOOLS_RECOPTIONS_H

#include "capture/writer.h"
#include "record/recorderopts.h"

/*
 * Those that every mode has. UNWIND is how user stacks are walked, DEGRADED
 * what works less well here and why ("" = nothing).
 */
void recoptions_write(
	struct capwrite *w, const struct recorder_opts *o, const char *unwind, const char *degraded);

#endif
