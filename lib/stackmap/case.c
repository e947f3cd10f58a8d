/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stackmap/case.h"
#include "base/fs.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>

static const struct {
	enum stackerr_call call;
	int code;
	const char *meaning;
} table[] = {
	{ STACKERR_CREATE, -EINVAL, "key size, value size, entries or flags are none that such a map has" },
	{ STACKERR_CREATE, -E2BIG, "more entries than a map can have" },
	{ STACKERR_CREATE, -ENOMEM, "no memory for so many entries" },
	{ STACKERR_CREATE, -EPERM,
		"not permitted: CAP_BPF is missing, or before Linux 5.11 RLIMIT_MEMLOCK is used up" },
	{ STACKERR_GET_ID, -EFAULT, "there is no such stack, or the skip count left nothing of it" },
	{ STACKERR_GET_ID, -EEXIST, "another stack occupies this one's bucket: the stack is lost" },
	{ STACKERR_GET_ID, -ENOMEM, "every entry of the map is in use: the stack is lost" },
	{ STACKERR_GET_ID, -EINVAL, "a flag is unknown" },
	{ STACKERR_GET, -EFAULT, "there is no such stack, or the skip count left nothing of it" },
	{ STACKERR_GET, -EINVAL, "a flag is unknown, or the buffer is not a whole number of frames" },
	{ STACKERR_GET, -EOPNOTSUPP, "this kind of stack cannot be taken here" },
	{ STACKERR_LOOKUP, -ENOENT, "no stack has this id" },
	{ STACKERR_DELETE, -ENOENT, "no stack has this id" },
	{ STACKERR_DELETE, -E2BIG, "an id beyond the map's buckets" },
	{ STACKERR_UPDATE, -EINVAL, "only the kernel puts stacks into the map" },
	{ STACKERR_NEXT, -ENOENT, "there is no further id" },
};

const char *stackerr_meaning(enum stackerr_call call, int code)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].call == call && table[i].code == code)
			return table[i].meaning;
	return "";
}

const char *stackerr_text(enum stackerr_call call, int64_t result, char *buf, size_t cap)
{
	const char *meaning;

	if (result >= 0 || result < -4095) {
		snprintf(buf, cap, "%" PRId64, result);
		return buf;
	}
	meaning = stackerr_meaning(call, (int)result);
	snprintf(
		buf, cap, "%" PRId64 " %s%s%s", result, err_name((int)result), *meaning ? ": " : "", meaning);
	return buf;
}

#define DEFAULT_MAX_STACK 127

/* The value of the sysctl; its default if it cannot be read. */
static uint32_t read_max_stack(void)
{
	CLEANUP(root_close) struct root root = { .fd = -1 };
	char line[32];
	unsigned long v;

	if (root_open(NULL, &root, NULL) ||
		root_line(&root, "proc/sys/kernel/perf_event_max_stack", line, sizeof(line), NULL))
		return DEFAULT_MAX_STACK;
	v = strtoul(line, NULL, 10);
	return v > 0 && v <= UINT32_MAX ? (uint32_t)v : DEFAULT_MAX_STACK;
}

/*
 * Before Linux 5.11 maps count against this limit. libbpf lifts it if it may; raising the soft limit to the
 * hard one is always allowed.
 */
static void raise_memlock(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_MEMLOCK, &limit);
}

void stackcase_env_init(struct stackcase_env *env)
{
	raise_memlock();
	*env = (struct stackcase_env){ .max_stack = read_max_stack() };
	env->depth = MIN(env->max_stack, STACKCASE_DEPTH);
}

void stackcase_run(const struct stackcase *c, const struct stackcase_env *env, struct stackcase_report *r)
{
	*r = (struct stackcase_report){ .verdict = STACKCASE_PASS };
	c->run(r, env, c->arg);
}

void stackcase_pass(struct stackcase_report *r, const char *fmt, ...)
{
	va_list ap;

	if (r->verdict != STACKCASE_PASS)
		return;
	va_start(ap, fmt);
	vsnprintf(r->reason, sizeof(r->reason), fmt, ap);
	va_end(ap);
}

bool stackcase_fail(struct stackcase_report *r, const char *fmt, ...)
{
	va_list ap;

	if (r->verdict != STACKCASE_PASS)
		return false;
	r->verdict = STACKCASE_FAIL;
	va_start(ap, fmt);
	vsnprintf(r->reason, sizeof(r->reason), fmt, ap);
	va_end(ap);
	return false;
}

bool stackcase_skip(struct stackcase_report *r, const char *fmt, ...)
{
	va_list ap;

	if (r->verdict != STACKCASE_PASS)
		return false;
	r->verdict = STACKCASE_SKIP;
	va_start(ap, fmt);
	vsnprintf(r->reason, sizeof(r->reason), fmt, ap);
	va_end(ap);
	return false;
}

bool stackcase_skip_err(struct stackcase_report *r, const struct err *e)
{
	if (r->verdict == STACKCASE_PASS)
		snprintf(r->hint, sizeof(r->hint), "%s", e->hint);
	return stackcase_skip(r, "%s", e->msg);
}

void stackcase_detail(struct stackcase_report *r, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	buf_put(&r->detail, line, strlen(line));
	buf_put(&r->detail, "\n", 1);
}

struct stackshot *stackcase_open(
	struct stackcase_report *r, const struct stackcase_env *env, struct stackshot_opts opts)
{
	struct stackshot *s;
	struct err e;

	if (!opts.depth)
		opts.depth = env->depth;
	if (!stackshot_open(&opts, &s, &e))
		return s;
	stackcase_skip_err(r, &e);
	return NULL;
}

bool stackcase_result(
	struct stackcase_report *r, enum stackerr_call call, const char *what, int64_t got, int64_t want)
{
	char got_text[256], want_text[256];

	if (got == want)
		return true;
	stackerr_text(call, got, got_text, sizeof(got_text));
	stackerr_text(call, want, want_text, sizeof(want_text));
	return stackcase_fail(r, "%s gives %s; want %s", what, got_text, want_text);
}

bool stackcase_fire(
	struct stackcase_report *r, struct stackshot *s, struct chain_walk *w, enum stackmap_half half)
{
	struct err e;

	stackshot_state(s)->halves = 1U << half;
	if (stackshot_fire(s, w, &e) == 0)
		return true;
	return stackcase_fail(r, "%s", e.msg);
}

int64_t stackcase_user_id(struct stackcase_report *r, struct stackshot *s, enum chain_family family,
	const struct chain_frame *tail, uint64_t flags, struct chain_walk *w)
{
	struct stackmap_state *state = stackshot_state(s);
	struct chain_walk unwanted;

	if (!w)
		w = &unwanted;
	*w = (struct chain_walk){ .family = family, .tail = tail };
	state->id_flags[STACKMAP_USER] = BPF_F_USER_STACK | flags;
	if (!stackcase_fire(r, s, w, STACKMAP_USER))
		return INT64_MIN;
	return state->id[STACKMAP_USER];
}

size_t stackcase_frames(struct stackcase_report *r, const struct stackshot *s, int64_t id, uint64_t *frames)
{
	char text[256];
	uint32_t key = (uint32_t)id;
	size_t n = 0;

	memset(frames, 0, STACKCASE_DEPTH * sizeof(*frames));
	if (id < 0) {
		stackcase_fail(r, "bpf_get_stackid() gives %s",
			stackerr_text(STACKERR_GET_ID, id, text, sizeof(text)));
		return 0;
	}
	if (bpf_map_lookup_elem(stackshot_map_fd(s), &key, frames) != 0) {
		stackcase_fail(r, "look-up of id %" PRId64 " gives %s", id,
			stackerr_text(STACKERR_LOOKUP, -errno, text, sizeof(text)));
		return 0;
	}
	/* a frame is never 0, and the kernel fills the rest of an entry with zeros */
	while (n < STACKCASE_DEPTH && frames[n])
		n++;
	if (n == 0)
		stackcase_fail(r, "the stack of id %" PRId64 " has no frames", id);
	return n;
}

void stackcase_show_user(struct stackcase_report *r, const uint64_t *frames, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct loaded at = { .vaddr = 0 };
		uint64_t offset = 0;
		const char *name = chain_name(frames[i], &offset);
		bool known = loaded_find(frames[i], &at);

		stackcase_detail(r, "user frame %zu: %s+0x%" PRIx64 " %s[0x%" PRIx64 "]", i,
			name ? name : "[unknown]", name ? offset : 0, known ? at.path : "",
			known ? at.vaddr : frames[i]);
	}
}

struct kallsyms *stackcase_kallsyms(struct err *e)
{
	struct kallsyms *ks;

	return kallsyms_load(NULL, &ks, e) ? NULL : ks;
}

void stackcase_show_kernel(
	struct stackcase_report *r, const struct kallsyms *ks, const uint64_t *frames, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct kallsyms_sym sym;

		if (ks && kallsyms_find(ks, frames[i], &sym))
			stackcase_detail(r, "kernel frame %zu: %s+0x%" PRIx64 "%s%s%s", i, sym.name,
				frames[i] - sym.start, *sym.module ? " [" : "", sym.module,
				*sym.module ? "]" : "");
		else
			stackcase_detail(r, "kernel frame %zu: 0x%" PRIx64, i, frames[i]);
	}
}

bool stackcase_is_chain(
	struct stackcase_report *r, const struct chain_walk *w, const uint64_t *frames, size_t n, size_t want)
{
	if (n < want)
		return stackcase_fail(r, "the stack has %zu frames, want %zu", n, want);
	for (size_t i = 0; i < want; i++) {
		const char *name = chain_name(frames[i], NULL);

		if (i < CHAIN_FRAMES - 1 && (!name || strcmp(name, chain_expect(w, i)) != 0))
			return stackcase_fail(r, "frame %zu is %s (0x%" PRIx64 "), want %s", i,
				name ? name : "[unknown]", frames[i], chain_expect(w, i));
		if (w->family != CHAIN_DEEP && i > 0 && i < CHAIN_FRAMES && frames[i] != w->frames[i])
			return stackcase_fail(r,
				"frame %zu is 0x%" PRIx64 ", but the call returns to 0x%" PRIx64, i,
				frames[i], w->frames[i]);
	}
	return true;
}
