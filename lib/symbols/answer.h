/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * answer - the names of some addresses of one file, as bytes that one process can send to another.
 *
 * The process that read the symbols makes an answer; it is untrusted until sym_answer_view() has
 * checked it. All numbers are in the machine's own format (little-endian, aligned to 8): an answer
 * never leaves the machine.
 *
 *	struct sym_answer_head
 *	struct sym_answer_addr  addrs[n_addrs]	ascending by vaddr, distinct
 *	struct sym_answer_frame frames[n_frames]
 *	char strings[strings_len]		NUL-terminated; offset 0 is ""
 *
 * A string is stored as its offset in `strings`; 0 = no string.
 */
#ifndef STACKTOOLS_SYMBOLS_ANSWER_H
#define STACKTOOLS_SYMBOLS_ANSWER_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/intern.h"
#include "capture/reader.h"

#define SYM_ANSWER_FRAMES_MAX 256 /* of one address: deeper inlining loses its innermost calls */

/* Where a name comes from, best source first. The numbers are those of captures (capture.5). */
enum sym_answer_source {
	SYM_NONE = 0, /* no name */
	SYM_DWARF, /* a function of the debug information, named by its symbol if it has one */
	SYM_SYMTAB, /* .symtab of the file or of its debug file */
	SYM_MINIDEBUG, /* .symtab inside .gnu_debugdata */
	SYM_DYNSYM,
	SYM_PLT, /* made up: name@plt */
	SYM_FDE, /* no name, but where the function begins, by its call frame information */
	SYM_GOPCLNTAB, /* the table of functions of a Go program */
	SYM_SOURCES
};

static inline bool sym_answer_names(uint8_t source)
{
	return source != SYM_NONE && source != SYM_FDE;
}

/* Why there is no name or no line. */
enum sym_answer_reason {
	SYM_OK = 0,
	SYM_R_NO_SYMBOL, /* no symbol covers the address */
	SYM_R_NO_TABLES, /* the file has no symbols for code */
	SYM_R_GUESS, /* of captures before 1.3, whose names with this reason are not used: the symbol before
		      */
	SYM_R_DEBUG_BAD, /* the debug information covering it is malformed; the name is the symbol's */
	SYM_R_DEBUG_MISSING, /* its debug information is in a file (.dwo, alternate) that was not found */
	SYM_R_LIMIT, /* the memory or time for this file ran out before this address */
	SYM_R_COUNT
};

struct sym_answer_head {
	uint32_t magic, n_addrs, n_frames, strings_len;
	uint32_t wants, n_wants; /* see sym_answer_want(): offset of the first string, number of strings */
	uint64_t symbols; /* functions in the tables read, for -v */
	uint64_t units, units_read; /* of debug information: all, and those with an address */
	uint64_t ns_symbols, ns_units, ns_lines, ns_names; /* elapsed time by stage */
	uint64_t memory_bytes; /* peak use */
	uint32_t message, pad; /* a string: what is wrong with the whole file, 0 = nothing */
};

/* The outermost frame, which has its own address range, is the last of n_frames; 0 = nothing known. */
struct sym_answer_addr {
	uint64_t vaddr; /* the requested address */
	uint64_t start; /* of the symbol, or of the FDE if the source is SYM_FDE; 0 without one */
	uint32_t first, n_frames;
	uint8_t source, reason; /* enum sym_answer_source, sym_answer_reason */
	uint8_t debug; /* inlines and lines come from debug information */
	uint8_t pad[5];
};

/* Innermost first. File and line are those of the address, or of the call inside this function. */
struct sym_answer_frame {
	uint32_t name; /* as shown: demangled if requested */
	uint32_t linkage; /* before demangling */
	uint32_t file; /* directory and name joined; 0 = unknown */
	uint32_t line, column; /* 0 = unknown */
};

/* --- build an answer --- */

struct sym_answer_build {
	struct buf addrs, frames;
	struct buf offsets; /* uint32_t, indexed by the id in STRINGS */
	struct buf wants;
	struct intern strings;
	/* The caller sets the statistics and the message, and nothing else. */
	struct sym_answer_head head;
	bool failed; /* out of memory, or more items than a uint32_t can count */
};

void sym_answer_begin(struct sym_answer_build *b);

/*
 * The offset of TEXT in the strings; equal strings share one copy. 0 for "" or when out of memory,
 * which sym_answer_finish() reports.
 */
uint32_t sym_answer_string(struct sym_answer_build *b, const char *text);

/* Add ADDR and its frames; sets first and n_frames. Call it in ascending order of vaddr. */
void sym_answer_put(struct sym_answer_build *b, const struct sym_answer_addr *addr,
	const struct sym_answer_frame *frames, size_t n);

/*
 * Request a file without which the answer is incomplete; the caller finds the file and repeats the
 * look-up. TEXT is a .dwo as "DWO-ID-in-hex PATH", where PATH includes the unit's directory.
 */
void sym_answer_want(struct sym_answer_build *b, const char *text);

/* Put the answer into fresh memory; free *RET. 0 or -ENOMEM. Release B with sym_answer_end() in any case. */
int sym_answer_finish(struct sym_answer_build *b, uint8_t **ret, size_t *len);
void sym_answer_end(struct sym_answer_build *b);

/* --- read an answer --- */

struct sym_answer {
	const struct sym_answer_head *head;
	const struct sym_answer_addr *addrs;
	const struct sym_answer_frame *frames;
	const char *strings;
};

/* Check LEN bytes, which must be aligned to 8 and outlive RET. -EINVAL for a malformed answer. */
int sym_answer_view(const void *bytes, size_t len, struct sym_answer *ret, struct err *e);

/* The entry of VADDR, or NULL. O(log n). */
const struct sym_answer_addr *sym_answer_find(const struct sym_answer *a, uint64_t vaddr);

const char *sym_answer_text(const struct sym_answer *a, uint32_t string); /* NULL for 0 */

/* String number I of head->n_wants. */
const char *sym_answer_want_at(const struct sym_answer *a, uint32_t i);

/* Why there is no name or line, as text for users; NULL for SYM_OK. */
const char *sym_answer_reason_text(unsigned int reason);

/*
 * storednames - the names that a capture itself has for a file's addresses, in the form of an
 * answer.
 *
 * For files that are unavailable. The capture is untrusted input: entries that no recorder writes
 * are dropped, and the answer passes sym_answer_view().
 */

bool storednames_any(const struct cap_reader *c, uint32_t file);

/* Which of the stored data to use. */
struct storednames_opts {
	bool demangle; /* else show names that are not demangled */
	bool inlines; /* else a function has the place of its innermost call, and no calls */
	bool lines;
};

/*
 * All names that C has for FILE (a cap_file id); `vaddr` and `start` are offsets into the file, whose
 * addresses cap_reader_name() has. Without inlines and lines, no entry is marked as coming from debug
 * information. 0 with fresh memory in *RET (an answer without addresses if nothing is stored), or -ENOMEM.
 */
int storednames_answer(const struct cap_reader *c, uint32_t file, const struct storednames_opts *o,
	uint8_t **ret, size_t *len, struct err *e);

#endif
