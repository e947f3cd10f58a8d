/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program that says it is Perl 5.36, or 5.34, and forges its contexts as argv[1] says.
 * It waits in Perl_runops_standard(), and ends when its standard input does.
 * Layouts: lib/record/perl.c.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORD(p, at) (*(uint64_t *)((char *)(p) + (at)))
#define INT(p, at) (*(uint32_t *)((char *)(p) + (at)))
#define AT(p) ((uint64_t)(uintptr_t)(p))

const char PL_revision = 5, PL_version = VERSION, PL_subversion = 99;
const char PL_bincompat_options[] = OPTIONS;
pthread_key_t PL_thr_key;

#define BEHIND (VERSION < 35) /* the name of a package is behind the array of its hash */

static char interpreter[4096], stack[64], contexts[4 * 104], statements[5][64], body[104], package[24],
	package_body[64], package_array[128], cv[4][24], cv_body[4][104], names[4][64];

static void *name(char *to, const char *text)
{
	INT(to, 4) = (uint32_t)strlen(text);
	strcpy(to + 8, text);
	return to;
}

__attribute__((noinline)) void Perl_runops_standard(const char *how)
{
	char c;

	printf("%s %d\n", how, (int)getpid());
	fclose(stdout);
	while (read(0, &c, 1) > 0)
		;
	/* not a tail call */
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "none";
	static char package_name[64], globs[4][24], glob_bodies[4][64];

	pthread_key_create(&PL_thr_key, NULL);
	pthread_setspecific(PL_thr_key, interpreter);
	WORD(interpreter, 0) = WORD(interpreter, 24) = WORD(interpreter, 32) = AT(interpreter);
	WORD(interpreter, 208) = AT(statements[0]);
	WORD(interpreter, 224) = AT(stack);
	WORD(interpreter, 1800) = AT(cv[3]);
	INT(interpreter, 2512) = 4;
	WORD(stack, 8) = AT(contexts);
	INT(stack, 32) = 2;
	INT(stack, 44) = 1;
	WORD(package, 0) = AT(package_body);
	INT(package, 12) = 12 | 1 << 25;
	if (BEHIND) {
		WORD(package, 16) = AT(package_array);
		WORD(package_body, 24) = 7;
		WORD(package_array, 64) = AT(name(package_name, "Forged"));
	} else {
		WORD(package_body, 32) = AT(name(package_name, "Forged"));
	}
	for (int i = 0; i < 4; i++) {
		char text[16];

		snprintf(text, sizeof(text), "sub%d", i);
		INT(statements[i], 36) = 10 + (uint32_t)i;
		WORD(statements[i], 48) = AT("forged.pl");
		WORD(cv[i], 0) = AT(cv_body[i]);
		INT(cv[i], 12) = 13;
		WORD(cv_body[i], 56) = AT(globs[i]);
		WORD(globs[i], 0) = AT(glob_bodies[i]);
		INT(globs[i], 12) = 9;
		WORD(glob_bodies[i], 32) = AT(name(names[i], text));
		WORD(glob_bodies[i], 40) = AT(package);
	}
	for (int i = 0; i < 3; i++) { /* the innermost is the last */
		char *c = contexts + (2 - i) * 104;

		c[0] = 9;
		WORD(c, 16) = AT(statements[i + 1]);
		WORD(c, 48) = 1;
		WORD(c, 72) = AT(cv[i]);
	}
	if (strcmp(how, "cycle") == 0)
		WORD(stack, 16) = AT(stack);
	else if (strcmp(how, "empty") == 0) /* stacks without contexts */
		INT(stack, 32) = UINT32_MAX, WORD(stack, 16) = AT(stack);
	else if (strcmp(how, "top") == 0)
		INT(stack, 32) = 0x7ffffffe;
	else if (strcmp(how, "negative") == 0)
		INT(stack, 32) = 0x80000000;
	else if (strcmp(how, "wild") == 0)
		WORD(stack, 8) = 0x123456789000;
	else if (strcmp(how, "kernel") == 0)
		WORD(stack, 16) = 0xffff888000000000;
	else if (strcmp(how, "cv") == 0)
		WORD(contexts, 72) = AT(body);
	else if (strcmp(how, "statement") == 0)
		WORD(contexts + 104, 16) = 8;
	else if (strcmp(how, "name") == 0)
		WORD(glob_bodies[1], 32) = 16;
	else if (strcmp(how, "huge") == 0)
		INT(names[1], 4) = 0x7fffffff;
	else if (strcmp(how, "negative_name") == 0)
		INT(names[1], 4) = UINT32_MAX;
	else if (strcmp(how, "package") == 0)
		INT(package, 12) = 12;
	else if (strcmp(how, "many") == 0) /* entries of a hash */
		WORD(package_body, 24) = UINT64_C(1) << 60;
	else if (strcmp(how, "calls") == 0)
		for (int i = 0; i < 3; i++)
			WORD(contexts + i * 104, 48) = 0;
	else if (strcmp(how, "thread") == 0)
		WORD(interpreter, 0) = 8;
	else if (strcmp(how, "control") == 0)
		name(names[0], "\n;(\t\x1b[m");
	Perl_runops_standard(how);
	return 0;
}
