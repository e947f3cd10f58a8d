/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * progprobe - kinds of BPF programs, and which helpers they may call, tried
 * with programs of two instructions.
 *
 * The verifier refuses a helper that a kind of program may not call, or that
 * the kernel does not have, before it looks at the arguments, and says so in
 * its log; any other complaint means that the helper is there.
 *
 * Each is a probe_fn (probe.h) but for the lists. What it loads is gone when
 * its process ends.
 */
#ifndef STACKTOOLS_PROGPROBE_H
#define STACKTOOLS_PROGPROBE_H

#include "check/probe.h"

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

/* Every helper that bpf/offcpu.bpf.c calls; N of them. t/unit-progprobe.c compares. */
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
