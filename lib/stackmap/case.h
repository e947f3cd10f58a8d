/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * case - what every test case of the stack map has in common: a verdict
 * with its reason, and the comparisons of stacks.
 *
 * A case fails only where the kernel contradicts what is documented. What
 * this kernel or this user cannot do is a skip with the reason.
 */
#ifndef STACKTOOLS_STACKMAP_CASE_H
#define STACKTOOLS_STACKMAP_CASE_H

#include "base/bytes.h"
#include "base/err.h"
#include "stackmap/shot.h"
#include "symbols/kallsyms.h"

/*
 * stackerr - what an error of the stack helpers and of the stack map means.
 *
 * An errno's own text ("Bad address") says nothing about stacks. Source:
 * bpf-helpers(7), kernel/bpf/stackmap.c.
 */

enum stackerr_call {
	STACKERR_CREATE, /* BPF_MAP_CREATE of a stack-trace map */
	STACKERR_GET_ID, /* bpf_get_stackid() */
	STACKERR_GET, /* bpf_get_stack() */
	STACKERR_LOOKUP, /* look-up of an id from user space */
	STACKERR_DELETE,
	STACKERR_UPDATE,
	STACKERR_NEXT, /* get_next_key */
};

/* What CODE (-errno) of CALL means, "" where there is nothing to add to its name. Never NULL. */
const char *stackerr_meaning(enum stackerr_call call, int code);

/*
 * RESULT of CALL as a person reads it, into BUF (returned): "-14 EFAULT: no
 * stack to take ...", or the number alone where it is no error.
 */
const char *stackerr_text(enum stackerr_call call, int64_t result, char *buf, size_t cap);

#define STACKCASE_DEPTH 127 /* frames that these cases look at; the default of perf_event_max_stack */

enum stackcase_verdict { STACKCASE_PASS, STACKCASE_FAIL, STACKCASE_SKIP };

/* What the cases know of the machine. */
struct stackcase_env {
	uint32_t max_stack; /* kernel.perf_event_max_stack */
	uint32_t depth; /* the lesser of it and STACKCASE_DEPTH */
};

/* Starts as a pass without a reason. */
struct stackcase_report {
	enum stackcase_verdict verdict;
	char reason[1536]; /* what was found, what is wrong, or why it is skipped */
	char hint[512]; /* for a skip: what to do about it; "" = nothing to say */
	struct buf detail; /* lines of text: frames and the like */
};

struct stackcase {
	const char *name; /* a sentence about behaviour */
	void (*run)(struct stackcase_report *r, const struct stackcase_env *env, const void *arg);
	const void *arg;
};

/* A group of cases, in the order they are to run. */
struct stackcase_set {
	const struct stackcase *cases;
	size_t n;
};

void stackcase_env_init(struct stackcase_env *env);

/* Run C into R. Release R's detail with buf_free(). */
void stackcase_run(const struct stackcase *c, const struct stackcase_env *env, struct stackcase_report *r);

/* The first failure or skip stays: later calls change nothing. All but pass() return false. */
void stackcase_pass(struct stackcase_report *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool stackcase_fail(struct stackcase_report *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool stackcase_skip(struct stackcase_report *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool stackcase_skip_err(struct stackcase_report *r, const struct err *e);
void stackcase_detail(struct stackcase_report *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Open a program and its map, depth 0 = env->depth. NULL: R says why it is skipped. */
struct stackshot *stackcase_open(
	struct stackcase_report *r, const struct stackcase_env *env, struct stackshot_opts opts);
DEFINE_CLEANUP(struct stackshot *, stackshot_close);

/* GOT of CALL must be WANT (-errno or a number); WHAT says of what. */
bool stackcase_result(
	struct stackcase_report *r, enum stackerr_call call, const char *what, int64_t got, int64_t want);

/*
 * Fire a walk of FAMILY with TAIL and the user half's FLAGS. The id or
 * -errno, *W (may be NULL) what was expected; INT64_MIN when nothing was
 * taken, and R has failed.
 */
int64_t stackcase_user_id(struct stackcase_report *r, struct stackshot *s, enum chain_family family,
	const struct chain_frame *tail, uint64_t flags, struct chain_walk *w);

/*
 * Fire W and take HALF of its stacks: two stacks in one map could fall into
 * one bucket. False when nothing was taken: R has failed.
 */
bool stackcase_fire(
	struct stackcase_report *r, struct stackshot *s, struct chain_walk *w, enum stackmap_half half);

/*
 * The frames of ID into FRAMES (room for STACKCASE_DEPTH), for maps without
 * build IDs and at most that deep. Their number; 0 and R failed without one.
 */
size_t stackcase_frames(struct stackcase_report *r, const struct stackshot *s, int64_t id, uint64_t *frames);

/* Frames as detail lines: "user frame 1: north_inner+0x22 [0x4321]". */
void stackcase_show_user(struct stackcase_report *r, const uint64_t *frames, size_t n);
void stackcase_show_kernel(struct stackcase_report *r, const struct kallsyms *ks, const uint64_t *frames,
	size_t n); /* KS NULL: addresses only */

/* The kernel's symbols as they are now (a program's come and go with it). NULL with the message. */
struct kallsyms *stackcase_kallsyms(struct err *e);
DEFINE_CLEANUP(struct kallsyms *, kallsyms_free);

/* The first WANT frames of a user stack are those of W, by address, name and order. */
bool stackcase_is_chain(struct stackcase_report *r, const struct chain_walk *w, const uint64_t *frames,
	size_t n, size_t want);

#endif
