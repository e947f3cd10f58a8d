/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf - functions, inlined calls and source lines of addresses, from DWARF 2
 * to 5.
 *
 * The caller passes all addresses at once and sorted, and units are read one
 * after the other. A unit that contains no address is read only up to its first
 * entry. In other units, entries that cannot lead to an address are skipped,
 * and the line program runs once. Memory use depends on the largest unit and
 * its line program, not on the file.
 *
 * Supported: DW_UT_compile, partial, skeleton and split units (type units are
 * skipped); .debug_types; DW_AT_ranges of all versions; .debug_addr and
 * .debug_str_offsets; references into other units (LTO, partial units) and into
 * dwz's alternate file; compressed sections; .dwo and .dwp files with their
 * indexes (v2 of GNU, v5).
 */
#ifndef STACKTOOLS_ELF_DWARF_H
#define STACKTOOLS_ELF_DWARF_H

#include "base/base.h"
#include "base/err.h"
#include "elf/file.h"

/*
 * dwarf_hit - what debug information says about one address, and the choice if
 * several units cover it.
 */

/* One frame; strings are valid during the call. Innermost first; the last one is the function itself. */
struct dwarf_lookup_frame {
	const char *name; /* DW_AT_name, NULL = none */
	const char *linkage; /* DW_AT_linkage_name, NULL = none */
	const char *file; /* joined path; NULL = unknown */
	uint32_t line, column;
};

struct dwarf_lookup_hit {
	size_t index; /* of the address in the sorted array */
	const struct dwarf_lookup_frame *frames;
	size_t n; /* 0: there is only ERROR; 1 without a name: only the line is known */
	uint64_t low; /* where the function begins; 0 = not known */
	/* -EINVAL: malformed at the address; -ENOENT: its .dwo or alternate file is missing; -ENOMEM */
	int error;
};

typedef void dwarf_lookup_sink(void *ctx, const struct dwarf_lookup_hit *hit);

struct dwarf_lookup;

struct dwarf_lookup_dwo {
	uint64_t id;
	const struct elffile *file;
};

struct dwarf_lookup_opts {
	const struct elffile *elf; /* holds .debug_info */
	const struct elffile *alt, *dwp; /* NULL = none */
	const struct dwarf_lookup_dwo *dwos;
	size_t n_dwos;
	bool inlines; /* report inlined calls, not only functions */
	bool lines;
	uint64_t max_bytes;
};

/* Called once for each missing .dwo file. */
typedef void dwarf_lookup_want(void *ctx, uint64_t id, const char *path);

struct dwarf_lookup_stats {
	uint64_t units, units_read, entries; /* in the file; read; visited */
	uint64_t ns_units, ns_lines;
	uint64_t peak_bytes;
};

/* -ENOENT if ELF has no debug information, -EINVAL if its unit headers are not valid. */
int dwarf_lookup_open(const struct dwarf_lookup_opts *o, struct dwarf_lookup **ret, struct err *e);
void dwarf_lookup_close(struct dwarf_lookup *d);

/*
 * Pass each address of VADDRS (ascending, distinct) that debug information
 * covers to SINK once, in any order. A unit that is malformed or exceeds
 * MAX_BYTES affects only its own addresses: the call returns 0 all the same,
 * with the first such message in E if given. -ENOMEM if memory runs out.
 */
int dwarf_lookup_run(struct dwarf_lookup *d, const uint64_t *vaddrs, size_t n, dwarf_lookup_sink *sink,
	dwarf_lookup_want *want, void *ctx, struct err *e);

void dwarf_lookup_stats(const struct dwarf_lookup *d, struct dwarf_lookup_stats *ret);

#endif
