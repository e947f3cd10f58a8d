/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hotspot_abi - what BPF must know about a libjvm to walk and to name Java
 * frames. Both compilers check the layout. See docs/runtimes.md.
 */
#ifndef STACKTOOLS_HOTSPOT_ABI_H
#define STACKTOOLS_HOTSPOT_ABI_H

#include <linux/types.h>

/*
 * A libjvm, by the number of its file (struct unwind_proc). Addresses are those
 * of the ELF file; everything else is an offset in bytes inside the structure
 * that the name begins with. heaps 0: it is none.
 */
struct hotspot_file {
	__u64 heaps; /* CodeCache::_heaps: the heaps that have all compiled code */
	__u64 call_return; /* StubRoutines::_call_stub_return_address */
	__u64 interpreter; /* AbstractInterpreter::_code */
	__u16 flags; /* enum hotspot_flags */
	__u16 heaps_data; /* of the array that `heaps` points to: its elements */
	__u16 heap_low, heap_high; /* CodeHeap: its memory, */
	__u16 heap_segments, heap_shift; /* the map of its segments, and their size */
	__u16 queue_buffer, queue_limit; /* StubQueue: the interpreter's code, and its size */
	__u16 block_bytes, block_used; /* HeapBlock: its own size */
	__u16 blob_complete, blob_frame, blob_begin, blob_end; /* CodeBlob: frame, and code */
	__u16 blob_maps; /* its calls at which the stack can be walked */
	__u16 blob_header; /* u16: size of the structure that the CodeBlob is the beginning of */
	/* nmethod, a compiled method: */
	__u16 nmethod_bytes, nmethod_method, nmethod_id; /* its own size */
	__u16 nmethod_deopt, nmethod_deopt_mh, nmethod_orig_pc; /* where a return address is replaced */
	/* offset of its constants, and address of what follows them; APART: their size, and offset of the
	 * scopes */
	__u16 nmethod_metadata, nmethod_scopes;
	__u16 nmethod_pcs, nmethod_pcs_end; /* offsets of the array of PcDesc */
	/* APART: addresses of what these are offsets in, and of what ends with the constants; where in it */
	__u16 nmethod_immutable, nmethod_mutable, nmethod_mutable_bytes;
	__u16 method_const; /* Method */
	__u16 const_pool, const_words, const_flags, const_code_bytes, const_name,
		const_bytes; /* ConstMethod; its own size */
	__u16 pool_holder, pool_cache, pool_bytes; /* ConstantPool; its own size */
	__u16 pool_file; /* index of the source file's name; 0: the class has it */
	__u16 klass_name, klass_pool, klass_file; /* InstanceKlass */
	__u16 symbol_references, symbol_length, symbol_body;
	__u16 pad[2];
};

enum hotspot_flags {
	HOTSPOT_APART = 1, /* a CodeBlob has 32-bit offsets from itself, and an nmethod its data elsewhere */
	HOTSPOT_NO_ZERO = 2, /* coded numbers have no byte that is 0: each is one more */
};

/* Words of an interpreted frame, down from its frame pointer. */
enum hotspot_frame { JAVA_BCP = 8, JAVA_CACHE = 6, JAVA_METHOD = 3 };

/*
 * A script frame of Java is, in the form of runtime_abi.h, either
 *
 *	Method, position: index of the bytecode	interpreted
 *	nmethod, position: offset in the code	compiled: which methods, says OFFCPU_EV_INLINED
 */

#define HOTSPOT_CLASS_BYTES 512
#define HOTSPOT_NAME_BYTES 256
#define HOTSPOT_LINES_BYTES 8192

/* The names of a method, read while a frame of it existed. */
struct offcpu_ev_method {
	__u32 type; /* OFFCPU_EV_METHOD */
	__u16 runtime; /* number of the libjvm's file */
	__u16 lines_cut; /* the line table may be longer */
	__u64 code, check;
	__u16 class_bytes, name_bytes,
		file_bytes; /* modified UTF-8; class 0: not readable; file 0: not known */
	__u16 lines_bytes;
	__u8 class[HOTSPOT_CLASS_BYTES], name[HOTSPOT_NAME_BYTES], file[HOTSPOT_NAME_BYTES];
	__u8 lines[HOTSPOT_LINES_BYTES]; /* the compressed line number table, if there is one */
};

#define HOTSPOT_INLINED_MAX 32

struct hotspot_inlined {
	__u64 code, check; /* of the Method */
	__u64 position; /* index of the bytecode, or SCRIPT_POSITION_NONE */
};

/* The methods that a place in compiled code is in, innermost first. */
struct offcpu_ev_inlined {
	__u32 type; /* OFFCPU_EV_INLINED */
	__u16 runtime;
	__u16 n; /* of `methods`; 0: not readable */
	__u64 code, check; /* of the nmethod */
	__u32 position; /* offset in its code */
	__u32 pad;
	struct hotspot_inlined methods[HOTSPOT_INLINED_MAX];
};

_Static_assert(sizeof(struct hotspot_file) == 120, "hotspot_file");
_Static_assert(__builtin_offsetof(struct offcpu_ev_method, class) == 32, "ev_method.class");
_Static_assert(__builtin_offsetof(struct offcpu_ev_inlined, methods) == 32, "ev_inlined.methods");

#endif
