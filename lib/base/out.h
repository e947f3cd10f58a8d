/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * out - buffered output to a file descriptor, for tools that print a lot.
 *
 * The first write error is kept (`code`, -errno), and later puts do nothing:
 * check once, at out_flush(). A tool that writes its result through an out on
 * STDOUT_FILENO flushes it before cli_finish(), which closes stdout.
 */
#ifndef STACKTOOLS_BASE_OUT_H
#define STACKTOOLS_BASE_OUT_H

#include "base/err.h"
#include "base/text.h"

#include <string.h>

struct out {
	int fd;
	int code;
	size_t len, cap;
	char *p;
};

/* A buffer of 64 KiB for FD, which the caller owns. Release with out_free(). */
int out_init(struct out *o, int fd, struct err *e);
void out_free(struct out *o); /* does not flush; a zeroed out is fine */

/* 0, or the first write error with the message. */
int out_flush(struct out *o, struct err *e);

void out_put_slow(struct out *o, const void *p, size_t n);

static inline void out_put(struct out *o, const void *p, size_t n)
{
	if (n <= o->cap - o->len) {
		memcpy(o->p + o->len, p, n);
		o->len += n;
	} else {
		out_put_slow(o, p, n);
	}
}

static inline void out_str(struct out *o, const char *s)
{
	out_put(o, s, strlen(s));
}

static inline void out_char(struct out *o, char c)
{
	out_put(o, &c, 1);
}

void out_u64(struct out *o, uint64_t v);
void out_hex(struct out *o, uint64_t v, unsigned int width); /* padded with spaces to WIDTH, no 0x */
void out_printf(struct out *o, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * outtext - escaped text into an out, for untrusted input.
 */

/* Puts all of S, of any length. */
void outtext_put(struct out *o, const char *s, enum text_style style);

#endif
