# SPDX-License-Identifier: GPL-2.0-or-later
# Every call frame instruction, and every expression that a row can hold, for
# x86-64: the assembler's directives and, where there is none, the bytes.

	.text
	.globl _start
	.type _start, @function
_start:
	.cfi_startproc
	.cfi_undefined rip
	call	frame
	hlt
	.cfi_endproc

	.type frame, @function
frame:
	.cfi_startproc
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset rbp, -16
	mov	%rsp, %rbp
	.cfi_def_cfa_register rbp
	.cfi_remember_state
	leave
	.cfi_restore rbp
	.cfi_def_cfa rsp, 8
	ret
	.cfi_restore_state
	nop
	.cfi_same_value rbp
	nop
	.cfi_register rbp, rbx
	nop
	.cfi_register rip, rdi
	nop
	.cfi_undefined rbp
	nop
	.cfi_endproc

	.skip	3		# no unwind information here

	.type escapes, @function
escapes:
	.cfi_startproc
	nop
	.cfi_escape 0x0f, 0x02, 0x76, 0x10		# CFA = rbp + 16
	nop
	.cfi_escape 0x0f, 0x03, 0x76, 0x78, 0x06	# CFA = *(rbp - 8)
	nop
	.cfi_escape 0x0f, 0x05, 0x77, 0x28, 0x06, 0x23, 0x08	# CFA = *(rsp + 40) + 8
	nop
	.cfi_escape 0x12, 0x07, 0x7e			# def_cfa_sf rsp, 16
	nop
	.cfi_escape 0x13, 0x7c				# def_cfa_offset_sf 32
	nop
	.cfi_escape 0x05, 0x06, 0x02			# offset_extended rbp, c-16
	nop
	.cfi_escape 0x11, 0x06, 0x03			# offset_extended_sf rbp, c-24
	nop
	.cfi_escape 0x2f, 0x06, 0x02			# GNU_negative_offset_extended rbp, c+16
	nop
	.cfi_escape 0x06, 0x06				# restore_extended rbp
	nop
	.cfi_escape 0x10, 0x06, 0x02, 0x77, 0x78	# rbp at rsp - 8
	nop
	.cfi_escape 0x10, 0x06, 0x02, 0x76, 0x00	# rbp at rbp
	nop
	.cfi_escape 0x10, 0x06, 0x03, 0x35, 0x1c, 0x96	# rbp where no row can say
	nop
	.cfi_escape 0x14, 0x06, 0x01			# rbp is c-8
	nop
	.cfi_escape 0x16, 0x06, 0x02, 0x77, 0x08	# rbp is rsp + 8
	nop
	.cfi_escape 0x06, 0x06
	.cfi_escape 0x2e, 0x20				# GNU_args_size
	nop
	.cfi_escape 0x14, 0x07, 0x00			# rsp is c-0
	nop
	.cfi_escape 0x14, 0x07, 0x01			# rsp is c-8
	nop
	.cfi_endproc

	.skip	70000, 0x90	# over the border of a segment

	.type far, @function
far:
	.cfi_startproc
	.skip	300, 0x90
	.cfi_def_cfa_offset 24		# advance_loc2
	.skip	70000, 0x90
	.cfi_def_cfa_offset 32		# advance_loc4
	nop
	.cfi_endproc

	.balign	16
	.type plt, @function
plt:
	.cfi_startproc
	.cfi_escape 0x0f, 0x0b, 0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22
	.skip	64, 0x90
	.cfi_endproc

	.type handler, @function
handler:
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_escape 0x0f, 0x04, 0x77, 0xa0, 0x01, 0x06	# CFA = *(rsp + 160)
	.cfi_escape 0x10, 0x07, 0x03, 0x77, 0xa0, 0x01	# rsp there
	.cfi_escape 0x10, 0x06, 0x03, 0x77, 0xf8, 0x00	# rbp at rsp + 120
	.cfi_escape 0x10, 0x10, 0x03, 0x77, 0xa8, 0x01	# rip at rsp + 168
	nop
	.cfi_endproc

# As libc's clone: no rule covers the system call itself, for the child's sake.
	.balign	16
	.type cloning, @function
cloning:
	.cfi_startproc
	push	%rbx
	.cfi_def_cfa_offset 16
	nop
	.cfi_endproc
	syscall
	.globl	behind
behind:
	test	%rax, %rax
	.cfi_startproc
	.cfi_def_cfa_offset 16
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc

# A system call in the padding before another function is none of this kind.
	.balign	16
	.type ending, @function
ending:
	.cfi_startproc
	nop
	.cfi_endproc
	syscall
	.globl	padded
padded:
	.balign	16
	.type last, @function
last:
	.cfi_startproc
	ret
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
