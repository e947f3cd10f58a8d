/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks that the comparisons that all cases rely on can fail. */
#include "base/tap.h"
#include "stackmap/case.h"

#include <errno.h>
#include <string.h>

static void test_verdicts(struct tap *t)
{
	struct stackcase_report r = { .verdict = STACKCASE_PASS };

	stackcase_pass(&r, "found %d", 1);
	tap_ok(t, r.verdict == STACKCASE_PASS && strcmp(r.reason, "found 1") == 0, "a pass has its reason");
	tap_ok(t, !stackcase_fail(&r, "wrong"), "stackcase_fail() returns false");
	stackcase_pass(&r, "found");
	stackcase_skip(&r, "cannot");
	stackcase_fail(&r, "wrong again");
	tap_ok(t, r.verdict == STACKCASE_FAIL && strcmp(r.reason, "wrong") == 0,
		"a later pass, skip or failure does not replace a failure");
	r = (struct stackcase_report){ .verdict = STACKCASE_PASS };
	stackcase_skip_err(&r, &(struct err){ .msg = "no kprobes", .hint = "do this" });
	stackcase_fail(&r, "wrong");
	tap_ok(t,
		r.verdict == STACKCASE_SKIP && strcmp(r.reason, "no kprobes") == 0 &&
			strcmp(r.hint, "do this") == 0,
		"a skip keeps its reason and its hint");
	r = (struct stackcase_report){ .verdict = STACKCASE_PASS };
	tap_ok(t, stackcase_result(&r, STACKERR_GET_ID, "x", -EEXIST, -EEXIST) && r.verdict == STACKCASE_PASS,
		"the expected result passes");
	tap_ok(t,
		!stackcase_result(&r, STACKERR_GET_ID, "a stack", 7, -EEXIST) &&
			r.verdict == STACKCASE_FAIL && strstr(r.reason, "a stack gives 7; want -17 EEXIST"),
		"another result fails and names both results");
}

/* The frames of a chain as a walk would find them. */
static void fill(struct chain_walk *w, uint64_t *frames)
{
	*w = (struct chain_walk){ .family = CHAIN_NORTH, .trigger = CHAIN_PROBE };
	chain_run(w);
	memcpy(frames, w->frames, sizeof(w->frames));
	frames[0] = chain_probe_address();
}

static bool is_chain(const struct chain_walk *w, const uint64_t *frames, size_t n)
{
	struct stackcase_report r = { .verdict = STACKCASE_PASS };
	bool ok = stackcase_is_chain(&r, w, frames, n, CHAIN_FRAMES);

	return ok && r.verdict == STACKCASE_PASS;
}

static void test_chain(struct tap *t)
{
	uint64_t frames[CHAIN_FRAMES], saved;
	struct chain_walk w, east = { .family = CHAIN_EAST, .trigger = CHAIN_PROBE };
	bool caught = true;

	fill(&w, frames);
	tap_ok(t, is_chain(&w, frames, CHAIN_FRAMES), "the chain's own frames match");
	tap_ok(t, !is_chain(&w, frames, CHAIN_FRAMES - 1), "a chain with one frame less does not match");
	for (size_t i = 1; i < CHAIN_FRAMES; i++) {
		saved = frames[i];
		frames[i]++;
		caught = caught && !is_chain(&w, frames, CHAIN_FRAMES);
		frames[i] = saved;
	}
	tap_ok(t, caught, "an address that is off by one in any frame but the leaf does not match");
	saved = frames[1];
	frames[1] = frames[2];
	frames[2] = saved;
	tap_ok(t, !is_chain(&w, frames, CHAIN_FRAMES), "a chain with two swapped frames does not match");
	fill(&w, frames);
	frames[0] = frames[1];
	tap_ok(t, !is_chain(&w, frames, CHAIN_FRAMES), "a chain with another leaf does not match");
	fill(&w, frames);
	chain_run(&east);
	tap_ok(t, !is_chain(&east, frames, CHAIN_FRAMES), "another chain's frames do not match");
}

static void test_show(struct tap *t)
{
	struct stackcase_report r = { .verdict = STACKCASE_PASS };
	uint64_t frames[] = { chain_probe_address() + 1, 0x10 };

	stackcase_show_user(&r, frames, 2);
	buf_put(&r.detail, "", 1);
	tap_ok(t, strstr((const char *)r.detail.p, "user frame 0: chain_probe+0x1 ["),
		"a known frame is shown with its name");
	tap_ok(t, strstr((const char *)r.detail.p, "user frame 1: [unknown]+0x0 [0x10]"),
		"an unknown frame is shown with its address");
	buf_free(&r.detail);
	r = (struct stackcase_report){ .verdict = STACKCASE_PASS };
	stackcase_show_kernel(&r, NULL, frames + 1, 1);
	buf_put(&r.detail, "", 1);
	tap_eq_str(t, (const char *)r.detail.p, "kernel frame 0: 0x10\n",
		"without symbols a kernel frame is shown with its address");
	buf_free(&r.detail);
}

int main(void)
{
	struct stackcase_env env;
	struct tap t = { 0 };

	test_verdicts(&t);
	test_chain(&t);
	test_show(&t);
	stackcase_env_init(&env);
	tap_ok(&t,
		env.max_stack > 0 && env.depth > 0 && env.depth <= STACKCASE_DEPTH &&
			env.depth <= env.max_stack,
		"the depth of an entry is within the sysctl and the limit of the cases");
	return tap_done(&t);
}
