/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks of CPython that are recognised without listing their functions. Part of offcpu.bpf.c.
 *
 * Nothing tells that the frames of a thread are those of its last wait, so all that tells one from another is
 * read each time, as python.bpf.h does. But it is only summed up. If the native stack, by its ID, and the sum
 * have led to a whole stack before, this is the same one: what the listing makes of them, and the proof that
 * they belong together, depends on nothing else. Then nothing has to be spliced, proved and hashed.
 */
#ifndef STACKTOOLS_PYTHON_SAME_BPF_H
#define STACKTOOLS_PYTHON_SAME_BPF_H

#define PYTHON_WHOLES 512
#define PYTHON_KEEPS (~0U) /* unwind_walk.trail: no trail, but the stack's ID will be kept here */
/* Behind so many stacks in a row that were not known only one of these is tried: summing up costs, too. */
#define PYTHON_UNKNOWN 64
#define PYTHON_TRY 16

struct python_whole {
	struct offcpu_stack_id native; /* of the native frames alone */
	__u64 sum;
	struct offcpu_stack_id id; /* of all */
	__u32 epoch, pad; /* in which the stack was sent */
};

/* Used by the switch program, which nothing interrupts. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PYTHON_WHOLES);
	__type(key, __u32);
	__type(value, struct python_whole);
} python_wholes SEC(".maps");

static __always_inline struct python_whole *python_whole_at(const struct offcpu_stack_id *native, __u64 sum)
{
	__u32 at = (sum ^ native->lo) * 0x9e3779b97f4a7c15ULL >> 40 & (PYTHON_WHOLES - 1);

	return bpf_map_lookup_elem(&python_wholes, &at);
}

/* Is this one of 16 waits at which what was not known (python_known) may become so? */
static __always_inline bool python_learns(const struct scratch *s)
{
	return !(s->walk.now_ns >> 12 & 15);
}

/* Set the check to what stands for the code object at CODE: its check, or else a sum. */
static __always_inline bool python_sum_code(
	struct scratch *s, const struct runtime_file *f, struct python_knowns *all, __u64 code)
{
	struct script_walk *k = &s->script;

	if (python_knows(k, f, all, code))
		return true;
	if (k->counter || (f->flags & PYTHON_FUNCTION_VERSION && python_learns(s)))
		return python_frame_code(NULL, k, f, code);
	k->check = mix(python_code_sum(NULL, k, f, code), k->seed ^ code);
	k->code = code;
	return k->reason == SCRIPT_NONE;
}

/* Add one frame to the sum. False if there are no more, or the reason is set. */
static __always_inline bool python_sum_step(
	struct scratch *s, const struct runtime_file *f, struct python_knowns *all)
{
	struct script_walk *k = &s->script;
	__u64 code, stands = 0, owner = 0;

	if (!k->frame || (!has_frame(k, f->frame_bytes & (RUNTIME_FRAME_BYTES - 1)) && !python_own_frame()))
		return false;
	if (!(f->flags & PYTHON_FRAME_OBJECT))
		owner = FRAME_BYTE(k, f->frame_owner);
	if (!(f->flags & PYTHON_SHIM) || owner < PYTHON_OWNER_CSTACK) {
		code = FRAME_WORD(k, f->frame_code) & ~3ULL;
		if (code != k->code && !python_sum_code(s, f, all, code))
			return false;
		stands = k->check;
	}
	k->same.sum = mix(mix(k->same.sum, stands), FRAME_WORD(k, f->frame_position) ^ owner << 56);
	k->frame = FRAME_WORD(k, f->frame_back);
	return true;
}

/* The next frames of current. */
__noinline int python_sum_steps(void)
{
	struct scratch *s = my_scratch();
	const struct runtime_file *f = s ? runtime_of(&s->walk) : NULL;
	struct python_knowns *all;
	__u32 zero = 0;

	all = bpf_map_lookup_elem(&python_known, &zero);
	if (!WATCHED(RUNTIME_PYTHON) || !f)
		return false;
	for (int i = 0; i < PYTHON_STEPS; i++)
		if (!python_sum_step(s, f, all))
			return false;
	return true;
}

static long own_sum_steps(__u32 i, void *unused)
{
	return !python_sum_steps();
}

/* Sum up the frames of current. False if they are not known. */
static __always_inline bool python_sum(struct scratch *s, const struct runtime_file *f)
{
	struct script_walk *k = &s->script;

	k->same.sum = mix(k->seed, s->walk.runtime);
	if (python_begin(NULL, k, f, s->walk.runtime_bias))
		bpf_loop(2 * OFFCPU_SCRIPTS_MAX / PYTHON_STEPS, own_sum_steps, NULL, 0);
	k->same.sum = mix(k->same.sum, k->frame != 0);
	return !k->reason;
}

/* Are the stacks of the last waits on this CPU so seldom known that this one is not tried? */
static __always_inline bool is_vain(struct trail_stack *stack)
{
	return stack->unknown_scripts >= PYTHON_UNKNOWN && ++stack->unknown_scripts % PYTHON_TRY;
}

/*
 * Recognise the stack of current, whose native frames are in the scratch event: then its ID is there, too.
 * Otherwise its functions are to be listed, and then keep_scripts().
 */
__noinline int same_scripts(void)
{
	struct scratch *s = my_scratch();
	const struct runtime_file *f = s ? runtime_of(&s->walk) : NULL;
	struct python_whole *whole;
	struct trail_stack *stack;
	struct script_walk *k;
	__u32 zero = 0;

	stack = bpf_map_lookup_elem(&trail_stacks, &zero);
	if (!WATCHED(RUNTIME_PYTHON) || !f || !stack || f->kind != RUNTIME_PYTHON ||
		s->walk.verdict != VERDICT_COMPLETE || mistaken || is_vain(stack))
		return false;
	k = &s->script;
	if (s->walk.found == TRAIL_NOT_FOUND) {
		hash_native();
		stack->id = s->ev.id;
		s->ev.runtime = s->walk.runtime;
	}
	k->same.id.hi = 0;
	if (python_sum(s, f)) {
		whole = python_whole_at(&stack->id, k->same.sum);
		if (whole && whole->sum == k->same.sum && whole->native.hi == stack->id.hi &&
			whole->native.lo == stack->id.lo && whole->epoch == epoch)
			k->same.id = whole->id;
		s->walk.trail = PYTHON_KEEPS;
	}
	if (k->same.id.hi) {
		stack->unknown_scripts = 0;
		s->count.scripts_recognised++;
		s->ev.id = k->same.id;
		if (!verify_stacks && stack->compared_scripts >= TRAIL_TRIALS) {
			s->walk.trail = 0;
			return true;
		}
	} else {
		stack->unknown_scripts++;
	}
	/* once more */
	k->frame = 0;
	k->code = ~0ULL;
	k->reason = SCRIPT_NONE;
	return false;
}

/* The stack of current in the scratch event was sent: keep its ID, or compare it with that which was found.
 */
__noinline int keep_scripts(void)
{
	struct scratch *s = my_scratch();
	struct python_whole *whole;
	struct trail_stack *stack;
	struct script_walk *k;
	__u32 zero = 0;

	stack = bpf_map_lookup_elem(&trail_stacks, &zero);
	if (!WATCHED(RUNTIME_PYTHON) || !s || !stack || s->walk.trail != PYTHON_KEEPS)
		return 0;
	s->walk.trail = 0;
	k = &s->script;
	if (k->same.id.hi) {
		stack->compared_scripts++;
		if (s->ev.id.hi != k->same.id.hi || s->ev.id.lo != k->same.id.lo) {
			s->count.user_differs++;
			mistaken = 1;
		}
		return 0;
	}
	/* where a thread has several states, the sum is that of one (python_states.bpf.h) */
	if (k->reason || k->search.n || !is_seen(&s->ev.id))
		return 0;
	whole = python_whole_at(&stack->id, k->same.sum);
	if (!whole)
		return 0;
	whole->native = stack->id;
	whole->sum = k->same.sum;
	whole->id = s->ev.id;
	whole->epoch = epoch;
	return 0;
}

#endif
