/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/types.h"

#include <string.h>

bool cap_build_id_same(const struct cap_build_id *a, const struct cap_build_id *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static const struct {
	const char *name, *text;
} reasons[REASON_COUNT] = {
	[REASON_NONE] = { "none", "nothing is wrong" },
	[REASON_ERRNO] = { "helper-error", "the kernel could not take the stack" },
	[REASON_KTHREAD] = { "kernel-thread", "a kernel thread has no user stack" },
	[REASON_EXEC] = { "in-exec", "inside execve: the old registers do not fit the new address space" },
	[REASON_NOT_RECORDED] = { "not-recorded", "this half of the stack was not to be recorded" },
	[REASON_NOT_SEEN] = { "not-seen",
		"the wait began before the recording and ended before it could be sampled" },
	[REASON_LOST] = { "lost", "the stack was taken, but the ring buffer was full" },
	[REASON_EXITING] = { "exiting", "the thread had given up its address space" },
	[REASON_COMPAT] = { "32-bit", "32-bit and 64-bit code in one stack, or a 32-bit task" },
	[REASON_EMPTY] = { "empty", "the kernel gave a stack of no frames" },
	[REASON_MEMORY] = { "no-memory", "stack memory could not be read" },
	[REASON_NO_MAPPING] = { "no-mapping", "the PC lies in no executable mapping that was known" },
	[REASON_NO_ROW] = { "no-row", "the unwind table of the PC's file has no row for it" },
	[REASON_EXPRESSION] = { "expression", "the row holds an expression that tables cannot express" },
	[REASON_REGISTER] = { "register", "RBP, or another register that the row needs, is not known" },
	[REASON_LOOP] = { "loop", "the stack pointer did not advance: a loop, or a corrupt stack" },
	[REASON_NOT_READY] = { "not-ready", "the wait began before the unwind table was there" },
	[REASON_DROPPED] = { "dropped", "the unwind table had been dropped, or refused, for lack of memory" },
	[REASON_NO_FRAME_POINTER] = { "no-frame-pointer",
		"no unwind table covers the PC, and RBP leads to no caller" },
	[REASON_PC_ONLY] = { "pc-only", "/proc shows only the program counter" },
	[REASON_BETWEEN] = { "between-samples", "the wait was between two samples" },
	[REASON_NAMES_ONLY] = { "names-only", "/proc shows names instead of a stack" },
	[REASON_DEPTH] = { "depth", "the stack has more frames than the depth limit" },
	[REASON_USER_MODE] = { "user-mode", "the thread was not in the kernel" },
};

const char *capture_reason_name(unsigned int reason)
{
	return reason < REASON_COUNT ? reasons[reason].name : "unknown";
}

const char *capture_reason_text(unsigned int reason)
{
	return reason < REASON_COUNT ? reasons[reason].text : "a reason that this version does not know";
}

const char *capture_verdict_name(unsigned int verdict)
{
	static const char *const names[] = {
		[VERDICT_COMPLETE] = "complete",
		[VERDICT_UNVERIFIED] = "unverified",
		[VERDICT_TRUNCATED] = "truncated",
		[VERDICT_STOPPED] = "stopped",
		[VERDICT_FAILED] = "failed",
	};

	return verdict >= VERDICT_COMPLETE && verdict < ARRAY_LEN(names) ? names[verdict] : "unknown";
}

bool capture_stopped(unsigned int verdict, unsigned int reason)
{
	return verdict == VERDICT_STOPPED || (verdict == VERDICT_UNVERIFIED && reason != REASON_NONE &&
						     reason != REASON_DEPTH && reason != REASON_NAMES_ONLY);
}

bool capture_truncated(unsigned int verdict, unsigned int reason)
{
	return verdict == VERDICT_TRUNCATED || (verdict == VERDICT_UNVERIFIED && reason == REASON_DEPTH);
}

void capture_truncate(struct cap_stack *s)
{
	if (s->verdict != VERDICT_UNVERIFIED)
		s->verdict = VERDICT_TRUNCATED;
	s->reason = s->verdict == VERDICT_UNVERIFIED ? REASON_DEPTH : REASON_NONE;
	s->stop_pc = 0;
}

const char *capture_kind_name(unsigned int kind)
{
	return kind == CAPTURE_STACK_KERNEL ? "kernel" : kind == CAPTURE_STACK_USER ? "user" : "unknown";
}

/*
 * State bits of <linux/sched.h>. Their values have not changed since Linux 4.14;
 * the highest ones were added in 5.17 (RTLOCK_WAIT) and 6.1 (FROZEN).
 */
enum {
	UNINTERRUPTIBLE = 0x2,
	NOLOAD = 0x400,
	RTLOCK_WAIT = 0x1000,
	FROZEN = 0x8000,
};

static const struct {
	uint32_t bit;
	char letter;
} state_letters[] = { { 0x1, 'S' }, { UNINTERRUPTIBLE, 'D' }, { 0x4, 'T' }, { 0x8, 't' }, { 0x10, 'X' },
	{ 0x20, 'Z' }, { 0x40, 'P' }, { 0x80, 'X' }, { RTLOCK_WAIT, 'D' }, { FROZEN, 'D' } };

const char *capture_state_letter(uint32_t state, char buf[16])
{
	size_t n = 0;

	if (!state) {
		buf[n++] = 'R';
	} else if ((state & UNINTERRUPTIBLE) && (state & NOLOAD)) {
		/* TASK_IDLE: an uninterruptible wait that does not count as load */
		state &= ~(uint32_t)(UNINTERRUPTIBLE | FROZEN);
		buf[n++] = 'I';
	}
	for (size_t i = 0; i < ARRAY_LEN(state_letters); i++)
		if ((state & state_letters[i].bit) && (!n || buf[n - 1] != state_letters[i].letter))
			buf[n++] = state_letters[i].letter;
	buf[n] = '\0';
	if (!n)
		snprintf(buf, 16, "0x%x", state);
	return buf;
}

uint64_t cap_sample_hash(const struct cap_sample *s)
{
	uint64_t h = (uint64_t)s->proc << 32 | s->tid;

	h = (h ^ h >> 29) * UINT64_C(0x9e3779b97f4a7c15);
	h ^= (uint64_t)s->kstack << 32 | s->ustack;
	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
	h ^= (uint64_t)s->flags << 32 | s->state;
	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93) ^ s->waker * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 32;
}

bool cap_sample_same_key(const struct cap_sample *a, const struct cap_sample *b)
{
	return a->ustack == b->ustack && a->kstack == b->kstack && a->tid == b->tid && a->proc == b->proc &&
	       a->state == b->state && a->flags == b->flags && a->waker == b->waker;
}
