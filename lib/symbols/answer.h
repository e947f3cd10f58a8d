/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * answer - what is known of some addresses of one file, as bytes that can
 * be handed from one process to another.
 *
 * Made by whoever read the symbols, believed by nobody before
 * sym_answer_view() has checked it. All numbers are the machine's own
 * (little-endian, aligned to 8): it never leaves the machine.
 *
 *	struct sym_answer_head
 *	struct sym_answer_addr  addrs[n_addrs]	ascending by vaddr, distinct
 *	struct sym_answer_frame frames[n_frames]
 *	char strings[strings_len]		NUL-terminated; offset 0 is ""
 *
 * A string is its offset in `strings`; 0 = there is none.
 */
#ifndef STACKTOOLS_SYMBOLS_ANSWER_H
#define STACKTOOLS_SYMBOLS_ANSWER_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/intern.h"
#include "capture/reader.h"

#define SYM_ANSWER_FRAMES_MAX 256 /* of one address: deeper inlining is cut, outermost first kept */

/* From where a name is, best first; the order is that of the look-up. */
enum sym_answer_source {
	SYM_NONE = 0, /* no name */
	SYM_DWARF, /* a function of the debug information, by the name of its symbol where it has one */
	SYM_SYMTAB, /* otherwise .symtab of the file or of its debug file */
	SYM_MINIDEBUG, /* .symtab inside .gnu_debugdata */
	SYM_DYNSYM,
	SYM_PLT, /* made up: name@plt */
};

/* Why there is no name, or no line, or why they are less certain. */
enum sym_answer_reason {
	SYM_OK = 0,
	SYM_R_NO_SYMBOL, /* no symbol covers the address */
	SYM_R_NO_TABLES, /* the file has no symbols for code */
	SYM_R_BEYOND, /* the name is of the symbol before: the address lies beyond its end */
	SYM_R_DEBUG_BAD, /* debug information that covers it is malformed; names are of the symbol table */
	SYM_R_DEBUG_MISSING, /* its debug information is in a file (.dwo, alternate) that was not found */
	SYM_R_LIMIT, /* the memory or time for this file was used up before this address */
	SYM_R_COUNT
};

struct sym_answer_head {
	uint32_t magic, n_addrs, n_frames, strings_len;
	uint32_t wants,
		n_wants; /* see sym_answer_want(): offset of the first string, how many follow each other */
	uint64_t symbols; /* functions in the tables that were read, for -v */
	uint64_t units, units_read; /* of debug information: there are, and were hit */
	uint64_t ns_symbols, ns_units, ns_lines, ns_names; /* time by stage */
	uint64_t memory_bytes; /* the most that was in use */
	uint32_t message, pad; /* a string: what is wrong with the file as a whole, 0 = nothing */
};

/* The outermost frame, which has an address range of its own, is the last of n_frames; 0 = nothing known. */
struct sym_answer_addr {
	uint64_t vaddr; /* that was asked for */
	uint64_t start; /* of the symbol; 0 without one */
	uint32_t first, n_frames;
	uint8_t source, reason; /* enum sym_answer_source, sym_answer_reason */
	uint8_t debug; /* inlines and lines come from debug information */
	uint8_t pad[5];
};

/* Innermost first. Where execution is inside of each: file and line of the address or of the call. */
struct sym_answer_frame {
	uint32_t name; /* as it is shown: demangled if that was asked for */
	uint32_t linkage; /* as the tables have it */
	uint32_t file; /* path: directory and name joined; 0 = unknown */
	uint32_t line, column; /* 0 = unknown */
};

/* --- making one --- */

struct sym_answer_build {
	struct buf addrs, frames;
	struct buf offsets; /* uint32_t by id of STRINGS */
	struct buf wants;
	struct intern strings;
	struct sym_answer_head
		head; /* statistics and the message are the caller's to fill, the rest is not */
	bool failed; /* memory ran out, or there is more than a uint32_t can count */
};

void sym_answer_begin(struct sym_answer_build *b);

/* The offset of TEXT in the strings, each distinct one once; 0 for "" or where memory ran out (seen at the
 * end). */
uint32_t sym_answer_string(struct sym_answer_build *b, const char *text);

/* ADDR (first and n_frames are set here) with its frames. In ascending order of vaddr. */
void sym_answer_put(struct sym_answer_build *b, const struct sym_answer_addr *addr,
	const struct sym_answer_frame *frames, size_t n);

/*
 * A file without which the answer is not complete, for the caller to find and
 * to ask again: a .dwo, as "DWO-ID-in-hex PATH" (PATH with the unit's
 * directory before it).
 */
void sym_answer_want(struct sym_answer_build *b, const char *text);

/* All of it into fresh memory (*RET, free it). 0 or -ENOMEM. B is to be freed by sym_answer_end() in any
 * case.
 */
int sym_answer_finish(struct sym_answer_build *b, uint8_t **ret, size_t *len);
void sym_answer_end(struct sym_answer_build *b);

/* --- reading one --- */

struct sym_answer {
	const struct sym_answer_head *head;
	const struct sym_answer_addr *addrs;
	const struct sym_answer_frame *frames;
	const char *strings;
};

/* Check LEN bytes, which must outlive RET and are aligned to 8. -EINVAL for what no maker makes. */
int sym_answer_view(const void *bytes, size_t len, struct sym_answer *ret, struct err *e);

/* The address VADDR, or NULL. O(log n). */
const struct sym_answer_addr *sym_answer_find(const struct sym_answer *a, uint64_t vaddr);

const char *sym_answer_text(const struct sym_answer *a, uint32_t string); /* NULL for 0 */

/* The I'th of head->n_wants. */
const char *sym_answer_want_at(const struct sym_answer *a, uint32_t i);

/* Why there is no name, or why it is less certain, for people; NULL for SYM_OK. */
const char *sym_answer_reason_text(unsigned int reason);

/*
 * storednames - the names that a capture itself holds of a file's addresses,
 * in the form of an answer.
 *
 * For files that are not to be had. What the recorder wrote is anybody's by now: what
 * no recorder writes is left out, and the answer passes sym_answer_view().
 */

bool storednames_any(const struct cap_reader *c, uint32_t file);

/* What is wanted of what is stored. */
struct storednames_opts {
	bool demangle; /* else names are shown as the tables had them */
	bool inlines; /* else a function has the place of the innermost call, and no calls */
	bool lines;
};

/*
 * All that C holds of FILE (a cap_file id), where `vaddr` and `start` are offsets into the file. Without
 * inlines and lines nothing counts as told by debug information. 0 with fresh
 * memory in *RET (an answer without addresses where nothing is stored), or -ENOMEM.
 */
int storednames_answer(const struct cap_reader *c, uint32_t file, const struct storednames_opts *o,
	uint8_t **ret, size_t *len, struct err *e);

#endif
