/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program that says it is V8 10.2 and forges a frame of JavaScript as argv[1]
 * says. It waits in what it says are V8's builtins, and ends when its standard
 * input does. Build it with -rdynamic -no-pie.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef MINOR
#define MINOR 2
#endif

#define CONSTANT(name, value) const int v8dbg_##name = (value)

CONSTANT(SmiTagMask, 1);
CONSTANT(SmiShiftSize, 31);
CONSTANT(FirstNonstringType, 128);
CONSTANT(off_fp_context, -8);
CONSTANT(off_fp_function, -16);
CONSTANT(off_fp_bytecode_array, -32);
CONSTANT(off_fp_bytecode_offset, -40);
CONSTANT(type_JSFunction__JS_FUNCTION_TYPE, 2065);
CONSTANT(type_Script__SCRIPT_TYPE, 170);
CONSTANT(type_ScopeInfo__SCOPE_INFO_TYPE, 256);
CONSTANT(type_Code__CODE_TYPE, 240);
CONSTANT(type_BytecodeArray__BYTECODE_ARRAY_TYPE, 195);
CONSTANT(type_FixedArray__FIXED_ARRAY_TYPE, 179);
CONSTANT(frametype_BuiltinExitFrame, 22);
CONSTANT(class_JSFunction__shared__SharedFunctionInfo, 24);
CONSTANT(class_BytecodeArray__data__uintptr_t, 56);
CONSTANT(class_Script__source__Object, 8);
CONSTANT(class_Script__line_ends__Object, 56);
CONSTANT(class_SharedFunctionInfo__flags__int, 48);

const int major __asm__("_ZN2v88internal7Version6major_E") = 10;
const int minor __asm__("_ZN2v88internal7Version6minor_E") = MINOR;
const int build __asm__("_ZN2v88internal7Version6build_E") = 154;
const unsigned char sizes[594] __asm__("_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE") = { 1 };

/* No unwind table: enter() calls WAIT in a frame with CONTEXT, FUNCTION, BYTECODE and OFFSET. */
__asm__(".text\n"
	"builtins:\n"
	"enter: push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	push %rdi\n"
	"	push %rsi\n"
	"	push $1\n"
	"	push %rdx\n"
	"	push %rcx\n"
	"	push %rcx\n"
	"	call *%r8\n"
	"	leave\n"
	"	ret\n"
	"	.fill 64, 1, 0x90\n"
	"builtins_end:\n"
	".globl _ZN2v88internal23DefaultEmbeddedBlobCodeEv\n"
	".type _ZN2v88internal23DefaultEmbeddedBlobCodeEv, @function\n"
	"_ZN2v88internal23DefaultEmbeddedBlobCodeEv: mov $builtins, %eax\n"
	"	ret\n"
	"	.fill 16, 1, 0x90\n"
	".globl _ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv\n"
	".type _ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv, @function\n"
	"_ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv: mov size_of_builtins(%rip), %eax\n"
	"	ret\n"
	"	.fill 16, 1, 0x90\n"
	".section .rodata\n"
	"size_of_builtins: .long builtins_end - builtins\n"
	".text\n");
void enter(uint64_t context, uint64_t function, uint64_t bytecode, uint64_t offset, int (*wait)(void));

/* Objects have words; the first one is the map. */
static uint64_t maps[512][2], names[3][64], function[8], shared[8], script[16], scope[16], bytecode[16],
	table[2048], ends[8]; /* the table is longer than what is read of it */

static uint64_t tagged(void *object)
{
	return (uint64_t)object + 1;
}

static uint64_t map(unsigned int type)
{
	uint16_t *m = (uint16_t *)&maps[type & 511];

	m[6] = (uint16_t)type;
	return tagged(m);
}

static uint64_t string(uint64_t *to, const char *text)
{
	to[0] = map(40);
	to[1] = (uint64_t)strlen(text) << 32;
	memcpy(to + 2, text, strlen(text));
	return tagged(to);
}

static int wait_a_while(void)
{
	struct pollfd p = { .fd = 0, .events = POLLIN };
	int rc;

	do
		rc = poll(&p, 1, 10);
	while (rc == 0);
	return rc;
}

int main(int argc, char **argv)
{
	static const unsigned char positions[] = { 1, 0x20, 6, 12 }; /* 0 at -1; 8 at 2: the third line */
	const char *how = argc > 1 ? argv[1] : "none";
	const uint64_t wild = 0x7eeeeeeee001, number = 1ULL << 32;

	maps[2065 & 511][0] = 0;
	function[0] = map(2065);
	function[3] = tagged(shared);
	shared[0] = map(257);
	shared[2] = string(names[0], "forged");
	shared[4] = tagged(script);
	shared[6] = 7ULL << 32;
	script[0] = map(170);
	script[1] = string(names[1], "one\ntwo\nthree\n");
	script[2] = string(names[2], "forged.js");
	script[8] = 5 * number;
	bytecode[0] = map(195);
	bytecode[1] = 64 * number;
	bytecode[4] = tagged(table);
	memset(table, 0x7e, sizeof(table)); /* far entries, and pages that are present */
	table[0] = map(194);
	table[1] = sizeof(positions) * number;
	memcpy(table + 2, positions, sizeof(positions));
	if (strcmp(how, "cycle") == 0) {
		names[0][0] = map(37); /* a string that is another one: itself */
		names[0][2] = tagged(names[0]);
	} else if (strcmp(how, "parts") == 0) {
		scope[0] = map(256);
		scope[1] = (2ULL | 1 << 14) << 32;
		scope[4] = tagged(names[0]);
		shared[2] = tagged(scope);
		names[0][0] = map(41); /* two parts, each of them itself */
		names[0][2] = names[0][3] = tagged(names[0]);
	} else if (strcmp(how, "wild") == 0) {
		function[3] = wild;
	} else if (strcmp(how, "script") == 0) {
		shared[4] = wild;
	} else if (strcmp(how, "name") == 0) {
		shared[2] = wild;
	} else if (strcmp(how, "kernel") == 0) {
		shared[2] = 0xffffffff81000001;
	} else if (strcmp(how, "huge") == 0) {
		names[0][1] = 0x7fffffffULL << 32;
	} else if (strcmp(how, "locals") == 0) {
		scope[0] = map(256);
		scope[1] = (2ULL | 3 << 12) << 32;
		scope[3] = 0x7fffffffULL << 32;
		shared[2] = tagged(scope);
	} else if (strcmp(how, "ends") == 0) {
		ends[0] = map(179);
		ends[1] = 0x7fffffffULL << 32;
		script[7] = tagged(ends);
	} else if (strcmp(how, "table") == 0) {
		table[1] = 0xffffffffULL << 32;
	} else if (strcmp(how, "source") == 0) {
		names[1][1] = 0xffffffffULL << 32;
		table[2] = 0xffffffffff01;
	}
	puts("ready");
	fflush(stdout);
	enter(tagged(function), tagged(function), tagged(bytecode), (2 + 55) * number, wait_a_while);
	return 0;
}
