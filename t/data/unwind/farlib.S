/* SPDX-License-Identifier: GPL-2.0-or-later */
/* i386 code that a 64-bit program calls: see far.c. gcc -m32 -nostdlib -shared -Wl,-z,noseparate-code */
	.text
	.globl fn_narrow
	.type fn_narrow, @function
fn_narrow:
	.cfi_startproc
	sub $16, %esp
	.cfi_adjust_cfa_offset 16
	mov $3, %eax
	xor %ebx, %ebx
	mov %esp, %ecx
	mov $1, %edx
	int $0x80
	add $16, %esp
	.cfi_adjust_cfa_offset -16
	lret
	.cfi_endproc
	.size fn_narrow, . - fn_narrow
	.section .note.GNU-stack, "", @progbits
