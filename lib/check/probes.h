/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * probes - system calls, BPF maps and BPF programs, each tried for a moment.
 */
#ifndef STACKTOOLS_CHECK_PROBES_H
#define STACKTOOLS_CHECK_PROBES_H

#include "check/probe.h"

/*
 * callprobe - what anybody may try, with whatever privileges there are: the
 * system calls that a seccomp filter forbids, and the files that procfs mode
 * reads.
 *
 * Container runtimes refuse bpf(2) and perf_event_open(2) by such a filter,
 * whatever the capabilities. The calls are made with arguments that the kernel
 * refuses before it looks at anything: a flag of perf_event_open(2) that does
 * not exist (EINVAL), and an address of bpf(2) that is none (EFAULT, or EPERM
 * where kernel.unprivileged_bpf_disabled shuts everything before Linux 5.19).
 * Any other error is somebody else's. Each call has a process of its own, for
 * a filter may kill.
 */

/* As probe_fn: -EPERM and the like with the message when a filter refuses the call. */
int callprobe_bpf(char *found, size_t cap, struct err *e);
int callprobe_perf(char *found, size_t cap, struct err *e);

/*
 * A perf event on this process is opened: 0, the errno, or -signal. Up to
 * kernel.perf_event_paranoid=2 that takes no privilege. Beyond, mainline knows
 * no value; the kernels of Debian (3) and Ubuntu (4) refuse it with EACCES to
 * who lacks CAP_SYS_ADMIN, whatever CAP_PERFMON allows.
 */
int callprobe_own_event(void);

/*
 * Of this very process the files of /proc/PID/task/TID that are sampled
 * without BPF. -errno when not even `stat` can be read.
 */
int callprobe_task_files(char *found, size_t cap, struct err *e);

/*
 * mapprobe - kinds of BPF maps, made and used for a moment.
 *
 * Each is a probe_fn (check/probe.h): 0 with what was seen, or -errno with the
 * message. What it makes is gone when its process ends.
 */

/* Arrays, hashes and what else is made and needs no use to be believed. */
int mapprobe_plain(char *found, size_t cap, struct err *e);
int mapprobe_ring(char *found, size_t cap, struct err *e); /* made and mapped */
int mapprobe_mmapable(
	char *found, size_t cap, struct err *e); /* written through memory, read through bpf(2) */
int mapprobe_map_in_map(char *found, size_t cap, struct err *e); /* a map put into another */
int mapprobe_task_storage(char *found, size_t cap, struct err *e); /* of this thread: written and read back */

/*
 * Whether maps count against RLIMIT_MEMLOCK: one is made under a limit of
 * nothing. Lowers the limit of this process for good.
 */
int mapprobe_memlock(char *found, size_t cap, struct err *e);

/*
 * progprobe - kinds of BPF programs, and which helpers they may call, tried
 * with programs of two instructions.
 *
 * The verifier refuses a helper that a kind of program may not call, or that
 * the kernel does not have, before it looks at the arguments, and says so in
 * its log; any other complaint means that the helper is there.
 *
 * Each is a probe_fn (check/probe.h) but for the lists. What it loads is gone when
 * its process ends.
 */

/* Kinds of programs that the recorder is made of. */
enum progprobe_kind {
	PROGPROBE_TP_BTF, /* at a tracepoint with BTF */
	PROGPROBE_ITER, /* task iterator */
	PROGPROBE_SLEEPABLE, /* task iterator that may sleep */
	PROGPROBE_RAW_TP, /* at a raw tracepoint, without BTF */
	PROGPROBE_KINDS,
};

struct progprobe_helper {
	uint32_t id; /* BPF_FUNC_x */
	const char *name;
	uint32_t kinds; /* 1 << PROGPROBE_x: of those that call it */
};

/* Every helper that bpf/offcpu.bpf.c calls; N of them. t/unit/progprobe.c compares. */
const struct progprobe_helper *progprobe_helpers(size_t *n);

int progprobe_helper_calls(char *found, size_t cap, struct err *e); /* the list, at tp_btf and in iterators */
int progprobe_raw_calls(char *found, size_t cap, struct err *e); /* the list, at raw tracepoints */
int progprobe_kfuncs(char *found, size_t cap, struct err *e); /* kernel functions: no tool calls any yet */
int progprobe_raw_run(char *found, size_t cap, struct err *e); /* a program at no tracepoint is run */
int progprobe_tail_call(char *found, size_t cap, struct err *e); /* one program runs another */
int progprobe_iterator(char *found, size_t cap, struct err *e); /* over tasks: created and read */
int progprobe_sleepable_iterator(char *found, size_t cap, struct err *e); /* the same, which may sleep */
int progprobe_sleepable(char *found, size_t cap, struct err *e); /* a program that may sleep is run */

#define PROGPROBE_LIMIT 1000000 /* BPF_COMPLEXITY_LIMIT_INSNS of include/linux/bpf_verifier.h */

struct progprobe_program {
	char mode[8];
	char name[16]; /* as the kernel keeps it: 15 characters at most */
	uint32_t insns; /* that the verifier processed; 0 = the kernel does not count (before 5.16) */
	bool compiled;
};

/* Append those that this process has loaded (by /proc/self/fd) to the file TO, with MODE. */
int progprobe_programs(const char *mode, int to, struct err *e);

#endif
