/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts stacks into a table, writes them to a capture, and reads the capture back. */
#include "base/tap.h"
#include "capture/reader.h"
#include "record/stacks.h"
#include "record/wakers.h"

#include <malloc.h>
#include <string.h>

static struct offcpu_ev_stack event(
	uint64_t hi, uint8_t kind, uint8_t verdict, const uint64_t *frames, uint16_t len)
{
	struct offcpu_ev_stack ev = { .type = OFFCPU_EV_STACK,
		.kind = kind,
		.verdict = verdict,
		.len = len,
		.id = { .hi = hi, .lo = 1 } };

	memcpy(ev.frames, frames, len * sizeof(*frames));
	return ev;
}

static bool with_scheduler;
static uint64_t schedule_address;

/* Kernel symbols that say where the scheduler's code is. */
static struct kallsyms *scheduler(void)
{
	char path[] = "/tmp/unit-stacktab-symbols.XXXXXX";
	struct kallsyms *ks = NULL;
	int fd = mkstemp(path);

	dprintf(fd,
		"ffffffff81000000 T _text\nffffffff81000100 T ends_in_a_call\nffffffff81000200 T follows\n"
		"ffffffff81000300 T others\nffffffff82000000 T __sched_text_start\n"
		"ffffffff82000000 t __schedule\nffffffff82001000 T __sched_text_end\n");
	close(fd);
	if (kallsyms_load(path, &ks, NULL) != 0)
		abort();
	unlink(path);
	return ks;
}

/* The stack of EV after a table of DEPTH frames and a capture. It belongs to *C; release that. */
static const struct cap_stack *through(
	const struct offcpu_ev_stack *ev, uint32_t depth, bool marked, struct cap_reader **c)
{
	char path[] = "/tmp/unit-stack_table.XXXXXX";
	struct stack_table *tab = NULL;
	struct cap_writer *w = NULL;
	struct kallsyms *ks = with_scheduler ? scheduler() : NULL;
	int fd = mkstemp(path);

	close(fd);
	if (stack_table_new(depth, &tab, NULL) != 0 || cap_writer_open(path, true, &w, NULL) != 0)
		abort();
	if (marked)
		stack_table_marked(tab);
	if (ks)
		stack_table_symbols(tab, ks);
	stack_table_schedule(tab, schedule_address);
	stack_table_add(tab, ev);
	stack_table_emit(tab, ev->kind, &ev->id, w, NULL);
	if (cap_writer_finish(w, &(struct cap_trailer){ .stop_ns = 2, .why = "end" }, NULL) != 0 ||
		cap_reader_load(path, c, NULL) != 0 || (*c)->n_stacks != 1)
		abort();
	cap_writer_close(w);
	stack_table_free(tab);
	kallsyms_free(ks);
	unlink(path);
	return (*c)->stacks;
}

static void test_exact(struct tap *t)
{
	static const uint64_t frames[] = { 0x1000, 0x2000 | OFFCPU_EXACT, 0x3000, 0x4000 | OFFCPU_EXACT,
		0x5000 | OFFCPU_EXACT };
	static const uint64_t odd[] = { 0x1000 | OFFCPU_EXACT, 0x2000 | OFFCPU_EXACT };
	struct offcpu_ev_stack ev = event(1, CAPTURE_STACK_USER, VERDICT_COMPLETE, frames, 5);
	const struct cap_stack *s;
	struct cap_reader *c;

	s = through(&ev, 127, true, &c);
	tap_ok(t, s->len == 5 && s->frames[1] == 0x2000 && s->frames[4] == 0x5000,
		"the mark of an exact frame is removed from its address");
	tap_ok(t, s->n_exact == 3 && s->exact[0] == 1 && s->exact[1] == 3 && s->exact[2] == 4,
		"marked frames are exact, in their order");
	cap_reader_free(c);
	s = through(&ev, 4, true, &c);
	tap_ok(t, s->verdict == VERDICT_TRUNCATED && s->len == 4 && s->n_exact == 2 && s->exact[1] == 3,
		"an exact frame beyond the depth is removed with its mark");
	cap_reader_free(c);
	s = through(&ev, 127, false, &c);
	tap_ok(t, !s->n_exact && s->frames[1] == (0x2000 | OFFCPU_EXACT),
		"without marks no frame is exact, and addresses stay unchanged");
	cap_reader_free(c);
	ev.kind = CAPTURE_STACK_KERNEL;
	s = through(&ev, 127, true, &c);
	tap_ok(t, !s->n_exact && s->frames[1] == (0x2000 | OFFCPU_EXACT),
		"a kernel stack has no exact frames, and addresses stay unchanged");
	cap_reader_free(c);
	ev = event(1, CAPTURE_STACK_USER, VERDICT_STOPPED, odd, 2);
	ev.reason = REASON_NO_MAPPING;
	ev.stop_pc = odd[1];
	s = through(&ev, 127, true, &c);
	tap_ok(t, s->frames[0] == odd[0] && s->n_exact == 1 && s->frames[1] == 0x2000,
		"the first frame is never marked, because it is always exact");
	tap_ok(t, s->reason == REASON_NO_MAPPING && s->stop_pc == odd[1],
		"a truncated walk has its reason and address");
	cap_reader_free(c);
}

/* Frames before the scheduler's first one belong to the tracer. */
static void test_own(struct tap *t)
{
	static const uint64_t once[] = { 0xffffffff81000010, 0xffffffff82000010, 0xffffffff82000020 };
	static const uint64_t twice[] = { 0xffffffff81000010, 0xffffffff82000010, 0xffffffff82000010,
		0xffffffff82000020 };
	struct offcpu_ev_stack ev = event(1, CAPTURE_STACK_KERNEL, VERDICT_COMPLETE, once, 3);
	const struct cap_stack *s;
	struct cap_reader *c;

	with_scheduler = true;
	s = through(&ev, 127, false, &c);
	tap_ok(t, s->len == 2 && s->frames[0] == once[1], "frames of the tracer are removed");
	cap_reader_free(c);
	ev = event(1, CAPTURE_STACK_KERNEL, VERDICT_COMPLETE, twice, 4);
	s = through(&ev, 127, false, &c);
	tap_ok(t, s->len == 2 && s->frames[0] == once[1] && s->frames[1] == once[2],
		"a scheduler frame that the kernel reports twice is stored once");
	cap_reader_free(c);
	schedule_address = 0xffffffff81000020; /* wrong: symbols are better */
	s = through(&ev, 127, false, &c);
	tap_ok(t, s->len == 2 && s->frames[0] == once[1], "with symbols these say where the scheduler is");
	cap_reader_free(c);
	with_scheduler = false;
	schedule_address = 0xffffffff82000800;
	s = through(&ev, 127, false, &c);
	tap_ok(t, s->len == 2 && s->frames[0] == once[1] && s->frames[1] == once[2],
		"without symbols an address in the scheduler says which frames are the tracer's");
	cap_reader_free(c);
	schedule_address = 0;
	s = through(&ev, 127, false, &c);
	tap_eq_u64(t, s->len, 4, "without both all frames stay");
	cap_reader_free(c);
}

static bool has_symbol(const struct cap_reader *c, const char *name)
{
	for (size_t i = 0; i < c->n_ksyms; i++)
		if (strcmp(c->ksyms[i].name, name) == 0)
			return true;
	return false;
}

/* A function may end in a call that does not return: the return address is then in the next function. */
static void test_return_address(struct tap *t)
{
	static const uint64_t frames[] = { 0xffffffff82000010, 0xffffffff81000200 };
	struct offcpu_ev_stack ev = event(1, CAPTURE_STACK_KERNEL, VERDICT_COMPLETE, frames, 2);
	struct cap_reader *c;

	with_scheduler = true;
	through(&ev, 127, false, &c);
	tap_ok(t, has_symbol(c, "ends_in_a_call") && !has_symbol(c, "follows"),
		"a kernel function that ends in a call is named, not the function behind it");
	cap_reader_free(c);
	with_scheduler = false;
}

/* Frames of written stacks are kept, for the same stack in another process. */
static void test_kept(struct tap *t)
{
	static const uint64_t frames[] = { 0x1000, 0x2000 | OFFCPU_EXACT, 0x3000, 0x4000 };
	struct offcpu_ev_stack a = event(1, CAPTURE_STACK_USER, VERDICT_COMPLETE, frames, 4),
			       b = event(2, CAPTURE_STACK_USER, VERDICT_COMPLETE, frames, 4);
	const struct offcpu_stack_id none = { .hi = 9, .lo = 9 };
	struct stack_table *tab = NULL;
	struct cap_writer *w = NULL;
	struct cap_stack s;

	if (stack_table_new(3, &tab, NULL) != 0 || cap_writer_open("/dev/null", true, &w, NULL) != 0)
		abort();
	stack_table_marked(tab);
	stack_table_keep(tab, 4 * sizeof(*frames) + 2 * sizeof(uint32_t));
	stack_table_add(tab, &a);
	stack_table_add(tab, &b);
	stack_table_emit(tab, CAPTURE_STACK_USER, &a.id, w, NULL);
	stack_table_emit(tab, CAPTURE_STACK_USER, &b.id, w, NULL);
	tap_ok(t,
		stack_table_frames(tab, &a.id, &s) && s.len == 3 && s.frames[1] == 0x2000 &&
			s.frames[2] == 0x3000 && s.exact[0] == 1,
		"kept frames are the frames that were written");
	tap_ok(t, !stack_table_frames(tab, &b.id, &s) && s.len == 3,
		"without room the frames are not kept, but their number is");
	tap_ok(t, !stack_table_frames(tab, &none, &s) && !s.len, "an unknown stack has no frames");
	cap_writer_close(w);
	stack_table_free(tab);
}

/* A stack of which only the first frames are certain. */
static void test_cut(struct tap *t)
{
	static const uint64_t frames[] = { 0x1000, 0x2000 | OFFCPU_EXACT, 0x3000, 0x4000 | OFFCPU_EXACT };
	struct offcpu_ev_stack a = event(1, CAPTURE_STACK_USER, VERDICT_COMPLETE, frames, 4),
			       b = event(2, CAPTURE_STACK_USER, VERDICT_COMPLETE, frames, 4);
	struct offcpu_stack_id cut = { 0 }, again = { 0 };
	struct stack_table_end end;
	struct stack_table *tab = NULL;
	struct cap_writer *w = NULL;
	struct cap_stack s;

	if (stack_table_new(127, &tab, NULL) != 0 || cap_writer_open("/dev/null", true, &w, NULL) != 0)
		abort();
	stack_table_marked(tab);
	stack_table_keep(tab, 4096);
	stack_table_add(tab, &a);
	stack_table_add(tab, &b);
	tap_ok(t,
		stack_table_cut(tab, &a.id, 2, REASON_NOT_READY, &cut) && stack_table_user(tab, &cut, &s) &&
			s.len == 2 && s.frames[0] == 0x1000 && s.frames[1] == 0x2000 && s.n_exact == 1 &&
			s.exact[0] == 1,
		"a stack is cut behind its second frame");
	stack_table_emit(tab, CAPTURE_STACK_USER, &cut, w, &end);
	tap_ok(t, end.verdict == VERDICT_STOPPED && end.reason == REASON_NOT_READY,
		"it is not whole, and says why");
	stack_table_emit(tab, CAPTURE_STACK_USER, &a.id, w, &end);
	tap_ok(t, end.verdict == VERDICT_COMPLETE && stack_table_frames(tab, &a.id, &s) && s.len == 4,
		"the whole one stays what it is");
	tap_ok(t,
		stack_table_cut(tab, &a.id, 2, REASON_NOT_READY, &again) && again.hi == cut.hi &&
			again.lo == cut.lo && stack_table_cut(tab, &a.id, 4, REASON_NOT_READY, &again) &&
			again.lo != cut.lo,
		"the same part is the same stack, another part is another one");
	stack_table_sure(tab, &b.id);
	tap_ok(t,
		!stack_table_cut(tab, &b.id, 2, REASON_NOT_READY, &again) &&
			!stack_table_cut(tab, &(struct offcpu_stack_id){ .hi = 9, .lo = 9 }, 2,
				REASON_NOT_READY, &again),
		"one that is sure is not cut, nor one that there is not");
	cap_writer_close(w);
	stack_table_free(tab);
}

#define MANY 400000
#define AT_A_TIME 20000

/* As many stacks as come in an hour, each written once; every epoch those that are not in use are forgotten.
 */
static void test_forgotten(struct tap *t)
{
	static const uint64_t frames[40] = { [39] = 0x1000 };
	struct offcpu_ev_stack ev = event(1, CAPTURE_STACK_USER, VERDICT_COMPLETE, frames, ARRAY_LEN(frames));
	const struct offcpu_stack_id held = { .hi = 1, .lo = 1 }, used = { .hi = 2, .lo = 1 },
				     gone = { .hi = 3, .lo = 1 };
	struct stack_table *tab = NULL;
	struct cap_writer *w = NULL;
	struct stack_table_stats st;
	struct cap_stack s;
	size_t bytes = 0, most = 0;
	uint32_t first[3];
	bool same = true;

	if (stack_table_new(127, &tab, NULL) != 0 || cap_writer_open("/dev/null", true, &w, NULL) != 0)
		abort();
	stack_table_keep(tab, UINT64_C(64) << 20);
	for (uint64_t i = 1; i <= MANY; i++) {
		ev.id.hi = i;
		ev.frames[0] = i;
		stack_table_add(tab, &ev);
		if (i <= 3)
			first[i - 1] = stack_table_emit(tab, CAPTURE_STACK_USER, &ev.id, w, NULL);
		else
			stack_table_emit(tab, CAPTURE_STACK_USER, &ev.id, w, NULL);
		if (i % AT_A_TIME)
			continue;
		cap_writer_flush(w, i, NULL);
		stack_table_turn(tab);
		stack_table_hold(tab, CAPTURE_STACK_USER, &held);
		stack_table_hold(tab, CAPTURE_STACK_KERNEL, &gone); /* another one, which there is not */
		same = same && stack_table_emit(tab, CAPTURE_STACK_USER, &used, w, NULL) == first[1];
		stack_table_forget(tab);
		if (i == AT_A_TIME)
			bytes = mallinfo2().uordblks;
		else
			most = MAX(most, mallinfo2().uordblks);
	}
	tap_ok(t, most < bytes + 65536, "%d stacks take no more memory than %d: %zu bytes, and %zu", MANY,
		AT_A_TIME, most, bytes);
	tap_eq_u64(t, stack_table_count(tab), 2, "those in use are kept");
	tap_ok(t, same && stack_table_emit(tab, CAPTURE_STACK_USER, &held, w, NULL) == first[0],
		"and have the numbers that they had");
	tap_ok(t, stack_table_frames(tab, &used, &s) && s.len == ARRAY_LEN(frames) && s.frames[0] == 2,
		"and their frames");
	tap_ok(t, stack_table_has(tab, &held) && !stack_table_has(tab, &gone), "another one is forgotten");
	ev.id = gone;
	ev.frames[0] = 3;
	stack_table_add(tab, &ev);
	tap_ok(t,
		stack_table_emit(tab, CAPTURE_STACK_USER, &gone, w, NULL) == MANY &&
			stack_table_frames(tab, &gone, &s) && s.frames[0] == 3,
		"and written again when it comes again");
	stack_table_stats(tab, &st);
	tap_eq_u64(t, st.lost, 0, "none was lost");
	stack_table_emit(tab, CAPTURE_STACK_USER, &(struct offcpu_stack_id){ .hi = 4, .lo = 1 }, w, NULL);
	stack_table_stats(tab, &st);
	tap_eq_u64(t, st.lost, 1, "one that is wanted and did not come again is");
	cap_writer_close(w);
	stack_table_free(tab);
}

/* Wakers keep their own wakers and the stacks of both. */
static void test_wakers(struct tap *t)
{
	static const uint64_t frames[] = { 0x1000 };
	struct offcpu_ev_waker ev = { .type = OFFCPU_EV_WAKER };
	struct stack_table *tab = NULL;
	struct waker_table *wakers = NULL;

	if (stack_table_new(127, &tab, NULL) != 0 || waker_table_new(&wakers, NULL) != 0)
		abort();
	for (uint64_t i = 1; i <= 1000; i++) {
		struct offcpu_ev_stack stack = event(i, CAPTURE_STACK_USER, VERDICT_COMPLETE, frames, 1);

		stack_table_add(tab, &stack);
		ev.id = (struct offcpu_stack_id){ .hi = i, .lo = 9 };
		ev.waker.user = stack.id;
		ev.waker.next = (struct offcpu_stack_id){ .hi = i > 500 ? i - 500 : 0, .lo = 9 };
		waker_table_add(wakers, &ev);
	}
	stack_table_turn(tab);
	waker_table_turn(wakers);
	waker_table_hold(wakers, &(struct offcpu_stack_id){ .hi = 600, .lo = 9 });
	waker_table_hold(wakers, &(struct offcpu_stack_id){ .hi = 7, .lo = 9 });
	waker_table_hold(wakers, &(struct offcpu_stack_id){ .hi = 7, .lo = 8 }); /* there is none */
	waker_table_forget(wakers, tab);
	stack_table_forget(tab);
	tap_eq_u64(t, waker_table_count(wakers), 3, "a waker that is held keeps its own waker");
	tap_ok(t,
		stack_table_count(tab) == 3 &&
			stack_table_has(tab, &(struct offcpu_stack_id){ .hi = 100, .lo = 1 }) &&
			stack_table_has(tab, &(struct offcpu_stack_id){ .hi = 600, .lo = 1 }),
		"and both keep their stacks");
	waker_table_turn(wakers);
	stack_table_turn(tab);
	ev.id.hi = 600;
	waker_table_add(wakers, &ev);
	waker_table_forget(wakers, tab);
	tap_eq_u64(t, waker_table_count(wakers), 2, "one that is sent again is in use, and so is its own");
	waker_table_free(wakers);
	stack_table_free(tab);
}

int main(void)
{
	static const uint64_t one[] = { 0x1000, 0x2000, 0x3000 }, two[] = { 0x1000, 0x2000, 0x3001 };
	char path[] = "/tmp/unit-stack_table.XXXXXX";
	struct offcpu_ev_stack ev;
	struct offcpu_stack_id id = { .lo = 1 };
	struct offcpu_stack_id failed = { .lo = OFFCPU_FAILED(REASON_ERRNO, -14) };
	struct stack_table_stats st;
	struct tap t = { 0 };
	struct stack_table *tab = NULL;
	struct cap_writer *w = NULL;
	struct cap_reader *c = NULL;
	struct err e;
	uint32_t ids[6];
	int fd = mkstemp(path);

	close(fd);
	tap_ok(&t, stack_table_new(127, &tab, &e) == 0 && cap_writer_open(path, true, &w, &e) == 0,
		"a stack table and a capture are opened");
	if (!tab || !w)
		return tap_done(&t);
	ev = event(10, CAPTURE_STACK_USER, VERDICT_UNVERIFIED, one, 3);
	stack_table_add(tab, &ev);
	ev = event(10, CAPTURE_STACK_USER, VERDICT_UNVERIFIED, two, 3);
	stack_table_add(tab, &ev);
	ev = event(11, CAPTURE_STACK_USER, VERDICT_TRUNCATED, two, 2);
	stack_table_add(tab, &ev);

	id.hi = 10;
	ids[0] = stack_table_emit(tab, CAPTURE_STACK_USER, &id, w, NULL);
	ids[1] = stack_table_emit(tab, CAPTURE_STACK_USER, &id, w, NULL);
	tap_ok(&t, ids[0] == 0 && ids[1] == 0, "the first stack has ID 0, also when it is used again");
	id.hi = 11;
	ids[2] = stack_table_emit(tab, CAPTURE_STACK_USER, &id, w, NULL);
	id.hi = 99;
	ids[3] = stack_table_emit(tab, CAPTURE_STACK_USER, &id, w, NULL);
	ids[4] = stack_table_emit(tab, CAPTURE_STACK_USER, &failed, w, NULL);
	ids[5] = stack_table_emit(tab, CAPTURE_STACK_KERNEL, &failed, w, NULL);
	tap_ok(&t, ids[2] != ids[0] && ids[3] != ids[2] && ids[4] != ids[3] && ids[5] != ids[4],
		"distinct stacks have distinct IDs");
	stack_table_stats(tab, &st);
	tap_eq_u64(&t, st.lost, 1, "a stack that never arrived is counted as lost");
	tap_ok(&t,
		cap_writer_flush(w, 1, &e) == 0 &&
			cap_writer_finish(w, &(struct cap_trailer){ .stop_ns = 2, .why = "end" }, &e) == 0,
		"the stacks are written to the capture");
	cap_writer_close(w);
	stack_table_free(tab);
	stack_table_free(NULL);

	tap_ok(&t, cap_reader_load(path, &c, &e) == 0, "the capture is loaded");
	unlink(path);
	if (!c)
		return tap_done(&t);
	tap_eq_u64(&t, c->n_stacks, 5, "each distinct stack is written once");
	tap_ok(&t, c->stacks[0].len == 3 && memcmp(c->stacks[0].frames, one, sizeof(one)) == 0,
		"a second stack with the same ID does not replace the first");
	tap_ok(&t, c->stacks[ids[2]].verdict == VERDICT_TRUNCATED && c->stacks[ids[2]].len == 2,
		"a truncated stack is marked as such");
	tap_ok(&t, c->stacks[ids[3]].verdict == VERDICT_FAILED && c->stacks[ids[3]].reason == REASON_LOST,
		"a lost stack has the reason REASON_LOST");
	tap_ok(&t, c->stacks[ids[4]].reason == REASON_ERRNO && c->stacks[ids[4]].error == -14,
		"a failed stack has its errno");
	tap_ok(&t,
		c->stacks[ids[5]].kind == CAPTURE_STACK_KERNEL &&
			c->stacks[ids[4]].kind == CAPTURE_STACK_USER,
		"the same failure of kernel and user stack gives two stacks");
	cap_reader_free(c);
	test_exact(&t);
	test_own(&t);
	test_return_address(&t);
	test_kept(&t);
	test_cut(&t);
	test_forgotten(&t);
	test_wakers(&t);
	return tap_done(&t);
}
