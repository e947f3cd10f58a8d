/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that block below code without CFI, whose next instructions prove where
 * the caller is: a system call in a leaf function, trampolines that only take
 * their frame down, a handler's trampoline of the program's own, and a call
 * through a null pointer. The frame pointer leads nowhere.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "work.h"

static sem_t inside;
static void (*volatile nowhere)(void);

#define FUNCTION(name, code)                                                                                 \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ",@function\n" #name ":\n" code          \
		"\n.size " #name ",.-" #name "\n");

/* read(0, ARG, 1): with the return as the next instruction, and with another one between */
void fn_leaf_returns(void *arg);
FUNCTION(fn_leaf_returns, "xor %eax, %eax\nmov %rdi, %rsi\nxor %edi, %edi\nmov $1, %edx\nsyscall\nret")
void fn_leaf_goes_on(void *arg);
FUNCTION(fn_leaf_goes_on, "xor %eax, %eax\nmov %rdi, %rsi\nxor %edi, %edi\nmov $1, %edx\nsyscall\ncmp "
			  "$-4095, %rax\nmov %rax, %rdx\nret")

/* call FN(ARG) below a frame of their own; RBP is the callee's own business */
void fn_skips(void (*fn)(void *), void *arg);
FUNCTION(fn_skips, "mov %rdi, %rax\nmov %rsi, %rdi\nsub $24, %rsp\ncall *%rax\nadd $24, %rsp\nret")
void fn_skips_far(void (*fn)(void *), void *arg);
FUNCTION(fn_skips_far, "mov %rdi, %rax\nmov %rsi, %rdi\nsub $1032, %rsp\ncall *%rax\nadd $1032, %rsp\nret")
void fn_pops(void (*fn)(void *), void *arg);
FUNCTION(fn_pops, "mov %rdi, %rax\nmov %rsi, %rdi\npush %rbp\nmov $1, %ebp\nsub $16, %rsp\ncall *%rax\nadd "
		  "$16, %rsp\npop %rbp\nret")
void fn_leaves(void (*fn)(void *), void *arg);
FUNCTION(fn_leaves,
	"mov %rdi, %rax\nmov %rsi, %rdi\npush %rbp\nmov %rsp, %rbp\nsub $64, %rsp\ncall *%rax\nleave\nret")

/* the trampoline that this program's handlers return to */
void fn_restorer(void);
FUNCTION(fn_restorer, "mov $15, %rax\nsyscall")

FN void fn_in_handler(void)
{
	sem_post(&inside);
	block();
}

FN void fn_handler(int sig)
{
	fn_in_handler();
	KEEP();
	nowhere = sig ? NULL : nowhere;
}

FN void fn_blocks(void *arg)
{
	block();
	KEEP();
	nowhere = arg ? nowhere : NULL;
}

FN void *fn_leaf_1(void *arg)
{
	chain("fn_leaf_returns;fn_leaf_1");
	fn_leaf_returns(&arg);
	KEEP();
	return arg;
}

FN void *fn_leaf_2(void *arg)
{
	chain("fn_leaf_goes_on;fn_leaf_2");
	fn_leaf_goes_on(&arg);
	KEEP();
	return arg;
}

#define THROUGH(n, trampoline)                                                                               \
	FN void *fn_through_##n(void *arg)                                                                   \
	{                                                                                                    \
		chain("fn_blocks;" #trampoline ";fn_through_" #n);                                           \
		trampoline(fn_blocks, arg);                                                                  \
		KEEP();                                                                                      \
		return arg;                                                                                  \
	}
THROUGH(1, fn_skips)
THROUGH(2, fn_skips_far)
THROUGH(3, fn_pops)
THROUGH(4, fn_leaves)

FN void *fn_null(void *arg)
{
	chain("fn_in_handler;fn_handler;fn_null");
	nowhere();
	KEEP();
	return arg;
}

FN void *fn_signalled(void *arg)
{
	chain("fn_in_handler;fn_handler;fn_restorer;fn_signalled");
	pause();
	KEEP();
	return arg;
}

/* sigaction(3) would set libc's own trampoline */
static void handle_by_restorer(int sig)
{
	struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		unsigned long mask;
	} sa = { fn_handler, 0x04000000, fn_restorer, 0 };

	syscall(SYS_rt_sigaction, sig, &sa, NULL, 8);
}

static pthread_t start(void *(*fn)(void *))
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, &inside))
		exit(1);
	usleep(20000);
	return t;
}

int main(void)
{
	sem_init(&inside, 0, 0);
	signal(SIGSEGV, fn_handler);
	handle_by_restorer(SIGUSR1);
	start(fn_leaf_1);
	start(fn_leaf_2);
	start(fn_through_1);
	start(fn_through_2);
	start(fn_through_3);
	start(fn_through_4);
	start(fn_null);
	pthread_kill(start(fn_signalled), SIGUSR1);
	sem_wait(&inside);
	sem_wait(&inside);
	chain("main");
	block();
	return 0;
}
