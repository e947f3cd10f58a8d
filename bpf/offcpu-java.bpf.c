/* SPDX-License-Identifier: GPL-2.0-or-later */
/* As offcpu-scripts.bpf.c, of HotSpot alone. */
#define OFFCPU_RUNTIMES (1U << RUNTIME_JAVA)
#include "offcpu.bpf.c"
