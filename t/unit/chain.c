/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks are compared with the chain, so the chain is checked against a walk that
 * is independent of the kernel: a signal handler interrupts the spinning trigger
 * and follows the frame pointers itself.
 */
#include "base/tap.h"
#include "stackmap/chain.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>

#define FRAMES 300

static volatile uint64_t walked[FRAMES], stop;
static volatile size_t n_walked;
static volatile uint32_t spinning;

#ifdef __x86_64__
__attribute__((no_sanitize("address"))) static void on_alarm(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	const volatile struct chain_frame *f = (const struct chain_frame *)uc->uc_mcontext.gregs[REG_RBP];
	size_t n = 0;

	(void)sig, (void)info;
	if (!spinning || stop)
		return;
	walked[n++] = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
	for (; f && n < FRAMES; f = f->next)
		walked[n++] = f->ret;
	n_walked = n;
	stop = 1;
}

static void walk(struct chain_walk *w)
{
	stop = 0;
	n_walked = 0;
	w->trigger = CHAIN_SPIN;
	w->spin.stop = &stop;
	w->spin.armed = &spinning;
	w->spin.arm = 1;
	chain_run(w);
}

static bool names_agree(const struct chain_walk *w)
{
	for (size_t i = 0; i < CHAIN_FRAMES - 1; i++) {
		const char *name = chain_name(walked[i], NULL);

		if (!name || strcmp(name, chain_expect(w, i)) != 0) {
			tap_diag("frame %zu is %s, want %s", i, name ? name : "(none)", chain_expect(w, i));
			return false;
		}
	}
	return true;
}

static bool addresses_agree(const struct chain_walk *w)
{
	for (size_t i = 1; i < CHAIN_FRAMES; i++)
		if (walked[i] != w->frames[i])
			return false;
	return true;
}

static void test_families(struct tap *t)
{
	static const char *const names[] = { "north", "east", "south", "west" };

	for (unsigned int f = CHAIN_NORTH; f <= CHAIN_WEST; f++) {
		struct chain_walk w = { .family = (enum chain_family)f };

		walk(&w);
		tap_eq_u64(t, n_walked, CHAIN_FRAMES, "a walk ends at the root's caller");
		tap_ok(t, n_walked == CHAIN_FRAMES && names_agree(&w), "%s: the walked names are as expected",
			names[f]);
		tap_ok(t, n_walked == CHAIN_FRAMES && addresses_agree(&w),
			"%s: the walked addresses are those that the chain noted", names[f]);
		tap_eq_u64(t, w.depth, 0, "every function of the chain has returned");
	}
}

static void test_tail(struct tap *t)
{
	static const struct chain_frame last = { NULL, 0x2222 }, first = { &last, 0x1111 };
	struct chain_walk w = { .family = CHAIN_NORTH, .tail = &first };

	walk(&w);
	tap_eq_u64(t, n_walked, CHAIN_FRAMES + 2, "a tail of two frames makes the walk two frames longer");
	tap_ok(t, walked[CHAIN_FRAMES] == 0x1111 && walked[CHAIN_FRAMES + 1] == 0x2222,
		"the tail's return addresses are the outermost frames");
}

static void test_deep(struct tap *t)
{
	struct chain_walk w = { .family = CHAIN_DEEP };

	walk(&w);
	/* the trigger, each call, the root and its caller */
	tap_eq_u64(t, n_walked, CHAIN_DEEP_FRAMES + 3, "the recursive chain has the expected depth");
	tap_ok(t, names_agree(&w), "the inner frames of the recursive chain have the expected names");
	tap_eq_str(t, chain_name(walked[CHAIN_DEEP_FRAMES], NULL), "chain_deep",
		"the outermost recursive frame is chain_deep()");
	tap_eq_str(t, chain_name(walked[CHAIN_DEEP_FRAMES + 1], NULL), "chain_run",
		"the frame above the recursive ones is the root");
}

static void start_clock(void)
{
	struct sigaction sa = { .sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct itimerval every = { { 0, 1000 }, { 0, 1000 } };

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

static void test_walks(struct tap *t)
{
	struct itimerval never = { { 0, 0 }, { 0, 0 } };

	start_clock();
	test_families(t);
	test_tail(t);
	test_deep(t);
	setitimer(ITIMER_REAL, &never, NULL);
}
#else
static void test_walks(struct tap *t)
{
	tap_skip(t, "walks", "frame pointers are followed on x86-64 only");
}
#endif

static void test_names(struct tap *t)
{
	uint64_t offset = 99;

	tap_eq_str(t, chain_name(chain_probe_address(), &offset), "chain_probe",
		"the first byte of the probe has its name");
	tap_eq_u64(t, offset, 0, "the first byte of the probe is at offset 0");
	tap_eq_str(
		t, chain_name((uint64_t)(uintptr_t)syscall, &offset), "syscall", "libc's syscall() is known");
	tap_ok(t, !chain_name(0, NULL), "address 0 has no name");
	tap_ok(t, !chain_name((uint64_t)(uintptr_t)test_names, NULL),
		"a function outside the chain has no name");
	tap_ok(t, !chain_name((uint64_t)(uintptr_t)strlen, NULL), "another function of libc has no name");
	tap_eq_u64(t, chain_syscall_nr(CHAIN_GETPGID), SYS_getpgid, "the first trigger calls getpgid()");
	tap_eq_u64(t, chain_syscall_nr(CHAIN_SLEEP), SYS_nanosleep, "the sleeping trigger calls nanosleep()");
	tap_eq_u64(t, chain_syscall_nr(CHAIN_SPIN), 0, "the spinning trigger makes no system call");
}

/* The kernel determines the value of a hash: the tool's BPF_F_FAST_STACK_CMP case compares with it. */
static void test_hash(struct tap *t)
{
	uint64_t a[] = { 1, 2, 3, 4, 5 }, b[] = { 1, 2, 3, 4, 5 };
	bool differs = true;

	tap_eq_u64(t, chain_hash(a, 5), chain_hash(b, 5), "equal stacks have equal hashes");
	for (size_t i = 0; i < 5; i++) {
		b[i] ^= UINT64_C(1) << 40;
		differs = differs && chain_hash(a, 5) != chain_hash(b, 5);
		b[i] = a[i];
	}
	tap_ok(t, differs, "a changed bit of any frame changes the hash");
	tap_ok(t, chain_hash(a, 4) != chain_hash(a, 5), "a stack and its beginning have different hashes");
}

int main(void)
{
	struct tap t = { 0 };

	test_walks(&t);
	test_names(&t);
	test_hash(&t);
	return tap_done(&t);
}
