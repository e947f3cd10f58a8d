/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of fold/script.h. Each line is placed next to an inaccessible page, so that a read past it faults. */
#include "base/tap.h"
#include "fold/script.h"

#include "../lib/edge.h"

static struct tap t;
static const char *show(struct perfscript_str s)
{
	static char buf[8][256];
	static unsigned int i;

	i = (i + 1) % 8;
	snprintf(buf[i], sizeof(buf[i]), "%.*s", (int)s.len, s.len ? s.p : "");
	return buf[i];
}

static void header(const char *line, const char *want)
{
	struct perfscript_header h;
	char got[512] = "none";

	if (perfscript_header(edge_end(line), strlen(line), &h))
		snprintf(got, sizeof(got), "%s|%s|%s|%s|%llu%s", show(h.comm), show(h.pid), show(h.tid),
			show(h.event), (unsigned long long)h.period, h.overflow ? "!" : "");
	tap_eq_str(&t, got, want, line[0] ? line : "an empty line is not a header");
	tap_ok(&t, perfscript_header(edge_start(line), strlen(line), &h) == (strcmp(want, "none") != 0),
		"a header is recognized at the start of a page as well");
}

static void frame(const char *line, const char *want)
{
	struct perfscript_frame f;
	char got[512] = "none";

	if (perfscript_frame(edge_end(line), strlen(line), &f))
		snprintf(got, sizeof(got), "%s|%s|%s", show(f.pc), show(f.sym), show(f.dso));
	tap_eq_str(&t, got, want, line[0] ? line : "an empty line is not a frame");
	tap_ok(&t, perfscript_frame(edge_start(line), strlen(line), &f) == (strcmp(want, "none") != 0),
		"a frame is recognized at the start of a page as well");
}

static void wait_comment(const char *line, bool ok, bool has, uint64_t count)
{
	struct perfscript_wait w;

	tap_ok(&t,
		perfscript_wait(edge_end(line), strlen(line), &w) == ok && (!ok || w.has_count == has) &&
			(!ok || w.count == count),
		"%s", line);
}

static void wait_words(void)
{
	const char *line = "# wait: count=3 total_ns=900 max_ns=800 runnable_ns=70 state=S kind=fsync open=1 "
			   "initial=0 preempted=1 kernel=complete new=word";
	struct perfscript_wait w;

	tap_ok(&t, perfscript_wait(edge_end(line), strlen(line), &w), "a comment with all words is one");
	tap_ok(&t,
		w.has_total && w.total_ns == 900 && w.has_max && w.max_ns == 800 && w.has_runnable &&
			w.runnable_ns == 70,
		"its times are read");
	tap_eq_str(&t, show(w.state), "S", "its state is read");
	tap_eq_str(&t, show(w.kind), "fsync", "its kind is read");
	tap_ok(&t, w.open && !w.initial && w.preempted, "its flags are read");
	line = "# wait: count=3 total_ns=900";
	tap_ok(&t, perfscript_wait(edge_end(line), strlen(line), &w) && !w.has_runnable && !w.kind.len,
		"words that are missing are not known");
	line = "# wait: runnable_ns=18446744073709551616";
	tap_ok(&t, !perfscript_wait(edge_end(line), strlen(line), &w), "a time beyond 64 bits is refused");
}

static void time_is(const char *line, const char *want)
{
	struct perfscript_header h;
	char got[32] = "none";
	uint64_t ns;

	if (perfscript_header(edge_end(line), strlen(line), &h) && perfscript_time(&h, &ns))
		snprintf(got, sizeof(got), "%llu", (unsigned long long)ns);
	tap_eq_str(&t, got, want, line);
}

static void times(void)
{
	time_is("cat 1/2 [000] 1234.567890123: 3456 offcpu-time:", "1234567890123");
	time_is("cat 1/2 [000] 1234.5: 3456 offcpu-time: ", "1234500000000");
	time_is("cat 1/2 1234: ev:", "1234000000000");
	time_is("cat 1/2 [000] 0.000000001: 1 ev:", "1");
	time_is("cat 1/2 [000] 18446744073.709551615: 1 ev:", "18446744073709551615");
	time_is("cat 1/2 [000] 18446744073.709551616: 1 ev:", "none");
	time_is("cat 1/2 [000] 99999999999999999999: 1 ev:", "none");
	time_is("cat 1/2 [000] 1.0000000001: 1 ev:", "none");
	time_is("cat 1/2 [000] .5: 1 ev:", "none");
	time_is("cat 1/2 [000] 5.: 1 ev:", "5000000000");
	time_is("cat 1/2 [000] x5.5: 1 ev:", "none");
	time_is("cat 1/2 [000] : 1 ev:", "none");
	time_is("cat 1/2 1.5:", "none");
	time_is("cat 1/2 ", "none");
}

static void headers(void)
{
	header("", "none");
	header("ab", "none");
	header("ab 1 ", "ab||1||1");
	header("ab 1", "none");
	header("bash 1/2 [000] 1.5: 250000 cpu-clock:pppH: ", "bash|1|2|cpu-clock:pppH|250000");
	header("V8 WorkerThread 25607 479.10: 104345 cycles:", "V8 WorkerThread||25607|cycles|104345");
	header("swapper 0/0 [000] 1.5: 0 cycles:", "swapper||0|cycles|1");
	header("ab 1/0 1.5: cycles:", "ab||1|cycles|1");
	header("ab 12// 1.5: 00 e:", "ab||12|e|0");
	header("ab 1/2/3 4/5 1.5: 7 e:", "ab 1/2/3|4|5|e|7");
	header("a 1/2 1.5: 7 e:", "a 1/2 1.5:||7|e|7");
	header("a  1/2 1.5: 7 e:", "a |1|2|e|7");
	header(" ab 1/2 1.5: 7 e:", "none");
	header("#ab 1/2 1.5: 7 e:", "none");
	header("ab 1/2 1.5: 7 e: x", "ab|1|2||1");
	header("ab 1/2 1.5:7 e:", "ab|1|2|e|7");
	header("ab 1/2 1.5 7 e:", "ab|1|2||1");
	header("ab 1/2 :: 7 ::", "ab|1|2|:|7");
	header("ab 1/2 : :", "ab|1|2||1");
	header("ab 1/2 1.5: 18446744073709551615 e:", "ab|1|2|e|18446744073709551615");
	header("ab 1/2 1.5: 18446744073709551616 e:", "ab|1|2|e|1!");
}

static void frames(void)
{
	frame("", "none");
	frame("\t", "none");
	frame("\t7f00 main+0x1f (/bin/x)", "7f00|main+0x1f|/bin/x");
	frame("\t7f00 f(int) (/bin/x)", "7f00|f(int)|/bin/x");
	frame("\t7f00 f (/bin/x (deleted))", "7f00|f (/bin/x|deleted)");
	frame("\t7f00 f ()", "7f00|f|");
	frame("\t7f00 f (", "none");
	frame("\t7f00 f )(", "none");
	frame("\t7f00 f x) (", "none");
	frame("  ab (b)", "a|b|b");
	frame("  a (b)", "none");
	frame("  ab  (b)", "ab| |b");
	frame("  ab (b) (c)", "ab|(b)|c");
	frame("  [x] (y)", "none");
	frame("ab f (x)y", "ab|f|x");
}

static void offsets(void)
{
	static const struct {
		const char *sym;
		size_t len;
	} c[] = { { "main+0x1f", 4 }, { "main", 4 }, { "main+0x", 7 }, { "main+0x1g", 9 }, { "+0x1", 0 },
		{ "f+0x1+0x2", 5 }, { "abcdef", 6 }, { "", 0 }, { "0x12", 4 } };

	for (size_t i = 0; i < ARRAY_LEN(c); i++) {
		struct perfscript_str s = { .p = edge_end(c[i].sym), .len = strlen(c[i].sym) };

		tap_ok(&t, perfscript_plain_len(s) == c[i].len, "the length of '%s' without its offset",
			c[i].sym);
	}
}

static void source_lines(void)
{
	static const struct {
		const char *line;
		bool is;
	} c[] = { { "  a.c:1", true }, { "  /usr/src/a-b.c:4711", true }, { "  ??:0", true },
		{ "  a.c:", false }, { "  a.c", false }, { "  :1", false }, { "  1", false }, { "", false },
		{ " a.c:1", false }, { "\ta.c:1", false }, { "  a b.c:1", false }, { "  a.c:1 ", false },
		{ "   a.c:1", false } };

	for (size_t i = 0; i < ARRAY_LEN(c); i++)
		tap_ok(&t, perfscript_srcline(edge_end(c[i].line), strlen(c[i].line)) == c[i].is,
			"'%s' is %s source line", c[i].line, c[i].is ? "a" : "not a");
}

int main(void)
{
	static const char side_band[] = "ab 1 0.0: PERF_RECORD_COMM: x";

	times();
	headers();
	wait_words();
	frames();
	offsets();
	source_lines();
	wait_comment("# wait: count=12 total_ns=3", true, true, 12);
	wait_comment("# wait: total_ns=3 count=0", true, true, 0);
	wait_comment("# wait: total_ns=3 mycount=9", true, false, 0);
	wait_comment("# wait:", true, false, 0);
	wait_comment("# wait: count=", true, false, 0);
	wait_comment("# wait: count=1x", false, false, 0);
	wait_comment("# wait: count=-1", false, false, 0);
	wait_comment("# wait: count=18446744073709551616", false, false, 0);
	wait_comment("# waiter: count=1", false, false, 0);
	wait_comment("# sample: count=7", true, true, 7);
	tap_ok(&t, perfscript_is_side_band(side_band, strlen(side_band)),
		"a COMM event is a side-band event");
	tap_ok(&t, !perfscript_is_side_band("ab 1 0.0: 1 e:", 14), "a sample is not a side-band event");
	return tap_done(&t);
}
