/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * maps FILE BYTES [N] - maps BYTES of an ELF file, whose text begins at offset
 * 4096, N times (1) at different addresses, and calls the beginning of the text
 * in the last mapping. Before the call it prints its PID and the address of the
 * text.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* All mappings begin at the same file offset, so that none are merged. */
static char *map(int fd, size_t bytes, long n)
{
	char *p = NULL;

	for (long i = 0; i < n; i++) {
		p = mmap(NULL, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		if (p == MAP_FAILED)
			return NULL;
	}
	return p;
}

int main(int argc, char **argv)
{
	int fd = argc > 2 ? open(argv[1], O_RDONLY) : -1;
	char *p = fd >= 0 ? map(fd, strtoul(argv[2], NULL, 10), argc > 3 ? atol(argv[3]) : 1) : NULL;

	if (!p)
		return 1;
	printf("%d %p\n", (int)getpid(), (void *)(p + 4096));
	fflush(stdout);
	((void (*)(void))(p + 4096))();
	return 0;
}
