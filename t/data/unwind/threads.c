/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads on stacks of their own: coroutines, a stack of the least size, a
 * task made by clone(2), and a main thread that has ended.
 *
 *   threads small|coroutine|gone   gone: the main thread ends
 */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "work.h"

static ucontext_t home, routine, second;
static char stack1[1 << 16], stack2[1 << 16];

FN void fn_second_routine(int n)
{
	volatile int keep = n;

	chain("fn_second_routine");
	block();
	keep++;
}

FN void fn_routine(void)
{
	swapcontext(&routine, &second);
	KEEP();
}

FN void fn_coroutines(void)
{
	getcontext(&routine);
	routine.uc_stack.ss_sp = stack1;
	routine.uc_stack.ss_size = sizeof(stack1);
	routine.uc_link = &home;
	makecontext(&routine, fn_routine, 0);
	getcontext(&second);
	second.uc_stack.ss_sp = stack2;
	second.uc_stack.ss_size = sizeof(stack2);
	second.uc_link = &routine;
	makecontext(&second, (void (*)(void))fn_second_routine, 1, 7);
	swapcontext(&home, &routine);
	KEEP();
}

FN void *fn_small(void *arg)
{
	chain("fn_small");
	block();
	return arg;
}

FN int fn_cloned(void *arg)
{
	chain("fn_cloned");
	block();
	return arg != NULL;
}

static void clone_one(void)
{
	const size_t size = 1 << 16;
	char *stack = malloc(size);

	if (clone(fn_cloned, stack + size,
		    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
		    NULL) < 0)
		exit(1);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN);
	if (!strcmp(mode, "coroutine")) {
		fn_coroutines();
		return 0;
	}
	if (pthread_create(&t, &attr, fn_small, NULL))
		return 1;
	if (!strcmp(mode, "gone"))
		pthread_exit(NULL);
	clone_one();
	chain("main");
	block();
	return 0;
}
