/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_abi - unwind tables as user space writes them and BPF reads them:
 * rules, rows, segments, the mappings of a process. Both compilers check the
 * layout.
 *
 * A row gives the rule that leads from a PC to the caller's frame. Rows are
 * grouped into segments, one for each 64 KiB of a file's text, in the virtual
 * addresses of the ELF file. In memory a segment of R rows (R <= 65535) is
 *
 * 	u16 first[257]	first[p]: number of rows before page p (256 bytes of
 * 			text); first[256] = R
 * 	u16 rule[R]	number of the rule of each row
 * 	u8  pc[R]	offset in its page where the row begins
 *
 * A row is valid until the next one. Row 0 begins at the segment's first byte,
 * so every address of a segment has a row; rule 0 means that there is no unwind
 * information. The row of a PC is the last row of its page that does not begin
 * after the PC, or else the last row before its page.
 *
 * Segments and arrays of mappings are stored in chunks of 256 KiB; none spans
 * two chunks.
 */
#ifndef STACKTOOLS_UNWIND_ABI_H
#define STACKTOOLS_UNWIND_ABI_H

#include <linux/types.h>

/* The architecture whose threads are walked. A test of the other one defines it. */
#if defined(__TARGET_ARCH_arm64) || defined(__aarch64__)
#define UNWIND_ARM64
#endif

#define UNWIND_CHUNK_BYTES (256 * 1024)
#define UNWIND_GRAIN 64 /* blocks in a chunk begin at multiples of this */
#define UNWIND_SEG_SHIFT 16
#define UNWIND_PAGE_SHIFT 8
#define UNWIND_SEG_PAGES (1 << (UNWIND_SEG_SHIFT - UNWIND_PAGE_SHIFT))
#define UNWIND_ROWS_MAX 65535 /* per segment */
#define UNWIND_RULES_MAX 65536 /* per recording, including rule 0 */
#define UNWIND_MAPS_MAX (UNWIND_CHUNK_BYTES / 32) /* per process */

/* Size of a segment with R rows, in bytes. */
#define UNWIND_SEG_BYTES(R) ((UNWIND_SEG_PAGES + 1) * 2 + (R)*3)

/*
 * A word has 8 bytes; in rules of i386 code (UNWIND_WORD4), 4. Registers have
 * the DWARF numbers of x86-64 in these too. On arm64, a call leaves the return
 * address in x30: UNWIND_RA_REG 30, until it is saved (UNWIND_RA_CFA).
 *
 * The canonical frame address. `reg` is the DWARF number of a register. Except
 * in prologues, it is the stack pointer or the frame pointer.
 */
enum unwind_cfa {
	UNWIND_CFA_NONE = 0, /* no unwind information here */
	UNWIND_CFA_REG = 1, /* reg + cfa_off */
	UNWIND_CFA_DEREF = 2, /* the word at reg + cfa_off */
	/* reg + cfa_off, plus a word if (pc & 15) >= ra_off; the return address is a word below the CFA */
	UNWIND_CFA_PLT = 3,
	UNWIND_CFA_UNSUPPORTED = 4, /* an expression that no rule can hold */
	/* the word at reg + cfa_off, plus ra_off; the return address is a word below the CFA */
	UNWIND_CFA_DEREF_PLUS = 5,
	/*
	 * The frame is on another stack of a Go program; the return address is at
	 * CFA - 8, except for UNWIND_GO_MORE. With UNWIND_FP_CFA the caller's frame pointer is at CFA - 16,
	 * else it is UNWIND_FP_SAME or UNWIND_FP_UNKNOWN.
	 *
	 * SAVED: the word at SP + cfa_off is a goroutine G, that at SP + fp_off a
	 * distance. CFA = end of G's stack - distance + ra_off.
	 */
	UNWIND_CFA_GO_SAVED = 6,
	/*
	 * TLS: G is the word at TLS + cfa_off, M the word at G + low half of
	 * fp_off, X the word at M + high half of fp_off, another goroutine of M.
	 * CFA = word at X + high half of ra_off, plus the low half of ra_off.
	 * `reg` is not a register, but one of enum unwind_go.
	 */
	UNWIND_CFA_GO_TLS = 7,
};

/* What X is of UNWIND_CFA_GO_TLS. X's M is proved to be M; 0 = there is no X: the stack ends. */
enum unwind_go {
	/* whom the thread runs: its stack pointer must lie in its stack */
	UNWIND_GO_GOROUTINE = 0,
	/*
	 * The thread's own: below a call from C. If the walk has come through such
	 * a call before, the word at that frame's stack pointer is this frame's.
	 */
	UNWIND_GO_CALLBACK = 1,
	/*
	 * whom the thread runs, whose stack was found to be too small. Only in a
	 * walk that comes through UNWIND_GO_COPIES; its CFA is X's stack pointer, its
	 * return address the word behind that in X.
	 */
	UNWIND_GO_MORE = 2,
};

/* In a goroutine, whose first two words say where its stack begins and ends. */
#define UNWIND_GO_STACK_END 8

/* Where the caller's frame pointer is. */
enum unwind_fp {
	UNWIND_FP_SAME = 0, /* still in its register */
	UNWIND_FP_CFA = 1, /* the word at CFA + fp_off */
	UNWIND_FP_AT_SP = 2, /* the word at SP + fp_off (of this frame) */
	UNWIND_FP_AT_FP = 3, /* the word at FP + fp_off (of this frame) */
	UNWIND_FP_REG = 4, /* in register fp_off */
	UNWIND_FP_UNKNOWN = 5, /* undefined, or not representable */
};

/* Where the return address is. */
enum unwind_ra {
	UNWIND_RA_CFA = 0, /* the word at CFA + ra_off */
	UNWIND_RA_AT_SP = 1, /* the word at SP + ra_off (of this frame) */
	UNWIND_RA_REG = 2, /* in register ra_off: vfork(2) keeps it there */
	UNWIND_RA_END = 3, /* undefined: this is the outermost frame */
	UNWIND_RA_UNSUPPORTED = 4,
	/*
	 * The word below the CFA, where a call stores it. ra_off then describes a
	 * second callee-saved register (enum unwind_bx). Only with CFA_REG and
	 * CFA_DEREF.
	 */
	UNWIND_RA_CALL = 5,
};

/*
 * Where the caller's value of the second callee-saved register is, from which
 * some assembly code computes its CFA: RBX on x86-64. Any other value means the
 * word at CFA + ra_off, a negative multiple of its size. With other kinds of return
 * address the register is unknown.
 */
enum unwind_bx {
	UNWIND_BX_SAME = 0, /* still in its register */
	UNWIND_BX_UNKNOWN = 1, /* undefined, or not representable */
};

enum unwind_flags {
	/* the caller was interrupted: its PC is exact, all its registers are in the ucontext */
	UNWIND_SIGNAL = 1,
	/*
	 * After a system call that makes a child. The child must not use this
	 * row, so libc's unwind information ends before it: valid only inside
	 * the call.
	 */
	UNWIND_IN_SYSCALL = 2,
	/* what was called here moves the goroutine's stack: the thread still runs that goroutine */
	UNWIND_GO_COPIES = 4,
	/*
	 * Of i386 code, for walks of threads that execute such code; all other
	 * rules are for the others. A signal frame's CFA is the word at SP +
	 * cfa_off, in the sigcontext that has the other registers too.
	 */
	UNWIND_WORD4 = 8,
};

struct unwind_rule {
	__u8 cfa; /* enum unwind_cfa */
	__u8 reg;
	__u8 fp : 4, ra : 4; /* enum unwind_fp, unwind_ra */
	__u8 flags; /* enum unwind_flags */
	__s32 cfa_off, fp_off, ra_off;
};

/* Where a segment is stored. Chunk 0 is never used, so all zero = no segment: no row. */
struct unwind_seg {
	__u32 chunk;
	__u16 grain; /* in units of UNWIND_GRAIN */
	__u16 rows;
};

/* The unwind information of an executable mapping. */
enum unwind_state {
	UNWIND_BY_FP = 0, /* no table will come: JIT code, a file without unwind information */
	UNWIND_PENDING = 1, /* a table will come */
	UNWIND_DROPPED = 2, /* no memory for the table */
	UNWIND_TABLE = 3,
};

/*
 * An executable mapping. The second half is written as one word, while BPF
 * reads. pc - bias is the address in the ELF file, minus the part before the
 * table's first segment.
 */
struct unwind_map {
	__u64 start, end; /* end exclusive */
	__u64 bias;
	union {
		struct {
			__u32 seg; /* index of the first segment in the array of segments */
			__u16 segs; /* number of segments */
			__u16 table; /* table number, for `used`; state in the upper two bits */
		};
		__u64 word;
	};
};

#define UNWIND_TABLES_MAX 16384
#define UNWIND_TABLE_NUMBER(t) ((t)&0x3fff)
#define UNWIND_TABLE_STATE(t) ((t) >> 14)

/*
 * The mappings of a process, sorted by start. They belong only to the image
 * that (start_boot_ns, exec_id) identifies.
 */
struct unwind_proc {
	__u64 start_boot_ns;
	__u32 exec_id;
	__u32 serial; /* changes whenever mappings are published */
	__u32 chunk;
	__u16 grain;
	__u16 maps;
	__u32 mapping; /* BPF has reported that the process maps something, since this was last cleared */
	__u32 runtime; /* number of the interpreter's file that the process maps; 0 = none */
	__u64 runtime_bias; /* what to add to the addresses of that file */
};

_Static_assert(sizeof(struct unwind_rule) == 16, "unwind_rule");
_Static_assert(sizeof(struct unwind_seg) == 8, "unwind_seg");
_Static_assert(sizeof(struct unwind_map) == 32, "unwind_map");
_Static_assert(sizeof(struct unwind_proc) == 40, "unwind_proc");
_Static_assert(UNWIND_SEG_BYTES(UNWIND_ROWS_MAX) <= UNWIND_CHUNK_BYTES, "a segment fits a chunk");

#endif
