/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Script frames: the functions of an interpreter's program, found after the
 * native walk of a user stack. Part of offcpu.bpf.c. docs/runtimes.md describes
 * the whole.
 *
 * The frames are not copied between the native ones but stored behind them,
 * each with the index of the native frame that it follows. A runtime's file
 * (python.bpf.h) finds them, step by step, and reads their names when a stack
 * with them is seen for the first time.
 */
#ifndef STACKTOOLS_RUNTIME_BPF_H
#define STACKTOOLS_RUNTIME_BPF_H

#include "hotspot_abi.h"
#include "runtime_abi.h"

/*
 * Bit N: programs of enum runtime_kind N. What has no bit is never run, and not verified either: the verifier
 * takes up to 0.2 s for all of them. It removes code that cannot be reached piece by piece, moving all that
 * follows each time, which takes long too: so what cannot have a bit in this object is not compiled.
 */
const volatile __u32 scripts;
#ifndef OFFCPU_RUNTIMES
#define OFFCPU_RUNTIMES 0U
#endif
#define SCRIPTS (scripts & (OFFCPU_RUNTIMES)) /* read in any case, so that it has the same place */
#define MADERS (1U << RUNTIME_JAVA | 1U << RUNTIME_V8) /* what makes native code at run time */
#define WATCHED(kind) (SCRIPTS >> (kind)&1)
#define MADE_CODE (SCRIPTS & MADERS)
#define INTERPRETERS (SCRIPTS & ~MADERS) /* frames behind those of an evaluation function */

/* By number: what lib/record/unwind_memory.c put there. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUNTIMES_MAX);
	__type(key, __u32);
	__type(value, struct runtime_file);
} runtimes SEC(".maps");

struct script_id {
	__u64 code, check;
};

/* Functions whose names were sent. It is a cache: a name may be sent again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct script_id);
	__type(value, __u8);
} named SEC(".maps");

/* A subroutine of Perl at a statement: see perl.bpf.h. */
struct perl_place {
	__u64 statement; /* lowest bits: PERL_IS_* */
	__u64 cv;
	__u64 hash; /* of the rest of the statement, and of the process */
};

/* The checks of those that are what they were for as long as their statements exist. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct perl_place);
	__type(value, __u64);
} perl_places SEC(".maps");

#define SCRIPT_OBJECT_BYTES 176 /* of a string or a line table that are hashed */

#define PYTHON_STATES 8

/* A state of the thread that has frames. */
struct python_state {
	__u64 frame; /* the innermost one */
	__u64 first, last; /* addresses on the C stack of its innermost and outermost call */
	__u64 interpreter;
	__u64 seed; /* script_walk.seed, for its code */
	__u32 begin, pad; /* number of its first script frame */
};

/* The search for all states of a thread of CPython: see python_states.bpf.h. */
struct python_search {
	__u64 interpreter, state; /* the next ones; 0 = there are no more */
	__u64 at; /* what the state that was found leads to next; 0 = the end */
	__u64 mark; /* where the states that were walked end */
	__u32 n, calls; /* states that were found; their calls of the evaluation function */
	__u32 done, pad; /* all were looked at */
	struct python_state found, of[PYTHON_STATES];
};

/* What the frames of CPython's functions in a native stack amount to: see python_same.bpf.h. */
struct python_same {
	__u64 sum; /* of all frames so far */
	struct offcpu_stack_id id; /* of the stack that they are known to make; hi == 0: none */
};

#define PYTHON_NEAR 1024
#define PYTHON_FUNCTION_BYTES 96 /* of a function, from its code on */

/* Functions of CPython near each other, as those of a module often are: they were made in turn. */
struct python_near {
	__u64 at; /* address of the first byte, and of what may be the first one of a function: */
	__u32 starts, pad; /* so many from there on */
	__u8 bytes[PYTHON_NEAR + 128];
};

/* The state of the second pass. In map memory, as that of the walk. */
struct script_walk {
	__u64 frame; /* the next script frame; 0 = there is none */
	__u64 thread; /* the thread's fs base */
	__u64 seed; /* hash of the process's identity */
	union {
		__u64 base; /* of CPython: the seed of all interpreters; 0 = the thread's state was not proved
			     */
		/* of PHP: the frame is not the caller's own one: the chain goes on there */
		__u64 aside;
	};
	__u64 key_serial; /* of thread_value() */
	__u64 code, check; /* of the frame found last */
	__u64 file, file_hash; /* the file's name that was hashed last */
	__u64 file_len, piece_len; /* of hash_line() */
	__u32 n_calls; /* native frames of the evaluation function */
	__u32 call; /* the one that script frames belong to now */
	__u16 calls[OFFCPU_DEPTH_MAX]; /* their indexes */
	__u8 reason; /* enum script_reason */
	__u8 unsent; /* a name could not be sent */
	__u8 beyond; /* outer script frames belong to native frames that the walk did not reach */
	__u8 main_thread; /* the process's first one */
	__u8 pending; /* of Perl: a native frame ends here, unless the next context says so too */
	__u8 first; /* of Perl: the process's first interpreter, in its first thread */
	__u8 foreign; /* of Perl: the statement may not be the subroutine's own one */
	union {
		__u8 fixed; /* of Perl: the subroutine that was read last keeps its name */
		__u8 unhashed; /* of CPython: enum python_text, of those that had no hash when read last */
	};
	__u64 interpreter, contexts,
		statement; /* of Perl: contexts of the stack `frame`; what the outer frame is at */
	__u64 outer_stack; /* of this stack */
	__u32 stack_type;
	__u32 left; /* of its contexts */
	__u32 counter; /* of CPython: code objects that were made; 0 = python_known cannot be used */
	__u32 stamp; /* of CPython: python_known.stamp for the code that is about to be read; 0 = none */
	__u32 begun; /* of the code of `code`: the position of its first instruction that belongs to the
			function */
	__u32 what; /* PERL_IS_* */
	__u64 cv; /* of Perl: what is executed; of PHP: the function that was read last */
	__u64 head[5]; /* of Ruby: the beginning of an object */
	__u64 text_at, text_len; /* the string that was found last */
	struct perl_place place; /* that was looked up last */
	__u64 package, package_at,
		package_head; /* the package that was found last, and its name; of PHP: the class */
	__u64 window_at; /* address of the first byte of `window`, which has window_len */
	__u32 window_len, frame_at; /* offset of the current frame */
	__u8 window[RUNTIME_WINDOW];
	__u8 code_bytes[RUNTIME_CODE_BYTES];
	__u8 object[SCRIPT_OBJECT_BYTES];
	union { /* the value of a per-CPU map has no more than 32 KiB */
		__u64 hints[OFFCPU_SCRIPTS_MAX]; /* what the names of each frame are read from, if not its
						    code */
		struct { /* of CPython, which needs no hints */
			struct python_search search;
			struct python_same same;
			struct python_near near;
		};
	};
};

#define HOTSPOT_HEAPS 4
#define HOTSPOT_BYTES 512
#define HOTSPOT_BLOB_BYTES 128 /* a block's head and a CodeBlob */

struct hotspot_heap {
	__u64 low, high, segments;
	__u32 shift, pad;
};

/* What a walk knows of a process with HotSpot. */
struct hotspot_walk {
	struct hotspot_heap heaps[HOTSPOT_HEAPS];
	__u64 call_return;
	__u64 interpreter[2];
	__u32 n_heaps;
	__u32 next; /* the second pass: index in unwind_walk.java */
	__u32 scope; /* of a place: offset in the scopes of its nmethod; 0 = the end */
	__u32 n_lines; /* of the method that was read */
	__u64 scopes, metadata, metadata_end;
	__u64 words[8]; /* of an interpreted frame; of an array */
	__u64 lo, n; /* of a search */
	union {
		__u64 searched; /* its array */
		__u64 hash; /* that is being computed */
	};
	__u32 at, left;
	__u32 least, pad; /* of the bytes of coded numbers */
	__u32 more, lost; /* of the iterator: enum java_more; names could not be sent */
	__u64 method; /* that was checked last */
	__u64 check;
	__u64 lines, name; /* of it: addresses of line table and symbol */
	__u64 pool; /* the constants of the class that was read last; 0 = none */
	__u64 pool_cache, holder_name, file_at; /* of it; where it has the index of its file's name */
	__u64 class_hash; /* begins the checks of its methods */
	__u8 bytes[HOTSPOT_BYTES];
};

#define V8_OBJECT_BYTES 256
#define V8_FLAT_BYTES 256 /* of a name that is in several parts */
#define V8_PARTS 8

/* A text in the memory of V8. */
struct v8_text {
	__u64 at; /* of its characters */
	__u32 len; /* characters */
	__u32 kind; /* enum script_string */
	__u64 copied; /* it is in v8_walk.flat */
	__u64 hash;
};

/* What a walk knows of a process with V8. */
struct v8_walk {
	__u32 next; /* the second pass: index in unwind_walk.java */
	__u32 more, lost; /* enum v8_more; names could not be sent */
	__u32 kind; /* enum v8_code, of the frame's code */
	__u64 function_map, shared_map; /* whose types were checked */
	__u64 frame[5]; /* from the bytecode's offset up to the context */
	__u64 words[3]; /* of what is read */
	__u64 shared, script, source; /* of the function */
	__u64 code, check, place_check, position; /* of the frame found last */
	__u64 string; /* the next one to look at */
	__u64 script_hash; /* of `script` */
	__u64 hash;
	__u64 factor, sum; /* of a text that is being hashed */
	__u64 bytecode, positions; /* of interpreted and baseline code: the array; the table of positions */
	__u64 begin; /* of compiled code: its first instruction */
	__u64 code_map, scan, found; /* the search for code that its function does not have any more */
	__u64 deopt; /* of optimised code */
	__u64 line_ends, first_line; /* of the script */
	struct v8_text name, file, text; /* of the function; found last */
	__u8 object[V8_OBJECT_BYTES];
	__u8 flat[2 * V8_FLAT_BYTES]; /* the masks of both offset and length prove only that */
	__u64 parts[V8_PARTS];
	__u32 n_parts;
	__u32 unread; /* a string could not be read */
};

/* Read memory of TASK, in the sleepable iterator; of current if TASK is NULL. */
static __always_inline long script_read(struct task_struct *task, void *to, __u32 len, __u64 addr)
{
#ifndef OFFCPU_RAW
	if (task)
		return bpf_copy_from_user_task(to, len, (void *)addr, task, 0);
#endif
	return bpf_probe_read_user(to, len, (void *)addr);
}

#ifdef OFFCPU_RAW
#define ITERATES false
#else
#define ITERATES remote
#endif

/*
 * What NAME() returns is for names that are about to be sent: of the switch program, which nothing
 * interrupts, in entry 0 of OWN; of the iterators, which run one at a time, in OTHERS.
 */
#define NAMES_SCRATCH(type_of, name, own, others)                                                            \
	struct {                                                                                             \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);                                                     \
		__uint(max_entries, 1);                                                                      \
		__type(key, __u32);                                                                          \
		__type(value, struct type_of);                                                               \
	} own SEC(".maps");                                                                                  \
	struct {                                                                                             \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                            \
		__uint(max_entries, 1);                                                                      \
		__type(key, __u32);                                                                          \
		__type(value, struct type_of);                                                               \
	} others SEC(".maps");                                                                               \
	static __always_inline struct type_of *name(void)                                                    \
	{                                                                                                    \
		__u32 zero = 0;                                                                              \
                                                                                                             \
		if (ITERATES)                                                                                \
			return bpf_map_lookup_elem(&others, &zero);                                          \
		return bpf_map_lookup_elem(&own, &zero);                                                     \
	}

/* A task that is not current, on the stack of the function that goes through its frames. */
struct other_task {
	struct scratch *s;
	struct task_struct *task;
};

/*
 * A loop of the kernel's, which ends where END is true; it has `task`, NULL if that is current, and its
 * scratch `s`. Two callbacks: a program that may not sleep is refused if what it calls could, be it executed
 * or not.
 */
#define OWN_LOOP(name, end)                                                                                  \
	static long own_##name(__u32 i, void *unused)                                                        \
	{                                                                                                    \
		struct task_struct *task = NULL;                                                             \
		struct scratch *s = my_scratch();                                                            \
                                                                                                             \
		return !s || (end);                                                                          \
	}
#ifdef OFFCPU_RAW
#define LOOP(name, end) OWN_LOOP(name, end)
#define REPEAT(times, name) bpf_loop(times, own_##name, NULL, 0)
#else
#define LOOP(name, end)                                                                                      \
	OWN_LOOP(name, end)                                                                                  \
	static long other_##name(__u32 i, struct other_task *o)                                              \
	{                                                                                                    \
		struct task_struct *task = o->task;                                                          \
		struct scratch *s = o->s;                                                                    \
                                                                                                             \
		return !task || !s || (end);                                                                 \
	}
/* O: the other task, where `task` is not NULL. */
#define REPEAT(times, name)                                                                                  \
	(task ? bpf_loop(times, other_##name, o, 0) : bpf_loop(times, own_##name, NULL, 0))
#endif

#endif
