/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that block inside signal handlers: above a system call, above a
 * loop in a function without a frame, above the first instruction of a
 * function, two deep, on the normal and on an alternate stack.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "work.h"

static sem_t inside;
static volatile long spin = 1;

FN void fn_in_handler(void)
{
	sem_post(&inside);
	block();
}

FN void fn_plain(int sig)
{
	fn_in_handler();
	KEEP();
	spin = sig;
}

FN void fn_info(int sig, siginfo_t *si, void *context)
{
	volatile char pad[333];

	pad[sig] = context && si;
	fn_in_handler();
	KEEP();
	spin = pad[sig];
}

FN void fn_first_of_two(int sig)
{
	raise(SIGUSR1);
	KEEP();
	spin = sig;
}

static void handle(int sig, void (*plain)(int), void (*info)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa = { .sa_flags = flags | (info ? SA_SIGINFO : 0) };

	if (info)
		sa.sa_sigaction = info;
	else
		sa.sa_handler = plain;
	sigemptyset(&sa.sa_mask);
	sigaction(sig, &sa, NULL);
}

static void alternate_stack(void)
{
	stack_t ss = { .ss_size = 1 << 16, .ss_sp = malloc(1 << 16) };

	sigaltstack(&ss, NULL);
}

/* No frame, nothing pushed: the return address is at the stack pointer. */
FN long fn_leaf_loop(void)
{
	long n = 0;

	while (spin)
		n++;
	return n;
}

FN void *fn_pause(void *arg)
{
	chain("fn_in_handler;fn_plain;fn_pause");
	pause();
	KEEP();
	return arg;
}

FN void *fn_spins(void *arg)
{
	chain("fn_in_handler;fn_info;fn_leaf_loop;fn_spins");
	fn_leaf_loop();
	KEEP();
	return arg;
}

FN void *fn_pause_alternate(void *arg)
{
	alternate_stack();
	chain("fn_in_handler;fn_info;fn_pause_alternate");
	pause();
	KEEP();
	return arg;
}

FN void *fn_nested(void *arg)
{
	alternate_stack();
	chain("fn_in_handler;fn_plain;fn_first_of_two;fn_nested");
	pause();
	KEEP();
	return arg;
}

/* Its first instruction faults: the byte before it is another function's. */
void fn_faults(void);
__asm__(".text\n.p2align 4\n"
	".type other,@function\nother:\n.cfi_startproc\nud2\n.cfi_endproc\n.size other,.-other\n"
	".globl fn_faults\n.type fn_faults,@function\nfn_faults:\n.cfi_startproc\n"
	"ud2\n.cfi_def_cfa_offset 4096\nret\n.cfi_endproc\n.size fn_faults,.-fn_faults\n");

FN void *fn_first_instruction(void *arg)
{
	chain("fn_in_handler;fn_plain;fn_faults;fn_first_instruction");
	fn_faults();
	KEEP();
	return arg;
}

static pthread_t start(void *(*fn)(void *))
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, NULL))
		exit(1);
	usleep(20000);
	return t;
}

int main(void)
{
	pthread_t t;

	sem_init(&inside, 0, 0);
	handle(SIGUSR1, fn_plain, NULL, SA_NODEFER);
	handle(SIGUSR2, NULL, fn_info, SA_ONSTACK | SA_NODEFER);
	handle(SIGALRM, fn_first_of_two, NULL, SA_ONSTACK);
	handle(SIGILL, fn_plain, NULL, 0);
	t = start(fn_pause);
	pthread_kill(t, SIGUSR1);
	t = start(fn_spins);
	pthread_kill(t, SIGUSR2);
	t = start(fn_pause_alternate);
	pthread_kill(t, SIGUSR2);
	t = start(fn_nested);
	pthread_kill(t, SIGALRM);
	start(fn_first_instruction);
	for (int i = 0; i < 5; i++)
		sem_wait(&inside);
	chain("main");
	block();
	return 0;
}
