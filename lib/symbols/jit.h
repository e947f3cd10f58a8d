/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit - what a perf map or a jitdump file says about some addresses, read by a separate process.
 *
 * These files are untrusted input, and a recorder has privileges. Therefore a forked process enters
 * a sandbox (system/sandbox.h) before it reads the first byte, and its answer is checked. If it
 * crashes or takes too long, only that file's names are lost.
 */
#ifndef STACKTOOLS_SYMBOLS_JIT_H
#define STACKTOOLS_SYMBOLS_JIT_H

#include "base/err.h"
#include "capture/types.h"

#define JIT_READER_VERSIONS_MAX 64 /* of the code at one address: older ones are dropped and counted */

struct jit_reader_question {
	int fd; /* the file; stays the caller's */
	uint8_t kind; /* enum cap_jit_kind */
	const uint64_t *addrs; /* ascending, distinct: bytes that were executed */
	size_t n;
	unsigned int seconds; /* limit; 0 = 20 */
};

struct jit_reader_answer {
	struct cap_jit *jits; /* disjoint in address or time; `proc` is 0 */
	size_t n;
	uint64_t bad; /* malformed lines or records */
	uint64_t cut; /* pieces dropped: too many versions */
	char *strings; /* holds names and files */
};

/* 0 with *RET; release it with jit_reader_free(). -errno with the message, and *RET empty. */
int jit_reader_ask(const struct jit_reader_question *q, struct jit_reader_answer *ret, struct err *e);
void jit_reader_free(struct jit_reader_answer *a);

/* --- the child's output: a head, its pieces, its strings --- */

#define JIT_READER_MAGIC 0x54494a53u

struct jit_reader_head {
	uint32_t magic, n_pieces;
	uint64_t strings_len, bad, cut;
	int32_t error; /* -errno; then the only string is the message */
	uint32_t pad;
};

struct jit_reader_piece {
	uint64_t start, end, offset, from_ns, to_ns;
	uint32_t name, file; /* offsets into the strings */
	uint32_t line, pad;
};

/*
 * Parse LEN bytes of a child's answer to Q; they are untrusted. As jit_reader_ask(), but the caller
 * zeroes *RET and must free it even on failure. -EPROTO for a malformed answer.
 */
int jit_reader_view(const struct jit_reader_question *q, const char *bytes, size_t len,
	struct jit_reader_answer *ret, struct err *e);

#endif
