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
 * kernhide - kernel addresses for somebody who may not know where the kernel
 * is (kptr_restrict, perf_event_paranoid; owner.h): other ones, with the same
 * names.
 *
 * What an attacker wants is by how much the kernel, a module or a BPF program
 * was moved (KASLR). What lies where inside of one is in the files that
 * everybody has. So
 *
 * - an address of the kernel itself is told as if _stext were at
 *   KERNHIDE_STEXT, and vmlinux still has its lines;
 * - modules get places in the order in which they are met, each with its
 *   distances;
 * - so does each BPF program, and each address that no symbol has.
 */

#define KERNHIDE_STEXT UINT64_C(0xffffffff81000000) /* where x86-64 is linked to */

struct kernhide;
void kernhide_free(struct kernhide *h); /* NULL is fine */

struct stacktab;

struct stacktab_stats {
	uint64_t stacks; /* distinct, those without frames included */
	uint64_t truncated; /* of them, cut at the depth limit */
	uint64_t lost; /* samples whose stack never arrived */
	uint64_t kernel_unnamed; /* distinct kernel addresses without a symbol */
};

int stacktab_new(uint32_t depth, struct stacktab **ret, struct err *e);
void stacktab_free(struct stacktab *t); /* NULL is fine */

/*
 * The kernel's symbols, from the first flush on; KS stays the caller's. NULL
 * when they cannot be read: kernel stacks then keep the tracer's own frames.
 */
void stacktab_symbols(struct stacktab *t, const struct kallsyms *ks);

/*
 * User stacks are walked by unwind tables: OFFCPU_EXACT in a frame is a mark
 * and no part of the address. (By frame pointer anything can be found there.)
 */
void stacktab_marked(struct stacktab *t);

/* From now on no kernel address goes into the capture, but what stands for it (kernhide_*()). Once, and
 * first.
 */
int stacktab_hide(struct stacktab *t, struct err *e);

/* Keep a stack that BPF sent, or that was walked from a snapshot. One that is known already is ignored. */
void stacktab_add(struct stacktab *t, const struct offcpu_ev_stack *ev);

/* How a stack ended. */
struct stacktab_end {
	uint8_t verdict, reason; /* enum cap_verdict, enum cap_reason */
};

/* Keep the frames of user stacks that are written too, up to BYTES in all: for stacktab_frames(). */
void stacktab_keep(struct stacktab *t, uint64_t bytes);

/*
 * The frames of the user stack ID, after stacktab_emit(): `len` of RET and where they are, valid until the
 * next call but this. False where they are not kept.
 */
bool stacktab_frames(const struct stacktab *t, const struct offcpu_stack_id *id, struct cap_stack *ret);

/*
 * The capture's id of the stack ID of KIND (enum cap_stack_kind), which is
 * written to W at its first use with the symbols it needs. A stack that never
 * arrived is one of no frames, reason CAP_R_LOST. CAP_NONE without memory. END may be
 * NULL.
 */
uint32_t stacktab_emit(struct stacktab *t, unsigned int kind, const struct offcpu_stack_id *id,
	struct capwrite *w, struct stacktab_end *end);

/*
 * The frames of the user stack ID, as stacktab_emit() will write them; valid
 * until then. False when it has none, or was written already.
 */
bool stacktab_user(const struct stacktab *t, const struct offcpu_stack_id *id, struct cap_stack *ret);

/* True when a kernel address had no symbol since the last call: the table may be out of date. */
bool stacktab_wants_symbols(struct stacktab *t);

void stacktab_stats(const struct stacktab *t, struct stacktab_stats *ret);

#endif
