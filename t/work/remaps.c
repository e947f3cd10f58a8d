/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * remaps KIND [N] - what processes do to their mappings, N times, or until stdin ends:
 *
 *   map     maps executable pages of a file, and unmaps them
 *   exec    starts /bin/true, and waits for its end
 *   dlopen  loads a library of the C library that this program does not use, and unloads it
 *
 * At the end it prints how often, and the nanoseconds for each.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGES 16

static int file; /* of this program */

static int map(void)
{
	void *p = mmap(NULL, PAGES * 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);

	return p == MAP_FAILED ? -1 : munmap(p, PAGES * 4096);
}

static int start(void)
{
	char *const argv[] = { "true", NULL }, *const env[] = { NULL };
	int status;
	pid_t pid;

	if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, env) != 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

static int load(void)
{
	void *lib = dlopen("libBrokenLocale.so.1", RTLD_NOW | RTLD_LOCAL);

	return lib ? dlclose(lib) : -1;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A writer that ends makes stdin ready as well. */
static int ended(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };

	return poll(&in, 1, 0) != 0;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	int (*fn)(void) = strcmp(kind, "map") == 0      ? map
			  : strcmp(kind, "exec") == 0   ? start
			  : strcmp(kind, "dlopen") == 0 ? load
							: NULL;
	const uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, began = now_ns();
	uint64_t done = 0;

	file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (!fn || file < 0)
		return 2;
	while (n ? done < n : !ended()) {
		if (fn() != 0)
			return 1;
		done++;
	}
	printf("%llu %.1f\n", (unsigned long long)done,
		(double)(now_ns() - began) / (double)(done ? done : 1));
	return 0;
}
