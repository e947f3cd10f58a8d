/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "procfs/estimator.h"

#include <string.h>

#define MS UINT64_C(1000000)

/* A thread that is sampled, usually every 10 ms, and the sums of what the estimator handed out. */
struct bench {
	struct estimator w;
	struct estimator_sample sample;
	struct estimator_sums sums;
	struct estimator_sink sink;
	uint64_t waits, ns, unseen, unseen_ns, open, initial, longest, delayed, delayed_ns;
	uint64_t at_place[8]; /* ns */
};

static void on_done(void *ctx, const struct estimator_done *d)
{
	struct bench *b = ctx;

	b->waits += d->count;
	b->ns += d->total_ns;
	b->open += d->open;
	b->initial += d->initial;
	if (d->max_ns > b->longest)
		b->longest = d->max_ns;
	if (d->place) {
		b->at_place[d->place->state % 8] += d->total_ns;
	} else {
		b->unseen += d->count;
		b->unseen_ns += d->total_ns;
	}
}

static void on_delayed(void *ctx, uint64_t n, uint64_t ns, uint64_t until_ns)
{
	struct bench *b = ctx;

	(void)until_ns;
	b->delayed += n;
	b->delayed_ns += ns;
}

static void begin(struct bench *b)
{
	*b = (struct bench){ .sink = { b, on_done, on_delayed }, .sample = { .has_account = true } };
}

/*
 * Sample the thread MS later: meanwhile it ran for RUN_NS, was runnable for
 * DELAY_NS and made N voluntary switches. Now it waits at PLACE (0 = it runs).
 */
static void sample(
	struct bench *b, uint64_t ms, uint64_t run_ns, uint64_t delay_ns, uint64_t n, uint32_t place)
{
	b->sample.at_ns += ms * MS;
	b->sample.run_ns += run_ns;
	b->sample.delay_ns += delay_ns;
	b->sample.voluntary += n;
	b->sample.same = !run_ns && !delay_ns && !n && place == b->sample.place.state && place;
	b->sample.slices += !b->sample.same;
	b->sample.waiting = place != 0;
	b->sample.place.state = place;
	estimator_sample(&b->w, &b->sample, &b->sink, &b->sums);
}

static void finish(struct bench *b, bool open)
{
	estimator_end(&b->w, open, &b->sink, &b->sums);
}

static void one_wait(struct tap *t)
{
	struct bench b;

	begin(&b);
	sample(&b, 1000, 0, 0, 0, 1);
	for (int i = 0; i < 100; i++)
		sample(&b, 10, 0, 0, 0, 1);
	tap_ok(t, b.waits == 0, "an unfinished wait is not handed out");
	finish(&b, true);
	tap_ok(t,
		b.waits == 1 && b.ns == 1000 * MS && b.open == 1 && b.initial == 1 && b.longest == 1000 * MS,
		"a thread that waits from the first to the last sample has one wait, open and "
		"initial");
	tap_ok(t, b.sums.estimated_ns == 1000 * MS && b.sums.schedstat_ns == 1000 * MS,
		"the samples and schedstat give the same time off the CPU");
}

static void two_places(struct tap *t)
{
	struct bench b;

	begin(&b);
	sample(&b, 1000, 0, 0, 0, 1);
	sample(&b, 10, 0, 0, 0, 1);
	sample(&b, 10, 2 * MS, 0, 1, 2);
	sample(&b, 10, 0, 0, 0, 2);
	finish(&b, false);
	tap_ok(t, b.waits == 2 && b.ns == 28 * MS, "the run between two waits is part of neither");
	tap_ok(t, b.at_place[1] == 14 * MS && b.at_place[2] == 14 * MS,
		"the time between two samples goes to both places in equal shares");
	tap_ok(t, b.open == 0 && b.initial == 1, "the first wait is initial, and none is open");
}

static void unseen_waits(struct tap *t)
{
	struct bench b;

	begin(&b);
	sample(&b, 1000, 0, 0, 0, 1);
	sample(&b, 10, 2 * MS, 0, 4, 2);
	finish(&b, true);
	tap_ok(t, b.waits == 5 && b.ns == 8 * MS, "four switches between two samples are four more waits");
	tap_ok(t, !b.unseen && b.at_place[1] + b.at_place[2] == 8 * MS,
		"waits that no sample saw go to the places before and after");
	begin(&b);
	sample(&b, 1000, 0, 0, 0, 0);
	for (int i = 0; i < 10; i++)
		sample(&b, 10, 2 * MS, 0, 1, 0);
	finish(&b, true);
	tap_ok(t, b.unseen == b.waits && b.waits == 10,
		"a thread that runs at each sample has waits without a place");
	tap_ok(t, b.unseen_ns + b.sums.unsettled_ns == 80 * MS && b.unseen_ns >= 60 * MS,
		"waits without a place have the time of schedstat, less a possible lag");
}

static void lagging(struct tap *t)
{
	struct bench b;

	begin(&b);
	sample(&b, 1000, 0, 0, 0, 0);
	/* runnable for 50 ms: the account has this only when the thread gets a CPU */
	for (int i = 0; i < 5; i++) {
		b.sample.at_ns += 10 * MS;
		b.sample.same = true;
		estimator_sample(&b.w, &b.sample, &b.sink, &b.sums);
	}
	sample(&b, 10, 8 * MS, 52 * MS, 0, 0);
	finish(&b, true);
	tap_ok(t, b.waits == 0 && b.ns == 0 && b.delayed_ns == 52 * MS,
		"being runnable without a CPU is not a wait, however late the account is");
	tap_ok(t, b.sums.unsettled_ns == 0 && b.sums.schedstat_ns == 0,
		"no time is left over after a late account");
	begin(&b);
	sample(&b, 1000, 0, 0, 0, 1);
	sample(&b, 10, 0, 0, 0, 1);
	/* woken, but runnable without a CPU for 9 ms of the 10 */
	sample(&b, 10, 1 * MS, 9 * MS, 1, 1);
	finish(&b, true);
	tap_ok(t, b.ns == 10 * MS && b.waits == 2, "a delay is subtracted from the wait that ended with it");
}

static void born(struct tap *t)
{
	struct bench b;

	begin(&b);
	estimator_born(&b.w, 990 * MS);
	sample(&b, 1000, 1 * MS, 1 * MS, 1, 1);
	finish(&b, true);
	tap_ok(t, b.waits == 1 && b.ns == 8 * MS && b.initial == 0,
		"a new thread's first wait counts from its start, less its run time and delay");
}

static void without_account(struct tap *t)
{
	struct bench b;

	begin(&b);
	b.sample.has_account = false;
	sample(&b, 1000, 0, 0, 0, 1);
	sample(&b, 10, 0, 0, 0, 1);
	sample(&b, 10, 0, 0, 1, 0);
	sample(&b, 10, 0, 0, 0, 0);
	sample(&b, 10, 0, 0, 1, 2);
	finish(&b, true);
	tap_ok(t, b.ns == 20 * MS && b.waits == 3,
		"without schedstat the waits are estimated from what the samples saw");
	tap_ok(t, b.sums.estimated_ns == 20 * MS && b.sums.schedstat_ns == 0,
		"without schedstat the sum schedstat_ns is 0");
}

static void disturbed(struct tap *t)
{
	struct bench b;

	begin(&b);
	sample(&b, 1000, 0, 0, 0, 1);
	sample(&b, 10, 0, 0, 0, 1);
	b.sample.at_ns += 10 * MS;
	b.sample.voluntary += 2;
	b.sample.slices += 2;
	b.sample.run_ns += 50000;
	estimator_disturbed(&b.w, &b.sample, &b.sums);
	sample(&b, 10, 0, 0, 0, 1);
	finish(&b, true);
	tap_ok(t, b.waits == 1 && b.ns == 30 * MS, "a stop by the recorder itself does not end a wait");
	begin(&b);
	sample(&b, 1000, 0, 0, 0, 0);
	b.sample.at_ns += 10 * MS;
	b.sample.waiting = true;
	b.sample.place.state = 1;
	estimator_disturbed(&b.w, &b.sample, &b.sums);
	sample(&b, 10, 0, 0, 0, 1);
	finish(&b, true);
	tap_ok(t, b.waits == 1 && b.ns == 20 * MS && b.open == 1 && b.at_place[1] == 20 * MS,
		"a stop by the recorder itself does not hide the wait that the thread returns to");
}

/* A sample finds another program while the thread runs: the last wait belongs to the old program. */
static void another_program(struct tap *t)
{
	struct bench b;

	begin(&b);
	sample(&b, 1000, 0, 0, 0, 1);
	sample(&b, 10, 0, 0, 0, 1);
	sample(&b, 10, MS, 0, 0, 0);
	tap_ok(t, b.waits == 0,
		"the wait of a thread that runs again is not handed out while its account may lag");
	estimator_exec(&b.w, &b.sink);
	tap_ok(t, b.waits == 1 && b.at_place[1] == 19 * MS && b.open == 0,
		"when the thread runs another program, the wait is handed out to the old program");
	estimator_exec(&b.w, &b.sink);
	tap_ok(t, b.waits == 1, "the old program's wait is handed out only once");
	/* it ran for 3 of the 9 ms before, which the account did not have yet */
	sample(&b, 10, 4 * MS, 0, 1, 2);
	estimator_exec(&b.w, &b.sink);
	tap_ok(t, b.waits == 1, "a wait that a sample saw in the new program is not handed out at its exec");
	finish(&b, false);
	tap_ok(t, b.waits == 2 && b.at_place[2] == 6 * MS && b.ns == b.sums.schedstat_ns,
		"the waits of both programs have the time of schedstat in sum");
}

/* Counters that jump forward and back: nothing crashes, and the waits do not exceed the elapsed time. */
static bool is_life(const struct estimator_life *l, uint64_t from, uint64_t to, uint64_t run, uint64_t delay)
{
	return l->from_ns == from * MS && l->to_ns == to * MS && l->run_ns == run * MS &&
	       l->delay_ns == delay * MS;
}

static void lives(struct tap *t)
{
	struct estimator_life l = { 0 };
	struct bench b;

	begin(&b);
	tap_ok(t, !estimator_life(&b.w, &l), "nothing is known of a thread that was not sampled");
	b.sample.run_ns = 500 * MS;
	b.sample.delay_ns = 70 * MS;
	sample(&b, 1000, 0, 0, 0, 0);
	sample(&b, 10, 3 * MS, 2 * MS, 1, 1);
	sample(&b, 10, 1 * MS, 0, 1, 1);
	tap_ok(t, estimator_life(&b.w, &l) && is_life(&l, 1000, 1020, 4, 2),
		"what it did since its first sample");
	sample(&b, 10, 5 * MS, 1 * MS, 1, 1);
	tap_ok(t, estimator_life(&b.w, &l) && is_life(&l, 1020, 1030, 5, 1), "and since the program before");
	b.sample.run_ns -= 400 * MS;
	sample(&b, 10, 0, 0, 1, 1);
	tap_ok(t, !estimator_life(&b.w, &l), "not known where the account is another thread's");

	begin(&b);
	estimator_born(&b.w, 1000 * MS);
	b.sample.at_ns = 1000 * MS;
	sample(&b, 10, 7 * MS, 2 * MS, 1, 1);
	tap_ok(t, estimator_life(&b.w, &l) && is_life(&l, 1000, 1010, 7, 2),
		"of a new thread since it began");

	begin(&b);
	b.sample.has_account = false;
	sample(&b, 1000, 0, 0, 0, 1);
	sample(&b, 10, 0, 0, 0, 1);
	tap_ok(t, !estimator_life(&b.w, &l), "not known without schedstat");
	b.sample.has_account = true;
	sample(&b, 10, 3 * MS, 0, 1, 1);
	tap_ok(t, estimator_life(&b.w, &l) == false, "nor where it began later");
	sample(&b, 10, 3 * MS, 0, 1, 1);
	b.sample.has_account = false;
	sample(&b, 10, 3 * MS, 0, 1, 1);
	tap_ok(t, !estimator_life(&b.w, &l), "nor where it has ended");
}

static void nonsense(struct tap *t)
{
	struct bench b;
	uint64_t seed = 42, span;
	bool fine = true;

	for (int round = 0; round < 200; round++) {
		begin(&b);
		b.sample.at_ns = 1000 * MS;
		for (int i = 0; i < 50; i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
			b.sample.at_ns += seed >> 40;
			b.sample.run_ns += (seed >> 20 & 0xffffff) - 0x400000;
			b.sample.delay_ns += (seed >> 8 & 0xffffff) - 0x400000;
			b.sample.voluntary += seed & 7;
			b.sample.slices += seed >> 3 & 3;
			b.sample.waiting = seed >> 5 & 1;
			b.sample.same = (seed >> 6 & 7) == 0;
			b.sample.has_account = (seed >> 9 & 7) != 0;
			b.sample.place.state = 1 + (seed >> 12 & 3);
			estimator_sample(&b.w, &b.sample, &b.sink, &b.sums);
		}
		span = b.sample.at_ns - 1000 * MS;
		finish(&b, round & 1);
		fine = fine && b.ns <= span;
	}
	tap_ok(t, fine, "invalid counters give no more time than has elapsed");
}

int main(void)
{
	struct tap t = { 0 };

	one_wait(&t);
	two_places(&t);
	unseen_waits(&t);
	lagging(&t);
	born(&t);
	without_account(&t);
	disturbed(&t);
	another_program(&t);
	lives(&t);
	nonsense(&t);
	return tap_done(&t);
}
