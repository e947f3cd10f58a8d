/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwindcmp - a comparison of an unwind table with libdw's reader of call frame
 * information, at every row boundary of either.
 *
 * Nothing is compared as text or by kind. Both sides are evaluated on a machine
 * with made-up registers and memory, twice, and must give the same CFA, stack
 * pointer, frame pointer, RBX and return address. If the table has no row, libdw
 * is queried for every byte, too. libdw is not hardened against hostile files.
 *
 * .debug_frame does not mention where Go functions save the frame pointer: of
 * them only CFA and return address are compared.
 */
#ifndef STACKTOOLS_T_UNWINDCMP_H
#define STACKTOOLS_T_UNWINDCMP_H

#include "elf/file.h"
#include "unwind/table.h"

struct unwindcmp_totals {
	uint64_t rows; /* compared and equal, at the boundaries of the table's and libdw's rows together */
	uint64_t blank; /* addresses for which neither has a row */
	uint64_t unheld; /* rows that libdw has, but no rule can hold, and the table marks as unsupported */
	uint64_t refused; /* rows that libdw fails on and that are missing or unsupported in the table */
	/*
	 * of Go functions: what .debug_frame does not have (a stripped program's rows,
	 * ends, changes of stack), and the table has from .gopclntab
	 */
	uint64_t beyond;
	uint64_t differences;
};

/* Called for each difference; TEXT is a line without a newline. */
typedef void unwindcmp_report(void *arg, uint64_t pc, const char *text);

/*
 * Compare table T of file F (its descriptor open) over all of its executable
 * segments. TELL may be NULL. Fails if libdw cannot read the file at all.
 */
int unwindcmp(const struct elffile *f, const struct unwindtab *t, unwindcmp_report *report, void *arg,
	struct unwindcmp_totals *ret, struct err *e);

#endif
