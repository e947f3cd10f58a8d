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
	__u64 at = k->thread, slot[2] = { 0, 0 }; /* number of the block, offset in it */

	if (f->ruby.thread_way == RUBY_THREAD_KEY) {
		if (script_read(task, slot, 4, bias + f->state)) {
			script_stop(k, SCRIPT_MEMORY);
			return 0;
		}
		return thread_value(task, k, slot[0]);
	}
	if (f->ruby.thread_way == RUBY_THREAD_MODULE) {
		/* glibc: the descriptor's second word is the vector of blocks, 16 bytes each */
		if (script_read(task, slot, sizeof(slot), bias + f->state) || slot[0] - 1 >= 4096 ||
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
	__u64 thread = ruby_thread(task, k, f, bias), ec, id, end;

	if (!thread)
		return false;
	if (script_read(task, k->code_bytes, RUBY_THREAD_BYTES, thread))
		return script_stop(k, SCRIPT_THREAD);
	ec = CODE_WORD(k, f->ruby.thread_ec);
	id = CODE_WORD(k, f->ruby.thread_id);
	if (f->ruby.thread_native &&
		script_read(task, &id, 8, CODE_WORD(k, f->ruby.thread_native) + f->ruby.thread_id))
		return script_stop(k, SCRIPT_THREAD);
	if (id != k->thread)
		return script_stop(k, SCRIPT_THREAD);
	if (!ec)
		return false;
	if (script_read(task, k->code_bytes, RUBY_EC_BYTES, ec) || CODE_WORD(k, f->ruby.ec_thread) != thread)
		return script_stop(k, SCRIPT_THREAD);
	/* the stack, its size in words, the innermost frame; the outermost one is not a call */
	end = CODE_WORD(k, 0) + CODE_WORD(k, 8) * 8 - f->ruby.frame_bytes;
	k->frame = CODE_WORD(k, 16);
	if (k->frame < CODE_WORD(k, 0) || k->frame > end)
		return script_stop(k, SCRIPT_MEMORY);
	k->contexts = end;
	k->interpreter = bias;
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

struct ruby_text {
	__u64 at, len;
};

/* Where the text of string AT is. */
static __always_inline bool ruby_string(
	struct task_struct *task, const struct runtime_file *f, __u64 at, struct ruby_text *ret)
{
	__u64 head[4]; /* flags, class, length, pointer */
	__u32 flags;

	if (!at || at & 7 || script_read(task, head, sizeof(head), at))
		return false;
	flags = head[0];
	if ((flags & RUBY_TYPE) != RUBY_STRING)
		return false;
	ret->len = head[2];
	ret->at = head[3];
	if (!(flags & RUBY_NOEMBED)) {
		ret->at = at + (f->ruby.string_embedded ? f->ruby.string_embedded : 16);
		if (!f->ruby.string_embedded)
			ret->len = flags >> 14 & 31;
	}
	return ret->len < 1ULL << 31;
}

/* The address of element I of array AT, of which N are wanted. 0 if it has not so many, or is not an array.
 */
static __always_inline __u64 ruby_element(struct task_struct *task, __u64 at, __u64 i, __u64 n)
{
	__u64 head[5]; /* flags, class, length, capacity, pointer; if it is short, its elements follow the
			* class
			*/
	__u32 flags;

	if (!at || at & 7 || script_read(task, head, sizeof(head), at))
		return 0;
	flags = head[0];
	if ((flags & RUBY_TYPE) != RUBY_ARRAY)
		return 0;
	if (flags & RUBY_EMBED)
		return i + n <= (flags >> 15 & 127) ? at + 16 + i * 8 : 0;
	return i + n <= head[2] ? head[4] + i * 8 : 0;
}

/* The string with the path of the code that was read: it is alone, or the first of two. */
static __always_inline bool ruby_path(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, struct ruby_text *ret)
{
	__u64 at = CODE_WORD(k, RUBY_BODY_PATH), element;

	if (ruby_string(task, f, at, ret))
		return true;
	element = ruby_element(task, at, 0, 1);
	return element && !script_read(task, &at, 8, element) && ruby_string(task, f, at, ret);
}

/*
 * Read the body of an instruction sequence, and hash what identifies it: it is
 * freed with the sequence, and its memory is used again. Strings may be moved,
 * so their texts count and not their addresses. The body that was read last
 * is remembered.
 */
static __always_inline bool ruby_body(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 body)
{
	__u64 hash, piece, path;
	struct ruby_text text;

	if (body && body == k->package)
		return true;
	k->package = 0;
	if (!body || body >> SCRIPT_AT_SHIFT || script_read(task, k->code_bytes, RUBY_BODY_BYTES, body))
		return script_stop(k, SCRIPT_MEMORY);
	hash = mix(k->seed, body);
	hash = mix(hash, CODE_WORD(k, 0)); /* type, size */
	hash = mix(hash, CODE_WORD(k, RUBY_BODY_ENCODED));
	hash = mix(hash, CODE_WORD(k, RUBY_BODY_FIRST_LINE));
	hash = mix(hash, CODE_WORD(k, RUBY_BODY_FIRST_LINE + 8));
	hash = mix(hash, CODE_WORD(k, RUBY_BODY_FIRST_LINE + 16));
	hash = mix(hash, CODE_WORD(k, f->ruby.body_insns));
	hash = mix(hash, CODE_WORD(k, f->ruby.body_insns + 24)); /* succ_index_table */
	path = CODE_WORD(k, RUBY_BODY_PATH);
	for (int i = 0; i < 3; i++) {
		bool ok = true;

		if (i == 0) {
			text.at = CODE_WORD(k, f->ruby.body_insns);
			text.len = (__u64)CODE_INT(k, f->ruby.body_insns + 16) * f->ruby.line_bytes;
		} else if (i == 1) {
			ok = ruby_string(task, f, CODE_WORD(k, RUBY_BODY_LABEL), &text);
		} else if (path == k->file) {
			break;
		} else {
			ok = ruby_path(task, k, f, &text);
		}
		if (!ok)
			return script_stop(k, SCRIPT_MEMORY);
		piece = hash_text(task, k, text.at, text.len, text.len);
		if (k->reason)
			return false;
		if (i < 2) {
			hash = mix(hash, piece);
		} else {
			k->file = path;
			k->file_hash = piece;
		}
	}
	k->package_head = mix(hash, k->file_hash);
	k->package = body;
	return true;
}

/* The id of the method of a C function's frame, whose entry is AT. 0 if that is not one. */
static __always_inline __u64 ruby_method(struct task_struct *task, __u64 at)
{
	__u64 head[3]; /* of the entry: flags, class, definition; of special variables: flags, the entry */
	__u64 id = 0;
	__u32 flags;

	if (!at || script_read(task, head, sizeof(head), at))
		return 0;
	flags = head[0];
	if ((flags & RUBY_TYPE) == RUBY_IMEMO && RUBY_IMEMO_KIND(flags) == RUBY_IMEMO_SVAR) {
		if (script_read(task, head, sizeof(head), head[1]))
			return 0;
		flags = head[0];
	}
	if ((flags & RUBY_TYPE) != RUBY_IMEMO || RUBY_IMEMO_KIND(flags) != RUBY_IMEMO_METHOD ||
		script_read(task, &id, 8, head[2] + RUBY_METHOD_ID))
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
	__u64 env[3]; /* method entry, block, flags */

	if (k->aside) {
		k->aside += f->ruby.frame_bytes;
		return true;
	}
	if (script_read(task, env, sizeof(env), FRAME_WORD(k, RUBY_FRAME_EP) - 16))
		return script_stop(k, SCRIPT_MEMORY);
	if ((env[2] & RUBY_MAGIC) != RUBY_MAGIC_CFUNC) {
		k->frame += f->ruby.frame_bytes;
		return true;
	}
	k->cv = ruby_method(task, env[0]);
	if (!k->cv)
		return script_stop(k, SCRIPT_MEMORY);
	k->aside = k->frame + f->ruby.frame_bytes;
	return true;
}

/* The address of the body of the instruction sequence AT. 0 if it is none. */
static __always_inline __u64 ruby_iseq(struct task_struct *task, __u64 at)
{
	__u64 head[3]; /* flags, wrapper, body */
	__u32 flags;

	if (script_read(task, head, sizeof(head), at))
		return 0;
	flags = head[0];
	return (flags & RUBY_TYPE) == RUBY_IMEMO && RUBY_IMEMO_KIND(flags) == RUBY_IMEMO_ISEQ ? head[2] : 0;
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
		body = ruby_iseq(task, iseq);
		if (!k->aside && script_read(task, &flags, 8, FRAME_WORD(k, RUBY_FRAME_EP)))
			return script_stop(k, SCRIPT_MEMORY);
	} else {
		if (!k->aside) {
			k->frame = 0;
			return false;
		}
		body = RUBY_NO_CODE(k, f);
	}
	if (k->aside)
		id = k->cv;
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
		at--;
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
	struct task_struct *task, const struct script_walk *k, const struct runtime_file *f, __u64 id)
{
	__u64 serial = id <= f->ruby.operators ? id : id >> 4, ids[2], at, pair[2], symbol;

	if (!f->ruby.symbols || script_read(task, ids, sizeof(ids), k->interpreter + f->ruby.symbols))
		return 0;
	at = ruby_element(task, ids[1], serial / RUBY_IDS, 1);
	if (!at || script_read(task, &at, 8, at))
		return 0;
	at = ruby_element(task, at, serial % RUBY_IDS * 2, 2);
	if (!at || script_read(task, pair, sizeof(pair), at))
		return 0;
	symbol = pair[1];
	if (symbol == (id << 8 | 12))
		return pair[0];
	/* one that was made at run time has its id in RSymbol.id */
	if (!symbol || symbol & 7 || script_read(task, &symbol, 8, symbol + 32) || symbol != id)
		return 0;
	return pair[0];
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
	struct ruby_text text;
	__u64 name;

	ev->name_kind = ev->file_kind = SCRIPT_UNREADABLE;
	ev->name_bytes = ev->file_bytes = 0;
	ev->first_line = 0;
	ev->lines_bytes = ev->lines_all = 0;
	name = hint ? ruby_symbol(task, k, f, hint) : CODE_WORD(k, RUBY_BODY_LABEL);
	if (ruby_string(task, f, name, &text))
		ev->name_kind =
			script_text(task, text.at, text.len, ev->name, SCRIPT_NAME_BYTES, &ev->name_bytes);
	if (ev->code == RUBY_NO_CODE(k, f))
		return;
	if (ruby_path(task, k, f, &text))
		ev->file_kind =
			script_text(task, text.at, text.len, ev->file, SCRIPT_FILE_BYTES, &ev->file_bytes);
	ev->first_line = CODE_INT(k, RUBY_BODY_FIRST_LINE) >> (f->ruby.first_line_shift & 31);
	ruby_lines(task, k, f, ev);
}

#endif
