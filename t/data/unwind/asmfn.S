/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions written by hand: each calls what its argument points to and
 * returns. With CFI of the kinds that compilers do not emit, and without.
 */
	.text

/* the frame is found by RBX */
	.globl fn_by_rbx
	.type fn_by_rbx, @function
fn_by_rbx:
	.cfi_startproc
	push %rbx
	.cfi_def_cfa_offset 16
	.cfi_offset rbx, -16
	mov %rsp, %rbx
	.cfi_def_cfa_register rbx
	sub $1024, %rsp
	and $-64, %rsp
	mov %rsi, %rax
	call *%rdi
	mov %rbx, %rsp
	pop %rbx
	.cfi_def_cfa rsp, 8
	.cfi_restore rbx
	ret
	.cfi_endproc
	.size fn_by_rbx, . - fn_by_rbx

/* states are remembered, and one way out comes before the call */
	.globl fn_remembers
	.type fn_remembers, @function
fn_remembers:
	.cfi_startproc
	push %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	push %r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r12, 0
	xor %ebp, %ebp
	sub $24, %rsp
	.cfi_adjust_cfa_offset 24
	test %rdi, %rdi
	jnz 1f
	.cfi_remember_state
	add $24, %rsp
	.cfi_adjust_cfa_offset -24
	pop %r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore r12
	pop %rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbp
	ret
1:	.cfi_restore_state
	call *%rdi
	add $24, %rsp
	.cfi_adjust_cfa_offset -24
	pop %r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore r12
	pop %rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbp
	ret
	.cfi_endproc
	.size fn_remembers, . - fn_remembers

/* the CFA is the word that lies at RSP + 16: DW_CFA_def_cfa_expression { breg7 16; deref } */
	.globl fn_by_expression
	.type fn_by_expression, @function
fn_by_expression:
	.cfi_startproc
	lea 8(%rsp), %rax
	sub $24, %rsp
	.cfi_def_cfa_offset 32
	mov %rax, 16(%rsp)
	.cfi_escape 0x0f, 0x03, 0x77, 0x10, 0x06
	call *%rdi
	.cfi_def_cfa rsp, 32
	add $24, %rsp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size fn_by_expression, . - fn_by_expression

/* an expression that no table holds: { breg7 0; lit4; lit8; mul; plus }; it is RSP + 32 */
	.globl fn_by_product
	.type fn_by_product, @function
fn_by_product:
	.cfi_startproc
	sub $24, %rsp
	.cfi_escape 0x0f, 0x06, 0x77, 0x00, 0x34, 0x38, 0x1e, 0x22
	call *%rdi
	.cfi_def_cfa rsp, 32
	add $24, %rsp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size fn_by_product, . - fn_by_product

/* no CFI, but a frame pointer */
	.globl fn_frame_pointer
	.type fn_frame_pointer, @function
fn_frame_pointer:
	push %rbp
	mov %rsp, %rbp
	sub $48, %rsp
	call *%rdi
	leave
	ret
	.size fn_frame_pointer, . - fn_frame_pointer

/* neither: what is done before the frame is taken down could be anything */
	.globl fn_neither
	.type fn_neither, @function
fn_neither:
	push %rbp
	sub $64, %rsp
	xor %ebp, %ebp
	call *%rdi
	nop
	add $64, %rsp
	pop %rbp
	ret
	.size fn_neither, . - fn_neither

	.section .note.GNU-stack, "", @progbits
