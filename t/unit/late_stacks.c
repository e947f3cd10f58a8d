/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Snapshots of this process, taken as BPF takes them: which are walked and when, and the other answers. */
#include "../lib/self.h"
#include "base/tap.h"
#include "capture/reader.h"
#include "record/late_stacks.h"
#include "system/proc.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>

#define DEPTH 64
#define LATE UINT64_C(3000000000)

struct all {
	struct late_stacks *snaps;
	struct process_table *procs;
	struct tableset *tables;
	struct stack_table *stacks;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static struct offcpu_ev_snapshot shot;
static void *want[DEPTH];
static int n_want;

/* Take a snapshot of the caller's registers and stack, as bpf/offcpu_snapshot.bpf.h does. */
static void __attribute__((noinline)) shoot(void)
{
	static const int order[OFFCPU_SNAPSHOT_REGS] = { REG_R15, REG_R14, REG_R13, REG_R12, REG_RBP, REG_RBX,
		REG_R11, REG_R10, REG_R9, REG_R8, REG_RAX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_EFL,
		REG_RIP, REG_EFL, REG_EFL, REG_RSP, REG_EFL };
	ucontext_t uc;

	getcontext(&uc);
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		shot.regs[i] = (__u64)uc.uc_mcontext.gregs[order[i]];
	shot.from = shot.regs[19] & ~(OFFCPU_SNAPSHOT_PIECE - 1ull);
	for (shot.bytes = 0; shot.bytes < OFFCPU_SNAPSHOT_BYTES; shot.bytes += OFFCPU_SNAPSHOT_PIECE) {
		struct iovec to = { shot.stack + shot.bytes, OFFCPU_SNAPSHOT_PIECE },
			     from = { (void *)(uintptr_t)(shot.from + shot.bytes), OFFCPU_SNAPSHOT_PIECE };

		if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != OFFCPU_SNAPSHOT_PIECE)
			break;
	}
	n_want = self_frames(want, DEPTH);
	shot.type = OFFCPU_EV_SNAPSHOT;
	shot.tgid = (uint32_t)getpid();
	shot.time_ns = now_ns();
	__asm__ volatile("");
}

static struct offcpu_stack_id add(struct all *a, uint64_t number)
{
	shot.id = (struct offcpu_stack_id){ 1000 + number, 1 };
	shot.walked = (struct offcpu_stack_id){ 2000 + number, 2 };
	late_stacks_add(a->snaps, &shot);
	return shot.id;
}

static void walk(struct all *a, uint64_t settled_ns, bool last)
{
	const struct late_stacks_by by = { .procs = a->procs,
		.tables = a->tables,
		.stacks = a->stacks,
		.settled_ns = settled_ns,
		.late_ns = 2000000000 };

	tableset_service(a->tables, 2000);
	tableset_applied(a->tables);
	late_stacks_walk(a->snaps, &by, last);
}

static bool same(const struct offcpu_stack_id *a, uint64_t hi, uint64_t lo)
{
	return a->hi == hi && a->lo == lo;
}

/* The stack of ID, as written to a capture and read back. It belongs to *C, which the caller frees. */
static const struct cap_stack *written(struct all *a, const struct offcpu_stack_id *id, struct cap_reader **c)
{
	char path[] = "/tmp/unit-late_stacks.XXXXXX";
	struct cap_writer *w = NULL;

	close(mkstemp(path));
	if (cap_writer_open(path, true, &w, NULL) != 0)
		abort();
	stack_table_emit(a->stacks, CAPTURE_STACK_USER, id, w, NULL);
	if (cap_writer_finish(w, &(struct cap_trailer){ .stop_ns = 2, .why = "end" }, NULL) != 0 ||
		cap_reader_load(path, c, NULL) != 0)
		abort();
	cap_writer_close(w);
	unlink(path);
	return (*c)->n_stacks == 1 ? &(*c)->stacks[0] : NULL;
}

static bool as_libgcc(const struct cap_stack *s)
{
	if (!s || s->verdict != VERDICT_COMPLETE || s->len < (uint32_t)n_want)
		return false;
	for (int i = 1; i < n_want; i++)
		if (s->frames[i] != (uintptr_t)want[i])
			return false;
	return true;
}

static void test_walked(struct tap *t, struct all *a)
{
	struct offcpu_stack_id id, first, other = { 77, 78 };
	struct late_stacks_stats st;
	struct cap_reader *c;

	shoot();
	first = id = add(a, 1);
	tap_ok(t, late_stacks_due_ns(a->snaps) != UINT64_MAX, "a new snapshot is due to be walked");
	tap_ok(t, !late_stacks_answer(a->snaps, &id) && same(&id, first.hi, first.lo),
		"a snapshot has no answer before it is walked");
	tap_ok(t, late_stacks_answer(a->snaps, &other) && same(&other, 77, 78),
		"an id that is not a snapshot's is not changed");
	/* at least twice: the first walk requests the tables */
	for (int i = 0; i < 50 && !late_stacks_answer(a->snaps, &id); i++, usleep(5000))
		walk(a, now_ns(), false);
	late_stacks_stats(a->snaps, &st);
	tap_ok(t, st.complete == 1 && !same(&id, first.hi, first.lo) && !same(&id, 2001, 2),
		"a snapshot is walked when its tables have arrived");
	tap_ok(t, as_libgcc(written(a, &id, &c)),
		"a walked snapshot has the frames that libgcc's unwinder finds");
	cap_reader_free(c);
	tap_ok(t, late_stacks_due_ns(a->snaps) == UINT64_MAX,
		"no walk is due after the last snapshot was walked");
	other = add(a, 2);
	usleep(10000);
	walk(a, now_ns(), false);
	tap_ok(t, late_stacks_answer(a->snaps, &other) && same(&other, id.hi, id.lo),
		"a second snapshot of the same stack has the same id");
	late_stacks_tidy(a->snaps);
	tap_ok(t, late_stacks_answer(a->snaps, &first) && first.hi == 1001,
		"an answer that was given is forgotten by late_stacks_tidy()");
}

/* As if the thread were in code without a table, which was called where shoot() is. */
static void test_code(struct tap *t, struct all *a, uint64_t page)
{
	static const struct {
		uint64_t before, after;
		bool walked;
		const char *name;
	} cases[] = {
		{ 0, 0xc3, true, "code that returns, at the PC of a snapshot, proves the caller" },
		{ 0, 0x90, false, "code that goes on proves nothing: the stack is the one that BPF found" },
		{ UINT64_C(0x050f) << 48, 0, false,
			"nor does a system call, as the caller's code is not there" },
	};
	const size_t piece = OFFCPU_SNAPSHOT_PIECE;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct offcpu_stack_id id;
		struct cap_reader *c = NULL;
		const struct cap_stack *s = NULL;
		uint64_t caller, sp;

		/* its first stack, as written() requires */
		stack_table_free(a->stacks);
		if (stack_table_new(DEPTH, &a->stacks, NULL) != 0)
			abort();
		stack_table_marked(a->stacks);
		shoot();
		caller = shot.regs[16];
		/* room below SP */
		shot.from -= piece;
		memmove(shot.stack + piece, shot.stack, sizeof(shot.stack) - piece);
		shot.bytes = (uint32_t)MIN(shot.bytes + piece, sizeof(shot.stack));
		sp = shot.regs[19] -= sizeof(caller);
		memcpy(shot.stack + (sp - shot.from), &caller, sizeof(caller));
		shot.regs[16] = page + 16;
		shot.code_before = cases[i].before;
		shot.code_after = cases[i].after;
		id = add(a, 20 + i);
		usleep(10000);
		walk(a, now_ns(), false);
		if (late_stacks_answer(a->snaps, &id) && !same(&id, 2020 + i, 2))
			s = written(a, &id, &c);
		tap_ok(t,
			s ? s->verdict == VERDICT_COMPLETE && s->frames[0] == page + 16 &&
					s->frames[1] == caller && cases[i].walked
			  : !cases[i].walked,
			"%s", cases[i].name);
		if (c)
			cap_reader_free(c);
	}
	shot.code_before = shot.code_after = 0;
}

/* Snapshots that cannot be walked: the wait keeps the stack that BPF found, and the reason is counted. */
static void test_others(struct tap *t, struct all *a)
{
	struct procevent lost = { .type = PROCEVENT_LOST, .lost = 1, .text = "" };
	struct offcpu_stack_id id;
	struct late_stacks_stats st, was;

	late_stacks_stats(a->snaps, &was);
	shoot();
	id = add(a, 10);
	usleep(10000);
	walk(a, shot.time_ns - 1, false);
	tap_ok(t, !late_stacks_answer(a->snaps, &id),
		"a snapshot waits for the process events up to its time");
	walk(a, shot.time_ns - 1, true);
	late_stacks_stats(a->snaps, &st);
	tap_ok(t, late_stacks_answer(a->snaps, &id) && same(&id, 2010, 2) && st.late == was.late + 1,
		"at the end a waiting snapshot has the stack that BPF found, and counts as late");
	shoot();
	shot.time_ns -= LATE;
	id = add(a, 11);
	walk(a, shot.time_ns - 1, false);
	tap_ok(t, late_stacks_answer(a->snaps, &id) && same(&id, 2011, 2),
		"a snapshot that has waited for seconds has the stack that BPF found");
	shoot();
	shot.tgid = 5000001;
	id = add(a, 12);
	usleep(10000);
	walk(a, now_ns(), false);
	late_stacks_stats(a->snaps, &st);
	tap_ok(t, late_stacks_answer(a->snaps, &id) && same(&id, 2012, 2) && st.unmapped == was.unmapped + 1,
		"a snapshot of an unknown process is counted as unmapped");
	shoot();
	shot.bytes = 0;
	id = add(a, 13);
	usleep(10000);
	walk(a, now_ns(), false);
	late_stacks_stats(a->snaps, &st);
	tap_ok(t,
		late_stacks_answer(a->snaps, &id) && same(&id, 2013, 2) &&
			st.short_stack == was.short_stack + 1,
		"a snapshot without stack memory is counted as too short");
	shoot();
	lost.time_ns = now_ns();
	process_table_event(a->procs, &lost);
	id = add(a, 14);
	usleep(10000);
	walk(a, now_ns(), false);
	late_stacks_stats(a->snaps, &st);
	tap_ok(t, late_stacks_answer(a->snaps, &id) && same(&id, 2014, 2) && st.unmapped == was.unmapped + 2,
		"a snapshot after lost events is counted as unmapped");
}

static void test_bounds(struct tap *t)
{
	struct all a = { 0 };
	struct offcpu_stack_id id = { 0 }, first;
	struct late_stacks_stats st;
	uint32_t n = 2 * LATE_STACKS_BYTES / OFFCPU_SNAPSHOT_BYTES;

	if (late_stacks_new(DEPTH, &a.snaps, NULL) != 0)
		abort();
	shot.bytes = OFFCPU_SNAPSHOT_BYTES;
	first = add(&a, 0);
	for (uint32_t i = 1; i < n; i++)
		id = add(&a, i);
	late_stacks_stats(a.snaps, &st);
	tap_ok(t, st.memory > n / 2 && st.memory < n / 2 + 100,
		"snapshots beyond the memory limit are counted (%llu of %u)", (unsigned long long)st.memory,
		n);
	tap_ok(t, late_stacks_answer(a.snaps, &id) && same(&id, 2000 + n - 1, 2),
		"a snapshot beyond the memory limit has the stack that BPF found");
	shot.bytes = 0;
	for (uint32_t i = 0; i < LATE_STACKS_ANSWERS + n; i++)
		add(&a, n + i);
	late_stacks_tidy(a.snaps);
	tap_ok(t, !late_stacks_answer(a.snaps, &first),
		"late_stacks_tidy() keeps snapshots that are not walked yet");
	late_stacks_free(a.snaps);
}

int main(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct all a = { 0 };
	struct tap t = { 0 };
	struct err e;

	if (tableset_open(&(struct tableset_opts){ 0 }, &a.tables, &e) != 0) {
		tap_skip(&t, "snapshots", "BPF is not available: %s", e.msg);
		return tap_done(&t);
	}
	if (process_table_new(false, false, &a.procs, &e) != 0 ||
		stack_table_new(DEPTH, &a.stacks, &e) != 0 || late_stacks_new(DEPTH, &a.snaps, &e) != 0 ||
		process_table_scan(a.procs, (uint32_t)getpid(), now_ns(), &e) != 0)
		abort();
	stack_table_marked(a.stacks);
	test_walked(&t, &a);
	test_code(&t, &a, (uintptr_t)page);
	test_others(&t, &a);
	test_bounds(&t);
	late_stacks_free(a.snaps);
	late_stacks_free(NULL);
	stack_table_free(a.stacks);
	process_table_free(a.procs);
	tableset_close(a.tables);
	return tap_done(&t);
}
