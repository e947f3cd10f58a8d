/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ptwire - what a recorder and the process that walks the stacks of its
 * threads say to each other.
 *
 * Over a SOCK_SEQPACKET socket pair. The recorder tells what the process has
 * mapped, one message a mapping with the file's descriptor if it has one, then asks
 * for walks of what the copy (ptcopy.h) holds; each walk is answered. The
 * walker's first message is an answer too: it is ready, or why it is not.
 */
#ifndef STACKTOOLS_PTWIRE_H
#define STACKTOOLS_PTWIRE_H

#include "base/err.h"

#define PTWIRE_FRAMES 512 /* of a stack, at most */
#define PTWIRE_FILES 1000 /* mappings of files, at most */
#define PTWIRE_MAPS 4000 /* mappings, at most */

/* In a frame: */
#define PTWIRE_EXACT (UINT64_C(1) << 63) /* no return address */
#define PTWIRE_GUESSED (UINT64_C(1) << 62) /* found by the frame pointer, as no table covers its callee */
#define PTWIRE_PC(frame) ((frame) & ~(PTWIRE_EXACT | PTWIRE_GUESSED))

enum ptwire_what {
	PTWIRE_FORGET = 1, /* all mappings: others follow */
	PTWIRE_MAP, /* an executable one */
	PTWIRE_WALK, /* what is in the copy now */
};

struct ptwire_request {
	uint32_t what; /* enum ptwire_what */
	uint32_t pad;
	uint64_t start, end, offset; /* of PTWIRE_MAP */
};

struct ptwire_answer {
	int32_t error; /* 0, or -errno with the story in `why` */
	uint32_t n; /* frames */
	uint8_t verdict, reason, missed,
		pad[5]; /* enum cap_verdict, cap_reason; did it lack memory at `wanted`? */
	uint64_t stop_pc;
	uint64_t wanted; /* where memory that was not copied was needed */
	union {
		char why[256]; /* ends in NUL */
		uint64_t frames[PTWIRE_FRAMES];
	};
};

_Static_assert(
	sizeof(struct ptwire_answer) == 32 + 8 * PTWIRE_FRAMES, "no padding that would carry memory away");

/* The recorder's side. FD < 0: none. 0 or -errno; -EAGAIN when the socket's time is over. */
int ptwire_ask(int sock, const struct ptwire_request *r, int fd);

/* 0, -EPIPE when the other side is gone, -EPROTO for what is no answer, -EAGAIN. */
int ptwire_answered(int sock, struct ptwire_answer *ret);

/* The walker's side; both wait. 1 with *FD for the caller to close (-1 = none), 0 at the end, -errno. */
int ptwire_next(int sock, struct ptwire_request *ret, int *fd);
int ptwire_answer(int sock, const struct ptwire_answer *a);

#endif
