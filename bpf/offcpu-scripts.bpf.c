/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The programs of offcpu.bpf.c with what finds the frames of every runtime, which is two thirds of their
 * code. Maps, constants and programs are the same: lib/record/bpf_variants.h.
 */
#define OFFCPU_RUNTIMES ~0U
#include "offcpu.bpf.c"
