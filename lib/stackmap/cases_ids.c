/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The size of the map forces collisions: a map of one entry has one bucket, so all stacks collide. A map of
 * 3 entries has 4 buckets, so it is full while a bucket is still free.
 */
#include "stackmap/cases.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define TAILS 256 /* distinct stacks: all miss a given one of 4 buckets with a chance of (3/4)^256 */
#define CANDIDATES (1U << 18) /* stacks to search for two with the same 32-bit hash: 8 pairs are expected */

static struct chain_frame tail_of(uint64_t ret)
{
	return (struct chain_frame){ .ret = ret };
}

static const char *id_text(int64_t id, char *buf, size_t cap)
{
	return stackerr_text(STACKERR_GET_ID, id, buf, cap);
}

static void run_same(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	CLEANUP(stackshot_close_p)
	struct stackshot *s = stackcase_open(r, env, (struct stackshot_opts){ .type = STACKSHOT_RAW_TP });
	int64_t first, again, other = -EEXIST;

	(void)arg;
	if (!s)
		return;
	first = stackcase_user_id(r, s, CHAIN_NORTH, NULL, 0, NULL);
	again = stackcase_user_id(r, s, CHAIN_NORTH, NULL, 0, NULL);
	if (first < 0 || first != again) {
		stackcase_fail(r, "the same stack gives %" PRId64 ", then %" PRId64, first, again);
		return;
	}
	/* 1 stack in 1024 falls into the bucket of the first: then try another */
	for (uint64_t i = 1; i < 8 && other == -EEXIST; i++) {
		struct chain_frame tail = tail_of(i);

		other = stackcase_user_id(r, s, CHAIN_EAST, &tail, 0, NULL);
	}
	if (other < 0 || other == first)
		stackcase_fail(r, "another stack gives %" PRId64 ", the first one %" PRId64, other, first);
	stackcase_pass(r, "one stack is id %" PRId64 " twice, another is id %" PRId64, first, other);
}

static void run_zero(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	CLEANUP(stackshot_close_p)
	struct stackshot *s =
		stackcase_open(r, env, (struct stackshot_opts){ .type = STACKSHOT_RAW_TP, .entries = 1 });
	uint64_t frames[STACKCASE_DEPTH];
	struct chain_walk w;
	int64_t id;
	size_t n;

	(void)arg;
	if (!s)
		return;
	id = stackcase_user_id(r, s, CHAIN_NORTH, NULL, 0, &w);
	if (!stackcase_result(r, STACKERR_GET_ID, "a stack in a map of one bucket", id, 0))
		return;
	n = stackcase_frames(r, s, 0, frames);
	stackcase_show_user(r, frames, n);
	if (n && stackcase_is_chain(r, &w, frames, n, CHAIN_FRAMES))
		stackcase_pass(r, "id 0 is a stack like any other: %zu frames", n);
}

/* A map of one bucket that holds the north chain. */
static struct stackshot *occupied(struct stackcase_report *r, const struct stackcase_env *env)
{
	CLEANUP(stackshot_close_p)
	struct stackshot *s =
		stackcase_open(r, env, (struct stackshot_opts){ .type = STACKSHOT_RAW_TP, .entries = 1 });
	int64_t id;

	if (!s)
		return NULL;
	id = stackcase_user_id(r, s, CHAIN_NORTH, NULL, 0, NULL);
	return stackcase_result(r, STACKERR_GET_ID, "the first stack", id, 0) ? TAKE_PTR(s) : NULL;
}

/* Check that ID is the stack of FAMILY's chain. */
static bool holds(struct stackcase_report *r, const struct stackshot *s, int64_t id, enum chain_family family)
{
	struct chain_walk w = { .family = family };
	uint64_t frames[STACKCASE_DEPTH];
	size_t n = stackcase_frames(r, s, id, frames);
	const char *want = chain_expect(&w, 1), *got = n > 1 ? chain_name(frames[1], NULL) : NULL;

	if (n && (!got || strcmp(got, want) != 0))
		return stackcase_fail(
			r, "id %" PRId64 " is the stack of %s, want %s", id, got ? got : "[unknown]", want);
	return n > 0;
}

/* ARG: the flags. A second stack must be rejected, and the first one must stay. */
static void run_collision(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	CLEANUP(stackshot_close_p) struct stackshot *s = occupied(r, env);
	uint64_t flags = *(const uint64_t *)arg;
	char text[256];
	int64_t id;

	if (!s)
		return;
	id = stackcase_user_id(r, s, CHAIN_EAST, NULL, flags, NULL);
	if (!stackcase_result(r, STACKERR_GET_ID, "another stack in the same bucket", id, -EEXIST) ||
		!holds(r, s, 0, CHAIN_NORTH) ||
		!stackcase_result(r, STACKERR_GET_ID, "the first stack again",
			stackcase_user_id(r, s, CHAIN_NORTH, NULL, flags, NULL), 0))
		return;
	stackcase_pass(r, "%s; the first stack stays", id_text(-EEXIST, text, sizeof(text)));
}

struct candidate {
	uint32_t hash, ret;
};

static int by_hash(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return CMP(x->hash, y->hash);
}

/* Find two outermost frames that, appended to the N FRAMES, give the same hash. FRAMES has room for N + 1. */
static bool find_twins(uint64_t *frames, size_t n, uint64_t twins[2])
{
	_cleanup_free_ struct candidate *c = calloc(CANDIDATES, sizeof(*c));

	if (!c)
		return false;
	for (uint32_t i = 0; i < CANDIDATES; i++) {
		frames[n] = c[i].ret = i + 1;
		c[i].hash = chain_hash(frames, n + 1);
	}
	qsort(c, CANDIDATES, sizeof(*c), by_hash);
	for (size_t i = 1; i < CANDIDATES; i++) {
		if (c[i].hash == c[i - 1].hash) {
			twins[0] = c[i - 1].ret;
			twins[1] = c[i].ret;
			return true;
		}
	}
	return false;
}

/*
 * Read the frames of the north chain without a tail, and delete its stack again. Returns their number; 0 on
 * failure.
 */
static size_t north_frames(struct stackcase_report *r, struct stackshot *s, uint64_t *frames)
{
	int64_t id = stackcase_user_id(r, s, CHAIN_NORTH, NULL, 0, NULL);
	uint32_t key = (uint32_t)id;
	size_t n = id == INT64_MIN ? 0 : stackcase_frames(r, s, id, frames);

	if (n && bpf_map_delete_elem(stackshot_map_fd(s), &key) != 0)
		stackcase_fail(r, "delete of id %u gives -%d %s", key, errno, err_name(errno));
	return n == CHAIN_FRAMES ? n : 0;
}

static void run_fast_twins(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	CLEANUP(stackshot_close_p)
	struct stackshot *s =
		stackcase_open(r, env, (struct stackshot_opts){ .type = STACKSHOT_RAW_TP, .entries = 1 });
	uint64_t frames[STACKCASE_DEPTH + 1], twins[2];
	struct chain_frame first, second;
	int64_t exact, fast;
	size_t n;

	(void)arg;
	if (!s)
		return;
	n = north_frames(r, s, frames);
	if (!n || !find_twins(frames, n, twins)) {
		stackcase_skip(r, "no two stacks with the same hash were found");
		return;
	}
	first = tail_of(twins[0]);
	second = tail_of(twins[1]);
	if (!stackcase_result(r, STACKERR_GET_ID, "the first of two stacks with one hash",
		    stackcase_user_id(r, s, CHAIN_NORTH, &first, 0, NULL), 0))
		return;
	exact = stackcase_user_id(r, s, CHAIN_NORTH, &second, 0, NULL);
	fast = stackcase_user_id(r, s, CHAIN_NORTH, &second, BPF_F_FAST_STACK_CMP, NULL);
	if (!stackcase_result(r, STACKERR_GET_ID, "without the flag, the second stack", exact, -EEXIST))
		return;
	if (fast == -EEXIST) {
		stackcase_skip(r, "this kernel hashes stacks in another way than jhash2 with seed 0");
		return;
	}
	if (stackcase_result(r, STACKERR_GET_ID, "with the flag, the second stack", fast, 0))
		stackcase_pass(r,
			"two stacks whose frame 6 is 0x%" PRIx64 " and 0x%" PRIx64 " share hash 0x%" PRIx32
			": the second one gets the first one's id, a wrong stack",
			twins[0], twins[1], chain_hash((frames[n] = twins[0], frames), n + 1));
}

/* Take stacks of the east chain with different tails until one (tail *RET) replaces the one in BUCKET. */
static bool displace(struct stackcase_report *r, struct stackshot *s, int64_t bucket, uint64_t *ret)
{
	for (uint64_t i = 1; i <= TAILS; i++) {
		struct chain_frame tail = tail_of(i);
		int64_t id = stackcase_user_id(r, s, CHAIN_EAST, &tail, BPF_F_REUSE_STACKID, NULL);
		uint32_t key = (uint32_t)id;

		*ret = i;
		if (id == bucket)
			return true;
		if (id < 0)
			return stackcase_result(
				r, STACKERR_GET_ID, "a stack with BPF_F_REUSE_STACKID", id, bucket);
		/* it went into the other bucket and took the spare entry */
		bpf_map_delete_elem(stackshot_map_fd(s), &key);
	}
	return stackcase_fail(r, "none of %d stacks fell into bucket %" PRId64 " of 2", TAILS, bucket);
}

static void run_reuse(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	CLEANUP(stackshot_close_p)
	struct stackshot *s =
		stackcase_open(r, env, (struct stackshot_opts){ .type = STACKSHOT_RAW_TP, .entries = 2 });
	int64_t id;
	uint64_t ret;

	(void)arg;
	if (!s)
		return;
	id = stackcase_user_id(r, s, CHAIN_NORTH, NULL, 0, NULL);
	if (id < 0) {
		stackcase_result(r, STACKERR_GET_ID, "the first stack", id, 0);
		return;
	}
	if (displace(r, s, id, &ret) && holds(r, s, id, CHAIN_EAST))
		stackcase_pass(r,
			"id %" PRId64 " was north_inner's stack and is now east_inner's: whoever kept the id "
			"gets a wrong stack",
			id);
}

static void run_reuse_full(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	CLEANUP(stackshot_close_p) struct stackshot *s = occupied(r, env);
	char text[256];
	int64_t id;

	(void)arg;
	if (!s)
		return;
	id = stackcase_user_id(r, s, CHAIN_EAST, NULL, BPF_F_REUSE_STACKID, NULL);
	if (id == 0 && holds(r, s, 0, CHAIN_EAST))
		stackcase_pass(r, "the one entry was replaced");
	else if (stackcase_result(r, STACKERR_GET_ID, "a stack with BPF_F_REUSE_STACKID", id, -ENOMEM) &&
		 holds(r, s, 0, CHAIN_NORTH))
		stackcase_pass(r,
			"%s; the entry that would be discarded is not free yet, and the first stack stays",
			id_text(id, text, sizeof(text)));
}

/*
 * Fill the map until a stack gets -ENOMEM. *RET is the tail of that stack, *N the number of stacks that got
 * an id, *LAST the last id. Returns the last result.
 */
static int64_t fill(
	struct stackcase_report *r, struct stackshot *s, uint64_t *ret, unsigned int *n, uint32_t *last)
{
	int64_t id = 0;

	*n = 0;
	for (uint64_t i = 1; i <= TAILS && id != -ENOMEM && id != INT64_MIN; i++) {
		struct chain_frame tail = tail_of(i);

		id = stackcase_user_id(r, s, CHAIN_NORTH, &tail, 0, NULL);
		*ret = i;
		if (id >= 0) {
			*last = (uint32_t)id;
			++*n;
		}
	}
	return id;
}

static void run_full(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	CLEANUP(stackshot_close_p)
	struct stackshot *s =
		stackcase_open(r, env, (struct stackshot_opts){ .type = STACKSHOT_RAW_TP, .entries = 3 });
	struct chain_frame tail;
	unsigned int n;
	uint32_t last = 0;
	char text[256];
	int64_t id;
	uint64_t ret;

	(void)arg;
	if (!s)
		return;
	id = fill(r, s, &ret, &n, &last);
	if (!stackcase_result(r, STACKERR_GET_ID, "a stack beyond the last entry", id, -ENOMEM))
		return;
	if (n != 3) {
		stackcase_fail(r, "-ENOMEM after %u stacks in a map of 3 entries", n);
		return;
	}
	if (bpf_map_delete_elem(stackshot_map_fd(s), &last) != 0) {
		stackcase_fail(r, "delete of id %u gives -%d %s", last, errno, err_name(errno));
		return;
	}
	tail = tail_of(ret);
	id = stackcase_user_id(r, s, CHAIN_NORTH, &tail, 0, NULL);
	if (id < 0)
		stackcase_result(r, STACKERR_GET_ID, "the refused stack, after a delete", id, 0);
	stackcase_pass(r, "with 3 of 3 entries used: %s; after a delete the same stack is id %" PRId64,
		id_text(-ENOMEM, text, sizeof(text)), id);
}

static void run_bad_flag(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	CLEANUP(stackshot_close_p)
	struct stackshot *s = stackcase_open(r, env, (struct stackshot_opts){ .type = STACKSHOT_RAW_TP });
	char text[256];
	int64_t id;

	(void)arg;
	if (!s)
		return;
	id = stackcase_user_id(r, s, CHAIN_NORTH, NULL, 1ULL << 40, NULL);
	if (stackcase_result(r, STACKERR_GET_ID, "flag 2^40", id, -EINVAL))
		stackcase_pass(r, "%s", id_text(id, text, sizeof(text)));
}

static void run_kthread(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	CLEANUP(stackshot_close_p)
	struct stackshot *s = stackcase_open(r, env, (struct stackshot_opts){ .type = STACKSHOT_SWITCH });
	uint64_t frames[STACKCASE_DEPTH];
	CLEANUP(kallsyms_free_p) struct kallsyms *ks = s ? stackcase_kallsyms(NULL) : NULL;
	struct stackmap_state *state;
	char text[256];
	struct err e;
	size_t n;

	(void)arg;
	if (!s)
		return;
	state = stackshot_state(s);
	state->halves = 1U << STACKMAP_KERNEL | 1U << STACKMAP_USER;
	if (stackshot_kthread(s, &e)) {
		stackcase_skip_err(r, &e);
		return;
	}
	n = stackcase_frames(r, s, state->id[STACKMAP_KERNEL], frames);
	stackcase_show_kernel(r, ks, frames, n);
	stackcase_detail(r, "bpf_get_stack() of its user stack gives %s",
		stackerr_text(STACKERR_GET, state->got[STACKMAP_USER], text, sizeof(text)));
	if (n && stackcase_result(r, STACKERR_GET_ID, "the user stack of a kernel thread",
			 state->id[STACKMAP_USER], -EFAULT))
		stackcase_pass(r, "its kernel stack has %zu frames, its user stack is %s", n,
			id_text(-EFAULT, text, sizeof(text)));
}

static const uint64_t no_flags = 0, fast = BPF_F_FAST_STACK_CMP;

static const struct stackcase cases[] = {
	{ "id: the same stack has the same id, another stack another", run_same, NULL },
	{ "id: 0 is a valid id", run_zero, NULL },
	{ "id: a collision is EEXIST and keeps the first stack", run_collision, &no_flags },
	{ "id: BPF_F_FAST_STACK_CMP does not help where the hashes differ", run_collision, &fast },
	{ "id: BPF_F_FAST_STACK_CMP takes stacks of the same hash for one", run_fast_twins, NULL },
	{ "id: BPF_F_REUSE_STACKID puts another stack under an id in use", run_reuse, NULL },
	{ "id: BPF_F_REUSE_STACKID in a map without a free entry", run_reuse_full, NULL },
	{ "id: a full map is ENOMEM until something is deleted", run_full, NULL },
	{ "id: an unknown flag is EINVAL", run_bad_flag, NULL },
	{ "id: the user stack of a kernel thread is EFAULT", run_kthread, NULL },
};

const struct stackcase_set idcases = { cases, ARRAY_LEN(cases) };
