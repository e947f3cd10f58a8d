/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frames of CPython. Part of offcpu.bpf.c; the offsets come from
 * lib/record/python.c, which names their sources.
 *
 * A blocked thread has released the interpreter's lock, so no "current thread"
 * leads to it. Its state is the value of a key of thread-specific data, which
 * glibc keeps in the thread's descriptor: nptl/descr.h, struct pthread. That
 * the state belongs to this thread is proved by the thread's own pointer in it.
 *
 * The state leads to the innermost frame, each frame to its caller. One call of
 * the evaluation function executes several of them since 3.11: up to the one
 * with is_entry (3.11), or up to a frame without code that lies on the C stack
 * (3.12 and later). So the native frames of the evaluation function and these
 * groups belong together one by one, which proves both.
 */
#ifndef STACKTOOLS_PYTHON_BPF_H
#define STACKTOOLS_PYTHON_BPF_H

#define PYTHON_THREAD_BYTES 192 /* of a thread's state, in code_bytes */

/* Read the thread's state. False: it has none, or the reason says why it cannot be known. */
static __always_inline bool python_thread(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 bias)
{
	__u32 key[2] = { 0, 0 }; /* Py_tss_t: is initialized, pthread_key_t */
	__u64 state;

	if (script_read(task, key, sizeof(key), bias + f->state + f->state_key))
		return script_stop(k, SCRIPT_MEMORY);
	if (!key[0])
		return false;
	state = thread_value(task, k, key[1]);
	if (!state)
		return false;
	if (script_read(task, k->code_bytes, PYTHON_THREAD_BYTES, state) ||
		CODE_WORD(k, f->thread_id) != k->thread)
		return script_stop(k, SCRIPT_THREAD);
	/* a process may end its interpreter and begin another one */
	k->base = mix(k->seed, k->key_serial);
	return true;
}

/*
 * Does the process have other interpreters than the main one? Their threads
 * have states of their own. As long as the native stack is complete, the number of
 * its calls proves that the frames are those of the right state; a stack that
 * was cut proves less.
 */
static __always_inline bool python_alone(struct task_struct *task, const struct runtime_file *f, __u64 bias)
{
	__u64 newest[2] = { 0, 0 };

	return !script_read(task, newest, sizeof(newest), bias + f->state + f->state_interpreters) &&
	       newest[0] && newest[0] == newest[1];
}

/*
 * What is known of code objects, by address: then nothing of them is read again.
 *
 * CPython 3.12 and later count the code objects that are made. As long as that number is the same as before
 * a code object was read, none can have taken its place. Where each interpreter counts its own, only for the
 * main one, which no other one replaces: the seed differs when it is ended and begun again.
 *
 * CPython 3.11 gives a function that is called often a version number, which no other function gets, and
 * takes it back when the function's code is replaced. A function with the same number has held the
 * same code object all the time, so that none can have taken its place.
 */
#define PYTHON_KNOWN 512

struct python_known {
	__u64 code, seed, check;
	__u32 stamp, begun; /* that number */
};

struct python_knowns {
	struct python_known of[PYTHON_KNOWN];
};

/* Used by the switch program, which nothing interrupts. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct python_knowns);
} python_known SEC(".maps");

static __always_inline struct python_known *python_known_at(
	struct python_knowns *all, const struct script_walk *k, __u64 code)
{
	__u64 hash = (k->seed ^ code) * 0x9e3779b97f4a7c15;

	return &all->of[hash >> 40 & (PYTHON_KNOWN - 1)];
}

static __always_inline void python_count(struct task_struct *task, struct script_walk *k,
	const struct runtime_file *f, __u64 bias, __u64 interpreter)
{
	__u64 state = bias + f->state;

	k->counter = 0;
	if (task || !f->state_counter || (f->state_main && interpreter != state + f->state_main))
		return;
	if (script_read(NULL, &k->counter, 4, state + (__s64)f->state_counter))
		k->counter = 0;
}

/*
 * The frames that follow are of this interpreter. Where each one numbers its own code
 * objects, those of another one, which ended, may have had the same address and number:
 * the seed differs, as no number of an interpreter is used twice.
 */
static __always_inline bool python_interpreter(struct task_struct *task, struct script_walk *k,
	const struct runtime_file *f, __u64 bias, __u64 interpreter)
{
	__u64 id = 0;

	k->seed = k->base;
	k->code = ~0ULL;
	if ((f->flags & PYTHON_OWN_VERSIONS) &&
		!(f->state_main && interpreter == bias + f->state + f->state_main)) {
		if (script_read(task, &id, 8, interpreter + f->interpreter_id))
			return script_stop(k, SCRIPT_MEMORY);
		k->seed = mix(k->seed, id + 1);
	}
	python_count(task, k, f, bias, interpreter);
	return true;
}

/* Find the innermost frame. False if there is none. */
static __always_inline bool python_begin(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 bias)
{
	if (!python_thread(task, k, f, bias))
		return false;
	k->frame = CODE_WORD(k, f->thread_frame);
	if ((f->flags & PYTHON_CFRAME) && script_read(task, &k->frame, 8, k->frame + f->cframe_frame))
		return script_stop(k, SCRIPT_MEMORY);
	return python_interpreter(task, k, f, bias, CODE_WORD(k, f->thread_interpreter)) && k->frame;
}

/* Read the next frame, and its callers unless frames are objects. */
static __always_inline bool python_frame(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f)
{
	return read_frame(
		task, k, f->frame_bytes & (RUNTIME_FRAME_BYTES - 1), f->flags & PYTHON_FRAME_OBJECT);
}

/* Read an object as far as SCRIPT_OBJECT_BYTES, but nothing beyond the page that a short one ends in. */
static __always_inline bool read_object(struct task_struct *task, struct script_walk *k, __u64 at)
{
	__u32 len = 4096 - (at & 4095);

	if (len < 56)
		len = 56;
	if (len >= SCRIPT_OBJECT_BYTES)
		len = SCRIPT_OBJECT_BYTES;
	else
		clear_words(task, k);
	return !script_read(task, k->object, len, at) || script_stop(k, SCRIPT_MEMORY);
}

#define PYTHON_HEAD 4 /* words that strings and bytes begin with: reference count, type, length, hash */
#define PYTHON_NOT_HASHED (~0ULL)

/* What a code object refers to. */
enum python_text { PYTHON_FILE = 1, PYTHON_NAME = 2, PYTHON_LINES = 4 };

/* The secret part of word_hash(). */
struct word_key {
	__u64 flip, factor;
};

/* What word number N adds to a sum that is a hash. These do not wait for each other. */
static __always_inline __u64 word_hash(struct word_key key, __u64 word, __u32 n)
{
	word = (word ^ key.flip) * (key.factor + n * 0x9e3779b97f4a7c16ULL);
	return word ^ word >> 32;
}

#define PYTHON_TEXT 6 /* the first word of every string's text */

/* Add what the words of the object that was read, from FIRST to LAST, add to a sum. */
static __always_inline __u64 python_words(
	const struct script_walk *k, struct word_key key, __u64 sum, __u32 first, __u32 last)
{
	for (__u32 i = first; i <= last; i++)
		sum += word_hash(key, OBJECT_WORD(k, i), i);
	return sum;
}

static __always_inline __u64 python_text_words(const struct script_walk *k, __u64 sum)
{
	struct word_key key = { hash_key[2], hash_key[3] | 1 };

	return python_words(k, key, sum, PYTHON_TEXT, SCRIPT_OBJECT_BYTES / 8 - 1);
}

COMPUTED(python_text_words)

/* A sum that stands for what the object that was read holds: its length, and its own hash or its text from
 * word FIRST on. That excludes what CPython changes later (reference count, interned state). */
static __always_inline __u64 object_sum(
	struct task_struct *task, const struct script_walk *k, struct word_key key, __u32 first)
{
	__u64 sum = word_hash(key, OBJECT_WORD(k, 2), 0);

	if (OBJECT_WORD(k, 3) != PYTHON_NOT_HASHED)
		return sum + word_hash(key, OBJECT_WORD(k, 3), 1);
	if (task)
		return other_python_text_words(python_words(k, key, sum, first, PYTHON_TEXT - 1));
	return python_words(k, key, sum, first, SCRIPT_OBJECT_BYTES / 8 - 1);
}

/*
 * Sum up the text of kind WHAT. What is interned, or was compiled in the process, has its own hash: then the
 * beginning of the object is enough. Line tables of modules from files, and names of methods, have none: if
 * the one before had none, all is read at once.
 */
static __always_inline __u64 sum_text_of(
	struct task_struct *task, struct script_walk *k, struct word_key key, __u64 at, enum python_text what)
{
	bool whole = k->unhashed & what;

	if (!whole && script_read(task, k->object, PYTHON_HEAD * 8, at)) {
		k->reason = SCRIPT_MEMORY;
		return 0;
	}
	if ((whole || OBJECT_WORD(k, 3) == PYTHON_NOT_HASHED) && !read_object(task, k, at))
		return 0;
	if (OBJECT_WORD(k, 3) == PYTHON_NOT_HASHED)
		k->unhashed |= what;
	else
		k->unhashed &= ~what;
	return object_sum(task, k, key,
		what == PYTHON_LINES ? 4 : PYTHON_TEXT); /* a bytes object's data begin earlier */
}

/*
 * Read the code object at CODE and sum up what identifies it. A code object without a
 * version number, which is used only once, differs from a later one at the same
 * address in what it refers to, and in its names and its line table: in their hashes or in how they begin.
 * Sets the reason if it is not readable.
 */
static __always_inline __u64 python_code_sum(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 code)
{
	__u32 from = f->code_from & 31, len = f->code_bytes & (RUNTIME_CODE_BYTES - 1);
	struct word_key key = { hash_key[2], hash_key[3] | 1 };
	__u64 sum = 0, file;

	if (code >> SCRIPT_AT_SHIFT || script_read(task, k->code_bytes + from, len, code + from)) {
		k->reason = SCRIPT_MEMORY;
		return 0;
	}
	for (int i = 0; i < PYTHON_IDENTITY; i++)
		sum += word_hash(key, CODE_WORD(k, f->identity[i]), i);
	if ((f->flags & PYTHON_CODE_VERSION) && CODE_INT(k, f->code_version))
		return sum;
	file = CODE_WORD(k, f->code_file);
	if (file != k->file) {
		k->file_hash = sum_text_of(task, k, key, file, PYTHON_FILE);
		k->file = file;
	}
	sum += word_hash(key, k->file_hash, PYTHON_IDENTITY);
	sum += word_hash(
		key, sum_text_of(task, k, key, CODE_WORD(k, f->code_name), PYTHON_NAME), PYTHON_IDENTITY + 1);
	sum += word_hash(key, sum_text_of(task, k, key, CODE_WORD(k, f->code_lines), PYTHON_LINES),
		PYTHON_IDENTITY + 2);
	return sum;
}

/* Read the code object at CODE and compute its check. */
static __always_inline bool python_code(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 code)
{
	__u64 sum = python_code_sum(task, k, f, code), hash;

	hash = mix(mix(k->seed, code), sum ^ sum >> 32);
	hash = (hash ^ hash >> 32) * (hash_key[3] | 1);
	k->code = code;
	k->check = hash >> SCRIPT_POSITION_BITS;
	k->begun = f->code_begun ? CODE_INT(k, f->code_begun) : 0;
	return k->reason == SCRIPT_NONE;
}

/* The position of the frame that was read, in code units. */
static __always_inline __u32 python_position(
	const struct script_walk *k, const struct runtime_file *f, __u64 code)
{
	__u64 at;

	if (f->flags & PYTHON_FRAME_OBJECT) {
		at = (__s64)(__s32)FRAME_INT(k, f->frame_position);
		if ((f->flags & PYTHON_POSITION_BYTES) && (__s64)at >= 0)
			at >>= 1;
	} else {
		at = (FRAME_WORD(k, f->frame_position) - code - f->code_start) >> 1;
	}
	return at < SCRIPT_POSITION_NONE ? at : SCRIPT_POSITION_NONE;
}

/* Is it a frame of CPython's own that makes an object with `__init__`? Its tracebacks do not show it either.
 */
static __always_inline bool python_is_hidden(
	const struct script_walk *k, const struct runtime_file *f, __u32 position)
{
	return f->code_begun && !FRAME_BYTE(k, f->frame_owner) && position < k->begun;
}

/* For current: global functions, which the verifier checks once. */
__noinline int python_own_frame(void)
{
	struct scratch *s = my_scratch();
	const struct runtime_file *f = s ? runtime_of(&s->walk) : NULL;

	return WATCHED(RUNTIME_PYTHON) && f && python_frame(NULL, &s->script, f);
}

/* Read the function of current's frame, and its neighbours if its caller's function is one. */
__noinline int python_own_functions(void)
{
	struct scratch *s = my_scratch();
	const struct runtime_file *f = s ? runtime_of(&s->walk) : NULL;
	struct python_near *near;
	struct script_walk *k;
	__u64 at, caller;

	if (!WATCHED(RUNTIME_PYTHON) || !f)
		return false;
	k = &s->script;
	near = &k->near;
	at = FRAME_WORD(k, f->frame_function) + f->function_code;
	caller = FRAME_WORD(k, f->frame_back) - k->window_at;
	if (caller < k->window_len && caller + f->frame_bytes <= k->window_len) {
		caller = WINDOW_WORD(k, caller + f->frame_function) + f->function_code;
		near->at = caller > at ? at : at - (PYTHON_NEAR - 8);
		near->starts = PYTHON_NEAR;
		if (caller != at && caller - near->at < PYTHON_NEAR &&
			!script_read(NULL, near->bytes, PYTHON_NEAR - 8 + PYTHON_FUNCTION_BYTES, near->at))
			return true;
	}
	near->at = at;
	near->starts = 8;
	if (!script_read(NULL, near->bytes, PYTHON_FUNCTION_BYTES, at))
		return true;
	near->starts = 0;
	return false;
}

/* The number that tells that the code object at CODE, of current's frame, is the one that was read; 0 = none.
 */
static __always_inline __u32 python_stamp(struct script_walk *k, const struct runtime_file *f, __u64 code)
{
	const struct python_near *near = &k->near;
	const __u8 *function;
	__u64 at;

	if (!(f->flags & PYTHON_FUNCTION_VERSION))
		return k->counter;
	at = FRAME_WORD(k, f->frame_function) + f->function_code;
	if (at - near->at >= near->starts && !python_own_functions())
		return 0;
	at -= near->at;
	barrier_var(at);
	function = near->bytes + (at & (PYTHON_NEAR - 8));
	return *(const __u64 *)function == code ? *(const __u32 *)(function + (f->function_version & 124))
						: 0;
}

/* Note the stamp of the code object at CODE, which is about to be read. */
__noinline int python_own_stamp(__u64 code)
{
	struct scratch *s = my_scratch();
	const struct runtime_file *f = s ? runtime_of(&s->walk) : NULL;

	if (!WATCHED(RUNTIME_PYTHON) || !f)
		return false;
	s->script.stamp = python_stamp(&s->script, f, code);
	return true;
}

/* Is the code object at CODE still the one that was read? */
static __always_inline bool python_knows(
	struct script_walk *k, const struct runtime_file *f, struct python_knowns *all, __u64 code)
{
	const struct python_known *known;

	if (!all)
		return false;
	known = python_known_at(all, k, code);
	if (known->code != code || known->seed != k->seed || !known->stamp ||
		known->stamp != python_stamp(k, f, code))
		return false;
	k->code = code;
	k->check = known->check;
	k->begun = known->begun;
	return true;
}

/* Read the code object at CODE; its stamp in the scratch, if it has one, tells for how long that will be
 * known. */
__noinline int python_own_code(__u64 code)
{
	struct scratch *s = my_scratch();
	const struct runtime_file *f = s ? runtime_of(&s->walk) : NULL;
	struct python_known *known;
	struct python_knowns *all;
	struct script_walk *k;
	__u32 zero = 0;

	if (!WATCHED(RUNTIME_PYTHON) || !f)
		return false;
	k = &s->script;
	if (!python_code(NULL, k, f, code))
		return false;
	/* an object that is there was counted: else this is not the counter */
	if (k->counter && CODE_INT(k, f->code_version) >= k->counter)
		k->counter = k->stamp = 0;
	if (!k->stamp)
		return true;
	all = bpf_map_lookup_elem(&python_known, &zero);
	if (!all)
		return false;
	known = python_known_at(all, k, code);
	known->code = code;
	known->seed = k->seed;
	known->check = k->check;
	known->stamp = k->stamp;
	known->begun = k->begun;
	return true;
}

/* Read the code object at CODE of the frame. */
static __always_inline bool python_frame_code(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 code)
{
	if (task)
		return python_code(task, k, f, code);
	return python_own_stamp(code) && python_own_code(code);
}

/* Walk one frame. False if there are no more, or the reason is set. */
static __always_inline bool python_step(
	struct task_struct *task, struct scratch *s, const struct runtime_file *f, struct python_knowns *all)
{
	struct script_walk *k = &s->script;
	__u32 call = k->call, at, position;
	__u64 code, back;

	if (!has_frame(k, f->frame_bytes & (RUNTIME_FRAME_BYTES - 1)) &&
		!(task ? python_frame(task, k, f) : python_own_frame()))
		return false;
	back = FRAME_WORD(k, f->frame_back);
	if (call >= k->n_calls) {
		k->beyond = 1;
		return false;
	}
	if ((f->flags & PYTHON_SHIM) && FRAME_BYTE(k, f->frame_owner) >= PYTHON_OWNER_CSTACK) {
		k->call = call + 1;
		k->frame = back;
		return true;
	}
	code = FRAME_WORD(k, f->frame_code) & ~3ULL; /* 3.14 marks references that are not counted */
	if (code != k->code && !python_knows(k, f, all, code) && !python_frame_code(task, k, f, code))
		return false;
	at = k->calls[call & (OFFCPU_DEPTH_MAX - 1)];
	position = python_position(k, f, code);
	if (!python_is_hidden(k, f, position) && !script_add(s, code, at, position))
		return false;
	if ((f->flags & PYTHON_FRAME_OBJECT) ||
		((f->flags & PYTHON_ENTRY_FLAG) && FRAME_BYTE(k, f->frame_owner)))
		k->call = call + 1;
	k->frame = back;
	return true;
}

#define PYTHON_STEPS 4 /* frames at once */

/* Walk the next frames of current. False if there are no more, or the reason is set. */
static __always_inline bool python_own_steps(struct scratch *s, const struct runtime_file *f)
{
	struct python_knowns *all;
	__u32 zero = 0;

	all = bpf_map_lookup_elem(&python_known, &zero);
	for (int i = 0; i < PYTHON_STEPS; i++)
		if (!s->script.frame || s->ev.scripts >= depth || s->ev.scripts >= OFFCPU_SCRIPTS_MAX ||
			!python_step(NULL, s, f, all))
			return false;
	return true;
}

/* Read string AT, whose data the interpreter stores as F says. Returns its kind; *BYTES is its length. */
static __always_inline __u8 python_string(
	struct task_struct *task, const struct runtime_file *f, __u64 at, __u8 *to, __u32 size, __u16 *bytes)
{
	__u64 head[5]; /* PyASCIIObject: reference count, type, length, hash, state */
	__u32 state, width, len;
	__u8 kind;

	*bytes = 0;
	if (script_read(task, head, sizeof(head), at))
		return SCRIPT_UNREADABLE;
	state = head[4];
	width = state >> 2 & 7;
	/* compact: the data follow the header */
	if (!(state & 0x20) || (width != 1 && width != 2 && width != 4) || head[2] >= size / width)
		return SCRIPT_UNREADABLE;
	kind = state & 0x40 ? SCRIPT_ASCII
	       : width == 1 ? SCRIPT_LATIN1
	       : width == 2 ? SCRIPT_UCS2
			    : SCRIPT_UCS4;
	at += kind == SCRIPT_ASCII ? f->string_data : f->string_wide_data;
	len = (__u32)head[2] * width;
	barrier_var(len);
	len &= size - 1;
	if (script_read(task, to, len, at))
		return SCRIPT_UNREADABLE;
	*bytes = len;
	return kind;
}

/* Read the line table AT, a bytes object, as far as there is room. */
static __always_inline void python_lines(struct task_struct *task, struct offcpu_ev_code *ev, __u64 at)
{
	__u64 size = 0;
	__u32 len;

	ev->lines_bytes = 0;
	ev->lines_all = ~0U;
	if (script_read(task, &size, 8, at + 16))
		return;
	ev->lines_all = size < 0x7fffffff ? size : 0x7fffffff;
	len = size < SCRIPT_LINES_BYTES ? size : SCRIPT_LINES_BYTES - 1;
	barrier_var(len);
	len &= SCRIPT_LINES_BYTES - 1;
	if (!script_read(task, ev->lines, len, at + 32))
		ev->lines_bytes = len;
}

/* Is the event's code still that of its check? Reads it. */
static __always_inline bool python_is(struct task_struct *task, struct script_walk *k,
	const struct runtime_file *f, const struct offcpu_ev_code *ev)
{
	return python_code(task, k, f, ev->code) && k->check == ev->check;
}

static __always_inline void python_names(struct task_struct *task, struct script_walk *k,
	const struct runtime_file *f, struct offcpu_ev_code *ev)
{
	ev->first_line = CODE_INT(k, f->code_first_line);
	ev->name_kind = python_string(
		task, f, CODE_WORD(k, f->code_name), ev->name, SCRIPT_NAME_BYTES, &ev->name_bytes);
	ev->file_kind = python_string(
		task, f, CODE_WORD(k, f->code_file), ev->file, SCRIPT_FILE_BYTES, &ev->file_bytes);
	python_lines(task, ev, CODE_WORD(k, f->code_lines));
}

#endif
