/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stackmap/cases.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const enum stackshot_type types[] = {
	STACKSHOT_RAW_TP,
	STACKSHOT_TRACEPOINT,
	STACKSHOT_TP_BTF,
	STACKSHOT_SWITCH,
	STACKSHOT_PERF,
	STACKSHOT_UPROBE,
	STACKSHOT_KPROBE,
};

/*
 * Functions that the kernel stack of each trigger must contain, innermost first; others may lie between them.
 * They have had these names on x86-64 since 5.x. On other architectures the cases check only that there is a
 * stack.
 */
static const char *const kernel_chain[STACKSHOT_TYPES][5] = {
	[STACKSHOT_RAW_TP] = { "do_syscall_64", "entry_SYSCALL_64_after_hwframe" },
	[STACKSHOT_TRACEPOINT] = { "do_syscall_64", "entry_SYSCALL_64_after_hwframe" },
	[STACKSHOT_TP_BTF] = { "do_syscall_64", "entry_SYSCALL_64_after_hwframe" },
	[STACKSHOT_SWITCH] = { "schedule", "hrtimer_nanosleep", "do_syscall_64",
		"entry_SYSCALL_64_after_hwframe" },
	[STACKSHOT_KPROBE] = { "__x64_sys_getpgid", "do_syscall_64", "entry_SYSCALL_64_after_hwframe" },
};

/* Types that take stacks while the thread is in user mode: then there is no kernel stack. */
static bool in_user_mode(enum stackshot_type t)
{
	return t == STACKSHOT_PERF || t == STACKSHOT_UPROBE;
}

/*
 * At the first instruction of a function, the frame pointer register still holds the caller's, so the walk
 * misses the caller (frame 1). Since 6.11 the kernel knows that a uprobe can be there, and reads the return
 * address from the stack. If frame 1 is missing, insert it and return true.
 */
static bool without_caller(const struct chain_walk *w, uint64_t *frames, size_t *n)
{
	if (*n < 2 || *n == STACKCASE_DEPTH || frames[1] != w->frames[2])
		return false;
	memmove(frames + 2, frames + 1, (*n - 1) * sizeof(*frames));
	frames[1] = w->frames[1];
	++*n;
	return true;
}

static void run_user(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	enum stackshot_type type = *(const enum stackshot_type *)arg;
	CLEANUP(stackshot_close_p)
	struct stackshot *s = stackcase_open(r, env, (struct stackshot_opts){ .type = type });
	uint64_t frames[STACKCASE_DEPTH];
	struct chain_walk w;
	bool missed = false;
	int64_t id;
	size_t n;

	if (!s)
		return;
	id = stackcase_user_id(r, s, CHAIN_NORTH, NULL, 0, &w);
	if (id == INT64_MIN)
		return;
	n = stackcase_frames(r, s, id, frames);
	stackcase_show_user(r, frames, n);
	if (type == STACKSHOT_UPROBE)
		missed = without_caller(&w, frames, &n);
	if (!n || !stackcase_is_chain(r, &w, frames, n, CHAIN_FRAMES))
		return;
	if (n != CHAIN_FRAMES)
		stackcase_fail(r, "the stack has %zu frames, want %d", n, CHAIN_FRAMES);
	stackcase_pass(r, "%s < %s < %s < %s < %s%s", chain_expect(&w, 0), chain_expect(&w, 1),
		chain_expect(&w, 2), chain_expect(&w, 3), chain_expect(&w, 4),
		missed ? "; the caller is missing, as before 6.11" : "");
}

#ifdef __x86_64__
/* Check that FRAMES contain each name of WANT, in this order. */
static bool has_in_order(struct stackcase_report *r, const struct kallsyms *ks, const char *const want[5],
	const uint64_t *frames, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n && want[at]; i++) {
		struct kallsyms_sym sym;

		if (kallsyms_find(ks, frames[i], &sym) && strcmp(sym.name, want[at]) == 0)
			at++;
	}
	return !want[at] || stackcase_fail(r, "%s is not in the kernel stack where it belongs", want[at]);
}
#endif

static void check_kernel(
	struct stackcase_report *r, enum stackshot_type type, const uint64_t *frames, size_t n)
{
	struct err e;
	CLEANUP(kallsyms_free_p) struct kallsyms *ks = stackcase_kallsyms(&e);
	const char *const *want = kernel_chain[type];

	stackcase_show_kernel(r, ks, frames, n);
	if (!n)
		return;
#ifdef __x86_64__
	if (!ks) {
		err_prefix(&e, "cannot name its %zu frames", n);
		stackcase_skip_err(r, &e);
		return;
	}
	if (has_in_order(r, ks, want, frames, n))
		stackcase_pass(r, "%zu frames, among them %s < %s%s%s%s%s", n, want[0], want[1],
			want[2] ? " < " : "", want[2] ? want[2] : "", want[2] && want[3] ? " < " : "",
			want[2] && want[3] ? want[3] : "");
#else
	(void)want;
	stackcase_pass(r, "%zu frames", n);
#endif
}

static void run_kernel(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	enum stackshot_type type = *(const enum stackshot_type *)arg;
	CLEANUP(stackshot_close_p)
	struct stackshot *s = stackcase_open(r, env, (struct stackshot_opts){ .type = type });
	struct chain_walk w = { .family = CHAIN_NORTH };
	uint64_t frames[STACKCASE_DEPTH];
	char text[256];
	int64_t id;

	if (!s || !stackcase_fire(r, s, &w, STACKMAP_KERNEL))
		return;
	id = stackshot_state(s)->id[STACKMAP_KERNEL];
	if (!in_user_mode(type))
		check_kernel(r, type, frames, stackcase_frames(r, s, id, frames));
	else if (stackcase_result(
			 r, STACKERR_GET_ID, "the kernel stack of a thread in user mode", id, -EFAULT))
		stackcase_pass(r, "in user mode: %s", stackerr_text(STACKERR_GET_ID, id, text, sizeof(text)));
}

static const struct stackcase cases[] = {
	{ "raw_tp/sys_enter: the user stack is the call chain", run_user, &types[0] },
	{ "raw_tp/sys_enter: the kernel stack is a system call's", run_kernel, &types[0] },
	{ "tracepoint/raw_syscalls/sys_enter: the user stack is the call chain", run_user, &types[1] },
	{ "tracepoint/raw_syscalls/sys_enter: the kernel stack is a system call's", run_kernel, &types[1] },
	{ "tp_btf/sys_enter: the user stack is the call chain", run_user, &types[2] },
	{ "tp_btf/sys_enter: the kernel stack is a system call's", run_kernel, &types[2] },
	{ "tp_btf/sched_switch: the user stack is the call chain", run_user, &types[3] },
	{ "tp_btf/sched_switch: the kernel stack is a sleep's", run_kernel, &types[3] },
	{ "perf_event: the user stack is the call chain", run_user, &types[4] },
	{ "perf_event: a sample in user mode has no kernel stack", run_kernel, &types[4] },
	{ "uprobe: the user stack is the call chain", run_user, &types[5] },
	{ "uprobe: a thread in user mode has no kernel stack", run_kernel, &types[5] },
	{ "kprobe: the user stack is the call chain", run_user, &types[6] },
	{ "kprobe: the kernel stack is a system call's", run_kernel, &types[6] },
};

const struct stackcase_set typecases = { cases, ARRAY_LEN(cases) };
