/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stacks - the distinct stacks of a recording, from BPF's events to the
 * capture's records, with the symbols of their kernel addresses.
 */
#ifndef STACKTOOLS_RECORD_STACKS_H
#define STACKTOOLS_RECORD_STACKS_H

#include "base/err.h"
#include "capture/writer.h"
#include "offcpu_abi.h"
#include "record/runtimes.h"
#include "symbols/kallsyms.h"

/*
 * kernel_mask - substitutes for kernel addresses, with the same names, for a
 * user who may not know where the kernel is (kptr_restrict,
 * perf_event_paranoid; owner.h).
 *
 * The secret is by how much the kernel, a module or a BPF program was moved
 * (KASLR). The layout inside each is in files that everybody has. So
 *
 * - an address of the kernel itself is written as if _stext were at
 *   KERNEL_MASK_STEXT, so that vmlinux still gives its line;
 * - modules get ranges in the order in which they are met; distances inside a
 *   module are kept;
 * - so does each BPF program, and each address without a symbol.
 */

#define KERNEL_MASK_STEXT UINT64_C(0xffffffff81000000) /* the link address of x86-64 */

struct kernel_mask;
void kernel_mask_free(struct kernel_mask *h); /* NULL is fine */

struct stack_table;

struct stack_table_stats {
	uint64_t stacks; /* distinct, including those without frames */
	uint64_t truncated; /* of these, cut at the depth limit */
	uint64_t lost; /* samples whose stack never arrived */
	uint64_t kernel_unnamed; /* distinct kernel addresses without a symbol */
};

int stack_table_new(uint32_t depth, struct stack_table **ret, struct err *e);
void stack_table_free(struct stack_table *t); /* NULL is fine */

/*
 * Set the kernel's symbols, from the first flush on. KS belongs to the caller.
 * NULL if they cannot be read: kernel stacks then keep the tracer's own frames,
 * unless stack_table_schedule() tells where these end.
 */
void stack_table_symbols(struct stack_table *t, const struct kallsyms *ks);

/* Without symbols: ADDRESS (0 = not known) is in the function of the scheduler that switches threads. */
void stack_table_schedule(struct stack_table *t, uint64_t address);

/*
 * Set [*START, *END) to the scheduler's own code, as the capture has addresses. False if the
 * symbols do not say where it is.
 */
bool stack_table_scheduler(const struct stack_table *t, uint64_t *start, uint64_t *end);

/* Script frames of stacks are named by R, which must outlive T. Without, they are dropped. */
void stack_table_runtimes(struct stack_table *t, struct runtimes *r);

/*
 * User stacks are walked by unwind tables: OFFCPU_EXACT in a frame is a mark,
 * not part of the address. (A walk by frame pointer can find any value there.)
 */
void stack_table_marked(struct stack_table *t);

/*
 * From now on, write substitutes for kernel addresses to the capture
 * (kernel_mask). Call it once, before anything else.
 */
int stack_table_mask(struct stack_table *t, struct err *e);

/* Add a stack that BPF sent, or that was walked from a snapshot. A known one is ignored. */
void stack_table_add(struct stack_table *t, const struct offcpu_ev_stack *ev);

/* How a stack ended. */
struct stack_table_end {
	uint8_t verdict, reason; /* enum cap_verdict, enum cap_reason */
};

/* Keep up to BYTES of frames of user stacks after they are written, for stack_table_frames(). */
void stack_table_keep(struct stack_table *t, uint64_t bytes);

/*
 * Get the frames of user stack ID, after stack_table_emit(). They are valid
 * until the next call of another function. False if they were not kept; `len`
 * of RET is set even then.
 */
bool stack_table_frames(const struct stack_table *t, const struct offcpu_stack_id *id, struct cap_stack *ret);

/*
 * Return the capture's id of stack ID of KIND (enum cap_stack_kind). Writes the
 * stack to W at its first use, with the symbols it needs. A stack that never
 * arrived is written without frames, with REASON_LOST. CAPTURE_NONE if out of
 * memory. END may be NULL.
 */
uint32_t stack_table_emit(struct stack_table *t, unsigned int kind, const struct offcpu_stack_id *id,
	struct cap_writer *w, struct stack_table_end *end);

/*
 * Get the frames of user stack ID, as stack_table_emit() will write them; valid
 * until then. False if it has none or was written already.
 */
bool stack_table_user(const struct stack_table *t, const struct offcpu_stack_id *id, struct cap_stack *ret);

/* User stack ID was walked by what was mapped at its time: stack_table_cut() leaves it whole. */
void stack_table_sure(struct stack_table *t, const struct offcpu_stack_id *id);

/*
 * The stack of the first N frames of user stack ID, which is not whole: VERDICT_STOPPED, for REASON. Its
 * own ID is in *RET. False if ID is sure, or its frames are not kept, or out of memory.
 */
bool stack_table_cut(struct stack_table *t, const struct offcpu_stack_id *id, uint32_t n, uint8_t reason,
	struct offcpu_stack_id *ret);

/*
 * Forget stacks that nothing refers to any more, many at a time: stack_table_turn() begins an epoch, in which
 * each stack that is added, written or held is in use; stack_table_forget() removes all others. One that
 * comes again afterwards is written again.
 */
size_t stack_table_count(const struct stack_table *t);
void stack_table_turn(struct stack_table *t);
void stack_table_hold(struct stack_table *t, unsigned int kind, const struct offcpu_stack_id *id);
void stack_table_forget(struct stack_table *t); /* nothing, if out of memory */

/* Is there user stack ID? */
bool stack_table_has(const struct stack_table *t, const struct offcpu_stack_id *id);

/* True if a kernel address had no symbol since the last call: the symbols may be out of date. */
bool stack_table_wants_symbols(struct stack_table *t);

void stack_table_stats(const struct stack_table *t, struct stack_table_stats *ret);

#endif
