/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waits at every single instruction: with the trap flag set, each instruction
 * of fn_stepped and of all that it calls raises SIGTRAP, and the handler
 * sleeps. So a recording has a stack for each instruction of prologues,
 * epilogues, PLT entries, the dynamic linker's trampoline and of libc.
 *
 *   step [N]    block for good at the Nth instruction
 *
 * Waits for SIGUSR1 before and, printing "steps N", for ever after it.
 * Link with -z lazy, so that the first calls go through the dynamic linker.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "work.h"

static volatile long steps, block_at;
static volatile int sink;
static char text[200];
static sigjmp_buf jump;

FN void fn_blocks(void)
{
	block();
}

FN void fn_on_step(int sig)
{
	struct timespec ts = { .tv_nsec = 20000 };

	(void)sig;
	if (++steps == block_at)
		fn_blocks();
	/* a system call of its own, so that no errno is lost */
	__asm__ volatile("syscall" : : "a"(SYS_nanosleep), "D"(&ts), "S"(NULL) : "rcx", "r11", "memory");
}

FN int fn_compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

FN void fn_pushes(int n)
{
	char *p = __builtin_alloca((size_t)n * 8);

	memset(p, n, (size_t)n * 8);
	sink = p[n];
}

FN void fn_saves_all(int a, int b, int c, int d, int e, int f)
{
	fn_pushes(a + 3);
	sink = a * b + c * d + e * f;
	fn_pushes(f + 1);
	sink = (a + b) * (c + d) * (e + f);
}

/* CHANGE the flags word on the stack. fn_stepped has no frame pointer: its CFI stays true. */
#define CHANGE_FLAGS(change)                                                                                 \
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t.cfi_adjust_cfa_offset 128\n\t"                          \
			 "pushf\n\t.cfi_adjust_cfa_offset 8\n\t" change ", (%%rsp)\n\t"                      \
			 "popf\n\t.cfi_adjust_cfa_offset -8\n\t"                                             \
			 "lea 128(%%rsp), %%rsp\n\t.cfi_adjust_cfa_offset -128"                              \
			 :                                                                                   \
			 :                                                                                   \
			 : "memory", "cc")

FN void fn_stepped(void)
{
	int v[] = { 3, 1, 2 };

	CHANGE_FLAGS("orl $0x100"); /* trap after each instruction */
	fn_saves_all(1, 2, 3, 4, 5, 6);
	snprintf(text, sizeof(text), "%d %s", v[0], "text");
	qsort(v, 3, sizeof(v[0]), fn_compare);
	strcpy(text, "some text");
	sink = (int)strtol("123", NULL, 10);
	free(malloc((size_t)sink));
	if (!sigsetjmp(jump, 0))
		siglongjmp(jump, 1);
	CHANGE_FLAGS("andl $~0x100");
}

FN void fn_go(int sig)
{
	sink = sig;
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = fn_on_step }, go = { .sa_handler = fn_go };

	if (argc > 1)
		block_at = atol(argv[1]);
	sigaction(SIGTRAP, &sa, NULL);
	sigaction(SIGUSR1, &go, NULL);
	if (!block_at) {
		chain("main");
		pause();
	}
	fn_stepped();
	dprintf(1, "steps %ld\n", steps);
	block();
	return 0;
}
