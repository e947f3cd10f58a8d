/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk of a user stack by unwind tables. Part of offcpu.bpf.c.
 *
 * A walk starts with the registers that the thread entered the kernel with. For
 * each frame it finds the mapping of the PC, its table, the row and the CFA,
 * reads return address and frame pointer from the stack, and goes on until the
 * outermost frame. Where no row covers the code (JIT code), the code itself may
 * prove the caller (unwind_code.h); else it takes a step by frame pointer,
 * provided that the step leads to the instruction after a call. Such a step may
 * skip frames, and the stack is then marked as unverified. Everything else ends
 * the walk, with a reason. Formats: unwind_abi.h.
 */
#ifndef STACKTOOLS_UNWIND_BPF_H
#define STACKTOOLS_UNWIND_BPF_H

#include "unwind_abi.h"

#if defined(__TARGET_ARCH_x86)
#include "unwind_x86.bpf.h"
#elif defined(__TARGET_ARCH_arm64)
#include "unwind_arm64.bpf.h"
#else
#error "no unwind_ARCH.bpf.h for this architecture"
#endif

#include "trail.bpf.h"
#include "unwind_walk.bpf.h"
#include "unwind_find.bpf.h"
#include "unwind_known.bpf.h"
#include "unwind_go.bpf.h"

/* The second callee-saved register: some functions that align their stack compute their CFA from it. */
static __always_inline bool bx_register(struct unwind_walk *w, __u64 *value)
{
	if (w->bx_from == BX_AT_ENTRY)
		return saved_register(w, w->entry_regs, ARCH_BX, value);
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
		w->bx_at = w->ucontext + in_ucontext(w, ARCH_BX);
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
		base += w->bytes;
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
		addr = w->cfa - w->bytes;
	} else if (r->ra == UNWIND_RA_AT_SP) {
		addr = w->sp + (__s64)r->ra_off;
	} else if (r->ra == UNWIND_RA_REG) {
		return other_register(w, r->ra_off, ra) || stop(w, REASON_REGISTER);
	} else if (r->ra != UNWIND_RA_CFA) {
		return stop(w, REASON_EXPRESSION);
	}
	return user_word(w, addr, ra) || stop(w, REASON_MEMORY);
}

/* Step to the caller by R. Returns false if the walk has ended, or needs memory. */
static __always_inline bool step_by_rule(struct unwind_walk *w, const struct unwind_rule *r)
{
	__u64 fp, ra;
	bool fp_known;

	if (!find_cfa(w, r) || !find_fp(w, r, &fp, &fp_known) || !find_ra(w, r, &ra))
		return false;
	ra = code_address(ra);
	go_left(w, r);
	w->exact = r->flags & UNWIND_SIGNAL;
	w->ucontext = w->exact ? w->sp : 0;
	if (w->exact && is_narrow(w))
		w->ucontext += (__s64)r->cfa_off - in_ucontext(w, ARCH_SP);
	follow_bx(w, r);
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
	/*
	 * Proved: a row says where the return address is, and no call pushes 0;
	 * stacks are made with 0 there. An interrupted PC of 0 does not end the stack:
	 * something was called through a null pointer.
	 */
	if (!ra && !w->exact) {
		w->verdict = VERDICT_COMPLETE;
		return false;
	}
	w->regs = 0;
	w->retry = 0;
	w->pc = ra;
	w->sp = w->cfa;
	w->fp = fp;
	w->fp_known = fp_known;
	if (ARCH_LR)
		w->sp_lost = 0;
	return true;
}

/* Is R of no use, because it needs SP, which is lost? */
static __always_inline bool needs_lost_sp(const struct unwind_walk *w, const struct unwind_rule *r)
{
	return ARCH_LR && w->sp_lost &&
	       (r->reg == ARCH_SP || r->fp == UNWIND_FP_AT_SP || r->ra == UNWIND_RA_AT_SP);
}

/* The same by the row of PC; -1 if there is none. */
__noinline int step_by_table(__u64 pc)
{
	struct unwind_walk *w = this_walk();
	const struct unwind_rule *r;

	if (!w)
		return false;
	r = find_rule(w, pc);
	if (r && r->cfa != UNWIND_CFA_NONE && r->cfa != UNWIND_CFA_UNSUPPORTED &&
		!(r->flags & UNWIND_WORD4) == is_narrow(w))
		return stop(w, REASON_COMPAT);
	if (r && r->cfa != UNWIND_CFA_NONE && !w->retry && !remote)
		known_put(w, pc, r);
	if (r && r->cfa != UNWIND_CFA_NONE && r->ra == UNWIND_RA_END) {
		w->verdict = VERDICT_COMPLETE;
		return false;
	}
	/*
	 * A return address that no call pushed may be the first byte of a
	 * function: the one that ends a stack (makecontext) or the one that ends
	 * a signal handler. Look it up once more as an exact PC, but accept only
	 * these.
	 */
	if (!r || r->cfa == UNWIND_CFA_NONE || (w->retry && !(r->flags & UNWIND_SIGNAL))) {
		if (w->exact)
			return -1;
		w->exact = w->retry = 1;
		w->len--;
		return true;
	}
	if (((r->flags & UNWIND_IN_SYSCALL) && !(w->regs && w->in_syscall)) || needs_lost_sp(w, r))
		return -1;
	return step_by_rule(w, r);
}

/* Go on at RA with SP and FP; nothing else is known of the caller. */
static __always_inline bool to_caller(struct unwind_walk *w, __u64 ra, __u64 sp, __u64 fp)
{
	w->exact = 0;
	w->ucontext = 0;
	w->regs = 0;
	w->retry = 0;
	w->pc = ra;
	w->sp = sp;
	w->fp = fp;
	return true;
}

/* The return address of a frame that has saved nothing yet, whose stack pointer is SP as a call left it. */
static __always_inline bool called_from(struct unwind_walk *w, __u64 sp, __u64 *ra)
{
	if (!ARCH_LR)
		return user_word(w, sp, ra);
	if (!other_register(w, ARCH_LR, ra))
		return false;
	*ra = code_address(*ra);
	return true;
}

/*
 * Step from a frame that has pushed nothing, so that its return address is where
 * a call left it: -1 unless that is the instruction after a call of this frame.
 * Functions that make a system call are such, and so is address 0, if it was
 * called.
 */
static __always_inline int step_by_leaf(struct unwind_walk *w, bool null)
{
	__u64 ra;

	if (!called_from(w, w->sp, &ra) || !find_map(ra - 1) || !code_around(w, &w->there, ra))
		return w->need || w->need_code ? false : -1;
	if (null ? !code_after_call(w->there.before) : !code_calls(w->there.before, ra, w->pc))
		return -1;
	w->here = w->there;
	return to_caller(w, ra, w->sp + (ARCH_LR ? 0 : w->bytes), w->fp);
}

/* These rules differ only by offsets: the verifier need not try the others. */
static __always_inline bool step_by_sigreturn(struct unwind_walk *w, const struct unwind_rule *r)
{
	struct unwind_rule rule = arch_sigreturn[CODE_SIGRETURN];

	rule.cfa_off = r->cfa_off;
	rule.fp_off = r->fp_off;
	rule.ra_off = r->ra_off;
	return step_by_rule(w, &rule);
}

/* How i386 CODE leaves its frame, in one number: see narrow_pops(). */
__noinline int narrow_return(__u64 code)
{
	struct code_pops p;
	enum code_return way = code_return32(code, &p);

	return p.skip << 8 | p.more << 1 | p.bx << 2 | way;
}

static __always_inline enum code_return narrow_pops(__u64 code, struct code_pops *p)
{
	__u32 number = narrow_return(code);

	p->skip = number >> 8;
	p->more = number >> 1 & 0x1c;
	p->bx = number >> 2 & 1;
	return number & 3;
}

/*
 * Step to the caller if the frame's own code proves where it is: see
 * unwind_code.h. -1 if it does not, else as step().
 */
__noinline int step_by_code(void)
{
	struct unwind_walk *w = this_walk();
	struct code_pops pops = {};
	enum code_return way;
	__u64 ra, sp, fp;
	__u32 sigreturn;

	if (!w)
		return -1;
	sp = w->sp;
	fp = w->fp;
	if (ARCH_LR && w->sp_lost)
		return -1;
	if (!code_around(w, &w->here, w->pc))
		return false;
	sigreturn = code_sigreturn(w->here.after, is_narrow(w));
	if (sigreturn) {
		barrier_var(sigreturn);
		return step_by_sigreturn(w, &arch_sigreturn[sigreturn & 3]);
	}
	/* an i386 function may have popped its arguments when it returned here: SP is not known */
	if (is_narrow(w) && !w->exact)
		return -1;
	way = is_narrow(w) ? narrow_pops(w->here.after, &pops) : code_return(w->here.after, &pops.skip);
	if (ARCH_LR && w->exact && code_in_plt(w->here.before, w->here.after))
		way = CODE_RETURNS;
	if (ARCH_LR && way == CODE_RETURNS)
		return called_from(w, 0, &ra) ? to_caller(w, ra, sp + pops.skip, fp) : w->need ? false : -1;
	if (ARCH_LR && way == CODE_POPS_FP) {
		if (!user_word(w, sp, &fp) || !user_word(w, sp + 8, &ra))
			return stop(w, REASON_MEMORY);
		w->fp_known = 1;
		return to_caller(w, code_address(ra), sp + pops.skip, fp);
	}
	if (way == CODE_LEAVES && w->fp_known && w->fp >= w->sp)
		sp = w->fp;
	else if (way == CODE_GOES_ON || way == CODE_LEAVES)
		return w->regs && code_after_syscall(w->here.before, is_narrow(w)) ? step_by_leaf(w, false)
										   : -1;
	sp += pops.skip;
	if (way != CODE_RETURNS) {
		if (!user_word(w, sp, &fp))
			return stop(w, REASON_MEMORY);
		w->fp_known = 1;
		sp += w->bytes + pops.more;
	}
	if (!user_word(w, sp, &ra))
		return stop(w, REASON_MEMORY);
	if (pops.bx)
		w->bx_from = BX_LOST;
	return to_caller(w, ra, sp + w->bytes, fp);
}

/*
 * Step to the caller by frame pointer, if no row covers the code. The step is
 * accepted only if the word above the saved frame pointer is an address right
 * after a call in a known mapping; W's mapping is then that of the caller. JIT
 * code may also have jumped to what pushed it. All that is likely, not proved.
 */
__noinline int step_by_fp(void)
{
	struct unwind_walk *w = this_walk();
	__u64 fp, ra;

	if (!w)
		return false;
	w->bx_from = BX_LOST;
	if (!w->fp_known || w->fp < w->sp || (w->fp & (w->bytes - 1)) || !user_word(w, w->fp, &fp) ||
		!user_word(w, w->fp + w->bytes, &ra))
		return stop(w, REASON_NO_FRAME_POINTER);
	if (!ra) {
		w->by_fp = 1;
		w->verdict = VERDICT_COMPLETE;
		return false;
	}
	ra = code_address(ra);
	if (!find_map(ra - 1) || !code_around(w, &w->there, ra))
		return stop(w, REASON_NO_FRAME_POINTER);
	if (!code_after_call(w->there.before) &&
		!(UNWIND_MAP_STATE(w->word) == UNWIND_BY_FP && code_after_jump(w->there.before)))
		return stop(w, REASON_NO_FRAME_POINTER);
	w->by_fp = 1;
	w->here = w->there;
	/* on arm64 the frame pointer points to the lower end of the frame, or near it */
	if (ARCH_LR)
		w->sp_lost = 1;
	return to_caller(w, ra, w->fp + 2 * w->bytes, fp);
}

/* Remember the current frame for hotspot.bpf.h. */
static __always_inline void note_java(struct unwind_walk *w, __u64 what, __u64 place)
{
	__u32 n = w->n_java;

	if (n >= OFFCPU_DEPTH_MAX || what >> 48)
		return;
	barrier_var(n);
	n &= OFFCPU_DEPTH_MAX - 1;
	w->java[n].what = what | (__u64)(w->len - 1) << 48;
	w->java[n].place = place;
	w->n_java = n + 1;
}

#define BLOB_SENDER_BYTES (1 << 20) /* arguments of one call */

/*
 * Step to the caller by what HotSpot knows of its own code: hotspot.bpf.h. -1 if
 * that does not prove it, else as step(). An interrupted frame may be about to
 * make or to leave its frame: then the step is likely, not proved.
 */
__noinline int step_by_blob(void)
{
	struct unwind_walk *w = this_walk();
	__u64 sp, fp, ra, at;

	if (!w)
		return -1;
	if (w->blob_at != w->pc) {
		if (remote) {
			w->need_blob = w->pc;
			return false;
		}
		hotspot_own();
	}
	if (w->blob_kind == HOTSPOT_NONE || (w->exact && w->blob_kind != HOTSPOT_SIZED))
		return -1;
	if (w->blob_kind == HOTSPOT_SIZED) {
		sp = w->sp + w->blob_bytes;
		at = sp - 16;
	} else {
		at = w->fp;
		if (!w->fp_known || at < w->sp || (at & 7))
			return -1;
		sp = at + 16;
		/* the caller's stack may end above it, where arguments were added */
		if (w->blob_kind == HOTSPOT_INTERPRETER &&
			(!user_word(w, at - 8, &sp) || sp - at < 16 || sp - at > BLOB_SENDER_BYTES))
			return w->need ? false : -1;
	}
	if (!user_word(w, at, &fp) || !user_word(w, at + 8, &ra))
		return w->need ? false : stop(w, REASON_MEMORY);
	if (!ra)
		return -1;
	if (w->exact) {
		if (!find_map(ra - 1) || !code_around(w, &w->there, ra))
			return w->need_code ? false : -1;
		if (!code_after_call(w->there.before) && !code_after_jump(w->there.before))
			return -1;
		w->by_fp = 1;
		w->here = w->there;
	}
	if (w->blob_kind == HOTSPOT_INTERPRETER)
		note_java(w, at | JAVA_INTERPRETED, 0);
	else if (w->blob_kind == HOTSPOT_SIZED && w->blob)
		note_java(w, w->blob, w->blob_place);
	w->bx_from = BX_LOST;
	w->fp_known = 1;
	return to_caller(w, ra, sp, fp);
}

#define V8_ENTRY 2 /* markers of frames by which C++ code calls JavaScript: function, */
#define V8_CONSTRUCT_ENTRY 4 /* and constructor */
#define V8_ENTRY_BX 56 /* Builtins::Generate_JSEntry: below the frame pointer */

/*
 * Step to the caller by what V8 guarantees of its own code: v8.bpf.h. All of it
 * keeps a frame pointer wherever it calls something. -1 if it is not V8's, else
 * as step().
 */
__noinline int step_by_v8(void)
{
	struct unwind_walk *w = this_walk();
	__u64 fp, ra, marker, what;

	if (!w)
		return -1;
	if (w->blob_at != w->pc) {
		if (remote) {
			w->need_blob = w->pc;
			return false;
		}
		v8_own();
	}
	if (w->blob_kind == V8_NONE || !w->fp_known || w->fp < w->sp || (w->fp & 7))
		return -1;
	if (!user_word(w, w->fp - 8, &marker) || !user_word(w, w->fp, &fp) || !user_word(w, w->fp + 8, &ra))
		return w->need ? false : stop(w, REASON_MEMORY);
	if (!ra)
		return -1;
	w->bx_from = BX_LOST;
	if (marker & 1) {
		what = w->fp | (w->blob_kind == V8_BUILTINS ? V8_BUILTIN : 0);
		note_java(w, what, w->pc);
	} else if (marker == (w->blob & 0xffff) && w->blob_kind == V8_BUILTINS) {
		note_java(w, w->fp | V8_EXIT, w->pc);
	} else if ((marker == V8_ENTRY || marker == V8_CONSTRUCT_ENTRY) && w->blob_kind == V8_BUILTINS) {
		w->bx_from = BX_IN_MEMORY;
		w->bx_at = w->fp - V8_ENTRY_BX;
	}
	return to_caller(w, ra, w->fp + 16, fp);
}

/* Frame N, which is below OFFCPU_DEPTH_MAX: before Linux 6.2 the verifier forgets that of a number on the
 * stack. */
static __always_inline __u64 *frame_at(__u64 *frames, __u32 n)
{
	barrier_var(n);
	return frames + (n & (OFFCPU_DEPTH_MAX - 1));
}

#define RETPROBES_MAX 64 /* functions with a uretprobe that are being executed, as in the kernel */
#define RETPROBES_STEP 8

/* Can PC be the trampoline of uretprobes? It is the first byte of a page. */
static __always_inline bool can_be_retprobe(const struct unwind_walk *w)
{
	return !w->exact && !(w->pc & 4095);
}

#define RETPROBE_FOUND 1

/*
 * Look at a few records of uretprobes from address AT on. Returns where the next one is; 0 = there is none;
 * RETPROBE_FOUND, if W's PC was made the real one.
 */
__noinline __u64 some_retprobes(__u64 at)
{
#ifndef OFFCPU_RAW
	struct unwind_walk *w = this_walk();
	struct return_instance *r = (void *)at;
	__u64 real;

	if (!w || !bpf_core_field_exists(r->orig_ret_vaddr))
		return 0;
	for (int i = 0; i < RETPROBES_STEP && r; i++) {
		real = BPF_CORE_READ(r, orig_ret_vaddr);
		if (BPF_CORE_READ(r, stack) == w->sp - (ARCH_LR ? 0 : w->bytes) && real != w->pc) {
			w->pc = real;
			return RETPROBE_FOUND;
		}
		r = BPF_CORE_READ(r, next);
	}
	return (__u64)r;
#else
	return 0;
#endif
}

/*
 * A uretprobe replaces the return address of the function that it is set in by
 * the kernel's trampoline, and the task has a record with the place of the
 * address and the address. Make that the PC; false if there is no such record. A
 * kernel without BTF, and a walk of a copy, do not know it.
 */
__noinline int real_return(void)
{
#ifndef OFFCPU_RAW
	struct unwind_walk *w = this_walk();
	struct task_struct *task = NULL;
	__u64 at;

	if (!w || !bpf_core_field_exists(task->utask))
		return 0;
	task = remote ? (void *)w->task : (void *)bpf_get_current_task();
	at = (__u64)BPF_CORE_READ(task, utask, return_instances);
	for (int i = 0; i < RETPROBES_MAX / RETPROBES_STEP && at > RETPROBE_FOUND; i++)
		at = some_retprobes(at);
	return at == RETPROBE_FOUND;
#else
	return 0;
#endif
}

/*
 * Store the frame of W's PC and step to its caller. Returns false if the walk
 * has ended, or needs memory.
 */
static __always_inline bool step(struct unwind_walk *w, __u64 *frames)
{
	__u32 n = w->len, state;
	__u64 pc;
	bool made;
	int way;

	if (n >= depth || n >= OFFCPU_DEPTH_MAX) {
		w->verdict = VERDICT_TRUNCATED;
		return false;
	}
	if (!arch_walks_32bit() && is_narrow(w)) {
		*frame_at(frames, n) = w->pc;
		w->len = n + 1;
		return stop(w, REASON_COMPAT);
	}
	/* not user code: the upper half belongs to the kernel */
	if ((__s64)w->pc < 0)
		return stop(w, REASON_NO_MAPPING);
	*frame_at(frames, n) = w->exact && n && !w->retry ? w->pc | OFFCPU_EXACT : w->pc;
	w->len = n + 1;
	/* a return address may be the first byte of the next function */
	pc = w->exact ? w->pc : w->pc - 1;
	if ((pc < w->map_start || pc >= w->map_end) && !find_map(pc)) {
		if (can_be_retprobe(w) && real_return()) {
			w->len = n;
			return true;
		}
		way = w->exact && pc < UNWIND_NULL_BYTES ? step_by_leaf(w, true) : -1;
		if (way == 0)
			return false;
		/* only the innermost PC is one whatever it points to */
		w->len = n ? n : 1;
		return way > 0 || stop(w, REASON_NO_MAPPING);
	}
	state = UNWIND_MAP_STATE(w->word);
	if (WATCHED(RUNTIME_V8) && w->runtime && !w->exact) {
		way = step_by_v8();
		/* what is a copy of the file's code has its names */
		if (way > 0 && w->blob_place)
			*frame_at(frames, n) = w->blob_place;
		if (way >= 0)
			return way;
	}
	if (state == UNWIND_TABLE) {
		way = step_by_table(pc);
		/* a handler returns to the first byte of its trampoline */
		if (way > 0 && w->exact && !w->retry && n)
			*frame_at(frames, n) |= OFFCPU_EXACT;
		if (way >= 0)
			return way;
	} else if (state != UNWIND_BY_FP) {
		return stop(w, state == UNWIND_PENDING ? REASON_NOT_READY : REASON_DROPPED);
	} else if (can_be_retprobe(w) && real_return()) {
		w->len = n;
		return true;
	}
	made = WATCHED(RUNTIME_JAVA) && w->runtime && state == UNWIND_BY_FP;
	way = made && !w->exact ? step_by_blob() : -1;
	if (way >= 0)
		return way;
	way = step_by_code();
	if (way > 0 && w->exact && n)
		*frame_at(frames, n) |= OFFCPU_EXACT;
	if (way >= 0)
		return way;
	way = made && w->exact ? step_by_blob() : -1;
	if (way >= 0)
		return way;
	if (step_by_fp())
		return true;
	if (state == UNWIND_TABLE && w->verdict == VERDICT_STOPPED)
		w->reason = REASON_NO_ROW;
	return false;
}

#endif
