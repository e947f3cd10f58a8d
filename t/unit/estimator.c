/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "procfs/estimator.h"

#include <string.h>

#define MS UINT64_C(1000000)

/* What came out, and a thread that is looked at every 10 ms. */
struct bench {
	struct estimator w;
	struct estimator_sample look;
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
	*b = (struct bench){ .sink = { b, on_done, on_delayed }, .look = { .has_account = true } };
}

/* MS later: it ran for RUN and was runnable for DELAY, made N voluntary switches, and waits at PLACE (0:
 * runs). */
static void look(struct bench *b, uint64_t ms, uint64_t run_ns, uint64_t delay_ns, uint64_t n, uint32_t place)
{
	b->look.at_ns += ms * MS;
	b->look.run_ns += run_ns;
	b->look.delay_ns += delay_ns;
	b->look.voluntary += n;
	b->look.same = !run_ns && !delay_ns && !n && place == b->look.place.state && place;
	b->look.slices += !b->look.same;
	b->look.waiting = place != 0;
	b->look.place.state = place;
	estimator_sample(&b->w, &b->look, &b->sink, &b->sums);
}

static void finish(struct bench *b, bool open)
{
	estimator_end(&b->w, open, &b->sink, &b->sums);
}

static void one_wait(struct tap *t)
{
	struct bench b;

	begin(&b);
	look(&b, 1000, 0, 0, 0, 1);
	for (int i = 0; i < 100; i++)
		look(&b, 10, 0, 0, 0, 1);
	tap_ok(t, b.waits == 0, "a wait that goes on is not handed out");
	finish(&b, true);
	tap_ok(t,
		b.waits == 1 && b.ns == 1000 * MS && b.open == 1 && b.initial == 1 && b.longest == 1000 * MS,
		"a thread that waits from the first look to the last has one wait of that time, open and "
		"initial");
	tap_ok(t, b.sums.estimated_ns == 1000 * MS && b.sums.schedstat_ns == 1000 * MS,
		"and both accounts agree");
}

static void two_places(struct tap *t)
{
	struct bench b;

	begin(&b);
	look(&b, 1000, 0, 0, 0, 1);
	look(&b, 10, 0, 0, 0, 1);
	look(&b, 10, 2 * MS, 0, 1, 2);
	look(&b, 10, 0, 0, 0, 2);
	finish(&b, false);
	tap_ok(t, b.waits == 2 && b.ns == 28 * MS,
		"two waits, and the run between them is no part of either");
	tap_ok(t, b.at_place[1] == 14 * MS && b.at_place[2] == 14 * MS,
		"the time between the two looks belongs to both places, in equal shares");
	tap_ok(t, b.open == 0 && b.initial == 1, "the first is initial, and none is open");
}

static void unseen_waits(struct tap *t)
{
	struct bench b;

	begin(&b);
	look(&b, 1000, 0, 0, 0, 1);
	look(&b, 10, 2 * MS, 0, 4, 2);
	finish(&b, true);
	tap_ok(t, b.waits == 5 && b.ns == 8 * MS, "four switches between two looks are four waits more");
	tap_ok(t, !b.unseen && b.at_place[1] + b.at_place[2] == 8 * MS,
		"those that nobody saw count for the places before and after");
	begin(&b);
	look(&b, 1000, 0, 0, 0, 0);
	for (int i = 0; i < 10; i++)
		look(&b, 10, 2 * MS, 0, 1, 0);
	finish(&b, true);
	tap_ok(t, b.unseen == b.waits && b.waits == 10,
		"a thread seen running at each look has waits at no place");
	tap_ok(t, b.unseen_ns + b.sums.unsettled_ns == 80 * MS && b.unseen_ns >= 60 * MS,
		"their time is what the account says, but for what may be a lag");
}

static void lagging(struct tap *t)
{
	struct bench b;

	begin(&b);
	look(&b, 1000, 0, 0, 0, 0);
	/* runnable for 50 ms: the account tells when it is given a CPU */
	for (int i = 0; i < 5; i++) {
		b.look.at_ns += 10 * MS;
		b.look.same = true;
		estimator_sample(&b.w, &b.look, &b.sink, &b.sums);
	}
	look(&b, 10, 8 * MS, 52 * MS, 0, 0);
	finish(&b, true);
	tap_ok(t, b.waits == 0 && b.ns == 0 && b.delayed_ns == 52 * MS,
		"to be runnable without a CPU is no wait, however late the account says so");
	tap_ok(t, b.sums.unsettled_ns == 0 && b.sums.schedstat_ns == 0, "and nothing is left over");
	begin(&b);
	look(&b, 1000, 0, 0, 0, 1);
	look(&b, 10, 0, 0, 0, 1);
	/* woken up, but 5 ms of the 10 were for want of a CPU */
	look(&b, 10, 1 * MS, 9 * MS, 1, 1);
	finish(&b, true);
	tap_ok(t, b.ns == 10 * MS && b.waits == 2, "a delay is taken off the wait that it ended");
}

static void born(struct tap *t)
{
	struct bench b;

	begin(&b);
	estimator_born(&b.w, 990 * MS);
	look(&b, 1000, 1 * MS, 1 * MS, 1, 1);
	finish(&b, true);
	tap_ok(t, b.waits == 1 && b.ns == 8 * MS && b.initial == 0,
		"a new thread's first wait counts from its birth, less what it ran");
}

static void without_account(struct tap *t)
{
	struct bench b;

	begin(&b);
	b.look.has_account = false;
	look(&b, 1000, 0, 0, 0, 1);
	look(&b, 10, 0, 0, 0, 1);
	look(&b, 10, 0, 0, 1, 0);
	look(&b, 10, 0, 0, 0, 0);
	look(&b, 10, 0, 0, 1, 2);
	finish(&b, true);
	tap_ok(t, b.ns == 20 * MS && b.waits == 3, "without schedstat what was seen at the looks counts");
	tap_ok(t, b.sums.estimated_ns == 20 * MS && b.sums.schedstat_ns == 0, "and nothing checks it");
}

static void disturbed(struct tap *t)
{
	struct bench b;

	begin(&b);
	look(&b, 1000, 0, 0, 0, 1);
	look(&b, 10, 0, 0, 0, 1);
	b.look.at_ns += 10 * MS;
	b.look.voluntary += 2;
	b.look.slices += 2;
	b.look.run_ns += 50000;
	estimator_disturbed(&b.w, &b.look, &b.sums);
	look(&b, 10, 0, 0, 0, 1);
	finish(&b, true);
	tap_ok(t, b.waits == 1 && b.ns == 30 * MS, "a stop by the recorder itself does not end a wait");
	begin(&b);
	look(&b, 1000, 0, 0, 0, 0);
	b.look.at_ns += 10 * MS;
	b.look.waiting = true;
	b.look.place.state = 1;
	estimator_disturbed(&b.w, &b.look, &b.sums);
	look(&b, 10, 0, 0, 0, 1);
	finish(&b, true);
	tap_ok(t, b.waits == 1 && b.ns == 20 * MS && b.open == 1 && b.at_place[1] == 20 * MS,
		"nor does it hide one that was on its way back when it was looked at");
}

/* An exec that is seen while the thread runs: its last wait is the old program's. */
static void another_program(struct tap *t)
{
	struct bench b;

	begin(&b);
	look(&b, 1000, 0, 0, 0, 1);
	look(&b, 10, 0, 0, 0, 1);
	look(&b, 10, MS, 0, 0, 0);
	tap_ok(t, b.waits == 0, "the wait of a thread that runs again is kept while its account may lag");
	estimator_exec(&b.w, &b.sink);
	tap_ok(t, b.waits == 1 && b.at_place[1] == 19 * MS && b.open == 0,
		"when it runs another program, that wait is handed out whole, to the one that waited");
	estimator_exec(&b.w, &b.sink);
	tap_ok(t, b.waits == 1, "once");
	/* of the 9 ms before, 3 were run: the account did not have them yet */
	look(&b, 10, 4 * MS, 0, 1, 2);
	estimator_exec(&b.w, &b.sink);
	tap_ok(t, b.waits == 1, "a wait that the other program was seen in is its own");
	finish(&b, false);
	tap_ok(t, b.waits == 2 && b.at_place[2] == 6 * MS && b.ns == b.sums.schedstat_ns,
		"and the sum is the account's");
}

/* Counters that jump, back too: nothing crashes, and no more time comes out than went by. */
static void nonsense(struct tap *t)
{
	struct bench b;
	uint64_t seed = 42, span;
	bool fine = true;

	for (int round = 0; round < 200; round++) {
		begin(&b);
		b.look.at_ns = 1000 * MS;
		for (int i = 0; i < 50; i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
			b.look.at_ns += seed >> 40;
			b.look.run_ns += (seed >> 20 & 0xffffff) - 0x400000;
			b.look.delay_ns += (seed >> 8 & 0xffffff) - 0x400000;
			b.look.voluntary += seed & 7;
			b.look.slices += seed >> 3 & 3;
			b.look.waiting = seed >> 5 & 1;
			b.look.same = (seed >> 6 & 7) == 0;
			b.look.has_account = (seed >> 9 & 7) != 0;
			b.look.place.state = 1 + (seed >> 12 & 3);
			estimator_sample(&b.w, &b.look, &b.sink, &b.sums);
		}
		span = b.look.at_ns - 1000 * MS;
		finish(&b, round & 1);
		fine = fine && b.ns <= span;
	}
	tap_ok(t, fine, "nonsense gives no more time than went by");
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
	nonsense(&t);
	return tap_done(&t);
}
