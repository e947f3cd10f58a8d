/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes samples whose walks stopped at known places to a capture, and sums them by reason and file. */
#include "base/tap.h"
#include "capture/stats.h"
#include "capture/writer.h"

#include <string.h>

static const uint64_t one[] = { 0x1000 };

static uint32_t n_stacks;

static void put_stop(
	struct cap_writer *w, uint32_t proc, uint8_t reason, uint64_t pc, uint64_t at, uint64_t waits)
{
	const struct cap_stack s = { .id = n_stacks,
		.kind = CAPTURE_STACK_USER,
		.verdict = reason ? VERDICT_STOPPED : VERDICT_COMPLETE,
		.reason = reason,
		.stop_pc = pc,
		.len = 1,
		.frames = one };

	cap_writer_stack(w, &s);
	cap_writer_sample(w, &(struct cap_sample){ .proc = proc,
				     .tid = 1,
				     .kstack = 0,
				     .ustack = n_stacks++,
				     .count = waits,
				     .total_ns = waits > 1000 ? waits : waits * 10,
				     .first_ns = at,
				     .last_ns = at });
}

static void put_all(struct cap_writer *w)
{
	/* at 500 ns file 1 replaces file 0 in process 0; in process 1 file 0 is at another address */
	static const struct cap_map maps[] = {
		{ .proc = 0, .file = 0, .start = 0x10000, .end = 0x20000, .offset = 0x3000 },
		{ .proc = 0, .file = CAPTURE_NONE, .start = 0x30000, .end = 0x40000 },
		{ .proc = 0, .file = 1, .from_ns = 500, .start = 0x10000, .end = 0x20000 },
		{ .proc = 1, .file = 0, .start = 0x70000, .end = 0x80000, .offset = 0x3000 },
	};

	cap_writer_file(w, &(struct cap_file){ .id = 0, .path = "/lib/a.so" });
	cap_writer_file(w, &(struct cap_file){ .id = 1, .path = "/lib/b.so" });
	cap_writer_proc(w, &(struct cap_proc){ .id = 0, .comm = "p", .exe = "" });
	cap_writer_proc(w, &(struct cap_proc){ .id = 1, .comm = "q", .exe = "" });
	for (size_t i = 0; i < ARRAY_LEN(maps); i++)
		cap_writer_map(w, &maps[i]);
	cap_writer_stack(w, &(struct cap_stack){ .id = n_stacks++, .kind = CAPTURE_STACK_KERNEL });
	put_stop(w, 0, REASON_NO_ROW, 0x10010, 100, 5);
	put_stop(w, 1, REASON_NO_ROW, 0x70010, 900, 6); /* the same place */
	put_stop(w, 0, REASON_NO_ROW, 0x10020, 100, 10); /* another place */
	put_stop(w, 0, REASON_NO_ROW, 0x10010, 600, 3); /* file 1 is mapped there by then */
	put_stop(w, 0, REASON_REGISTER, 0x10010, 100, 2); /* another reason */
	put_stop(w, 0, REASON_NO_FRAME_POINTER, 0x30040, 100, 4);
	put_stop(w, 0, REASON_NO_MAPPING, 0x50, 100, UINT64_MAX - 1);
	put_stop(w, 1, REASON_NO_MAPPING, 0x50, 100, 7);
	put_stop(w, 0, REASON_NONE, 0x10010, 100, 100);
}

static bool is(const struct cap_stop_places_stop *s, unsigned int reason, uint32_t file, bool mapped,
	uint64_t places, uint64_t waits, uint64_t place)
{
	if (s->reason == reason && s->file == file && s->mapped == mapped && s->places == places &&
		s->waits == waits && s->place == place)
		return true;
	tap_diag("reason %u file %u mapped %d places %llu waits %llu place %llx", s->reason, s->file,
		s->mapped, (unsigned long long)s->places, (unsigned long long)s->waits,
		(unsigned long long)s->place);
	return false;
}

int main(void)
{
	char path[] = "/tmp/unit-cap_stop_places.XXXXXX";
	struct cap_writer *w = NULL;
	struct cap_reader *c = NULL;
	struct cap_stop_places s = { 0 };
	struct tap t = { 0 };
	int fd = mkstemp(path);

	close(fd);
	if (cap_writer_open(path, true, &w, NULL) != 0)
		abort();
	put_all(w);
	if (cap_writer_finish(w, &(struct cap_trailer){ .stop_ns = 1000, .why = "" }, NULL) != 0 ||
		cap_reader_load(path, &c, NULL) != 0 || !c->complete)
		abort();
	cap_writer_close(w);
	unlink(path);
	tap_ok(&t, cap_stop_places_make(c, &s) == 0, "stops are summed");
	tap_eq_u64(&t, s.n, 5, "each reason and file is listed once");
	if (s.n != 5)
		return tap_done(&t);
	tap_ok(&t, is(&s.list[0], REASON_NO_MAPPING, CAPTURE_NONE, false, 1, UINT64_MAX, 0x50),
		"the most waits come first: a PC in no mapping, whose sum saturates");
	tap_ok(&t, is(&s.list[1], REASON_NO_ROW, 0, true, 2, 21, 0x3010),
		"of two places in a file the one with more waits, over two processes, is named");
	tap_ok(&t, s.list[1].off_ns == 210, "the times of the places in a file are summed");
	tap_ok(&t, is(&s.list[2], REASON_NO_FRAME_POINTER, CAPTURE_NONE, true, 1, 4, 0x30040),
		"a stop in anonymous memory is listed by its address");
	tap_ok(&t, is(&s.list[3], REASON_NO_ROW, 1, true, 1, 3, 0x10),
		"a file that was mapped later at the same address is listed separately");
	tap_ok(&t, is(&s.list[4], REASON_REGISTER, 0, true, 1, 2, 0x3010),
		"another reason at the same place is listed separately");
	cap_stop_places_free(&s);
	tap_ok(&t, !s.list && !s.n, "freeing leaves an empty list");
	cap_reader_free(c);
	return tap_done(&t);
}
