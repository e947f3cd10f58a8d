/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shot - one BPF program of a chosen type, one stack-trace map of a
 * chosen size, and stacks taken of a known call chain in this very process.
 *
 * A shot arms the program for the calling thread, runs the chain into its
 * trigger and disarms: when it returns nothing runs that could change the
 * map, so ids may be looked up.
 */
#ifndef STACKTOOLS_STACKMAP_SHOT_H
#define STACKTOOLS_STACKMAP_SHOT_H

#include "base/base.h"
#include "base/err.h"
#include "stackmap.h"
#include "stackmap/chain.h"

/*
 * loaded - the ELF objects loaded into this very process, as the dynamic
 * loader knows them: what an address of our own is in the file.
 */

struct loaded {
	const char *path; /* "" = the program itself; the loader's, valid while the object is loaded */
	uint64_t vaddr; /* the address as the file's program headers and nm(1) count it */
	uint64_t offset; /* the same as an offset into the file */
	const uint8_t *build_id; /* in the object's mapped note; NULL = it has none */
	size_t build_id_len;
};

/* The object that ADDR lies in into *RET; false when it lies in none. */
bool loaded_find(uint64_t addr, struct loaded *ret);

enum stackshot_type {
	STACKSHOT_RAW_TP, /* raw_tp/sys_enter */
	STACKSHOT_TRACEPOINT, /* tracepoint/raw_syscalls/sys_enter */
	STACKSHOT_TP_BTF, /* tp_btf/sys_enter */
	STACKSHOT_SWITCH, /* tp_btf/sched_switch */
	STACKSHOT_PERF, /* software cpu clock, in user mode */
	STACKSHOT_UPROBE, /* on a function of chain.h */
	STACKSHOT_KPROBE, /* on the system call's function */
	STACKSHOT_TYPES
};

struct stackshot_opts {
	enum stackshot_type type;
	uint32_t entries; /* of the stack-trace map; 0 = 1024 */
	uint32_t depth; /* frames of an entry; 0 = 127, perf_event_max_stack's default */
	bool build_id; /* BPF_F_STACK_BUILD_ID */
};

struct stackshot;

/*
 * Load and attach. On success release *RET with stackshot_close(). The message
 * of a failure says what this kernel or user cannot do.
 */
int stackshot_open(const struct stackshot_opts *opts, struct stackshot **ret, struct err *e);
void stackshot_close(struct stackshot *s); /* NULL is fine */

/* Questions may be written while no shot runs; answers are the last shot's. */
struct stackmap_state *stackshot_state(struct stackshot *s);

int stackshot_map_fd(const struct stackshot *s); /* the stack-trace map */
int stackshot_counts_fd(const struct stackshot *s); /* the counts, by id or -errno */

/* How long the program's machine code is, 0 = unknown. */
uint32_t stackshot_program_bytes(const struct stackshot *s);

/* How often the kernel did not run the program, for any process, because it, or one like it, was interrupted
 * in its middle on that CPU. Always 0 before Linux 5.12. */
uint64_t stackshot_misses(const struct stackshot *s);

/*
 * Take the stacks (state->halves, state->id_flags ...) while W runs; its
 * trigger is set here. -ENODATA when the program did not run.
 */
int stackshot_fire(struct stackshot *s, struct chain_walk *w, struct err *e);

/* Take both stacks of the next kernel thread that leaves a CPU (STACKSHOT_SWITCH only). */
int stackshot_kthread(struct stackshot *s, struct err *e);

/* Count the user stacks of every thread of this process until _count_stop(). */
void stackshot_count_start(struct stackshot *s);
void stackshot_count_stop(struct stackshot *s);

#endif
