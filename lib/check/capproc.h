/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capproc - one thing each that a tool does to a process, or reads of the
 * kernel, done for real.
 *
 * Each returns 0, or -errno with the story. They are called in a process that
 * ends afterwards and has the capabilities to be tried; PID is a process of W
 * (capworld.h), or of no matter where it is not looked at.
 */
#ifndef STACKTOOLS_CAPPROC_H
#define STACKTOOLS_CAPPROC_H

#include "check/capworld.h"

typedef int (*capproc_fn)(const struct capworld *w, pid_t pid, struct err *e);

int capproc_maps(const struct capworld *w, pid_t pid, struct err *e); /* read /proc/PID/maps */
int capproc_root(const struct capworld *w, pid_t pid, struct err *e); /* a mapped file by /proc/PID/root */
int capproc_map_files(const struct capworld *w, pid_t pid, struct err *e); /* the same by map_files */
int capproc_own_file(const struct capworld *w, pid_t pid, struct err *e); /* by map_files, one of mode 0600 */
int capproc_memory(const struct capworld *w, pid_t pid, struct err *e); /* process_vm_readv(2) */
int capproc_mem_file(const struct capworld *w, pid_t pid, struct err *e); /* /proc/PID/mem */
int capproc_ptrace(const struct capworld *w, pid_t pid, struct err *e); /* attach, stop and let go */
int capproc_syscall(const struct capworld *w, pid_t pid, struct err *e); /* read /proc/PID/syscall */
int capproc_stack(const struct capworld *w, pid_t pid, struct err *e); /* read /proc/PID/stack */
int capproc_event(const struct capworld *w, pid_t pid, struct err *e); /* a perf dummy event on PID */

int capproc_events(const struct capworld *w, pid_t pid, struct err *e); /* dummy events on every CPU */
int capproc_kallsyms(const struct capworld *w, pid_t pid, struct err *e); /* addresses, not zeros */
int capproc_btf(const struct capworld *w, pid_t pid, struct err *e); /* read the kernel's BTF */
int capproc_tracefs(const struct capworld *w, pid_t pid, struct err *e); /* the id of a tracepoint */

/* Raise the hard RLIMIT_MEMLOCK, which this process loses most of when that fails: try it last. */
int capproc_memlock(const struct capworld *w, pid_t pid, struct err *e);

#endif
