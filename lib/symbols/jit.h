/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit - what a perf map or a jitdump file says of some addresses, read by
 * a process of its own.
 *
 * Anybody writes these files, and a recorder has privileges: so a process that
 * is forked for it enters a sandbox (system/sandbox.h) before the first byte is read,
 * and what it answers is checked. One that crashes or takes too long costs
 * that file's names.
 */
#ifndef STACKTOOLS_SYMBOLS_JIT_H
#define STACKTOOLS_SYMBOLS_JIT_H

#include "base/err.h"
#include "capture/types.h"

#define JIT_READER_VERSIONS_MAX 64 /* of code at one address: older ones are cut, and counted */

struct jit_reader_question {
	int fd; /* the file; stays the caller's */
	uint8_t kind; /* enum cap_jit_kind */
	const uint64_t *addrs; /* ascending, distinct: bytes that executed */
	size_t n;
	unsigned int seconds; /* at most; 0 = 20 */
};

struct jit_reader_answer {
	struct cap_jit *jits; /* disjoint in address or in time; `proc` is 0 */
	size_t n;
	uint64_t bad; /* lines or records that are none */
	uint64_t cut; /* pieces left out: too many versions */
	char *strings; /* names and files are in it */
};

/* 0 with *RET, which jit_reader_free() releases; -errno with the message, and *RET empty. */
int jit_reader_ask(const struct jit_reader_question *q, struct jit_reader_answer *ret, struct err *e);
void jit_reader_free(struct jit_reader_answer *a);

/* --- what the process leaves: a head, its pieces, its strings --- */

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
 * What LEN bytes answer to Q; nothing of them is believed. As jit_reader_ask(),
 * but *RET is zeroed by the caller, and to be freed after a failure too. -EPROTO for what no reader answers.
 */
int jit_reader_view(const struct jit_reader_question *q, const char *bytes, size_t len,
	struct jit_reader_answer *ret, struct err *e);

#endif
