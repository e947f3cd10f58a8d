/* SPDX-License-Identifier: GPL-2.0-or-later */
/* As offcpu-scripts.bpf.c, of V8 alone. */
#define OFFCPU_RUNTIMES (1U << RUNTIME_V8)
#include "offcpu.bpf.c"
