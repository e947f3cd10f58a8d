/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filter - naming kernel addresses in a stream of text.
 *
 * Two kinds of line are changed, all others pass to the byte:
 *
 *   ffffffff81234567                       a line that is a hex number, 0x or not
 *   <TAB>ffffffff81234567 [unknown] (DSO)  a raw kernel frame of perf script's
 *                                          grammar; DSO is [kernel.kallsyms],
 *                                          [kernel] or [unknown]
 *
 * An address line becomes "name+0x1f", with " [module]" where there is one, or
 * "0xffffffff81234567 [unknown]". In a frame "[unknown] (DSO)" becomes
 * "name+0x1f ([kernel.kallsyms])" or "name+0x1f ([module])"; a frame that has no
 * name stays. Frames but the first of a record are return addresses: they are
 * looked up one byte back, and the offset is that of the address itself.
 *
 * A comment line "# kernel: stext=0xffffffff81000000" tells where the kernel
 * was whose addresses follow, and "release=6.1.0" which one it was.
 */
#ifndef STACKTOOLS_SYMBOLS_FILTER_H
#define STACKTOOLS_SYMBOLS_FILTER_H

#include "base/out.h"
#include "symbols/kallsyms.h"

struct kallsyms_filter {
	struct kallsyms *ks; /* the caller's; moved by relocation */
	const char *file; /* it came from there; NULL: /proc/kallsyms */
	bool relocate; /* move ks to where the stream's kernel was */
	bool placed; /* ks is where the addresses are; kallsyms_filter_place() sets it */
	bool fixed; /* the user has said where they are: comments do not move it */
	bool modules; /* address lines: name the module of the kernel's own symbols too, "[kernel]" */
	bool return_addresses; /* address lines are looked up one byte back */
	/* results */
	size_t named, unnamed; /* kernel addresses and address lines */
	size_t dropped; /* module symbols that relocation took away */
};

/*
 * Fit the table to a kernel whose _stext is at STEXT. -ESTALE when it is
 * another boot's and F->relocate is not set; else errors of
 * kallsyms_relocate().
 */
int kallsyms_filter_place(struct kallsyms_filter *f, uint64_t stext, struct err *e);

/*
 * With F->relocate and nothing placed yet, the addresses are the running
 * kernel's: fit the table to that. Needed before addresses are named.
 */
int kallsyms_filter_place_live(struct kallsyms_filter *f, struct err *e);

/* "name+0x1f [module]" without a newline for ADDR, or "0x... [unknown]"; counted. */
void kallsyms_filter_address(struct kallsyms_filter *f, uint64_t addr, struct out *o);

/*
 * FD to its end onto O, which is flushed before each read so that nothing
 * waits in a pipeline, and at the end. Errors of reading, writing, placing.
 */
int kallsyms_filter_run(struct kallsyms_filter *f, int fd, struct out *o, struct err *e);

/* The LEN bytes at P as a hex number, 0x or not, of 64 bits at most. */
bool kallsyms_filter_hex(const char *p, size_t len, uint64_t *ret);

#endif
