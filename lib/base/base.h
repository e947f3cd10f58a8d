/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * base - what every module may use; includes nothing of ours.
 *
 * Scoped ownership: bind a resource to its scope with one of the _cleanup_
 * macros and hand it out with TAKE_PTR() or TAKE_FD(); every exit path then
 * releases exactly what was not handed out.
 */
#ifndef STACKTOOLS_BASE_BASE_H
#define STACKTOOLS_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define CLEANUP(fn) __attribute__((cleanup(fn)))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Three-way comparison that never overflows, for qsort(3) comparators. */
#define CMP(a, b) (((a) > (b)) - ((a) < (b)))

/* Define FN_p(T *p) for CLEANUP(): calls FN(*p); FN must take NULL. */
#define DEFINE_CLEANUP(T, FN)                                                                                \
	static inline void FN##_p(T *p)                                                                      \
	{                                                                                                    \
		FN(*p);                                                                                      \
	}                                                                                                    \
	struct base_swallow_semicolon

static inline void base_free_p(void *p)
{
	free(*(void **)p);
}

static inline void base_close_p(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void base_fclose_p(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define _cleanup_free_ CLEANUP(base_free_p)
#define _cleanup_close_ CLEANUP(base_close_p)
#define _cleanup_fclose_ CLEANUP(base_fclose_p)

#define TAKE_PTR(p)                                                                                          \
	({                                                                                                   \
		__typeof__(p) taken_ = (p);                                                                  \
		(p) = NULL;                                                                                  \
		taken_;                                                                                      \
	})

#define TAKE_FD(fd)                                                                                          \
	({                                                                                                   \
		int taken_ = (fd);                                                                           \
		(fd) = -1;                                                                                   \
		taken_;                                                                                      \
	})

/*
 * Make room for NEED elements of SIZE bytes in the array *P of capacity *CAP,
 * doubling. 0, or -ENOMEM with *P as it was. New room is zeroed.
 */
int base_grow(void *p, size_t *cap, size_t need, size_t size);

/*
 * All that FD gives from where it is up to its end, for a file that tells no
 * size, with a NUL behind it: *RET is to be freed. -EFBIG for more than MAX
 * bytes; -errno.
 */
int base_read(int fd, size_t max, char **ret, size_t *len);

#endif
