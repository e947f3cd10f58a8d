/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * table - the compiled unwind table of one ELF file, as one run of bytes
 * that can be sent, kept on disk, and checked.
 *
 * The bytes may come from a process that parsed a hostile file, or from a
 * disk that tore them: unwindtab_view() believes nothing. What it accepted
 * can be copied into the chunks of bpf/unwind_abi.h, segment by segment, once
 * the rule numbers are translated from the table's own to the recording's.
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

#define UNWINDTAB_SEGS_MAX 65535 /* 4 GiB of text, less a segment */
#define UNWINDTAB_LOADS_MAX 64
#define UNWINDTAB_RULES_MAX 16384 /* of one file */

/* What was left out of a table, and why; texts: unwindtab_left_text(). */
enum unwindtab_left {
	UNWINDTAB_EXPRESSION, /* rows whose CFA or return address is an expression that no rule holds */
	UNWINDTAB_FP_UNKNOWN, /* rows that do not tell where the frame pointer is */
	UNWINDTAB_OUTSIDE, /* FDEs, or parts of them, outside executable segments */
	UNWINDTAB_OVERLAP, /* FDEs cut short where another one begins inside them */
	UNWINDTAB_BAD_CIE, /* CIEs that are malformed or of an unknown kind, */
	UNWINDTAB_BAD_FDE, /* FDEs that are malformed, and those of such CIEs */
	UNWINDTAB_TOO_MANY, /* rows beyond a limit: rules of a file, rows of a segment */
	UNWINDTAB_LEFT
};

struct unwindtab_head {
	uint64_t magic;
	uint32_t crc; /* CRC-32C of everything after this word */
	uint32_t machine; /* EM_* */
	uint64_t bytes; /* of everything */
	uint64_t vaddr; /* of the first segment, a multiple of 64 KiB */
	uint32_t n_segs, n_rules;
	uint64_t n_rows; /* after merging */
	uint32_t n_cies, n_fdes; /* that were read */
	uint32_t section; /* enum unwindtab_section */
	uint32_t n_loads;
	uint64_t left[UNWINDTAB_LEFT];
};

/* Bits: a program with parts in Go has both sections. */
enum unwindtab_section {
	UNWINDTAB_NONE = 0,
	UNWINDTAB_EH_FRAME = 1,
	UNWINDTAB_DEBUG_FRAME = 2,
	UNWINDTAB_BOTH = 3
};

/* What joins the offset of a mapping with addresses of the file. */
struct unwindtab_load {
	uint64_t offset, vaddr, bytes;
};

struct unwindtab_seg {
	uint32_t at; /* from the beginning of the bytes, a multiple of 8 */
	uint32_t rows; /* 0 = no unwind information in these 64 KiB, and `at` is 0 */
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
 * Check LEN bytes at BYTES (aligned to 8) and give the parts of the table:
 * magic, length, CRC, every offset, the order of pages and rows, every rule's
 * kinds and number. -EINVAL with the message for anything that is not as above.
 */
int unwindtab_view(const void *bytes, size_t len, struct unwindtab *ret, struct err *e);

/* Set the head's length and CRC when everything else is in place. */
void unwindtab_seal(void *bytes, size_t len);

/*
 * The rule in force at address VADDR of the file, and the row's first and
 * last address (END exclusive); NULL outside the table. START and END may be
 * NULL. Rows with equal rules that meet at a segment's border count as two.
 */
const struct unwind_rule *unwindtab_find(
	const struct unwindtab *t, uint64_t vaddr, uint64_t *start, uint64_t *end);

/*
 * The number of the rule at OFFSET (below 64 KiB) of a segment of ROWS (at
 * least one) that lies at SEGMENT, in unwind_abi.h's layout.
 */
uint16_t unwindtab_rule_at(const void *segment, uint32_t rows, uint32_t offset);

/* The address in the file of the byte at OFFSET, if an executable PT_LOAD holds it. */
bool unwindtab_vaddr(const struct unwindtab *t, uint64_t offset, uint64_t *vaddr);

const char *unwindtab_left_text(unsigned int left); /* a clause for people; never NULL */

/*
 * table_cache - unwind tables kept on disk, by file and build ID.
 *
 * One entry a table, named by the build ID and by the identity of the file
 * that the table was made of: anybody can make a file that claims the build ID
 * of libc, and its table must not be used for another file. Where they are,
 * who may write them and what becomes of damaged ones: diskcache.h; a table is
 * checked by unwindtab_view().
 */

#define TABLE_CACHE_BYTES_DEFAULT (UINT64_C(256) << 20)

struct table_cache;

/* All of it has to be the same again. Nobody can set a file's ctime, so a file that was changed is another
 * one. */
struct table_cache_key {
	struct cap_build_id id; /* one of length 0 is in no cache */
	uint64_t dev, inode, size, mtime_ns, ctime_ns;
};

/* That of a file of status ST; the build ID is left empty. */
struct table_cache_key table_cache_key_of(const struct stat *st);

/* Are they of one file? Whatever its build ID. */
bool table_cache_same_file(const struct table_cache_key *a, const struct table_cache_key *b);

/*
 * Open the cache, at most LIMIT bytes of it. On success *RET is the caller's.
 * -ENOENT when it is turned off, and only then; else -errno and the message: the
 * caller goes on without a cache.
 */
int table_cache_open(uint64_t limit, struct table_cache **ret, struct err *e);
void table_cache_close(struct table_cache *c); /* NULL is fine */

/*
 * The table of KEY in fresh memory (free it), aligned to 8 and checked. Marks
 * it as used. -ENOENT when there is none, -EINVAL when there was a bad one;
 * -ENOMEM and the like when it could not be read.
 */
int table_cache_get(
	struct table_cache *c, const struct table_cache_key *key, uint8_t **ret, size_t *len, struct err *e);

/*
 * Keep a table; what was used longest ago goes while the limit is exceeded,
 * and some more, so that it is not met again at once. Recorders that add at
 * the same time may exceed it by a sixteenth each. A failure (disk full)
 * leaves no partial file. -EFBIG for a table beyond the limit, -EINVAL for a
 * key without a build ID.
 */
int table_cache_put(struct table_cache *c, const struct table_cache_key *key, const uint8_t *bytes,
	size_t len, struct err *e);

void table_cache_stats(const struct table_cache *c, struct diskcache_stats *ret);

#endif
