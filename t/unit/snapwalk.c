/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks snapshots of this program's own stack by the tables of the files that
 * it maps, and compares with libgcc's unwinder. Then walks made-up and malformed
 * snapshots.
 */
#include "../lib/self.h"
#include "base/tap.h"
#include "capture/types.h"
#include "unwind/compile.h"
#include "unwind/walk.h"
#include "unwind/x86.h"

#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>

#define DEPTH 64

/* --- this program --- */

struct module {
	uint64_t bias, start, end; /* of the whole file in memory */
	uint8_t *bytes;
	struct unwindtab tab;
};

static struct module modules[16];
static size_t n_modules;

static int add_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct module *m = &modules[n_modules];
	const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
	struct elffile *f = NULL;
	size_t len;

	(void)size, (void)arg;
	if (n_modules == ARRAY_LEN(modules) || elffile_open(AT_FDCWD, path, false, &f, NULL) != 0)
		return 0;
	*m = (struct module){ .bias = info->dlpi_addr, .start = UINT64_MAX };
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD)
			continue;
		m->start = MIN(m->start, m->bias + p->p_vaddr);
		m->end = MAX(m->end, m->bias + p->p_vaddr + p->p_memsz);
	}
	if (unwindcomp(f, &m->bytes, &len, NULL) == 0 && unwindtab_view(m->bytes, len, &m->tab, NULL) == 0)
		n_modules++;
	elffile_close(f);
	return 0;
}

static enum snapwalk_code find_own(void *ctx, uint64_t pc, const struct unwind_rule **rule)
{
	(void)ctx;
	for (size_t i = 0; i < n_modules; i++) {
		const struct module *m = &modules[i];

		if (pc < m->start || pc >= m->end)
			continue;
		*rule = unwindtab_find(&m->tab, pc - m->bias, NULL, NULL);
		return SNAPWALK_TABLE;
	}
	return SNAPWALK_NO_MAPPING;
}

struct shot {
	__u64 regs[OFFCPU_SNAPSHOT_REGS];
	uint8_t stack[OFFCPU_SNAPSHOT_BYTES];
	uint64_t from, len;
	void *want[DEPTH]; /* libgcc's frames: the first is inside shoot() */
	int n_want;
};

static struct shot shot;

/* Copy page by page until one is not mapped. process_vm_readv(2) ignores a sanitizer's red zones. */
static void copy_stack(struct shot *s)
{
	s->from = s->regs[19];
	for (s->len = 0; s->len < sizeof(s->stack);) {
		uint64_t at = s->from + s->len, n = MIN(4096 - at % 4096, sizeof(s->stack) - s->len);
		struct iovec to = { s->stack + s->len, n }, from = { (void *)(uintptr_t)at, n };

		if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)n)
			return;
		s->len += n;
	}
}

static void set_regs(struct shot *s, const ucontext_t *uc)
{
	static const int order[OFFCPU_SNAPSHOT_REGS] = { REG_R15, REG_R14, REG_R13, REG_R12, REG_RBP, REG_RBX,
		REG_R11, REG_R10, REG_R9, REG_R8, REG_RAX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, -1, REG_RIP,
		-1, REG_EFL, REG_RSP, -1 };

	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		s->regs[i] = order[i] < 0 ? 0 : (__u64)uc->uc_mcontext.gregs[order[i]];
	s->regs[15] = (__u64)-1;
}

static void __attribute__((noinline)) shoot(void)
{
	ucontext_t uc;

	getcontext(&uc);
	set_regs(&shot, &uc);
	copy_stack(&shot);
	shot.n_want = self_frames(shot.want, DEPTH);
	__asm__ volatile("");
}

static volatile int sink;

static void __attribute__((noinline)) deep(int n)
{
	if (n)
		deep(n - 1);
	else
		shoot();
	sink++;
}

static int by_qsort(const void *a, const void *b)
{
	(void)a, (void)b;
	if (!shot.n_want)
		deep(2);
	return 0;
}

static void on_signal(int sig)
{
	(void)sig;
	shoot();
	sink++;
}

static void walk_shot(struct snapwalk_end *end, __u64 *frames, uint32_t depth, uint64_t len)
{
	const struct snapwalk_opts opts = { .depth = depth, .find = find_own };
	const struct snapwalk_area stack = { .bytes = shot.stack, .from = shot.from, .len = len };
	const struct snapwalk_memory memory = { .areas = &stack, .n = 1 };

	snapwalk(&opts, shot.regs, &memory, frames, end);
}

/*
 * Does the walk agree with libgcc? Frame 0 is another place in the same function. libgcc may omit the last
 * frame, at which the walk knows that the stack ends.
 */
static bool agrees(const __u64 *frames, const struct snapwalk_end *end)
{
	if (end->verdict != VERDICT_COMPLETE || (uint32_t)shot.n_want > end->len ||
		(uint32_t)shot.n_want + 1 < end->len)
		return false;
	for (int i = 1; i < shot.n_want; i++)
		if ((frames[i] & ~OFFCPU_EXACT) != (uintptr_t)shot.want[i])
			return false;
	return true;
}

static void compare(struct tap *t, const char *name)
{
	__u64 frames[DEPTH];
	struct snapwalk_end end;

	walk_shot(&end, frames, DEPTH, shot.len);
	if (tap_ok(t, shot.n_want > 3 && agrees(frames, &end),
		    "%s: libgcc's unwinder finds the same %d frames", name, shot.n_want))
		return;
	tap_diag("verdict %u, reason %u, %u frames", end.verdict, end.reason, end.len);
	for (uint32_t i = 0; i < MAX(end.len, (uint32_t)shot.n_want); i++)
		tap_diag("%2u %12llx %12llx", i, i < end.len ? (unsigned long long)frames[i] : 0,
			i < (uint32_t)shot.n_want ? (unsigned long long)(uintptr_t)shot.want[i] : 0);
}

static void test_own(struct tap *t)
{
	__u64 frames[DEPTH];
	struct snapwalk_end end;
	uint64_t marks = 0, whole = 0, cut = 0;
	int two[2] = { 0 };

	dl_iterate_phdr(add_module, NULL);
	deep(20);
	compare(t, "twenty calls");
	walk_shot(&end, frames, 10, shot.len);
	tap_ok(t, end.verdict == VERDICT_TRUNCATED && end.len == 10,
		"a walk limited to ten frames is truncated");
	for (uint64_t len = 0; len <= shot.len; len += 8) {
		walk_shot(&end, frames, DEPTH, len);
		whole += end.verdict == VERDICT_COMPLETE;
		cut += end.verdict == VERDICT_STOPPED && end.reason == REASON_MEMORY;
	}
	tap_ok(t, whole && cut > 30 && whole + cut == shot.len / 8 + 1,
		"a snapshot cut at any place stops the walk for missing memory");
	walk_shot(&end, frames, DEPTH, 0);
	tap_ok(t, end.verdict == VERDICT_STOPPED && end.reason == REASON_MEMORY && end.len == 1,
		"a snapshot without memory gives the PC alone");
	shot.n_want = 0;
	qsort(two, 2, sizeof(two[0]), by_qsort);
	compare(t, "through libc");
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	compare(t, "in a signal handler");
	walk_shot(&end, frames, DEPTH, shot.len);
	for (uint32_t i = 0; i < end.len; i++)
		marks += frames[i] >> 63;
	tap_eq_u64(
		t, marks, 2, "the frame that the signal interrupted and its trampoline are marked as exact");
}

/* --- made-up tables and stacks --- */

struct made {
	struct unwind_rule rule; /* of every PC below 0x1000 */
	struct unwind_rule caller; /* of every PC from 0x1000 to 0x1fff */
	enum snapwalk_code code; /* of every PC from 0x2000 to 0xffff */
};

static enum snapwalk_code find_made(void *ctx, uint64_t pc, const struct unwind_rule **rule)
{
	const struct made *m = ctx;

	if (pc >= 0x10000)
		return SNAPWALK_NO_MAPPING;
	if (pc >= 0x2000)
		return m->code;
	*rule = pc < 0x1000 ? &m->rule : &m->caller;
	return SNAPWALK_TABLE;
}

#define CALL                                                                                                 \
	{                                                                                                    \
		.cfa = UNWIND_CFA_REG, .reg = 7, .cfa_off = 8, .ra = UNWIND_RA_CALL                          \
	}
#define END                                                                                                  \
	{                                                                                                    \
		.cfa = UNWIND_CFA_REG, .reg = 7, .ra = UNWIND_RA_END                                         \
	}

/* Walk from PC 0x100 over WORDS at 0x7000, where SP points. */
static struct snapwalk_end made_up(
	struct made m, const uint64_t *words, size_t n, uint64_t bottom, __u64 *frames)
{
	__u64 regs[OFFCPU_SNAPSHOT_REGS] = { [4] = 0x7010, [5] = 0x7008, [16] = 0x100, [19] = 0x7000 };
	const struct snapwalk_opts opts = { .depth = DEPTH, .find = find_made, .ctx = &m };
	const struct snapwalk_area stack = {
		.bytes = (const uint8_t *)words, .from = 0x7000, .len = n * sizeof(*words)
	};
	const struct snapwalk_memory memory = { .areas = &stack, .n = 1, .bottom = bottom };
	struct snapwalk_end end;

	snapwalk(&opts, regs, &memory, frames, &end);
	return end;
}

static void test_ends(struct tap *t)
{
	static const uint64_t words[] = { 0x1800, 0x1900, 0x1a00, 0 },
			      high[] = { UINT64_C(1) << 63 | 0x1000 };
	static const struct {
		const char *name;
		struct made made;
		uint64_t bottom;
		uint8_t verdict, reason;
		uint32_t len;
		enum snapwalk_code code;
	} cases[] = {
		{ "an end mark completes a walk", { .rule = CALL, .caller = END }, 0, VERDICT_COMPLETE, 0, 2,
			0 },
		{ "a return address of 0 completes a walk", { .rule = CALL, .caller = CALL }, 0,
			VERDICT_COMPLETE, 0, 4, 0 },
		{ "a walk stops at a PC without a row", { .rule = CALL }, 0, VERDICT_STOPPED, REASON_NO_ROW,
			2, SNAPWALK_TABLE },
		{ "a PC without a row at the main thread's first frame completes a walk", { .rule = CALL },
			0x7010, VERDICT_COMPLETE, 0, 2, 0 },
		{ "a walk stops at a PC without a row above the main thread's first frame", { .rule = CALL },
			0x7000, VERDICT_STOPPED, REASON_NO_ROW, 2, SNAPWALK_TABLE },
		{ "a walk stops at a CFA that does not go up",
			{ .rule = { .cfa = UNWIND_CFA_REG, .reg = 7, .ra = UNWIND_RA_AT_SP } }, 0,
			VERDICT_STOPPED, REASON_LOOP, 1, 0 },
		{ "a walk stops at an unsupported expression", { .rule = { .cfa = UNWIND_CFA_UNSUPPORTED } },
			0, VERDICT_STOPPED, REASON_EXPRESSION, 1, 0 },
		{ "a walk uses RBX, which is known in the innermost frame",
			{ .rule = { .cfa = UNWIND_CFA_REG, .reg = 3, .cfa_off = 8, .ra = UNWIND_RA_CALL },
				.caller = END },
			0, VERDICT_COMPLETE, 0, 2, 0 },
		{ "a walk stops at a register that is unknown in an outer frame",
			{ .rule = CALL,
				.caller = { .cfa = UNWIND_CFA_REG, .reg = 12, .ra = UNWIND_RA_CALL } },
			0, VERDICT_STOPPED, REASON_REGISTER, 2, 0 },
		{ "a walk stops at missing memory",
			{ .rule = { .cfa = UNWIND_CFA_DEREF,
				  .reg = 7,
				  .cfa_off = -8,
				  .ra = UNWIND_RA_CALL } },
			0, VERDICT_STOPPED, REASON_MEMORY, 1, 0 },
		{ "a walk stops at a row that is valid only inside a system call",
			{ .rule = { .cfa = UNWIND_CFA_REG,
				  .reg = 7,
				  .cfa_off = 8,
				  .ra = UNWIND_RA_CALL,
				  .flags = UNWIND_IN_SYSCALL } },
			0, VERDICT_STOPPED, REASON_NO_ROW, 1, SNAPWALK_TABLE },
	};
	__u64 frames[DEPTH];
	struct snapwalk_end end;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		end = made_up(cases[i].made, words, ARRAY_LEN(words), cases[i].bottom, frames);
		if (!tap_ok(t,
			    end.verdict == cases[i].verdict && end.reason == cases[i].reason &&
				    end.len == cases[i].len && end.code == cases[i].code,
			    "%s", cases[i].name))
			tap_diag("verdict %u, reason %u, code %u, %u frames", end.verdict, end.reason,
				end.code, end.len);
	}
	end = made_up((struct made){ .rule = CALL }, high, 1, 0, frames);
	tap_ok(t, end.reason == REASON_NO_MAPPING && end.len == 1,
		"a walk stops at a return address in the kernel's half of the address space");
}

static void test_codes(struct tap *t)
{
	static const uint64_t words[] = { 0x2800 };
	static const uint8_t reasons[] = { [SNAPWALK_NO_TABLE] = REASON_NO_FRAME_POINTER,
		[SNAPWALK_NO_MAPPING] = REASON_NO_MAPPING,
		[SNAPWALK_NOT_READY] = REASON_NOT_READY,
		[SNAPWALK_DROPPED] = REASON_DROPPED,
		[SNAPWALK_UNKNOWN] = REASON_NOT_READY };
	__u64 frames[DEPTH];

	for (enum snapwalk_code code = SNAPWALK_NO_TABLE; code <= SNAPWALK_UNKNOWN; code++) {
		struct snapwalk_end end =
			made_up((struct made){ .rule = CALL, .code = code }, words, 1, 0, frames);

		tap_ok(t,
			end.verdict == VERDICT_STOPPED && end.reason == reasons[code] && end.code == code &&
				end.len == (code == SNAPWALK_NO_MAPPING ? 1 : 2) && end.stop_pc == 0x2800,
			"a walk stops at code of kind %u and reports kind and address", code);
	}
}

/* --- by frame pointer --- */

/* The eight bytes at ADDR end with a call if ADDR is even. Code from 0x4000 on cannot be read. */
static bool code_made(void *ctx, uint64_t addr, uint64_t *word)
{
	(void)ctx;
	*word = addr & 1 ? 0 : UINT64_C(0xe8) << 24;
	return addr < 0x4000;
}

#define BIT(reg) (1u << (reg))

static void test_frame_pointers(struct tap *t)
{
	/*
	 * WORDS are the memory from SP (0x7000) on: the return address of a call, and from 0x7010 on frame
	 * pointers and return addresses in turn.
	 */
	static const struct {
		const char *name;
		struct made made;
		uint64_t words[6];
		uint64_t fp;
		uint32_t unknown;
		uint8_t verdict, reason;
		uint32_t len;
		uint64_t wanted;
	} cases[] = {
		{ "a frame pointer leads to code with a table",
			{ .rule = CALL, .caller = END, .code = SNAPWALK_NO_TABLE },
			{ 0x2800, 0, 0x7020, 0x1800 }, 0x7010, 0, VERDICT_UNVERIFIED, 0, 3, 0 },
		{ "frame pointers lead from frame to frame",
			{ .rule = CALL, .caller = END, .code = SNAPWALK_NO_TABLE },
			{ 0x2800, 0, 0x7020, 0x2900, 0x7030, 0x1800 }, 0x7010, 0, VERDICT_UNVERIFIED, 0, 4,
			0 },
		{ "a frame pointer leads on from a PC without a row", { .caller = END },
			{ 0, 0, 0x7020, 0x1800 }, 0x7010, 0, VERDICT_UNVERIFIED, 0, 2, 0 },
		{ "a frame pointer that leads to a return address of 0 gives an unverified stack",
			{ .rule = CALL, .code = SNAPWALK_NO_TABLE }, { 0x2800, 0, 0x7020, 0 }, 0x7010, 0,
			VERDICT_UNVERIFIED, 0, 2, 0 },
		{ "a frame pointer is not followed to an address that follows no call",
			{ .rule = CALL, .caller = END, .code = SNAPWALK_NO_TABLE },
			{ 0x2800, 0, 0x7020, 0x1801 }, 0x7010, 0, VERDICT_STOPPED, REASON_NO_FRAME_POINTER, 2,
			0 },
		{ "a frame pointer is not followed to code that cannot be read",
			{ .rule = CALL, .code = SNAPWALK_NO_TABLE }, { 0x2800, 0, 0x7020, 0x5000 }, 0x7010, 0,
			VERDICT_STOPPED, REASON_NO_FRAME_POINTER, 2, 0 },
		{ "a frame pointer is not followed to an unmapped address",
			{ .rule = CALL, .code = SNAPWALK_NO_TABLE }, { 0x2800, 0, 0x7020, 0x20000 }, 0x7010,
			0, VERDICT_STOPPED, REASON_NO_FRAME_POINTER, 2, 0 },
		{ "a frame pointer below SP is not followed",
			{ .rule = CALL, .caller = END, .code = SNAPWALK_NO_TABLE },
			{ 0x2800, 0, 0x7020, 0x1800 }, 0x7000, 0, VERDICT_STOPPED, REASON_NO_FRAME_POINTER, 2,
			0 },
		{ "an unaligned frame pointer is not followed",
			{ .rule = CALL, .caller = END, .code = SNAPWALK_NO_TABLE },
			{ 0x2800, 0, 0x7020, 0x1800 }, 0x7014, 0, VERDICT_STOPPED, REASON_NO_FRAME_POINTER, 2,
			0 },
		{ "a frame pointer is not followed after a row that lost it",
			{ .rule = { .cfa = UNWIND_CFA_REG,
				  .reg = 7,
				  .cfa_off = 8,
				  .fp = UNWIND_FP_UNKNOWN,
				  .ra = UNWIND_RA_CALL },
				.code = SNAPWALK_NO_TABLE },
			{ 0x2800, 0, 0x7020, 0x1800 }, 0x7010, 0, VERDICT_STOPPED, REASON_NO_FRAME_POINTER, 2,
			0 },
		{ "if no frame pointer leads on from a PC without a row, the reason is the row",
			{ .caller = END }, { 0, 0, 0x7020, 0x1801 }, 0x7010, 0, VERDICT_STOPPED,
			REASON_NO_ROW, 1, 0 },
		{ "missing memory is reported with its address", { .caller = END }, { 0 }, 0x7100, 0,
			VERDICT_STOPPED, REASON_NO_ROW, 1, 0x7100 },
		{ "an unknown frame pointer is reported as a missing register",
			{ .rule = CALL, .code = SNAPWALK_NO_TABLE }, { 0x2800, 0, 0x7020, 0x1800 }, 0x7010,
			BIT(6), VERDICT_STOPPED, REASON_REGISTER, 2, 0 },
		{ "a frame pointer that a row restores is known",
			{ .rule = { .cfa = UNWIND_CFA_REG,
				  .reg = 7,
				  .cfa_off = 16,
				  .fp = UNWIND_FP_CFA,
				  .fp_off = -16,
				  .ra = UNWIND_RA_CALL },
				.caller = END,
				.code = SNAPWALK_NO_TABLE },
			{ 0x7010, 0x2800, 0x7020, 0x1800 }, 0, BIT(6), VERDICT_UNVERIFIED, 0, 3, 0 },
		{ "a walk that stops after a frame pointer is unverified, with the reason",
			{ .rule = CALL, .code = SNAPWALK_NO_TABLE }, { 0x2800, 0, 0x7021, 0x2900 }, 0x7010, 0,
			VERDICT_UNVERIFIED, REASON_NO_FRAME_POINTER, 3, 0 },
		{ "a CFA by an unknown RBX is reported as a missing register",
			{ .rule = { .cfa = UNWIND_CFA_REG, .reg = 3, .ra = UNWIND_RA_CALL } }, { 0 }, 0,
			BIT(3), VERDICT_STOPPED, REASON_REGISTER, 1, 0 },
		{ "a return address in an unknown RDI is reported as a missing register",
			{ .rule = { .cfa = UNWIND_CFA_REG, .reg = 7, .ra = UNWIND_RA_REG, .ra_off = 5 } },
			{ 0 }, 0, BIT(5), VERDICT_STOPPED, REASON_REGISTER, 1, 0 },
	};
	__u64 frames[DEPTH];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct made m = cases[i].made;
		const __u64 regs[OFFCPU_SNAPSHOT_REGS] = { [4] = cases[i].fp, [16] = 0x100, [19] = 0x7000 };
		/* two adjacent areas: frames may cross their border */
		const struct snapwalk_area areas[] = {
			{ .bytes = (const uint8_t *)cases[i].words, .from = 0x7000, .len = 16 },
			{ .bytes = (const uint8_t *)(cases[i].words + 2), .from = 0x7010, .len = 32 }
		};
		const struct snapwalk_memory memory = { .areas = areas, .n = ARRAY_LEN(areas) };
		const struct snapwalk_opts opts = { .depth = DEPTH,
			.unknown = cases[i].unknown,
			.find = find_made,
			.code = code_made,
			.ctx = &m };
		struct snapwalk_end end;

		snapwalk(&opts, regs, &memory, frames, &end);
		if (!tap_ok(t,
			    end.verdict == cases[i].verdict && end.reason == cases[i].reason &&
				    end.len == cases[i].len && end.missed == !!cases[i].wanted &&
				    (!end.missed || end.wanted == cases[i].wanted) && !end.last_exact,
			    "%s", cases[i].name))
			tap_diag("verdict %u, reason %u, %u frames, wanted %d %llx", end.verdict, end.reason,
				end.len, end.missed, (unsigned long long)end.wanted);
	}
}

/*
 * The return address that a new stack was given may be the first byte of a function: the row of that byte is
 * the end mark, not the row of the byte before.
 */
static enum snapwalk_code find_first_byte(void *ctx, uint64_t pc, const struct unwind_rule **rule)
{
	static const struct unwind_rule call = CALL, end = END;

	(void)ctx;
	*rule = pc == 0x100 ? &call : pc == 0x1800 ? &end : NULL;
	return SNAPWALK_TABLE;
}

static void test_first_byte(struct tap *t)
{
	static const __u64 regs[OFFCPU_SNAPSHOT_REGS] = { [16] = 0x100, [19] = 0x7000 };
	static const uint64_t words[] = { 0x1800 };
	const struct snapwalk_area stack = {
		.bytes = (const uint8_t *)words, .from = 0x7000, .len = sizeof(words)
	};
	const struct snapwalk_memory memory = { .areas = &stack, .n = 1 };
	const struct snapwalk_opts opts = { .depth = DEPTH, .find = find_first_byte, .code = code_made };
	__u64 frames[DEPTH];
	struct snapwalk_end end;

	snapwalk(&opts, regs, &memory, frames, &end);
	tap_ok(t, end.verdict == VERDICT_COMPLETE && end.len == 2 && frames[1] == 0x1800 && end.last_exact,
		"an end mark at a function's first byte is recognized, and its frame is exact");
}

/* --- stacks of a Go program --- */

enum { GO_WORDS = 128 };
#define GO_AT(addr) (((addr)-0x7000) / 8)
#define GO_SAVED                                                                                             \
	{                                                                                                    \
		.cfa = UNWIND_CFA_GO_SAVED, .fp_off = 8, .ra_off = 8                                         \
	}
/* g is at fs:-8, its m at 0x30, the other goroutine at 0xc0 of that, sched.sp at 0x38 */
#define GO_TLS(kind, size)                                                                                   \
	{                                                                                                    \
		.cfa = UNWIND_CFA_GO_TLS, .reg = (kind), .cfa_off = -8, .fp_off = 0xc0 << 16 | 0x30,         \
		.ra_off = 0x38 << 16 | (size)                                                                \
	}

/*
 * A stack at 0x7000; a goroutine at 0x7040 whose stack is from 0x7080 to 0x7100
 * and waits at 0x70c0; g at 0x7210 and m at 0x7280, by TLS at 0x7200.
 */
static void make_go(uint64_t *w)
{
	memset(w, 0, GO_WORDS * sizeof(*w));
	w[GO_AT(0x7000)] = 0x7040;
	w[GO_AT(0x7008)] = 0x40;
	w[GO_AT(0x7040)] = 0x7080;
	w[GO_AT(0x7048)] = 0x7100;
	w[GO_AT(0x7040 + 0x30)] = 0x7280;
	w[GO_AT(0x7040 + 0x38)] = 0x70c0;
	w[GO_AT(0x70c0)] = 0x1800;
	w[GO_AT(0x71f8)] = 0x7210;
	w[GO_AT(0x7210 + 0x30)] = 0x7280;
	w[GO_AT(0x7280 + 0xc0)] = 0x7040;
}

static struct snapwalk_end go_walk(struct made m, const uint64_t *words, size_t n, uint64_t tls)
{
	__u64 regs[OFFCPU_SNAPSHOT_REGS] = { [4] = 0x7010, [16] = 0x100, [19] = 0x7000 }, frames[DEPTH];
	const struct snapwalk_opts opts = { .depth = DEPTH, .tls = tls, .find = find_made, .ctx = &m };
	const struct snapwalk_area stack = { (const uint8_t *)words, 0x7000, n * sizeof(*words) };
	const struct snapwalk_memory memory = { .areas = &stack, .n = 1 };
	struct snapwalk_end end;

	snapwalk(&opts, regs, &memory, frames, &end);
	return end;
}

static void test_go(struct tap *t)
{
	static const struct {
		const char *name;
		struct made made;
		uint64_t at, value; /* a word that is changed; 0 = none */
		uint8_t verdict, reason;
		uint32_t len;
	} cases[] = {
		{ "from a call into C to the goroutine", { .rule = GO_SAVED, .caller = END }, 0, 0,
			VERDICT_COMPLETE, 0, 2 },
		{ "not below the goroutine's stack", { .rule = GO_SAVED, .caller = END }, 0x7008, 0x80,
			VERDICT_STOPPED, REASON_LOOP, 1 },
		{ "not above the goroutine's stack", { .rule = GO_SAVED, .caller = END }, 0x7008,
			(uint64_t)-8, VERDICT_STOPPED, REASON_LOOP, 1 },
		{ "not to an odd address", { .rule = GO_SAVED, .caller = END }, 0x7008, 0x41, VERDICT_STOPPED,
			REASON_LOOP, 1 },
		{ "not by a goroutine that cannot be read", { .rule = GO_SAVED, .caller = END }, 0x7000,
			0x90000, VERDICT_STOPPED, REASON_MEMORY, 1 },
		{ "from systemstack to the goroutine",
			{ .rule = GO_TLS(UNWIND_GO_GOROUTINE, 8), .caller = END }, 0, 0, VERDICT_COMPLETE, 0,
			2 },
		{ "systemstack without a goroutine ends the stack",
			{ .rule = GO_TLS(UNWIND_GO_GOROUTINE, 8), .caller = END }, 0x7340, 0,
			VERDICT_COMPLETE, 0, 1 },
		{ "not to a goroutine of another thread",
			{ .rule = GO_TLS(UNWIND_GO_GOROUTINE, 8), .caller = END }, 0x7070, 0x7288,
			VERDICT_STOPPED, REASON_LOOP, 1 },
		{ "not to a place outside the goroutine's stack",
			{ .rule = GO_TLS(UNWIND_GO_GOROUTINE, 8), .caller = END }, 0x7078, 0x7108,
			VERDICT_STOPPED, REASON_LOOP, 1 },
		{ "not through systemstack twice",
			{ .rule = GO_TLS(UNWIND_GO_GOROUTINE, 8), .caller = GO_TLS(UNWIND_GO_GOROUTINE, 8) },
			0, 0, VERDICT_STOPPED, REASON_EXPRESSION, 2 },
		{ "morestack with a goroutine stops the walk",
			{ .rule = GO_TLS(UNWIND_GO_MORE, 8), .caller = END }, 0, 0, VERDICT_STOPPED,
			REASON_EXPRESSION, 1 },
		{ "morestack without one ends the stack",
			{ .rule = GO_TLS(UNWIND_GO_MORE, 8), .caller = END }, 0x7340, 0, VERDICT_COMPLETE, 0,
			1 },
		{ "a call from C without the thread's own stack",
			{ .rule = GO_TLS(UNWIND_GO_CALLBACK, 8), .caller = END }, 0x7340, 0, VERDICT_STOPPED,
			REASON_LOOP, 1 },
		{ "from a call from C to the thread's own stack",
			{ .rule = GO_TLS(UNWIND_GO_CALLBACK, 8), .caller = END }, 0, 0, VERDICT_COMPLETE, 0,
			2 },
	};
	uint64_t w[GO_WORDS];
	struct made nested = { .rule = GO_TLS(UNWIND_GO_CALLBACK, 16),
		.caller = GO_TLS(UNWIND_GO_CALLBACK, 16) };
	struct made framed = { .rule = GO_SAVED,
		.caller = { .cfa = UNWIND_CFA_REG, .reg = 6, .ra = UNWIND_RA_CALL } };
	struct made copies = {
		.rule = CALL, .caller = GO_TLS(UNWIND_GO_MORE, 8), .code = SNAPWALK_NOT_READY
	};
	struct snapwalk_end end;
	bool stops = true;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		make_go(w);
		if (cases[i].at)
			w[GO_AT(cases[i].at)] = cases[i].value;
		end = go_walk(cases[i].made, w, GO_WORDS, 0x7200);
		if (!tap_ok(t,
			    end.verdict == cases[i].verdict && end.reason == cases[i].reason &&
				    end.len == cases[i].len,
			    "Go: %s", cases[i].name))
			tap_diag("verdict %u, reason %u, %u frames", end.verdict, end.reason, end.len);
	}
	copies.rule.flags = UNWIND_GO_COPIES;
	make_go(w);
	end = go_walk(cases[5].made, w, GO_WORDS, 0);
	tap_ok(t, end.verdict == VERDICT_STOPPED && end.reason == REASON_REGISTER,
		"Go: without TLS the walk stops at systemstack");
	for (size_t n = 8; n < GO_AT(0x7348); n++) {
		end = go_walk(cases[5].made, w, n, 0x7200);
		stops = stops && end.verdict == VERDICT_STOPPED && end.reason == REASON_MEMORY;
	}
	tap_ok(t, stops, "Go: a copy without one of the words stops the walk");
	/* the first frame's stack pointer is 0x70c0, where the second one's is stored; that one ends in 0 */
	w[GO_AT(0x70c0)] = 0x70e0;
	w[GO_AT(0x70c8)] = 0x1800;
	end = go_walk(nested, w, GO_WORDS, 0x7200);
	tap_ok(t, end.verdict == VERDICT_COMPLETE && end.len == 2, "Go: a call from C inside another one");
	w[GO_AT(0x70e8)] = 0x1900;
	end = go_walk(nested, w, GO_WORDS, 0x7200);
	tap_ok(t, end.verdict == VERDICT_STOPPED && end.reason == REASON_MEMORY && end.len == 3,
		"Go: without a stored stack pointer the next one stops the walk");
	/* the goroutine has: stack pointer, PC, itself */
	make_go(w);
	w[GO_AT(0x7000)] = 0x1800;
	w[GO_AT(0x7080)] = 0x2100;
	w[GO_AT(0x7088)] = 0x7040;
	end = go_walk(copies, w, GO_WORDS, 0x7200);
	tap_ok(t, end.verdict == VERDICT_STOPPED && end.reason == REASON_NOT_READY && end.stop_pc == 0x2100,
		"Go: from morestack, where it moves the goroutine's stack, to the goroutine");
	w[GO_AT(0x7088)] = 0x7048;
	end = go_walk(copies, w, GO_WORDS, 0x7200);
	tap_ok(t, end.verdict == VERDICT_STOPPED && end.reason == REASON_LOOP && end.len == 2,
		"Go: not if what it has saved is not known to be its own");
	copies.rule.flags = 0;
	w[GO_AT(0x7088)] = 0x7040;
	end = go_walk(copies, w, GO_WORDS, 0x7200);
	tap_ok(t, end.verdict == VERDICT_STOPPED && end.reason == REASON_EXPRESSION && end.len == 2,
		"Go: not if morestack may do something else");
	/* the caller's frame pointer lies below the return address */
	make_go(w);
	framed.rule.fp = UNWIND_FP_CFA;
	w[GO_AT(0x70b8)] = 0x70f8;
	end = go_walk(framed, w, GO_WORDS, 0x7200);
	tap_ok(t, end.verdict == VERDICT_COMPLETE && end.len == 2,
		"Go: the frame pointer is the goroutine's");
}

/* --- i386 code --- */

#define CS 17
#define USER32 0x23

/* Code at 0x3000 that makes a system call and then pops EBP, EDX and ECX: the kernel's. */
static bool narrow_code(void *ctx, uint64_t addr, uint64_t *word)
{
	const uint64_t *leaves = ctx;

	*word = addr == 0x3000 - 8   ? UINT64_C(0x80cd) << 48
		: addr == 0x3000     ? *leaves
		: addr == 0x1800 - 8 ? UINT64_C(0xe8) << 24
				     : 0;
	return true;
}

struct narrow_made {
	uint64_t code; /* at 0x3000; first, for narrow_code() */
	struct unwind_rule rule, caller; /* below 0x1000, and from there to 0x1fff */
};

static enum snapwalk_code find_narrow(void *ctx, uint64_t pc, const struct unwind_rule **rule)
{
	const struct narrow_made *m = ctx;

	if (pc >= 0x2000)
		return pc < 0x4000 ? SNAPWALK_NO_TABLE : SNAPWALK_NO_MAPPING;
	*rule = pc < 0x1000 ? &m->rule : &m->caller;
	return SNAPWALK_TABLE;
}

#define CALL4                                                                                                \
	{                                                                                                    \
		.cfa = UNWIND_CFA_REG, .reg = 7, .cfa_off = 4, .ra = UNWIND_RA_CALL, .flags = UNWIND_WORD4   \
	}
#define END4                                                                                                 \
	{                                                                                                    \
		.cfa = UNWIND_CFA_REG, .reg = 7, .ra = UNWIND_RA_END, .flags = UNWIND_WORD4                  \
	}
#define VSYSCALL UINT64_C(0xc3595a5d)

static void test_narrow(struct tap *t)
{
	static const struct {
		const char *name;
		struct narrow_made made;
		uint64_t pc;
		uint32_t words[6];
		uint64_t cs;
		uint8_t verdict, reason;
		uint32_t len;
		__u64 second, third; /* frames */
	} cases[] = {
		{ "words of i386 code have 4 bytes", { .rule = CALL4, .caller = END4 }, 0x100,
			{ 0x1800, 0x1900 }, USER32, VERDICT_COMPLETE, 0, 2, 0x1800, 0 },
		{ "the last word before the end of memory is read", { .rule = CALL4, .caller = CALL4 }, 0x100,
			{ 0x1800, 0x1900, 0x1a00, 0x1b00, 0x1c00, 0 }, USER32, VERDICT_COMPLETE, 0, 6, 0x1800,
			0x1900 },
		{ "only the low half of a register counts",
			{ .rule = { .cfa = UNWIND_CFA_REG,
				  .reg = 3,
				  .cfa_off = 8,
				  .ra = UNWIND_RA_CALL,
				  .flags = UNWIND_WORD4 },
				.caller = END4 },
			0x100, { 0, 0x1800 }, USER32, VERDICT_COMPLETE, 0, 2, 0x1800, 0 },
		{ "an entry of a PLT has pushed 4 bytes",
			{ .rule = { .cfa = UNWIND_CFA_PLT,
				  .reg = 7,
				  .cfa_off = 4,
				  .ra_off = 11,
				  .flags = UNWIND_WORD4 },
				.caller = END4 },
			0x10b, { 0, 0x1800 }, USER32, VERDICT_COMPLETE, 0, 2, 0x1800, 0 },
		{ "the kernel's code for system calls proves its caller",
			{ .code = VSYSCALL, .caller = END4 }, 0x3000, { 0x7010, 1, 2, 0x1800 }, USER32,
			VERDICT_COMPLETE, 0, 2, 0x1800, 0 },
		{ "and restores the frame pointer",
			{ .code = VSYSCALL,
				.caller = { .cfa = UNWIND_CFA_REG,
					.reg = 6,
					.cfa_off = 4,
					.ra = UNWIND_RA_CALL,
					.flags = UNWIND_WORD4 } },
			0x3000, { 0x7010, 1, 2, 0x1800, 0 }, USER32, VERDICT_COMPLETE, 0, 2, 0x1800, 0 },
		{ "a system call in a function without CFI that has pushed nothing",
			{ .code = 0x90, .caller = END4 }, 0x3000, { 0x1800 }, USER32, VERDICT_STOPPED,
			REASON_NO_FRAME_POINTER, 1, 0, 0 },
		{ "a table of x86-64 is not for a walk of i386 code", { .rule = CALL, .caller = END }, 0x100,
			{ 0x1800, 0 }, USER32, VERDICT_STOPPED, REASON_COMPAT, 1, 0, 0 },
		{ "nor its end", { .rule = END }, 0x100, { 0x1800, 0 }, USER32, VERDICT_STOPPED,
			REASON_COMPAT, 1, 0, 0 },
		{ "a table of i386 is not for a walk of x86-64 code", { .rule = CALL4, .caller = END4 },
			0x100, { 0x1800, 0 }, 0x33, VERDICT_STOPPED, REASON_COMPAT, 1, 0, 0 },
		{ "a signal's frame has an i386 sigcontext",
			{ .rule = { .cfa = UNWIND_CFA_DEREF,
				  .reg = 7,
				  .cfa_off = 4,
				  .fp = UNWIND_FP_AT_SP,
				  .fp_off = 8,
				  .ra = UNWIND_RA_AT_SP,
				  .ra_off = 12,
				  .flags = UNWIND_SIGNAL | UNWIND_WORD4 },
				/* EBX is 32 - 28 bytes above the stack pointer in it */
				.caller = { .cfa = UNWIND_CFA_REG,
					.reg = 3,
					.cfa_off = 4,
					.ra = UNWIND_RA_CALL,
					.flags = UNWIND_WORD4 } },
			0x100, { 0, 0x7000, 0x7010, 0x1800, 0, 0 }, USER32, VERDICT_COMPLETE, 0, 2,
			0x1800 | OFFCPU_EXACT, 0 },
	};
	__u64 frames[DEPTH];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct narrow_made m = cases[i].made;
		const uint64_t junk = UINT64_C(0xabcd) << 32;
		const __u64 regs[OFFCPU_SNAPSHOT_REGS] = { [4] = junk | 0x7000,
			[5] = (cases[i].cs == USER32 ? junk : 0) | 0x7000,
			[16] = cases[i].pc,
			[CS] = cases[i].cs,
			[19] = 0x7000 };
		const struct snapwalk_area stack = { .bytes = (const uint8_t *)cases[i].words,
			.from = 0x7000,
			.len = sizeof(cases[i].words) };
		const struct snapwalk_memory memory = { .areas = &stack, .n = 1 };
		const struct snapwalk_opts opts = {
			.depth = DEPTH, .find = find_narrow, .code = narrow_code, .no_fp = true, .ctx = &m
		};
		struct snapwalk_end end;

		memset(frames, 0, sizeof(frames));
		snapwalk(&opts, regs, &memory, frames, &end);
		if (!tap_ok(t,
			    end.verdict == cases[i].verdict && end.reason == cases[i].reason &&
				    end.len == cases[i].len &&
				    (end.len < 2 || frames[1] == cases[i].second) &&
				    (!cases[i].third || frames[2] == cases[i].third),
			    "i386: %s", cases[i].name))
			tap_diag("verdict %u, reason %u, %u frames, %llx %llx", end.verdict, end.reason,
				end.len, (unsigned long long)frames[1], (unsigned long long)frames[2]);
	}
}

int main(void)
{
	struct tap t = { 0 };

	test_own(&t);
	test_narrow(&t);
	test_ends(&t);
	test_go(&t);
	test_codes(&t);
	test_frame_pointers(&t);
	test_first_byte(&t);
	for (size_t i = 0; i < n_modules; i++)
		free(modules[i].bytes);
	return tap_done(&t);
}
