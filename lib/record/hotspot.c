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
			.blob_maps = 80 /* _oop_maps */ } },
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
