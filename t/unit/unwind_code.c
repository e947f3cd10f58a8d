/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What code proves about its frame: the assembler makes the code, unwind_code.h judges it. */
#include "base/base.h"
#include "base/tap.h"
#include "unwind_code.h"

#include <string.h>

/* Code for a test: NAME_at is the address after BEFORE and in front of AFTER. */
#define CODE(name, before, after)                                                                            \
	__asm__(".pushsection .rodata\n.skip 8, 0x90\n" before "\n" #name "_at:\n" after                     \
		"\n.skip 8, 0x90\n.popsection");                                                             \
	extern const uint8_t name##_at[];

#define CALLS(X)                                                                                             \
	X(call_direct, "call .+0x1234", true)                                                                \
	X(call_register, "call *%rax", true)                                                                 \
	X(call_high_register, "call *%r11", true)                                                            \
	X(call_memory8, "call *8(%rax)", true)                                                               \
	X(call_stack8, "call *8(%rsp)", true)                                                                \
	X(call_rip, "call *0x1234(%rip)", true)                                                              \
	X(call_stack32, "call *0x12345(%rsp)", true)                                                         \
	X(call_index, "call *(%r10,%rbx,8)", true)                                                           \
	X(jump_register, "jmp *%rax", false)                                                                 \
	X(jump_index, "jmp *(%r10,%rbx,8)", false)                                                           \
	X(jump_direct, "jmp .+0x1234", false)                                                                \
	X(call_earlier, "call *%rax\nnopl (%rax)", false)                                                    \
	X(no_code, ".skip 8, 0", false)

#define SYSCALLS(X)                                                                                          \
	X(syscall, "syscall", true)                                                                          \
	X(sysenter, "sysenter", false)                                                                       \
	X(syscall_earlier, "syscall\nnop", false)

#define JUMPS(X)                                                                                             \
	X(jumped_index, "jmp *(%r10,%rbx,8)", true)                                                          \
	X(jumped_register, "jmp *%r11", true)                                                                \
	X(jumped_memory, "jmp *0x12345(%rax)", true)                                                         \
	X(jumped_direct, "jmp .+0x1234", false)                                                              \
	X(jumped_call, "call *%rax", false)

/* name, code, how it leaves the frame, bytes to skip */
#define RETURNS(X)                                                                                           \
	X(ret, "ret", CODE_RETURNS, 0)                                                                       \
	X(rep_ret, "repz ret", CODE_RETURNS, 0)                                                              \
	X(add8, "add $8, %rsp\nret", CODE_RETURNS, 8)                                                        \
	X(add120, "add $120, %rsp\nret", CODE_RETURNS, 120)                                                  \
	X(add136, "add $136, %rsp\nret", CODE_RETURNS, 136)                                                  \
	X(add64k, "add $65536, %rsp\nret", CODE_RETURNS, 65536)                                              \
	X(pop, "pop %rbp\nret", CODE_POPS_FP, 0)                                                             \
	X(add_pop, "add $16, %rsp\npop %rbp\nret", CODE_POPS_FP, 16)                                         \
	X(leave, "leave\nret", CODE_LEAVES, 0)                                                               \
	X(sub, "sub $-128, %rsp\nret", CODE_GOES_ON, 0)                                                      \
	X(add_negative, "add $-8, %rsp\nret", CODE_GOES_ON, 0)                                               \
	X(add_huge, "add $0x7fffffff, %rsp\nret", CODE_GOES_ON, 0)                                           \
	X(add_other, "add $8, %rbx\nret", CODE_GOES_ON, 0)                                                   \
	X(pop_other, "pop %rbx\nret", CODE_GOES_ON, 0)                                                       \
	X(add_only, "add $8, %rsp\njmp .+9", CODE_GOES_ON, 0)                                                \
	X(ret_n, "ret $8", CODE_GOES_ON, 0)                                                                  \
	X(leave_only, "leave\njmp .+9", CODE_GOES_ON, 0)                                                     \
	X(nops, "nop\nnop\nret", CODE_GOES_ON, 0)

#define SIGRETURNS(X)                                                                                        \
	X(sigreturn_rax, "mov $15, %rax\nsyscall", true)                                                     \
	X(sigreturn_eax, "mov $15, %eax\nsyscall", true)                                                     \
	X(write_rax, "mov $1, %rax\nsyscall", false)                                                         \
	X(write_eax, "mov $1, %eax\nsyscall", false)                                                         \
	X(no_syscall, "mov $15, %eax\nret", false)                                                           \
	X(other_register, "mov $15, %ebx\nsyscall", false)

/* --- i386 code --- */

#define CALLS32(X)                                                                                           \
	X(call32_direct, "call .+0x1234", true)                                                              \
	X(call32_vdso, "call *%gs:0x10", true)                                                               \
	X(call32_register, "call *%esi", true)                                                               \
	X(call32_stack, "call *8(%esp)", true)                                                               \
	X(jump32, "jmp *%eax", false)

#define SYSCALLS32(X)                                                                                        \
	X(int80, "int $0x80", true)                                                                          \
	X(int81, "int $0x81", false)                                                                         \
	X(syscall32, "syscall", false)

/* name, code, how it leaves the frame, bytes before the frame pointer (or the return address), and behind it
 */
#define RETURNS32(X)                                                                                         \
	X(vsyscall, "pop %ebp\npop %edx\npop %ecx\nret", CODE_POPS_FP, 0, 8)                                 \
	X(pops4, "pop %ebx\npop %esi\npop %edi\npop %ebp\nret", CODE_POPS_FP, 12, 0)                         \
	X(add_pops, "add $12, %esp\npop %ebx\npop %ebp\nret", CODE_POPS_FP, 16, 0)                           \
	X(pop_edi, "pop %edi\nret", CODE_RETURNS, 4, 0)                                                      \
	X(ret32, "ret", CODE_RETURNS, 0, 0)                                                                  \
	X(add32, "add $28, %esp\nret", CODE_RETURNS, 28, 0)                                                  \
	X(add32_far, "add $0x1234, %esp\nret", CODE_RETURNS, 0x1234, 0)                                      \
	X(leave32, "leave\nret", CODE_LEAVES, 0, 0)                                                          \
	X(pop_esp, "pop %esp\nret", CODE_GOES_ON, 0, 0)                                                      \
	X(pop_ebp_twice, "pop %ebp\npop %ebp\nret", CODE_GOES_ON, 0, 0)                                      \
	X(pops_only, "pop %ebx\npop %esi\njmp .+9", CODE_GOES_ON, 0, 0)                                      \
	X(add32_negative, "add $-8, %esp\nret", CODE_GOES_ON, 0, 0)                                          \
	X(add32_huge, "add $0x7fffffff, %esp\nret", CODE_GOES_ON, 0, 0)                                      \
	X(ret32_n, "ret $8", CODE_GOES_ON, 0, 0)

#define SIGRETURNS32(X)                                                                                      \
	X(old32, "pop %eax\nmov $119, %eax\nint $0x80", CODE_SIGRETURN32)                                    \
	X(rt32, "mov $173, %eax\nint $0x80", CODE_RT_SIGRETURN32)                                            \
	X(old32_unpopped, "mov $119, %eax\nint $0x80", CODE_NO_SIGRETURN)                                    \
	X(pause32, "mov $29, %eax\nint $0x80", CODE_NO_SIGRETURN)                                            \
	X(rt64, "mov $15, %eax\nsyscall", CODE_NO_SIGRETURN)

#define X(name, code, ...) CODE(name, code, "")
CALLS(X)
SYSCALLS(X)
JUMPS(X)
#undef X
#define X(name, code, ...) CODE(name, "", code)
RETURNS(X)
SIGRETURNS(X)
#undef X

#define X(name, code, ...) CODE(name, ".code32\n" code "\n.code64", "")
CALLS32(X)
SYSCALLS32(X)
#undef X
#define X(name, code, ...) CODE(name, "", ".code32\n" code "\n.code64")
RETURNS32(X)
SIGRETURNS32(X)
#undef X

CODE(near_call, "1: nop\nsyscall\nnop\ncall 1b", "")
CODE(far_call, "call .+0x12345", "")

/* For gcc the code before a label belongs to no object, so it must not know the address. */
static uint64_t word(uintptr_t at)
{
	uint64_t w;

	__asm__("" : "+r"(at));
	memcpy(&w, (const void *)at, sizeof(w));
	return w;
}

static uint64_t before(const uint8_t *at)
{
	return word((uintptr_t)at - 8);
}

static void test_calls(struct tap *t)
{
#define X(name, code, is)                                                                                    \
	tap_ok(t, code_after_syscall(before(name##_at), false) == (is), #name " %s a system call",           \
		(is) ? "ends in" : "is not");
	SYSCALLS(X)
#undef X
#define X(name, code, is)                                                                                    \
	tap_ok(t, code_after_call(before(name##_at)) == (is), #name " %s a call",                            \
		(is) ? "ends in" : "is not");
	CALLS(X)
#undef X
#define X(name, code, is)                                                                                    \
	tap_ok(t, code_after_jump(before(name##_at)) == (is), #name " %s an indirect jump",                  \
		(is) ? "ends in" : "is not");
	JUMPS(X)
#undef X
	uint64_t ra = (uintptr_t)near_call_at, call = before(near_call_at);

	tap_ok(t, code_calls(call, ra, ra - 6), "a call back to the function that the PC is in is its own");
	tap_ok(t, !code_calls(call, ra, ra - 10), "a PC before the called function is not in it");
	tap_ok(t, !code_calls(call, ra, ra + CODE_LEAF_BYTES),
		"a PC far behind the called function is not in it");
	ra = (uintptr_t)far_call_at;
	tap_ok(t, !code_calls(before(far_call_at), ra, ra), "a call of something else is not its own");
	tap_ok(t, !code_calls(before(call_register_at), ra, ra),
		"of an indirect call the target is not known");
}

static void test_returns(struct tap *t)
{
	uint32_t skip;
	enum code_return how;

#define X(name, code, want, bytes)                                                                           \
	how = code_return(word((uintptr_t)name##_at), &skip);                                                \
	if (!tap_ok(t, how == (want) && (!(want) || skip == (bytes)), #name ": way %d, skip %d", (want),     \
		    (bytes)))                                                                                \
		tap_diag("got way %d, skip %u", how, skip);
	RETURNS(X)
#undef X
#define X(name, code, is)                                                                                    \
	tap_ok(t, (code_sigreturn(word((uintptr_t)name##_at), false) == CODE_SIGRETURN) == (is),             \
		#name " %s a signal's trampoline", (is) ? "is" : "is not");
	SIGRETURNS(X)
#undef X
}

static void test_narrow(struct tap *t)
{
	struct code_pops p;
	enum code_return how;

#define X(name, code, is)                                                                                    \
	tap_ok(t, code_after_call(before(name##_at)) == (is), #name " %s a call of i386 code",               \
		(is) ? "ends in" : "is not");
	CALLS32(X)
#undef X
#define X(name, code, is)                                                                                    \
	tap_ok(t, code_after_syscall(before(name##_at), true) == (is), #name " %s a system call of i386",    \
		(is) ? "ends in" : "is not");
	SYSCALLS32(X)
#undef X
#define X(name, code, want, before, behind)                                                                  \
	how = code_return32(word((uintptr_t)name##_at), &p);                                                 \
	if (!tap_ok(t, how == (want) && (!(want) || (p.skip == (before) && p.more == (behind))),             \
		    #name ": way %d, skip %d and %d", (want), (before), (behind)))                           \
		tap_diag("got way %d, skip %u and %u", how, p.skip, p.more);
	RETURNS32(X)
#undef X
	code_return32(word((uintptr_t)pops4_at), &p);
	tap_ok(t, p.bx, "a pop of EBX is reported");
	code_return32(word((uintptr_t)vsyscall_at), &p);
	tap_ok(t, !p.bx, "the code for system calls leaves EBX alone");
#define X(name, code, is)                                                                                    \
	tap_ok(t, code_sigreturn(word((uintptr_t)name##_at), true) == (is), #name ": trampoline %d", (is));
	SIGRETURNS32(X)
#undef X
	tap_ok(t, !code_sigreturn(word((uintptr_t)rt32_at), false),
		"a trampoline of i386 is none in x86-64 code");
}

int main(void)
{
	struct tap t = { 0 };

	test_calls(&t);
	test_returns(&t);
	test_narrow(&t);
	return tap_done(&t);
}
