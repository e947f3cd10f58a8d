/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shot - one BPF program of a chosen type, one stack-trace map of a chosen size, and stacks of a known call
 * chain in this process.
 *
 * A shot arms the program for the calling thread, runs the chain into its trigger, and disarms the program.
 * When it returns, nothing changes the map any more, so ids can be looked up.
 */
#ifndef STACKTOOLS_STACKMAP_SHOT_H
#define STACKTOOLS_STACKMAP_SHOT_H

#include "base/base.h"
#include "base/err.h"
#include "stackmap.h"
#include "stackmap/chain.h"

/*
 * loaded - the ELF objects in this process, as the dynamic loader knows them: maps an address to the file.
 */

struct loaded {
	const char *path; /* "" = the program; belongs to the loader, valid while the object is loaded */
	uint64_t vaddr; /* the address as in the file's program headers and nm(1) */
	uint64_t offset; /* its offset in the file */
	const uint8_t *build_id; /* in the object's mapped note; NULL = none */
	size_t build_id_len;
};

/* Find the object that contains ADDR. False if there is none. */
bool loaded_find(uint64_t addr, struct loaded *ret);

enum stackshot_type {
	STACKSHOT_RAW_TP, /* raw_tp/sys_enter */
	STACKSHOT_TRACEPOINT, /* tracepoint/raw_syscalls/sys_enter */
	STACKSHOT_TP_BTF, /* tp_btf/sys_enter */
	STACKSHOT_SWITCH, /* tp_btf/sched_switch */
	STACKSHOT_PERF, /* software CPU clock, in user mode */
	STACKSHOT_UPROBE, /* on a function of chain.h */
	STACKSHOT_KPROBE, /* on the function of the system call */
	STACKSHOT_TYPES
};

struct stackshot_opts {
	enum stackshot_type type;
	uint32_t entries; /* of the stack-trace map; 0 = 1024 */
	uint32_t depth; /* frames of an entry; 0 = 127, the default of perf_event_max_stack */
	bool build_id; /* BPF_F_STACK_BUILD_ID */
};

struct stackshot;

/*
 * Load and attach the program. On success release *RET with stackshot_close(). On failure the message says
 * what this kernel or user cannot do.
 */
int stackshot_open(const struct stackshot_opts *opts, struct stackshot **ret, struct err *e);
void stackshot_close(struct stackshot *s); /* NULL is fine */

/* The request may be written while no shot runs; the result is that of the last shot. */
struct stackmap_state *stackshot_state(struct stackshot *s);

int stackshot_map_fd(const struct stackshot *s); /* the stack-trace map */
int stackshot_counts_fd(const struct stackshot *s); /* the map of counts, by id or -errno */

/* The length of the program's machine code in bytes; 0 = unknown. */
uint32_t stackshot_program_bytes(const struct stackshot *s);

/*
 * How often the kernel did not run the program, for any process, because it or one like it had been
 * interrupted on that CPU before it ended. Always 0 before Linux 5.12.
 */
uint64_t stackshot_misses(const struct stackshot *s);

/*
 * Run W and take its stacks as requested in the state (halves, id_flags ...). Sets W's trigger. -ENODATA if
 * the program did not run.
 */
int stackshot_fire(struct stackshot *s, struct chain_walk *w, struct err *e);

/*
 * Take the stacks (state->halves) of the next kernel thread that leaves a CPU, for STACKSHOT_SWITCH only.
 * -ENODATA if there is none within 5 s.
 */
int stackshot_kthread(struct stackshot *s, struct err *e);

/* Count the user stacks of all threads of this process until stackshot_count_stop(). */
void stackshot_count_start(struct stackshot *s);
void stackshot_count_stop(struct stackshot *s);

#endif
