/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * places heap|stack|anon - waits in code that is in no file. Prints the address
 * at which it waits.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

/* nanosleep(2) with the first argument, and NULL as the second */
static const uint8_t code[] = { 0x31, 0xf6, 0xb8, 0x23, 0, 0, 0, 0x0f, 0x05, 0xc3 };

static uint8_t *page_of(void *p)
{
	return (uint8_t *)(((uintptr_t)p + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
}

extern void *__libc_stack_end;

static int nap_in(uint8_t *page, int flags, size_t len)
{
	const struct timespec t = { .tv_nsec = 50000000 };
	int (*nap)(const struct timespec *t) = (int (*)(const struct timespec *))(uintptr_t)page;

	if (mprotect(page, len, PROT_READ | PROT_WRITE | PROT_EXEC | flags) != 0)
		return 1;
	memcpy(page, code, sizeof(code));
	printf("%p\n", (void *)(page + sizeof(code) - 1));
	fflush(stdout);
	return nap(&t);
}

int main(int argc, char **argv)
{
	const char *where = argc > 1 ? argv[1] : "";

	if (strcmp(where, "heap") == 0)
		return nap_in(page_of(sbrk(2 * PAGE)), 0, PAGE);
	if (strcmp(where, "stack") == 0) {
		uint8_t room[2 * PAGE];
		uint8_t *page = page_of(room);

		/* all of it: the kernel would not call a part of it the stack, but a separate mapping */
		return nap_in(page, PROT_GROWSDOWN, (size_t)(page_of(__libc_stack_end) - page));
	}
	return nap_in(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 0, PAGE);
}
