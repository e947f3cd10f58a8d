/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A 32-bit program that waits for input: gcc -m32 -nostdlib */
	.text
	.globl _start
	.type _start, @function
_start:
	mov $3, %eax
	xor %ebx, %ebx
	mov %esp, %ecx
	mov $1, %edx
	int $0x80
	mov $1, %eax
	xor %ebx, %ebx
	int $0x80
	.size _start, . - _start
	.section .note.GNU-stack, "", @progbits
