/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * case - what all test cases of the stack map share: a verdict with its reason, and comparisons of stacks.
 *
 * A case fails only if the kernel contradicts the documentation. If this kernel or this user cannot do
 * something, the case is skipped, with the reason.
 */
#ifndef STACKTOOLS_STACKMAP_CASE_H
#define STACKTOOLS_STACKMAP_CASE_H

#include "base/bytes.h"
#include "base/err.h"
#include "stackmap/shot.h"
#include "symbols/kallsyms.h"

/*
 * stackerr - the meaning of errors of the stack helpers and the stack map.
 *
 * The text of an errno ("Bad address") says nothing about stacks. Sources: bpf-helpers(7),
 * kernel/bpf/stackmap.c.
 */

enum stackerr_call {
	STACKERR_CREATE, /* BPF_MAP_CREATE of a stack-trace map */
	STACKERR_GET_ID, /* bpf_get_stackid() */
	STACKERR_GET, /* bpf_get_stack() */
	STACKERR_LOOKUP, /* lookup of an id from user space */
	STACKERR_DELETE,
	STACKERR_UPDATE,
	STACKERR_NEXT, /* get_next_key */
};

/* The meaning of CODE (-errno) from CALL; "" if the name of the error says enough. Never NULL. */
const char *stackerr_meaning(enum stackerr_call call, int code);

/*
 * Write RESULT of CALL as readable text to BUF, which is returned: "-14 EFAULT: there is no such stack, ...",
 * or only the number if it is not an error.
 */
const char *stackerr_text(enum stackerr_call call, int64_t result, char *buf, size_t cap);

#define STACKCASE_DEPTH 127 /* frames that the cases examine; the default of perf_event_max_stack */

enum stackcase_verdict { STACKCASE_PASS, STACKCASE_FAIL, STACKCASE_SKIP };

/* What the cases know about the machine. */
struct stackcase_env {
	uint32_t max_stack; /* kernel.perf_event_max_stack */
	uint32_t depth; /* the smaller of max_stack and STACKCASE_DEPTH */
};

/* Initially a pass without a reason. */
struct stackcase_report {
	enum stackcase_verdict verdict;
	char reason[1536]; /* what was found, what is wrong, or why the case is skipped */
	char hint[512]; /* for a skip: what to do about it; "" = no advice */
	struct buf detail; /* lines of text, such as frames */
};

struct stackcase {
	const char *name; /* a sentence about behaviour */
	void (*run)(struct stackcase_report *r, const struct stackcase_env *env, const void *arg);
	const void *arg;
};

/* A group of cases, in the order in which they run. */
struct stackcase_set {
	const struct stackcase *cases;
	size_t n;
};

void stackcase_env_init(struct stackcase_env *env);

/* Run C into R. Release R's detail with buf_free(). */
void stackcase_run(const struct stackcase *c, const struct stackcase_env *env, struct stackcase_report *r);

/*
 * The first failure or skip is final: later calls do not change it. stackcase_fail(), _skip() and _skip_err()
 * return false.
 */
void stackcase_pass(struct stackcase_report *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool stackcase_fail(struct stackcase_report *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool stackcase_skip(struct stackcase_report *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool stackcase_skip_err(struct stackcase_report *r, const struct err *e);
void stackcase_detail(struct stackcase_report *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Open a program and its map; depth 0 means env->depth. NULL on failure: then R is a skip with the reason. */
struct stackshot *stackcase_open(
	struct stackcase_report *r, const struct stackcase_env *env, struct stackshot_opts opts);
DEFINE_CLEANUP(struct stackshot *, stackshot_close);

/* Check that GOT, the result of CALL, is WANT (-errno or a number). WHAT names the call in the message. */
bool stackcase_result(
	struct stackcase_report *r, enum stackerr_call call, const char *what, int64_t got, int64_t want);

/*
 * Fire a walk of FAMILY with TAIL, and take its user stack with FLAGS. Returns the id or -errno; INT64_MIN if
 * no stack was taken, and then R has failed. The expected stack is written to *W, which may be NULL.
 */
int64_t stackcase_user_id(struct stackcase_report *r, struct stackshot *s, enum chain_family family,
	const struct chain_frame *tail, uint64_t flags, struct chain_walk *w);

/*
 * Fire W and take only HALF of its stacks, since two stacks in one map can fall into one bucket. False if no
 * stack was taken: then R has failed.
 */
bool stackcase_fire(
	struct stackcase_report *r, struct stackshot *s, struct chain_walk *w, enum stackmap_half half);

/*
 * Read the frames of ID into FRAMES, which has room for STACKCASE_DEPTH. For maps without build IDs that are
 * at most that deep. Returns the number of frames; 0 if there are none, and then R has failed.
 */
size_t stackcase_frames(struct stackcase_report *r, const struct stackshot *s, int64_t id, uint64_t *frames);

/* Add the frames as detail lines: "user frame 1: north_inner+0x22 [0x4321]". */
void stackcase_show_user(struct stackcase_report *r, const uint64_t *frames, size_t n);
void stackcase_show_kernel(struct stackcase_report *r, const struct kallsyms *ks, const uint64_t *frames,
	size_t n); /* KS NULL: addresses only */

/* Read the kernel's symbols now: a BPF program's exist only while it is loaded. NULL with the message. */
struct kallsyms *stackcase_kallsyms(struct err *e);
DEFINE_CLEANUP(struct kallsyms *, kallsyms_free);

/* Check that the first WANT frames of a user stack are those of W, by address, name and order. */
bool stackcase_is_chain(struct stackcase_report *r, const struct chain_walk *w, const uint64_t *frames,
	size_t n, size_t want);

#endif
