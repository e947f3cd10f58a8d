/* SPDX-License-Identifier: GPL-2.0-or-later */
/* As offcpu-scripts.bpf.c, of runtimes that only interpret. */
#define OFFCPU_RUNTIMES (1U << RUNTIME_PYTHON | 1U << RUNTIME_PHP | 1U << RUNTIME_PERL | 1U << RUNTIME_RUBY)
#include "offcpu.bpf.c"
