/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernhide - kernel addresses for somebody who may not know where the kernel
 * is (kptr_restrict, perf_event_paranoid; owner.h): other ones, with the same
 * names.
 *
 * What an attacker wants is by how much the kernel, a module or a BPF program
 * was moved (KASLR). What lies where inside of one is in the files that
 * everybody has. So
 *
 * - an address of the kernel itself is told as if _stext were at
 *   KERNHIDE_STEXT, and vmlinux still has its lines;
 * - modules get places in the order in which they are met, each with its
 *   distances;
 * - so does each BPF program, and each address that no symbol has.
 */
#ifndef STACKTOOLS_KERNHIDE_H
#define STACKTOOLS_KERNHIDE_H

#include "base/err.h"
#include "symbols/kallsyms.h"

#define KERNHIDE_STEXT UINT64_C(0xffffffff81000000) /* where x86-64 is linked to */

struct kernhide;

int kernhide_new(struct kernhide **ret, struct err *e);
void kernhide_free(struct kernhide *h); /* NULL is fine */

/*
 * What stands for ADDR, which is of SYM (NULL: of none) in a kernel with _stext
 * at STEXT (0: not known). The same for the same ADDR and SYM always. Without
 * memory the place says nothing, and is not the address's alone.
 */
uint64_t kernhide_address(struct kernhide *h, const struct kallsyms_sym *sym, uint64_t stext, uint64_t addr);

#endif
