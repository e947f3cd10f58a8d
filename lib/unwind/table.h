/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table - the compiled unwind table of one ELF file, as one block of bytes that
 * can be sent, stored on disk and checked.
 *
 * The bytes may come from a process that parsed a hostile file, or may be
 * damaged on disk: unwindtab_view() trusts nothing. Segments of a table that it
 * accepted can be copied into the chunks of bpf/unwind_abi.h after their rule
 * numbers are translated from those of the table to those of the recording.
 *
 * Layout, little-endian, each part at a multiple of 8:
 *	struct unwindtab_head
 *	struct unwindtab_load [n_loads]	the file's executable PT_LOADs
 *	struct unwindtab_seg [n_segs]
 *	struct unwind_rule [n_rules]	rule 0 is all zero: no unwind information
 *	the segments, as in unwind_abi.h, each at its `at` from the beginning of the bytes
 */
#ifndef STACKTOOLS_UNWIND_TABLE_H
#define STACKTOOLS_UNWIND_TABLE_H

#include "base/diskcache.h"
#include "base/err.h"
#include "capture/types.h"
#include "unwind_abi.h"

#include <sys/stat.h>

#define UNWINDTAB_SEGS_MAX 65535 /* 4 GiB of text minus one segment */
#define UNWINDTAB_LOADS_MAX 64
#define UNWINDTAB_RULES_MAX 16384 /* of one file */

/* What is missing in a table, and why. Texts: unwindtab_left_text(). */
enum unwindtab_left {
	UNWINDTAB_EXPRESSION, /* rows whose CFA or return address is an expression that no rule can hold */
	UNWINDTAB_FP_UNKNOWN, /* rows that do not say where the frame pointer is */
	UNWINDTAB_OUTSIDE, /* FDEs, or parts of them, outside executable segments */
	UNWINDTAB_OVERLAP, /* FDEs cut because another one begins inside them */
	UNWINDTAB_BAD_CIE, /* malformed CIEs and CIEs of an unknown kind */
	UNWINDTAB_BAD_FDE, /* malformed FDEs and those of such CIEs */
	UNWINDTAB_TOO_MANY, /* rows above a limit: rules of a file, rows of a segment */
	UNWINDTAB_LEFT
};

/*
 * If the file is the interpreter of a language: what its file says about it
 * (unwind/interpreter.h), in the addresses of the ELF file. Ends are exclusive.
 */
struct unwindtab_interpreter {
	uint32_t kind; /* enum runtime_kind of bpf/runtime_abi.h; 0 = it is none */
	uint32_t version; /* as in Py_Version; 0 = not found out */
	uint64_t state, state_bytes; /* the variable that leads to everything; 0 = this build has none */
	uint64_t eval[2], cold[2]; /* the function that executes script code, and its unlikely part */
	uint64_t counter; /* of Python: a variable that counts code objects; 0 = not found */
	uint64_t names; /* of Ruby: the table of its symbols; 0 = not found */
	uint32_t thread_way; /* of Ruby: enum ruby_thread, and where the variable is in that block */
	int32_t thread_at;
};

#define UNWINDTAB_HOTSPOT_SIZES 10

/* If it is a libjvm: what its tables for debuggers say (unwind/hotspot.h). Addresses of variables. */
struct unwindtab_hotspot {
	uint64_t heaps, call_return, interpreter;
	uint32_t sizes[UNWINDTAB_HOTSPOT_SIZES]; /* of structures, in the order of enum hotspot_size */
};

struct unwindtab_head {
	uint64_t magic;
	uint32_t crc; /* CRC-32C of everything after this word */
	uint32_t machine; /* EM_* */
	uint64_t bytes; /* of everything */
	uint64_t vaddr; /* of the first segment, a multiple of 64 KiB */
	uint32_t n_segs, n_rules;
	uint64_t n_rows; /* after merging */
	uint32_t n_cies, n_fdes; /* number read */
	uint32_t section; /* enum unwindtab_section */
	uint32_t n_loads;
	uint64_t left[UNWINDTAB_LEFT];
	struct unwindtab_interpreter interpreter;
	struct unwindtab_hotspot hotspot;
};

/* Bits: a program with parts in Go may have all of them. */
enum unwindtab_section {
	UNWINDTAB_NONE = 0,
	UNWINDTAB_EH_FRAME = 1,
	UNWINDTAB_DEBUG_FRAME = 2,
	UNWINDTAB_GOPCLNTAB = 4,
	UNWINDTAB_ALL = 7,
};

/* Maps offsets in the file to its addresses. */
struct unwindtab_load {
	uint64_t offset, vaddr, bytes;
};

struct unwindtab_seg {
	uint32_t at; /* from the beginning of the bytes, a multiple of 8 */
	uint32_t rows; /* 0 = no unwind information in these 64 KiB; then `at` is 0 */
};

/* Pointers into the bytes, which must outlive it. */
struct unwindtab {
	const struct unwindtab_head *head;
	const struct unwindtab_load *loads;
	const struct unwindtab_seg *segs;
	const struct unwind_rule *rules;
	const uint8_t *bytes;
};

/*
 * Check LEN bytes at BYTES (aligned to 8) and set the parts of the table in
 * *RET. Checks the magic, length, CRC, every offset, the order of pages and
 * rows, and the kinds and number of every rule. -EINVAL with the message if
 * anything is wrong.
 */
int unwindtab_view(const void *bytes, size_t len, struct unwindtab *ret, struct err *e);

/* Set the magic, length and CRC of the head after everything else is in place. */
void unwindtab_seal(void *bytes, size_t len);

/*
 * The rule in force at address VADDR of the file; NULL outside the table.
 * *START and *END (exclusive) are the addresses of its row; both may be NULL.
 * Rows with equal rules that meet at the border of a segment are two rows.
 */
const struct unwind_rule *unwindtab_find(
	const struct unwindtab *t, uint64_t vaddr, uint64_t *start, uint64_t *end);

/*
 * The number of the rule at OFFSET (below 64 KiB) of the segment at SEGMENT
 * with ROWS rows (at least one), in the layout of unwind_abi.h.
 */
uint16_t unwindtab_rule_at(const void *segment, uint32_t rows, uint32_t offset);

/* Convert OFFSET to an address of the file. Returns false if no executable PT_LOAD contains it. */
bool unwindtab_vaddr(const struct unwindtab *t, uint64_t offset, uint64_t *vaddr);

const char *unwindtab_left_text(unsigned int left); /* a phrase for messages; never NULL */

/*
 * table_cache - unwind tables on disk, by file and build ID.
 *
 * Each table is one entry, named after the build ID and the identity of the
 * file that it was compiled from. The build ID alone is not enough: anyone can
 * create a file with the build ID of libc, and its table must not be used for
 * another file. For the directory, who may write to it and damaged entries see
 * diskcache.h; tables are checked with unwindtab_view().
 */

#define TABLE_CACHE_BYTES_DEFAULT (UINT64_C(256) << 20)

struct table_cache;

/* All fields must match. The ctime of a file cannot be set, so a changed file is a different one. */
struct table_cache_key {
	struct cap_build_id id; /* length 0: never cached */
	uint64_t dev, inode, size, mtime_ns, ctime_ns;
};

/* The key of a file with status ST, without a build ID. */
struct table_cache_key table_cache_key_of(const struct stat *st);

/* Do both keys identify the same file? Ignores the build ID. */
bool table_cache_same_file(const struct table_cache_key *a, const struct table_cache_key *b);

/*
 * Open the cache with at most LIMIT bytes. On success the caller owns *RET.
 * -ENOENT only if the cache is turned off; else -errno and the message. The
 * caller then continues without a cache.
 */
int table_cache_open(uint64_t limit, struct table_cache **ret, struct err *e);

/*
 * The same through a process of its own, unwind-cache, which keeps the caller's
 * user and access to the cache's directory alone: for a recorder that gives up
 * its user and opening files for writing (system/drop.h). It opens entries for
 * reading, and stores bytes that it is handed; it looks into neither.
 */
int table_cache_start(uint64_t limit, struct table_cache **ret, struct err *e);
uint32_t table_cache_pid(const struct table_cache *c); /* of that process; 0 = none, or it has ended */

void table_cache_close(struct table_cache *c); /* NULL is fine */

/*
 * Read the table of KEY into new memory, aligned to 8 and checked; released
 * with free(3). Marks it as used. -ENOENT if there is none, -EINVAL if it was
 * damaged; -ENOMEM etc. if it could not be read.
 */
int table_cache_get(
	struct table_cache *c, const struct table_cache_key *key, uint8_t **ret, size_t *len, struct err *e);

/*
 * Store a table. While the limit is exceeded, removes the least recently used
 * entries, and some more so that the limit is not reached again at once.
 * Recorders that add at the same time may each exceed it by a sixteenth. A
 * failure (disk full) leaves no partial file. -EFBIG for a table larger than
 * the limit, -EINVAL for a key without a build ID.
 */
int table_cache_put(struct table_cache *c, const struct table_cache_key *key, const uint8_t *bytes,
	size_t len, struct err *e);

void table_cache_stats(const struct table_cache *c, struct diskcache_stats *ret);

#endif
