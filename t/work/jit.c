/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit HOW [SECONDS] - generates two pieces of code that call the function
 * passed to them, and waits inside them, 50 ms at a time, for SECONDS (1.2).
 * First prints "PID FIRST SECOND SIZE": both addresses and the size in
 * hexadecimal. HOW:
 *
 * 	quiet	publishes nothing
 * 	map	writes /tmp/perf-PID.map, with invalid lines and an older entry
 * 		that a newer one overlaps, and removes it at the end
 * 	grow	the same, but adds (and uses) the second piece in the second half
 * 	dump	writes jit-PID.dump to the current folder and maps it as perf expects
 * 	moved	the same, but the first piece has another name in the second half
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define APART 256

#if defined(__x86_64__)
/* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
#elif defined(__aarch64__)
/* stp x29, x30, [sp, #-16]!; mov x29, sp; blr x0; ldp x29, x30, [sp], #16; ret */
static const uint32_t code[] = { 0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0 };
#endif

typedef void waiter(void (*fn)(void));

static char *area;
static char map_path[64];
static int dump = -1;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void nap(void)
{
	const struct timespec ts = { .tv_nsec = 50000000 };

	nanosleep(&ts, NULL);
	__asm__ volatile("" ::: "memory");
}

static void wait_in(unsigned int piece, double seconds)
{
	waiter *fn = (waiter *)(uintptr_t)(area + piece * APART);
	uint64_t until = now_ns() + (uint64_t)(seconds * 1e9);

	while (now_ns() < until) {
		fn(nap);
		__asm__ volatile("" ::: "memory");
	}
}

static void publish(const char *name, unsigned int piece)
{
	FILE *f = fopen(map_path, "a");

	if (!f)
		exit(1);
	fprintf(f, "%lx %zx %s\n", (unsigned long)(area + piece * APART), sizeof(code), name);
	fclose(f);
}

static void publish_invalid(void)
{
	FILE *f = fopen(map_path, "w");

	if (!f)
		exit(1);
	fprintf(f, "what is this\n%lx zz name\n%lx %x older\n", (unsigned long)area, (unsigned long)area,
		APART);
	fclose(f);
}

static void put(const void *p, size_t n)
{
	if (write(dump, p, n) != (ssize_t)n)
		exit(1);
}

static void begin_dump(void)
{
	const struct {
		uint32_t magic, version, size, machine, pad, pid;
		uint64_t time, flags;
	} head = { 0x4A695444, 1, 40, 62, 0, (uint32_t)getpid(), now_ns(), 0 };
	char name[64];

	snprintf(name, sizeof(name), "jit-%d.dump", (int)getpid());
	dump = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);
	if (dump < 0)
		exit(1);
	put(&head, sizeof(head));
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump, 0) == MAP_FAILED)
		exit(1);
}

static void dump_line(uint64_t addr, uint32_t line, const char *file)
{
	const struct {
		uint32_t id, size;
		uint64_t time, addr, n, at;
		uint32_t line, discriminator;
	} r = { 2, (uint32_t)(48 + strlen(file) + 1), now_ns(), addr, 1, addr, line, 0 };

	put(&r, sizeof(r));
	put(file, strlen(file) + 1);
}

static void dump_load(const char *name, unsigned int piece, uint64_t index)
{
	const uint64_t addr = (uint64_t)(uintptr_t)area + piece * APART;
	const struct {
		uint32_t id, size;
		uint64_t time;
		uint32_t pid, tid;
		uint64_t vma, addr, len, index;
	} r = { 0, (uint32_t)(56 + strlen(name) + 1 + sizeof(code)), now_ns(), (uint32_t)getpid(),
		(uint32_t)getpid(), addr, addr, sizeof(code), index };

	dump_line(addr, 10 + (uint32_t)index, "made.src");
	put(&r, sizeof(r));
	put(name, strlen(name) + 1);
	put(code, sizeof(code));
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "quiet";
	double seconds = argc > 2 ? atof(argv[2]) : 1.2;

	area = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		return 1;
	memcpy(area, code, sizeof(code));
	memcpy(area + APART, code, sizeof(code));
	__builtin___clear_cache(area, area + 4096);
	if (mprotect(area, 4096, PROT_READ | PROT_EXEC) != 0)
		return 1;
	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", (int)getpid());
	printf("%d %lx %lx %zx\n", (int)getpid(), (unsigned long)area, (unsigned long)(area + APART),
		sizeof(code));
	fflush(stdout);
	if (strcmp(how, "map") == 0 || strcmp(how, "grow") == 0) {
		publish_invalid();
		publish("made_first", 0);
	}
	if (strcmp(how, "map") == 0)
		publish("made second(int)", 1);
	if (strcmp(how, "dump") == 0 || strcmp(how, "moved") == 0) {
		begin_dump();
		dump_load("dumped_first", 0, 1);
		dump_load("dumped_second", 1, 2);
	}
	wait_in(0, seconds / 2);
	if (strcmp(how, "grow") == 0)
		publish("made later", 1);
	if (strcmp(how, "moved") == 0) {
		dump_load("dumped_anew", 0, 3);
		wait_in(0, seconds / 2);
	}
	wait_in(1, seconds / 2);
	if (strcmp(how, "map") == 0 || strcmp(how, "grow") == 0)
		unlink(map_path);
	return 0;
}
