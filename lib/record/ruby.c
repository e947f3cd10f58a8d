/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/ruby.h"
#include "base/base.h"

#include <string.h>

/*
 * Offsets in bytes on x86-64, printed by a program that was compiled with the
 * sources of a version and the configuration of Debian's package, or of Ubuntu's
 * for 3.0 and 3.2 (offsetof). Headers: vm_core.h (thread_*, ec_*, frame_*,
 * body_*), iseq.h (line_bytes), thread_pthread.h (thread_id from 3.2), id.h
 * (operators: tLAST_OP_ID), include/ruby/internal/core/rstring.h (string_*). What
 * all versions share is in bpf/ruby.bpf.h. They are not part of the interface for
 * extensions, but change with versions only.
 */
static const struct ruby_version {
	uint32_t version; /* 3.1 = 0x301 */
	struct ruby_layout at;
} versions[] = {
	{ 0x207, { .thread_ec = 32,
			 .thread_id = 72,
			 .ec_thread = 56, /* thread_ptr */
			 .frame_bytes = 56,
			 .body_insns = 120,
			 .line_bytes = 8,
			 .first_line_shift = 1, /* an object of Ruby */
			 .operators = 168 } },
	{ 0x300, { .thread_ec = 40,
			 .thread_id = 80,
			 .ec_thread = 56, /* thread_ptr */
			 .frame_bytes = 56,
			 .body_insns = 120,
			 .line_bytes = 8,
			 .first_line_shift = 1, /* an object of Ruby */
			 .operators = 168 } },
	{ 0x301, { .thread_ec = 40,
			 .thread_id = 80,
			 .ec_thread = 48, /* thread_ptr */
			 .frame_bytes = 64,
			 .body_insns = 120,
			 .line_bytes = 12,
			 .first_line_shift = 1, /* an object of Ruby */
			 .operators = 169 } },
	{ 0x302, { .thread_ec = 48,
			 .thread_native = 40, /* nt */
			 .thread_id = 8,
			 .ec_thread = 48,
			 .frame_bytes = 64,
			 .body_insns = 112,
			 .line_bytes = 12,
			 .operators = 169,
			 .string_embedded = 24 } },
	{ 0x303, { .thread_ec = 48,
			 .thread_native = 40, /* nt */
			 .thread_id = 16,
			 .ec_thread = 48,
			 .frame_bytes = 56,
			 .body_insns = 112,
			 .line_bytes = 12,
			 .operators = 169,
			 .string_embedded = 24 } },
};

bool ruby_layout(struct runtime_file *ret, uint64_t state_bytes)
{
	(void)state_bytes;
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		if (ret->version >> 16 != ((versions[i].version & 0xf00) | (versions[i].version & 0xff)))
			continue;
		ret->ruby = versions[i].at;
		return true;
	}
	return false;
}

void ruby_places(struct runtime_file *ret, const struct unwindtab_interpreter *i)
{
	ret->ruby.symbols = i->names;
	ret->ruby.thread_way = (uint16_t)i->thread_way;
	ret->ruby.thread_at = i->thread_at;
}

#define SIZE_BYTES 8 /* of the code's size, and of the number of entries */
#define IMMEDIATE 54 /* positions with an entry of 7 bits in the first words, nine in each */
#define IMMEDIATE_BYTES 48
#define BLOCK 512 /* positions of a block */
#define BLOCK_BYTES 80

static uint64_t le64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t le32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/*
 * The number of entries that begin at or before position AT. iseq.c,
 * struct succ_index_table: of the first 54 positions it stands there; the
 * others have a bit each, in blocks that begin with the number before them, and
 * seven numbers of 9 bits, before each of their words of bits but the first.
 */
static bool entries_before(const uint8_t *index, size_t n, uint32_t at, uint32_t *ret)
{
	if (at < IMMEDIATE) {
		if (at / 9 * 8 + 8 > n)
			return false;
		*ret = (uint32_t)(le64(index + at / 9 * 8) >> at % 9 * 7) & 127;
	} else {
		uint32_t bit = (at - IMMEDIATE) % BLOCK, word = bit / 64;
		size_t block = IMMEDIATE_BYTES + (size_t)((at - IMMEDIATE) / BLOCK) * BLOCK_BYTES;

		if (block + BLOCK_BYTES > n)
			return false;
		*ret = le32(index + block);
		if (word)
			*ret += (uint32_t)(le64(index + block + 8) >> (word - 1) * 9) & 511;
		*ret += (uint32_t)__builtin_popcountll(
			le64(index + block + 16 + (size_t)word * 8) << (63 - bit % 64));
	}
	return true;
}

uint32_t ruby_line(
	uint32_t version, uint32_t first_line, const uint8_t *lines, size_t n, bool cut, uint32_t position)
{
	const size_t entry_bytes = version >= 0x03010000 ? 12 : 8; /* from 3.1 each has a node's number too */
	uint32_t size, n_entries, entry = 1, at = position ? position - 1 : 0;
	uint64_t index_bytes = 0, offset;
	int32_t line;

	(void)first_line;
	(void)cut;
	if (position == SCRIPT_POSITION_NONE || n < SIZE_BYTES)
		return 0;
	size = le32(lines);
	n_entries = le32(lines + 4);
	if (at > size || !n_entries)
		return 0;
	if (n_entries > 1) {
		index_bytes = size < IMMEDIATE ? (size + 8) / 9 * UINT64_C(8)
					       : IMMEDIATE_BYTES + (size - IMMEDIATE + BLOCK - UINT64_C(1)) /
									   BLOCK * BLOCK_BYTES;
		if (index_bytes > n - SIZE_BYTES ||
			!entries_before(lines + SIZE_BYTES, index_bytes, at, &entry) || !entry ||
			entry > n_entries)
			return 0;
	}
	offset = SIZE_BYTES + index_bytes + (entry - 1) * entry_bytes;
	if (offset + entry_bytes > n)
		return 0;
	line = (int32_t)le32(lines + offset);
	return line > 0 ? (uint32_t)line : 0;
}
