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
#include "symbols/kallsyms.h"

/*
 * kernel_mask - kernel addresses for somebody who may not know where the kernel
 * is (kptr_restrict, perf_event_paranoid; owner.h): other ones, with the same
 * names.
 *
 * What an attacker wants is by how much the kernel, a module or a BPF program
 * was moved (KASLR). What lies where inside of one is in the files that
 * everybody has. So
 *
 * - an address of the kernel itself is told as if _stext were at
 *   KERNEL_MASK_STEXT, and vmlinux still has its lines;
 * - modules get places in the order in which they are met, each with its
 *   distances;
 * - so does each BPF program, and each address that no symbol has.
 */

#define KERNEL_MASK_STEXT UINT64_C(0xffffffff81000000) /* where x86-64 is linked to */

struct kernel_mask;
void kernel_mask_free(struct kernel_mask *h); /* NULL is fine */

struct stack_table;

struct stack_table_stats {
	uint64_t stacks; /* distinct, those without frames included */
	uint64_t truncated; /* of them, cut at the depth limit */
	uint64_t lost; /* samples whose stack never arrived */
	uint64_t kernel_unnamed; /* distinct kernel addresses without a symbol */
};

int stack_table_new(uint32_t depth, struct stack_table **ret, struct err *e);
void stack_table_free(struct stack_table *t); /* NULL is fine */

/*
 * The kernel's symbols, from the first flush on; KS stays the caller's. NULL
 * when they cannot be read: kernel stacks then keep the tracer's own frames.
 */
void stack_table_symbols(struct stack_table *t, const struct kallsyms *ks);

/*
 * User stacks are walked by unwind tables: OFFCPU_EXACT in a frame is a mark
 * and no part of the address. (By frame pointer anything can be found there.)
 */
void stack_table_marked(struct stack_table *t);

/* From now on no kernel address goes into the capture, but what stands for it (kernhide_*()). Once, and
 * first.
 */
int stack_table_hide(struct stack_table *t, struct err *e);

/* Keep a stack that BPF sent, or that was walked from a snapshot. One that is known already is ignored. */
void stack_table_add(struct stack_table *t, const struct offcpu_ev_stack *ev);

/* How a stack ended. */
struct stack_table_end {
	uint8_t verdict, reason; /* enum cap_verdict, enum cap_reason */
};

/* Keep the frames of user stacks that are written too, up to BYTES in all: for stack_table_frames(). */
void stack_table_keep(struct stack_table *t, uint64_t bytes);

/*
 * The frames of the user stack ID, after stack_table_emit(): `len` of RET and where they are, valid until the
 * next call but this. False where they are not kept.
 */
bool stack_table_frames(const struct stack_table *t, const struct offcpu_stack_id *id, struct cap_stack *ret);

/*
 * The capture's id of the stack ID of KIND (enum cap_stack_kind), which is
 * written to W at its first use with the symbols it needs. A stack that never
 * arrived is one of no frames, reason REASON_LOST. CAPTURE_NONE without memory. END may be
 * NULL.
 */
uint32_t stack_table_emit(struct stack_table *t, unsigned int kind, const struct offcpu_stack_id *id,
	struct cap_writer *w, struct stack_table_end *end);

/*
 * The frames of the user stack ID, as stack_table_emit() will write them; valid
 * until then. False when it has none, or was written already.
 */
bool stack_table_user(const struct stack_table *t, const struct offcpu_stack_id *id, struct cap_stack *ret);

/* True when a kernel address had no symbol since the last call: the table may be out of date. */
bool stack_table_wants_symbols(struct stack_table *t);

void stack_table_stats(const struct stack_table *t, struct stack_table_stats *ret);

#endif
