/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/walk.h"
#include "capture/types.h"
#include "unwind/host.h"
#include "unwind_code.h"

#include <string.h>

#define STACKS_MAX 8 /* changes of stack in a walk, except by signals */
#define ENTRY_BYTES 64 /* a program's entry may have pushed this much */
#define NULL_BYTES 4096 /* nothing is mapped there: a call through a null pointer led there */

enum bx_from { BX_LOST, BX_AT_ENTRY, BX_IN_MEMORY };
enum go_came { GO_NOT_YET, GO_BY_GOROUTINE, GO_BY_CALLBACK };
enum fp_is { FP_LOST, FP_UNKNOWN /* because REGS lack a register */, FP_KNOWN };

struct walk {
	const struct snapwalk_opts *opts;
	const struct snapwalk_memory *mem;
	const __u64 *regs;
	struct snapwalk_end *end;
	uint64_t pc, sp, fp, cfa; /* of the current frame */
	uint64_t ucontext; /* of the signal frame that interrupted it: its SP; of i386, its sigcontext; else 0
			    */
	uint64_t mask; /* of the bits of a word */
	unsigned int bytes; /* of a word: 8; 4 while the thread executes i386 code */
	uint64_t bx_at; /* where the second callee-saved register is: see bx_from */
	enum bx_from bx_from;
	bool innermost; /* all registers are known */
	bool exact; /* pc was interrupted: it is not a return address */
	enum fp_is fp_is;
	bool in_syscall;
	enum go_came go_came;
	bool go_copies;
	uint64_t go_sp, go_next, go_ra; /* as in struct unwind_walk */
	bool retry; /* no row before the return address: check its own row for an end mark */
	bool by_fp; /* at least one step was taken by frame pointer */
	bool sp_lost; /* as in struct unwind_walk */
	unsigned int stacks;
};

/* The result of a step. */
enum step { GO_ON, ENDED };

static enum step stop(struct walk *w, uint8_t reason)
{
	w->end->verdict = VERDICT_STOPPED;
	w->end->reason = reason;
	w->end->stop_pc = w->pc;
	return ENDED;
}

static enum step complete(struct walk *w)
{
	w->end->verdict = VERDICT_COMPLETE;
	return ENDED;
}

static bool word(const struct walk *w, uint64_t addr, uint64_t *value)
{
	for (size_t i = 0; i < w->mem->n; i++) {
		const struct snapwalk_area *a = &w->mem->areas[i];
		uint64_t at = addr - a->from;

		if (a->len < w->bytes || at > a->len - w->bytes)
			continue;
		*value = 0;
		memcpy(value, a->bytes + at, w->bytes);
		return true;
	}
	if (!w->end->missed)
		w->end->wanted = addr;
	w->end->missed = true;
	return false;
}

static bool is_narrow(const struct walk *w)
{
	return w->bytes == 4;
}

/* From `ucontext` to register REG in it. */
static uint64_t in_ucontext(const struct walk *w, uint32_t reg)
{
	return HOST(ucontext)(reg, is_narrow(w));
}

/* Does REGS lack the thread's value of this register? */
static bool is_unknown(const struct walk *w, uint32_t reg)
{
	return reg < HOST_REGS && w->opts->unknown >> reg & 1;
}

static bool is_go(const struct unwind_rule *r)
{
	return r->cfa == UNWIND_CFA_GO_SAVED || r->cfa == UNWIND_CFA_GO_TLS;
}

/* A register other than SP, FP and PC. Known only at the kernel entry and where a signal interrupted. */
static bool other_register(const struct walk *w, uint32_t reg, uint64_t *value)
{
	if (reg >= HOST_REGS)
		return false;
	if (!w->innermost)
		return w->ucontext && word(w, w->ucontext + in_ucontext(w, reg), value);
	*value = HOST(saved)(w->regs, reg) & w->mask;
	return !is_unknown(w, reg);
}

static bool bx_register(const struct walk *w, uint64_t *value)
{
	if (w->bx_from == BX_IN_MEMORY)
		return word(w, w->bx_at, value);
	*value = HOST(saved)(w->regs, HOST_BX) & w->mask;
	return w->bx_from == BX_AT_ENTRY && !is_unknown(w, HOST_BX);
}

/* Set where that register is for the caller of the frame that R leaves. */
static void follow_bx(struct walk *w, const struct unwind_rule *r)
{
	if (r->flags & UNWIND_SIGNAL) {
		w->bx_from = BX_IN_MEMORY;
		w->bx_at = w->ucontext + in_ucontext(w, HOST_BX);
	} else if (r->ra == UNWIND_RA_CALL && r->ra_off != UNWIND_BX_SAME) {
		w->bx_from = r->ra_off == UNWIND_BX_UNKNOWN ? BX_LOST : BX_IN_MEMORY;
		w->bx_at = w->cfa + (uint64_t)(int64_t)r->ra_off;
	} else if (r->ra != UNWIND_RA_CALL && r->cfa != UNWIND_CFA_PLT) {
		w->bx_from = BX_LOST;
	}
}

static bool cfa_base(const struct walk *w, const struct unwind_rule *r, uint64_t *base)
{
	if (r->reg == HOST_SP) {
		*base = w->sp;
		return true;
	}
	if (r->reg == HOST_FP) {
		*base = w->fp;
		return w->fp_is == FP_KNOWN;
	}
	return r->reg == HOST_BX ? bx_register(w, base) : other_register(w, r->reg, base);
}

/* --- from one stack of a Go program to another: see bpf/unwind_go.bpf.h --- */

static uint32_t low(int32_t halves)
{
	return (uint32_t)halves & 0xffff;
}

static uint32_t high(int32_t halves)
{
	return (uint32_t)halves >> 16;
}

/* Is SP in the stack of goroutine G? Sets the CFA to SP + OFF. */
static enum step in_goroutine(struct walk *w, uint64_t g, uint64_t sp, uint64_t off)
{
	uint64_t from, end;

	if (!word(w, g, &from) || !word(w, g + UNWIND_GO_STACK_END, &end))
		return stop(w, REASON_MEMORY);
	if (sp <= from || sp > end || sp % 8)
		return stop(w, REASON_LOOP);
	w->cfa = sp + off;
	w->go_ra = w->cfa - 8;
	return GO_ON;
}

/* In G, at AT: stack pointer, PC, goroutine. */
static enum step in_too_small_stack(struct walk *w, uint64_t g, uint64_t at, uint64_t sp)
{
	uint64_t its;

	if (!word(w, at + 16, &its))
		return stop(w, REASON_MEMORY);
	if (its != g)
		return stop(w, REASON_LOOP);
	if (in_goroutine(w, g, sp, 0) == ENDED)
		return ENDED;
	w->go_ra = at + 8;
	return GO_ON;
}

static enum step go_saved(struct walk *w, const struct unwind_rule *r)
{
	uint64_t g, distance, end;

	if (!word(w, w->sp + (uint64_t)(int64_t)r->cfa_off, &g) ||
		!word(w, w->sp + (uint64_t)(int64_t)r->fp_off, &distance) ||
		!word(w, g + UNWIND_GO_STACK_END, &end))
		return stop(w, REASON_MEMORY);
	return in_goroutine(w, g, end - distance, (uint64_t)(int64_t)r->ra_off);
}

static enum step go_by_tls(struct walk *w, const struct unwind_rule *r)
{
	uint64_t g, m, other, owner, sp = w->go_sp;

	if (!w->opts->tls)
		return stop(w, REASON_REGISTER);
	if (!word(w, w->opts->tls + (uint64_t)(int64_t)r->cfa_off, &g) || !word(w, g + low(r->fp_off), &m) ||
		!word(w, m + high(r->fp_off), &other))
		return stop(w, REASON_MEMORY);
	if (!other)
		return r->reg == UNWIND_GO_CALLBACK ? stop(w, REASON_LOOP) : complete(w);
	if (!word(w, other + low(r->fp_off), &owner))
		return stop(w, REASON_MEMORY);
	if (owner != m)
		return stop(w, REASON_LOOP);
	if ((r->reg != UNWIND_GO_CALLBACK && w->go_came) || (r->reg == UNWIND_GO_MORE && !w->go_copies))
		return stop(w, REASON_EXPRESSION);
	if (w->go_came != GO_BY_CALLBACK && !word(w, other + high(r->ra_off), &sp))
		return stop(w, REASON_MEMORY);
	if (r->reg == UNWIND_GO_GOROUTINE)
		return in_goroutine(w, other, sp, low(r->ra_off));
	if (r->reg == UNWIND_GO_MORE)
		return in_too_small_stack(w, other, other + high(r->ra_off), sp);
	if (sp % 8)
		return stop(w, REASON_LOOP);
	w->cfa = sp + low(r->ra_off);
	w->go_ra = w->cfa - 8;
	return word(w, sp, &w->go_next) ? GO_ON : stop(w, REASON_MEMORY);
}

static enum step find_cfa(struct walk *w, const struct unwind_rule *r)
{
	bool deref = r->cfa == UNWIND_CFA_DEREF || r->cfa == UNWIND_CFA_DEREF_PLUS;
	uint64_t base;

	if (r->cfa == UNWIND_CFA_UNSUPPORTED)
		return stop(w, REASON_EXPRESSION);
	if (is_go(r))
		return r->cfa == UNWIND_CFA_GO_SAVED ? go_saved(w, r) : go_by_tls(w, r);
	if (!deref && r->cfa != UNWIND_CFA_REG && r->cfa != UNWIND_CFA_PLT)
		return stop(w, REASON_NO_ROW);
	if (!cfa_base(w, r, &base))
		return stop(w, REASON_REGISTER);
	base += (uint64_t)(int64_t)r->cfa_off;
	if (deref && !word(w, base, &base))
		return stop(w, REASON_MEMORY);
	if (r->cfa == UNWIND_CFA_DEREF_PLUS)
		base += (uint64_t)(int64_t)r->ra_off;
	if (r->cfa == UNWIND_CFA_PLT && (w->pc & 15) >= (uint32_t)r->ra_off)
		base += w->bytes;
	w->cfa = base;
	return GO_ON;
}

/* Find the caller's frame pointer. If it is unknown, the walk stops only when it is needed. */
static enum step find_fp(struct walk *w, const struct unwind_rule *r, uint64_t *fp, enum fp_is *is)
{
	uint64_t addr = w->cfa;

	*fp = w->fp;
	*is = w->fp_is;
	switch (r->fp) {
	case UNWIND_FP_SAME:
		return GO_ON;
	case UNWIND_FP_CFA:
		break;
	case UNWIND_FP_AT_SP:
		addr = w->sp;
		break;
	case UNWIND_FP_AT_FP:
		addr = w->fp;
		if (w->fp_is != FP_KNOWN)
			return GO_ON;
		break;
	case UNWIND_FP_REG:
		*is = other_register(w, (uint32_t)r->fp_off, fp)           ? FP_KNOWN
		      : w->innermost && is_unknown(w, (uint32_t)r->fp_off) ? FP_UNKNOWN
									   : FP_LOST;
		return GO_ON;
	default:
		*is = FP_LOST;
		return GO_ON;
	}
	*is = FP_KNOWN;
	addr += is_go(r) ? (uint64_t)-16 : (uint64_t)(int64_t)r->fp_off;
	return word(w, addr, fp) ? GO_ON : stop(w, REASON_MEMORY);
}

static enum step find_ra(struct walk *w, const struct unwind_rule *r, uint64_t *ra)
{
	uint64_t addr = w->cfa + (uint64_t)(int64_t)r->ra_off;

	if (is_go(r))
		addr = w->go_ra;
	else if (r->cfa == UNWIND_CFA_PLT || r->cfa == UNWIND_CFA_DEREF_PLUS || r->ra == UNWIND_RA_CALL)
		addr = w->cfa - w->bytes;
	else if (r->ra == UNWIND_RA_AT_SP)
		addr = w->sp + (uint64_t)(int64_t)r->ra_off;
	else if (r->ra == UNWIND_RA_REG)
		return other_register(w, (uint32_t)r->ra_off, ra) ? GO_ON : stop(w, REASON_REGISTER);
	else if (r->ra != UNWIND_RA_CFA)
		return stop(w, REASON_EXPRESSION);
	return word(w, addr, ra) ? GO_ON : stop(w, REASON_MEMORY);
}

/* Is this a loop? Frames must be left upwards, with exceptions: see step_by_table() of bpf/unwind.bpf.h. */
static bool goes_round(struct walk *w, const struct unwind_rule *r)
{
	if (w->exact || w->cfa > w->sp || (w->cfa == w->sp && r->ra == UNWIND_RA_REG))
		return false;
	return r->reg == HOST_SP || ++w->stacks > STACKS_MAX;
}

static enum step by_rule(struct walk *w, const struct unwind_rule *r)
{
	uint64_t fp, ra;
	enum fp_is is;

	if (find_cfa(w, r) == ENDED || find_fp(w, r, &fp, &is) == ENDED || find_ra(w, r, &ra) == ENDED)
		return ENDED;
	ra = code_address(ra);
	w->go_copies = r->flags & UNWIND_GO_COPIES;
	if (r->cfa == UNWIND_CFA_GO_TLS) {
		w->go_came = r->reg == UNWIND_GO_CALLBACK ? GO_BY_CALLBACK : GO_BY_GOROUTINE;
		w->go_sp = w->go_next;
	}
	w->exact = r->flags & UNWIND_SIGNAL;
	w->ucontext = w->exact ? w->sp : 0;
	if (w->exact && is_narrow(w))
		w->ucontext += (uint64_t)(int64_t)r->cfa_off - in_ucontext(w, HOST_SP);
	follow_bx(w, r);
	if (goes_round(w, r))
		return stop(w, REASON_LOOP);
	/* an interrupted PC of 0 does not end the stack: something was called through a null pointer */
	if (!ra && !w->exact)
		return complete(w);
	w->innermost = w->retry = w->sp_lost = false;
	w->pc = ra;
	w->sp = w->cfa;
	w->fp = fp;
	w->fp_is = is;
	return GO_ON;
}

/* Go on at RA with SP and FP; nothing else is known of the caller. */
static enum step to_caller(struct walk *w, uint64_t ra, uint64_t sp, uint64_t fp)
{
	w->innermost = w->exact = w->retry = false;
	w->ucontext = 0;
	w->pc = ra;
	w->sp = sp;
	w->fp = fp;
	return GO_ON;
}

/* End the walk where no row covers the code, which is of kind CODE, and no frame pointer leads on. */
static enum step no_row(struct walk *w, enum snapwalk_code code)
{
	w->end->code = code;
	return stop(w, code == SNAPWALK_TABLE ? REASON_NO_ROW : REASON_NO_FRAME_POINTER);
}

/* The word of code before return address RA, and what is known of it; false if RA lies in no mapping. */
static bool code_before(const struct walk *w, uint64_t ra, uint64_t *before, enum snapwalk_code *kind)
{
	const struct unwind_rule *rule;

	*kind = w->opts->find(w->opts->ctx, ra - 1, &rule);
	return *kind != SNAPWALK_NO_MAPPING && w->opts->code(w->opts->ctx, ra - sizeof(*before), before);
}

/* As called_from() of bpf/unwind.bpf.h. */
static bool called_from(const struct walk *w, uint64_t *ra)
{
	if (!HOST_LR)
		return word(w, w->sp, ra);
	if (!other_register(w, HOST_LR, ra))
		return false;
	*ra = code_address(*ra);
	return true;
}

/* As step_by_leaf() of bpf/unwind.bpf.h; false if nothing proves the step. */
static bool by_leaf(struct walk *w, bool null)
{
	enum snapwalk_code kind;
	uint64_t ra, before;

	if (!w->opts->code || !called_from(w, &ra) || !code_before(w, ra, &before, &kind) ||
		!(null ? code_after_call(before) : code_calls(before, ra, w->pc)))
		return false;
	to_caller(w, ra, w->sp + (HOST_LR ? 0 : w->bytes), w->fp);
	return true;
}

/* What code_return() or code_in_plt() of a machine with a link register prove. False if nothing. */
static bool by_link(struct walk *w, enum code_return way, uint32_t skip, enum step *ret)
{
	uint64_t ra, fp = w->fp;

	if (way == CODE_RETURNS && !called_from(w, &ra))
		return false;
	if (way == CODE_POPS_FP) {
		if (!word(w, w->sp, &fp) || !word(w, w->sp + 8, &ra)) {
			*ret = stop(w, REASON_MEMORY);
			return true;
		}
		w->fp_is = FP_KNOWN;
		ra = code_address(ra);
	}
	*ret = to_caller(w, ra, w->sp + skip, fp);
	return true;
}

/*
 * As step_by_code() of bpf/unwind.bpf.h, in *RET. The code decides alone, so that
 * every walk of a stack takes the same way. False if nothing proves the step.
 */
static bool by_code(struct walk *w, enum step *ret)
{
	static const struct unwind_rule rules[] = { CODE_SIGRETURN_RULES };
	uint64_t before = 0, after = 0, ra, sp = w->sp, fp = w->fp;
	struct code_pops pops = { 0 };
	enum code_sigreturn sigreturn;
	enum code_return way;

	*ret = GO_ON;
	if (w->sp_lost)
		return false;
	/* the next page may be missing, and what cannot be read proves nothing */
	if (!w->opts->code(w->opts->ctx, w->pc - sizeof(before), &before))
		before = 0;
	if (!w->opts->code(w->opts->ctx, w->pc, &after))
		after = 0;
	sigreturn = code_sigreturn(after, is_narrow(w));
	if (sigreturn) {
		*ret = by_rule(w, &rules[sigreturn - 1]);
		return true;
	}
	if (is_narrow(w) && !w->exact)
		return false;
	way = is_narrow(w) ? code_return32(after, &pops) : code_return(after, &pops.skip);
	if (HOST_LR && w->exact && code_in_plt(before, after))
		way = CODE_RETURNS;
	if (HOST_LR && (way == CODE_RETURNS || way == CODE_POPS_FP))
		return by_link(w, way, pops.skip, ret);
	if (way == CODE_LEAVES && w->fp_is == FP_KNOWN && w->fp >= w->sp)
		sp = w->fp;
	else if (way == CODE_GOES_ON || way == CODE_LEAVES)
		return w->innermost && code_after_syscall(before, is_narrow(w)) && by_leaf(w, false);
	sp += pops.skip;
	if (way != CODE_RETURNS && word(w, sp, &fp)) {
		w->fp_is = FP_KNOWN;
		sp += w->bytes + pops.more;
	} else if (way != CODE_RETURNS) {
		*ret = stop(w, REASON_MEMORY);
		return true;
	}
	if (!word(w, sp, &ra)) {
		*ret = stop(w, REASON_MEMORY);
		return true;
	}
	if (pops.bx)
		w->bx_from = BX_LOST;
	to_caller(w, ra, sp + w->bytes, fp);
	return true;
}

/*
 * Step to the caller by frame pointer. Accepted only if the word above it
 * follows a call in a known mapping; in JIT code, a jump as well.
 */
static enum step by_fp(struct walk *w, enum snapwalk_code code)
{
	enum snapwalk_code kind;
	uint64_t fp, ra, before;

	if (w->fp_is == FP_UNKNOWN)
		return stop(w, REASON_REGISTER);
	if (w->fp_is == FP_LOST || w->fp < w->sp || w->fp % w->bytes || !word(w, w->fp, &fp) ||
		!word(w, w->fp + w->bytes, &ra))
		return no_row(w, code);
	if (!ra) {
		w->by_fp = true;
		return complete(w);
	}
	ra = code_address(ra);
	if (!code_before(w, ra, &before, &kind) ||
		(!code_after_call(before) && !(kind == SNAPWALK_NO_TABLE && code_after_jump(before))))
		return no_row(w, code);
	w->by_fp = true;
	w->bx_from = BX_LOST;
	w->sp_lost = HOST_LR;
	return to_caller(w, ra, w->fp + 2 * (uint64_t)w->bytes, fp);
}

/* Step from code of this kind that no row covers. */
static enum step without_row(struct walk *w, enum snapwalk_code code)
{
	enum step ret;

	if (!w->opts->code)
		return no_row(w, code);
	if (by_code(w, &ret))
		return ret;
	return w->opts->no_fp ? no_row(w, code) : by_fp(w, code);
}

/* As in bpf/unwind.bpf.h. */
static bool needs_lost_sp(const struct walk *w, const struct unwind_rule *r)
{
	return w->sp_lost && (r->reg == HOST_SP || r->fp == UNWIND_FP_AT_SP || r->ra == UNWIND_RA_AT_SP);
}

static enum step by_table(struct walk *w, const struct unwind_rule *r)
{
	if (r && r->cfa != UNWIND_CFA_NONE && r->cfa != UNWIND_CFA_UNSUPPORTED &&
		!(r->flags & UNWIND_WORD4) == is_narrow(w))
		return stop(w, REASON_COMPAT);
	if (r && r->cfa != UNWIND_CFA_NONE && r->ra == UNWIND_RA_END) {
		w->end->last_exact = w->retry;
		return complete(w);
	}
	if (!r || r->cfa == UNWIND_CFA_NONE || (w->retry && !(r->flags & UNWIND_SIGNAL))) {
		if (w->exact)
			return without_row(w, SNAPWALK_TABLE);
		w->exact = w->retry = true;
		w->end->len--;
		return GO_ON;
	}
	if (((r->flags & UNWIND_IN_SYSCALL) && !(w->innermost && w->in_syscall)) || needs_lost_sp(w, r))
		return without_row(w, SNAPWALK_TABLE);
	return by_rule(w, r);
}

static enum step no_table(struct walk *w, enum snapwalk_code code)
{
	static const uint8_t reasons[] = { [SNAPWALK_NO_MAPPING] = REASON_NO_MAPPING,
		[SNAPWALK_NOT_READY] = REASON_NOT_READY,
		[SNAPWALK_DROPPED] = REASON_DROPPED,
		[SNAPWALK_UNKNOWN] = REASON_NOT_READY };

	if (code == SNAPWALK_NO_TABLE)
		return without_row(w, code);
	/* only the innermost PC is one whatever it points to */
	if (code == SNAPWALK_NO_MAPPING && w->end->len > 1) {
		w->end->len--;
		if (w->exact && w->pc < NULL_BYTES && by_leaf(w, true))
			return GO_ON;
	}
	w->end->code = code;
	return stop(w, reasons[code]);
}

static enum step step(struct walk *w, __u64 *frames)
{
	const struct unwind_rule *rule = NULL;
	uint32_t n = w->end->len;
	enum snapwalk_code code;
	enum step way;

	if (n >= w->opts->depth) {
		w->end->verdict = VERDICT_TRUNCATED;
		return ENDED;
	}
	if (HOST_LR && is_narrow(w)) {
		frames[n] = w->pc;
		w->end->len = n + 1;
		return stop(w, REASON_COMPAT);
	}
	if (w->pc >> 63) {
		w->end->code = SNAPWALK_NO_MAPPING;
		return stop(w, REASON_NO_MAPPING);
	}
	frames[n] = w->exact && n && !w->retry ? w->pc | OFFCPU_EXACT : w->pc;
	w->end->len = n + 1;
	w->end->missed = false;
	code = w->opts->find(w->opts->ctx, w->exact ? w->pc : w->pc - 1, &rule);
	way = code == SNAPWALK_TABLE ? by_table(w, rule) : no_table(w, code);
	/* a handler returns to the first byte of its trampoline */
	if (way == GO_ON && w->exact && !w->retry && n)
		frames[n] |= OFFCPU_EXACT;
	return way;
}

/* Did the walk end at the program's entry, which has no caller? See at_entry() of bpf/offcpu_user.bpf.h. */
static bool at_entry(const struct walk *w)
{
	const struct snapwalk_end *end = w->end;

	if (end->verdict != VERDICT_STOPPED || !w->mem->bottom)
		return false;
	if (end->reason == REASON_NO_ROW || end->reason == REASON_NO_FRAME_POINTER)
		return w->mem->bottom - w->sp <= ENTRY_BYTES;
	return end->len <= 1 && w->mem->bottom == w->sp;
}

void snapwalk(const struct snapwalk_opts *opts, const __u64 *regs, const struct snapwalk_memory *memory,
	__u64 *frames, struct snapwalk_end *ret)
{
	const bool narrow = HOST(is_narrow)(regs);
	const uint64_t mask = narrow ? UINT32_MAX : UINT64_MAX;
	struct walk w = { .opts = opts,
		.mem = memory,
		.regs = regs,
		.end = ret,
		.mask = mask,
		.bytes = narrow ? 4 : 8,
		.pc = HOST(saved)(regs, HOST_PC) & mask,
		.sp = HOST(saved)(regs, HOST_SP) & mask,
		.fp = HOST(saved)(regs, HOST_FP) & mask,
		.bx_from = BX_AT_ENTRY,
		.innermost = true,
		.exact = true,
		.fp_is = opts->unknown >> HOST_FP & 1 ? FP_UNKNOWN : FP_KNOWN,
		.in_syscall = HOST(in_syscall)(regs) };

	*ret = (struct snapwalk_end){ 0 };
	while (step(&w, frames) == GO_ON)
		;
	if (at_entry(&w))
		*ret = (struct snapwalk_end){ .len = ret->len, .verdict = VERDICT_COMPLETE };
	if (!w.by_fp)
		return;
	if (ret->verdict == VERDICT_TRUNCATED)
		ret->reason = REASON_DEPTH;
	ret->verdict = VERDICT_UNVERIFIED;
}
