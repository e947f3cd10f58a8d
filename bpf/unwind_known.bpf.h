/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cache of known rules: how recent walks on this CPU left the frames of a
 * PC. Part of unwind.bpf.h.
 *
 * Nearly every frame of a waiting thread was seen a moment before, in another
 * wait or in another thread. Its row need not be searched again: PC and
 * mappings determine the rule, and both are compared. All that depends on the
 * stack (CFA, return address, registers) is read from it at every walk.
 *
 * Only the plain rules are kept, in sixteen bytes: the frame of a call whose
 * CFA is found from SP or FP, and the outermost frame. step() handles all
 * others, and all of a thread that executes i386 code.
 */
#ifndef STACKTOOLS_UNWIND_KNOWN_BPF_H
#define STACKTOOLS_UNWIND_KNOWN_BPF_H

#define KNOWN_SETS 512
#define KNOWN_STEPS 8 /* frames at once */

/*
 * An epoch is 0.13 s. In a new epoch everything is searched once more, so that
 * a table in use is marked as used long before it looks idle (BUSY_NS in
 * lib/record/unwind_tables.c).
 */
#define KNOWN_EPOCH_SHIFT 27
#define KNOWN_NEVER (1ULL << 63) /* no entry has such a tag */

enum known_base { KNOWN_SP = 0, KNOWN_FP = 1, KNOWN_END = 2 };

struct unwind_known {
	/* 63..16: address looked up; 15..2: words from the base to the CFA; 1..0: enum known_base */
	__u64 at;
	/*
	 * 63..16: known_tag(); 15..8: words down from the CFA to the second
	 * callee-saved register, 0 = it stayed where it was; on arm64, to the return
	 * address; 7..0: the same for the frame pointer
	 */
	__u64 way;
};

/* Two entries for each address: the newer one is first. */
struct unwind_known_set {
	struct unwind_known way[2];
};

struct unwind_known_sets {
	struct unwind_known_set set[KNOWN_SETS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_known_sets);
} unwind_known SEC(".maps");

/* An entry is valid only with the same tag: serial of the mappings, and epoch. */
static __always_inline __u64 known_tag(const struct unwind_walk *w)
{
	return (__u64)w->serial << 16 | (w->now_ns >> KNOWN_EPOCH_SHIFT & 0xff);
}

/* The set of PC. SALT is known_salt() of the tag. */
static __always_inline __u32 known_set(__u64 pc, __u64 salt)
{
	return (pc * 0x9e3779b97f4a7c15ULL + salt) >> 55;
}

static __always_inline __u64 known_salt(__u64 tag)
{
	return (tag >> 16) * 0xc2b2ae3d27d4eb4fULL;
}

/* 0 if a struct unwind_known with these words is the entry of PC. One comparison, not one for each word. */
static __always_inline __u64 known_differs(__u64 at, __u64 way, __u64 pc, __u64 tag)
{
	__u64 differs = (at >> 16 ^ pc) | (way >> 16 ^ tag);

	barrier_var(differs);
	return differs;
}

/* Do the bits of a struct unwind_known suffice for R? Then set the lower parts of its words. */
static __always_inline bool known_way(const struct unwind_rule *r, __u64 *at, __u64 *way)
{
	__u32 cfa = r->cfa_off, fp = -r->fp_off, bx = -r->ra_off;

	*way = 0;
	*at = KNOWN_END;
	if (r->ra == UNWIND_RA_END)
		return !r->flags;
	if (r->cfa != UNWIND_CFA_REG || r->ra != (ARCH_LR ? UNWIND_RA_CFA : UNWIND_RA_CALL) || r->flags ||
		cfa & 7 || cfa >> 17)
		return false;
	if (r->reg != ARCH_SP && r->reg != ARCH_FP)
		return false;
	*at = cfa >> 1 | (r->reg == ARCH_FP ? KNOWN_FP : KNOWN_SP);
	/* UNWIND_BX_UNKNOWN is not a multiple of 8 */
	if (bx & 7 || bx >> 11 || (ARCH_LR && !bx))
		return false;
	*way = bx << 5;
	if (r->fp == UNWIND_FP_SAME)
		return true;
	*way |= fp >> 3;
	return r->fp == UNWIND_FP_CFA && !(fp & 7) && fp && !(fp >> 11);
}

/* Remember that R leads from PC to its caller, with W's mappings. */
static __always_inline void known_put(const struct unwind_walk *w, __u64 pc, const struct unwind_rule *r)
{
	struct unwind_known_sets *known;
	struct unwind_known_set *set;
	__u32 zero = 0;
	__u64 at, way;

	if (pc >> 48 || !known_way(r, &at, &way))
		return;
	known = bpf_map_lookup_elem(&unwind_known, &zero);
	if (!known)
		return;
	set = &known->set[known_set(pc, known_salt(w->tag)) & (KNOWN_SETS - 1)];
	/* replace an entry of another epoch in place */
	if (set->way[0].at >> 16 != pc || set->way[0].way >> 32 != w->serial)
		set->way[1] = set->way[0];
	set->way[0].at = pc << 16 | at;
	set->way[0].way = w->tag << 16 | way;
}

/*
 * The step that reads the return address in the window at address RA_AT, by the rule with struct
 * unwind_known.at, is part of the walk's trail. By itself, so that the verifier follows it once.
 */
__noinline int known_trail(__u64 ra_at, __u64 rule_at)
{
	struct unwind_walk *w = this_walk();
	struct trail *t;
	__u64 ra;

	t = w ? trail_of(w->trail) : NULL;
	if (!t)
		return 0;
	ra = *(__u64 *)(w->window + ((ra_at - w->window_at) & (UNWIND_WINDOW - 1)));
	trail_step(t, ra_at, ra, rule_at & KNOWN_FP, w->fp, &w->fp_from);
	return 0;
}

/*
 * Step from frame to frame by the cache, at most KNOWN_STEPS times. A frame
 * that is not in the cache or is unusual in any way changes nothing: step()
 * handles it. Returns false if the outermost frame was reached.
 *
 * SP and frame pointer stay in memory: in registers their ranges would differ
 * at each exit from the loop, and the verifier would follow each to the end. It
 * would also follow each outcome of a choice between constants or pointers: so words are
 * chosen that it knows nothing of, and what is added is computed.
 */
static __always_inline bool known_steps(
	struct unwind_walk *w, __u64 *frames, const struct unwind_known_sets *known)
{
	/* known_can(): `exact` is 1 of the innermost frame, or 0 */
	__u64 frame = w->pc, pc = w->pc - 1 + w->exact, tag = w->tag, salt = known_salt(tag);
	__u32 n = w->len, at = n;

	barrier_var(at); /* as in frame_at(): known_can() has looked at it */
	frames += at & (OFFCPU_DEPTH_MAX - 1);
	w->missed = 0;
#pragma unroll
	for (__u32 i = 0; i < KNOWN_STEPS; i++) {
		const struct unwind_known_set *set = &known->set[known_set(pc, salt) & (KNOWN_SETS - 1)];
		__u64 known_at = set->way[0].at, way = set->way[0].way;
		__u64 cfa, ra, ra_at, ra_below, fp, fp_at, below, is_below;

		if (known_differs(known_at, way, pc, tag)) {
			known_at = set->way[1].at;
			way = set->way[1].way;
			if (known_differs(known_at, way, pc, tag))
				break;
		}
		barrier_var(known_at);
		barrier_var(way);
		if (known_at & KNOWN_END) {
			frames[i] = frame;
			w->len = n + i + 1;
			w->verdict = VERDICT_COMPLETE;
			break;
		}
		cfa = w->sp;
		fp = w->fp;
		barrier_var(fp); /* else the address would be chosen, then read */
		if (known_at & KNOWN_FP)
			cfa = fp;
		cfa += (known_at & 0xfffc) << 1;
		below = (way & 0xff) << 3;
		ra_below = ARCH_LR ? way >> 5 & 0x7f8 : 8;
		ra_at = cfa - ra_below - w->window_at;
		is_below = -below;
		barrier_var(is_below);
		fp_at = ra_at + (ra_below - below) * (is_below >> 63); /* ra_at, if nothing is */
		if (ra_at >= w->window_starts || fp_at >= w->window_starts) {
			w->missed = w->window_at + fp_at;
			break;
		}
		ra = code_address(*(__u64 *)(w->window + (ra_at & (UNWIND_WINDOW - 1))));
		if (cfa <= w->sp || !ra)
			break;
		known_trail(w->window_at + ra_at, known_at);
		if (below) {
			w->fp = *(__u64 *)(w->window + (fp_at & (UNWIND_WINDOW - 1)));
			w->fp_from = w->window_at + fp_at;
		}
		below = way >> 5 & 0x7f8;
		if (!ARCH_LR && below) {
			w->bx_from = BX_IN_MEMORY;
			w->bx_at = cfa - below;
		}
		frames[i] = frame;
		w->len = n + i + 1;
		w->sp = cfa;
		frame = ra;
		pc = ra - 1;
	}
	if (w->len == n)
		return true;
	w->pc = frame;
	w->exact = 0;
	w->regs = w->ucontext = 0;
	if (w->missed)
		read_window(w->missed);
	return w->verdict != VERDICT_COMPLETE;
}

/* Can known_steps() begin with the current frame? */
static __always_inline bool known_can(const struct unwind_walk *w)
{
	__u32 n = w->len;

	if (ARCH_LR && w->sp_lost)
		return false;
	return n <= OFFCPU_DEPTH_MAX - KNOWN_STEPS && n + KNOWN_STEPS <= depth && w->fp_known && !w->retry &&
	       !((__u64)w->exact * n); /* both are not 0 */
}

#endif
