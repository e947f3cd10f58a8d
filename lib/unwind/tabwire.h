/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tabwire - what a recorder and the process that compiles its unwind tables
 * say to each other.
 *
 * Over a SOCK_SEQPACKET socket pair go requests with two descriptors, the ELF
 * file and an empty memfd for the table, and answers without any. Requests
 * are answered one by one in their order. The first message of the compiling
 * process has number 0: it is ready, or cannot begin.
 */
#ifndef STACKTOOLS_TABWIRE_H
#define STACKTOOLS_TABWIRE_H

#include "base/err.h"

struct tabwire_request {
	uint64_t number; /* from 1 */
	int file, table; /* descriptors */
};

struct tabwire_answer {
	uint64_t number; /* of the request; 0 = about the process itself */
	uint64_t len; /* bytes of the table */
	int32_t error; /* 0, or -errno with the story in `why` */
	char why[260]; /* ends in NUL */
};

_Static_assert(sizeof(struct tabwire_answer) == 280, "no padding that would carry memory away");

/* The recorder's side; neither waits. 0 or -errno: -EAGAIN, -EPIPE, ... */
int tabwire_ask(int sock, const struct tabwire_request *r);

/* 1, 0 when the other side is gone, -EAGAIN, or -EPROTO for what is no answer. */
int tabwire_answered(int sock, struct tabwire_answer *ret);

/* The compiling side; both wait. 1 with two descriptors for the caller to close, 0 at the end, -errno. */
int tabwire_next(int sock, struct tabwire_request *ret);
int tabwire_answer(int sock, const struct tabwire_answer *a); /* 0 or -errno */

#endif
