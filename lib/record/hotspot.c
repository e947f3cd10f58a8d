/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/hotspot.h"

#include <string.h>

/*
 * Offsets in bytes on x86-64, by feature release. A running libjvm of each
 * version printed them (jhsdb clhsdb, command vmstructsdump), with the sizes;
 * the names are those of OpenJDK's src/hotspot/share. What differs between the
 * versions, and the few that are not printed: docs/runtimes.md.
 */
static const struct hotspot_release {
	uint32_t feature;
	uint32_t sizes[HOTSPOT_SIZES];
	struct hotspot_file at;
} releases[] = {
	{ 11,
		{ [HOTSPOT_CODE_HEAP] = 344,
			[HOTSPOT_HEAP_BLOCK] = 16,
			[HOTSPOT_CODE_BLOB] = 104,
			[HOTSPOT_STUB_QUEUE] = 48,
			[HOTSPOT_NMETHOD] = 376,
			[HOTSPOT_PC_DESC] = 16,
			[HOTSPOT_METHOD] = 88,
			[HOTSPOT_CONST_METHOD] = 56,
			[HOTSPOT_CONSTANT_POOL] = 64,
			[HOTSPOT_INSTANCE_KLASS] = 464 },
		{ .heaps_data = 24,
			.heap_low = 8 + 16,
			.heap_high = 8 + 24,
			.heap_segments = 120 + 16,
			.heap_shift = 256,
			.queue_buffer = 8,
			.queue_limit = 20,
			.block_bytes = 16,
			.block_used = 8,
			.blob_complete = 20,
			.blob_frame = 28,
			.blob_begin = 32,
			.blob_end = 40,
			.blob_maps = 80,
			.blob_header = 16,
			.nmethod_bytes = 376,
			.nmethod_method = 112,
			.nmethod_id = 324,
			.nmethod_deopt = 128,
			.nmethod_deopt_mh = 136,
			.nmethod_orig_pc = 320,
			.nmethod_metadata = 292,
			.nmethod_scopes = 120,
			.nmethod_pcs = 300,
			.nmethod_pcs_end = 304,
			.method_const = 8,
			.const_pool = 8,
			.const_words = 32,
			.const_flags = 36,
			.const_code_bytes = 40,
			.const_name = 42,
			.const_bytes = 56,
			.pool_holder = 24,
			.pool_cache = 16,
			.pool_bytes = 64,
			.klass_name = 24,
			.klass_pool = 232,
			.klass_file = 298, /* InstanceKlass::_source_file_name_index */
			.symbol_references = 2,
			.symbol_length = 0,
			.symbol_body = 6 } },
	{ 17,
		{ [HOTSPOT_CODE_HEAP] = 344,
			[HOTSPOT_HEAP_BLOCK] = 16,
			[HOTSPOT_CODE_BLOB] = 104,
			[HOTSPOT_STUB_QUEUE] = 48,
			[HOTSPOT_NMETHOD] = 352,
			[HOTSPOT_PC_DESC] = 16,
			[HOTSPOT_METHOD] = 88,
			[HOTSPOT_CONST_METHOD] = 48,
			[HOTSPOT_CONSTANT_POOL] = 72,
			[HOTSPOT_INSTANCE_KLASS] = 464 },
		{ .heaps_data = 8, /* GrowableArray::_data */
			.heap_low = 8 + 16, /* _memory, a VirtualSpace: _low */
			.heap_high = 8 + 24,
			.heap_segments = 120 + 16, /* _segmap, a VirtualSpace: _low */
			.heap_shift = 256, /* _log2_segment_size */
			.queue_buffer = 8,
			.queue_limit = 20,
			.block_bytes = 16,
			.block_used = 8, /* HeapBlock::Header: _used */
			.blob_complete = 20, /* _frame_complete_offset */
			.blob_frame = 28, /* _frame_size */
			.blob_begin = 32, /* _code_begin */
			.blob_end = 40,
			.blob_maps = 80, /* _oop_maps */
			.blob_header = 16, /* _header_size */
			.nmethod_bytes = 352,
			.nmethod_method = 112,
			.nmethod_id = 304, /* _compile_id */
			.nmethod_deopt = 128, /* _deopt_handler_begin */
			.nmethod_deopt_mh = 136,
			.nmethod_orig_pc = 300,
			.nmethod_metadata = 260,
			.nmethod_scopes = 120, /* _scopes_data_begin */
			.nmethod_pcs = 268,
			.nmethod_pcs_end = 272, /* _dependencies_offset */
			.method_const = 8,
			.const_pool = 8,
			.const_words = 24, /* _constMethod_size */
			.const_flags = 28,
			.const_code_bytes = 32,
			.const_name = 34, /* _name_index */
			.const_bytes = 48,
			.pool_holder = 24,
			.pool_cache = 16,
			.pool_bytes = 72,
			.pool_file = 54, /* _source_file_name_index */
			.klass_name = 24,
			.klass_pool = 232, /* InstanceKlass::_constants */
			.symbol_references = 0, /* of _hash_and_refcount */
			.symbol_length = 4,
			.symbol_body = 6 } },
	{ 21,
		{ [HOTSPOT_CODE_HEAP] = 336,
			[HOTSPOT_HEAP_BLOCK] = 16,
			[HOTSPOT_CODE_BLOB] = 96,
			[HOTSPOT_STUB_QUEUE] = 48,
			[HOTSPOT_NMETHOD] = 344,
			[HOTSPOT_PC_DESC] = 16,
			[HOTSPOT_METHOD] = 88,
			[HOTSPOT_CONST_METHOD] = 56,
			[HOTSPOT_CONSTANT_POOL] = 72,
			[HOTSPOT_INSTANCE_KLASS] = 464 },
		{ .flags = HOTSPOT_NO_ZERO,
			.heaps_data = 8,
			.heap_low = 16,
			.heap_high = 24,
			.heap_segments = 112 + 16,
			.heap_shift = 248,
			.queue_buffer = 8,
			.queue_limit = 20,
			.block_bytes = 16,
			.block_used = 8,
			.blob_complete = 80,
			.blob_frame = 88,
			.blob_begin = 8,
			.blob_end = 16,
			.blob_maps = 56,
			.blob_header = 76,
			.nmethod_bytes = 344,
			.nmethod_method = 112,
			.nmethod_id = 308,
			.nmethod_deopt = 128,
			.nmethod_deopt_mh = 136,
			.nmethod_orig_pc = 304,
			.nmethod_metadata = 268,
			.nmethod_scopes = 120,
			.nmethod_pcs = 276,
			.nmethod_pcs_end = 280,
			.method_const = 8,
			.const_pool = 8,
			.const_words = 24,
			.const_flags = 28,
			.const_code_bytes = 34,
			.const_name = 36,
			.const_bytes = 56,
			.pool_holder = 24,
			.pool_cache = 16,
			.pool_bytes = 72,
			.pool_file = 54,
			.klass_name = 24,
			.klass_pool = 224,
			.symbol_references = 0,
			.symbol_length = 4,
			.symbol_body = 6 } },
	{ 25,
		{ [HOTSPOT_CODE_HEAP] = 336,
			[HOTSPOT_HEAP_BLOCK] = 8,
			[HOTSPOT_CODE_BLOB] = 64,
			[HOTSPOT_STUB_QUEUE] = 48,
			[HOTSPOT_NMETHOD] = 224,
			[HOTSPOT_PC_DESC] = 16,
			[HOTSPOT_METHOD] = 88,
			[HOTSPOT_CONST_METHOD] = 56,
			[HOTSPOT_CONSTANT_POOL] = 80,
			[HOTSPOT_INSTANCE_KLASS] = 472 },
		{ .flags = HOTSPOT_NO_ZERO | HOTSPOT_APART,
			.heaps_data = 8,
			.heap_low = 16,
			.heap_high = 24,
			.heap_segments = 112 + 16,
			.heap_shift = 248,
			.queue_buffer = 8,
			.queue_limit = 20,
			.block_bytes = 8,
			.block_used = 4,
			.blob_complete = 54,
			.blob_frame = 44,
			.blob_begin = 36, /* _code_offset */
			.blob_end = 40, /* _data_offset */
			.blob_maps = 0,
			.blob_header = 52,
			.nmethod_bytes = 224,
			.nmethod_method = 80,
			.nmethod_id = 212,
			.nmethod_deopt = 176, /* _deopt_handler_offset */
			.nmethod_deopt_mh = 180,
			.nmethod_orig_pc = 208,
			.nmethod_metadata = 190, /* _metadata_size */
			.nmethod_scopes = 200, /* _scopes_data_offset */
			.nmethod_pcs = 196,
			.nmethod_pcs_end = 200, /* the same */
			.nmethod_immutable = 96, /* _immutable_data */
			.nmethod_mutable = 16, /* _mutable_data */
			.nmethod_mutable_bytes = 28, /* _relocation_size */
			.method_const = 8,
			.const_pool = 8,
			.const_words = 24,
			.const_flags = 28,
			.const_code_bytes = 34,
			.const_name = 36,
			.const_bytes = 56,
			.pool_holder = 24,
			.pool_cache = 16,
			.pool_bytes = 80,
			.pool_file = 62,
			.klass_name = 24,
			.klass_pool = 224,
			.symbol_references = 0,
			.symbol_length = 4,
			.symbol_body = 6 } },
};

static const struct hotspot_release *release(uint32_t version)
{
	for (size_t i = 0; i < ARRAY_LEN(releases); i++)
		if (version >> 24 == releases[i].feature)
			return &releases[i];
	return NULL;
}

bool hotspot_version(struct runtime_file *f, uint64_t state_bytes)
{
	(void)state_bytes;
	return release(f->version) != NULL;
}

bool hotspot_layout(uint32_t version, const struct unwindtab_hotspot *h, struct hotspot_file *ret)
{
	const struct hotspot_release *r = release(version);

	if (!r || memcmp(r->sizes, h->sizes, sizeof(r->sizes)) != 0 || !h->heaps || !h->call_return ||
		!h->interpreter)
		return false;
	*ret = r->at;
	ret->heaps = h->heaps;
	ret->call_return = h->call_return;
	ret->interpreter = h->interpreter;
	return true;
}

struct line_reader {
	const uint8_t *p, *end;
	uint32_t least; /* of the bytes of numbers */
	bool over; /* nothing is left */
};

static uint32_t next_byte(struct line_reader *r)
{
	if (r->p == r->end) {
		r->over = true;
		return 0;
	}
	return *r->p++;
}

/*
 * A signed number of one to five bytes, of six bits each but the last:
 * share/code/compressedStream.cpp; from 20, share/utilities/unsigned5.hpp, where
 * no byte is 0.
 */
static int32_t next_signed(struct line_reader *r)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < 5; i++) {
		uint32_t byte = next_byte(r);

		sum += (byte - r->least) << (6 * i);
		if (byte < 192)
			break;
	}
	return (int32_t)((sum >> 1) ^ -(sum & 1));
}

/*
 * Pairs of increments of bytecode and line: one byte if both are small, else
 * 0xff and two numbers; 0 ends the table. share/oops/method.hpp,
 * CompressedLineNumberReadStream. The pairs are not always sorted by bytecode.
 */
uint32_t hotspot_line(
	uint32_t version, uint32_t first_line, const uint8_t *lines, size_t n, bool cut, uint32_t position)
{
	const struct hotspot_release *known = release(version);
	struct line_reader r = {
		.p = lines, .end = lines + n, .least = known && (known->at.flags & HOTSPOT_NO_ZERO) ? 1 : 0
	};
	int64_t at = 0, line = 0, best = -1, found = 0;

	(void)first_line;
	if (position == SCRIPT_POSITION_NONE || !n)
		return 0;
	for (;;) {
		uint32_t byte = next_byte(&r);

		if (!byte || r.over)
			break;
		if (byte == 0xff) {
			at += next_signed(&r);
			line += next_signed(&r);
		} else {
			at += byte >> 3;
			line += byte & 7;
		}
		if (r.over)
			break;
		if (at == position)
			return line > 0 && line <= UINT16_MAX ? (uint32_t)line : 0;
		if (at < position && at >= best) {
			best = at;
			found = line;
		}
	}
	return !(cut && r.over) && found > 0 && found <= UINT16_MAX ? (uint32_t)found : 0;
}
