/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The way of a thread's last walk (struct unwind_trail): followed as far as it
 * still holds, made anew where it does not. Part of unwind.bpf.h.
 *
 * A step needs no search: that a frame is entered in the same state, and that
 * the words on the stack are what they were, is all there is to see.
 */
#ifndef STACKTOOLS_UNWIND_TRAIL_BPF_H
#define STACKTOOLS_UNWIND_TRAIL_BPF_H

#define TRAIL_PC(pc) ((pc)&0xffffffffffffULL)

/* The state of the frame at hand is step N of the new trail. */
static __always_inline void new_step(struct unwind_walk *w, __u32 n)
{
	if (n >= UNWIND_TRAIL_MAX || !w->fp_known || w->pc >> 48)
		w->fresh_end = 1;
	if (w->fresh_end || n >= UNWIND_TRAIL_MAX)
		return;
	w->fresh[n].pc = w->pc;
	w->fresh[n].sp = w->sp;
	w->fresh[n].fp = w->fp;
	w->fresh_len = n + 1;
}

/* The way from the frame at hand to its caller, by R, as part of step N; or the trail ends there. */
static __always_inline void new_way(struct unwind_walk *w, __u32 n, const struct unwind_rule *r)
{
	__u64 up = w->cfa + (__s64)r->fp_off - w->sp;

	if (n >= UNWIND_TRAIL_MAX || r->cfa != UNWIND_CFA_REG ||
		(r->ra != UNWIND_RA_CALL && (r->ra != UNWIND_RA_CFA || r->ra_off != -8)) || r->flags ||
		(w->cfa ^ w->sp) >> 32)
		w->fresh_end = 1;
	else if (r->reg != ARCH_SP && r->reg != ARCH_FP)
		w->fresh_end = 1; /* the state of a step has no other registers */
	else if (r->fp == UNWIND_FP_CFA && !(up & 7) && up < 0xffff * 8)
		w->fresh[n].pc |= ((up >> 3) + 1) << 48;
	else if (r->fp != UNWIND_FP_SAME)
		w->fresh_end = 1;
}

/* Is the frame at hand on the trail, at the step that is next or a few further? */
static __always_inline void join_trail(struct unwind_walk *w, const struct unwind_trail *t)
{
	for (int i = 0; i < 4; i++) {
		__u32 at = w->at;

		if (at >= t->len || at >= UNWIND_TRAIL_MAX)
			return;
		if (t->steps[at].sp >= (__u32)w->sp) {
			/* the first step is of an exact PC, all others are of return addresses */
			w->on_trail = t->steps[at].sp == (__u32)w->sp && TRAIL_PC(t->steps[at].pc) == w->pc &&
				      t->steps[at].fp == (__u32)w->fp && w->fp_known && !w->exact == !!at &&
				      w->sp >> 32 == t->sp_high;
			return;
		}
		w->at = at + 1;
	}
}

/*
 * To the caller by the trail: the words on the stack must be what they were.
 * -1: it does not lead on; else as step().
 */
static __always_inline int step_by_trail(struct unwind_walk *w, const struct unwind_trail *t, __u32 n)
{
	__u32 at = w->at, next = at + 1;
	__u64 sp, ra, fp = w->fp, up;

	if (next >= t->len || next >= UNWIND_TRAIL_MAX || at >= UNWIND_TRAIL_MAX) {
		if (!t->complete || next != t->len)
			return -1;
		w->verdict = VERDICT_COMPLETE;
		return 0;
	}
	up = t->steps[at].pc >> 48;
	sp = (__u64)t->sp_high << 32 | t->steps[next].sp;
	if (!user_word(w, sp - 8, &ra) || ra != TRAIL_PC(t->steps[next].pc))
		return -1;
	if (up && !user_word(w, w->sp + (up - 1) * 8, &fp))
		return -1;
	if ((__u32)fp != t->steps[next].fp)
		return -1;
	if (n < UNWIND_TRAIL_MAX)
		w->fresh[n].pc |= up << 48;
	w->bx_from = BX_LOST;
	w->exact = 0;
	w->regs = 0;
	w->ucontext = 0;
	w->pc = ra;
	w->sp = sp;
	w->fp = fp;
	w->at = next;
	return 1;
}

/* Was every frame where the trail says? Then the stack is the one that the trail was made of. */
static __always_inline bool trail_held(const struct unwind_walk *w)
{
	return w->held && w->verdict == VERDICT_COMPLETE;
}

/* Keep the way that was walked for the thread's next wait. */
static __always_inline void keep_trail(struct unwind_walk *w, struct unwind_trail *t)
{
	__u32 len = w->fresh_len;

	t->serial = w->serial;
	t->sp_high = w->sp_high;
	t->complete = w->verdict == VERDICT_COMPLETE && !w->fresh_end && len == w->len;
	t->len = 0;
	/* a helper copies at once what a loop would copy word by word */
	if (len <= UNWIND_TRAIL_MAX &&
		bpf_probe_read_kernel(t->steps, len * sizeof(t->steps[0]), w->fresh) == 0)
		t->len = len;
}

#endif
