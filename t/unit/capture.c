/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "capture/types.h"

#include <string.h>

static bool all_named(void)
{
	for (unsigned int i = 0; i < 300; i++)
		if (!*capture_reason_name(i) || !*capture_reason_text(i) || !*capture_verdict_name(i) ||
			!*capture_kind_name(i))
			return false;
	return *capture_reason_name(UINT32_MAX) && *capture_verdict_name(UINT32_MAX);
}

static bool all_distinct(void)
{
	for (unsigned int i = 0; i < REASON_COUNT; i++)
		for (unsigned int k = 0; k < i; k++)
			if (strcmp(capture_reason_name(i), capture_reason_name(k)) == 0)
				return false;
	return true;
}

int main(void)
{
	/* TASK_* of include/linux/sched.h, and what ps(1) shows for them */
	static const struct {
		uint32_t state;
		const char *letter, *name;
	} states[] = {
		{ 0, "R", "runnable" },
		{ 1, "S", "interruptible" },
		{ 2, "D", "uninterruptible" },
		{ 0x102, "D", "killable" },
		{ 0x402, "I", "idle" },
		{ 0x2001, "S", "interruptible and freezable" },
		{ 0x8402, "I", "idle and frozen" },
		{ 4, "T", "stopped" },
		{ 0x104, "T", "stopped, killable" },
		{ 8, "t", "traced" },
		{ 0x10, "X", "dead" },
		{ 0x20, "Z", "zombie" },
		{ 0x40, "P", "parked" },
		{ 0x80, "X", "exiting for good" },
		{ 0x1000, "D", "waiting for an RT lock" },
		{ 0x8000, "D", "frozen" },
		{ 5, "ST", "two bits show two letters" },
		{ 0xffffffff, "ISTtXZPXD", "all bits show all letters" },
		{ 0x200, "0x200", "a bit without a letter shows its number" },
		{ 0xf0000000, "0xf0000000", "bits of a later kernel show their number" },
	};
	struct tap t = { 0 };
	char buf[16];

	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		tap_eq_str(&t, capture_state_letter(states[i].state, buf), states[i].letter, states[i].name);
	tap_ok(&t, all_named(), "every reason and verdict has a name and a text, known or not");
	tap_ok(&t, all_distinct(), "no two reasons share a name");
	tap_eq_str(&t, capture_reason_name(REASON_KTHREAD), "kernel-thread", "a reason has its name");
	tap_eq_str(&t, capture_verdict_name(VERDICT_TRUNCATED), "truncated", "a verdict has its name");
	tap_eq_str(&t, capture_verdict_name(0), "unknown", "0 is not a verdict");
	return tap_done(&t);
}
