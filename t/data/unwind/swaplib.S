/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fn_swapped calls what its argument points to, in a frame of SIZE bytes, with WORD
 * at SLOT: 1 is no return address, should somebody look for one there; 0 ends a stack.
 * The instructions are of the same lengths whatever these are.
 */
#ifndef WORD
#define WORD 1
#endif
	.text
	.globl fn_swapped
	.type fn_swapped, @function
fn_swapped:
	.cfi_startproc
	.byte 0x48, 0x81, 0xec		/* sub $SIZE, %rsp */
	.long SIZE
	.cfi_def_cfa_offset 8 + SIZE
	.byte 0x48, 0xc7, 0x44, 0x24, SLOT	/* movq $1, SLOT(%rsp) */
	.long WORD
	call *%rdi
	.byte 0x48, 0x81, 0xc4		/* add $SIZE, %rsp */
	.long SIZE
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size fn_swapped, . - fn_swapped
	.section .note.GNU-stack, "", @progbits
