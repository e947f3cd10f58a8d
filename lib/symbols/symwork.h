/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symwork - the inner side of symchild.h: what the sandboxed process does, and
 * how its answers lie in the file that it leaves.
 *
 * For each task, one behind the other, a record, the answer's bytes, and
 * zeros up to a multiple of 8. The record is written last: where it is,
 * the bytes are.
 */
#ifndef STACKTOOLS_SYMWORK_H
#define STACKTOOLS_SYMWORK_H

#include "symbols/symlook.h"

#include <sys/types.h>

#define SYMWORK_MAGIC UINT64_C(0x31726577736e6173)

struct symwork_record {
	uint64_t magic;
	uint32_t number; /* of the task, from 0 */
	int32_t error; /* 0 or -errno */
	uint64_t len; /* of the answer behind it */
	uint64_t ns; /* CPU time */
	char why[256];
};

/* As symlook(). */
typedef int symwork_look(const struct symlook_input *in, uint8_t **ret, size_t *len, struct err *e);

struct symwork {
	const struct symlook_input *const *tasks;
	size_t n;
	symwork_look *look;
	int out; /* the file that it leaves */
	pid_t parent; /* its getpid() */
	uint64_t memory_bytes, file_bytes; /* as in sandbox.h */
};

/* In a process that has just been forked (sandbox_fork()); does not return. */
void symwork_run(const struct symwork *w) __attribute__((noreturn));

/*
 * The record at *AT of FD, which is SIZE bytes long, and its answer in fresh memory
 * (*BYTES, NULL for an error's); *AT moves on. -ENOENT where none is
 * complete, -EPROTO where it is none of task NUMBER, -ENOMEM.
 */
int symwork_next(
	int fd, uint64_t size, uint32_t number, uint64_t *at, struct symwork_record *ret, uint8_t **bytes);

#endif
