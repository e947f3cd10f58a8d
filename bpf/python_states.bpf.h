/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread of CPython that executes code of several interpreters: it has a state in
 * each of them, and the frames of all are on its stack. Part of offcpu.bpf.c.
 *
 * Only for a process with several interpreters, whose thread has native frames of the
 * evaluation function that the state of its key does not explain. All states of all
 * interpreters are looked at, and those with the thread's own pointer taken. Each call
 * of the evaluation function has a structure on the C stack that its state leads to:
 * a cframe (3.11, 3.12), or the frame without code (3.13 and later). So the addresses say
 * which state is inside which, and there must be as many of them as native frames.
 * Before 3.11 there is none: only a single state with frames is true then.
 */
#ifndef STACKTOOLS_PYTHON_STATES_BPF_H
#define STACKTOOLS_PYTHON_STATES_BPF_H

#define PYTHON_THREAD_NEXT 8 /* PyThreadState: prev, next, interp; in all versions */
#define PYTHON_SEARCH 2048 /* interpreters, states, and frames or calls of the thread's own states */

/* Did the walk from the state of the thread's key leave native frames, or prove nothing about them? */
static __always_inline bool python_unproved(const struct scratch *s, const struct runtime_file *f)
{
	const struct script_walk *k = &s->script;

	return WATCHED(RUNTIME_PYTHON) && f && f->kind == RUNTIME_PYTHON && !k->reason && k->base &&
	       !k->beyond && s->walk.verdict == VERDICT_COMPLETE && (k->frame || k->call != k->n_calls);
}

/* Prepare the search. False if there is only one interpreter. */
static __always_inline bool python_search(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 bias)
{
	struct python_search *q = &k->search;

	if (python_alone(task, f, bias))
		return false;
	q->interpreter = q->state = q->at = 0;
	q->mark = 0;
	q->n = q->calls = q->done = 0;
	if (script_read(task, &q->interpreter, 8, bias + f->state + f->state_interpreters))
		q->interpreter = 0;
	k->window_len = 0;
	k->frame_at = 0;
	return true;
}

/* Keep the state that was found. False if its calls and those of another one alternate, or there are too
 * many.
 */
static __always_inline bool python_keep(struct python_search *q, const struct runtime_file *f)
{
	__u32 n = q->n;

	if (n >= PYTHON_STATES || (n && f->flags & PYTHON_FRAME_OBJECT))
		return false;
	for (__u32 i = 0; i < PYTHON_STATES; i++)
		if (i < n && q->found.first <= q->of[i].last && q->of[i].first <= q->found.last)
			return false;
	q->found.begin = ~0U;
	q->of[n & (PYTHON_STATES - 1)] = q->found;
	q->n = n + 1;
	return true;
}

/* Look at the next call, or frame, of the state that was found. */
static __always_inline bool python_search_call(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f)
{
	struct python_search *q = &k->search;
	__u64 at = q->at, back = 0;
	bool call = true;

	if (f->flags & PYTHON_CFRAME) {
		/* `previous` follows; the outermost one is in the state */
		if (script_read(task, &back, 8, at + f->cframe_frame + 8))
			return false;
		call = back != 0;
	} else {
		if (script_read(task, k->window, f->frame_bytes & (RUNTIME_FRAME_BYTES - 1), at))
			return false;
		back = FRAME_WORD(k, f->frame_back);
		if (f->flags & PYTHON_SHIM)
			call = FRAME_BYTE(k, f->frame_owner) >= PYTHON_OWNER_CSTACK;
	}
	q->at = back;
	if (call) {
		if (!(f->flags & PYTHON_FRAME_OBJECT) && at <= q->found.last)
			return false;
		if (!q->found.first)
			q->found.first = at;
		if (at > q->found.last) /* always, but for frame objects: they lie in any order */
			q->found.last = at;
		q->calls++;
	}
	return back || python_keep(q, f);
}

/* Look at the next state. */
static __always_inline bool python_search_state(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f)
{
	struct python_search *q = &k->search;
	__u64 at;

	if (script_read(task, k->code_bytes, PYTHON_THREAD_BYTES, q->state))
		return false;
	q->state = CODE_WORD(k, PYTHON_THREAD_NEXT);
	if (CODE_WORD(k, f->thread_id) != k->thread)
		return true;
	at = CODE_WORD(k, f->thread_frame);
	q->found.frame = at;
	if ((f->flags & PYTHON_CFRAME) && script_read(task, &q->found.frame, 8, at + f->cframe_frame))
		return false;
	q->found.first = q->found.last = 0;
	q->at = q->found.frame ? at : 0; /* it may be idle */
	return true;
}

/* One step of the search. False behind the end, which sets `done`, or if it failed. */
static __always_inline bool python_search_step(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f)
{
	struct python_search *q = &k->search;
	__u64 at = q->interpreter;

	if (q->at)
		return python_search_call(task, k, f);
	if (q->state)
		return python_search_state(task, k, f);
	q->done = !at;
	q->found.interpreter = at;
	return at && !script_read(task, &q->state, 8, at + f->interpreter_threads) &&
	       !script_read(task, &q->interpreter, 8, at + f->interpreter_next);
}

/* The search has ended. Begin once more, with all states, if they are what the native stack has. */
static __always_inline void python_found(struct scratch *s)
{
	struct script_walk *k = &s->script;

	s->ev.scripts = 0;
	k->call = 0;
	k->frame = 0;
	if (!k->search.done || k->search.calls != k->n_calls) {
		k->search.n = 0;
		k->reason = SCRIPT_MISMATCH;
	}
}

/* The number of the state around the one that was walked last; PYTHON_STATES: there is none. */
__noinline int python_outer(void)
{
	struct scratch *s = this_scratch();
	const struct python_search *q;
	__u64 first = ~0ULL;
	__u32 at = PYTHON_STATES;

	if (!WATCHED(RUNTIME_PYTHON) || !s)
		return PYTHON_STATES;
	q = &s->script.search;
	for (__u32 i = 0; i < PYTHON_STATES; i++)
		if (i < q->n && q->of[i].first > q->mark && q->of[i].first < first) {
			first = q->of[i].first;
			at = i;
		}
	return at;
}

/* Behind the last frame of a state: go on with the one around it. False if there is none. */
static __always_inline bool python_next_state(
	struct task_struct *task, struct scratch *s, const struct runtime_file *f)
{
	struct script_walk *k = &s->script;
	struct python_search *q = &k->search;
	__u32 at;

	if (!q->n || k->frame || k->reason)
		return false;
	at = python_outer();
	if (at >= PYTHON_STATES)
		return false;
	q->mark = q->of[at].last;
	k->frame = q->of[at].frame;
	if (!python_interpreter(task, k, f, s->walk.runtime_bias, q->of[at].interpreter))
		return false;
	q->of[at].seed = k->seed;
	q->of[at].begin = s->ev.scripts;
	return true;
}

/* Set the seed to that of script frame I. */
static __always_inline void python_seed(struct script_walk *k, __u32 i)
{
	const struct python_search *q = &k->search;
	__u32 begin = 0;

	for (__u32 j = 0; j < PYTHON_STATES; j++)
		if (j < q->n && q->of[j].begin <= i && q->of[j].begin >= begin) {
			begin = q->of[j].begin;
			k->seed = q->of[j].seed;
		}
}

/* For current: global functions, which the verifier checks once. */
__noinline int python_own_search(void)
{
	struct scratch *s = my_scratch();
	const struct runtime_file *f = s ? runtime_of(&s->walk) : NULL;

	return WATCHED(RUNTIME_PYTHON) && f && python_search_step(NULL, &s->script, f);
}

__noinline int python_own_next(void)
{
	struct scratch *s = my_scratch();
	const struct runtime_file *f = s ? runtime_of(&s->walk) : NULL;

	return WATCHED(RUNTIME_PYTHON) && f && python_next_state(NULL, s, f);
}

#endif
