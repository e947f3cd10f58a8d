/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kallsyms - the kernel's symbol table, sorted for look-up. Floor 3.
 *
 * Format: scripts/kallsyms.c and kernel/kallsyms.c of Linux; a line is
 * "<hex address> <type letter> <name>[\t[<module>]]". The table owns its text.
 */
#ifndef STACKTOOLS_KALLSYMS_H
#define STACKTOOLS_KALLSYMS_H

#include "err.h"

struct kallsyms;

struct kallsyms_sym {
	uint64_t start, end; /* end exclusive: next symbol, or the end of its section, module or program */
	const char *name; /* belongs to the table */
	const char *module; /* "" = the kernel, "bpf" = a BPF program */
};

/*
 * Read FILE (NULL: /proc/kallsyms) into a table sorted by address.
 * On success *RET is the caller's; release it with kallsyms_free().
 * -EACCES when every address is zero: kptr_restrict hides them, and such
 * a table would give every query the same wrong name.
 * -EINVAL when FILE is no copy of /proc/kallsyms.
 */
int kallsyms_load(const char *file, struct kallsyms **ret, struct err *e);
void kallsyms_free(struct kallsyms *ks); /* NULL is fine */

/* The symbol that covers ADDR into *RET; false when none does. */
bool kallsyms_find(const struct kallsyms *ks, uint64_t addr, struct kallsyms_sym *ret);

/* The address of the first symbol called NAME, 0 when there is none. O(n). */
uint64_t kallsyms_address(const struct kallsyms *ks, const char *name);

size_t kallsyms_count(const struct kallsyms *ks);

#endif
