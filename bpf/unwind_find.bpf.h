/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The maps that hold the unwind tables, and the searches in them: the mapping
 * of a PC, the rule of its row. Part of unwind.bpf.h. Formats: unwind_abi.h.
 */
#ifndef STACKTOOLS_UNWIND_FIND_BPF_H
#define STACKTOOLS_UNWIND_FIND_BPF_H

struct unwind_chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, UNWIND_CHUNK_BYTES);
};

/* lib/record/unwind_memory creates all of these and sets their sizes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__array(values, struct unwind_chunk);
} unwind_chunks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_seg);
} unwind_segs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_rule);
} unwind_rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} unwind_used SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_proc);
} unwind_procs SEC(".maps");

/* The second half of a struct unwind_map, read as one word. */
#define UNWIND_MAP_SEG(word) ((__u32)(word))
#define UNWIND_MAP_SEGS(word) ((word) >> 32 & 0xffff)
#define UNWIND_MAP_TABLE(word) (UNWIND_TABLE_NUMBER((word) >> 48))
#define UNWIND_MAP_STATE(word) (UNWIND_TABLE_STATE((word) >> 48))

/* A place in a chunk. The mask proves to the verifier that an access stays inside. */
#define AT(chunk, off, type)                                                                                 \
	(*(const type *)((const char *)(chunk) + ((off) & (UNWIND_CHUNK_BYTES - sizeof(type)))))

static __always_inline const void *chunk_at(__u32 chunk)
{
	__u32 zero = 0;
	void *map = bpf_map_lookup_elem(&unwind_chunks, &chunk);

	return map ? bpf_map_lookup_elem(map, &zero) : NULL;
}

/*
 * Find the mapping of PC and store it in the walk; false if there is none. `lo`
 * is the first of the remaining mappings: n is halved until it is 1, without a
 * branch that the verifier would have to follow both ways. No mapping begins in
 * the upper half of the addresses, so the sign of a difference compares two
 * addresses.
 */
__noinline int find_map(__u64 pc)
{
	struct unwind_walk *w = this_walk();
	__u32 base, lo = 0, n, half, at;
	const char *chunk;
	__u64 beyond, *used;

	if (!w)
		return 0;
	chunk = chunk_at(w->maps_chunk);
	base = w->maps_at;
	n = w->n_maps;
	if (!chunk || !n)
		return 0;
	for (int i = 0; i < 13 && n > 1; i++) {
		half = n >> 1;
		beyond = (__s64)(pc - AT(chunk, base + (lo + half) * 32, __u64)) >> 63;
		barrier_var(beyond);
		lo += half & ~beyond;
		n -= half;
	}
	at = base + lo * 32;
	w->map_start = AT(chunk, at, __u64);
	w->map_end = AT(chunk, at + 8, __u64);
	w->bias = AT(chunk, at + 16, __u64);
	w->word = AT(chunk, at + 24, __u64);
	at = UNWIND_MAP_TABLE(w->word);
	used = bpf_map_lookup_elem(&unwind_used, &at);
	if (used)
		*used = w->now_ns;
	return pc >= w->map_start && pc < w->map_end;
}

/* The number of rows that begin at KEY or before; the page has the rows from FIRST up to NEXT. */
static __always_inline __u32 rows_until(const void *chunk, __u32 pcs, __u32 first, __u32 next, __u8 key)
{
	__u32 lo = first, n = next - first, half;
	__u64 beyond;

	for (int i = 0; i < 9 && n > 0; i++) {
		half = n >> 1;
		beyond = ((__s64)key - AT(chunk, pcs + lo + half, __u8)) >> 63;
		barrier_var(beyond);
		lo += (half + 1) & ~beyond;
		n = half - (~n & 1 & ~beyond);
	}
	return lo;
}

/* The number of the rule of PC, which lies in the walk's mapping; 0 if no row covers it. */
__noinline int find_rule_number(__u64 pc)
{
	struct unwind_walk *w = this_walk();
	__u32 page, index, off, first, next, row;
	const struct unwind_seg *seg;
	const void *chunk;
	__u64 at, i;

	if (!w)
		return 0;
	at = pc - w->bias;
	i = at >> UNWIND_SEG_SHIFT;
	page = (at >> UNWIND_PAGE_SHIFT) & (UNWIND_SEG_PAGES - 1);
	if (i >= UNWIND_MAP_SEGS(w->word))
		return 0;
	index = UNWIND_MAP_SEG(w->word) + i;
	seg = bpf_map_lookup_elem(&unwind_segs, &index);
	if (!seg || !seg->rows)
		return 0;
	chunk = chunk_at(seg->chunk);
	if (!chunk)
		return 0;
	off = seg->grain * UNWIND_GRAIN;
	first = AT(chunk, off + page * 2, __u16);
	next = AT(chunk, off + page * 2 + 2, __u16);
	off += (UNWIND_SEG_PAGES + 1) * 2;
	row = rows_until(chunk, off + seg->rows * 2, first, next, at & 0xff) - 1;
	return AT(chunk, off + row * 2, __u16);
}

/* The rule itself. Number 0 means that there is no unwind information. */
static __always_inline const struct unwind_rule *find_rule(const struct unwind_walk *w, __u64 pc)
{
	__u32 rule = find_rule_number(pc);

	return bpf_map_lookup_elem(&unwind_rules, &rule);
}

#endif
