/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * base - helpers for every module; includes no other header of stacktools.
 *
 * Scoped ownership: bind a resource to its scope with one of the _cleanup_
 * macros and pass it on with TAKE_PTR() or TAKE_FD(). Every exit path then
 * releases exactly what was not passed on.
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

/* A three-way comparison that cannot overflow, for qsort(3) comparators. */
#define CMP(a, b) (((a) > (b)) - ((a) < (b)))

/* A + B, or UINT64_MAX if that is less: for sums of untrusted numbers. */
static inline uint64_t add_saturating(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Define FN_p(T *p) for CLEANUP(): it calls FN(*p), and FN must accept NULL. */
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
 * Make room for NEED elements of SIZE bytes in the array *P of capacity *CAP
 * by doubling *CAP. The new room is zeroed. 0, or -ENOMEM with *P unchanged.
 */
int base_grow(void *p, size_t *cap, size_t need, size_t size);

/*
 * Read FD from its current offset to its end, for a file that does not report
 * its size. *RET is NUL-terminated; free it. -EFBIG if there are more than MAX
 * bytes, else -errno.
 */
int base_read(int fd, size_t max, char **ret, size_t *len);

#endif
