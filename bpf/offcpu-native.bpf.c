/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The programs of offcpu.bpf.c without what finds the frames of runtimes, which is
 * two thirds of their code. Maps, constants and programs are the same, so that
 * lib/record/bpf.c opens this object in place of the other one when it looks for no runtime.
 */
#define OFFCPU_NATIVE
#include "offcpu.bpf.c"
