/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bpf_code - what a program knows, as numbers in its code, of whom the recording
 * concerns: bpf/offcpu_others.bpf.h says why, and uses them.
 */
#ifndef STACKTOOLS_RECORD_BPF_CODE_H
#define STACKTOOLS_RECORD_BPF_CODE_H

#include "offcpu_abi.h"

#include <stdint.h>

struct bpf_program;

/* As the OFFCPU_CODE_ numbers of offcpu_abi.h. */
struct bpf_code {
	uint32_t who; /* enum offcpu_who; 0 = not known */
	uint64_t id;
	uint32_t level, subsys;
};

/*
 * Write CODE into PROG, which is open and not loaded yet. If it is not known who,
 * PROG is left as it is, which is right for any recording, but reads more.
 */
void bpf_code_set(struct bpf_program *prog, const struct bpf_code *code);

#endif
