/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frames of V8's own code, and the functions of JavaScript in them. Part of
 * offcpu.bpf.c; the offsets come from lib/record/v8.c, which names their sources.
 *
 * All code of V8 keeps a frame pointer wherever it calls something: V8 walks its
 * own stacks by it, to find the objects that they refer to. So a return address
 * in such code proves its caller. Builtins are a part of the program's file.
 * Other code was made in pages of 256 KiB with a head, which refers to the heap
 * that the page belongs to. It is V8's if a function of JavaScript in the frame
 * belongs to the same heap.
 *
 * Objects move. A function is therefore identified by what it is: the number of
 * its script, its own number in there, and all that is shown of it.
 */
#ifndef STACKTOOLS_V8_BPF_H
#define STACKTOOLS_V8_BPF_H

#define V8_PAGE (1ULL << 18)
#define V8_FUNCTION_TYPES 17 /* JSFunction and constructors of several kinds */
#define V8_STRING_TYPES 128 /* types below are strings: */
#define V8_STRING_FORM 7 /* enum v8_form */
#define V8_STRING_ONE_BYTE 8
#define V8_STRING_UNCACHED 16 /* an external string without the address of its text */
#define V8_HOPS 4 /* from a string to its characters */
#define V8_NO_LENGTH (~0U)
#define V8_LOCALS_INLINE 75 /* ScopeInfo: names of more variables are in a table of their own */
#define V8_TEXT_BYTES (2 * SCRIPT_OBJECT_BYTES) /* all of it is hashed: a longer name is not readable */
#define V8_TABLE_BYTES 8192 /* of a table of positions, and of bytecode */
#define V8_SIZES_BYTES 1024
#define V8_CHUNK_BYTES 4096
#define V8_CHUNKS 256 /* of a source, when its lines are counted */
#define V8_CODE_ALIGN 64
#define V8_SCAN 256 /* times that, back from a place in code to its beginning */
#define V8_COPY_HOPS 4 /* to a frame with a function */
#define V8_LINES_STEPS 24
#define V8_NAME_STEPS (6 * OFFCPU_SCRIPTS_MAX) /* frames, and functions in them */

enum v8_form { V8_SEQUENTIAL = 0, V8_CONS = 1, V8_EXTERNAL = 2, V8_SLICED = 3, V8_THIN = 5 };

/* DeoptimizationData: a FixedArray. */
enum { V8_DEOPT_FUNCTIONS = 2, V8_DEOPT_NUMBER = 5, V8_DEOPT_SHARED = 6, V8_DEOPT_INLINING = 7 };

enum v8_code { V8_UNPLACED = 0, V8_INTERPRETED = 1, V8_BASELINE = 2, V8_OPTIMISED = 3 };

/* Words of `object`, where parts of several objects are. */
enum { V8_AT_FUNCTION = 0, V8_AT_SHARED = 8, V8_AT_OTHER = 16, V8_AT_STRING = 28 };

#define V8_WORD(v, i) (*(__u64 *)((v)->object + (i)*8))
#define V8_FIELD(v, at) (*(__u64 *)((v)->object + ((at) & (V8_OBJECT_BYTES - 8))))
#define V8_INT(v, at) (*(__u32 *)((v)->object + ((at) & (V8_OBJECT_BYTES - 4))))
#define V8_IS_OBJECT(word) (((word)&3) == 1)
#define V8_IS_NUMBER(word) (!(__u32)(word))

/* Names and places that are about to be sent. */
struct v8_events {
	struct offcpu_ev_code code; /* its lines: a table of positions, and bytecode or source */
	struct offcpu_ev_inlined inlined;
	__u32 at, bytes; /* in the table */
	__u64 number; /* read from it */
	__s64 offset, position, best; /* of its entries; the last one up to `target` */
	__s64 target;
	__u64 ended; /* of baseline code: where the code of the bytecode `best` ends */
	__u32 bytecode, n_bytecodes;
	__u64 from, left; /* source whose lines are counted */
	__u64 lines;
	__u64 wide; /* it has characters of two bytes */
	__u64 lo, n; /* of a search */
	__u64 raw;
	__u64 outer; /* `raw` of the function that this one is in */
	__u64 placed; /* `raw` is known */
	__u64 words[2]; /* of what is read */
	__u8 sizes[V8_SIZES_BYTES];
};

NAMES_SCRATCH(v8_events, these_v8_events, v8_scratches, iter_v8_scratch)

static __always_inline const struct runtime_file *v8_of(const struct unwind_walk *u)
{
	const struct runtime_file *f = runtime_of(u);

	return f && f->kind == RUNTIME_V8 ? f : NULL;
}

#define V8_NO_TYPE 0x10000

/* The type that MAP, a tagged pointer, is of; V8_NO_TYPE if it is not readable: an object may be moving. */
static __always_inline __u32 v8_type(struct task_struct *task, __u64 map)
{
	__u16 type = 0;

	return !V8_IS_OBJECT(map) || script_read(task, &type, 2, map - 1 + 12) ? V8_NO_TYPE : type;
}

/* Is MAP that of one of the N types from FIRST on? */
static __always_inline bool v8_is(struct task_struct *task, __u64 map, __u32 first, __u32 n)
{
	return v8_type(task, map) - first < n;
}

/* --- the walk --- */

/*
 * Is PC, which is in the walk's mapping, in V8's builtins? They may be mapped
 * twice: the second time near other code. The addresses in tables begin with a
 * file's first segment.
 */
static __always_inline bool v8_builtin(struct unwind_walk *w, const struct runtime_file *f, __u64 pc)
{
	__u64 at = pc - w->runtime_bias;

	if (!w->v8_table) {
		if ((at < f->eval[0] || at >= f->eval[1]) && !find_map(w->runtime_bias + f->eval[0]))
			return false;
		w->v8_table = UNWIND_MAP_TABLE(w->word) + 1;
		w->v8_bias = w->bias - w->runtime_bias;
		if (!find_map(pc))
			return false;
	}
	at = pc - (w->bias - w->v8_bias);
	return UNWIND_MAP_TABLE(w->word) + 1 == w->v8_table && at >= f->eval[0] && at < f->eval[1];
}

/* The heap of the page that ADDR is in; 0 if that cannot be read. HEAD: its words from the heap on. */
static __always_inline __u64 v8_heap(
	struct task_struct *task, const struct runtime_file *f, __u64 addr, __u64 *head)
{
	return script_read(task, head, 24, (addr & ~(V8_PAGE - 1)) + f->v8.page_heap) ? 0 : head[0];
}

/* Is the word in the frame above the context, FUNCTION, a function of JavaScript? */
static __always_inline bool v8_is_function(
	struct task_struct *task, const struct runtime_file *f, __u64 function, __u64 context)
{
	__u64 map = 0;

	return V8_IS_OBJECT(function) && V8_IS_OBJECT(context) && !script_read(task, &map, 8, function - 1) &&
	       v8_is(task, map, f->v8.type_function, V8_FUNCTION_TYPES);
}

/* Was the code at PC made by V8? */
static __always_inline bool v8_made(
	struct task_struct *task, struct scratch *s, const struct runtime_file *f, __u64 pc)
{
	struct unwind_walk *w = &s->walk;
	__u64 *head = s->v8.words, *frame = s->v8.frame, flags = 0, heap, low, high;

	if (pc >= w->v8_low && pc < w->v8_high)
		return true;
	heap = v8_heap(task, f, pc, head);
	low = head[1];
	high = head[2];
	if (!heap || pc < low || pc >= high ||
		script_read(task, &flags, 8, (pc & ~(V8_PAGE - 1)) + f->v8.page_flags) ||
		!(flags >> (f->v8.page_executable & 63) & 1) || script_read(task, frame, 16, w->fp - 16))
		return false;
	if (!v8_is_function(task, f, frame[0], frame[1]) || v8_heap(task, f, frame[0], head) != heap)
		return false;
	w->v8_low = low;
	w->v8_high = high;
	return true;
}

/*
 * Is the code at PC in a copy of the builtins? An isolate, which has the heap
 * that the next function on the stack belongs to, refers to the copy. The code
 * around PC must be that of the file.
 */
static __always_inline bool v8_copied(
	struct task_struct *task, struct scratch *s, const struct runtime_file *f, __u64 pc)
{
	__u64 *frame = s->v8.frame, *head = s->v8.words, fp = s->walk.fp, size = f->eval[1] - f->eval[0],
	      base;

	if (s->walk.v8_copy)
		return pc - s->walk.v8_copy < size;
	for (int i = 0; i < V8_COPY_HOPS; i++) {
		if (script_read(task, frame, 24, fp - 16))
			return false;
		if (v8_is_function(task, f, frame[0], frame[1]))
			break;
		if (frame[2] <= fp)
			return false;
		fp = frame[2];
	}
	base = v8_heap(task, f, frame[0], head);
	if (!base || script_read(task, &base, 8, base + f->v8.heap_builtins) || pc - base >= size ||
		script_read(task, frame, 16, pc - 8) ||
		script_read(task, head, 16, s->walk.runtime_bias + f->eval[0] + (pc - base) - 8) ||
		frame[0] != head[0] || frame[1] != head[1])
		return false;
	s->walk.v8_copy = base;
	return true;
}

/* Find whether the code at the walk's PC is V8's, and what kind. */
static __always_inline bool v8_find(struct task_struct *task, struct scratch *s)
{
	const struct runtime_file *f = v8_of(&s->walk);
	struct unwind_walk *w = &s->walk;
	__u64 pc = w->pc - 1;

	w->blob_at = w->pc;
	w->blob_kind = V8_NONE;
	w->blob_place = 0;
	if (!f || w->exact)
		return false;
	w->blob = f->v8.exit_marker;
	if (UNWIND_MAP_STATE(w->word) != UNWIND_BY_FP) {
		w->blob_kind = v8_builtin(w, f, pc) ? V8_BUILTINS : V8_NONE;
	} else if (v8_copied(task, s, f, pc)) {
		w->blob_kind = V8_BUILTINS;
		w->blob_place = w->runtime_bias + f->eval[0] + (w->pc - w->v8_copy);
	} else if (v8_made(task, s, f, pc)) {
		w->blob_kind = V8_MADE;
	}
	return w->blob_kind != V8_NONE;
}

/* --- what a frame executes --- */

/* One step from STRING to its characters: sets `text`, or `string`. False if it is not one that is known. */
static __always_inline bool v8_string_hop(struct task_struct *task, struct v8_walk *v)
{
	__u64 string = v->string, second;
	__u32 n, form, type;

	v->string = 0;
	if (!V8_IS_OBJECT(string))
		return false;
	v->unread = 1;
	if (script_read(task, v->object + V8_AT_STRING * 8, 32, string - 1))
		return false;
	type = v8_type(task, V8_WORD(v, V8_AT_STRING));
	if (type == V8_NO_TYPE)
		return false;
	v->unread = 0;
	if (type >= V8_STRING_TYPES)
		return false;
	n = V8_INT(v, V8_AT_STRING * 8 + 12);
	if (v->text.len == V8_NO_LENGTH)
		v->text.len = n;
	if ((__u64)v->text.at + v->text.len > n)
		return false;
	second = V8_WORD(v, V8_AT_STRING + 3);
	form = type & V8_STRING_FORM;
	if (form == V8_SEQUENTIAL || (form == V8_EXTERNAL && !(type & V8_STRING_UNCACHED))) {
		v->text.kind = type & V8_STRING_ONE_BYTE ? SCRIPT_LATIN1 : SCRIPT_UCS2;
		v->text.at <<= v->text.kind == SCRIPT_UCS2;
		v->text.at += form == V8_EXTERNAL ? second : string - 1 + 16;
		return true;
	}
	/* one that was made flat has an empty second part */
	if (form == V8_CONS) {
		v->unread = script_read(task, &n, 4, second - 1 + 12) != 0;
		if (v->unread || n)
			return false;
	}
	if (form == V8_SLICED && V8_IS_NUMBER(second))
		v->text.at += second >> 32;
	else if (form != V8_CONS && form != V8_THIN)
		return false;
	v->string = V8_WORD(v, V8_AT_STRING + 2);
	return true;
}

LOOP(v8_hop, !v8_string_hop(task, &s->v8) || !s->v8.string)

/* Find the characters of STRING: sets `text`. */
static __always_inline bool v8_find_string(
	struct other_task *o, struct task_struct *task, struct scratch *s, __u64 string)
{
	struct v8_walk *v = &s->v8;

	v->string = string;
	v->unread = 0;
	v->text.at = v->text.kind = v->text.copied = 0;
	v->text.len = V8_NO_LENGTH;
	REPEAT(V8_HOPS, v8_hop);
	if (v->text.kind)
		return true;
	v->text.len = 0;
	v->unread |= v->string != 0; /* too many of them */
	return false;
}

/* One part of a name: the next one of `parts`. A string of two parts is replaced by them. */
static __always_inline bool v8_part(struct task_struct *task, struct v8_walk *v)
{
	__u32 n = v->n_parts, at = v->text.len, len;
	__u64 string;
	__u16 type = 0;

	if (!n || n > V8_PARTS)
		return false;
	n--;
	barrier_var(n);
	string = v->parts[n & (V8_PARTS - 1)];
	v->n_parts = n;
	if (!V8_IS_OBJECT(string) || script_read(task, v->object + V8_AT_STRING * 8, 32, string - 1) ||
		!V8_IS_OBJECT(V8_WORD(v, V8_AT_STRING)) ||
		script_read(task, &type, 2, V8_WORD(v, V8_AT_STRING) - 1 + 12) || type >= V8_STRING_TYPES)
		return false;
	len = V8_INT(v, V8_AT_STRING * 8 + 12);
	if ((type & V8_STRING_FORM) == V8_CONS || (type & V8_STRING_FORM) == V8_THIN) {
		if ((type & V8_STRING_FORM) == V8_CONS)
			v->parts[n++ & (V8_PARTS - 1)] = V8_WORD(v, V8_AT_STRING + 3);
		v->parts[n & (V8_PARTS - 1)] = V8_WORD(v, V8_AT_STRING + 2);
		v->n_parts = n + 1;
		return n < V8_PARTS;
	}
	if (type & V8_STRING_FORM || !(type & V8_STRING_ONE_BYTE) || len >= V8_FLAT_BYTES - at)
		return false;
	barrier_var(at);
	barrier_var(len);
	at &= V8_FLAT_BYTES - 1;
	len &= V8_FLAT_BYTES - 1;
	if (script_read(task, v->flat + at, len, string - 1 + 16))
		return false;
	v->text.len = at + len;
	return v->n_parts;
}

LOOP(v8_part, !v8_part(task, &s->v8))

/* Find the characters of a name, which may be in several parts: sets `text`. */
static __always_inline bool v8_find_name(
	struct other_task *o, struct task_struct *task, struct scratch *s, __u64 string)
{
	struct v8_walk *v = &s->v8;

	if (v8_find_string(o, task, s, string))
		return true;
	if (v->unread || !V8_IS_OBJECT(string) || v8_type(task, V8_WORD(v, V8_AT_STRING)) >= V8_STRING_TYPES)
		return false;
	v->unread = 1;
	v->parts[0] = string;
	v->n_parts = 1;
	REPEAT(2 * V8_PARTS, v8_part);
	if (v->n_parts || !v->text.len) {
		v->text.len = 0;
		return false;
	}
	v->unread = 0;
	v->text.kind = SCRIPT_LATIN1;
	v->text.copied = 1;
	return true;
}

/* Add the words of script_walk.object to the hash of a text. */
__noinline int v8_words(void)
{
	struct scratch *s = this_scratch();
	__u64 factor, sum = 0;

	if (!WATCHED(RUNTIME_V8) || !s)
		return 0;
	factor = s->v8.factor;
	for (__u32 i = 0; i < SCRIPT_OBJECT_BYTES / 8; i++) {
		factor += 0x9e3779b97f4a7c16;
		sum += *(volatile __u64 *)(s->script.object + i * 8) * factor;
	}
	s->v8.factor = factor;
	s->v8.sum += sum;
	return 0;
}

/*
 * Hash the LEN bytes of text at AT as hash_text() does, the beginning and the
 * end, with less stack. COPY: it is in kernel memory.
 */
static __always_inline __u64 v8_hash_text(
	struct task_struct *task, struct scratch *s, __u64 at, __u32 len, bool copy)
{
	struct script_walk *k = &s->script;
	__u32 n = len < SCRIPT_OBJECT_BYTES ? len : SCRIPT_OBJECT_BYTES;

	s->v8.factor = hash_key[3] | 1;
	s->v8.sum = len * s->v8.factor;
	for (int end = 0; end < 2; end++) {
		clear_words(task, k);
		barrier_var(n);
		n &= 255; /* at most SCRIPT_OBJECT_BYTES, behind which is more of the same map */
		if (copy ? bpf_probe_read_kernel(k->object, n, (void *)at)
			 : script_read(task, k->object, n, at))
			return 0;
		v8_words();
		if (len <= SCRIPT_OBJECT_BYTES)
			break;
		at += len - SCRIPT_OBJECT_BYTES;
	}
	return mix(1, s->v8.sum ^ s->v8.sum >> 32) | 1;
}

static __always_inline __u64 v8_bytes(const struct v8_text *t)
{
	return (__u64)t->len << (t->kind == SCRIPT_UCS2);
}

/* Add the characters of T to `hash`. False if they cannot be read. */
static __always_inline bool v8_hash(struct task_struct *task, struct scratch *s, struct v8_text *t)
{
	t->hash = 0;
	s->v8.hash = mix(s->v8.hash, (__u64)t->len << 8 | t->kind);
	if (!t->len)
		return true;
	if (t->copied)
		t->hash = v8_hash_text(task, s, (__u64)s->v8.flat, t->len, true);
	else
		t->hash = v8_hash_text(task, s, t->at, t->len << (t->kind == SCRIPT_UCS2), false);
	s->v8.hash = mix(s->v8.hash, t->hash);
	return t->hash != 0;
}

/*
 * Read SCRIPT: its file's name, its source, and a hash of both names, of its
 * number, and of the heap that it is in: each isolate numbers its own. Functions of
 * builtins have none.
 */
static __always_inline bool v8_script(struct other_task *o, struct task_struct *task, struct scratch *s,
	const struct runtime_file *f, __u64 script)
{
	struct v8_walk *v = &s->v8;
	__u32 type;

	if (script == v->script)
		return true;
	v->script = 0;
	v->source = v->line_ends = v->first_line = 0;
	v->file.len = v->file.kind = v->file.copied = 0;
	v->hash = s->script.seed;
	if (!V8_IS_OBJECT(script) || script_read(task, v->object + V8_AT_OTHER * 8, 72, script - 1))
		return false;
	type = v8_type(task, V8_WORD(v, V8_AT_OTHER));
	if (type == V8_NO_TYPE)
		return false;
	if (type == f->v8.type_script) {
		v->source = V8_WORD(v, V8_AT_OTHER + 1);
		v->string = V8_WORD(v, V8_AT_OTHER + 2);
		v->first_line = V8_WORD(v, V8_AT_OTHER + 3);
		v->line_ends = V8_WORD(v, V8_AT_OTHER + 7);
		v->hash = mix(mix(v->hash, V8_WORD(v, V8_AT_OTHER + 8)), v8_heap(task, f, script, v->words));
		if (v8_find_string(o, task, s, v->string))
			v->file = v->text;
		if (v->unread)
			return false;
		if (v8_find_string(o, task, s, v->source))
			v->hash = mix(v->hash, v->text.len);
		if (v->unread || !v8_hash(task, s, &v->file))
			return false;
	}
	v->script_hash = v->hash;
	v->script = script;
	return true;
}

__noinline int v8_own_script(__u64 script)
{
	struct scratch *s = my_scratch();
	const struct runtime_file *f = s ? v8_of(&s->walk) : NULL;

	return WATCHED(RUNTIME_V8) && f && v8_script(NULL, NULL, s, f, script);
}

/* Bits of ScopeInfo::flags. */
#define V8_SCOPE_TYPE(flags) ((flags)&15)
#define V8_SCOPE_SAVED(flags) ((flags) >> 10 & 1)
#define V8_SCOPE_NAMED(flags) ((flags) >> 12 & 3)
#define V8_SCOPE_INFERRED(flags) ((flags) >> 14 & 1)
#define V8_SCOPE_MODULE 3

/* Find the name in INFO, a ScopeInfo: the function's own, or else the inferred one. Sets `text`. */
static __always_inline void v8_scope_name(
	struct other_task *o, struct task_struct *task, struct scratch *s, __u64 info)
{
	struct v8_walk *v = &s->v8;
	__u64 flags, n, at;

	v->text.len = v->text.kind = v->text.copied = 0;
	v->unread = 1;
	if (script_read(task, v->object + V8_AT_OTHER * 8, 32, info - 1))
		return;
	v->unread = 0;
	flags = V8_WORD(v, V8_AT_OTHER + 1) >> 32;
	n = V8_WORD(v, V8_AT_OTHER + 3) >> 32;
	v->unread = n > 1 << 20;
	if (V8_SCOPE_TYPE(flags) == V8_SCOPE_MODULE || v->unread)
		return;
	at = 4 + n + (n < V8_LOCALS_INLINE ? n : 1) + V8_SCOPE_SAVED(flags);
	v->unread = 1;
	if (script_read(task, v->words, 24, info - 1 + at * 8))
		return;
	v->unread = 0;
	if (V8_SCOPE_NAMED(flags) && v8_find_string(o, task, s, v->words[0]) && v->text.len)
		return;
	if (!v->unread && V8_SCOPE_INFERRED(flags))
		v8_find_name(o, task, s, V8_SCOPE_NAMED(flags) ? v->words[2] : v->words[0]);
}

/* Read SHARED, a SharedFunctionInfo: the function's names and its identity. */
static __always_inline bool v8_shared(struct other_task *o, struct task_struct *task, struct scratch *s,
	const struct runtime_file *f, __u64 shared)
{
	struct v8_walk *v = &s->v8;
	__u64 map, name, number;

	v->shared = v->code = v->check = 0;
	s->script.reason = SCRIPT_NONE;
	if (!V8_IS_OBJECT(shared) || script_read(task, v->object + V8_AT_SHARED * 8, 56, shared - 1))
		return false;
	map = V8_WORD(v, V8_AT_SHARED);
	if (map != v->shared_map && !v8_is(task, map, f->v8.type_shared, 1))
		return false;
	v->shared_map = map;
	name = V8_WORD(v, V8_AT_SHARED + 2);
	/* its number in the script; builtins have that of their code */
	number = V8_INT(v, V8_AT_SHARED * 8 + 52);
	if ((__s32)number < 0)
		number = V8_IS_NUMBER(V8_WORD(v, V8_AT_SHARED + 1)) ? V8_WORD(v, V8_AT_SHARED + 1) | 1 : 0;
	if (!(task ? v8_script(o, task, s, f, V8_WORD(v, V8_AT_SHARED + 4))
		   : v8_own_script(V8_WORD(v, V8_AT_SHARED + 4))))
		return false;
	v->text.len = v->text.kind = v->text.copied = 0;
	v->unread = 0;
	if (V8_IS_OBJECT(name)) {
		if (script_read(task, &map, 8, name - 1))
			return false;
		if (v8_is(task, map, f->v8.type_scope, 1))
			v8_scope_name(o, task, s, name);
		else
			v8_find_string(o, task, s, name);
	}
	if (v->unread)
		return false;
	v->name = v->text;
	v->hash = mix(v->script_hash, number);
	if (!v8_hash(task, s, &v->name))
		return false;
	v->code = (v->hash & ((1ULL << SCRIPT_AT_SHIFT) - 1)) | 1;
	v->hash = (v->hash ^ v->hash >> 32) * (hash_key[3] | 1);
	v->check = v->hash >> SCRIPT_POSITION_BITS;
	v->shared = shared;
	return true;
}

/* For current: a global function, so that the verifier checks it once. */
__noinline int v8_own_shared(__u64 shared)
{
	struct scratch *s = my_scratch();
	const struct runtime_file *f = s ? v8_of(&s->walk) : NULL;

	return WATCHED(RUNTIME_V8) && f && v8_shared(NULL, NULL, s, f, shared);
}

static __always_inline bool v8_find_shared(struct other_task *o, struct task_struct *task, struct scratch *s,
	const struct runtime_file *f, __u64 shared)
{
	return task ? v8_shared(o, task, s, f, shared) : v8_own_shared(shared);
}

/* Make the place a part of the identity. */
static __always_inline void v8_at(struct v8_walk *v, enum v8_code kind, __u64 what, __u64 position)
{
	v->kind = kind;
	v->hash = mix(v->hash, what << 2 | kind);
	v->place_check = v->hash >> SCRIPT_POSITION_BITS;
	v->position = position < SCRIPT_POSITION_NONE ? position : SCRIPT_POSITION_NONE;
}

/*
 * Is PC in CODE, which is that of the function that was read? Baseline code has
 * bytecode, that of the frame, where optimised code has what undoes it.
 */
static __always_inline bool v8_compiled(
	struct task_struct *task, struct v8_walk *v, const struct runtime_file *f, __u64 code, __u64 pc)
{
	__u64 map = 0, number = 0;
	__u32 bytes;

	if (!V8_IS_OBJECT(code) || script_read(task, v->object + V8_AT_OTHER * 8, 64, code - 1))
		return false;
	v->begin = f->v8.code_inline ? code - 1 + f->v8.code_inline
				     : V8_FIELD(v, V8_AT_OTHER * 8 + f->v8.code_start);
	bytes = V8_INT(v, V8_AT_OTHER * 8 + f->v8.code_bytes);
	if (pc <= v->begin || pc - v->begin > bytes)
		return false;
	v->deopt = V8_FIELD(v, V8_AT_OTHER * 8 + f->v8.code_deopt);
	v->positions = V8_FIELD(v, V8_AT_OTHER * 8 + f->v8.code_positions);
	if (!V8_IS_OBJECT(v->deopt) || script_read(task, &map, 8, v->deopt - 1))
		return false;
	if (v8_is(task, map, f->v8.type_deopt, 1)) {
		if (script_read(task, &number, 8, v->deopt - 1 + 16 + V8_DEOPT_SHARED * 8) ||
			number != v->shared)
			return false;
		/* a number that V8 does not use again */
		if (script_read(task, &number, 8, v->deopt - 1 + 16 + V8_DEOPT_NUMBER * 8))
			return false;
		v8_at(v, V8_OPTIMISED, number ^ bytes, pc - v->begin);
	} else if (v->deopt == v->frame[1] && v8_is(task, map, f->v8.type_bytecode, 1)) {
		v->bytecode = v->deopt;
		v8_at(v, V8_BASELINE, bytes, pc - v->begin);
	} else {
		return false;
	}
	return true;
}

/*
 * A function may have other code by now, and a loop that is optimised while it
 * runs has code of its own: go back from `scan` to the object that the
 * instructions are in. It sets `found`.
 */
static __always_inline bool v8_scan(struct task_struct *task, struct scratch *s)
{
	const struct runtime_file *f = v8_of(&s->walk);
	struct v8_walk *v = &s->v8;
	__u64 at = v->scan, word = 0, begin = 0;

	v->scan = at - V8_CODE_ALIGN;
	if (!f || at < s->walk.v8_low)
		return false;
	if (f->v8.code_inline) {
		if (script_read(task, &word, 8, at - f->v8.code_inline))
			return false;
		v->found = word == v->code_map ? at - f->v8.code_inline + 1 : 0;
		return !v->found;
	}
	if (script_read(task, &word, 8, at - f->v8.code_stream + 8))
		return false;
	if (V8_IS_OBJECT(word) && !script_read(task, &begin, 8, word - 1 + f->v8.code_start) && begin == at)
		v->found = word;
	return !v->found;
}

LOOP(v8_scan, !v8_scan(task, s))

/* Find the code that PC is in: `found`, 0 = none. */
static __always_inline void v8_find_code(
	struct other_task *o, struct task_struct *task, struct scratch *s, __u64 code, __u64 pc)
{
	struct v8_walk *v = &s->v8;

	v->found = v->code_map = 0;
	if (!V8_IS_OBJECT(code) || script_read(task, &v->code_map, 8, code - 1))
		return;
	v->scan = (pc - 1) & ~(__u64)(V8_CODE_ALIGN - 1);
	REPEAT(V8_SCAN, v8_scan);
}

/* Is the frame that was read one of the interpreter? */
static __always_inline bool v8_interpreted(
	struct task_struct *task, struct v8_walk *v, const struct runtime_file *f)
{
	__u64 bytecode = v->frame[1], offset = (v->frame[0] >> 32) - (f->v8.bytecode_data - 1);

	if (!V8_IS_OBJECT(bytecode) || !V8_IS_NUMBER(v->frame[0]) ||
		script_read(task, v->object + V8_AT_OTHER * 8, 40, bytecode - 1) ||
		!v8_is(task, V8_WORD(v, V8_AT_OTHER), f->v8.type_bytecode, 1) ||
		offset >= V8_WORD(v, V8_AT_OTHER + 1) >> 32)
		return false;
	v->bytecode = bytecode;
	v->positions = V8_FIELD(v, V8_AT_OTHER * 8 + f->v8.bytecode_positions);
	v8_at(v, V8_INTERPRETED, V8_WORD(v, V8_AT_OTHER + 1) >> 32, offset);
	return true;
}

/* Read what the frame at FP executes, whose PC is PC: its function and the place in it. */
static __always_inline bool v8_frame(
	struct other_task *o, struct task_struct *task, struct scratch *s, __u64 what, __u64 pc)
{
	const struct runtime_file *f = v8_of(&s->walk);
	struct v8_walk *v = &s->v8;
	__u64 fp = SCRIPT_CODE(what) & ~7ULL, function, code;

	v->kind = V8_UNPLACED;
	if (!f)
		return false;
	if (what & V8_EXIT) {
		if (script_read(task, &function, 8, fp + 24))
			return false;
	} else {
		if (script_read(task, v->frame, 40, fp - 40))
			return false;
		function = v->frame[3];
	}
	if (!V8_IS_OBJECT(function) || script_read(task, v->object + V8_AT_FUNCTION * 8, 64, function - 1))
		return false;
	code = V8_WORD(v, V8_AT_FUNCTION);
	if (code != v->function_map && !v8_is(task, code, f->v8.type_function, V8_FUNCTION_TYPES))
		return false;
	v->function_map = code;
	code = V8_FIELD(v, V8_AT_FUNCTION * 8 + f->v8.function_code);
	if (!v8_find_shared(o, task, s, f, V8_FIELD(v, V8_AT_FUNCTION * 8 + f->v8.function_shared)))
		return false;
	if (!(what & (V8_EXIT | V8_BUILTIN))) {
		if (v8_compiled(task, v, f, code, pc) || v8_compiled(task, v, f, v->found, pc))
			return true;
		if (v8_interpreted(task, v, f))
			return true;
		v8_find_code(o, task, s, code, pc);
		if (v8_compiled(task, v, f, v->found, pc))
			return true;
	} else if (!(what & V8_EXIT) && v8_interpreted(task, v, f)) {
		return true;
	}
	v8_at(v, V8_UNPLACED, 0, SCRIPT_POSITION_NONE);
	return true;
}

/* The script frame of the next frame of JavaScript. False if there are no more. */
static __always_inline bool v8_step(struct other_task *o, struct task_struct *task, struct scratch *s)
{
	struct v8_walk *v = &s->v8;
	__u32 i = v->next, n = s->ev.scripts, at;
	__u64 what, code = 0, check = 0;

	if (i >= s->walk.n_java || i >= OFFCPU_DEPTH_MAX || n >= OFFCPU_SCRIPTS_MAX)
		return false;
	v->next = i + 1;
	barrier_var(i);
	i &= OFFCPU_DEPTH_MAX - 1;
	what = s->walk.java[i].what;
	if (v8_frame(o, task, s, what, s->walk.java[i].place)) {
		code = v->code;
		check = v->place_check << SCRIPT_POSITION_BITS | v->position;
	}
	at = s->walk.len + 2 * n;
	barrier_var(at);
	if (at >= OFFCPU_FRAMES_MAX - 1)
		return false;
	s->ev.frames[at] = code | (what & ~(__u64)((1ULL << SCRIPT_AT_SHIFT) - 1));
	s->ev.frames[at + 1] = check;
	s->ev.scripts = n + 1;
	return true;
}

/* --- tables of positions: src/codegen/source-position-table.cc, src/baseline/bytecode-offset-iterator.h ---
 */

/* Take the next number, of seven bits a byte, from the table into `number`. False behind its end. */
__noinline int v8_number(void)
{
	struct v8_events *ev = these_v8_events();
	volatile __u32 *at;
	__u64 number = 0;

	if (!WATCHED(RUNTIME_V8) || !ev)
		return 0;
	at = &ev->at;
	for (int i = 0; i < 10; i++) {
		__u32 where = *at;
		__u64 byte;

		if (where >= ev->bytes)
			return 0;
		byte = ev->code.lines[where & (V8_TABLE_BYTES - 1)];
		*at = where + 1;
		number |= (byte & 127) << 7 * i;
		if (byte < 128)
			break;
	}
	ev->number = number;
	return 1;
}

static __always_inline __s64 v8_signed(__u64 number)
{
	return (__s64)(number >> 1) ^ -(__s64)(number & 1);
}

/* One entry: the distance from the last one, which is below zero for an expression, and that of positions. */
static long v8_entry(__u32 i, void *unused)
{
	struct v8_events *ev = these_v8_events();
	__s64 distance;

	if (!ev || !v8_number())
		return 1;
	distance = v8_signed(ev->number);
	if (!v8_number())
		return 1;
	ev->offset += distance < 0 ? -(distance + 1) : distance;
	ev->position += v8_signed(ev->number);
	if (ev->offset > ev->target)
		return 1;
	if (!(ev->position & 1)) /* else it is in the source of a builtin */
		ev->best = ev->position;
	return 0;
}

/* The position of the last entry up to `target`: `best`, -1 = none. */
__noinline int v8_entries(void)
{
	struct v8_events *ev = these_v8_events();

	if (!WATCHED(RUNTIME_V8) || !ev)
		return 0;
	ev->at = 0;
	ev->offset = -1; /* of a function's entry */
	ev->position = 0;
	ev->best = -1;
	bpf_loop(V8_TABLE_BYTES / 2, v8_entry, NULL, 0);
	return 0;
}

/* One bytecode of baseline code: the table has the size of its machine code. */
static long v8_baseline(__u32 i, void *unused)
{
	struct v8_events *ev = these_v8_events();
	__u32 at, byte, scale = 0, size = 0;

	if (!ev || (__s64)ev->ended >= ev->target || !v8_number())
		return 1;
	ev->ended += ev->number;
	at = ev->bytecode;
	ev->best = at;
	barrier_var(at);
	byte = ev->code.lines[V8_TABLE_BYTES + (at & (V8_TABLE_BYTES - 1))];
	if (byte < 4) { /* wide operands: a prefix */
		scale = byte & 1 ? 2 : 1;
		at++;
		byte = ev->code.lines[V8_TABLE_BYTES + (at & (V8_TABLE_BYTES - 1))];
		size = 1;
	}
	byte += scale * ev->n_bytecodes;
	barrier_var(byte);
	size += ev->sizes[byte & (V8_SIZES_BYTES - 1)];
	ev->bytecode += size;
	return 0;
}

/* The offset of the bytecode whose machine code ends at or behind `target`: `best`, -1 = before the first. */
__noinline int v8_baselines(void)
{
	struct v8_events *ev = these_v8_events();

	if (!WATCHED(RUNTIME_V8) || !ev)
		return 0;
	ev->at = ev->bytecode = 0;
	ev->best = -1;
	if (!v8_number())
		return 0;
	ev->ended = ev->number;
	bpf_loop(V8_TABLE_BYTES, v8_baseline, NULL, 0);
	return (__s64)ev->ended >= ev->target;
}

/* Read TABLE, a ByteArray. */
static __always_inline bool v8_table(
	struct task_struct *task, struct v8_events *ev, const struct runtime_file *f, __u64 table)
{
	__u64 *head = ev->words;
	__u32 n;

	if (!V8_IS_OBJECT(table) || script_read(task, head, 16, table - 1) ||
		!v8_is(task, head[0], f->v8.type_bytes, 1))
		return false;
	n = head[1] >> 32;
	if (n >= V8_TABLE_BYTES)
		n = V8_TABLE_BYTES - 1;
	ev->bytes = n;
	barrier_var(n);
	n &= V8_TABLE_BYTES - 1;
	return !script_read(task, ev->code.lines, n, table - 1 + 16);
}

/*
 * Find the position in the source of the frame that v8_frame() has read: `raw`.
 * What is too long is known only at its beginning, and has none behind that.
 */
static __always_inline bool v8_source_position(
	struct task_struct *task, struct scratch *s, struct v8_events *ev, const struct runtime_file *f)
{
	struct v8_walk *v = &s->v8;
	__u32 n;
	__u64 len = 0;

	if (v->kind == V8_UNPLACED || v->position == SCRIPT_POSITION_NONE)
		return false;
	ev->target = v->position;
	if (v->kind == V8_OPTIMISED)
		ev->target--;
	if (v->kind == V8_BASELINE) {
		n = f->cold[1] - f->cold[0];
		ev->n_bytecodes = f->v8.n_bytecodes;
		if (!v8_table(task, ev, f, v->positions) || n >= V8_SIZES_BYTES)
			return false;
		barrier_var(n);
		n &= V8_SIZES_BYTES - 1;
		if (script_read(task, ev->sizes, n, s->walk.runtime_bias + f->cold[0]) ||
			script_read(task, &len, 8, v->bytecode - 1 + 8))
			return false;
		n = len >> 32;
		if (n >= V8_TABLE_BYTES)
			n = V8_TABLE_BYTES - 1;
		barrier_var(n);
		n &= V8_TABLE_BYTES - 1;
		if (script_read(
			    task, ev->code.lines + V8_TABLE_BYTES, n, v->bytecode - 1 + f->v8.bytecode_data))
			return false;
		if (!v8_baselines() || ev->bytecode > n)
			return false;
		ev->target = ev->best < 0 ? 0 : ev->best;
		if (script_read(task, &v->positions, 8, v->bytecode - 1 + f->v8.bytecode_positions))
			return false;
	}
	if (!v8_table(task, ev, f, v->positions))
		return false;
	v8_entries();
	/* the table may go on behind what was read */
	if (ev->best < 0 || (ev->bytes == V8_TABLE_BYTES - 1 && ev->offset <= ev->target))
		return false;
	ev->raw = ev->best;
	return true;
}

/* Parts of the position in optimised code: in the script, and of the function that is in another one. */
#define V8_SCRIPT_OFFSET(raw) ((((raw) >> 1) & 0x3fffffff) - 1)
#define V8_INLINING(raw) ((raw) >> 31 & 0xffff)

/* --- from a position to a line --- */

#define V8_SOME 32 /* words of a source at once */

/* The number of ends of lines in the words from AT on of the part of a source that was read. */
__noinline int v8_count_some(__u32 at)
{
	struct v8_events *ev = these_v8_events();
	__u64 sum = 0, wide;

	if (!WATCHED(RUNTIME_V8) || !ev || at > V8_CHUNK_BYTES / 8 - V8_SOME)
		return 0;
	wide = ev->wide;
	barrier_var(at);
	for (__u32 i = 0; i < V8_SOME; i++) {
		__u64 word = *(__u64 *)(ev->code.lines + (at + i) * 8), low = 0x7f7f7f7f7f7f7f7f;

		if (wide)
			low = 0x7fff7fff7fff7fff;
		word ^= wide ? 0x000a000a000a000a : 0x0a0a0a0a0a0a0a0a;
		/* the highest bit of each byte or pair that is zero */
		word = ~(((word & low) + low) | word | low);
		word >>= wide ? 15 : 7;
		sum += wide ? (word * 0x0001000100010001) >> 48 : (word * 0x0101010101010101) >> 56;
	}
	return sum;
}

/* Count the ends of lines among the bytes of source that were read; what is behind them is zero. */
static __always_inline void v8_count(struct v8_events *ev)
{
	for (__u32 at = 0; at < V8_CHUNK_BYTES / 8; at += V8_SOME)
		ev->lines += v8_count_some(at);
}

__noinline int v8_clear_some(__u32 at)
{
	struct v8_events *ev = these_v8_events();

	if (!WATCHED(RUNTIME_V8) || !ev || at > V8_CHUNK_BYTES / 8 - V8_SOME)
		return 0;
	barrier_var(at);
	for (__u32 i = 0; i < V8_SOME; i++)
		*(volatile __u64 *)(ev->code.lines + (at + i) * 8) = 0; /* not a call of memset */
	return 0;
}

/* Count the lines of the next part of a source. 1 if that was the last one, or is not readable. */
static __always_inline long v8_chunk(struct task_struct *task)
{
	struct v8_events *ev = these_v8_events();
	__u32 n = V8_CHUNK_BYTES;

	if (!ev || !ev->left)
		return 1;
	if (ev->left < V8_CHUNK_BYTES) {
		for (__u32 at = 0; at < V8_CHUNK_BYTES / 8; at += V8_SOME)
			v8_clear_some(at);
		n = ev->left;
	}
	barrier_var(n);
	n &= 2 * V8_CHUNK_BYTES - 1;
	if (script_read(task, ev->code.lines, n, ev->from))
		return 1;
	v8_count(ev);
	ev->from += n;
	ev->left -= n;
	return 0;
}

LOOP(v8_chunk, v8_chunk(task))

/*
 * Halve what the line of `target` is searched for in. 1 if it is found, or if the
 * end of a line is not readable: then N is not 0.
 */
static __always_inline long v8_halve(struct task_struct *task, const struct v8_walk *v)
{
	struct v8_events *ev = these_v8_events();
	__u64 half, at, end;

	if (!ev)
		return 1;
	half = ev->n / 2;
	at = ev->lo + half;
	if (!ev->n || script_read(task, &end, 8, v->line_ends - 1 + 16 + at * 8))
		return 1;
	if ((__s32)(end >> 32) < (__s32)ev->target) {
		ev->lo = at + 1;
		half = ev->n - half - 1;
	}
	ev->n = half;
	return 0;
}

LOOP(v8_line, v8_halve(task, &s->v8))

/*
 * The line of POSITION in the script of the function that was read, from 1; 0 =
 * not known. V8 has a list of the ends of lines once it has needed it itself.
 * Else they are counted.
 */
static __always_inline __u32 v8_line(struct other_task *o, struct task_struct *task, struct scratch *s,
	struct v8_events *ev, const struct runtime_file *f, __u32 position)
{
	struct v8_walk *v = &s->v8;
	__u64 *head = ev->words, line;

	if (!v->source || !V8_IS_NUMBER(v->first_line))
		return 0;
	if (V8_IS_OBJECT(v->line_ends) && !script_read(task, head, 16, v->line_ends - 1) &&
		v8_is(task, head[0], f->v8.type_array, 1) && V8_IS_NUMBER(head[1]) && head[1]) {
		ev->lo = 0;
		ev->n = head[1] >> 32;
		ev->target = position;
		REPEAT(V8_LINES_STEPS, v8_line);
		if (ev->n)
			return 0;
		line = ev->lo;
	} else {
		if (!v8_find_string(o, task, s, v->source) || position > v->text.len)
			return 0;
		ev->wide = v->text.kind == SCRIPT_UCS2;
		ev->from = v->text.at;
		ev->left = (__u64)position << ev->wide;
		ev->lines = 0;
		if (ev->left > V8_CHUNKS * V8_CHUNK_BYTES)
			return 0;
		REPEAT(V8_CHUNKS, v8_chunk);
		if (ev->left)
			return 0;
		line = ev->lines;
	}
	line += 1 + (v->first_line >> 32);
	return line < SCRIPT_POSITION_NONE ? line : 0;
}

/* --- names --- */

/* Whether there is more to do for the names of a frame. */
enum v8_more {
	V8_END = 0,
	V8_MORE = 1,
	V8_LOST = 2, /* something could not be sent: it is sent again with the stack */
};

static __always_inline __u8 v8_text(struct task_struct *task, const struct v8_text *t, const __u8 *flat,
	__u8 *to, __u32 size, __u16 *bytes)
{
	__u64 len = v8_bytes(t);

	if (len > V8_TEXT_BYTES) {
		*bytes = 0;
		return SCRIPT_UNREADABLE;
	}
	if (t->copied) {
		*bytes = len;
		barrier_var(len);
		return bpf_probe_read_kernel(to, len & (V8_FLAT_BYTES - 1), flat) ? SCRIPT_UNREADABLE
										  : t->kind;
	}
	return script_text(task, t->at, len, to, size, bytes) == SCRIPT_UNREADABLE ? SCRIPT_UNREADABLE
										   : t->kind;
}

/* Are the texts in the event those that were hashed? */
__noinline int v8_same(void)
{
	struct scratch *s = this_scratch();
	struct v8_events *ev = these_v8_events();

	if (!WATCHED(RUNTIME_V8) || !s || !ev)
		return 0;
	if (s->v8.name.len && v8_bytes(&s->v8.name) <= V8_TEXT_BYTES &&
		v8_hash_text(NULL, s, (__u64)ev->code.name, ev->code.name_bytes, true) != s->v8.name.hash)
		return 0;
	return !s->v8.file.len || v8_bytes(&s->v8.file) > V8_TEXT_BYTES ||
	       v8_hash_text(NULL, s, (__u64)ev->code.file, ev->code.file_bytes, true) == s->v8.file.hash;
}

/* Send the names of the function that was read, unless they were sent. False if that failed. */
static __always_inline bool v8_send_names(
	struct task_struct *task, struct scratch *s, const struct runtime_file *f, struct v8_events *ev)
{
	struct v8_walk *v = &s->v8;
	struct script_id id = { .code = v->code, .check = v->check };
	__u64 bytes;
	__u8 one = 1;

	if (bpf_map_lookup_elem(&named, &id))
		return true;
	ev->code.type = OFFCPU_EV_CODE;
	ev->code.runtime = s->walk.runtime;
	ev->code.code = id.code;
	ev->code.check = id.check;
	ev->code.first_line = ev->code.lines_bytes = ev->code.lines_all = 0;
	ev->code.file_kind = SCRIPT_UNREADABLE;
	ev->code.file_bytes = 0;
	ev->code.name_kind =
		v8_text(task, &v->name, v->flat, ev->code.name, SCRIPT_NAME_BYTES, &ev->code.name_bytes);
	if (!v->name.len)
		script_nameless(&ev->code, SCRIPT_ANONYMOUS);
	if (v->file.len)
		ev->code.file_kind = v8_text(
			task, &v->file, v->flat, ev->code.file, SCRIPT_FILE_BYTES, &ev->code.file_bytes);
	/* the texts may have moved since they were hashed, or cannot be read now */
	if (!v8_same())
		return false;
	bytes = pack(&ev->code);
	barrier_var(bytes);
	if (bytes > sizeof(ev->code) || bpf_ringbuf_output(&ring, &ev->code, bytes, BPF_RB_NO_WAKEUP))
		return false;
	bpf_map_update_elem(&named, &id, &one, BPF_ANY);
	return true;
}

/*
 * Find the function of optimised code that place `raw` is in. What was put into
 * another function has an InliningPosition: where in that, and which of the
 * functions that the code refers to. `raw` of the outer one is then in `words`.
 */
static __always_inline bool v8_inlining(struct other_task *o, struct task_struct *task, struct scratch *s,
	struct v8_events *ev, const struct runtime_file *f)
{
	__u64 inlining = V8_INLINING(ev->raw), deopt = s->v8.deopt - 1 + 16, array = 0, shared = 0;

	if (inlining) {
		if (script_read(task, &array, 8, deopt + V8_DEOPT_INLINING * 8) ||
			script_read(task, ev->words, 16, array - 1 + 16 + (inlining - 1) * 16))
			return false;
		/* -1: the compiled function itself */
		if ((__s32)ev->words[1] >= 0 &&
			(script_read(task, &array, 8, deopt + V8_DEOPT_FUNCTIONS * 8) ||
				script_read(
					task, &shared, 8, array - 1 + 16 + (ev->words[1] & 0x7fffffff) * 8)))
			return false;
	}
	if (!shared && script_read(task, &shared, 8, deopt + V8_DEOPT_SHARED * 8))
		return false;
	ev->outer = ev->words[0];
	return v8_find_shared(o, task, s, f, shared);
}

/* One function of a place, from the innermost one. */
static __always_inline int v8_function(
	struct other_task *o, struct task_struct *task, struct scratch *s, struct v8_events *ev)
{
	const struct runtime_file *f = v8_of(&s->walk);
	__u32 n = ev->inlined.n, line;
	bool optimised = s->v8.kind == V8_OPTIMISED && ev->placed;

	if (!f || n >= HOTSPOT_INLINED_MAX)
		return V8_END;
	if (optimised && !v8_inlining(o, task, s, ev, f)) {
		ev->inlined.n = 0;
		return V8_END;
	}
	if (!v8_send_names(task, s, f, ev))
		return V8_LOST;
	line = ev->placed ? v8_line(o, task, s, ev, f, V8_SCRIPT_OFFSET(ev->raw)) : 0;
	barrier_var(n);
	n &= HOTSPOT_INLINED_MAX - 1;
	ev->inlined.methods[n].code = s->v8.code;
	ev->inlined.methods[n].check = s->v8.check;
	ev->inlined.methods[n].position = line ? line : SCRIPT_POSITION_NONE;
	ev->inlined.n = n + 1;
	if (!optimised || !V8_INLINING(ev->raw))
		return V8_END;
	ev->raw = ev->outer;
	return V8_MORE;
}

/* Prepare the names of script frame I. V8_MORE: its functions are to be read and sent. */
static __always_inline int v8_begin_name(
	struct other_task *o, struct task_struct *task, struct scratch *s, struct v8_events *ev, __u32 i)
{
	const struct runtime_file *f = v8_of(&s->walk);
	struct v8_walk *v = &s->v8;
	__u32 at = s->walk.len + 2 * i;
	struct script_id id;

	barrier_var(at);
	ev->inlined.n = 0;
	ev->inlined.code = 0;
	if (!f || at >= OFFCPU_FRAMES_MAX - 1 || i >= OFFCPU_DEPTH_MAX)
		return V8_END;
	ev->inlined.type = OFFCPU_EV_INLINED;
	ev->inlined.runtime = s->walk.runtime;
	ev->inlined.check = SCRIPT_CHECK(s->ev.frames[at + 1]);
	ev->inlined.position = SCRIPT_POSITION(s->ev.frames[at + 1]);
	id.code = SCRIPT_CODE(s->ev.frames[at]);
	id.check = ev->inlined.check | (__u64)ev->inlined.position << 40;
	if (!id.code || bpf_map_lookup_elem(&named, &id))
		return V8_END;
	barrier_var(i);
	i &= OFFCPU_DEPTH_MAX - 1;
	/* it may have moved, or, of another thread, have returned */
	v->script = 0;
	if (!v8_frame(o, task, s, s->walk.java[i].what, s->walk.java[i].place) || v->code != id.code ||
		v->place_check != ev->inlined.check || v->position != ev->inlined.position)
		return V8_END;
	ev->inlined.code = id.code;
	ev->placed = v8_source_position(task, s, ev, f);
	return V8_MORE;
}

/* Send what was found for the place. */
static __always_inline bool v8_send_place(struct v8_events *ev)
{
	struct script_id id = { .code = ev->inlined.code,
		.check = ev->inlined.check | (__u64)ev->inlined.position << 40 };
	__u8 one = 1;

	if (!ev->inlined.code || !ev->inlined.n)
		return true;
	if (bpf_ringbuf_output(&ring, &ev->inlined, sizeof(ev->inlined), BPF_RB_NO_WAKEUP))
		return false;
	bpf_map_update_elem(&named, &id, &one, BPF_ANY);
	return true;
}

/* For current: global functions, so that the verifier checks each once. */
__noinline int v8_own(void)
{
	struct scratch *s = my_scratch();

	return WATCHED(RUNTIME_V8) && s && v8_find(NULL, s);
}

__noinline int v8_own_begin_name(__u32 i)
{
	struct scratch *s = my_scratch();
	struct v8_events *ev = these_v8_events();

	return WATCHED(RUNTIME_V8) && s && ev ? v8_begin_name(NULL, NULL, s, ev, i) : V8_END;
}

__noinline int v8_own_function(void)
{
	struct scratch *s = my_scratch();
	struct v8_events *ev = these_v8_events();

	return WATCHED(RUNTIME_V8) && s && ev ? v8_function(NULL, NULL, s, ev) : V8_END;
}

static long v8_own_step(__u32 i, void *unused)
{
	struct scratch *s = my_scratch();

	return !s || !v8_step(NULL, NULL, s);
}

static long v8_own_name(__u32 i, void *unused)
{
	struct v8_events *ev = these_v8_events();
	struct scratch *s = my_scratch();
	int more;

	if (!s || !ev || i >= s->ev.scripts)
		return 1;
	more = v8_own_begin_name(i);
	for (int k = 0; k < HOTSPOT_INLINED_MAX && more == V8_MORE; k++)
		more = v8_own_function();
	if (more == V8_LOST || !v8_send_place(ev))
		s->v8.lost = 1;
	return 0;
}

static __always_inline void v8_begin(struct scratch *s)
{
	s->v8.next = 0;
	s->v8.script = s->v8.function_map = s->v8.shared_map = s->v8.found = 0;
}

__noinline int v8_own_find(void)
{
	struct scratch *s = my_scratch();

	if (!WATCHED(RUNTIME_V8) || !s)
		return 0;
	v8_begin(s);
	bpf_loop(OFFCPU_DEPTH_MAX, v8_own_step, NULL, 0);
	return 0;
}

__noinline int v8_own_names(void)
{
	struct scratch *s = my_scratch();

	if (!WATCHED(RUNTIME_V8) || !s)
		return true;
	s->v8.lost = 0;
	bpf_loop(OFFCPU_SCRIPTS_MAX, v8_own_name, NULL, 0);
	s->count.script_ring += s->v8.lost;
	return !s->v8.lost;
}

#ifndef OFFCPU_RAW

static long other_v8_step(__u32 i, struct other_task *o)
{
	return !o->task || !v8_step(o, o->task, o->s);
}

/* One step of naming: a frame, or one of its functions. No loop in a loop: together they need too much stack.
 */
static long other_v8_name(__u32 i, struct other_task *o)
{
	struct v8_events *ev = these_v8_events();
	struct v8_walk *v = &o->s->v8;
	__u32 next = v->next;

	if (!o->task || !ev)
		return 1;
	if (v->more == V8_MORE) {
		v->more = v8_function(o, o->task, o->s, ev);
	} else {
		if (next >= o->s->ev.scripts)
			return 1;
		v->next = next + 1;
		v->more = v8_begin_name(o, o->task, o->s, ev, next);
	}
	if (v->more != V8_MORE && (v->more == V8_LOST || !v8_send_place(ev)))
		v->lost = 1;
	return 0;
}

#endif

/* The frames of JavaScript among those of the walk. OTHER is not running; NULL: current. */
static __always_inline void find_v8(struct task_struct *other, struct scratch *s)
{
#ifndef OFFCPU_RAW
	struct other_task o = { .s = s, .task = other };

	if (other) {
		v8_begin(s);
		bpf_loop(OFFCPU_DEPTH_MAX, other_v8_step, &o, 0);
		return;
	}
#endif
	v8_own_find();
}

/* Send the names of all of them. False if some could not be. */
static __always_inline bool name_v8(struct task_struct *other, struct scratch *s)
{
#ifndef OFFCPU_RAW
	struct other_task o = { .s = s, .task = other };

	if (other) {
		s->v8.lost = 0;
		s->v8.next = s->v8.more = 0;
		bpf_loop(V8_NAME_STEPS, other_v8_name, &o, 0);
		s->v8.lost |= s->v8.next < s->ev.scripts || s->v8.more == V8_MORE;
		s->count.script_ring += s->v8.lost;
		return !s->v8.lost;
	}
#endif
	return v8_own_names();
}

#endif
