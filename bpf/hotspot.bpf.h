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

#define JAVA_STEPS 16 /* frames at once */
#define HOTSPOT_HOPS 48 /* in the map of segments: each is up to 254 segments of 128 bytes */
#define HOTSPOT_PLACE_STEPS 21 /* of a search among the places of an nmethod */
#define HOTSPOT_FREE 0xff /* in that map: no block */
#define HOTSPOT_CALLS 16 /* of a stub */
#define HOTSPOT_FRAME_WORDS (1 << 17)

/* Fields at offsets that user space gave: the mask proves that they are inside. */
#define HOTSPOT_WORD(h, at) (*(__u64 *)((h)->bytes + ((at) & (HOTSPOT_BYTES - 8))))
#define HOTSPOT_INT(h, at) (*(__u32 *)((h)->bytes + ((at) & (HOTSPOT_BYTES - 4))))
#define HOTSPOT_HALF(h, at) (*(__u16 *)((h)->bytes + ((at) & (HOTSPOT_BYTES - 2))))
#define HOTSPOT_BYTE(h, at) ((h)->bytes[(at) & (HOTSPOT_BYTES - 1)])

/* The address at offset AT, or, with HOTSPOT_APART, what is that far from BASE. */
static __always_inline __u64 hotspot_address(
	const struct hotspot_walk *h, const struct hotspot_file *f, __u32 at, __u64 base)
{
	return f->flags & HOTSPOT_APART ? base + HOTSPOT_INT(h, at) : HOTSPOT_WORD(h, at);
}

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
	__u32 n, len;
	__u64 at;

	h->n_heaps = 0;
	h->least = f->flags & HOTSPOT_NO_ZERO ? 1 : 0;
	/* GrowableArray: length, capacity; data */
	if (script_read(task, &at, 8, bias + f->heaps) || script_read(task, h->words, 8, at) ||
		script_read(task, &h->words[1], 8, at + f->heaps_data))
		return false;
	n = h->words[0];
	if (n > HOTSPOT_HEAPS)
		n = HOTSPOT_HEAPS;
	len = n * 8;
	barrier_var(len);
	if (!n || len > HOTSPOT_HEAPS * 8 || script_read(task, h->words, len, h->words[1]))
		return false;
	for (__u32 i = 0; i < HOTSPOT_HEAPS; i++) {
		if (i >= n || script_read(task, h->bytes, HOTSPOT_BYTES, h->words[i]))
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

/* One hop in the map of segments, `n` of them: 0 at the beginning of the block. False there, or if there is
 * none. */
static __always_inline bool hotspot_hop(struct task_struct *task, struct hotspot_walk *h)
{
	__u8 back = HOTSPOT_FREE;

	if (script_read(task, &back, 1, h->searched + h->lo) || back == HOTSPOT_FREE || back > h->lo)
		return false;
	h->lo -= back;
	h->n = back;
	return back;
}

LOOP(hotspot_hop, !hotspot_hop(task, &s->hotspot))

/* The beginning of the block of PC; 0 if there is none. */
static __always_inline __u64 hotspot_block(
	struct other_task *o, struct task_struct *task, struct hotspot_walk *h, __u64 pc)
{
	__u64 low = 0;
	__u32 shift = 0;

	for (__u32 i = 0; i < HOTSPOT_HEAPS; i++) {
		if (i >= h->n_heaps || pc < h->heaps[i].low || pc >= h->heaps[i].high)
			continue;
		low = h->heaps[i].low;
		h->searched = h->heaps[i].segments;
		shift = h->heaps[i].shift;
		break;
	}
	if (!low)
		return 0;
	h->lo = (pc - low) >> shift;
	h->n = 1;
	REPEAT(HOTSPOT_HOPS, hotspot_hop);
	return h->n ? 0 : low + (h->lo << shift);
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

/* Read the nmethod at AT. */
static __always_inline bool hotspot_nmethod(
	struct task_struct *task, struct hotspot_walk *h, const struct hotspot_file *f, __u64 at)
{
	__u32 len = f->nmethod_bytes;

	barrier_var(len);
	len &= HOTSPOT_BYTES - 1;
	return !script_read(task, h->bytes, len, at);
}

/* Number of the nmethod that was read, and the place in its code, which begins at BEGIN. */
static __always_inline __u64 hotspot_place(struct task_struct *task, struct hotspot_walk *h,
	const struct hotspot_file *f, const struct unwind_walk *w, __u64 begin)
{
	__u64 pc = w->pc, orig;

	/* the method was invalidated: its frame goes on in the interpreter, from where it was */
	if ((pc == hotspot_address(h, f, f->nmethod_deopt, w->blob) ||
		    pc == hotspot_address(h, f, f->nmethod_deopt_mh, w->blob)) &&
		!script_read(task, &orig, 8, w->sp + HOTSPOT_INT(h, f->nmethod_orig_pc)))
		pc = orig;
	pc -= begin;
	if (w->exact || pc >= SCRIPT_POSITION_NONE)
		pc = SCRIPT_POSITION_NONE;
	return (__u64)HOTSPOT_INT(h, f->nmethod_id) << 32 | pc;
}

/* Find what the code at the walk's PC is, and how large its frame. */
static __always_inline bool hotspot_find(struct other_task *o, struct task_struct *task, struct scratch *s)
{
	const struct hotspot_file *f = hotspot_of(&s->walk);
	struct hotspot_walk *h = &s->hotspot;
	struct unwind_walk *w = &s->walk;
	__u64 pc = w->exact ? w->pc : w->pc - 1, block, begin, end, maps;
	__u32 words, complete;

	w->blob_at = w->pc;
	w->blob_kind = HOTSPOT_NONE;
	w->blob = 0;
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
	block = hotspot_block(o, task, h, pc);
	if (!block || script_read(task, h->bytes, HOTSPOT_BLOB_BYTES, block) ||
		!HOTSPOT_BYTE(h, f->block_used))
		return false;
	block += f->block_bytes;
	begin = hotspot_address(h, f, f->block_bytes + f->blob_begin, block);
	end = hotspot_address(h, f, f->block_bytes + f->blob_end, block);
	words = HOTSPOT_INT(h, f->block_bytes + f->blob_frame);
	complete = HOTSPOT_INT(h, f->block_bytes + f->blob_complete);
	if (f->flags & HOTSPOT_APART)
		complete = (__u32)(__s16)HOTSPOT_HALF(h, f->block_bytes + f->blob_complete);
	maps = HOTSPOT_WORD(h, f->block_bytes + f->blob_maps);
	if (HOTSPOT_HALF(h, f->block_bytes + f->blob_header) == f->nmethod_bytes)
		w->blob = block;
	if (pc < begin || pc >= end || words < 2 || words > HOTSPOT_FRAME_WORDS)
		return false;
	/* negative: frame_never_safe */
	if ((__s32)complete < 0 ? w->exact || !hotspot_is_call(task, h, maps, w->pc - begin)
				: w->pc < begin + complete)
		return false;
	if (w->blob && hotspot_nmethod(task, h, f, w->blob))
		w->blob_place = hotspot_place(task, h, f, w, begin);
	else
		w->blob = 0;
	w->blob_kind = HOTSPOT_SIZED;
	w->blob_bytes = words * 8;
	return true;
}

/* Names that are about to be sent. */
struct java_events {
	struct offcpu_ev_method method;
	struct offcpu_ev_inlined inlined;
};

NAMES_SCRATCH(java_events, these_java_events, java_scratches, iter_java_scratch)

/* Where the parts of a method are in `bytes`. */
enum { AT_METHOD = 0, AT_CONST = 96, AT_POOL = 160, AT_SYMBOL = 256 };

#define HOTSPOT_HAS_LINES 1 /* in the flags of a ConstMethod */

#define SYMBOL_BYTES 128 /* of a symbol that are hashed: header and beginning */
#define SYMBOL_END 64

/* Add the words of the symbol in `bytes` to the hash. What follows the symbol may change. */
__noinline int hash_symbol_words(void)
{
	struct scratch *s = this_scratch();
	__u64 hash;
	__s64 left;

	if (!WATCHED(RUNTIME_JAVA) || !s)
		return 0;
	left = s->hotspot.left;
	hash = s->hotspot.hash;
	/* without a choice, both sides of which the verifier would follow for each word */
	for (__u32 i = 0; i < SYMBOL_BYTES / 8; i++, left -= 8) {
		__u64 word = *(__u64 *)(s->hotspot.bytes + AT_SYMBOL + i * 8);
		__u64 part = (1ULL << (left & 7) * 8) - 1, none = left >> 63, all = ~((left - 8) >> 63);

		barrier_var(none);
		barrier_var(all);
		hash = mix(hash, word & (part | all) & ~none);
	}
	s->hotspot.hash = hash;
	return 0;
}

/*
 * Hash the symbol AT: its address, header and name. The header has random bits
 * that distinguish it from a later symbol at the same address.
 */
static __always_inline bool hash_symbol(
	struct task_struct *task, struct scratch *s, const struct hotspot_file *f, __u64 at)
{
	struct hotspot_walk *h = &s->hotspot;
	__u32 len = 4096 - (at & 4095), all;

	if (len > SYMBOL_BYTES)
		len = SYMBOL_BYTES;
	if (len < 16)
		len = 16;
	if (script_read(task, h->bytes + AT_SYMBOL, len, at))
		return false;
	all = f->symbol_body + HOTSPOT_HALF(h, AT_SYMBOL + f->symbol_length);
	HOTSPOT_HALF(h, AT_SYMBOL + f->symbol_references) = 0;
	h->hash = mix(mix(h->hash, at), all);
	h->left = all < len ? all : len;
	hash_symbol_words();
	if (all <= len)
		return true;
	if (script_read(task, h->bytes + AT_SYMBOL, SYMBOL_END, at + all - SYMBOL_END))
		return false;
	h->left = SYMBOL_END;
	hash_symbol_words();
	return true;
}

/*
 * Read the class that the constants POOL belong to, unless it was the last one,
 * prove that it is one, and hash the pointers to its name, and the name.
 */
static __always_inline bool java_class(
	struct task_struct *task, struct scratch *s, const struct hotspot_file *f, __u64 pool)
{
	struct hotspot_walk *h = &s->hotspot;
	__u64 holder;

	if (h->pool == pool && pool)
		return true;
	h->pool = 0;
	if (script_read(task, h->bytes + AT_POOL, 64, pool))
		return false;
	holder = HOTSPOT_WORD(h, AT_POOL + f->pool_holder);
	h->pool_cache = HOTSPOT_WORD(h, AT_POOL + f->pool_cache);
	h->file_at = f->pool_file ? pool + f->pool_file : holder + f->klass_file;
	/* the class refers to the constants that refer to it */
	if (script_read(task, &h->name, 8, holder + f->klass_pool) || h->name != pool ||
		script_read(task, &h->holder_name, 8, holder + f->klass_name))
		return false;
	h->hash = mix(mix(s->script.seed, pool), holder);
	if (!hash_symbol(task, s, f, h->holder_name))
		return false;
	h->class_hash = h->hash;
	h->pool = pool;
	return true;
}

/*
 * Read METHOD, prove that it is one, and compute its check: of the pointers that
 * lead to its names, and of the name of its class.
 */
static __always_inline bool java_method(struct task_struct *task, struct scratch *s, __u64 method)
{
	const struct hotspot_file *f = hotspot_of(&s->walk);
	struct hotspot_walk *h = &s->hotspot;
	__u64 cm, hash;
	__u32 code, words;

	h->method = h->check = 0;
	if (!f || !method || method >> SCRIPT_AT_SHIFT || (method & 7) ||
		script_read(task, h->bytes + AT_METHOD, 16, method))
		return false;
	cm = HOTSPOT_WORD(h, AT_METHOD + f->method_const);
	if (script_read(task, h->bytes + AT_CONST, 56, cm) ||
		!java_class(task, s, f, HOTSPOT_WORD(h, AT_CONST + f->const_pool)))
		return false;
	code = HOTSPOT_HALF(h, AT_CONST + f->const_name);
	if (script_read(task, &h->name, 8, h->pool + f->pool_bytes + (__u64)code * 8))
		return false;
	code = HOTSPOT_HALF(h, AT_CONST + f->const_code_bytes);
	words = HOTSPOT_INT(h, AT_CONST + f->const_words);
	h->lines = cm + f->const_bytes + code;
	h->n_lines = (HOTSPOT_HALF(h, AT_CONST + f->const_flags) & HOTSPOT_HAS_LINES) && words < 1 << 20 &&
				     words * 8 > f->const_bytes + code
			     ? words * 8 - f->const_bytes - code
			     : 0;
	hash = mix(mix(mix(h->class_hash, method), cm), h->name);
	hash = mix(hash, HOTSPOT_WORD(h, AT_CONST + f->const_words));
	hash = mix(hash, HOTSPOT_WORD(h, AT_CONST + f->const_code_bytes));
	hash = (hash ^ hash >> 32) * (hash_key[3] | 1);
	h->check = hash >> SCRIPT_POSITION_BITS;
	h->method = method;
	return true;
}

/* For current: a global function, so that the verifier checks it once. */
__noinline int java_own_method(__u64 method)
{
	struct scratch *s = my_scratch();

	return WATCHED(RUNTIME_JAVA) && s && java_method(NULL, s, method);
}

static __always_inline bool check_method(struct task_struct *task, struct scratch *s, __u64 method)
{
	return task ? java_method(task, s, method) : java_own_method(method);
}

/* The check of an nmethod: HotSpot never uses its number again. */
static __always_inline __u64 nmethod_check(__u64 seed, __u64 nmethod, __u32 id)
{
	__u64 hash = mix(mix(seed ^ ~0ULL, nmethod), id);

	hash = (hash ^ hash >> 32) * (hash_key[3] | 1);
	return hash >> SCRIPT_POSITION_BITS;
}

/* The script frame of the next frame of Java. False if there are no more. */
static __always_inline bool java_step(struct task_struct *task, struct scratch *s)
{
	const struct hotspot_file *f = hotspot_of(&s->walk);
	struct hotspot_walk *h = &s->hotspot;
	struct script_walk *k = &s->script;
	__u32 i = h->next, n = s->ev.scripts, at;
	__u64 *frame = h->words, what, place, method, bci;

	if (!f || i >= s->walk.n_java || i >= OFFCPU_DEPTH_MAX || n >= OFFCPU_SCRIPTS_MAX)
		return false;
	h->next = i + 1;
	barrier_var(i);
	i &= OFFCPU_DEPTH_MAX - 1;
	what = s->walk.java[i].what;
	place = s->walk.java[i].place;
	at = s->walk.len + 2 * n;
	barrier_var(at);
	if (at >= OFFCPU_FRAMES_MAX - 1)
		return false;
	if (!(what & JAVA_INTERPRETED)) {
		s->ev.frames[at] = what;
		s->ev.frames[at + 1] = nmethod_check(k->seed, SCRIPT_CODE(what), place >> 32)
					       << SCRIPT_POSITION_BITS |
				       SCRIPT_POSITION(place);
		s->ev.scripts = n + 1;
		return true;
	}
	method = bci = 0;
	if (!script_read(task, frame, JAVA_BCP * 8, (SCRIPT_CODE(what) & ~7ULL) - JAVA_BCP * 8))
		method = frame[JAVA_BCP - JAVA_METHOD];
	if (!method || (method != h->method && !check_method(task, s, method)) ||
		h->pool_cache != frame[JAVA_BCP - JAVA_CACHE]) {
		h->method = 0;
		s->ev.frames[at] = what & ~(__u64)((1ULL << SCRIPT_AT_SHIFT) - 1);
		s->ev.frames[at + 1] = 0;
		s->ev.scripts = n + 1;
		return true;
	}
	bci = frame[0] - (HOTSPOT_WORD(h, AT_METHOD + f->method_const) + f->const_bytes);
	if (bci >= 1 << 16)
		bci = SCRIPT_POSITION_NONE;
	s->ev.frames[at] = (what & ~(__u64)((1ULL << SCRIPT_AT_SHIFT) - 1)) | method;
	s->ev.frames[at + 1] = h->check << SCRIPT_POSITION_BITS | bci;
	s->ev.scripts = n + 1;
	return true;
}

/* Read symbol AT. Returns its length, 0 if it cannot be read. */
static __always_inline __u16 java_symbol(
	struct task_struct *task, const struct hotspot_file *f, __u64 at, __u8 *to, __u32 size)
{
	__u16 len = 0;
	__u32 n;

	if (!at || script_read(task, &len, 2, at + f->symbol_length) || len >= size)
		return 0;
	n = len;
	barrier_var(n);
	n &= size - 1;
	return script_read(task, to, n, at + f->symbol_body) ? 0 : n;
}

/* Send the names of the method that java_method() has read, unless they were sent. False if that failed. */
static __always_inline bool send_method(struct task_struct *task, struct scratch *s,
	const struct hotspot_file *f, struct offcpu_ev_method *ev)
{
	struct hotspot_walk *h = &s->hotspot;
	struct script_id id = { .code = h->method, .check = h->check };
	__u64 bytes;
	__u8 one = 1;
	__u32 n;

	if (bpf_map_lookup_elem(&named, &id))
		return true;
	ev->type = OFFCPU_EV_METHOD;
	ev->runtime = s->walk.runtime;
	ev->code = id.code;
	ev->check = id.check;
	ev->class_bytes = java_symbol(task, f, h->holder_name, ev->class, HOTSPOT_CLASS_BYTES);
	ev->name_bytes = java_symbol(task, f, h->name, ev->name, HOTSPOT_NAME_BYTES);
	/* an index of the constants; 0: not known. In memory: the stack is full */
	h->words[0] = h->words[1] = 0;
	if (!script_read(task, h->words, 2, h->file_at) && h->words[0])
		script_read(task, &h->words[1], 8, h->pool + f->pool_bytes + h->words[0] * 8);
	ev->file_bytes = java_symbol(task, f, h->words[1], ev->file, HOTSPOT_NAME_BYTES);
	n = h->n_lines;
	ev->lines_cut = n >= HOTSPOT_LINES_BYTES;
	if (ev->lines_cut)
		n = HOTSPOT_LINES_BYTES - 1;
	barrier_var(n);
	n &= HOTSPOT_LINES_BYTES - 1;
	ev->lines_bytes = n && !script_read(task, ev->lines, n, h->lines) ? n : 0;
	bytes = ev->lines_bytes;
	barrier_var(bytes); /* as in put() */
	if (bytes > HOTSPOT_LINES_BYTES)
		return false;
	if (bpf_ringbuf_output(
		    &ring, ev, __builtin_offsetof(struct offcpu_ev_method, lines) + bytes, BPF_RB_NO_WAKEUP))
		return false;
	bpf_map_update_elem(&named, &id, &one, BPF_ANY);
	return true;
}

/*
 * The next number in `bytes`, of one to five bytes: share/code/compressedStream.cpp
 * of OpenJDK 17, share/utilities/unsigned5.hpp of 21.
 */
__noinline int java_number(void)
{
	struct scratch *s = this_scratch();
	volatile __u32 *at, *sum;

	if (!WATCHED(RUNTIME_JAVA) || !s)
		return 0;
	at = &s->hotspot.at;
	sum = &s->hotspot.left;
	*sum = 0;
	for (int i = 0; i < 5; i++) {
		__u32 where = *at;
		__u32 byte = s->hotspot.bytes[where & 31];

		*at = where + 1;
		*sum += (byte - s->hotspot.least) << (6 * i);
		if (byte < 192)
			break;
	}
	return *sum;
}

/* Whether there is more to do for the names of a frame. */
enum java_more {
	JAVA_END = 0,
	JAVA_MORE = 1,
	JAVA_LOST = 2, /* something could not be sent: it is sent again with the stack */
};

/* One scope of a place, from the innermost to the compiled method. No methods: they are not readable. */
static __always_inline int java_scope(struct task_struct *task, struct scratch *s, struct java_events *ev)
{
	const struct hotspot_file *f = hotspot_of(&s->walk);
	struct hotspot_walk *h = &s->hotspot;
	__u32 n = ev->inlined.n, scope = h->scope, sender, index, bci;
	__u64 method = 0, where;

	if (!f || !scope || n >= HOTSPOT_INLINED_MAX)
		return JAVA_END;
	if (script_read(task, h->bytes, 32, h->scopes + scope)) {
		ev->inlined.n = 0;
		return JAVA_END;
	}
	h->at = 0;
	sender = java_number();
	index = java_number();
	bci = java_number() - 1;
	where = h->metadata + ((__u64)index - 1) * 8;
	/* each scope is written after that of its caller */
	if (!index || where >= h->metadata_end || sender >= scope || script_read(task, &method, 8, where) ||
		!check_method(task, s, method)) {
		ev->inlined.n = 0;
		return JAVA_END;
	}
	if (!send_method(task, s, f, &ev->method))
		return JAVA_LOST;
	barrier_var(n);
	n &= HOTSPOT_INLINED_MAX - 1;
	ev->inlined.methods[n].code = h->method;
	ev->inlined.methods[n].check = h->check;
	ev->inlined.methods[n].position = bci < 1 << 16 ? bci : SCRIPT_POSITION_NONE;
	ev->inlined.n = n + 1;
	h->scope = sender;
	return JAVA_MORE;
}

/* One step of a search for place `at`. False if its scope was found, or there is none. */
static __always_inline bool java_halve(struct task_struct *task, struct hotspot_walk *h)
{
	__u64 half = h->n / 2, middle = h->lo + half;
	__u32 desc[2] = {};

	if (!h->n || script_read(task, desc, sizeof(desc), h->searched + middle * 16))
		return false;
	if (desc[0] == h->at) {
		h->scope = desc[1];
		return false;
	}
	if ((__s32)desc[0] < (__s32)h->at) {
		h->lo = middle + 1;
		h->n -= half + 1;
	} else {
		h->n = half;
	}
	return true;
}

LOOP(java_halve, !java_halve(task, &s->hotspot))

/*
 * Find the description of place POSITION of the nmethod that was read, which is
 * at AT: an array of PcDesc, sorted by offset: offset, scope, two more words.
 */
static __always_inline bool java_place(struct other_task *o, struct task_struct *task, struct hotspot_walk *h,
	const struct hotspot_file *f, __u64 at, __u32 position)
{
	__u32 begin = HOTSPOT_INT(h, f->nmethod_pcs), end = HOTSPOT_INT(h, f->nmethod_pcs_end);

	if (f->flags & HOTSPOT_APART) {
		/* two memories: relocations and constants; much else, the places, and scopes */
		h->metadata = HOTSPOT_WORD(h, f->nmethod_mutable) + HOTSPOT_INT(h, f->nmethod_mutable_bytes);
		h->metadata_end = h->metadata + HOTSPOT_HALF(h, f->nmethod_metadata);
		at = HOTSPOT_WORD(h, f->nmethod_immutable);
		h->scopes = at + HOTSPOT_INT(h, f->nmethod_scopes);
	} else {
		h->metadata = at + HOTSPOT_INT(h, f->nmethod_metadata);
		h->scopes = h->metadata_end = HOTSPOT_WORD(h, f->nmethod_scopes);
	}
	h->scope = 0;
	if (begin > end)
		return false;
	h->at = position;
	h->searched = at + begin;
	h->lo = 0;
	h->n = (end - begin) / 16;
	REPEAT(HOTSPOT_PLACE_STEPS, java_halve);
	return h->scope;
}

/* Prepare the names of script frame I. JAVA_MORE: its scopes are to be read, and sent. */
static __always_inline int java_begin_name(
	struct other_task *o, struct task_struct *task, struct scratch *s, struct java_events *ev, __u32 i)
{
	const struct hotspot_file *f = hotspot_of(&s->walk);
	struct hotspot_walk *h = &s->hotspot;
	__u32 at = s->walk.len + 2 * i;
	struct script_id id;
	__u64 code, check;
	__u32 position;

	barrier_var(at);
	if (!f || at >= OFFCPU_FRAMES_MAX - 1 || i >= OFFCPU_DEPTH_MAX)
		return JAVA_END;
	code = SCRIPT_CODE(s->ev.frames[at]);
	check = SCRIPT_CHECK(s->ev.frames[at + 1]);
	position = SCRIPT_POSITION(s->ev.frames[at + 1]);
	if (!code)
		return JAVA_END;
	barrier_var(i);
	i &= OFFCPU_DEPTH_MAX - 1;
	id.code = code;
	id.check = check;
	if (s->walk.java[i].what & JAVA_INTERPRETED) {
		if (bpf_map_lookup_elem(&named, &id))
			return JAVA_END;
		/* its frame exists, so it is still the same one */
		if (!check_method(task, s, code) || h->check != check)
			return JAVA_END;
		return send_method(task, s, f, &ev->method) ? JAVA_END : JAVA_LOST;
	}
	id.check |= (__u64)position << 40;
	if (bpf_map_lookup_elem(&named, &id))
		return JAVA_END;
	if (!hotspot_nmethod(task, h, f, code))
		return JAVA_END;
	ev->inlined.type = OFFCPU_EV_INLINED;
	ev->inlined.runtime = s->walk.runtime;
	ev->inlined.code = code;
	ev->inlined.check = check;
	ev->inlined.position = position;
	ev->inlined.n = 0;
	if (java_place(o, task, h, f, code, position))
		return JAVA_MORE;
	/* a native method, or a place without a description: only the compiled method itself is known */
	if (!check_method(task, s, HOTSPOT_WORD(h, f->nmethod_method)))
		return JAVA_MORE;
	if (!send_method(task, s, f, &ev->method))
		return JAVA_LOST;
	ev->inlined.methods[0].code = h->method;
	ev->inlined.methods[0].check = h->check;
	ev->inlined.methods[0].position = SCRIPT_POSITION_NONE;
	ev->inlined.n = 1;
	return JAVA_MORE;
}

/* Send what java_scope() has found for the frame. */
static __always_inline bool send_inlined(struct java_events *ev)
{
	struct script_id id = { .code = ev->inlined.code,
		.check = ev->inlined.check | (__u64)ev->inlined.position << 40 };
	__u8 one = 1;

	if (bpf_ringbuf_output(&ring, &ev->inlined, sizeof(ev->inlined), BPF_RB_NO_WAKEUP))
		return false;
	bpf_map_update_elem(&named, &id, &one, BPF_ANY);
	return true;
}

/* For current: global functions, so that the verifier checks each once. */
__noinline int hotspot_own(void)
{
	struct scratch *s = my_scratch();

	return WATCHED(RUNTIME_JAVA) && s && hotspot_find(NULL, NULL, s);
}

__noinline int java_own_step(void)
{
	struct scratch *s = my_scratch();

	return WATCHED(RUNTIME_JAVA) && s && java_step(NULL, s);
}

__noinline int java_own_begin_name(__u32 i)
{
	struct scratch *s = my_scratch();
	struct java_events *ev = these_java_events();

	return WATCHED(RUNTIME_JAVA) && s && ev ? java_begin_name(NULL, NULL, s, ev, i) : JAVA_END;
}

__noinline int java_own_scope(void)
{
	struct scratch *s = my_scratch();
	struct java_events *ev = these_java_events();

	return WATCHED(RUNTIME_JAVA) && s && ev ? java_scope(NULL, s, ev) : JAVA_END;
}

__noinline int java_own_name(__u32 i)
{
	struct java_events *ev = these_java_events();
	int more = java_own_begin_name(i);

	if (more != JAVA_MORE || !ev)
		return more == JAVA_END;
	for (int k = 0; k < HOTSPOT_INLINED_MAX; k++) {
		more = java_own_scope();
		if (more != JAVA_MORE)
			break;
	}
	return more != JAVA_LOST && send_inlined(ev);
}

#ifndef OFFCPU_RAW

/* That the task is there is said to the compiler, which leaves calls of functions for current out. */
static long other_java_step(__u32 i, struct other_task *o)
{
	return !o->task || !java_step(o->task, o->s);
}

static long other_java_scope(__u32 i, struct other_task *o)
{
	struct java_events *ev = these_java_events();
	int more = o->task && ev ? java_scope(o->task, o->s, ev) : JAVA_END;

	o->s->hotspot.more = more;
	return more != JAVA_MORE;
}

static long other_java_name(__u32 i, struct other_task *o)
{
	struct hotspot_walk *h = &o->s->hotspot;
	struct java_events *ev = these_java_events();

	if (!o->task || !ev || i >= o->s->ev.scripts)
		return 1;
	h->more = java_begin_name(o, o->task, o->s, ev, i);
	if (h->more == JAVA_MORE) {
		bpf_loop(HOTSPOT_INLINED_MAX, other_java_scope, o, 0);
		if (h->more != JAVA_LOST && !send_inlined(ev))
			h->more = JAVA_LOST;
	}
	if (h->more == JAVA_LOST)
		h->lost = 1;
	return 0;
}

#endif

static __always_inline void java_begin(struct scratch *s)
{
	s->hotspot.next = 0;
	s->hotspot.method = 0;
	s->hotspot.pool = 0;
}

/* Many steps: loops in loops, so that the verifier follows few iterations. */
__noinline int java_own_steps(void)
{
	for (int i = 0; i < JAVA_STEPS; i++)
		if (!java_own_step())
			return 0;
	return 1;
}

__noinline int find_own_java(void)
{
	struct scratch *s = my_scratch();

	if (!WATCHED(RUNTIME_JAVA) || !s)
		return 0;
	java_begin(s);
	for (int i = 0; i < OFFCPU_DEPTH_MAX / JAVA_STEPS; i++)
		if (!java_own_steps())
			break;
	return 0;
}

/* The names of frames from FIRST on. False if there are no more. */
__noinline int java_own_names(__u32 first)
{
	struct scratch *s = my_scratch();

	if (!WATCHED(RUNTIME_JAVA) || !s)
		return false;
	for (__u32 i = 0; i < JAVA_STEPS; i++) {
		if (first + i >= s->ev.scripts)
			return false;
		if (!java_own_name(first + i))
			s->hotspot.lost = 1;
	}
	return true;
}

__noinline int name_own_java(void)
{
	struct scratch *s = my_scratch();

	if (!WATCHED(RUNTIME_JAVA) || !s)
		return true;
	s->hotspot.lost = 0;
	for (__u32 i = 0; i < OFFCPU_SCRIPTS_MAX; i += JAVA_STEPS)
		if (!java_own_names(i))
			break;
	s->count.script_ring += s->hotspot.lost;
	return !s->hotspot.lost;
}

/* The frames of Java among those of the walk. OTHER is not running; NULL: current. */
static __always_inline void find_java(struct task_struct *other, struct scratch *s)
{
#ifndef OFFCPU_RAW
	struct other_task o = { .s = s, .task = other };

	if (other) {
		java_begin(s);
		bpf_loop(OFFCPU_DEPTH_MAX, other_java_step, &o, 0);
		return;
	}
#endif
	find_own_java();
}

/* Send the names of all of them. False if some could not be. */
static __always_inline bool name_java(struct task_struct *other, struct scratch *s)
{
#ifndef OFFCPU_RAW
	struct other_task o = { .s = s, .task = other };

	if (other) {
		s->hotspot.lost = 0;
		bpf_loop(OFFCPU_SCRIPTS_MAX, other_java_name, &o, 0);
		s->count.script_ring += s->hotspot.lost;
		return !s->hotspot.lost;
	}
#endif
	return name_own_java();
}

#endif
