/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * probes - short trials of system calls, BPF maps and BPF programs.
 */
#ifndef STACKTOOLS_CHECK_PROBES_H
#define STACKTOOLS_CHECK_PROBES_H

#include "check/probe.h"

/*
 * callprobe - trials that need no privilege: the system calls that a seccomp
 * filter may forbid, and the files that procfs mode reads.
 *
 * Container runtimes refuse bpf(2) and perf_event_open(2) with such a filter,
 * whatever the capabilities. The calls have arguments that the kernel refuses
 * before it does anything else: for perf_event_open(2) an unknown flag (EINVAL),
 * for bpf(2) an unknown command with an invalid address (EFAULT, EINVAL or E2BIG;
 * EPERM if kernel.unprivileged_bpf_disabled forbids all commands, before Linux
 * 5.19). Any other error comes from something else, such as a filter. Each call
 * is made in its own process, as a filter may kill it.
 */

/* As probe_fn: -EPERM with the message if a filter refuses the call; -ENOSYS if the kernel lacks it. */
int callprobe_bpf(char *found, size_t cap, struct err *e);
int callprobe_perf(char *found, size_t cap, struct err *e);

/*
 * Let a child open a perf event on itself: 0, the errno, or -signal.
 * Up to kernel.perf_event_paranoid=2 that takes no privilege. Mainline has no
 * higher value; the kernels of Debian (3) and Ubuntu (4) then refuse it with
 * EACCES without CAP_SYS_ADMIN, even with CAP_PERFMON.
 */
int callprobe_own_event(void);

/*
 * Read the files of /proc/PID/task/TID that procfs mode samples, of this
 * process. -errno if not even `stat` can be read.
 */
int callprobe_task_files(char *found, size_t cap, struct err *e);

/*
 * mapprobe - trials of BPF map types.
 *
 * Each is a probe_fn (check/probe.h): 0 with what was found, or -errno with the
 * message. What it creates is released when its process ends.
 */

/* Arrays, hashes and program arrays: only created, which is proof enough. */
int mapprobe_plain(char *found, size_t cap, struct err *e);
int mapprobe_ring(char *found, size_t cap, struct err *e); /* created and mapped */
int mapprobe_mmapable(
	char *found, size_t cap, struct err *e); /* written through memory, read through bpf(2) */
int mapprobe_map_in_map(char *found, size_t cap, struct err *e); /* a map put into another */
int mapprobe_task_storage(char *found, size_t cap, struct err *e); /* of this thread: written and read back */

/*
 * Whether maps count against RLIMIT_MEMLOCK: creates one with a limit of zero.
 * The limit of this process stays zero.
 */
int mapprobe_memlock(char *found, size_t cap, struct err *e);

/*
 * progprobe - trials of BPF program types and of the helpers they may call, with
 * programs of a few instructions.
 *
 * The verifier refuses a helper that a program type may not call, or that the
 * kernel does not have, before it checks the arguments, and says so in its log;
 * any other complaint means that the helper exists.
 *
 * Each is a probe_fn (check/probe.h), except progprobe_helpers() and
 * progprobe_programs(). What it loads is released when its process ends.
 */

/* The types of the recorder's programs. */
enum progprobe_kind {
	PROGPROBE_TP_BTF, /* at a tracepoint with BTF */
	PROGPROBE_ITER, /* task iterator */
	PROGPROBE_SLEEPABLE, /* task iterator that may sleep */
	PROGPROBE_CLOCK, /* at a perf clock event */
	PROGPROBE_RAW_TP, /* at a raw tracepoint, without BTF */
	PROGPROBE_KINDS,
};

struct progprobe_helper {
	uint32_t id; /* BPF_FUNC_x */
	const char *name;
	uint32_t kinds; /* 1 << PROGPROBE_x: the types that call it */
};

/* Every helper that bpf/offcpu.bpf.c calls, *N of them. t/unit/progprobe.c compares both. */
const struct progprobe_helper *progprobe_helpers(size_t *n);

int progprobe_helper_calls(char *found, size_t cap, struct err *e); /* that list, tp_btf and iterators */
int progprobe_raw_calls(char *found, size_t cap, struct err *e); /* that list, raw tracepoints */
int progprobe_kfuncs(char *found, size_t cap, struct err *e); /* kernel functions: no tool calls any yet */
int progprobe_raw_run(char *found, size_t cap, struct err *e); /* run a raw_tp program that is not attached */
int progprobe_tail_call(char *found, size_t cap, struct err *e); /* one program runs another */
int progprobe_iterator(char *found, size_t cap, struct err *e); /* over tasks: created and read */
int progprobe_sleepable_iterator(char *found, size_t cap, struct err *e); /* the same, which may sleep */
int progprobe_sleepable(char *found, size_t cap, struct err *e); /* run a program that may sleep */

#define PROGPROBE_LIMIT 1000000 /* BPF_COMPLEXITY_LIMIT_INSNS of include/linux/bpf_verifier.h */

struct progprobe_program {
	char mode[8];
	char name[16]; /* in the kernel: at most 15 characters */
	uint32_t insns; /* processed by the verifier; 0 = the kernel does not count them (before 5.16) */
	bool compiled;
};

/*
 * Append a struct progprobe_program, with MODE, to the file TO for each program
 * that this process has loaded (found in /proc/self/fd).
 */
int progprobe_programs(const char *mode, int to, struct err *e);

#endif
