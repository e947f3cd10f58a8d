/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks that are recognised, without a walk. Part of offcpu.bpf.c.
 *
 * A walk follows from where it begins, from the rules of the code that it meets, and from the words of the
 * stack that it reads: its trail. A stack with the same beginning, the same rules and the same words in the
 * same places is the same stack, frame by frame. So its ID is known, and these words are all that has to be
 * read. Nothing is merely likely here: everything that the walk depended on is compared.
 *
 * Places are counted from an origin: the stack pointer that the walk began with, then each frame pointer that
 * it followed. So threads that wait at one place share a trail, and frames of varying size are no hindrance:
 * the kernel gives one to each system call (randomize_kstack_offset). Only stacks that were walked to
 * their end by plain rules have a trail: offcpu_orc.bpf.h, unwind_known.bpf.h.
 */
#ifndef STACKTOOLS_TRAIL_BPF_H
#define STACKTOOLS_TRAIL_BPF_H

const volatile bool verify_stacks; /* --verify-stacks */

#define TRAIL_TRIALS 16 /* so many recognised stacks on each CPU are walked as well, and compared */
#define TRAILS 64 /* of kernel stacks, and as many of user stacks, on each CPU */
#define TRAIL_PAIRS 5 /* bits: which two of them a stack may have */
#define TRAIL_STEPS 64
#define TRAIL_AT_ONCE 8 /* steps */
#define TRAIL_BYTES 4096 /* of stack */

_Static_assert(TRAILS == 2 << TRAIL_PAIRS, "pairs of trails");

/* What a step follows. */
enum trail_by {
	TRAIL_BY_SP,
	TRAIL_BY_FP, /* a saved frame pointer: that becomes the origin */
	TRAIL_BY_REGISTER, /* the frame pointer that the walk began with does */
};

struct trail_step {
	__u64 ra; /* return address, */
	__u32 at; /* so many bytes from the origin */
	__u16 by; /* enum trail_by */
	__u16 fp_at; /* TRAIL_BY_FP: so many bytes from the origin before */
};

/* Where a walk has its frame pointer from, if not an address. */
enum trail_fp {
	TRAIL_FP_REGISTER,
	TRAIL_FP_BEFORE /* it is one that the walk has followed already, or not known */
};

struct trail {
	__u64 begin[3]; /* all else that the walk depended on, as its user sees fit */
	__u64 end; /* the same, as a place */
	/* hi == 0: the trail is being made, or there is none. Of a stack that an interpreter's functions are
	   in, of its native frames alone, which nobody has sent */
	struct offcpu_stack_id id;
	__u32 epoch; /* in which the stack was sent */
	__u32 n; /* steps */
	/* while the trail is made: addresses of the beginning and of the origin */
	__u64 base, origin;
	__u64 bytes; /* of stack, up to the last return address */
	__u64 key; /* trail_key() of the stack */
	struct trail_step steps[TRAIL_STEPS];
};

/* Used by the switch program and those that it excludes on its CPU, one stack after the other. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2 * TRAILS);
	__type(key, __u32);
	__type(value, struct trail);
} trails SEC(".maps");

/* How far a stack is known to have a trail. Addresses are distances from its first byte. */
struct trail_match {
	__u64 origin;
	__u64 low; /* the next return address is not below: a walk goes upwards */
};

/* Beside the trails, for each CPU. */
struct trail_stack {
	struct offcpu_stack_id id; /* what was recognised */
	__u32 compared; /* with a walk */
	__u32 compared_scripts, unknown_scripts, pad; /* see python_same.bpf.h */
	struct trail_match match;
	/* the part of the stack that a trail is looked for in; the mask of a place proves only TRAIL_BYTES */
	__u8 bytes[TRAIL_BYTES + 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct trail_stack);
} trail_stacks SEC(".maps");

__u32 mistaken = 0; /* a walk found another user stack than was recognised: none is recognised any more */

/* Of a user stack. */
enum trail_found { TRAIL_NOT_READY, TRAIL_NOT_FOUND, TRAIL_TO_COMPARE, TRAIL_HAS_FRAMES };

/* Number NUMBER of the trails, from 1 on; 0 is none. */
static __always_inline struct trail *trail_of(__u32 number)
{
	__u32 at = number - 1;

	return bpf_map_lookup_elem(&trails, &at);
}

/* A and B distinguish a stack from others. */
static __always_inline __u64 trail_key(__u64 a, __u64 b)
{
	return (a ^ b << 32) * 0x9e3779b97f4a7c15ULL;
}

/*
 * The number of the trail of a stack: of the two that it may have, the one with its KEY, or else one by
 * chance. So two stacks in turns soon have one each.
 */
static __always_inline __u32 trail_number(bool of_user, __u64 key)
{
	__u32 number = 1 + of_user * TRAILS + 2 * (key >> (64 - TRAIL_PAIRS));
	const struct trail *t;

	t = trail_of(number);
	if (t && t->key == key)
		return number;
	t = trail_of(number + 1);
	if (t && t->key == key)
		return number + 1;
	return number + (bpf_ktime_get_ns() >> 4 & 1);
}

/* A walk of a stack with KEY that begins at BASE leaves its trail in T. */
static __always_inline void trail_begin(struct trail *t, __u64 key, __u64 base)
{
	t->key = key;
	t->base = t->origin = base;
	t->id.hi = 0;
	t->n = 0;
	t->bytes = 0;
}

/* The walk depends on more than the stack, or on places that differ from one stack to the next. */
static __always_inline void trail_lost(struct trail *t)
{
	t->n = TRAIL_STEPS + 1;
}

/*
 * The walk has read return address RA at address AT. BY_FP: by frame pointer FP, which it has read at address
 * *FP_FROM, or enum trail_fp.
 */
static __always_inline void trail_step(
	struct trail *t, __u64 at, __u64 ra, bool by_fp, __u64 fp, __u64 *fp_from)
{
	struct trail_step *step = &t->steps[t->n & (TRAIL_STEPS - 1)];
	__u64 from = *fp_from - t->origin;

	step->by = TRAIL_BY_SP;
	if (by_fp) {
		step->by = *fp_from == TRAIL_FP_REGISTER ? TRAIL_BY_REGISTER : TRAIL_BY_FP;
		if (step->by == TRAIL_BY_FP && (*fp_from == TRAIL_FP_BEFORE || from >= 1 << 16))
			trail_lost(t);
		step->fp_at = from;
		t->origin = fp;
		*fp_from = TRAIL_FP_BEFORE;
	}
	step->ra = ra;
	step->at = at - t->origin;
	t->bytes = at + 8 - t->base;
	t->n++;
}

typedef __u64 (*trail_read)(const void *stack, __u64 at);

/*
 * Does a stack of SIZE bytes at BASE, whose words READ returns, go on for the next steps of trail T, from
 * step FROM on? FP: the frame pointer that a walk would begin with. FRAMES: where the return addresses are
 * copied, or NULL.
 */
static __always_inline bool trail_goes_on(const struct trail *t, __u32 from, struct trail_match *m,
	trail_read read, const void *stack, __u64 base, __u64 size, __u64 fp, __u64 *frames)
{
	const struct trail_step *step;
	__u64 origin = m->origin, low = m->low;
	__u32 n = t->n - from;

	barrier_var(from);
	step = &t->steps[from];
	for (__u32 i = 0; i < TRAIL_AT_ONCE && i < n; i++, step++) {
		__u64 at = origin + step->fp_at;

		if (step->by == TRAIL_BY_FP) {
			if (at >= size)
				return false;
			origin = read(stack, at) - base;
		} else if (step->by == TRAIL_BY_REGISTER) {
			origin = fp - base;
		}
		at = origin + step->at;
		if (at < low || at >= size || read(stack, at) != step->ra)
			return false;
		low = at + 8;
		if (frames)
			frames[i] = code_address(step->ra);
	}
	m->origin = origin;
	m->low = low;
	return true;
}

/* The trail leads to stack ID, which user space has. */
static __always_inline void trail_end(struct trail *t, const struct offcpu_stack_id *id, __u32 epoch)
{
	if (t->n > TRAIL_STEPS || t->bytes > TRAIL_BYTES)
		return;
	t->id = *id;
	t->epoch = epoch;
}

#endif
