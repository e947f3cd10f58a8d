/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of counters, and the report from it. */
#include "base/tap.h"
#include "base/text.h"
#include "capture/counters.h"
#include "record/counters.h"

#include <string.h>

/* Returns the text of B, and empties B. Release the text with free(). */
static char *taken(struct buf *b)
{
	char *text;

	buf_put(b, "", 1);
	text = strdup((const char *)b->p);
	buf_reset(b);
	if (!text)
		abort();
	return text;
}

static void is(struct tap *t, struct buf *b, const char *want, const char *name)
{
	_cleanup_free_ char *text = taken(b);

	tap_eq_str(t, text, want, name);
}

static void test_numbers(struct tap *t, struct buf *b)
{
	buftext_count(b, 0, "process", "processes");
	is(t, b, "0 processes", "a count of 0 has the plural");
	buftext_count(b, 1, "process", "processes");
	is(t, b, "1 process", "a count of 1 has the singular");
	buftext_count(b, UINT64_MAX, "process", "processes");
	is(t, b, "18446744073709551615 processes", "the highest count has the plural");
	buftext_seconds(b, 12345499999);
	is(t, b, "12.345 s", "seconds are rounded down to the nearest thousandth");
	buftext_seconds(b, 999999999);
	is(t, b, "1.000 s", "seconds are rounded up to the nearest thousandth");
}

static void test_words(struct tap *t, struct buf *b)
{
	counter_put(b, "lost.map_full", 1);
	is(t, b, "1 wait: the aggregation map was full", "a counter of 1 has its text, in the singular");
	counter_put(b, "lost.maps", 1);
	is(t, b, "1 process without mappings: ended, or not readable",
		"a counter of 1 has the singular of a text of several words");
	counter_put(b, "lost.maps", 2);
	is(t, b, "2 processes without mappings: ended, or not readable",
		"a counter of 2 has its text in the plural");
	counter_put(b, "user.complete", 1);
	is(t, b, "1 wait: user stack complete",
		"a counter of waits is printed with the verdict of their user stacks");
	counter_put(b, "user.short.no-row", 3);
	is(t, b, "3 waits: user stack no-row",
		"a counter of waits is printed with the reason of their user stacks");
	tap_eq_str(t, counter_name("opener.lost"), "broker.lost",
		"a counter of an earlier build has its present name");
	tap_eq_str(t, counter_name("lost.maps"), "lost.maps", "other counters keep their names");
	counter_put(b, "lost.unheard\033of", 7);
	is(t, b, "7 (lost.unheard\\x1bof)", "an unknown counter is printed by its name, escaped");
	tap_ok(t, !counter_put_meaning(b, "unheard_of", 1) && !b->len, "an unknown counter has no meaning");
}

/* Set C to the counters of a recording in which everything that is counted was VALUE. */
static void fill(struct counters *c, struct recorder_stats *st, uint64_t value)
{
	static const struct cap_counter samples[] = { { "procfs.samples_skipped", 1 },
		{ "procfs.samples_late", 1 }, { "procfs.threads_ended", 1 }, { "procfs.unseen", 1 },
		{ "procfs.stops", 1 }, { "procfs.longest_stop_ns", 350000 }, { "procfs.not_walked", 1 },
		{ "procfs.no_syscall", 1 }, { "procfs.no_stack", 1 }, { "procfs.unchecked", 1 },
		{ "lost.threads", 1 }, { "lost.threads_unread", 1 }, { "helper.lost", 1 } };

	*st = (struct recorder_stats){ .by_table = true, .by_name = true };
	record_stats_counters(st, c);
	for (size_t i = 0; i < c->n; i++)
		c->list[i].value = value;
	if (value)
		counters_add(c, samples, ARRAY_LEN(samples));
	counters_because(c, "procfs.not_walked", "no\nleave");
}

/* Does TEXT have a number 1 before a word that ends like a plural, such as "1 waits"? */
static bool has_one_of_many(const char *text)
{
	for (const char *p = text; (p = strstr(p, "1 ")); p += 2) {
		const char *end = p + 2 + strcspn(p + 2, " :,;\n");

		if ((p == text || p[-1] == ' ') && end[-1] == 's' && end - p > 3 &&
			strncmp(end - 7, "process", 7) != 0)
			return true;
	}
	return false;
}

static void test_report(struct tap *t, struct buf *b)
{
	struct recorder_stats st;
	struct counters c;
	char *text;

	tap_ok(t, has_one_of_many("  1 waits, 3 s") && !has_one_of_many("11 waits, 1 wait, 1 process"),
		"a 1 before a plural is found");
	fill(&c, &st, 1);
	counters_put_head(b, &c, "rec", 1000000000, "f", 1);
	counters_put_progress(b, &c, 1000000000);
	buftext_str(b, "\n");
	cap_outcomes_add(&c.user, VERDICT_COMPLETE, REASON_NONE, 1);
	counters_put(b, &c, true);
	text = taken(b);
	if (!tap_ok(t, !has_one_of_many(text), "no 1 in the report is followed by a plural"))
		tap_diag("%s", text);
	tap_ok(t, strstr(text, "rec: 1.000 s, 1 wait of 0.000 s in all, 1 stack, 1 process; 1 byte in 'f'\n"),
		"the head of the report has the singular");
	tap_ok(t, strstr(text, "1.0 s  2 waits  1 stack  1 process  "),
		"the progress counts what is not written yet, too");
	tap_ok(t, strstr(text, "\n  not recorded: 1 wait, 0.000 s: shorter than --min\n"),
		"waits that a filter dropped are reported");
	tap_ok(t, strstr(text, "\n  user stacks: 100.00 % of 1 wait complete\n"),
		"the share of complete user stacks is reported");
	tap_ok(t, strstr(text, "\n  350 us: the longest of these stops\n"),
		"a short time is reported in microseconds");
	tap_ok(t, strstr(text, "\n  1 attempt: no user stack could be walked: no\\x0aleave\n"),
		"a newline in a reason is escaped");
	tap_ok(t, strstr(text, "\n  degraded: 1 thread: kernel stacks are names alone"),
		"what is degraded is reported");
	tap_ok(t, strstr(text, "\n  lost: 1 file or map not opened: the process that opens them had ended\n"),
		"a loss is reported");
	free(text);
	tap_eq_u64(t, counters_lost(&c), 13, "the losses are summed");
	fill(&c, &st, 0);
	counters_put(b, &c, false);
	is(t, b, "  lost: nothing\n", "counters of 0 are not reported");
}

static void test_balance(struct tap *t)
{
	const struct cap_counter all[] = { { "waits.seen", 100 }, { "waits.seen_ns", 1000 },
		{ "waits.recorded", 40 }, { "waits.recorded_ns", 500 }, { "waits.unwritten", 1 },
		{ "waits.unwritten_ns", 10 }, { "waits.overwritten", 20 }, { "waits.overwritten_ns", 90 },
		{ "filtered.min", 10 }, { "filtered.min_ns", 100 }, { "filtered.owner", 5 },
		{ "filtered.hidden", 4 }, { "lost.map_full", 7 }, { "lost.map_full_ns", 300 },
		{ "lost.no_storage", 6 }, { "lost.begin_unseen", 3 }, { "lost.end_unknown", 2 },
		{ "lost.memory", 2 },
		/* no waits of their own: */
		{ "lost.stacks", 1000 }, { "lost.maps", 1000 }, { "lost.cpu_samples", 1000 },
		{ "broker.lost", 1000 }, { "waits.invisible", 1000 }, { "lost.of_a_later_recorder", 1000 } };
	struct cap_counter off[ARRAY_LEN(all)];
	struct counters_balance got;
	size_t n = 0;

	tap_ok(t,
		counters_balance(all, ARRAY_LEN(all), false, &got) && got.seen == 100 && got.recorded == 40 &&
			got.unwritten == 1 && got.overwritten == 20 && got.filtered == 19 && got.lost == 20,
		"each wait that was seen is in one part of the balance");
	tap_ok(t,
		counters_balance(all, ARRAY_LEN(all), true, &got) && got.seen == 1000 &&
			got.recorded == 500 && got.filtered == 100 && got.lost == 300,
		"and so is its time");
	for (size_t i = 0; i < 18; i++) {
		const size_t len = strlen(all[i].name);

		memcpy(off, all, sizeof(all));
		off[i].value++;
		n += !counters_balance(off, ARRAY_LEN(off), !strcmp(all[i].name + len - 3, "_ns"), &got);
	}
	tap_eq_u64(t, n, 18, "one more or less in any of them is found");
	tap_ok(t,
		counter_is_loss("lost.map_full") && counter_is_loss("lost.map_full_ns") &&
			counter_is_loss("broker.lost") && counter_is_loss("helper.lost") &&
			counter_is_loss("lost.of_a_later_recorder") && !counter_is_loss("filtered.min") &&
			!counter_is_loss("unwind.worker_lost"),
		"what is lost is what makes the status 1, by whatever name");
}

/* Every counter that the two recorders write has a meaning. */
static void test_known(struct tap *t)
{
	struct recorder_stats st;
	struct counters c;
	unsigned int unknown = 0;

	fill(&c, &st, 1);
	for (size_t i = 0; i < c.n; i++) {
		bool known = counter_find(c.list[i].name) != NULL;

		unknown += !known;
		if (!known)
			tap_diag("%s", c.list[i].name);
	}
	tap_ok(t, !unknown && c.n > 60, "every counter of the recorders is in the table");
	while (c.n < COUNTERS_MAX - 1)
		counters_add(&c, &(struct cap_counter){ "many", 1 }, 1);
	counters_add(&c, (const struct cap_counter[]){ { "a", 1 }, { "b", 2 } }, 2);
	tap_ok(t, c.n == COUNTERS_MAX && counters_get(&c, "a") == 1 && counters_get(&c, "b") == 0,
		"more counters than there is room for are not added");
}

int main(void)
{
	struct tap t = { 0 };
	struct buf b = { 0 };

	test_numbers(&t, &b);
	test_words(&t, &b);
	test_report(&t, &b);
	test_balance(&t);
	test_known(&t);
	buf_free(&b);
	return tap_done(&t);
}
