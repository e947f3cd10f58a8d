/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf - from addresses to functions, inlined calls and source lines, by
 * DWARF 2 to 5.
 *
 * Addresses come sorted and all at once, and units are read one after the
 * other: of a unit that no address falls into only the head and its first entry
 * are read; of one that is hit, entries that cannot lead to an address are
 * stepped over, and its line program is run once. Memory is that of the largest
 * unit and its line program, not of the file.
 *
 * Covered: DW_UT_compile, partial, skeleton and split units, type units are passed over;
 * .debug_types; DW_AT_ranges of all versions, .debug_addr and
 * .debug_str_offsets, references into other units (LTO, partial units) and
 * into dwz's alternate file, compressed sections, .dwo and .dwp with their
 * indexes (v2 of GNU, v5).
 */
#ifndef STACKTOOLS_ELF_DWARF_H
#define STACKTOOLS_ELF_DWARF_H

#include "base/base.h"
#include "base/err.h"
#include "elf/file.h"

/*
 * dwarf_hit - what debug information says of one address, and the choice between
 * several units that speak of it.
 */

/* One frame; strings are valid during the call. Innermost first, the last one is the function itself. */
struct dwarf_lookup_frame {
	const char *name; /* DW_AT_name, NULL = none */
	const char *linkage; /* DW_AT_linkage_name, NULL = none */
	const char *file; /* joined path; NULL = unknown */
	uint32_t line, column;
};

struct dwarf_lookup_hit {
	size_t index; /* of the address in the sorted array */
	const struct dwarf_lookup_frame *frames;
	size_t n; /* 0: only ERROR is to be told; 1 with no name: only the line is known */
	uint64_t low; /* where the function begins; 0 = not known */
	int error; /* -EINVAL: malformed where it covers the address; -ENOENT: its .dwo or alternate is
		      missing; -ENOMEM */
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
	bool inlines; /* else the functions are told, but no inlined calls */
	bool lines;
	uint64_t max_bytes;
};

/* .dwo files that were missing: called once for each. */
typedef void dwarf_lookup_want(void *ctx, uint64_t id, const char *path);

struct dwarf_lookup_stats {
	uint64_t units, units_read, entries; /* there are; hit; looked at */
	uint64_t ns_units, ns_lines;
	uint64_t peak_bytes;
};

/* -ENOENT when ELF has no debug information; -EINVAL when its unit headers make no sense. */
int dwarf_lookup_open(const struct dwarf_lookup_opts *o, struct dwarf_lookup **ret, struct err *e);
void dwarf_lookup_close(struct dwarf_lookup *d);

/*
 * Each address of VADDRS (ascending, distinct) that debug information covers
 * goes to SINK once, in any order. What is malformed costs the unit it is in:
 * 0 all the same, with the first such message in E if given; -ENOMEM at the limit.
 */
int dwarf_lookup_run(struct dwarf_lookup *d, const uint64_t *vaddrs, size_t n, dwarf_lookup_sink *sink,
	dwarf_lookup_want *want, void *ctx, struct err *e);

void dwarf_lookup_stats(const struct dwarf_lookup *d, struct dwarf_lookup_stats *ret);

#endif
