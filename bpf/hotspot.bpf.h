/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frames of HotSpot's own code. Part of offcpu.bpf.c; the offsets come from
 * lib/record/hotspot.c, which names their sources.
 *
 * All code that the virtual machine makes lies in code heaps. A heap is divided
 * into segments; a byte for each says how far back its block begins, or, for
 * more than 254 segments, how far to jump for the next such byte. A block has a
 * CodeBlob, which states the size of its frames: no frame pointer is needed.
 * Two kinds have no fixed size, but keep a frame pointer without exception: the
 * interpreter, whose frames also have the caller's stack pointer, and the stub
 * by which C++ code calls Java.
 */
#ifndef STACKTOOLS_HOTSPOT_BPF_H
#define STACKTOOLS_HOTSPOT_BPF_H

/* By number: what lib/record/unwind_memory.c put there. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUNTIMES_MAX);
	__type(key, __u32);
	__type(value, struct hotspot_file);
} hotspots SEC(".maps");

#define HOTSPOT_HOPS 48 /* in the map of segments: each is up to 254 segments of 128 bytes */
#define HOTSPOT_FREE 0xff /* in that map: no block */
#define HOTSPOT_CALLS 16 /* of a stub */
#define HOTSPOT_FRAME_WORDS (1 << 17)

/* Fields at offsets that user space gave: the mask proves that they are inside. */
#define HOTSPOT_WORD(h, at) (*(__u64 *)((h)->bytes + ((at) & (HOTSPOT_BYTES - 8))))
#define HOTSPOT_INT(h, at) (*(__u32 *)((h)->bytes + ((at) & (HOTSPOT_BYTES - 4))))
#define HOTSPOT_BYTE(h, at) ((h)->bytes[(at) & (HOTSPOT_BYTES - 1)])

static __always_inline const struct hotspot_file *hotspot_of(const struct unwind_walk *u)
{
	__u32 number = u->runtime;
	const struct hotspot_file *f = number ? bpf_map_lookup_elem(&hotspots, &number) : NULL;

	return f && f->heaps ? f : NULL;
}

/* Read where the code of the process is, once in a walk. False if it cannot be read. */
static __always_inline bool hotspot_open(
	struct task_struct *task, struct hotspot_walk *h, const struct hotspot_file *f, __u64 bias)
{
	__u64 array[2], heaps[HOTSPOT_HEAPS] = {}, at;
	__u32 n, len;

	h->n_heaps = 0;
	if (script_read(task, &at, 8, bias + f->heaps) || script_read(task, array, sizeof(array), at))
		return false;
	/* GrowableArray: length, capacity; data */
	n = array[0];
	if (n > HOTSPOT_HEAPS)
		n = HOTSPOT_HEAPS;
	len = n * 8;
	barrier_var(len);
	if (!n || len > sizeof(heaps) || script_read(task, heaps, len, array[1]))
		return false;
	for (__u32 i = 0; i < HOTSPOT_HEAPS; i++) {
		if (i >= n || script_read(task, h->bytes, HOTSPOT_BYTES, heaps[i]))
			break;
		h->heaps[i].low = HOTSPOT_WORD(h, f->heap_low);
		h->heaps[i].high = HOTSPOT_WORD(h, f->heap_high);
		h->heaps[i].segments = HOTSPOT_WORD(h, f->heap_segments);
		h->heaps[i].shift = HOTSPOT_INT(h, f->heap_shift) & 31;
		h->n_heaps = i + 1;
	}
	h->call_return = h->interpreter[0] = h->interpreter[1] = 0;
	script_read(task, &h->call_return, 8, bias + f->call_return);
	if (script_read(task, &at, 8, bias + f->interpreter) || script_read(task, h->bytes, 64, at))
		return h->n_heaps;
	h->interpreter[0] = HOTSPOT_WORD(h, f->queue_buffer);
	h->interpreter[1] = h->interpreter[0] + HOTSPOT_INT(h, f->queue_limit);
	return h->n_heaps;
}

/* The beginning of the block of PC; 0 if there is none. */
static __always_inline __u64 hotspot_block(struct task_struct *task, const struct hotspot_walk *h, __u64 pc)
{
	__u64 low = 0, segments = 0, at;
	__u32 shift = 0;
	__u8 back = 0;

	for (__u32 i = 0; i < HOTSPOT_HEAPS; i++) {
		if (i >= h->n_heaps || pc < h->heaps[i].low || pc >= h->heaps[i].high)
			continue;
		low = h->heaps[i].low;
		segments = h->heaps[i].segments;
		shift = h->heaps[i].shift;
		break;
	}
	if (!low)
		return 0;
	at = (pc - low) >> shift;
	for (int i = 0; i < HOTSPOT_HOPS; i++) {
		if (script_read(task, &back, 1, segments + at) || back == HOTSPOT_FREE || back > at)
			return 0;
		if (!back)
			return low + (at << shift);
		at -= back;
	}
	return 0;
}

/*
 * Is OFFSET a call at which the virtual machine walks the stack itself? MAPS is an
 * ImmutableOopMapSet: a count, a size, pairs of the offset of such a call and of
 * its map. Blobs of which no other part is known to have a frame have few.
 */
static __always_inline bool hotspot_is_call(
	struct task_struct *task, struct hotspot_walk *h, __u64 maps, __u32 offset)
{
	__u32 n;

	if (!maps || script_read(task, h->bytes, 8 + HOTSPOT_CALLS * 8, maps))
		return false;
	n = HOTSPOT_INT(h, 0);
	for (__u32 i = 0; i < HOTSPOT_CALLS; i++)
		if (i < n && HOTSPOT_INT(h, 8 + i * 8) == offset)
			return true;
	return false;
}

/* Find what the code at the walk's PC is, and how large its frame. */
static __always_inline bool hotspot_find(struct task_struct *task, struct scratch *s)
{
	const struct hotspot_file *f = hotspot_of(&s->walk);
	struct hotspot_walk *h = &s->hotspot;
	struct unwind_walk *w = &s->walk;
	__u64 pc = w->exact ? w->pc : w->pc - 1, block, begin, maps;
	__u32 words, complete;

	w->blob_at = w->pc;
	w->blob_kind = HOTSPOT_NONE;
	if (!f)
		return false;
	if (!w->blobs) {
		w->blobs = hotspot_open(task, h, f, w->runtime_bias) ? 1 : 2;
	}
	if (w->blobs != 1)
		return false;
	if (pc >= h->interpreter[0] && pc < h->interpreter[1]) {
		w->blob_kind = HOTSPOT_INTERPRETER;
		return true;
	}
	if (w->pc == h->call_return && w->pc) {
		w->blob_kind = HOTSPOT_ENTRY;
		return true;
	}
	block = hotspot_block(task, h, pc);
	if (!block || script_read(task, h->bytes, HOTSPOT_BLOB_BYTES, block) || !HOTSPOT_BYTE(h, f->block_used))
		return false;
	begin = HOTSPOT_WORD(h, f->block_bytes + f->blob_begin);
	words = HOTSPOT_INT(h, f->block_bytes + f->blob_frame);
	complete = HOTSPOT_INT(h, f->block_bytes + f->blob_complete);
	maps = HOTSPOT_WORD(h, f->block_bytes + f->blob_maps);
	if (pc < begin || pc >= HOTSPOT_WORD(h, f->block_bytes + f->blob_end) || words < 2 ||
		words > HOTSPOT_FRAME_WORDS)
		return false;
	/* negative: frame_never_safe */
	if ((__s32)complete < 0 ? w->exact || !hotspot_is_call(task, h, maps, w->pc - begin)
				: w->pc < begin + complete)
		return false;
	w->blob_kind = HOTSPOT_SIZED;
	w->blob_bytes = words * 8;
	return true;
}

/* For current: a global function, so that the verifier checks it once. */
__noinline int hotspot_own(void)
{
	struct scratch *s = my_scratch();

	return scripts && s && hotspot_find(NULL, s);
}

#endif
