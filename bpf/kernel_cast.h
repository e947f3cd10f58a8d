/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What programs call where they mean bpf_rdonly_cast(), a function of the kernel since Linux 6.2: a number
 * that no helper has. lib/system/kernel_btf.c writes the function's ID there. libbpf would find it as well,
 * but read the kernel's whole BTF for it.
 */
#ifndef STACKTOOLS_KERNEL_CAST_H
#define STACKTOOLS_KERNEL_CAST_H

#define KERNEL_CAST 0x57ac6b05

#endif
