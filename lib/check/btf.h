/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * btf - whether the kernel's BTF has the types that our programs need for relocation.
 *
 * Sources: Documentation/bpf/btf.rst of Linux; libbpf reads the BTF. Names in
 * it: btf_trace_NAME is the prototype of a tracepoint, BPF_FUNC_x a helper and
 * BPF_MAP_TYPE_x a map type that this kernel was built with. BTF takes
 * precedence over the kernel's version number, which does not show backported
 * features.
 */
#ifndef STACKTOOLS_CHECK_BTF_H
#define STACKTOOLS_CHECK_BTF_H

#include "check/finding.h"
#include "check/machine.h"

/* Add the findings to F. Reads only under M's root; never fails, never blocks. */
void btfcheck_run(const struct machine *m, struct findings *f);

#endif
