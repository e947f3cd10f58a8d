/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program that says it is PHP 8.2 and forges its frames as argv[1] says. It
 * waits in execute_ex(), and ends when its standard input does.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STRING_BYTES 64

struct opcode {
	char a[24];
	uint32_t line;
	char b[4];
};

struct function {
	uint8_t type;
	char a[7];
	void *name, *class;
	char b[56];
	int32_t n_opcodes;
	char c[4];
	struct opcode *opcodes;
	char d[56];
	void *file;
	uint32_t lines[2];
};

struct frame {
	void *opline;
	char a[16];
	struct function *function;
	void *object;
	uint32_t info, b;
	struct frame *back;
};

struct string {
	uint64_t refs, hash, len;
	char data[STRING_BYTES];
};

_Static_assert(__builtin_offsetof(struct function, opcodes) == 88, "opcodes");
_Static_assert(__builtin_offsetof(struct function, file) == 152, "file");
_Static_assert(__builtin_offsetof(struct function, lines) == 160, "lines");

uint64_t executor_globals[1800 / 8];
const char version[] = "X-Powered-By: PHP/" VERSION;

static struct frame frames[4];
static struct function functions[4];
static struct opcode opcodes[4];
static struct string names[5];

static struct string *string(struct string *s, const char *text)
{
	s->len = strlen(text);
	memcpy(s->data, text, s->len);
	return s;
}

__attribute__((noinline)) void execute_ex(const char *how)
{
	char c;

	printf("%s %s\n", how, version);
	fclose(stdout);
	while (read(0, &c, 1) > 0)
		;
	/* not a tail call */
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "none";

	for (int i = 0; i < 4; i++) {
		char text[16];

		snprintf(text, sizeof(text), "forged%d", i);
		opcodes[i].line = 10 + (uint32_t)i;
		functions[i] = (struct function){ .type = 2,
			.name = string(&names[i], text),
			.n_opcodes = 1,
			.opcodes = &opcodes[i],
			.file = string(&names[4], "forged.php") };
		frames[i] = (struct frame){
			.opline = &opcodes[i], .function = &functions[i], .back = &frames[i + 1]
		};
	}
	frames[3].back = NULL;
	frames[3].info = 1 << 17;
	executor_globals[488 / 8] = (uint64_t)&frames[0];
	if (strcmp(how, "cycle") == 0)
		frames[3] = (struct frame){ .function = &functions[3], .back = &frames[0] };
	else if (strcmp(how, "groups") == 0)
		frames[1].info = 1 << 17;
	else if (strcmp(how, "wild") == 0)
		frames[1].back = (struct frame *)0x123456789;
	else if (strcmp(how, "kernel") == 0)
		frames[1].back = (struct frame *)0xffffffff81000000;
	else if (strcmp(how, "function") == 0)
		frames[1].function = (struct function *)0x10;
	else if (strcmp(how, "opcodes") == 0)
		functions[1].opcodes = (struct opcode *)0xfff0000000000000;
	else if (strcmp(how, "huge") == 0)
		names[1].len = UINT64_C(1) << 62;
	else if (strcmp(how, "long") == 0)
		names[1].len = 600;
	else if (strcmp(how, "name") == 0)
		functions[1].name = (void *)0x10;
	else if (strcmp(how, "class") == 0)
		functions[1].class = (void *)0x10;
	else if (strcmp(how, "line") == 0)
		frames[1].opline = &opcodes[3];
	else if (strcmp(how, "control") == 0)
		string(&names[0], "\n;(\t\x1b[m");
	else if (strcmp(how, "placeholder") == 0) {
		static struct {
			char a[56];
			struct frame *frame;
			char b[88];
			void *parent;
			char c[24];
			struct frame fake;
		} generator;
		static char parent[256];

		/* it was called by itself, for ever */
		generator.frame = &frames[1];
		generator.parent = parent;
		generator.fake.object = &generator;
		frames[0].back = generator.fake.back = &generator.fake;
	}
	execute_ex(how);
	return 0;
}
