/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clock - the kernel's clocks in nanoseconds.
 *
 * The times match those of the kernel, BPF and perf events: the offsets of a
 * time namespace (time_namespaces(7)), which clock_gettime(2) adds, are
 * subtracted. A time passed back to the kernel (timerfd, futex) must therefore
 * be relative. Reading a clock cannot fail: every kernel that these tools run
 * on has these clocks.
 */
#ifndef STACKTOOLS_BASE_CLOCK_H
#define STACKTOOLS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_BOOTTIME, CLOCK_REALTIME and other clocks. */
uint64_t now_on(clockid_t clock);

/* CLOCK_MONOTONIC, the clock of captures, perf events and bpf_ktime_get_ns(). */
uint64_t now_ns(void);

#endif
