/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program of its own: no libc, no start files; the first function has no CFI. */
typedef unsigned long size;

__asm__(".text\n.globl _start\n.type _start,@function\n_start:\nxor %ebp,%ebp\nmov %rsp,%rdi\nand $-16,%rsp\n"
	"call fn_first\nhlt\n.size _start,.-_start\n");

#define FN __attribute__((noinline, used))

FN static long call3(long nr, long a, const void *b, size c)
{
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "0"(nr), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return ret;
}

FN long fn_second(char *buf)
{
	long r = call3(0, 0, buf, 1);

	__asm__ volatile("" ::: "memory");
	return r + 1;
}

FN void fn_first(void)
{
	char c;

	call3(1, 1, "ready\n", 6);
	fn_second(&c);
	call3(231, 0, 0, 0);
	for (;;)
		;
}
