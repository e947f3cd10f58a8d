/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hotspot_abi - what BPF must know about a libjvm to walk and to name Java
 * frames. Both compilers check the layout. docs/runtimes.md describes the whole.
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
	__u16 heap_low, heap_high; /* CodeHeap: its memory, */
	__u16 heap_segments, heap_shift; /* the map of its segments, and their size */
	__u16 queue_buffer, queue_limit; /* StubQueue: the interpreter's code, and its size */
	__u16 block_bytes, block_used; /* HeapBlock: its own size */
	__u16 blob_complete, blob_frame, blob_begin, blob_end; /* CodeBlob: frame, and code */
	__u16 blob_maps; /* its calls at which the stack can be walked */
	__u16 pad[3];
};

_Static_assert(sizeof(struct hotspot_file) == 56, "hotspot_file");

#endif
