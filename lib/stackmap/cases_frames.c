/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Skip counts are used only with the deepest possible entry: kernels before the end of 2025 write beyond an
 * entry that is shallower than the trace if frames are also skipped.
 */
#include "stackmap/cases.h"
#include "base/text.h"
#include "stackmap/shot.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define SKIP 2
#define SKIP_ALL 120 /* far more than a kernel stack of a system call has */
#define SHALLOW 3 /* frames */
#define STACKS 24 /* for lookup and iteration */
#define SYSCALL_BYTES 64 /* upper bound for the length of libc's syscall() */
#define BUILD_IDS (STACKMAP_WORDS * sizeof(uint64_t) / sizeof(struct bpf_stack_build_id))

static struct stackshot *open_plain(struct stackcase_report *r, const struct stackcase_env *env)
{
	return stackcase_open(r, env, (struct stackshot_opts){ .type = STACKSHOT_RAW_TP });
}

static const char *const half_names[] = { [STACKMAP_KERNEL] = "kernel", [STACKMAP_USER] = "user" };

/*
 * The whole stack comes from bpf_get_stack() in the same run of the program: between two runs, another
 * program can be attached to the tracepoint, which adds a frame to the kernel stack.
 */
static void run_skip(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	enum stackmap_half half = *(const enum stackmap_half *)arg;
	CLEANUP(stackshot_close_p) struct stackshot *s = open_plain(r, env);
	struct chain_walk w = { .family = CHAIN_NORTH };
	uint64_t rest[STACKCASE_DEPTH];
	struct stackmap_state *state;
	size_t n, left;

	if (!s)
		return;
	state = stackshot_state(s);
	state->id_flags[half] = (half == STACKMAP_USER ? BPF_F_USER_STACK : 0) | SKIP;
	if (!stackcase_fire(r, s, &w, half))
		return;
	left = stackcase_frames(r, s, state->id[half], rest);
	if (!left)
		return;
	n = state->got[half] > 0 ? (size_t)state->got[half] / sizeof(uint64_t) : 0;
	if (left + SKIP != n || memcmp(rest, state->frames[half] + SKIP, left * sizeof(*rest)) != 0)
		stackcase_fail(r, "skipping %d of %zu %s frames leaves %zu, or others", SKIP, n,
			half_names[half], left);
	stackcase_pass(
		r, "skipping %d leaves the outer %zu of %zu %s frames", SKIP, left, n, half_names[half]);
}

static void run_skip_all(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	enum stackmap_half half = *(const enum stackmap_half *)arg;
	CLEANUP(stackshot_close_p) struct stackshot *s = open_plain(r, env);
	struct chain_walk w = { .family = CHAIN_NORTH };
	struct stackmap_state *state;
	char text[256];

	if (!s)
		return;
	state = stackshot_state(s);
	state->id_flags[half] = (half == STACKMAP_USER ? BPF_F_USER_STACK : 0) | SKIP_ALL;
	if (stackcase_fire(r, s, &w, half) &&
		stackcase_result(r, STACKERR_GET_ID, "skipping the whole stack", state->id[half], -EFAULT))
		stackcase_pass(r, "%s", stackerr_text(STACKERR_GET_ID, -EFAULT, text, sizeof(text)));
}

static void run_shallow(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	CLEANUP(stackshot_close_p)
	struct stackshot *s =
		stackcase_open(r, env, (struct stackshot_opts){ .type = STACKSHOT_RAW_TP, .depth = SHALLOW });
	struct chain_walk w = { .family = CHAIN_NORTH };
	uint64_t frames[STACKCASE_DEPTH];
	struct stackmap_state *state;
	size_t n;

	(void)arg;
	if (!s)
		return;
	state = stackshot_state(s);
	state->get_bytes = SHALLOW * sizeof(uint64_t);
	if (!stackcase_fire(r, s, &w, STACKMAP_USER))
		return;
	n = stackcase_frames(r, s, state->id[STACKMAP_USER], frames);
	stackcase_show_user(r, frames, n);
	if (!n || !stackcase_is_chain(r, &w, frames, n, SHALLOW))
		return;
	if (n != SHALLOW)
		stackcase_fail(r, "%zu frames in an entry of %d", n, SHALLOW);
	stackcase_result(r, STACKERR_GET, "bpf_get_stack() into a buffer of 3 frames",
		state->got[STACKMAP_USER], SHALLOW * (int64_t)sizeof(uint64_t));
	stackcase_pass(r, "of %d frames the inner %d are kept, and nothing says that there were more",
		CHAIN_FRAMES, SHALLOW);
}

static void run_deep(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	CLEANUP(stackshot_close_p) struct stackshot *s = open_plain(r, env);
	struct chain_walk w = { .family = CHAIN_DEEP };
	uint64_t frames[STACKCASE_DEPTH];
	struct stackmap_state *state;
	size_t n;

	(void)arg;
	if (!s)
		return;
	state = stackshot_state(s);
	if (!stackcase_fire(r, s, &w, STACKMAP_USER))
		return;
	n = stackcase_frames(r, s, state->id[STACKMAP_USER], frames);
	if (!n || !stackcase_is_chain(r, &w, frames, n, CHAIN_FRAMES - 1))
		return;
	for (size_t i = CHAIN_FRAMES; i < n; i++) {
		const char *name = chain_name(frames[i], NULL);

		if (!name || strcmp(name, "chain_deep") != 0)
			stackcase_fail(r, "frame %zu is %s, want chain_deep", i, name ? name : "[unknown]");
	}
	if (n != env->depth)
		stackcase_fail(r, "%zu frames of %d, want %u", n, CHAIN_DEEP_FRAMES, env->depth);
	stackcase_pass(r, "of %d calls the inner %zu frames are kept", CHAIN_DEEP_FRAMES, n);
}

/*
 * The program calls the two helpers from two places, so the frames of a kernel stack that lie inside the
 * program differ. There is one such frame, or two (5.10 and 6.16: the walk starts at the place of the call,
 * and finds it again on the stack).
 */
static bool in_program(const struct stackshot *s, uint64_t a, uint64_t b)
{
	return MAX(a, b) - MIN(a, b) < stackshot_program_bytes(s);
}

static void run_agree(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	enum stackmap_half half = *(const enum stackmap_half *)arg;
	CLEANUP(stackshot_close_p) struct stackshot *s = open_plain(r, env);
	struct chain_walk w = { .family = CHAIN_NORTH };
	uint64_t frames[STACKCASE_DEPTH];
	struct stackmap_state *state;
	size_t n;

	if (!s || !stackcase_fire(r, s, &w, half))
		return;
	state = stackshot_state(s);
	n = stackcase_frames(r, s, state->id[half], frames);
	if (!n || !stackcase_result(r, STACKERR_GET, "bpf_get_stack()", state->got[half],
			  (int64_t)(n * sizeof(*frames))))
		return;
	for (size_t i = 0; i < n; i++) {
		uint64_t direct = state->frames[half][i];

		if (frames[i] != direct &&
			!(half == STACKMAP_KERNEL && i < 2 && in_program(s, frames[i], direct)))
			stackcase_fail(r, "frame %zu: 0x%" PRIx64 " in the map, 0x%" PRIx64 " directly", i,
				frames[i], direct);
	}
	stackcase_pass(r, "%zu %s frames are the same both ways", n, half_names[half]);
}

/* Check GOT, frame I as the kernel stored it, against the build ID and file offset of ADDR. */
static bool check_build_id(
	struct stackcase_report *r, size_t i, uint64_t addr, const struct bpf_stack_build_id *got)
{
	char hex_got[2 * BPF_BUILD_ID_SIZE + 1];
	struct loaded at;

	/* frame 0 is the PC, somewhere inside libc's syscall() */
	if (i == 0)
		addr = (uint64_t)(uintptr_t)syscall;
	if (got->status != BPF_STACK_BUILD_ID_VALID)
		return stackcase_fail(r, "frame %zu has no build ID (status %d)", i, got->status);
	text_hex(hex_got, got->build_id, sizeof(got->build_id));
	stackcase_detail(r, "user frame %zu: build ID %s offset 0x%llx", i, hex_got, got->offset);
	if (!loaded_find(addr, &at))
		return stackcase_fail(r, "frame %zu: 0x%" PRIx64 " is in no loaded object", i, addr);
	if (!at.build_id ||
		memcmp(got->build_id, at.build_id, MIN(at.build_id_len, sizeof(got->build_id))) != 0)
		return stackcase_fail(
			r, "frame %zu has build ID %s, which is not this program's", i, hex_got);
	if (i == 0 ? got->offset - at.offset > SYSCALL_BYTES : got->offset != at.offset)
		return stackcase_fail(
			r, "frame %zu has offset 0x%llx, want 0x%" PRIx64, i, got->offset, at.offset);
	return true;
}

static bool has_build_id(struct stackcase_report *r)
{
	struct loaded own;

	if (loaded_find(chain_probe_address(), &own) && own.build_id)
		return true;
	return stackcase_skip(r, "this program was linked without a build ID");
}

static void check_build_ids(struct stackcase_report *r, const struct chain_walk *w,
	const struct bpf_stack_build_id *got, size_t n)
{
	if (n < CHAIN_FRAMES) {
		stackcase_fail(r, "the stack has %zu frames, want %d", n, CHAIN_FRAMES);
		return;
	}
	for (size_t i = 0; i < CHAIN_FRAMES; i++)
		if (!check_build_id(r, i, w->frames[i], &got[i]))
			return;
	stackcase_pass(r, "each of %zu frames has its file's build ID and offset", n);
}

static void run_build_id_map(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	CLEANUP(stackshot_close_p)
	struct stackshot *s =
		stackcase_open(r, env, (struct stackshot_opts){ .type = STACKSHOT_RAW_TP, .build_id = true });
	_cleanup_free_ struct bpf_stack_build_id *got = calloc(env->depth, sizeof(*got));
	struct chain_walk w;
	uint32_t key;
	int64_t id;
	size_t n = 0;

	(void)arg;
	if (!s || !got || !has_build_id(r))
		return;
	id = stackcase_user_id(r, s, CHAIN_NORTH, NULL, 0, &w);
	key = (uint32_t)id;
	if (id < 0 || bpf_map_lookup_elem(stackshot_map_fd(s), &key, got) != 0) {
		stackcase_fail(r, "no stack with build IDs: id %" PRId64, id);
		return;
	}
	while (n < env->depth && got[n].status != BPF_STACK_BUILD_ID_EMPTY)
		n++;
	check_build_ids(r, &w, got, n);
}

static void run_build_id_get(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	CLEANUP(stackshot_close_p) struct stackshot *s = open_plain(r, env);
	struct chain_walk w = { .family = CHAIN_NORTH };
	struct bpf_stack_build_id got[BUILD_IDS];
	struct stackmap_state *state;
	int64_t bytes;

	(void)arg;
	if (!s || !has_build_id(r))
		return;
	state = stackshot_state(s);
	state->get_flags[STACKMAP_USER] = BPF_F_USER_STACK | BPF_F_USER_BUILD_ID;
	state->get_bytes = sizeof(got);
	if (!stackcase_fire(r, s, &w, STACKMAP_USER))
		return;
	bytes = state->got[STACKMAP_USER];
	if (bytes < 0) {
		stackcase_result(r, STACKERR_GET, "bpf_get_stack() with BPF_F_USER_BUILD_ID", bytes, 0);
		return;
	}
	memcpy(got, state->frames[STACKMAP_USER], sizeof(got));
	check_build_ids(r, &w, got, (size_t)bytes / sizeof(got[0]));
}

/*
 * Take STACKS distinct stacks; ids[i] is the id of the one with tail i + 1, or -EEXIST if it collides.
 * Returns the number of ids; 0 after any other error.
 */
static size_t put_stacks(struct stackcase_report *r, struct stackshot *s, int64_t ids[STACKS])
{
	size_t n = 0;

	for (uint64_t i = 0; i < STACKS; i++) {
		struct chain_frame tail = { .ret = i + 1 };

		ids[i] = stackcase_user_id(r, s, CHAIN_NORTH, &tail, 0, NULL);
		if (ids[i] >= 0)
			n++;
		else if (ids[i] != -EEXIST)
			return 0;
	}
	return n;
}

static void run_look_up(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	CLEANUP(stackshot_close_p) struct stackshot *s = open_plain(r, env);
	uint64_t frames[STACKCASE_DEPTH];
	int64_t ids[STACKS];
	size_t n;

	(void)arg;
	n = s ? put_stacks(r, s, ids) : 0;
	for (size_t i = 0; n && i < STACKS; i++) {
		if (ids[i] < 0)
			continue;
		if (stackcase_frames(r, s, ids[i], frames) != CHAIN_FRAMES + 1 ||
			frames[CHAIN_FRAMES] != i + 1)
			stackcase_fail(r, "id %" PRId64 " is another stack: frame %d is 0x%" PRIx64, ids[i],
				CHAIN_FRAMES, frames[CHAIN_FRAMES]);
		/* a lookup takes the entry out and puts it back: a second one must find it too */
		stackcase_frames(r, s, ids[i], frames);
	}
	if (n)
		stackcase_pass(r, "%zu stacks, each found under its id with its own frames, twice", n);
}

/* The number of keys in the map; 0 if one is not among IDS or is repeated, and then R has failed. */
static size_t iterate(struct stackcase_report *r, const struct stackshot *s, const int64_t ids[STACKS])
{
	bool seen[STACKS] = { false };
	uint32_t key = 0, *prev = NULL;
	size_t n = 0;

	while (bpf_map_get_next_key(stackshot_map_fd(s), prev, &key) == 0) {
		size_t i = 0;

		prev = &key;
		while (i < STACKS && ids[i] != key)
			i++;
		if (i == STACKS || seen[i]) {
			stackcase_fail(r, "iteration gives id %u, which %s", key,
				i == STACKS ? "is none of the stacks" : "it gave before");
			return 0;
		}
		seen[i] = true;
		n++;
	}
	return n;
}

static void run_iterate(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	CLEANUP(stackshot_close_p) struct stackshot *s = open_plain(r, env);
	int64_t ids[STACKS];
	size_t n, found;

	(void)arg;
	n = s ? put_stacks(r, s, ids) : 0;
	if (!n)
		return;
	found = iterate(r, s, ids);
	if (found != n)
		stackcase_fail(r, "iteration gives %zu ids of %zu", found, n);
	stackcase_pass(r, "get_next_key gives each of %zu ids once", n);
}

static void run_delete(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	CLEANUP(stackshot_close_p) struct stackshot *s = open_plain(r, env);
	uint64_t frames[STACKCASE_DEPTH];
	uint32_t first, gone = 0, next;
	int64_t ids[STACKS];
	size_t n, found;
	int fd;

	(void)arg;
	n = s ? put_stacks(r, s, ids) : 0;
	if (!n)
		return;
	fd = stackshot_map_fd(s);
	for (size_t i = 0; i < STACKS; i += 2) {
		if (ids[i] < 0)
			continue;
		gone = (uint32_t)ids[i];
		ids[i] = -ENOENT;
		n--;
		if (bpf_map_delete_elem(fd, &gone) != 0)
			stackcase_fail(r, "delete of id %u gives -%d %s", gone, errno, err_name(errno));
		if (bpf_map_lookup_elem(fd, &gone, frames) == 0 || errno != ENOENT)
			stackcase_fail(r, "id %u is still there after its delete", gone);
		if (bpf_map_delete_elem(fd, &gone) == 0 || errno != ENOENT)
			stackcase_fail(r, "a second delete of id %u is not -ENOENT", gone);
	}
	found = iterate(r, s, ids);
	if (found != n)
		stackcase_fail(r, "iteration gives %zu ids, want the %zu that were not deleted", found, n);
	/* so code that deletes while it iterates must get the next key first */
	if (bpf_map_get_next_key(fd, NULL, &first) || bpf_map_get_next_key(fd, &gone, &next) || next != first)
		stackcase_fail(r, "get_next_key of a deleted id does not start again");
	stackcase_pass(
		r, "deleted ids are gone, the %zu others stay; the key after a deleted one is the first", n);
}

static const enum stackmap_half user = STACKMAP_USER, kernel = STACKMAP_KERNEL;

static const struct stackcase cases[] = {
	{ "frames: a skip count omits the innermost user frames", run_skip, &user },
	{ "frames: a skip count omits the innermost kernel frames", run_skip, &kernel },
	{ "frames: skipping the whole user stack is EFAULT", run_skip_all, &user },
	{ "frames: skipping the whole kernel stack is EFAULT", run_skip_all, &kernel },
	{ "frames: a stack deeper than the entry keeps its inner frames", run_shallow, NULL },
	{ "frames: a stack deeper than perf_event_max_stack keeps its inner frames", run_deep, NULL },
	{ "frames: bpf_get_stack() agrees with the map on each user frame", run_agree, &user },
	{ "frames: bpf_get_stack() agrees with the map on each kernel frame", run_agree, &kernel },
	{ "frames: a map with build IDs has each file's build ID and offset", run_build_id_map, NULL },
	{ "frames: bpf_get_stack() with BPF_F_USER_BUILD_ID has them too", run_build_id_get, NULL },
	{ "frames: look-up gives each id's own stack, again and again", run_look_up, NULL },
	{ "frames: iteration gives each id once", run_iterate, NULL },
	{ "frames: a deleted id is gone, the others stay", run_delete, NULL },
};

const struct stackcase_set framecases = { cases, ARRAY_LEN(cases) };
