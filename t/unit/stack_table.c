/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts stacks into a table, writes them to a capture, and reads the capture back. */
#include "base/tap.h"
#include "capture/reader.h"
#include "record/stacks.h"

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
	return tap_done(&t);
}
