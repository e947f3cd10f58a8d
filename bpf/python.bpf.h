/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frames of CPython. Part of offcpu.bpf.c; the offsets come from
 * lib/runtime/python.c, which names their sources.
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

#define PTHREAD_KEYS 0x310 /* struct pthread.specific_1stblock: 32 times {sequence number, value} */
#define PTHREAD_KEY_BLOCKS 0x510 /* struct pthread.specific: 32 pointers to blocks of that form */

/* Names that are about to be sent. Entry 0: the switch program, which nothing interrupts. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct offcpu_ev_code);
} code_scratches SEC(".maps");

/* For the iterators. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct offcpu_ev_code);
} iter_code_scratch SEC(".maps");

/* Fields at offsets that user space gave: the mask proves that they are inside. */
#define FRAME_WORD(k, at) (*(__u64 *)((k)->window + (((k)->frame_at + (at)) & (RUNTIME_WINDOW - 8))))
#define FRAME_INT(k, at) (*(__u32 *)((k)->window + (((k)->frame_at + (at)) & (RUNTIME_WINDOW - 4))))
#define FRAME_BYTE(k, at) ((k)->window[((k)->frame_at + (at)) & (RUNTIME_WINDOW - 1)])
#define CODE_WORD(k, at) (*(__u64 *)((k)->code_bytes + ((at) & (RUNTIME_CODE_BYTES - 8))))
#define CODE_INT(k, at) (*(__u32 *)((k)->code_bytes + ((at) & (RUNTIME_CODE_BYTES - 4))))
#define OBJECT_WORD(k, i) (*(__u64 *)((k)->object + (i)*8))

static __always_inline const struct runtime_file *runtime_of(const struct unwind_walk *u)
{
	__u32 number = u->runtime;

	return number ? bpf_map_lookup_elem(&runtimes, &number) : NULL;
}

static __always_inline bool script_stop(struct script_walk *k, __u8 reason)
{
	k->reason = reason;
	return false;
}

static __always_inline bool in_eval(const struct runtime_file *f, __u64 bias, __u64 pc)
{
	pc -= bias;
	return (pc >= f->eval[0] && pc < f->eval[1]) || (pc >= f->cold[0] && pc < f->cold[1]);
}

/* List the native frames of the evaluation function. */
__noinline int python_calls(__u32 remote)
{
	struct scratch *s = scratch_of(remote);
	const struct runtime_file *f;
	struct script_walk *k;
	__u32 len;

	if (!scripts || !s)
		return 0;
	k = &s->script;
	f = runtime_of(&s->walk);
	k->n_calls = 0;
	len = s->walk.len;
	if (!f)
		return 0;
	for (__u32 i = 0; i < OFFCPU_DEPTH_MAX && i < len; i++) {
		__u64 pc = s->ev.frames[i];

		if (!i || (pc & OFFCPU_EXACT))
			pc = (pc & ~OFFCPU_EXACT) + 1;
		if (in_eval(f, s->walk.runtime_bias, pc - 1)) {
			/* from memory: as a register, the verifier would follow each of its values */
			volatile __u32 *n_calls = &k->n_calls;
			__u32 n = *n_calls;

			k->calls[n & (OFFCPU_DEPTH_MAX - 1)] = i;
			*n_calls = n + 1;
		}
	}
	return k->n_calls;
}

/* The thread's state; 0: it has none, or the walk's reason says why it cannot be known. */
static __always_inline __u64 python_thread(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 bias)
{
	__u32 key[2] = { 0, 0 }; /* Py_tss_t: is initialized, pthread_key_t */
	__u64 at, state = 0, id = 0;

	if (script_read(task, key, sizeof(key), bias + f->state + f->state_key)) {
		script_stop(k, SCRIPT_MEMORY);
		return 0;
	}
	if (!key[0] || key[1] >= 1024)
		return 0;
	at = k->thread + PTHREAD_KEYS;
	if (key[1] >= 32) {
		if (script_read(task, &at, 8, k->thread + PTHREAD_KEY_BLOCKS + key[1] / 32 * 8) || !at)
			return 0;
		key[1] %= 32;
	}
	if (script_read(task, &state, 8, at + key[1] * 16 + 8)) {
		script_stop(k, SCRIPT_THREAD);
		return 0;
	}
	if (!state)
		return 0;
	if (script_read(task, &id, 8, state + f->thread_id) || id != k->thread) {
		script_stop(k, SCRIPT_THREAD);
		return 0;
	}
	return state;
}

/*
 * Does the process have other interpreters than the main one? Their threads
 * have states of their own. As long as the native stack is whole, the number of
 * its calls proves that the frames are those of the right state; a stack that
 * was cut proves less.
 */
static __always_inline bool python_alone(struct task_struct *task, const struct runtime_file *f, __u64 bias)
{
	__u64 newest[2] = { 0, 0 };

	return !script_read(task, newest, sizeof(newest), bias + f->state + f->state_interpreters) &&
	       newest[0] && newest[0] == newest[1];
}

/* Find the innermost frame. False if there is none. */
static __always_inline bool python_begin(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 bias)
{
	__u64 state = python_thread(task, k, f, bias), at;

	k->frame = 0;
	if (!state)
		return false;
	at = state + f->thread_frame;
	if ((f->flags & PYTHON_CFRAME)) {
		if (script_read(task, &at, 8, at))
			return script_stop(k, SCRIPT_MEMORY);
		at += f->cframe_frame;
	}
	if (script_read(task, &k->frame, 8, at))
		return script_stop(k, SCRIPT_MEMORY);
	return k->frame != 0;
}

/*
 * Read the next frame. Callers lie below it, next to each other unless they are
 * generators or frame objects: read them too, down to the beginning of the
 * page.
 */
static __always_inline bool python_frame(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f)
{
	__u64 at = k->frame - k->window_at;
	__u32 bytes = f->frame_bytes & (RUNTIME_FRAME_BYTES - 1), before, len;

	if (at < k->window_len && at + bytes <= k->window_len) {
		k->frame_at = at;
		return true;
	}
	before = k->frame & 4095;
	if (before > RUNTIME_WINDOW - RUNTIME_FRAME_BYTES)
		before = RUNTIME_WINDOW - RUNTIME_FRAME_BYTES;
	before &= ~7U;
	if (f->flags & PYTHON_FRAME_OBJECT)
		before = 0;
	len = before + bytes;
	barrier_var(len);
	len &= RUNTIME_WINDOW - 1;
	k->window_len = 0;
	if (script_read(task, k->window, len, k->frame - before))
		return script_stop(k, SCRIPT_MEMORY);
	k->window_at = k->frame - before;
	k->window_len = len;
	k->frame_at = before;
	return true;
}

static __always_inline __u64 mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * (hash_key[2] | 1);
	return hash ^ hash >> 29;
}

/*
 * Hash a string or a bytes object: its length and what follows word FIRST,
 * which excludes what CPython changes later (reference count, cached hash,
 * interned state). Reads nothing beyond the page that a short object ends in.
 */
static __always_inline __u64 hash_object(
	struct task_struct *task, struct script_walk *k, __u64 at, __u64 hash, __u32 first)
{
	__u64 factor = hash_key[3] | 1, sum;
	__u32 len = 4096 - (at & 4095);

	if (len < 56)
		len = 56;
	if (len >= SCRIPT_OBJECT_BYTES)
		len = SCRIPT_OBJECT_BYTES;
	else
		__builtin_memset(k->object, 0, sizeof(k->object));
	if (script_read(task, k->object, len, at)) {
		k->reason = SCRIPT_MEMORY;
		return 0;
	}
	/* each word times another odd number that nobody knows: these do not wait for each other */
	sum = (OBJECT_WORD(k, 2) + 1) * factor;
	for (__u32 i = first; i < SCRIPT_OBJECT_BYTES / 8; i++) {
		factor += 0x9e3779b97f4a7c16;
		sum += OBJECT_WORD(k, i) * factor;
	}
	return mix(hash, sum ^ sum >> 32);
}

/*
 * Read the code object at CODE and compute its check. A code object that has no
 * version number, used only once, is told from a later one at the same address
 * by what it refers to and by the beginnings of its names and its line table.
 */
static __always_inline bool python_code(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 code)
{
	__u32 len = f->code_bytes & (RUNTIME_CODE_BYTES - 1);
	__u64 hash = mix(k->seed, code), file;

	if (script_read(task, k->code_bytes, len, code))
		return script_stop(k, SCRIPT_MEMORY);
	if (code >> SCRIPT_AT_SHIFT)
		return script_stop(k, SCRIPT_MEMORY);
	for (int i = 0; i < PYTHON_IDENTITY; i++)
		hash = mix(hash, CODE_WORD(k, f->identity[i]));
	if (!(f->flags & PYTHON_CODE_VERSION) || !CODE_INT(k, f->code_version)) {
		file = CODE_WORD(k, f->code_file);
		if (file != k->file) {
			k->file_hash = hash_object(task, k, file, 0, 6);
			k->file = file;
		}
		hash = mix(hash, k->file_hash);
		hash = hash_object(task, k, CODE_WORD(k, f->code_name), hash, 6);
		hash = hash_object(task, k, CODE_WORD(k, f->code_lines), hash, 4);
	}
	hash = (hash ^ hash >> 32) * (hash_key[3] | 1);
	k->code = code;
	k->check = hash >> SCRIPT_POSITION_BITS;
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

/* One frame. False if there are no more, or the reason is set. */
static __always_inline bool python_step(struct task_struct *task, struct scratch *s)
{
	const struct runtime_file *f = runtime_of(&s->walk);
	struct script_walk *k = &s->script;
	__u32 n = s->ev.scripts, call = k->call, at;
	__u64 code, back;

	if (!f || !k->frame || n >= depth || n >= OFFCPU_SCRIPTS_MAX)
		return false;
	if (!python_frame(task, k, f))
		return false;
	back = FRAME_WORD(k, f->frame_back);
	if (call >= k->n_calls) {
		k->beyond = 1;
		return false;
	}
	if ((f->flags & PYTHON_SHIM) && FRAME_BYTE(k, f->frame_owner) == PYTHON_OWNER_CSTACK) {
		k->call = call + 1;
		k->frame = back;
		return true;
	}
	code = FRAME_WORD(k, f->frame_code);
	if ((!n || code != k->code) && !python_code(task, k, f, code))
		return false;
	at = s->walk.len + 2 * n;
	barrier_var(at);
	if (at >= OFFCPU_FRAMES_MAX - 1)
		return false;
	s->ev.frames[at] = code | (__u64)k->calls[call & (OFFCPU_DEPTH_MAX - 1)] << SCRIPT_AT_SHIFT;
	s->ev.frames[at + 1] = k->check << SCRIPT_POSITION_BITS | python_position(k, f, code);
	s->ev.scripts = n + 1;
	if ((f->flags & PYTHON_FRAME_OBJECT) ||
		((f->flags & PYTHON_ENTRY_FLAG) && FRAME_BYTE(k, f->frame_owner)))
		k->call = call + 1;
	k->frame = back;
	return true;
}

/* What the frames found so far prove. Without a proof the stack has native frames only. */
static __always_inline void python_end(struct scratch *s)
{
	struct script_walk *k = &s->script;
	bool cut = k->frame && !k->beyond; /* at the depth limit */

	if (!k->reason && !cut &&
		(k->call != k->n_calls || (k->beyond && s->walk.verdict == VERDICT_COMPLETE)))
		k->reason = SCRIPT_MISMATCH;
	if (k->reason)
		s->ev.scripts = 0;
	s->ev.script_reason = k->reason;
	s->count.script_thread += k->reason == SCRIPT_THREAD;
	s->count.script_memory += k->reason == SCRIPT_MEMORY;
	s->count.script_mismatch += k->reason == SCRIPT_MISMATCH;
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

/* Send the names of script frame I, unless they were sent. False if that failed. */
static __always_inline bool python_name(
	struct task_struct *task, struct scratch *s, struct offcpu_ev_code *ev, __u32 i)
{
	const struct runtime_file *f = runtime_of(&s->walk);
	struct script_walk *k = &s->script;
	__u32 at = s->walk.len + 2 * i;
	struct script_id id;
	__u64 bytes;
	__u8 one = 1;

	barrier_var(at);
	if (!f || at >= OFFCPU_FRAMES_MAX - 1)
		return true;
	id.code = SCRIPT_CODE(s->ev.frames[at]);
	id.check = SCRIPT_CHECK(s->ev.frames[at + 1]);
	if (bpf_map_lookup_elem(&named, &id))
		return true;
	k->reason = SCRIPT_NONE;
	k->file = 0;
	/* the walk may have been of a thread that runs by now */
	if (!python_code(task, k, f, id.code) || k->check != id.check)
		return false;
	ev->type = OFFCPU_EV_CODE;
	ev->runtime = s->walk.runtime;
	ev->code = id.code;
	ev->check = id.check;
	ev->first_line = CODE_INT(k, f->code_first_line);
	ev->name_kind = python_string(
		task, f, CODE_WORD(k, f->code_name), ev->name, SCRIPT_NAME_BYTES, &ev->name_bytes);
	ev->file_kind = python_string(
		task, f, CODE_WORD(k, f->code_file), ev->file, SCRIPT_FILE_BYTES, &ev->file_bytes);
	python_lines(task, ev, CODE_WORD(k, f->code_lines));
	/*
	 * While current is here, its frames refer to the code object. Another
	 * thread may have let it go: what was read belongs to it only if it is
	 * still the same one.
	 */
	k->file = 0;
	if (task && (!python_code(task, k, f, id.code) || k->check != id.check))
		return false;
	bytes = ev->lines_bytes;
	barrier_var(bytes); /* as in put() */
	if (bytes > SCRIPT_LINES_BYTES)
		return false;
	if (bpf_ringbuf_output(
		    &ring, ev, __builtin_offsetof(struct offcpu_ev_code, lines) + bytes, BPF_RB_NO_WAKEUP))
		return false;
	bpf_map_update_elem(&named, &id, &one, BPF_ANY);
	return true;
}

/* For current: global functions, so that the verifier checks them once. */
__noinline int script_step(void)
{
	struct scratch *s = my_scratch();

	return scripts && s && python_step(NULL, s);
}

__noinline int script_name(__u32 i)
{
	struct scratch *s = my_scratch();
	struct offcpu_ev_code *ev;
	__u32 zero = 0;

	if (!scripts || !s)
		return true;
	ev = bpf_map_lookup_elem(&code_scratches, &zero);
	return ev && python_name(NULL, s, ev, i);
}

#ifndef OFFCPU_RAW

struct other_script {
	struct scratch *s;
	struct offcpu_ev_code *ev;
	struct task_struct *task;
	bool failed;
};

static long other_script_step(__u32 i, struct other_script *o)
{
	return !python_step(o->task, o->s);
}

static long other_script_name(__u32 i, struct other_script *o)
{
	if (i >= o->s->ev.scripts)
		return 1;
	if (!python_name(o->task, o->s, o->ev, i))
		o->failed = true;
	return 0;
}

#endif

/* Prepare the second pass for the thread of KEY, whose thread pointer is THREAD. */
static __always_inline void scripts_init(struct scratch *s, const struct offcpu_key *key, __u64 thread)
{
	struct script_walk *k = &s->script;

	s->ev.runtime = s->walk.runtime;
	k->thread = thread;
	k->seed = mix(mix(hash_key[0], key->start_boot_ns), (__u64)key->tgid << 32 | key->exec_id);
	k->frame = 0;
	k->file = 0;
	k->call = 0;
	k->window_len = 0;
	k->reason = k->beyond = 0;
}

/* Find the frames of current: one call, so that the verifier follows the loop once. */
__noinline int find_own_scripts(void)
{
	struct scratch *s = my_scratch();
	const struct runtime_file *f;

	if (!scripts || !s)
		return 0;
	f = runtime_of(&s->walk);
	if (!f || !python_calls(false))
		return 0;
	if (s->walk.verdict != VERDICT_COMPLETE && !python_alone(NULL, f, s->walk.runtime_bias))
		s->script.reason = SCRIPT_MISMATCH;
	else if (python_begin(NULL, &s->script, f, s->walk.runtime_bias))
		for (int i = 0; i < 2 * OFFCPU_SCRIPTS_MAX; i++)
			if (!script_step())
				break;
	python_end(s);
	return 0;
}

/* Send the names of current's functions. False if some could not be sent. */
__noinline int name_own_scripts(void)
{
	struct scratch *s = my_scratch();
	int all = true;

	if (!scripts || !s)
		return true;
	for (__u32 i = 0; i < OFFCPU_SCRIPTS_MAX && i < s->ev.scripts; i++)
		if (!script_name(i))
			all = false;
	s->count.script_ring += !all;
	return all;
}

#ifndef OFFCPU_RAW

/* The same for TASK, which is not running. */
static __always_inline void find_other_scripts(struct task_struct *task, struct scratch *s)
{
	const struct runtime_file *f = runtime_of(&s->walk);
	struct other_script o = { .s = s, .task = task };

	if (!f || !python_calls(true))
		return;
	if (s->walk.verdict != VERDICT_COMPLETE && !python_alone(task, f, s->walk.runtime_bias))
		s->script.reason = SCRIPT_MISMATCH;
	else if (python_begin(task, &s->script, f, s->walk.runtime_bias))
		bpf_loop(2 * OFFCPU_SCRIPTS_MAX, other_script_step, &o, 0);
	python_end(s);
}

static __always_inline bool name_other_scripts(struct task_struct *task, struct scratch *s)
{
	struct other_script o = { .s = s, .task = task };
	__u32 zero = 0;

	o.ev = bpf_map_lookup_elem(&iter_code_scratch, &zero);
	if (!o.ev)
		return false;
	bpf_loop(OFFCPU_SCRIPTS_MAX, other_script_name, &o, 0);
	s->count.script_ring += o.failed;
	return !o.failed;
}

#endif

/* The second pass, after the native walk of a process with an interpreter. OTHER is not running; NULL:
 * current. */
static __always_inline void find_scripts(
	struct task_struct *other, struct scratch *s, const struct offcpu_key *key, __u64 thread)
{
	scripts_init(s, key, thread);
#ifndef OFFCPU_RAW
	if (other) {
		find_other_scripts(other, s);
		return;
	}
#endif
	find_own_scripts();
}

/* Send the names of all functions in the stack that is about to be sent. False if some could not be. */
static __always_inline bool name_scripts(struct task_struct *other, struct scratch *s)
{
#ifndef OFFCPU_RAW
	if (other)
		return name_other_scripts(other, s);
#endif
	return name_own_scripts();
}

#endif
