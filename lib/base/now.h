/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * now - the kernel's clocks in nanoseconds. Floor 0.
 *
 * Reading one cannot fail: every kernel that these tools run on has them.
 */
#ifndef STACKTOOLS_NOW_H
#define STACKTOOLS_NOW_H

#include <stdint.h>
#include <time.h>

/* CLOCK_BOOTTIME, CLOCK_REALTIME and their like. */
static inline uint64_t now_on(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

/* CLOCK_MONOTONIC: what captures, perf events and bpf_ktime_get_ns() count by. */
static inline uint64_t now_ns(void)
{
	return now_on(CLOCK_MONOTONIC);
}

#endif
