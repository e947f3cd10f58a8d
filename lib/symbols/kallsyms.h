/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kallsyms - the kernel's symbol table, sorted for look-up.
 *
 * Format: scripts/kallsyms.c and kernel/kallsyms.c of Linux; a line is
 * "<hex address> <type letter> <name>[\t[<module>]]". The table owns its text. A System.map has the
 * same lines and is read as well.
 *
 * Ends of symbols: the file has no sizes, so a symbol ends
 *   - where the next one begins;
 *   - at the end marker of its section (_etext, _einittext, __entry_text_end
 *     and similar): a marker, or a data marker such as __start_rodata, names
 *     its own address and nothing after it;
 *   - at the end of its page, if another module, another kind of symbol within
 *     a module (code, data) or nothing follows;
 *   - at the end of its page, for BPF programs and trampolines (modules "bpf"
 *     and "__builtin__ftrace"), which stand alone in memory.
 * Addresses past such an end belong to no symbol.
 *
 * Among several symbols of one address, ksymname_rank() chooses the name; among equals, the first
 * in the file wins.
 *
 * The lower half of the address space (per-CPU offsets, type A) has no kernel addresses: its
 * symbols are not in the table.
 */
#ifndef STACKTOOLS_SYMBOLS_KALLSYMS_H
#define STACKTOOLS_SYMBOLS_KALLSYMS_H

#include "base/err.h"

#include <pthread.h>

/*
 * ksymtext - the lines of /proc/kallsyms as an array.
 *
 * Generating /proc/kallsyms costs the kernel far more than reading it costs this process. What can
 * be saved is memory: the first touch of each page is a fault and clears a page. Therefore the text
 * passes through a small window. Kept are an array of symbols and the bytes of each name once:
 * "foo" is the tail of the "__pfx_foo" before it. Both use huge pages if the kernel has them: a few
 * faults instead of thousands.
 */

struct ksym {
	uint64_t start;
	uint32_t name;
	uint32_t module; /* an offset into the bytes, 0 = the kernel */
};

struct kallsyms;

struct kallsyms_sym {
	uint64_t start, end; /* end exclusive: next symbol, or end of its section, module or program */
	const char *name; /* owned by the table */
	const char *module; /* "" = the kernel, "bpf" = a BPF program */
};

/*
 * Read FILE (NULL: /proc/kallsyms) into a table sorted by address. On success *RET is the caller's;
 * release it with kallsyms_free(). -EACCES if every address is zero: kptr_restrict hides them, and
 * such a table would give every address the same wrong name. -EINVAL if FILE is not a copy of
 * /proc/kallsyms, or is cut off in the middle of a line.
 */
int kallsyms_load(const char *file, struct kallsyms **ret, struct err *e);

/* As kallsyms_load(), from FD, which stays open; FILE is its name in messages. */
int kallsyms_load_fd(int fd, const char *file, struct kallsyms **ret, struct err *e);

void kallsyms_free(struct kallsyms *ks); /* NULL is fine */

/* Find the symbol that covers ADDR; false if there is none. */
bool kallsyms_find(const struct kallsyms *ks, uint64_t addr, struct kallsyms_sym *ret);

/* As kallsyms_find() for N addresses, but faster; a symbol's name is NULL if none covers the address. */
void kallsyms_find_many(const struct kallsyms *ks, const uint64_t *addrs, size_t n, struct kallsyms_sym *ret);

/* The address of the first symbol with the name NAME, 0 if there is none. O(n). */
uint64_t kallsyms_address(const struct kallsyms *ks, const char *name);

size_t kallsyms_count(const struct kallsyms *ks);

/*
 * Are all names and modules printable ASCII? A table that is not plain does not come from a kernel:
 * escape its names before printing.
 */
bool kallsyms_plain(const struct kallsyms *ks);

/*
 * Move the kernel's own symbols so that _stext is at STEXT: the same kernel in another boot
 * (KASLR). Each boot places modules and BPF programs independently: their symbols are removed, and
 * *DROPPED (may be NULL) counts them. -ENOENT if the table has no _stext, -ERANGE if an address
 * would leave the kernel's half.
 */
int kallsyms_relocate(struct kallsyms *ks, uint64_t stext, size_t *dropped, struct err *e);

/*
 * kallsyms_loader - reading the kernel's symbols in a thread, because it takes some tens of
 * milliseconds that a recorder can use otherwise.
 */

/* A zeroed one is idle. */
struct kallsyms_loader {
	pthread_t thread;
	bool running; /* started and not taken */
	int fd, rc;
	int ready; /* atomic */
	struct kallsyms *ks;
	struct err why;
};

/*
 * Start reading. FD is a descriptor of /proc/kallsyms, which stays open and has the rights of the
 * process that opened it; -1 opens the file now. Does nothing while a read is in progress. Without
 * threads it reads at once.
 */
void kallsyms_loader_begin(struct kallsyms_loader *l, int fd);

/* Can the result be taken without waiting? */
bool kallsyms_loader_ready(const struct kallsyms_loader *l);

/* Wait for the result. As kallsyms_load(): *RET is the caller's. -ENODATA if nothing was started. */
int kallsyms_loader_take(struct kallsyms_loader *l, struct kallsyms **ret, struct err *e);

/* Wait for the result and drop it. */
void kallsyms_loader_close(struct kallsyms_loader *l);

/*
 * kallsyms_copy - saving /proc/kallsyms for another machine or a later time.
 *
 * A copy holds the kernel's addresses, which are valuable to an attacker of that machine: only its
 * owner can read it.
 */

/*
 * Save FROM (NULL: /proc/kallsyms) as TO with mode 0600, complete or not at all: write a file
 * beside TO, check it as kallsyms_load() does, and rename it. Never writes through a symbolic link
 * (-ELOOP) or over anything but a regular file (-EINVAL); only with FORCE over a file that is not
 * such a copy (-EEXIST).
 */
int kallsyms_copy_save(const char *from, const char *to, bool force, struct err *e);

#endif
