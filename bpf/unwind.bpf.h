/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk of a user stack by unwind tables. Part of offcpu.bpf.c.
 *
 * A walk starts with the registers that the thread entered the kernel with. For
 * each frame it finds the mapping of the PC, its table, the row and the CFA,
 * reads return address and frame pointer from the stack, and goes on until the
 * outermost frame. If a mapping has no table (JIT code), it takes a step by
 * frame pointer, provided that the step provably leads to the instruction after
 * a call. What cannot be proved ends the walk, with a reason. Formats:
 * unwind_abi.h.
 */
#ifndef STACKTOOLS_UNWIND_BPF_H
#define STACKTOOLS_UNWIND_BPF_H

#include "unwind_abi.h"

#if defined(__TARGET_ARCH_x86)
#include "unwind_x86.bpf.h"
#else
#error "no unwind_ARCH.bpf.h for this architecture"
#endif

#include "unwind_walk.bpf.h"
#include "unwind_find.bpf.h"
#include "unwind_known.bpf.h"
#include "unwind_go.bpf.h"

/* The second callee-saved register: some functions that align their stack compute their CFA from it. */
static __always_inline bool bx_register(struct unwind_walk *w, __u64 *value)
{
	if (w->bx_from == BX_AT_ENTRY)
		return bpf_probe_read_kernel(value, 8, (void *)(w->entry_regs + arch_pt_regs[ARCH_BX])) == 0;
	if (w->bx_from == BX_IN_MEMORY) {
		if (!user_word(w, w->bx_at, &w->bx_at))
			return false;
		/* read only once: the frame may be repeated with another window */
		w->bx_from = BX_READ;
	}
	*value = w->bx_at;
	return w->bx_from == BX_READ;
}

/* Where that register is for the caller of the frame that R leaves. Its value is read only if needed. */
static __always_inline void follow_bx(struct unwind_walk *w, const struct unwind_rule *r)
{
	if (r->flags & UNWIND_SIGNAL) {
		w->bx_from = BX_IN_MEMORY;
		w->bx_at = w->sp + arch_ucontext[ARCH_BX];
	} else if (r->ra == UNWIND_RA_CALL && r->ra_off != UNWIND_BX_SAME) {
		w->bx_from = r->ra_off == UNWIND_BX_UNKNOWN ? BX_LOST : BX_IN_MEMORY;
		w->bx_at = w->cfa + (__s64)r->ra_off;
	} else if (r->ra != UNWIND_RA_CALL && r->cfa != UNWIND_CFA_PLT) {
		w->bx_from = BX_LOST;
	}
}

static __always_inline bool find_cfa(struct unwind_walk *w, const struct unwind_rule *r)
{
	__u64 base;

	switch (r->cfa) {
	case UNWIND_CFA_REG:
	case UNWIND_CFA_DEREF:
	case UNWIND_CFA_PLT:
	case UNWIND_CFA_DEREF_PLUS:
		break;
	case UNWIND_CFA_UNSUPPORTED:
		return stop(w, REASON_EXPRESSION);
	case UNWIND_CFA_GO_SAVED:
	case UNWIND_CFA_GO_TLS:
		return go_cfa(w, r);
	default:
		return stop(w, REASON_NO_ROW);
	}
	if (r->reg == ARCH_SP)
		base = w->sp;
	else if (r->reg == ARCH_FP && w->fp_known)
		base = w->fp;
	else if (r->reg == ARCH_FP ||
		 !(r->reg == ARCH_BX ? bx_register(w, &base) : other_register(w, r->reg, &base)))
		return stop(w, REASON_REGISTER);
	base += (__s64)r->cfa_off;
	if (r->cfa == UNWIND_CFA_DEREF || r->cfa == UNWIND_CFA_DEREF_PLUS) {
		if (!user_word(w, base, &base))
			return stop(w, REASON_MEMORY);
		if (r->cfa == UNWIND_CFA_DEREF_PLUS)
			base += (__s64)r->ra_off;
	} else if (r->cfa == UNWIND_CFA_PLT && (w->pc & 15) >= (__u32)r->ra_off) {
		base += 8;
	}
	w->cfa = base;
	return true;
}

/* The caller's frame pointer. If it cannot be known, the walk stops only when it is needed. */
static __always_inline bool find_fp(
	struct unwind_walk *w, const struct unwind_rule *r, __u64 *fp, bool *known)
{
	__s64 off = r->cfa >= UNWIND_CFA_GO_SAVED ? -16 : r->fp_off;
	__u64 addr;

	*fp = w->fp;
	*known = w->fp_known;
	switch (r->fp) {
	case UNWIND_FP_SAME:
		return true;
	case UNWIND_FP_CFA:
		addr = w->cfa;
		break;
	case UNWIND_FP_AT_SP:
		addr = w->sp;
		break;
	case UNWIND_FP_AT_FP:
		addr = w->fp;
		if (w->fp_known)
			break;
		return true;
	case UNWIND_FP_REG:
		*known = other_register(w, r->fp_off, fp);
		return true;
	default:
		*known = false;
		return true;
	}
	*known = true;
	return user_word(w, addr + off, fp) || stop(w, REASON_MEMORY);
}

static __always_inline bool find_ra(struct unwind_walk *w, const struct unwind_rule *r, __u64 *ra)
{
	__u64 addr = w->cfa + (__s64)r->ra_off;

	if (r->cfa >= UNWIND_CFA_GO_SAVED) {
		addr = w->go_ra;
	} else if (r->cfa == UNWIND_CFA_PLT || r->cfa == UNWIND_CFA_DEREF_PLUS || r->ra == UNWIND_RA_CALL) {
		addr = w->cfa - 8;
	} else if (r->ra == UNWIND_RA_AT_SP) {
		addr = w->sp + (__s64)r->ra_off;
	} else if (r->ra == UNWIND_RA_REG) {
		return other_register(w, r->ra_off, ra) || stop(w, REASON_REGISTER);
	} else if (r->ra != UNWIND_RA_CFA) {
		return stop(w, REASON_EXPRESSION);
	}
	return user_word(w, addr, ra) || stop(w, REASON_MEMORY);
}

/* Step to the caller by the row of PC. Returns -1 if there is no row, else the same as step(). */
static __always_inline int step_by_table(struct unwind_walk *w, __u64 pc)
{
	const struct unwind_rule *r = find_rule(w, pc);
	__u64 fp, ra;
	bool fp_known;

	if (r && r->cfa != UNWIND_CFA_NONE && !w->retry && !w->remote)
		known_put(w, pc, r);
	if (r && r->cfa != UNWIND_CFA_NONE && r->ra == UNWIND_RA_END) {
		w->verdict = VERDICT_COMPLETE;
		return false;
	}
	/*
	 * A return address that no call pushed, but that was put on a new stack
	 * (makecontext), may be the first byte of the function that ends that
	 * stack: look it up once more as an exact PC, but accept only an end
	 * mark.
	 */
	if (w->retry || !r || r->cfa == UNWIND_CFA_NONE) {
		if (w->exact)
			return -1;
		w->exact = w->retry = 1;
		w->len--;
		return true;
	}
	if ((r->flags & UNWIND_IN_SYSCALL) && !(w->regs && w->in_syscall))
		return -1;
	if (!find_cfa(w, r) || !find_fp(w, r, &fp, &fp_known) || !find_ra(w, r, &ra))
		return false;
	follow_bx(w, r);
	go_left(w, r);
	w->exact = r->flags & UNWIND_SIGNAL;
	w->ucontext = w->exact ? w->sp : 0;
	/*
	 * A signal may have switched stacks. Every other frame must lead
	 * upwards, except a frame that has taken its return address off the
	 * stack, and a CFA from a register other than SP: a program may go from
	 * stack to stack (-fsplit-stack, coroutines). These switches are
	 * limited, because a loop would repeat them forever.
	 */
	if (!w->exact && w->cfa <= w->sp && (w->cfa != w->sp || r->ra != UNWIND_RA_REG) &&
		(r->reg == ARCH_SP || ++w->stacks > UNWIND_STACKS_MAX))
		return stop(w, REASON_LOOP);
	if (!ra) {
		w->verdict = VERDICT_COMPLETE;
		return false;
	}
	w->regs = 0;
	w->pc = ra;
	w->sp = w->cfa;
	w->fp = fp;
	w->fp_known = fp_known;
	return true;
}

/*
 * Step to the caller by frame pointer, if no row covers the code. The step is
 * accepted only if the word above the saved frame pointer is an address right
 * after a call in a known mapping; W's mapping is then that of the caller.
 */
static __always_inline bool step_by_fp(struct unwind_walk *w)
{
	__u64 fp, ra, before;

	w->bx_from = BX_LOST;
	if (!w->fp_known || w->fp < w->sp || (w->fp & (ARCH_STACK_ALIGN - 1)) || !user_word(w, w->fp, &fp) ||
		!user_word(w, w->fp + 8, &ra))
		return stop(w, REASON_NO_FRAME_POINTER);
	if (!ra) {
		w->by_fp = 1;
		w->verdict = VERDICT_COMPLETE;
		return false;
	}
	if (!find_map(w->remote, ra - 1))
		return stop(w, REASON_NO_FRAME_POINTER);
	if (!code_before(w, ra, &before) || !arch_after_call(before))
		return stop(w, REASON_NO_FRAME_POINTER);
	w->exact = 0;
	w->ucontext = 0;
	w->regs = 0;
	w->by_fp = 1;
	w->retry = 0;
	w->pc = ra;
	w->sp = w->fp + 16;
	w->fp = fp;
	return true;
}

/*
 * Store the frame of W's PC and step to its caller. Returns false if the walk
 * has ended, or needs memory.
 */
static __always_inline bool step(struct unwind_walk *w, __u64 *frames)
{
	__u32 n = w->len, state;
	__u64 pc;
	int way;

	if (n >= depth || n >= OFFCPU_DEPTH_MAX) {
		w->verdict = VERDICT_TRUNCATED;
		return false;
	}
	/* not user code: the upper half belongs to the kernel */
	if ((__s64)w->pc < 0)
		return stop(w, REASON_NO_MAPPING);
	frames[n] = w->exact && n && !w->retry ? w->pc | OFFCPU_EXACT : w->pc;
	w->len = n + 1;
	/* a return address may be the first byte of the next function */
	pc = w->exact ? w->pc : w->pc - 1;
	if ((pc < w->map_start || pc >= w->map_end) && !find_map(w->remote, pc))
		return stop(w, REASON_NO_MAPPING);
	state = UNWIND_MAP_STATE(w->word);
	if (state == UNWIND_TABLE) {
		way = step_by_table(w, pc);
		if (way >= 0)
			return way;
	} else if (state != UNWIND_BY_FP) {
		return stop(w, state == UNWIND_PENDING ? REASON_NOT_READY : REASON_DROPPED);
	}
	if (step_by_fp(w))
		return true;
	if (state == UNWIND_TABLE && w->verdict == VERDICT_STOPPED)
		w->reason = REASON_NO_ROW;
	return false;
}

#endif
