/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program that claims to be CPython 3.11 and lies: the structures that a
 * recorder reads are forged as argv[1] says. It waits in its "evaluation
 * function" until standard input ends. Layouts: lib/record/python.c.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORD(p, at) (*(uint64_t *)((char *)(p) + (at)))

const unsigned long Py_Version = VERSION;
char _PyRuntime[0x28b20] = { 1 };
static char interpreters[2][64], state[256], cframe[64], frames[4][128], code[4][512], name[4][128],
	lines[64];

__attribute__((noinline, noclone)) long _PyEval_EvalFrameDefault(int depth)
{
	char c;

	if (depth)
		return _PyEval_EvalFrameDefault(depth - 1) + 1;
	return read(0, &c, 1);
}

/* A compact ASCII string. */
static void set_name(char *to, const char *text, uint64_t len)
{
	WORD(to, 16) = len;
	WORD(to, 32) = 0x64;
	strcpy(to + 48, text);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	uint64_t wild = 0;
	pthread_key_t key;

	for (int i = 0; i < 40; i++)
		pthread_key_create(
			&key, NULL); /* beyond the keys that a thread's descriptor itself has room for */
	memcpy(_PyRuntime + 592, (int[]){ 1, (int)key }, 8);
	pthread_setspecific(key, state);
	WORD(_PyRuntime, 40) = WORD(_PyRuntime, 48) = (uint64_t)(uintptr_t)interpreters[0];
	WORD(state, 152) = (uint64_t)pthread_self();
	WORD(state, 56) = (uint64_t)(uintptr_t)cframe;
	WORD(cframe, 8) = (uint64_t)(uintptr_t)frames[0];
	WORD(lines, 16) = 2;
	memcpy(lines + 32, "\x80\x00", 2);
	for (int i = 0; i < 4; i++) {
		WORD(frames[i], 32) = (uint64_t)(uintptr_t)code[i];
		WORD(frames[i], 48) = i < 3 ? (uint64_t)(uintptr_t)frames[i + 1] : 0;
		WORD(frames[i], 56) = (uint64_t)(uintptr_t)code[i] + 184;
		frames[i][68] = i == 3;
		WORD(code[i], 72) = 7;
		WORD(code[i], 128) = WORD(code[i], 112) = (uint64_t)(uintptr_t)name[i];
		WORD(code[i], 136) = (uint64_t)(uintptr_t)lines;
		set_name(name[i], "forged", 6);
		name[i][54] = (char)('0' + i);
		WORD(name[i], 16) = 7;
	}
	if (strcmp(how, "cycle") == 0 || strcmp(how, "interpreters") == 0 || strcmp(how, "states") == 0)
		WORD(frames[2], 48) = (uint64_t)(uintptr_t)frames[1];
	if (strcmp(how, "interpreters") == 0 || strcmp(how, "states") == 0) {
		WORD(_PyRuntime, 40) = (uint64_t)(uintptr_t)interpreters[1];
		if (strcmp(how, "interpreters") == 0)
			WORD(interpreters[1], 0) = (uint64_t)(uintptr_t)interpreters[1];
		else
			WORD(interpreters[1], 16) = WORD(state, 8) = (uint64_t)(uintptr_t)state;
	}
	if (strcmp(how, "calls") == 0)
		frames[0][68] = frames[1][68] = frames[2][68] = 1;
	else if (strcmp(how, "wild") == 0)
		wild = 0x123456789000;
	else if (strcmp(how, "kernel") == 0)
		wild = 0xffff888000000000;
	else if (strcmp(how, "odd") == 0)
		wild = (uint64_t)(uintptr_t)mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) +
		       8191;
	else if (strcmp(how, "code") == 0)
		WORD(frames[1], 32) = UINT64_MAX - 7;
	else if (strcmp(how, "huge") == 0)
		WORD(name[0], 16) = UINT64_C(1) << 62, WORD(lines, 16) = UINT64_MAX;
	else if (strcmp(how, "width") == 0)
		WORD(name[0], 32) = 0x34, WORD(name[1], 32) = 0x4c, WORD(name[2], 32) = UINT64_MAX;
	else if (strcmp(how, "control") == 0)
		memcpy(name[0] + 48, "\n;(\t\0\x1b", 6);
	else if (strcmp(how, "thread") == 0)
		WORD(state, 152) ^= 64;
	if (wild)
		WORD(frames[2], 48) = wild;
	printf("%d\n", (int)getpid());
	fflush(stdout);
	return (int)_PyEval_EvalFrameDefault(0);
}
