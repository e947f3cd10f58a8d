/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_abi - unwind tables as user space makes them and BPF reads them:
 * rules, rows, segments, the mappings of a process. Both compilers check the
 * layout.
 *
 * A row says by which rule the frame of a PC is left. Rows are kept by
 * segments, one for each 64 KiB of a file's text, counted in the virtual
 * addresses of the ELF file. In memory a segment of R rows (R <= 65535) is
 *
 *	u16 first[257]	first[p]: number of rows before page p (256 bytes of
 *			text); first[256] = R
 *	u16 rule[R]	number of the rule of each row
 *	u8  pc[R]	where in its page the row begins
 *
 * A row is in force until the next one. Row 0 begins at the segment's first
 * byte, so every address of a segment has a row; rule 0 says that there is no
 * unwind information. The row of a PC is the last one of its page that does
 * not begin after it, else the last one before its page.
 *
 * Segments and arrays of mappings lie in chunks of 256 KiB, none across two.
 */
#ifndef STACKTOOLS_UNWIND_ABI_H
#define STACKTOOLS_UNWIND_ABI_H

#include <linux/types.h>

#define UNWIND_CHUNK_BYTES (256 * 1024)
#define UNWIND_GRAIN 64 /* blocks inside a chunk begin at multiples of it */
#define UNWIND_SEG_SHIFT 16
#define UNWIND_PAGE_SHIFT 8
#define UNWIND_SEG_PAGES (1 << (UNWIND_SEG_SHIFT - UNWIND_PAGE_SHIFT))
#define UNWIND_ROWS_MAX 65535 /* of a segment */
#define UNWIND_RULES_MAX 65536 /* of a recording, rule 0 among them */
#define UNWIND_MAPS_MAX (UNWIND_CHUNK_BYTES / 32) /* of a process */

/* Bytes that a segment of R rows takes. */
#define UNWIND_SEG_BYTES(R) ((UNWIND_SEG_PAGES + 1) * 2 + (R)*3)

/*
 * The canonical frame address. `reg` is the DWARF number of a register, which
 * is the stack pointer or the frame pointer in all but prologues.
 */
enum unwind_cfa {
	UNWIND_CFA_NONE = 0, /* no unwind information here */
	UNWIND_CFA_REG = 1, /* reg + cfa_off */
	UNWIND_CFA_DEREF = 2, /* the word at reg + cfa_off */
	/* reg + cfa_off, 8 more where (pc & 15) >= ra_off; the return address is at CFA - 8 */
	UNWIND_CFA_PLT = 3,
	UNWIND_CFA_UNSUPPORTED = 4, /* an expression that no rule holds */
	/* the word at reg + cfa_off, and ra_off more; the return address is at CFA - 8 */
	UNWIND_CFA_DEREF_PLUS = 5,
};

/* Where the caller's frame pointer is. */
enum unwind_fp {
	UNWIND_FP_SAME = 0, /* still in its register */
	UNWIND_FP_CFA = 1, /* the word at CFA + fp_off */
	UNWIND_FP_AT_SP = 2, /* the word at SP + fp_off (of this frame) */
	UNWIND_FP_AT_FP = 3, /* the word at FP + fp_off (of this frame) */
	UNWIND_FP_REG = 4, /* in register fp_off */
	UNWIND_FP_UNKNOWN = 5, /* undefined, or not to be expressed */
};

/* Where the return address is. */
enum unwind_ra {
	UNWIND_RA_CFA = 0, /* the word at CFA + ra_off */
	UNWIND_RA_AT_SP = 1, /* the word at SP + ra_off (of this frame) */
	UNWIND_RA_REG = 2, /* in register ra_off: vfork(2) keeps it there */
	UNWIND_RA_END = 3, /* undefined: this is the outermost frame */
	UNWIND_RA_UNSUPPORTED = 4,
	/*
	 * The word at CFA - 8, where a call leaves it; ra_off then tells of a second
	 * callee-saved register (enum unwind_bx). Only with CFA_REG and CFA_DEREF.
	 */
	UNWIND_RA_CALL = 5,
};

/*
 * Where the caller's value of the second callee-saved register is, by which
 * some assembly finds its CFA: RBX on x86-64. All but these is the word at
 * CFA + ra_off, a negative multiple of 8. With other kinds of return address
 * it is unknown.
 */
enum unwind_bx {
	UNWIND_BX_SAME = 0, /* still in its register */
	UNWIND_BX_UNKNOWN = 1, /* undefined, or not to be expressed */
};

enum unwind_flags {
	/* the caller was interrupted: its PC is exact, all its registers are in the ucontext */
	UNWIND_SIGNAL = 1,
	/*
	 * Behind a system call that makes a child which must not use this row (so
	 * libc ends its unwind information before it): true only inside the call.
	 */
	UNWIND_IN_SYSCALL = 2,
};

struct unwind_rule {
	__u8 cfa; /* enum unwind_cfa */
	__u8 reg;
	__u8 fp : 4, ra : 4; /* enum unwind_fp, unwind_ra */
	__u8 flags; /* enum unwind_flags */
	__s32 cfa_off, fp_off, ra_off;
};

/* Where a segment lies; chunk 0 is never used, so all zero = there is none: no row. */
struct unwind_seg {
	__u32 chunk;
	__u16 grain; /* in units of UNWIND_GRAIN */
	__u16 rows;
};

/* What an executable mapping has in place of a table. */
enum unwind_state {
	UNWIND_BY_FP = 0, /* no table will come: JIT code, a file without unwind information */
	UNWIND_PENDING = 1, /* one is on its way */
	UNWIND_DROPPED = 2, /* there was no memory for it */
	UNWIND_TABLE = 3,
};

/*
 * An executable mapping. The second half is written as one word, while BPF
 * reads. pc - bias is the address in the ELF file, less what precedes the
 * table's first segment.
 */
struct unwind_map {
	__u64 start, end; /* end exclusive */
	__u64 bias;
	union {
		struct {
			__u32 seg; /* of the first segment in the array of segments */
			__u16 segs; /* how many */
			__u16 table; /* its number, for `used`; state in the upper two bits */
		};
		__u64 word;
	};
};

#define UNWIND_TABLES_MAX 16384
#define UNWIND_TABLE_NUMBER(t) ((t)&0x3fff)
#define UNWIND_TABLE_STATE(t) ((t) >> 14)

/*
 * A process's mappings, sorted by start. They are those of the image that
 * (start_boot_ns, exec_id) identifies and of no other.
 */
struct unwind_proc {
	__u64 start_boot_ns;
	__u32 exec_id;
	__u32 serial; /* another one whenever mappings are published */
	__u32 chunk;
	__u16 grain;
	__u16 maps;
	__u32 mapping; /* BPF has reported that it maps something, since this was last cleared */
	__u32 pad;
};

_Static_assert(sizeof(struct unwind_rule) == 16, "unwind_rule");
_Static_assert(sizeof(struct unwind_seg) == 8, "unwind_seg");
_Static_assert(sizeof(struct unwind_map) == 32, "unwind_map");
_Static_assert(sizeof(struct unwind_proc) == 32, "unwind_proc");
_Static_assert(UNWIND_SEG_BYTES(UNWIND_ROWS_MAX) <= UNWIND_CHUNK_BYTES, "a segment fits a chunk");

#endif
