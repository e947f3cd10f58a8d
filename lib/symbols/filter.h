/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filter - naming kernel addresses in a stream of text.
 *
 * It changes two kinds of line and passes all others unchanged:
 *
 *   ffffffff81234567                       a line with just a hex number, 0x or not
 *   <TAB>ffffffff81234567 [unknown] (DSO)  a raw kernel frame of perf script's
 *                                          grammar; DSO is [kernel.kallsyms],
 *                                          [kernel] or [unknown]
 *
 * An address line becomes "name+0x1f", followed by " [module]" if there is one, or
 * "0xffffffff81234567 [unknown]". In a frame, "[unknown] (DSO)" becomes
 * "name+0x1f ([kernel.kallsyms])" or "name+0x1f ([module])"; a frame without a name stays unchanged. All
 * frames but the first of a record are return addresses: they are looked up one byte back, and the
 * offset is that of the address itself.
 *
 * A comment line "# kernel: stext=0xffffffff81000000" gives the position of the kernel whose
 * addresses follow, and "release=6.1.0" its release.
 */
#ifndef STACKTOOLS_SYMBOLS_FILTER_H
#define STACKTOOLS_SYMBOLS_FILTER_H

#include "base/out.h"
#include "symbols/kallsyms.h"

struct kallsyms_filter {
	struct kallsyms *ks; /* the caller's; relocation moves its symbols */
	const char *file; /* where KS came from; NULL: /proc/kallsyms */
	bool relocate; /* move KS to the position of the stream's kernel */
	bool placed; /* KS matches the addresses; set by kallsyms_filter_place() */
	bool fixed; /* the user gave the position: comments do not move it */
	bool modules; /* in address lines, show "[kernel]" for the kernel's own symbols */
	bool return_addresses; /* look up address lines one byte back */
	/* results */
	size_t named, unnamed; /* kernel addresses and address lines */
	size_t dropped; /* module symbols that relocation removed */
};

/*
 * Move the table to a kernel whose _stext is at STEXT. -ESTALE if that is another boot and
 * F->relocate is not set; otherwise errors of kallsyms_relocate().
 */
int kallsyms_filter_place(struct kallsyms_filter *f, uint64_t stext, struct err *e);

/*
 * With F->relocate and no position yet, the addresses belong to the running kernel: move the table
 * there. Call it before naming addresses.
 */
int kallsyms_filter_place_live(struct kallsyms_filter *f, struct err *e);

/* Write "name+0x1f [module]" for ADDR, or "0x... [unknown]", without a newline, and count it. */
void kallsyms_filter_address(struct kallsyms_filter *f, uint64_t addr, struct out *o);

/*
 * Filter FD to its end into O. Flushes O before each read, so that a pipeline is not delayed, and
 * at the end. Errors of reading, writing and placing.
 */
int kallsyms_filter_run(struct kallsyms_filter *f, int fd, struct out *o, struct err *e);

/* Parse the LEN bytes at P as a hex number of up to 64 bits, 0x or not. */
bool kallsyms_filter_hex(const char *p, size_t len, uint64_t *ret);

#endif
