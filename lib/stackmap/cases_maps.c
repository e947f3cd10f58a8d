/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stackmap/cases.h"
#include "system/privileges.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <string.h>

#define DEEPEST UINT32_MAX /* perf_event_max_stack frames, known at run time */
#define TOO_DEEP (UINT32_MAX - 1) /* one frame more */
#define BUILD_ID_BYTES sizeof(struct bpf_stack_build_id)

struct shape {
	uint32_t key, value, entries, flags;
	int want; /* 0 or -errno */
	int or_want; /* also correct, as the order of the kernel's checks is not guaranteed; 0 = none */
};

static uint32_t value_size(const struct shape *s, const struct stackcase_env *env)
{
	uint64_t frame = s->flags & BPF_F_STACK_BUILD_ID ? BUILD_ID_BYTES : sizeof(uint64_t);

	if (s->value == DEEPEST)
		return (uint32_t)(env->max_stack * frame);
	if (s->value == TOO_DEEP)
		return (uint32_t)((env->max_stack + 1) * frame);
	return s->value;
}

/* Create a stack-trace map. Returns a descriptor or -errno. */
static int create(uint32_t key, uint32_t value, uint32_t entries, uint32_t flags)
{
	struct bpf_map_create_opts opts = { .sz = sizeof(opts), .map_flags = flags };
	int fd = bpf_map_create(BPF_MAP_TYPE_STACK_TRACE, "stackmap_test", key, value, entries, &opts);

	return fd < 0 ? -errno : fd;
}

static bool skip_refused(struct stackcase_report *r, int code)
{
	static const int needed[] = { CAP_BPF };
	struct err e;

	priv_explain("create a stack-trace map", code, needed, ARRAY_LEN(needed), &e);
	return stackcase_skip_err(r, &e);
}

/* If the user may not create any map, a refusal shows nothing: then the case is skipped. */
static bool may_create(struct stackcase_report *r)
{
	_cleanup_close_ int fd = create(4, 8, 1, 0);

	return fd != -EPERM && fd != -EACCES ? true : skip_refused(r, fd);
}

static void run_create(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	const struct shape *s = arg;
	uint32_t value = value_size(s, env);
	_cleanup_close_ int fd = -1;
	char text[256], what[128];
	int got;

	if (!may_create(r))
		return;
	fd = create(s->key, value, s->entries, s->flags);
	got = fd < 0 ? fd : 0;
	snprintf(what, sizeof(what), "a map of %u entries, key %u, value %u bytes, flags 0x%x", s->entries,
		s->key, value, s->flags);
	/* this map is larger than may_create()'s: it can exceed the rest of a limit */
	if (got == -EPERM) {
		skip_refused(r, got);
		return;
	}
	if (got != s->want && s->or_want && got == s->or_want)
		;
	else if (!stackcase_result(r, STACKERR_CREATE, what, got, s->want))
		return;
	stackcase_pass(
		r, "%s: %s", what, got ? stackerr_text(STACKERR_CREATE, got, text, sizeof(text)) : "created");
}

/* Create an empty map of 8 buckets. Returns its descriptor; -1 on failure, with the reason in R. */
static int empty_map(struct stackcase_report *r)
{
	int fd;

	if (!may_create(r))
		return -1;
	fd = create(4, 64, 8, 0);
	if (fd < 0)
		stackcase_fail(r, "cannot create a map of 8 entries: %s", err_name(fd));
	return fd;
}

static int code_of(int rc)
{
	return rc < 0 ? -errno : 0;
}

static void run_insert(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	uint64_t frames[8] = { 0xffffffff81000000 };
	_cleanup_close_ int fd = empty_map(r);
	uint32_t id = 0;
	char text[256];
	int got;

	(void)env, (void)arg;
	if (fd < 0)
		return;
	got = code_of(bpf_map_update_elem(fd, &id, frames, BPF_ANY));
	if (stackcase_result(r, STACKERR_UPDATE, "an insert from user space", got, -EINVAL))
		stackcase_pass(r, "%s", stackerr_text(STACKERR_UPDATE, got, text, sizeof(text)));
}

static void run_empty(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	_cleanup_close_ int fd = empty_map(r);
	uint32_t id = 0, next = 0;
	uint64_t frames[8];

	(void)env, (void)arg;
	if (fd < 0)
		return;
	if (stackcase_result(r, STACKERR_LOOKUP, "look-up in an empty map",
		    code_of(bpf_map_lookup_elem(fd, &id, frames)), -ENOENT) &&
		stackcase_result(r, STACKERR_DELETE, "delete in an empty map",
			code_of(bpf_map_delete_elem(fd, &id)), -ENOENT) &&
		stackcase_result(r, STACKERR_NEXT, "get_next_key of an empty map",
			code_of(bpf_map_get_next_key(fd, NULL, &next)), -ENOENT))
		stackcase_pass(r, "look-up, delete and get_next_key give -%d ENOENT: %s", ENOENT,
			stackerr_meaning(STACKERR_LOOKUP, -ENOENT));
}

static void run_beyond(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	_cleanup_close_ int fd = empty_map(r);
	uint32_t id = 8;
	uint64_t frames[8];
	char text[256];
	int got;

	(void)env, (void)arg;
	if (fd < 0)
		return;
	got = code_of(bpf_map_delete_elem(fd, &id));
	if (stackcase_result(r, STACKERR_LOOKUP, "look-up of id 8 of 8 buckets",
		    code_of(bpf_map_lookup_elem(fd, &id, frames)), -ENOENT) &&
		stackcase_result(r, STACKERR_DELETE, "delete of id 8 of 8 buckets", got, -E2BIG))
		stackcase_pass(r, "look-up gives -%d ENOENT, delete %s", ENOENT,
			stackerr_text(STACKERR_DELETE, got, text, sizeof(text)));
}

#define SHAPE(...)                                                                                           \
	&(const struct shape)                                                                                \
	{                                                                                                    \
		__VA_ARGS__                                                                                  \
	}

static const struct stackcase cases[] = {
	{ "map: as deep as perf_event_max_stack is created", run_create, SHAPE(4, DEEPEST, 1024, 0, 0, 0) },
	{ "map: one entry of one frame is the smallest", run_create, SHAPE(4, 8, 1, 0, 0, 0) },
	{ "map: entries need not be a power of two", run_create, SHAPE(4, 8, 1000, 0, 0, 0) },
	{ "map: value size zero is refused", run_create, SHAPE(4, 0, 16, 0, -EINVAL, 0) },
	{ "map: value size below one frame is refused", run_create, SHAPE(4, 4, 16, 0, -EINVAL, 0) },
	{ "map: a value size that is not a multiple of 8 is refused", run_create,
		SHAPE(4, 12, 16, 0, -EINVAL, 0) },
	{ "map: one frame deeper than perf_event_max_stack is refused", run_create,
		SHAPE(4, TOO_DEEP, 16, 0, -EINVAL, 0) },
	{ "map: oversized value is refused", run_create, SHAPE(4, 1U << 30, 16, 0, -EINVAL, -E2BIG) },
	{ "map: key size zero is refused", run_create, SHAPE(0, 8, 16, 0, -EINVAL, 0) },
	{ "map: key size 8 is refused", run_create, SHAPE(8, 8, 16, 0, -EINVAL, 0) },
	{ "map: oversized key is refused", run_create, SHAPE(1U << 20, 8, 16, 0, -EINVAL, -E2BIG) },
	{ "map: no entries are refused", run_create, SHAPE(4, 8, 0, 0, -EINVAL, 0) },
	{ "map: more than 2^31 entries are refused", run_create,
		SHAPE(4, 8, (1U << 31) + 1, 0, -E2BIG, -ENOMEM) },
	{ "map: a flag it does not know is refused", run_create,
		SHAPE(4, 8, 16, BPF_F_NO_PREALLOC, -EINVAL, 0) },
	{ "map: with build IDs is created", run_create, SHAPE(4, DEEPEST, 16, BPF_F_STACK_BUILD_ID, 0, 0) },
	{ "map: with build IDs, a value of half an entry is refused", run_create,
		SHAPE(4, BUILD_ID_BYTES / 2, 16, BPF_F_STACK_BUILD_ID, -EINVAL, 0) },
	{ "map: with build IDs, deeper than perf_event_max_stack is refused", run_create,
		SHAPE(4, TOO_DEEP, 16, BPF_F_STACK_BUILD_ID, -EINVAL, 0) },
	{ "map: user space cannot insert a stack", run_insert, NULL },
	{ "map: an empty one has nothing to look up, delete or iterate", run_empty, NULL },
	{ "map: an id beyond the buckets is not a stack", run_beyond, NULL },
};

const struct stackcase_set mapcases = { cases, ARRAY_LEN(cases) };
