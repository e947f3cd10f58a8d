/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program that says it is Ruby 3.1 and forges its control frames as argv[1]
 * says. It waits in vm_exec_core(), and ends when its standard input does.
 * Layouts: lib/record/ruby.c, bpf/ruby.bpf.h.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORD(p, at) (*(uint64_t *)((char *)(p) + (at)))
#define INT(p, at) (*(uint32_t *)((char *)(p) + (at)))
#define AT(p) ((uint64_t)(uintptr_t)(p))

#define STRING 5
#define ARRAY 7
#define IMEMO(kind) (26 | (kind) << 12)
#define ELSEWHERE (1 << 13) /* the text is not in the object; the elements are */
#define CFUNC 0x55550081
#define METHOD 0x11110003
#define FINISH 0x20
#define ID (200 << 4 | 1)

#define CALLS 4

const char ruby_version[] = VERSION;
static __thread void *ruby_native_thread;
static struct {
	uint32_t last;
	void *volatile str;
	uint64_t ids;
} ruby_global_symbols;

static uint64_t stack[1024 * 8], env[CALLS][3], iseq[CALLS][3], code[16], me[3], definition[5];
static char thread[96], ec[64], body[CALLS][192];
static uint64_t labels[CALLS][4], path[4], paths[4], cfunc_name[4], ids[8], names[8];
static uint32_t entries[CALLS][6];
static uint64_t index_of_lines[2], pairs[1024];

int ruby_native_thread_p(void)
{
	return ruby_native_thread != NULL;
}

__attribute__((noinline)) static void use(void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

void rb_sym_all_symbols(void)
{
	use(ruby_global_symbols.str);
	use(ruby_global_symbols.str);
}

#define TEN(x, n) x(n##0) x(n##1) x(n##2) x(n##3) x(n##4) x(n##5) x(n##6) x(n##7) x(n##8) x(n##9)
#define ALL(x)                                                                                               \
	TEN(x, 10)                                                                                           \
	TEN(x, 11)                                                                                           \
	TEN(x, 12)                                                                                           \
	TEN(x, 13)                                                                                           \
	TEN(x, 14)                                                                                           \
	TEN(x, 15)                                                                                           \
	TEN(x, 16)                                                                                           \
	TEN(x, 17)                                                                                           \
	TEN(x, 18)                                                                                           \
	TEN(x, 19)                                                                                           \
	TEN(x, 20) TEN(x, 21) TEN(x, 22) TEN(x, 23) TEN(x, 24) TEN(x, 25) TEN(x, 26) TEN(x, 27) TEN(x, 28)
#define LABEL(n) (void *)&&insn##n,
#define INSN(n)                                                                                              \
	insn##n : __asm__ volatile("# " #n);                                                                 \
	if (++at < argc)                                                                                     \
		goto *table[(unsigned char)how[at] % 190];                                                   \
	goto end;

__attribute__((noinline)) static int vm_exec_core(int argc, const char *how)
{
	static const void *const table[] = { ALL(LABEL) };
	int at = 0;
	char c;

	goto *table[(unsigned char)how[0] % 190];
	ALL(INSN)
end:
	printf("%s %d\n", how, (int)getpid());
	fclose(stdout);
	while (read(0, &c, 1) > 0)
		;
	return at;
}

static uint64_t string(uint64_t *to, const char *text)
{
	to[0] = STRING | ELSEWHERE;
	to[2] = strlen(text);
	to[3] = AT(text);
	return AT(to);
}

/* Control frame number I, the innermost is 0. */
static char *frame(int i)
{
	return (char *)stack + sizeof(stack) - 64 - (size_t)(CALLS - i) * 64;
}

static void forge(void)
{
	static const char *const text[CALLS] = { "", "forged0", "forged1", "forged2" };

	WORD(thread, 40) = AT(ec);
	WORD(thread, 80) = AT(pthread_self());
	WORD(ec, 0) = AT(stack);
	WORD(ec, 8) = sizeof(stack) / 8;
	WORD(ec, 16) = AT(frame(0));
	WORD(ec, 48) = AT(thread);
	/* a path and its real path */
	paths[0] = ARRAY | ELSEWHERE | 2 << 15;
	paths[2] = string(path, "forged.rb");
	/* nine ranks of 7 bits in each word: the second entry begins at position 8 */
	index_of_lines[0] = 2;
	for (int i = 0; i < 8; i++)
		index_of_lines[0] = index_of_lines[0] << 7 | 1;
	for (int i = 0; i < 9; i++)
		index_of_lines[1] = index_of_lines[1] << 7 | 2;
	for (int i = 0; i < CALLS; i++) {
		WORD(frame(i), 32) = AT(&env[i][2]);
		env[i][2] = METHOD | (i == CALLS - 1 ? FINISH : 0);
		iseq[i][0] = IMEMO(7);
		iseq[i][2] = AT(body[i]);
		WORD(frame(i), 0) = AT(code + 9);
		WORD(frame(i), 16) = AT(iseq[i]);
		INT(body[i], 4) = 16;
		WORD(body[i], 8) = AT(code);
		WORD(body[i], 64) = AT(paths);
		WORD(body[i], 80) = string(labels[i], text[i]);
		WORD(body[i], 120) = AT(entries[i]);
		INT(body[i], 136) = 2;
		WORD(body[i], 144) = AT(index_of_lines);
		entries[i][0] = 1000;
		entries[i][3] = 9 + (uint32_t)i;
	}
	/* the innermost one is of a method in C */
	WORD(frame(0), 0) = WORD(frame(0), 16) = 0;
	env[0][0] = AT(me);
	env[0][2] = CFUNC;
	me[0] = IMEMO(6);
	me[2] = AT(definition);
	definition[4] = ID;
	ruby_global_symbols.ids = AT(ids);
	ids[0] = ARRAY | ELSEWHERE | 1 << 15;
	ids[2] = AT(names);
	names[0] = ARRAY;
	names[2] = 1024;
	names[4] = AT(pairs);
	pairs[400] = string(cfunc_name, "cfunc");
	pairs[401] = ID << 8 | 12;
}

static void lie(const char *how)
{
	if (strcmp(how, "endless") == 0) /* the same frame again and again */
		for (int i = 0; i < 1023; i++)
			memcpy((char *)stack + i * 64, frame(1), 64), WORD(ec, 16) = AT(stack);
	else if (strcmp(how, "skipped") == 0) /* frames of blocks in C only */
		memset(stack, 0, sizeof(stack) - 64), WORD(ec, 16) = AT(stack);
	else if (strcmp(how, "groups") == 0)
		env[1][2] |= FINISH;
	else if (strcmp(how, "none_ends") == 0)
		env[3][2] &= ~(uint64_t)FINISH;
	else if (strcmp(how, "below") == 0)
		WORD(ec, 16) = AT(stack) - 64;
	else if (strcmp(how, "above") == 0)
		WORD(ec, 16) = AT(stack) + sizeof(stack);
	else if (strcmp(how, "wild") == 0)
		WORD(ec, 0) = 0x123456780000, WORD(ec, 16) = 0x123456789000;
	else if (strcmp(how, "kernel") == 0)
		WORD(frame(1), 16) = 0xffff888000000000;
	else if (strcmp(how, "env") == 0)
		WORD(frame(2), 32) = 16;
	else if (strcmp(how, "iseq") == 0)
		iseq[2][0] = IMEMO(6);
	else if (strcmp(how, "body") == 0)
		iseq[2][2] = 0x123456789000;
	else if (strcmp(how, "label") == 0)
		labels[2][0] = ARRAY;
	else if (strcmp(how, "huge") == 0)
		labels[2][2] = UINT64_C(1) << 40;
	else if (strcmp(how, "text") == 0)
		labels[2][3] = 0x123456789000;
	else if (strcmp(how, "path") == 0)
		paths[0] = ARRAY | ELSEWHERE;
	else if (strcmp(how, "lines") == 0)
		WORD(body[2], 120) = 0x123456789000;
	else if (strcmp(how, "method") == 0)
		me[0] = IMEMO(7);
	else if (strcmp(how, "long") == 0)
		labels[2][2] = 600, labels[2][3] = AT(stack);
	else if (strcmp(how, "symbol") == 0) /* of another method */
		pairs[401] = (ID + 16) << 8 | 12;
	else if (strcmp(how, "serial") == 0)
		definition[4] = UINT64_C(1) << 40;
	else if (strcmp(how, "index") == 0)
		WORD(body[2], 144) = 0x123456789000;
	else if (strcmp(how, "position") == 0)
		WORD(frame(2), 0) = AT(code) + 17 * 8;
	else if (strcmp(how, "entries") == 0)
		INT(body[2], 136) = 1, entries[2][0] = 0x80000000;
	else if (strcmp(how, "thread") == 0)
		WORD(thread, 80) += 64;
	else if (strcmp(how, "context") == 0)
		WORD(ec, 48) += 8;
	else if (strcmp(how, "control") == 0)
		string(labels[1], "\n;(\t\x1b[m");
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "none";

	ruby_native_thread = thread;
	forge();
	lie(how);
	rb_sym_all_symbols();
	return vm_exec_core(argc, how) < 0;
}
