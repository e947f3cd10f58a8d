/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk of a user stack by unwind tables. Part of offcpu.bpf.c.
 *
 * From the registers that the thread entered the kernel with: the mapping of
 * the PC, its table, the row, the CFA; return address and frame pointer are
 * read from the stack, and so on to an outermost frame. Where a mapping has no
 * table (JIT code) a step is taken by frame pointer, if what it leads to is
 * provably the place after a call. What cannot be proved ends the walk, with
 * the reason. Formats: unwind_abi.h.
 *
 * State lives in map memory, not in registers: the verifier would follow
 * every value through the loop.
 */
#ifndef STACKTOOLS_UNWIND_BPF_H
#define STACKTOOLS_UNWIND_BPF_H

#include "unwind_abi.h"

#if defined(__TARGET_ARCH_x86)
#include "unwind_x86.bpf.h"
#else
#error "no unwind_ARCH.bpf.h for this architecture"
#endif

struct unwind_chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, UNWIND_CHUNK_BYTES);
};

/* All of these are made by lib/record/unwindspace, which also says how large. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__array(values, struct unwind_chunk);
} unwind_chunks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_seg);
} unwind_segs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_rule);
} unwind_rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} unwind_used SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_proc);
} unwind_procs SEC(".maps");

/* The second half of a struct unwind_map, read as one word. */
#define UNWIND_MAP_SEG(word) ((__u32)(word))
#define UNWIND_MAP_SEGS(word) ((word) >> 32 & 0xffff)
#define UNWIND_MAP_TABLE(word) (UNWIND_TABLE_NUMBER((word) >> 48))
#define UNWIND_MAP_STATE(word) (UNWIND_TABLE_STATE((word) >> 48))

#define UNWIND_STACKS_MAX 8 /* changes of stack in a walk, other than by signals */
#define UNWIND_WINDOW 1024 /* bytes of stack read at once: ten frames or so for the price of one word */

enum unwind_bx_from { BX_LOST = 0, BX_AT_ENTRY = 1, BX_IN_MEMORY = 2, BX_READ = 3 };

struct unwind_walk {
	__u64 pc, sp, fp; /* of the frame at hand */
	__u64 cfa;
	__u64 regs; /* kernel address of struct pt_regs, while the innermost frame is at hand; else 0 */
	__u64 ucontext; /* SP of the signal frame that the frame at hand was interrupted by; else 0 */
	__u64 need; /* remote: an address whose word is missing; the frame is then to be done again */
	__u64 need_code; /* the same for the word of code before a return address, */
	__u64 code_at, code; /* which is put here */
	__u64 entry_regs; /* kernel address of struct pt_regs */
	__u64 bx_at; /* where the second callee-saved register is, or itself: see bx_from */
	__u64 now_ns;
	__u64 map_start, map_end, bias, word; /* the last mapping */
	__u32 maps_chunk, maps_at, n_maps; /* the process's mappings */
	__u32 len; /* frames so far */
	__u8 exact; /* pc was interrupted: it is no return address */
	__u8 fp_known;
	__u8 by_fp; /* at least one step was taken by frame pointer */
	__u8 verdict, reason;
	__u8 in_syscall; /* the innermost frame waits inside a system call */
	__u8 retry; /* no row before the return address: its own is looked at, see step_by_table() */
	__u8 stacks; /* changes of stack so far */
	__u8 bx_from; /* of that register's value: enum unwind_bx_from */
	__u8 pad[7];
	__u32 serial; /* of the mappings */
	__u32 sp_high; /* of the innermost frame */
	__u32 on_trail; /* the frame at hand is step `at` of the thread's trail */
	__u32 at; /* else: no step before it is */
	__u32 held; /* every frame so far was where the trail says */
	__u32 fresh_len; /* steps of the new trail */
	__u32 fresh_end; /* the new trail ends: what leads on cannot be told in a step */
	__u32 remote; /* the task is not current: its memory is read by the caller, and there is no trail */
	struct unwind_trail_step fresh[UNWIND_TRAIL_MAX];
	__u64 window_at, window_starts; /* address of the window; at how many bytes of it a word may begin, 0
					   = it is empty */
	__u8 window[UNWIND_WINDOW];
};

/* A place in a chunk. The mask is what proves to the verifier that an access stays inside. */
#define AT(chunk, off, type)                                                                                 \
	(*(const type *)((const char *)(chunk) + ((off) & (UNWIND_CHUNK_BYTES - sizeof(type)))))

static __always_inline const void *chunk_at(__u32 chunk)
{
	__u32 zero = 0;
	void *map = bpf_map_lookup_elem(&unwind_chunks, &chunk);

	return map ? bpf_map_lookup_elem(map, &zero) : NULL;
}

static __always_inline bool stop(struct unwind_walk *w, __u32 reason)
{
	w->verdict = VERDICT_STOPPED;
	w->reason = reason;
	return false;
}

/*
 * The mapping of PC, into W; false when there is none. The search keeps the
 * first of the mappings that are left in `lo`: n halves to 1, without a
 * branch that the verifier would have to follow both ways. No mapping begins
 * in the upper half of the addresses, so the sign of a difference tells.
 */
static __always_inline bool find_map(struct unwind_walk *w, __u64 pc)
{
	const char *chunk = chunk_at(w->maps_chunk);
	__u32 base = w->maps_at, lo = 0, n = w->n_maps, half, at;
	__u64 beyond, *used;

	if (!chunk || !n)
		return false;
	for (int i = 0; i < 13 && n > 1; i++) {
		half = n >> 1;
		beyond = (__s64)(pc - AT(chunk, base + (lo + half) * 32, __u64)) >> 63;
		barrier_var(beyond);
		lo += half & ~beyond;
		n -= half;
	}
	at = base + lo * 32;
	w->map_start = AT(chunk, at, __u64);
	w->map_end = AT(chunk, at + 8, __u64);
	w->bias = AT(chunk, at + 16, __u64);
	w->word = AT(chunk, at + 24, __u64);
	at = UNWIND_MAP_TABLE(w->word);
	used = bpf_map_lookup_elem(&unwind_used, &at);
	if (used)
		*used = w->now_ns;
	return pc >= w->map_start && pc < w->map_end;
}

/* Bytes that can be read at ADDR without touching another page, which may not be there. */
static __always_inline __u32 window_len(__u64 addr)
{
	__u32 len = 4096 - (addr & 4095);

	if (len < 8)
		len = 8;
	return len > UNWIND_WINDOW ? UNWIND_WINDOW : len;
}

/*
 * One word of the process's memory, through a window that is read at once. For
 * a task that is not current somebody else has to read it: see `need`.
 */
static __always_inline bool user_word(struct unwind_walk *w, __u64 addr, __u64 *value)
{
	__u64 at = addr - w->window_at;

	if (at >= w->window_starts) {
		__u32 len = window_len(addr);

		w->window_starts = 0;
		if (w->remote) {
			w->need = addr;
			return false;
		}
		if (bpf_probe_read_user(w->window, len, (void *)addr))
			return false;
		w->window_at = addr;
		w->window_starts = len - 7;
		at = 0;
	}
	if (at > UNWIND_WINDOW - 8)
		return false;
	*value = *(__u64 *)(w->window + at);
	return true;
}

/* The eight bytes before return address RA. */
static __always_inline bool code_before(struct unwind_walk *w, __u64 ra, __u64 *code)
{
	if (!w->remote)
		return bpf_probe_read_user(code, 8, (void *)(ra - 8)) == 0;
	*code = w->code;
	if (w->code_at == ra - 8)
		return true;
	w->need_code = ra - 8;
	return false;
}

/*
 * A register other than SP, FP and PC: known where the thread entered the
 * kernel and where a signal interrupted it, nowhere else.
 */
static __always_inline bool other_register(struct unwind_walk *w, __u32 reg, __u64 *value)
{
	if (reg >= ARCH_REGS)
		return false;
	barrier_var(reg);
	reg &= ARCH_REGS - 1;
	if (w->regs)
		return bpf_probe_read_kernel(value, 8, (void *)(w->regs + arch_pt_regs[reg])) == 0;
	return w->ucontext && user_word(w, w->ucontext + arch_ucontext[reg], value);
}

/* The number of rows of the page that begin at KEY or before, from FIRST on. */
static __always_inline __u32 rows_until(const void *chunk, __u32 pcs, __u32 first, __u32 next, __u8 key)
{
	__u32 lo = first, n = next - first, half;
	__u64 beyond;

	for (int i = 0; i < 9 && n > 0; i++) {
		half = n >> 1;
		beyond = ((__s64)key - AT(chunk, pcs + lo + half, __u8)) >> 63;
		barrier_var(beyond);
		lo += (half + 1) & ~beyond;
		n = half - (~n & 1 & ~beyond);
	}
	return lo;
}

/* The rule of PC, which lies in W's mapping; NULL when no row covers it. */
static __always_inline const struct unwind_rule *find_rule(struct unwind_walk *w, __u64 pc)
{
	__u64 at = pc - w->bias, i = at >> UNWIND_SEG_SHIFT;
	__u32 page = (at >> UNWIND_PAGE_SHIFT) & (UNWIND_SEG_PAGES - 1), index, off, first, next, row, rule;
	const struct unwind_seg *seg;
	const void *chunk;

	if (i >= UNWIND_MAP_SEGS(w->word))
		return NULL;
	index = UNWIND_MAP_SEG(w->word) + i;
	seg = bpf_map_lookup_elem(&unwind_segs, &index);
	if (!seg || !seg->rows)
		return NULL;
	chunk = chunk_at(seg->chunk);
	if (!chunk)
		return NULL;
	off = seg->grain * UNWIND_GRAIN;
	first = AT(chunk, off + page * 2, __u16);
	next = AT(chunk, off + page * 2 + 2, __u16);
	off += (UNWIND_SEG_PAGES + 1) * 2;
	row = rows_until(chunk, off + seg->rows * 2, first, next, at & 0xff) - 1;
	rule = AT(chunk, off + row * 2, __u16);
	return bpf_map_lookup_elem(&unwind_rules, &rule);
}

/* The second callee-saved register, by which some functions that align their stack have their CFA. */
static __always_inline bool bx_register(struct unwind_walk *w, __u64 *value)
{
	/* the steps of a trail do not have it */
	w->fresh_len = w->held = 0;
	w->fresh_end = 1;
	if (w->bx_from == BX_AT_ENTRY)
		return bpf_probe_read_kernel(value, 8, (void *)(w->entry_regs + arch_pt_regs[ARCH_BX])) == 0;
	if (w->bx_from == BX_IN_MEMORY) {
		if (!user_word(w, w->bx_at, &w->bx_at))
			return false;
		/* read once: the frame may be done again with another window */
		w->bx_from = BX_READ;
	}
	*value = w->bx_at;
	return w->bx_from == BX_READ;
}

/* Where it is for the caller of the frame that R leaves. Only looked at when it is needed. */
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

/* The caller's frame pointer; one that cannot be known stops the walk only when it is needed. */
static __always_inline bool find_fp(
	struct unwind_walk *w, const struct unwind_rule *r, __u64 *fp, bool *known)
{
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
	return user_word(w, addr + (__s64)r->fp_off, fp) || stop(w, REASON_MEMORY);
}

static __always_inline bool find_ra(struct unwind_walk *w, const struct unwind_rule *r, __u64 *ra)
{
	__u64 addr = w->cfa + (__s64)r->ra_off;

	if (r->cfa == UNWIND_CFA_PLT || r->cfa == UNWIND_CFA_DEREF_PLUS || r->ra == UNWIND_RA_CALL) {
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

#include "unwind_trail.bpf.h"

/* To the caller by the row of PC; -1: there is no row, else as step(). */
static __always_inline int step_by_table(struct unwind_walk *w, __u64 pc)
{
	const struct unwind_rule *r = find_rule(w, pc);
	__u64 fp, ra;
	bool known;

	if (r && r->cfa != UNWIND_CFA_NONE && r->ra == UNWIND_RA_END) {
		w->verdict = VERDICT_COMPLETE;
		return false;
	}
	/*
	 * A return address that was never pushed by a call, but put there for a
	 * new stack (makecontext), may be the first byte of the function that
	 * ends it: looked at once more, as an exact PC, for an end mark only.
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
	if (!find_cfa(w, r) || !find_fp(w, r, &fp, &known) || !find_ra(w, r, &ra))
		return false;
	new_way(w, w->len - 1, r);
	follow_bx(w, r);
	w->exact = r->flags & UNWIND_SIGNAL;
	w->ucontext = w->exact ? w->sp : 0;
	/*
	 * A signal may have come on another stack. Every other frame is left
	 * upwards, but for one that has taken its return address off the stack,
	 * and where a program goes from stack to stack (-fsplit-stack,
	 * coroutines), by a register that is not SP. A loop does that for ever.
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
	w->fp_known = known;
	return true;
}

/*
 * To the caller by frame pointer, where no row covers the code. It is
 * believed only if the word above it follows a call in a known mapping: W's
 * mapping is then the caller's.
 */
static __always_inline bool step_by_fp(struct unwind_walk *w)
{
	__u64 fp, ra, before;

	w->fresh_end = 1;
	w->bx_from = BX_LOST;
	if (!w->fp_known || w->fp < w->sp || (w->fp & (ARCH_STACK_ALIGN - 1)) || !user_word(w, w->fp, &fp) ||
		!user_word(w, w->fp + 8, &ra))
		return stop(w, REASON_NO_FRAME_POINTER);
	if (!ra) {
		w->by_fp = 1;
		w->verdict = VERDICT_COMPLETE;
		return false;
	}
	if (!find_map(w, ra - 1))
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

/* Put the frame of W's PC down and go to its caller; false when the walk has ended, or needs memory. */
static __always_inline bool step(struct unwind_walk *w, __u64 *frames, const struct unwind_trail *t)
{
	__u32 n = w->len, state;
	__u64 pc;
	int way;

	if (n >= depth || n >= OFFCPU_DEPTH_MAX) {
		w->verdict = VERDICT_TRUNCATED;
		return false;
	}
	/* nobody's code: the upper half is the kernel's */
	if ((__s64)w->pc < 0)
		return stop(w, REASON_NO_MAPPING);
	frames[n] = w->exact && n && !w->retry ? w->pc | OFFCPU_EXACT : w->pc;
	w->len = n + 1;
	if (!w->remote) {
		new_step(w, n);
		if (!w->on_trail)
			join_trail(w, t);
		if (!w->on_trail || w->at != n)
			w->held = 0;
		if (w->on_trail) {
			way = step_by_trail(w, t, n);
			if (way >= 0)
				return way;
			w->on_trail = w->held = 0;
		}
	}
	/* a return address may be the first byte of another function */
	pc = w->exact ? w->pc : w->pc - 1;
	if ((pc < w->map_start || pc >= w->map_end) && !find_map(w, pc))
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
