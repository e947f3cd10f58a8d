/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bpf_variants - the recorder's programs, with what finds the frames of some runtimes or of all.
 *
 * The verifier takes long to remove the code of runtimes that nobody looks for, so there are objects with
 * less of it: bpf/offcpu.bpf.c is without any, the others (offcpu-v8.bpf.c ...) are the same with some.
 * Programs, maps and data are the same in all of them, at the same places.
 */
#ifndef STACKTOOLS_RECORD_BPF_VARIANTS_H
#define STACKTOOLS_RECORD_BPF_VARIANTS_H

#include <stddef.h>
#include <stdint.h>

/*
 * The object that finds SCRIPTS (struct offcpu_opts) and least else, as an ELF file for libbpf of *SIZE
 * bytes, which the caller frees. NULL if SCRIPTS is 0, as offcpu.skel.h has that one. Returns 0, or -ENOMEM.
 */
int bpf_variant(uint32_t scripts, void **elf, size_t *size);

#endif
