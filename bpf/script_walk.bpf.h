/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The second pass over a user stack, whatever its interpreter: the native
 * frames that execute script code, one script frame after the other by the
 * runtime's own file, the proof that both belong together, and the names. Part
 * of offcpu.bpf.c.
 */
#ifndef STACKTOOLS_SCRIPT_WALK_BPF_H
#define STACKTOOLS_SCRIPT_WALK_BPF_H

NAMES_SCRATCH(offcpu_ev_code, this_code, code_scratches, iter_code_scratch)

#define CALLS_STEP 8 /* native frames at once */

/* List those of the native frames from AT on that are of the evaluation function. False behind the last one.
 */
__noinline int script_some_calls(__u32 at)
{
	struct scratch *s = this_scratch();
	const struct runtime_file *f = s ? runtime_of(&s->walk) : NULL;
	struct script_walk *k;
	const __u64 *frames;
	__u32 n, len;

	if (!INTERPRETERS || !f || at > OFFCPU_DEPTH_MAX - CALLS_STEP)
		return false;
	k = &s->script;
	len = s->walk.len;
	n = k->n_calls;
	barrier_var(at);
	frames = s->ev.frames + at;
	for (__u32 i = 0; i < CALLS_STEP && at + i < len; i++) {
		__u64 pc = frames[i], exact = pc / OFFCPU_EXACT & 1;

		/* the innermost frame is where it stands, the others are behind a call */
		pc = (pc & ~OFFCPU_EXACT) - 1 + (exact | is_below(at + i, 1));
		k->calls[n & (OFFCPU_DEPTH_MAX - 1)] = at + i;
		n += in_eval(f, s->walk.runtime_bias, pc);
	}
	k->n_calls = n;
	return at + CALLS_STEP < len;
}

/* List the native frames of the evaluation function. */
__noinline int script_calls(void)
{
	struct scratch *s = this_scratch();

	if (!INTERPRETERS || !s)
		return 0;
	s->script.n_calls = 0;
	for (__u32 at = 0; at < OFFCPU_DEPTH_MAX; at += CALLS_STEP)
		if (!script_some_calls(at))
			break;
	return s->script.n_calls;
}

static long script_outside(__u32 i, void *unused)
{
	struct scratch *s = this_scratch();
	__u64 last;
	__u32 at;

	if (!s || i >= s->ev.scripts)
		return 1;
	last = s->script.calls[(s->script.n_calls - 1) & (OFFCPU_DEPTH_MAX - 1)];
	at = s->walk.len + 2 * i;
	barrier_var(at);
	if (at < OFFCPU_FRAMES_MAX)
		s->ev.frames[at] = SCRIPT_CODE(s->ev.frames[at]) | last << SCRIPT_AT_SHIFT;
	return 0;
}

/* Put all script frames behind the outermost native frame that executes some. */
__noinline int scripts_outside(void)
{
	if (INTERPRETERS)
		bpf_loop(OFFCPU_SCRIPTS_MAX, script_outside, NULL, 0);
	return 0;
}

/* What the frames found so far prove. Without a proof the stack has native frames only. */
static __always_inline void script_end(struct scratch *s)
{
	const struct runtime_file *f = runtime_of(&s->walk);
	struct script_walk *k = &s->script;
	bool cut = k->frame && !k->beyond; /* at the depth limit */

	if (!k->reason && !cut &&
		(k->call != k->n_calls || (k->beyond && s->walk.verdict == VERDICT_COMPLETE))) {
		if (WATCHED(RUNTIME_PERL) && f && f->kind == RUNTIME_PERL)
			scripts_outside();
		else
			k->reason = SCRIPT_MISMATCH;
	}
	if (k->reason)
		s->ev.scripts = 0;
	s->ev.script_reason = k->reason;
	s->count.script_thread += k->reason == SCRIPT_THREAD;
	s->count.script_memory += k->reason == SCRIPT_MEMORY;
	s->count.script_mismatch += k->reason == SCRIPT_MISMATCH;
}

/* Find the innermost frame. False if there is none. */
static __always_inline bool script_begin(struct task_struct *task, struct scratch *s)
{
	const struct runtime_file *f = runtime_of(&s->walk);
	struct script_walk *k = &s->script;

	k->frame = 0;
	if (!f)
		return false;
	if (WATCHED(RUNTIME_PYTHON) && f->kind == RUNTIME_PYTHON) {
		if (s->walk.verdict != VERDICT_COMPLETE && !python_alone(task, f, s->walk.runtime_bias))
			return script_stop(k, SCRIPT_MISMATCH);
		return python_begin(task, k, f, s->walk.runtime_bias);
	}
	if (WATCHED(RUNTIME_PHP) && f->kind == RUNTIME_PHP)
		return php_begin(task, k, f, s->walk.runtime_bias);
	if (WATCHED(RUNTIME_PERL) && f->kind == RUNTIME_PERL)
		return perl_begin(task, k, f, s->walk.runtime_bias);
	if (WATCHED(RUNTIME_RUBY) && f->kind == RUNTIME_RUBY)
		return ruby_begin(task, k, f, s->walk.runtime_bias);
	return false;
}

/* Walk one frame. False if there are no more, or the reason is set. */
static __always_inline bool script_next(struct task_struct *task, struct scratch *s)
{
	const struct runtime_file *f = runtime_of(&s->walk);

	if (!f || !s->script.frame || s->ev.scripts >= depth || s->ev.scripts >= OFFCPU_SCRIPTS_MAX)
		return false;
	/* of CPython: python_steps(), other_python_step() */
	if (WATCHED(RUNTIME_PHP) && f->kind == RUNTIME_PHP)
		return php_step(task, s, f);
	if (WATCHED(RUNTIME_RUBY) && f->kind == RUNTIME_RUBY)
		return ruby_step(task, s, f);
	return WATCHED(RUNTIME_PERL) && f->kind == RUNTIME_PERL && perl_step(task, s, f);
}

/* Nothing of the event's code is known: it is to be read in full. */
static __always_inline void begin_is_of(struct script_walk *k)
{
	k->reason = SCRIPT_NONE;
	k->file = 0;
	k->package = k->package_head = 0;
	k->first = 0;
	k->stamp = 0;
}

/* Is the code of TASK's event still that of its check? Reads it, for names_of(). */
static __always_inline bool is_of(struct task_struct *task, struct script_walk *k,
	const struct runtime_file *f, const struct offcpu_ev_code *ev, __u64 hint)
{
	begin_is_of(k);
	if (WATCHED(RUNTIME_PYTHON) && f->kind == RUNTIME_PYTHON)
		return python_is(task, k, f, ev);
	if (WATCHED(RUNTIME_PHP) && f->kind == RUNTIME_PHP)
		return php_is(task, k, f, ev, hint);
	if (WATCHED(RUNTIME_RUBY) && f->kind == RUNTIME_RUBY)
		return ruby_is(task, k, f, ev, hint);
	return WATCHED(RUNTIME_PERL) && f->kind == RUNTIME_PERL && perl_is(task, k, f, ev, hint);
}

/* Fill in the names of the event's code. */
static __always_inline void names_of(struct task_struct *task, struct script_walk *k,
	const struct runtime_file *f, struct offcpu_ev_code *ev, __u64 hint)
{
	if (WATCHED(RUNTIME_PYTHON) && f->kind == RUNTIME_PYTHON)
		python_names(task, k, f, ev);
	else if (WATCHED(RUNTIME_PHP) && f->kind == RUNTIME_PHP)
		php_names(task, k, f, ev);
	else if (WATCHED(RUNTIME_PERL) && f->kind == RUNTIME_PERL)
		perl_names(task, k, f, ev, hint);
	else if (WATCHED(RUNTIME_RUBY) && f->kind == RUNTIME_RUBY)
		ruby_names(task, k, f, ev, hint);
}

/*
 * For current: global functions, which the verifier checks one by one. Each runtime has its own, as the
 * kernel adds up the stacks of those that call each other.
 */
#define OWN_IS(runtime, RUNTIME)                                                                             \
	__noinline int own_##runtime##_is(__u64 hint)                                                        \
	{                                                                                                    \
		struct scratch *s = my_scratch();                                                            \
		const struct runtime_file *f = s ? runtime_of(&s->walk) : NULL;                              \
		struct offcpu_ev_code *ev = this_code();                                                     \
                                                                                                             \
		return WATCHED(RUNTIME) && f && ev && runtime##_is(NULL, &s->script, f, ev, hint);           \
	}

OWN_IS(php, RUNTIME_PHP)
OWN_IS(perl, RUNTIME_PERL)
OWN_IS(ruby, RUNTIME_RUBY)

__noinline int own_names_of(__u64 hint)
{
	struct scratch *s = my_scratch();
	const struct runtime_file *f = s ? runtime_of(&s->walk) : NULL;
	struct offcpu_ev_code *ev = this_code();

	if (INTERPRETERS && f && ev)
		names_of(NULL, &s->script, f, ev, hint);
	return 0;
}

/* The same for current. Inlined where it is used: a call takes 32 bytes of stack. */
static __always_inline bool own_is_of(
	struct script_walk *k, const struct runtime_file *f, const struct offcpu_ev_code *ev, __u64 hint)
{
	begin_is_of(k);
	if (WATCHED(RUNTIME_PYTHON) && f->kind == RUNTIME_PYTHON)
		return python_own_code(ev->code) && k->check == ev->check;
	if (WATCHED(RUNTIME_PHP) && f->kind == RUNTIME_PHP)
		return own_php_is(hint);
	if (WATCHED(RUNTIME_RUBY) && f->kind == RUNTIME_RUBY)
		return own_ruby_is(hint);
	return WATCHED(RUNTIME_PERL) && f->kind == RUNTIME_PERL && own_perl_is(hint);
}

/*
 * Close the gaps behind names: the buffer holds ten times as many events. Each part moves
 * towards the beginning, and the kernel copies forward. Returns the bytes of the event.
 */
static __always_inline __u64 pack(struct offcpu_ev_code *ev)
{
	__u64 at = __builtin_offsetof(struct offcpu_ev_code, name), file, lines;
	__u8 *to = (void *)ev;

	at += ev->name_bytes & (SCRIPT_NAME_BYTES - 1);
	file = ev->file_bytes & (SCRIPT_FILE_BYTES - 1);
	bpf_probe_read_kernel(to + at, file, ev->file);
	at += file;
	lines = ev->lines_bytes;
	barrier_var(lines);
	if (lines > SCRIPT_LINES_BYTES)
		lines = SCRIPT_LINES_BYTES;
	bpf_probe_read_kernel(to + at, lines, ev->lines);
	return at + lines;
}

/* Does another thread's garbage collection move names? */
static __always_inline bool moves(const struct runtime_file *f)
{
	return WATCHED(RUNTIME_RUBY) && f->kind == RUNTIME_RUBY;
}

/* Send the names of script frame I, unless they were sent. False if that failed. */
static __always_inline bool send_names(
	struct task_struct *task, struct scratch *s, struct offcpu_ev_code *ev, __u32 i)
{
	const struct runtime_file *f = runtime_of(&s->walk);
	struct script_walk *k = &s->script;
	__u32 at = s->walk.len + 2 * i;
	struct script_id id;
	__u64 bytes, hint;
	__u8 one = 1;

	barrier_var(at);
	if (!f || at >= OFFCPU_FRAMES_MAX - 1)
		return true;
	id.code = SCRIPT_CODE(s->ev.frames[at]);
	id.check = SCRIPT_CHECK(s->ev.frames[at + 1]);
	if (bpf_map_lookup_elem(&named, &id))
		return true;
	ev->type = OFFCPU_EV_CODE;
	ev->runtime = s->walk.runtime;
	ev->code = id.code;
	ev->check = id.check;
	hint = k->hints[i & (OFFCPU_SCRIPTS_MAX - 1)];
	if (WATCHED(RUNTIME_PYTHON) && f->kind == RUNTIME_PYTHON)
		python_seed(k, i);
	/* the walk may have been of a thread that runs by now */
	if (!(task ? is_of(task, k, f, ev, hint) : own_is_of(k, f, ev, hint)))
		return false;
	if (task)
		names_of(task, k, f, ev, hint);
	else
		own_names_of(hint);
	/*
	 * While current is here, its frames refer to the code. Another thread may
	 * have let it go, and Ruby may move strings while one of its threads waits:
	 * what was read belongs to it only if it is still the same.
	 */
	if (task ? !is_of(task, k, f, ev, hint) : moves(f) && !own_is_of(k, f, ev, hint))
		return false;
	bytes = pack(ev);
	barrier_var(bytes); /* as in put() */
	if (bytes > sizeof(*ev) || bpf_ringbuf_output(&ring, ev, bytes, BPF_RB_NO_WAKEUP))
		return false;
	bpf_map_update_elem(&named, &id, &one, BPF_ANY);
	return true;
}

/* For current: global functions, so that the verifier checks them once. */
__noinline int script_step(void)
{
	struct scratch *s = my_scratch();

	return INTERPRETERS && s && script_next(NULL, s);
}

/* A function of its own: with the others in one, the kernel's limit for the stack would be exceeded. */
__noinline int python_steps(void)
{
	struct scratch *s = my_scratch();
	const struct runtime_file *f = s ? runtime_of(&s->walk) : NULL;

	return WATCHED(RUNTIME_PYTHON) && f && python_own_steps(s, f);
}

#ifndef OFFCPU_RAW

struct other_script {
	struct scratch *s;
	struct offcpu_ev_code *ev;
	struct task_struct *task;
	bool failed;
	bool begun;
};

/* Not NULL: then the compiler leaves out what is for current, whose stack the kernel would count. */
static __always_inline struct task_struct *task_of(const struct other_script *o)
{
	struct task_struct *task = o->task;

	__builtin_assume(task != NULL);
	return task;
}

/* A callback for its stack alone: that of the program and those of its callbacks have 512 bytes together. */
static long other_script_begin(__u32 i, struct other_script *o)
{
	o->begun = script_begin(task_of(o), o->s);
	return 1;
}

static long other_script_step(__u32 i, struct other_script *o)
{
	return !script_next(task_of(o), o->s);
}

static long other_python_begin(__u32 i, struct other_script *o)
{
	const struct runtime_file *f = runtime_of(&o->s->walk);

	o->begun = f && python_unproved(o->s, f) &&
		   python_search(task_of(o), &o->s->script, f, o->s->walk.runtime_bias);
	return 1;
}

static long other_python_search(__u32 i, struct other_script *o)
{
	const struct runtime_file *f = runtime_of(&o->s->walk);

	return !f || !python_search_step(task_of(o), &o->s->script, f);
}

static long other_python_step(__u32 i, struct other_script *o)
{
	const struct runtime_file *f = runtime_of(&o->s->walk);
	struct script_walk *k = &o->s->script;

	if (!f)
		return 1;
	if (k->frame)
		return o->s->ev.scripts >= depth || o->s->ev.scripts >= OFFCPU_SCRIPTS_MAX ||
		       !python_step(task_of(o), o->s, f, NULL);
	return !python_next_state(task_of(o), o->s, f);
}

/*
 * Two passes: as find_own_scripts() and python_own_states(). A function of its own: inlined, its callbacks'
 * addresses were loaded before the test for Python, and Linux 6.18 keeps these without the callbacks.
 */
static __noinline void other_python_scripts(struct other_script *o)
{
	if (o->begun)
		bpf_loop(2 * OFFCPU_SCRIPTS_MAX, other_python_step, o, 0);
	bpf_loop(1, other_python_begin, o, 0);
	if (!o->begun)
		return;
	bpf_loop(PYTHON_SEARCH, other_python_search, o, 0);
	python_found(o->s);
	bpf_loop(2 * OFFCPU_SCRIPTS_MAX, other_python_step, o, 0);
}

static long other_script_name(__u32 i, struct other_script *o)
{
	if (i >= o->s->ev.scripts)
		return 1;
	if (!send_names(task_of(o), o->s, o->ev, i))
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
	k->base = k->aside = 0;
	k->unhashed = 0;
	k->call = 0;
	k->window_len = 0;
	k->main_thread = key->tgid == key->tid;
	k->pending = k->first = 0;
	k->package = k->package_head = 0;
	k->cv = 0;
	k->counter = 0;
	k->search.n = 0;
	k->near.starts = 0;
	k->code = ~0ULL; /* none */
	k->reason = k->beyond = 0;
}

static long own_script_step(__u32 i, void *unused)
{
	return !script_step();
}

static long own_python_steps(__u32 i, void *unused)
{
	return !python_steps() && !python_own_next();
}

static long own_python_search(__u32 i, void *unused)
{
	return !python_own_search();
}

/* `unsent` becomes 1 if that failed. */
static long own_script_name(__u32 i, void *unused)
{
	struct scratch *s = my_scratch();
	struct offcpu_ev_code *ev;

	if (!INTERPRETERS || !s || i >= s->ev.scripts)
		return 1;
	ev = this_code();
	if (!ev || !send_names(NULL, s, ev, i))
		s->script.unsent = 1;
	return 0;
}

/* Does the thread of current have other states of CPython, which explain its native stack? */
__noinline int python_own_states(void)
{
	struct scratch *s = my_scratch();
	const struct runtime_file *f = s ? runtime_of(&s->walk) : NULL;

	if (!WATCHED(RUNTIME_PYTHON) || !f || !python_unproved(s, f) ||
		!python_search(NULL, &s->script, f, s->walk.runtime_bias))
		return 0;
	bpf_loop(PYTHON_SEARCH, own_python_search, NULL, 0);
	python_found(s);
	if (python_own_next())
		bpf_loop(2 * OFFCPU_SCRIPTS_MAX, own_python_steps, NULL, 0);
	return 0;
}

/* Find the frames of current: one call, so that the verifier follows the loop once. */
__noinline int find_own_scripts(void)
{
	struct scratch *s = my_scratch();
	const struct runtime_file *f;

	if (!INTERPRETERS || !s || !script_calls())
		return 0;
	if (script_begin(NULL, s)) {
		f = runtime_of(&s->walk);
		if (WATCHED(RUNTIME_PYTHON) && f && f->kind == RUNTIME_PYTHON)
			bpf_loop(2 * OFFCPU_SCRIPTS_MAX, own_python_steps, NULL, 0);
		else
			bpf_loop(2 * OFFCPU_SCRIPTS_MAX, own_script_step, NULL, 0);
	}
	python_own_states();
	script_end(s);
	return 0;
}

/* Send the names of current's functions. False if some could not be sent. */
__noinline int name_own_scripts(void)
{
	struct scratch *s = my_scratch();

	if (!INTERPRETERS || !s)
		return true;
	s->script.unsent = 0;
	bpf_loop(OFFCPU_SCRIPTS_MAX, own_script_name, NULL, 0);
	s->count.script_ring += s->script.unsent;
	return !s->script.unsent;
}

#ifndef OFFCPU_RAW

/* The same for TASK, which is not running. */
static __always_inline void find_other_scripts(struct task_struct *task, struct scratch *s)
{
	const struct runtime_file *f = runtime_of(&s->walk);
	struct other_script o = { .s = s, .task = task };

	if (!f || !script_calls())
		return;
	bpf_loop(1, other_script_begin, &o, 0);
	if (WATCHED(RUNTIME_PYTHON) && f->kind == RUNTIME_PYTHON)
		other_python_scripts(&o);
	else if (o.begun)
		bpf_loop(2 * OFFCPU_SCRIPTS_MAX, other_script_step, &o, 0);
	script_end(s);
}

static __always_inline bool name_other_scripts(struct task_struct *task, struct scratch *s)
{
	struct other_script o = { .s = s, .task = task, .ev = this_code() };

	if (!o.ev)
		return false;
	bpf_loop(OFFCPU_SCRIPTS_MAX, other_script_name, &o, 0);
	s->count.script_ring += o.failed;
	return !o.failed;
}

#endif

/* The second pass, after the native walk of a process with an interpreter. OTHER is not running; NULL:
 * current. */
static __always_inline void find_scripts(struct task_struct *other, struct scratch *s)
{
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
