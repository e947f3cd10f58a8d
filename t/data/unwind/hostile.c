/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads whose registers and stacks are made to mislead whoever walks them.
 *
 *   hostile wild          stack and frame pointers that lead nowhere
 *   hostile loops         frames that are their own callers
 *   hostile map FILE [N]  calls the text of an ELF file that t/data/unwind/badelf
 *                         made, mapped N times
 *   hostile replaced FILE HOW
 *                         the same, mapped once, when the path of FILE has become
 *                         a FIFO, a device, a loop, a directory or nothing
 *   hostile device        code in mappings of /dev/zero and of a shared memory file
 *
 * Each thread names itself by what it does.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "work.h"

/* RSP and RBP are the arguments; waits for ever. Its CFI says CFA = RSP + 8. */
void fn_wild(uint64_t sp, uint64_t fp);
/* The same, and its CFI says CFA = RBP + 16; fn_framed_return is behind a call. */
void fn_framed(uint64_t sp, uint64_t fp);
extern char fn_framed_return[];
/* The same without CFI */
void fn_unframed(uint64_t sp, uint64_t fp);
extern char fn_unframed_return[], fn_wild_return[];

#define WAIT "1: mov $34, %eax\nsyscall\njmp 1b\n"
#define BEGIN(name) ".globl " name "\n.type " name ",@function\n" name ":\n"
#define END(name) ".size " name ", . - " name "\n"

__asm__(".text\n" BEGIN(
	"fn_wild") ".cfi_startproc\nmov %rdi, %rsp\nmov %rsi, %rbp\n" WAIT
		   "call fn_wild\n.globl fn_wild_return\nfn_wild_return: nop\n.cfi_endproc\n" END("fn_wild")
			   BEGIN("fn_framed") ".cfi_startproc\n.cfi_def_cfa rbp, 16\n.cfi_offset rbp, "
					      "-16\nmov %rdi, %rsp\nmov %rsi, %rbp\n" WAIT
					      "call fn_wild\n.globl fn_framed_return\nfn_framed_return: "
					      "nop\n.cfi_endproc\n" END("fn_framed") BEGIN(
						      "fn_unframed") "mov %rdi, %rsp\nmov %rsi, %rbp\n" WAIT
								     "call fn_wild\n.globl "
								     "fn_unframed_return\nfn_unframed_return:"
								     " nop\n" END("fn_unframed"));

struct wild {
	const char *name;
	void (*fn)(uint64_t sp, uint64_t fp);
	uint64_t sp, fp;
};

static void *run(void *arg)
{
	const struct wild *w = arg;

	prctl(PR_SET_NAME, w->name);
	w->fn(w->sp, w->fp);
	return NULL;
}

static void start(const char *name, void (*fn)(uint64_t, uint64_t), uint64_t sp, uint64_t fp)
{
	struct wild *w = malloc(sizeof(*w));
	pthread_t t;

	*w = (struct wild){ name, fn, sp, fp };
	if (pthread_create(&t, NULL, run, w))
		exit(1);
}

/* Two pages, the one after them is not mapped. */
static char *pages(void)
{
	char *p = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || munmap(p + 2 * 4096, 4096))
		exit(1);
	return p;
}

static void wild(void)
{
	uint64_t end = (uint64_t)pages() + 2 * 4096, text = (uint64_t)(void *)wild;

	start("sp-null", fn_wild, 0, 0);
	start("sp-unmapped", fn_wild, 4096, 4096);
	start("sp-kernel", fn_wild, 0xffffffff81000000, 0xffffffff81000000);
	start("sp-noncanon", fn_wild, 1UL << 63, 1UL << 48);
	start("sp-last", fn_wild, UINT64_MAX - 7, UINT64_MAX - 7);
	start("sp-wraps", fn_wild, UINT64_MAX, UINT64_MAX);
	start("sp-page-end", fn_wild, end, end);
	start("sp-over-end", fn_wild, end - 4, end - 4);
	start("sp-user-end", fn_wild, 0x7fffffffeff8, 0x7ffffffff000);
	start("sp-in-text", fn_wild, text, text);
	start("fp-null", fn_framed, end - 64, 0);
	start("fp-kernel", fn_framed, end - 64, 0xffff888000000000);
	start("fp-last", fn_framed, end - 64, UINT64_MAX - 15);
	start("fp-over-end", fn_framed, end - 64, end - 12);
	start("fp-wild-nocfi", fn_unframed, end - 64, 0xffff888000000000);
	start("fp-end-nocfi", fn_unframed, end - 64, end - 8);
}

static void loops(void)
{
	uint64_t *s;

	/* itself */
	s = (uint64_t *)(void *)pages();
	s[100] = (uint64_t)&s[100];
	s[101] = (uint64_t)fn_framed_return;
	start("loop-self", fn_framed, (uint64_t)&s[90], (uint64_t)&s[100]);
	/* two */
	s = (uint64_t *)(void *)pages();
	s[100] = (uint64_t)&s[200];
	s[101] = (uint64_t)fn_framed_return;
	s[200] = (uint64_t)&s[100];
	s[201] = (uint64_t)fn_framed_return;
	start("loop-two", fn_framed, (uint64_t)&s[90], (uint64_t)&s[100]);
	/* backwards for ever */
	s = (uint64_t *)(void *)pages();
	for (int i = 1000; i > 10; i -= 2) {
		s[i] = (uint64_t)&s[i - 2];
		s[i + 1] = (uint64_t)fn_framed_return;
	}
	start("loop-down", fn_framed, (uint64_t)&s[5], (uint64_t)&s[1000]);
	/* without CFI */
	s = (uint64_t *)(void *)pages();
	s[100] = (uint64_t)&s[100];
	s[101] = (uint64_t)fn_unframed_return;
	start("loop-nocfi", fn_unframed, (uint64_t)&s[90], (uint64_t)&s[100]);
	/* no loop, but no end before that of the pages: return addresses without number */
	s = (uint64_t *)(void *)pages();
	for (int i = 0; i < 1024; i++)
		s[i] = (uint64_t)fn_wild_return;
	start("endless", fn_wild, (uint64_t)s, 0);
	/* frame, no frame, and back */
	s = (uint64_t *)(void *)pages();
	for (int i = 10; i < 1000; i += 4) {
		s[i] = (uint64_t)&s[i + 4];
		s[i + 1] = (uint64_t)(i & 4 ? fn_framed_return : fn_unframed_return);
	}
	s[1002] = s[1006] = 0;
	start("mixed", fn_framed, (uint64_t)&s[5], (uint64_t)&s[10]);
}

static void map(const char *file, long n)
{
	int fd = open(file, O_RDONLY);
	char *p = NULL;

	for (long i = 0; i < n; i++) {
		/* every other one elsewhere in the file, so that none are merged */
		p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, i == n - 1 || i % 2 ? 4096 : 0);
		if (p == MAP_FAILED)
			exit(1);
	}
	prctl(PR_SET_NAME, "mapped");
	((void (*)(void))p)();
}

static void in_memory(const char *name, int fd, int flags)
{
	static const char code[] = "\xb8\x22\x00\x00\x00\x0f\x05\xeb\xf7";
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, flags, fd, 0);

	if (p == MAP_FAILED)
		exit(1);
	memcpy(p, code, sizeof(code));
	start(name, (void (*)(uint64_t, uint64_t))(void *)p, 0, 0);
}

/* Calls FILE's text when its path leads to something else: HOW is fifo, device, loop, directory or gone. */
static void replaced(const char *file, const char *how)
{
	int fd = open(file, O_RDONLY);
	char *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096);

	close(fd);
	if (p == MAP_FAILED || unlink(file))
		exit(1);
	if ((!strcmp(how, "fifo") && mkfifo(file, 0600)) ||
		(!strcmp(how, "device") && mknod(file, S_IFCHR | 0600, makedev(5, 0))) ||
		(!strcmp(how, "loop") && symlink(file, file)) ||
		(!strcmp(how, "directory") && mkdir(file, 0700)))
		exit(1);
	prctl(PR_SET_NAME, "mapped");
	((void (*)(void))p)();
}

static void device(void)
{
	int memory = memfd_create("code", 0);

	if (ftruncate(memory, 4096))
		exit(1);
	in_memory("dev-zero", open("/dev/zero", O_RDWR), MAP_PRIVATE);
	in_memory("memfd", memory, MAP_SHARED);
	in_memory("anonymous", -1, MAP_PRIVATE | MAP_ANONYMOUS);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "wild"))
		wild();
	else if (!strcmp(mode, "loops"))
		loops();
	else if (!strcmp(mode, "device"))
		device();
	else if (!strcmp(mode, "replaced") && argc > 3)
		replaced(argv[2], argv[3]);
	else if (!strcmp(mode, "map") && argc > 2)
		map(argv[2], argc > 3 ? atol(argv[3]) : 1);
	else
		return 64;
	block();
	return 0;
}
