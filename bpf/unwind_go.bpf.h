/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From one stack of a Go program to another: UNWIND_CFA_GO_* of unwind_abi.h.
 * Part of unwind.bpf.h; lib/unwind/walk.c has the same for a copy.
 *
 * What is read may be anything. A goroutine is believed if its stack has a
 * beginning and an end and the frame lies between them; the one that the thread
 * runs, and the thread's own, if they belong to the thread in turn.
 */
#ifndef STACKTOOLS_UNWIND_GO_BPF_H
#define STACKTOOLS_UNWIND_GO_BPF_H

/*
 * Word number I of this frame's way, in this order. Each is read only once: the
 * walk of another task may repeat the frame for each word.
 */
static __always_inline bool go_word(struct unwind_walk *w, __u32 i, __u64 addr, __u64 *value)
{
	if (w->go_have > i) {
		*value = w->go_words[i & (UNWIND_GO_WORDS - 1)];
		return true;
	}
	if (!user_word(w, addr, value))
		return false;
	w->go_words[i & (UNWIND_GO_WORDS - 1)] = *value;
	w->go_have = i + 1;
	return true;
}

/*
 * Is SP in the stack of goroutine G? Its bounds are words I and I + 1. These
 * return 0 for yes, or the reason to stop.
 */
static __always_inline int go_stack_has(struct unwind_walk *w, __u32 i, __u64 g, __u64 sp)
{
	__u64 low, high;

	if (!go_word(w, i, g, &low) || !go_word(w, i + 1, g + UNWIND_GO_STACK_END, &high))
		return REASON_MEMORY;
	return sp > low && sp <= high && !(sp & 7) ? 0 : REASON_LOOP;
}

/* Find the CFA by a rule UNWIND_CFA_GO_SAVED. */
__noinline int go_saved(__u32 cfa_off, __u32 fp_off, __u32 ra_off)
{
	struct unwind_walk *w = this_walk();
	__u64 g, distance, end;

	if (!w || !go_word(w, 0, w->sp + (__s32)cfa_off, &g) ||
		!go_word(w, 1, w->sp + (__s32)fp_off, &distance) ||
		!go_word(w, 2, g + UNWIND_GO_STACK_END, &end))
		return REASON_MEMORY;
	w->cfa = end - distance + (__s32)ra_off;
	w->go_ra = w->cfa - 8;
	return go_stack_has(w, 3, g, end - distance);
}

/* The base of a thread's local storage; 0 = not known: task_layout may not have found it. */
static __always_inline __u64 tls_of(struct task_struct *task)
{
	return bpf_core_field_exists(task->thread.fsbase) ? BPF_CORE_READ(task, thread.fsbase) : 0;
}

/* The other goroutine of the thread; *OTHER is 0 if it has none. */
static __always_inline int go_other(struct unwind_walk *w, __u32 cfa_off, __u32 fp_off, __u64 *other)
{
	__u64 g, m, owner, tls = remote ? w->tls : tls_of((void *)bpf_get_current_task());

	if (!tls)
		return REASON_REGISTER;
	if (!go_word(w, 0, tls + (__s32)cfa_off, &g) || !go_word(w, 1, g + (fp_off & 0xffff), &m) ||
		!go_word(w, 2, m + (fp_off >> 16), other))
		return REASON_MEMORY;
	if (!*other)
		return 0;
	if (!go_word(w, 3, *other + (fp_off & 0xffff), &owner))
		return REASON_MEMORY;
	return owner == m ? 0 : REASON_LOOP;
}

#define GO_ENDS 255 /* no reason: the stack ends here */

/* Find the CFA by a rule UNWIND_CFA_GO_TLS of KIND (enum unwind_go). */
__noinline int go_by_tls(__u32 kind, __u32 cfa_off, __u32 fp_off, __u32 ra_off)
{
	struct unwind_walk *w = this_walk();
	__u64 other, owner, sp;
	int why;

	if (!w)
		return REASON_MEMORY;
	why = go_other(w, cfa_off, fp_off, &other);
	if (why)
		return why;
	if (!other)
		return kind == UNWIND_GO_CALLBACK ? REASON_LOOP : GO_ENDS;
	/*
	 * systemstack switches only to a thread's own stack that is not in use;
	 * after morestack the thread may be about to run another goroutine
	 */
	if ((kind != UNWIND_GO_CALLBACK && w->go_came) || (kind == UNWIND_GO_MORE && !w->go_copies))
		return REASON_EXPRESSION;
	sp = w->go_sp;
	if (w->go_came != GO_BY_CALLBACK && !go_word(w, 4, other + (ra_off >> 16), &sp))
		return REASON_MEMORY;
	w->cfa = sp + (ra_off & 0xffff);
	w->go_ra = w->cfa - 8;
	if (kind == UNWIND_GO_CALLBACK) {
		if (sp & 7)
			return REASON_LOOP;
		return go_word(w, 5, sp, &w->go_next) ? 0 : REASON_MEMORY;
	}
	why = go_stack_has(w, 5, other, sp);
	if (why || kind == UNWIND_GO_GOROUTINE)
		return why;
	/* in X: stack pointer, PC, X itself */
	w->cfa = sp;
	w->go_ra = other + (ra_off >> 16) + 8;
	if (!go_word(w, 7, w->go_ra + 8, &owner))
		return REASON_MEMORY;
	return owner == other ? 0 : REASON_LOOP;
}

/* Find the CFA by R; false if the walk has ended. */
static __always_inline bool go_cfa(struct unwind_walk *w, const struct unwind_rule *r)
{
	int why = r->cfa == UNWIND_CFA_GO_SAVED ? go_saved(r->cfa_off, r->fp_off, r->ra_off)
						: go_by_tls(r->reg, r->cfa_off, r->fp_off, r->ra_off);

	if (!why)
		return true;
	if (why != GO_ENDS)
		return stop(w, why);
	w->verdict = VERDICT_COMPLETE;
	return false;
}

/* The walk has left the frame of R. */
static __always_inline void go_left(struct unwind_walk *w, const struct unwind_rule *r)
{
	w->go_have = 0;
	w->go_copies = (r->flags & UNWIND_GO_COPIES) != 0;
	if (r->cfa != UNWIND_CFA_GO_TLS)
		return;
	w->go_came = r->reg == UNWIND_GO_CALLBACK ? GO_BY_CALLBACK : GO_BY_GOROUTINE;
	w->go_sp = w->go_next;
}

#endif
