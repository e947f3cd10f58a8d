/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that block below functions with a uretprobe: the kernel has replaced
 * their return addresses. The program attaches the probes to itself.
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

extern const char __executable_start[];

static void probe(int type, void *function)
{
	struct perf_event_attr attr = { .type = (uint32_t)type,
		.size = sizeof(attr),
		.config = 1, /* at the return */
		.config1 = (uintptr_t) "/proc/self/exe",
		.config2 = (uintptr_t)function - (uintptr_t)__executable_start };

	if (syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0) < 0) {
		perror("perf_event_open");
		exit(1);
	}
}

FN void fn_blocks(void)
{
	block();
	KEEP();
}

FN void fn_plain(void)
{
	fn_blocks();
	KEEP();
}

FN void fn_recurses(int n)
{
	if (n)
		fn_recurses(n - 1);
	else
		fn_plain();
	KEEP();
}

/* Jumps: the function that it jumps to has the same return address, with a probe of its own. */
void fn_jumps(void);
__asm__(".globl fn_jumps\n.type fn_jumps, @function\nfn_jumps:\n.cfi_startproc\njmp fn_plain\n.cfi_endproc\n"
	".size fn_jumps, .-fn_jumps");

FN void *fn_thread_1(void *arg)
{
	chain("fn_blocks;fn_plain;fn_recurses;fn_recurses;fn_recurses;fn_thread_1");
	fn_recurses(2);
	KEEP();
	return arg;
}

FN void *fn_thread_2(void *arg)
{
	chain("fn_blocks;fn_plain;fn_thread_2");
	fn_jumps();
	KEEP();
	return arg;
}

int main(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	int type = 0;
	pthread_t t;

	if (!f || fscanf(f, "%d", &type) != 1)
		return 1;
	probe(type, fn_blocks);
	probe(type, fn_recurses);
	probe(type, fn_plain);
	probe(type, fn_jumps);
	probe(type, fn_thread_1);
	if (pthread_create(&t, NULL, fn_thread_1, NULL) || pthread_create(&t, NULL, fn_thread_2, NULL))
		return 1;
	chain("fn_blocks;main");
	fn_blocks();
	return 0;
}
