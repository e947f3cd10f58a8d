/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kallsyms - the kernel's symbol table, sorted for look-up.
 *
 * Format: scripts/kallsyms.c and kernel/kallsyms.c of Linux; a line is
 * "<hex address> <type letter> <name>[\t[<module>]]". The table owns its text.
 * A System.map has the same lines and is read as well.
 *
 * Where a symbol ends. The file tells no sizes, so a symbol ends
 *   - where the next one begins;
 *   - at a marker of its section's end (_etext, _einittext, __entry_text_end
 *     and their like): a marker, and a data marker such as __start_rodata,
 *     names its own address and nothing after it;
 *   - at the end of its page, where what follows is another module's, another
 *     kind of symbol within a module (code, data), or nothing;
 *   - at the end of its page, for BPF programs and trampolines (modules "bpf"
 *     and "__builtin__ftrace"), each of which stands alone in memory.
 * Addresses past such an end belong to no symbol.
 *
 * Which name, where several symbols have one address: ksymname_rank(), and of
 * equals the first in the file.
 *
 * Addresses in the lower half (per-CPU offsets, type A) are no kernel
 * addresses: such symbols are not in the table.
 */
#ifndef STACKTOOLS_SYMBOLS_KALLSYMS_H
#define STACKTOOLS_SYMBOLS_KALLSYMS_H

#include "base/err.h"

#include <pthread.h>

/*
 * ksymtext - the lines of /proc/kallsyms as an array.
 *
 * Generating /proc/kallsyms costs the kernel far more than reading it costs
 * us; what is ours to save is memory, since every page touched for the first
 * time is a fault and a page to be cleared. So the text passes through a small
 * window; kept are an array of symbols and the names' bytes once: "foo" is the
 * tail of the "__pfx_foo" before it. Both lie in huge pages where the kernel
 * has them to give: filling them takes a few faults, not thousands.
 */

struct ksym {
	uint64_t start;
	uint32_t name;
	uint32_t module; /* an offset into the bytes, 0 = the kernel */
};

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
 * -EINVAL when FILE is no copy of /proc/kallsyms, also when it is cut off in
 * the middle of a line.
 */
int kallsyms_load(const char *file, struct kallsyms **ret, struct err *e);

/* As kallsyms_load(), from FD, which stays the caller's; FILE is its name in messages. */
int kallsyms_load_fd(int fd, const char *file, struct kallsyms **ret, struct err *e);

void kallsyms_free(struct kallsyms *ks); /* NULL is fine */

/* The symbol that covers ADDR into *RET; false when none does. */
bool kallsyms_find(const struct kallsyms *ks, uint64_t addr, struct kallsyms_sym *ret);

/* As kallsyms_find() for N addresses, faster than one by one; a symbol's name is NULL when none covers it. */
void kallsyms_find_many(const struct kallsyms *ks, const uint64_t *addrs, size_t n, struct kallsyms_sym *ret);

/* The address of the first symbol called NAME, 0 when there is none. O(n). */
uint64_t kallsyms_address(const struct kallsyms *ks, const char *name);

size_t kallsyms_count(const struct kallsyms *ks);

/*
 * No name or module holds anything but printable ASCII. A table that is not
 * plain did not come from a kernel: escape its names before they are printed.
 */
bool kallsyms_plain(const struct kallsyms *ks);

/*
 * Move the kernel's own symbols so that _stext is at STEXT: the same kernel,
 * booted another time (KASLR). Modules and BPF programs are placed on their
 * own at every boot: their symbols leave the table, *DROPPED (may be NULL)
 * counts them. -ENOENT when the table has no _stext, -ERANGE when an address
 * would leave the kernel's half.
 */
int kallsyms_relocate(struct kallsyms *ks, uint64_t stext, size_t *dropped, struct err *e);

/*
 * kallsyms_loader - the kernel's symbols, read by a thread meanwhile: it takes some
 * tens of milliseconds, in which a recorder has other things to do.
 */

/* A zeroed one is idle. */
struct kallsyms_loader {
	pthread_t thread;
	bool running; /* begun and not taken */
	int fd, rc;
	struct kallsyms *ks;
	struct err why;
};

/*
 * Begin to read; by FD, a descriptor of /proc/kallsyms that stays the
 * caller's and whose rights are those of who opened it, or -1: it is opened
 * now. Does nothing while one is under way. Without threads it reads at once.
 */
void kallsyms_loader_begin(struct kallsyms_loader *l, int fd);

/* Wait for what was begun. As kallsyms_load(): *RET is the caller's. -ENODATA when nothing was begun. */
int kallsyms_loader_take(struct kallsyms_loader *l, struct kallsyms **ret, struct err *e);

/* Wait for what was begun and drop it. */
void kallsyms_loader_close(struct kallsyms_loader *l);

/*
 * kallsyms_copy - saving /proc/kallsyms for another machine or another day.
 *
 * A copy holds the kernel's addresses, which an attacker of that machine would
 * like to know: it is readable by its owner alone.
 */

/*
 * Save FROM (NULL: /proc/kallsyms) as TO, mode 0600, whole or not at all: it is
 * written beside TO, checked as kallsyms_load() would, and renamed.
 * TO is never written through a symbolic link (-ELOOP), nor over anything but a
 * regular file (-EINVAL), nor, without FORCE, over a file that is no such copy
 * (-EEXIST).
 */
int kallsyms_copy_save(const char *from, const char *to, bool force, struct err *e);

#endif
