/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/hotspot.h"

#include <string.h>

/*
 * Offsets in bytes on x86-64, by feature release. A running libjvm of each
 * version printed them (jhsdb clhsdb, command vmstructsdump), with the sizes;
 * the names are those of OpenJDK's src/hotspot/share.
 */
static const struct hotspot_release {
	uint32_t feature;
	uint32_t sizes[HOTSPOT_SIZES];
	struct hotspot_file at;
} releases[] = {
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
		{ .heap_low = 8 + 16, /* _memory, a VirtualSpace: _low */
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
			.const_code_bytes = 32,
			.const_name = 34, /* _name_index */
			.const_bytes = 48,
			.pool_holder = 24,
			.pool_cache = 16,
			.pool_file = 54, /* _source_file_name_index */
			.pool_bytes = 72,
			.klass_name = 24,
			.klass_pool = 232, /* InstanceKlass::_constants */
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

/* A signed number of one to five bytes, of six bits each but the last: share/code/compressedStream.cpp. */
static int32_t next_signed(struct line_reader *r)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < 5; i++) {
		uint32_t byte = next_byte(r);

		sum += byte << (6 * i);
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
	struct line_reader r = { .p = lines, .end = lines + n };
	int64_t at = 0, line = 0, best = -1, found = 0;

	(void)version, (void)first_line;
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
