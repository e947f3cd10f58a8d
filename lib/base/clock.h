/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clock - the kernel's clocks in nanoseconds.
 *
 * As the kernel itself, BPF and perf events count: the offsets of a time
 * namespace (time_namespaces(7)), which clock_gettime(2) adds, are taken off
 * again. A time that goes back to the kernel (timerfd, futex) must be relative.
 * Reading a clock cannot fail: every kernel that these tools run on has them.
 */
#ifndef STACKTOOLS_BASE_CLOCK_H
#define STACKTOOLS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_BOOTTIME, CLOCK_REALTIME and their like. */
uint64_t now_on(clockid_t clock);

/* CLOCK_MONOTONIC: what captures, perf events and bpf_ktime_get_ns() count by. */
uint64_t now_ns(void);

#endif
