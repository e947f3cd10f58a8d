/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A 64-bit program that calls i386 code, which waits for input:
 *
 *   far LIBRARY OFFSET     where in the file fn_narrow() of farlib.S is
 *
 * Code and stack lie below 4 GiB: gcc -no-pie.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "work.h"

#define STACK (64 << 10)

FN void fn_far(uint32_t code, uint32_t stack)
{
	struct __attribute__((packed)) {
		uint32_t code;
		uint16_t selector;
	} to = { code, 0x23 };

	/* it never returns */
	__asm__ volatile("movl %0, %%esp; lcall *(%1); hlt" : : "r"(stack), "r"(&to) : "memory");
}

int main(int argc, char **argv)
{
	int fd = argc == 3 ? open(argv[1], O_RDONLY) : -1;
	struct stat st;
	char *code, *stack;

	if (fd < 0 || fstat(fd, &st))
		return 2;
	code = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_32BIT, fd, 0);
	stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (code == MAP_FAILED || stack == MAP_FAILED)
		return 2;
	fn_far((uint32_t)((uintptr_t)code + strtoul(argv[2], NULL, 16)),
		(uint32_t)(uintptr_t)stack + STACK - 64);
	KEEP();
	return 0;
}
