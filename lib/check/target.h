/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * target - what offcpu-record will show of processes that are to be recorded:
 * may what they map be read, and is each runtime in it one whose functions are
 * known?
 *
 * The files that a process maps are untrusted: a confined worker reads them
 * (unwind/worker.h), and recognises runtimes as the recorder does
 * (unwind/interpreter.h, record/runtimes.h).
 */
#ifndef STACKTOOLS_CHECK_TARGET_H
#define STACKTOOLS_CHECK_TARGET_H

#include "check/finding.h"

/* Add the findings about the N processes PIDS to F; none if N is 0. */
void targetcheck_run(const uint32_t *pids, size_t n, struct findings *f);

#endif
