/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frames of Ruby (MRI). Part of offcpu.bpf.c; the offsets come from
 * lib/record/ruby.c, which names their sources.
 *
 * libruby keeps each thread's own structure in thread-local storage. That the
 * structure is this thread's is proved by the thread's own pointer in it. It
 * leads to the execution context, that of the fiber that runs, and this to an
 * array of control frames, innermost first: of code in Ruby, of functions in C
 * that it calls ("cfuncs"), and of blocks in C, which Ruby's own backtraces do
 * not have either.
 *
 * One call of vm_exec_core() executes the former up to one that is marked to
 * finish it, so the native frames of vm_exec_core() and these groups belong
 * together one by one. A cfunc is called by vm_exec_core(): as in php.bpf.h it
 * is put outside of all native frames between this and the next call of it.
 * It has the file and the line of the code that called it, as in Ruby's own
 * backtraces.
 */
#ifndef STACKTOOLS_RUBY_BPF_H
#define STACKTOOLS_RUBY_BPF_H

/* What no version has changed, in vm_core.h, iseq.h, method.h, symbol.h, and include/ruby/. */
#define RUBY_THREAD_BYTES 96 /* of rb_thread_t */
#define RUBY_EC_BYTES 64
#define RUBY_FRAME_PC 0
#define RUBY_FRAME_ISEQ 16
#define RUBY_FRAME_EP 32
#define RUBY_BODY_BYTES 192
#define RUBY_BODY_SIZE 4
#define RUBY_BODY_ENCODED 8
#define RUBY_BODY_PATH 64 /* location.pathobj, label, first_lineno, node_id, code_location */
#define RUBY_BODY_LABEL 80
#define RUBY_BODY_FIRST_LINE 88
#define RUBY_METHOD_ID 32 /* rb_method_definition_t.original_id */

#define RUBY_MAGIC 0x7fff0001
#define RUBY_MAGIC_CFUNC 0x55550001
#define RUBY_FINISH 0x20

#define RUBY_TYPE 31 /* of an object's flags */
#define RUBY_STRING 5
#define RUBY_ARRAY 7
#define RUBY_IMEMO 26
#define RUBY_IMEMO_KIND(flags) ((flags) >> 12 & 15)
#define RUBY_IMEMO_SVAR 2
#define RUBY_IMEMO_METHOD 6
#define RUBY_IMEMO_ISEQ 7
#define RUBY_NOEMBED (1u << 13) /* of strings */
#define RUBY_EMBED (1u << 13) /* of arrays */

#define RUBY_IDS 512 /* symbols in each array of names: string and symbol of each */

#define RUBY_WINDOW 960 /* at most: of frames that are read at once */
#define RUBY_SUCC_MAX 4080 /* bytes of the index of a line table that are sent */

/* The thread's own rb_thread_t. 0: it has none, or the walk's reason says why it is not known. */
static __always_inline __u64 ruby_thread(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 bias)
{
	__u64 *slot = k->head, at = k->thread; /* number of the block, offset in it */

	slot[0] = 0;
	if (f->ruby.thread_way == RUBY_THREAD_KEY) {
		if (script_read(task, slot, 4, bias + f->state)) {
			script_stop(k, SCRIPT_MEMORY);
			return 0;
		}
		return thread_value(task, k, slot[0]);
	}
	if (f->ruby.thread_way == RUBY_THREAD_MODULE) {
		/* glibc: the descriptor's second word is the vector of blocks, 16 bytes each */
		if (script_read(task, slot, 16, bias + f->state) || slot[0] - 1 >= 4096 ||
			script_read(task, &at, 8, k->thread + 8) ||
			script_read(task, &at, 8, at + slot[0] * 16) || at == ~0ULL) {
			script_stop(k, SCRIPT_THREAD);
			return 0;
		}
		at += slot[1];
	}
	if (script_read(task, &at, 8, at + (__s64)f->ruby.thread_at)) {
		script_stop(k, SCRIPT_THREAD);
		return 0;
	}
	return at;
}

static __always_inline bool ruby_begin(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 bias)
{
	__u64 thread = ruby_thread(task, k, f, bias), at;

	if (!thread)
		return false;
	k->interpreter = bias;
	if (script_read(task, k->code_bytes, RUBY_THREAD_BYTES, thread))
		return script_stop(k, SCRIPT_THREAD);
	at = CODE_WORD(k, f->ruby.thread_id);
	if (f->ruby.thread_native &&
		script_read(task, &at, 8, CODE_WORD(k, f->ruby.thread_native) + f->ruby.thread_id))
		return script_stop(k, SCRIPT_THREAD);
	if (at != k->thread)
		return script_stop(k, SCRIPT_THREAD);
	at = CODE_WORD(k, f->ruby.thread_ec);
	if (!at)
		return false;
	if (script_read(task, k->code_bytes, RUBY_EC_BYTES, at) || CODE_WORD(k, f->ruby.ec_thread) != thread)
		return script_stop(k, SCRIPT_THREAD);
	/* the stack, its size in words, the innermost frame; the outermost one is not a call */
	k->contexts = CODE_WORD(k, 0) + CODE_WORD(k, 8) * 8 - f->ruby.frame_bytes;
	k->frame = CODE_WORD(k, 16);
	if (k->frame < CODE_WORD(k, 0) || k->frame > k->contexts)
		return script_stop(k, SCRIPT_MEMORY);
	return true;
}

/* Read the frame AT; its callers follow it. */
static __always_inline bool ruby_frame(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 at)
{
	__u64 offset = at - k->window_at, left = k->contexts - at;
	__u32 len;

	if (offset < k->window_len && offset + f->ruby.frame_bytes <= k->window_len) {
		k->frame_at = offset;
		return true;
	}
	k->window_len = 0;
	len = left < RUBY_WINDOW ? left : RUBY_WINDOW;
	barrier_var(len);
	len &= RUNTIME_WINDOW - 1;
	if (len < f->ruby.frame_bytes || script_read(task, k->window, len, at))
		return script_stop(k, SCRIPT_MEMORY);
	k->window_at = at;
	k->window_len = len;
	k->frame_at = 0;
	return true;
}

/* Objects are read into k->head: the stack has no room for them. */

/* Set text_at and text_len to those of string AT. */
static __always_inline bool ruby_string(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 at)
{
	__u32 flags;

	/* flags, class, length, pointer */
	if (!at || at & 7 || script_read(task, k->head, 32, at))
		return false;
	flags = k->head[0];
	if ((flags & RUBY_TYPE) != RUBY_STRING)
		return false;
	k->text_len = k->head[2];
	k->text_at = k->head[3];
	if (!(flags & RUBY_NOEMBED)) {
		k->text_at = at + (f->ruby.string_embedded ? f->ruby.string_embedded : 16);
		if (!f->ruby.string_embedded)
			k->text_len = flags >> 14 & 31;
	}
	return k->text_len < 1ULL << 31;
}

/* The address of element I of array AT, of which N are wanted. 0 if it has not so many, or is not an array.
 */
static __always_inline __u64 ruby_element(
	struct task_struct *task, struct script_walk *k, __u64 at, __u64 i, __u64 n)
{
	__u32 flags;

	/* flags, class, length, capacity, pointer; of a short one, the elements follow the class */
	if (!at || at & 7 || script_read(task, k->head, 40, at))
		return 0;
	flags = k->head[0];
	if ((flags & RUBY_TYPE) != RUBY_ARRAY)
		return 0;
	if (flags & RUBY_EMBED)
		return i + n <= (flags >> 15 & 127) ? at + 16 + i * 8 : 0;
	return i + n <= k->head[2] ? k->head[4] + i * 8 : 0;
}

/* Set text_at and text_len to the path's of the code that was read: it is alone, or the first of two. */
static __always_inline bool ruby_path(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f)
{
	__u64 at = CODE_WORD(k, RUBY_BODY_PATH), element = ruby_element(task, k, at, 0, 1);

	if (element && script_read(task, &at, 8, element))
		return false;
	return ruby_string(task, k, f, at);
}

/* Copy the end of the text that was found, of at most ROOM bytes, into k->object. */
static __always_inline bool ruby_end(struct task_struct *task, struct script_walk *k, __u32 to, __u32 room)
{
	__u64 len = k->text_len;
	__u32 n = len < room ? len : room;

	barrier_var(n);
	n &= 127; /* it is less; behind it is more of the same map */
	return !script_read(task, k->object + to, n, k->text_at + len - n);
}

/* mix(), at once: the stack has no room for the words that a compiler would keep for later. */
static __always_inline __u64 ruby_mix(__u64 hash, __u64 word)
{
	hash = mix(hash, word);
	barrier_var(hash);
	return hash;
}

/* Hash words FROM to END of k->object. */
static __always_inline __u64 ruby_hash(const struct script_walk *k, __u32 from, __u32 end)
{
	__u64 factor = hash_key[3] | 1, sum = 0;

	for (__u32 i = from; i < end; i++) {
		factor += 0x9e3779b97f4a7c16;
		sum += OBJECT_WORD(k, i) * factor;
		barrier_var(sum);
	}
	return sum ^ sum >> 32;
}

/* In k->object: a label's end, the beginning of a line table, and a path's end; of the latter two, the word.
 */
#define RUBY_LABEL_BYTES 80
#define RUBY_LINES 10
#define RUBY_LINES_BYTES 48
#define RUBY_PATH 16
#define RUBY_PATH_BYTES 48

/*
 * Read the body of an instruction sequence, and hash what identifies it: it is
 * freed with the sequence, and its memory is used again. Its fields are the
 * addresses of what else is allocated for it, and where its source begins and
 * ends. Strings may be moved, so their texts count and not their addresses. Of
 * a long one the end does: its length and all fields have to be the same too.
 * The body that was read last is remembered.
 */
static __always_inline bool ruby_body(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 body)
{
	__u64 hash, path, bytes;
	__u32 n;

	if (body && body == k->package)
		return true;
	k->package = 0;
	if (!body || body >> SCRIPT_AT_SHIFT || script_read(task, k->code_bytes, RUBY_BODY_BYTES, body))
		return script_stop(k, SCRIPT_MEMORY);
	hash = ruby_mix(k->seed, body);
	hash = ruby_mix(hash, CODE_WORD(k, 0)); /* type, size */
	hash = ruby_mix(hash, CODE_WORD(k, RUBY_BODY_ENCODED));
	hash = ruby_mix(hash, CODE_WORD(k, RUBY_BODY_FIRST_LINE));
	hash = ruby_mix(hash, CODE_WORD(k, RUBY_BODY_FIRST_LINE + 8));
	hash = ruby_mix(hash, CODE_WORD(k, RUBY_BODY_FIRST_LINE + 16));
	hash = ruby_mix(hash, CODE_WORD(k, f->ruby.body_insns));
	hash = ruby_mix(hash, CODE_INT(k, f->ruby.body_insns + 16)); /* size of it */
	hash = ruby_mix(hash, CODE_WORD(k, f->ruby.body_insns + 24)); /* succ_index_table */
	__builtin_memset(k->object, 0, sizeof(k->object));
	bytes = (__u64)CODE_INT(k, f->ruby.body_insns + 16) * f->ruby.line_bytes;
	n = bytes < RUBY_LINES_BYTES ? bytes : RUBY_LINES_BYTES;
	barrier_var(n);
	n &= 63;
	if (!ruby_string(task, k, f, CODE_WORD(k, RUBY_BODY_LABEL)) ||
		!ruby_end(task, k, 0, RUBY_LABEL_BYTES) ||
		script_read(task, k->object + RUBY_LINES * 8, n, CODE_WORD(k, f->ruby.body_insns)))
		return script_stop(k, SCRIPT_MEMORY);
	hash = ruby_mix(hash, k->text_len);
	hash = ruby_mix(hash, ruby_hash(k, 0, RUBY_PATH));
	path = CODE_WORD(k, RUBY_BODY_PATH);
	if (path != k->file) {
		if (!ruby_path(task, k, f) || !ruby_end(task, k, RUBY_PATH * 8, RUBY_PATH_BYTES))
			return script_stop(k, SCRIPT_MEMORY);
		k->file_hash = mix(k->text_len, ruby_hash(k, RUBY_PATH, SCRIPT_OBJECT_BYTES / 8));
		k->file = path;
	}
	k->package_head = mix(hash, k->file_hash);
	k->package = body;
	return true;
}

/* The id of the method of a C function's frame, whose entry is AT. 0 if that is not one. */
static __always_inline __u64 ruby_method(struct task_struct *task, struct script_walk *k, __u64 at)
{
	__u64 id = 0;
	__u32 flags;

	/* flags, class, definition; of special variables: flags, the entry */
	if (!at || script_read(task, k->head, 24, at))
		return 0;
	flags = k->head[0];
	if ((flags & RUBY_TYPE) == RUBY_IMEMO && RUBY_IMEMO_KIND(flags) == RUBY_IMEMO_SVAR) {
		at = k->head[1];
		if (script_read(task, k->head, 24, at))
			return 0;
		flags = k->head[0];
	}
	if ((flags & RUBY_TYPE) != RUBY_IMEMO || RUBY_IMEMO_KIND(flags) != RUBY_IMEMO_METHOD ||
		script_read(task, &id, 8, k->head[2] + RUBY_METHOD_ID))
		return 0;
	return id;
}

/* C functions without any caller in Ruby have this address as their code. */
#define RUBY_NO_CODE(k, f) ((k)->interpreter + (f)->state)

/*
 * Set the code and the check of a frame of BODY; of the C function with the
 * method ID that it calls, if ID is not 0. A method's id is used only once.
 */
static __always_inline bool ruby_code(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 body, __u64 id)
{
	__u64 hash = k->seed;

	if (body != RUBY_NO_CODE(k, f)) {
		if (!ruby_body(task, k, f, body))
			return false;
		hash = k->package_head;
	}
	hash = mix(hash, id);
	hash = (hash ^ hash >> 32) * (hash_key[3] | 1);
	k->code = body;
	k->check = hash >> SCRIPT_POSITION_BITS;
	return true;
}

/* A frame that is not of code in Ruby: look for what called it, or skip it. */
static __always_inline bool ruby_c_frame(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f)
{
	if (k->aside) {
		k->aside += f->ruby.frame_bytes;
		return true;
	}
	/* method entry, block, flags */
	if (script_read(task, k->head, 24, FRAME_WORD(k, RUBY_FRAME_EP) - 16))
		return script_stop(k, SCRIPT_MEMORY);
	if ((k->head[2] & RUBY_MAGIC) != RUBY_MAGIC_CFUNC) {
		k->frame += f->ruby.frame_bytes;
		return true;
	}
	k->cv = ruby_method(task, k, k->head[0]);
	if (!k->cv)
		return script_stop(k, SCRIPT_MEMORY);
	k->aside = k->frame + f->ruby.frame_bytes;
	return true;
}

/* The address of the body of the instruction sequence AT. 0 if it is none. */
static __always_inline __u64 ruby_iseq(struct task_struct *task, struct script_walk *k, __u64 at)
{
	__u32 flags;

	if (script_read(task, k->head, 24, at)) /* flags, wrapper, body */
		return 0;
	flags = k->head[0];
	return (flags & RUBY_TYPE) == RUBY_IMEMO && RUBY_IMEMO_KIND(flags) == RUBY_IMEMO_ISEQ ? k->head[2]
											      : 0;
}

/* The position in the code that was read: the instruction that follows, in words. */
static __always_inline __u32 ruby_position(const struct script_walk *k, __u64 pc)
{
	__u64 at = (pc - CODE_WORD(k, RUBY_BODY_ENCODED)) / 8;

	return at <= CODE_INT(k, RUBY_BODY_SIZE) && at < SCRIPT_POSITION_NONE ? at : SCRIPT_POSITION_NONE;
}

static __always_inline bool ruby_step(
	struct task_struct *task, struct scratch *s, const struct runtime_file *f)
{
	struct script_walk *k = &s->script;
	__u64 frame = k->aside ? k->aside : k->frame, iseq, pc = 0, body, flags = 0, id = 0;
	__u32 call = k->call, at;
	bool outer;

	if (frame < k->contexts) {
		if (!ruby_frame(task, k, f, frame))
			return false;
		iseq = FRAME_WORD(k, RUBY_FRAME_ISEQ);
		pc = FRAME_WORD(k, RUBY_FRAME_PC);
		if (!iseq || !pc)
			return ruby_c_frame(task, k, f);
		body = ruby_iseq(task, k, iseq);
		if (!k->aside && script_read(task, &flags, 8, FRAME_WORD(k, RUBY_FRAME_EP)))
			return script_stop(k, SCRIPT_MEMORY);
	} else {
		if (!k->aside) {
			k->frame = 0;
			if (s->walk.verdict == VERDICT_UNVERIFIED)
				k->call = k->n_calls;
			return false;
		}
		body = RUBY_NO_CODE(k, f);
	}
	if (k->aside)
		id = k->cv;
	/*
	 * Frames that a JIT compiler's code executes need no call of vm_exec_core(): only their own order is
	 * known, so all follow the outermost native one.
	 */
	if (s->walk.verdict == VERDICT_UNVERIFIED) {
		call = k->n_calls - 1;
		flags = 0;
	}
	/* no call of vm_exec_core() is left: C functions that were called from C, or the native walk ended
	 * early
	 */
	outer = call >= k->n_calls;
	if (outer && (!id || s->walk.verdict != VERDICT_COMPLETE)) {
		k->beyond = 1;
		return false;
	}
	at = outer ? s->walk.len - 1 : k->calls[call & (OFFCPU_DEPTH_MAX - 1)];
	if (id && !outer) {
		if (!at) { /* it has not begun, or has ended */
			k->aside = 0;
			k->frame += f->ruby.frame_bytes;
			return true;
		}
		at -= s->walk.verdict != VERDICT_UNVERIFIED;
	}
	if (!ruby_code(task, k, f, body, id))
		return false;
	k->hints[s->ev.scripts & (OFFCPU_SCRIPTS_MAX - 1)] = id;
	if (!script_add(s, k->code, at, pc ? ruby_position(k, pc) : SCRIPT_POSITION_NONE))
		return false;
	k->aside = 0;
	k->frame += f->ruby.frame_bytes;
	if (!id && flags & RUBY_FINISH)
		k->call = call + 1;
	return true;
}

/* Is the event's code, called by it with the method id HINT, still that of its check? Reads it. */
static __always_inline bool ruby_is(struct task_struct *task, struct script_walk *k,
	const struct runtime_file *f, const struct offcpu_ev_code *ev, __u64 hint)
{
	return ruby_code(task, k, f, ev->code, hint) && k->check == ev->check;
}

/* The string with the name of ID; 0 = not found. The symbol beside it proves that it is. */
static __always_inline __u64 ruby_symbol(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 id)
{
	__u64 serial = id <= f->ruby.operators ? id : id >> 4, at, symbol;

	/* the table by texts, the array of arrays of names by number */
	if (!f->ruby.symbols || script_read(task, &at, 8, k->interpreter + f->ruby.symbols + 8))
		return 0;
	at = ruby_element(task, k, at, serial / RUBY_IDS, 1);
	if (!at || script_read(task, &at, 8, at))
		return 0;
	at = ruby_element(task, k, at, serial % RUBY_IDS * 2, 2);
	if (!at || script_read(task, k->head, 16, at))
		return 0;
	at = k->head[0];
	symbol = k->head[1];
	if (symbol == (id << 8 | 12))
		return at;
	/* one that was made at run time has its id in RSymbol.id */
	if (!symbol || symbol & 7 || script_read(task, &symbol, 8, symbol + 32) || symbol != id)
		return 0;
	return at;
}

/*
 * The line table of the code that was read: the size of the code in words, the
 * number of entries, the index (succ_index_table), and the entries.
 */
static __always_inline void ruby_lines(struct task_struct *task, const struct script_walk *k,
	const struct runtime_file *f, struct offcpu_ev_code *ev)
{
	__u32 size = CODE_INT(k, RUBY_BODY_SIZE), n = CODE_INT(k, f->ruby.body_insns + 16);
	__u64 succ = size < 54 ? (size + 8) / 9 * 8 : 48 + ((__u64)size - 54 + 511) / 512 * 80, bytes;
	__u32 index, len;

	ev->lines_all = ~0U;
	if (n <= 1)
		succ = 0;
	bytes = (__u64)n * f->ruby.line_bytes;
	if (succ > RUBY_SUCC_MAX || bytes > 0x7fffffff)
		return;
	*(__u32 *)ev->lines = size;
	*(__u32 *)(ev->lines + 4) = n;
	index = succ;
	barrier_var(index);
	index &= 4095;
	if (script_read(task, ev->lines + 8, index, CODE_WORD(k, f->ruby.body_insns + 24)))
		return;
	len = bytes < 8184 ? bytes : 8184;
	barrier_var(len);
	len &= 8191;
	if (script_read(task, ev->lines + 8 + index, len, CODE_WORD(k, f->ruby.body_insns)))
		return;
	ev->lines_all = 8 + index + bytes;
	ev->lines_bytes = 8 + index + len;
}

static __always_inline void ruby_names(struct task_struct *task, struct script_walk *k,
	const struct runtime_file *f, struct offcpu_ev_code *ev, __u64 hint)
{
	__u64 name;

	ev->name_kind = ev->file_kind = SCRIPT_UNREADABLE;
	ev->name_bytes = ev->file_bytes = 0;
	ev->first_line = 0;
	ev->lines_bytes = ev->lines_all = 0;
	name = hint ? ruby_symbol(task, k, f, hint) : CODE_WORD(k, RUBY_BODY_LABEL);
	if (ruby_string(task, k, f, name))
		ev->name_kind = script_text(
			task, k->text_at, k->text_len, ev->name, SCRIPT_NAME_BYTES, &ev->name_bytes);
	if (ev->code == RUBY_NO_CODE(k, f))
		return;
	if (ruby_path(task, k, f))
		ev->file_kind = script_text(
			task, k->text_at, k->text_len, ev->file, SCRIPT_FILE_BYTES, &ev->file_bytes);
	ev->first_line = CODE_INT(k, RUBY_BODY_FIRST_LINE) >> (f->ruby.first_line_shift & 31);
	ruby_lines(task, k, f, ev);
}

#endif
