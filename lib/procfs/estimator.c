/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/estimator.h"

#include <string.h>

void estimator_born(struct estimator *w, uint64_t began_ns)
{
	*w = (struct estimator){
		.begun = true, .has_account = true, .at_ns = began_ns, .since = { true, began_ns, 0, 0 }
	};
}

/* Counters only go up. One that goes back belongs to another thread, or is a kernel bug. */
static uint64_t gone_up(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static void take_account(struct estimator *w, const struct estimator_sample *now)
{
	w->begun = true;
	w->has_account = now->has_account;
	w->at_ns = now->at_ns;
	w->run_ns = now->run_ns;
	w->delay_ns = now->delay_ns;
	w->slices = now->slices;
	w->voluntary = now->voluntary;
	if (!now->same)
		w->waiting = now->waiting;
}

static void begin_life(struct estimator *w)
{
	w->since.has_account = w->has_account;
	w->since.at_ns = w->at_ns;
	w->since.run_ns = w->run_ns;
	w->since.delay_ns = w->delay_ns;
}

bool estimator_life(struct estimator *w, struct estimator_life *ret)
{
	const bool known = w->begun && w->has_account && w->since.has_account && w->at_ns >= w->since.at_ns &&
			   w->run_ns >= w->since.run_ns && w->delay_ns >= w->since.delay_ns;

	if (known)
		*ret = (struct estimator_life){ w->since.at_ns, w->at_ns, w->run_ns - w->since.run_ns,
			w->delay_ns - w->since.delay_ns };
	begin_life(w);
	return known;
}

/* Off-CPU time, only by what was seen at both ends of DT. */
static uint64_t by_samples(const struct estimator *w, const struct estimator_sample *now, uint64_t dt)
{
	bool waiting = now->same ? w->waiting : now->waiting;

	return w->waiting && waiting ? dt : w->waiting || waiting ? dt / 2 : 0;
}

static void hand_out(const struct estimator_sink *sink, const struct estimator_done *d)
{
	if (d->count)
		sink->done(sink->ctx, d);
}

/* The current wait is over. */
static void finish(struct estimator *w, bool open, const struct estimator_sink *sink)
{
	if (w->current)
		hand_out(sink, &(struct estimator_done){ .place = &w->place,
				       .total_ns = w->wait_ns,
				       .count = 1,
				       .max_ns = w->wait_ns,
				       .first_ns = w->began_ns,
				       .last_ns = w->began_ns,
				       .open = open,
				       .initial = w->initial });
	w->current = w->initial = false;
}

/* N waits of NS in total that no sample saw, at PLACE, between FROM_NS and UNTIL_NS. */
static void unseen(const struct estimator_sink *sink, const struct estimator_place *place, uint64_t n,
	uint64_t ns, uint64_t from_ns, uint64_t until_ns)
{
	uint64_t each = n ? ns / n : 0;

	hand_out(sink, &(struct estimator_done){ .place = place,
			       .total_ns = ns,
			       .count = n,
			       .max_ns = each,
			       .first_ns = from_ns,
			       .last_ns = MAX(from_ns, until_ns - MIN(each, until_ns)) });
}

/*
 * Divide NS off the CPU since FROM_NS, with N waits begun: among the rest of the
 * current wait, the waits that no sample saw, and with NEXT the wait seen now.
 */
static void share_out(struct estimator *w, uint64_t ns, uint64_t n, const struct estimator_sample *next,
	uint64_t from_ns, uint64_t now_ns, const struct estimator_sink *sink)
{
	uint64_t between = n - (next && n), parts = w->current + between + (next != NULL);
	uint64_t share = parts ? ns / parts : 0, rest = ns - share * parts, before;
	struct estimator_place old = w->place;
	bool had = w->current;

	if (had) {
		w->wait_ns += share + (next || between ? 0 : rest);
		finish(w, false, sink);
	}
	before = !had ? 0 : !next ? between : between / 2;
	unseen(sink, &old, before, before * share, from_ns, now_ns);
	between -= before;
	unseen(sink, next ? &next->place : NULL, between, between * share + (next ? 0 : rest), from_ns,
		now_ns - (next ? MIN(share, now_ns) : 0));
	if (!next)
		return;
	w->current = true;
	w->place = next->place;
	w->wait_ns = share + rest;
	w->began_ns = MAX(from_ns, now_ns - MIN(share + rest, now_ns));
}

/* The thread ran since the last sample and waits now. */
static void settle_waiting(struct estimator *w, const struct estimator_sample *now, uint64_t from_ns,
	const struct estimator_sink *sink)
{
	uint64_t ns = w->carried_ns > 0 ? (uint64_t)w->carried_ns : 0;

	share_out(w, ns, w->carried, now, from_ns, now->at_ns, sink);
	w->carried_ns -= (int64_t)ns;
	w->carried = 0;
}

/* The thread runs now: LAG_NS of the carried time may not have been a wait. */
static void settle_running(struct estimator *w, uint64_t lag_ns, uint64_t from_ns, uint64_t now_ns,
	const struct estimator_sink *sink)
{
	uint64_t ns;

	if (w->carried_ns <= 0 || (uint64_t)w->carried_ns <= lag_ns)
		return;
	ns = (uint64_t)w->carried_ns - lag_ns;
	/* time without a wait: its switch was counted before */
	if (!w->current && !w->carried)
		w->carried = 1;
	share_out(w, ns, w->carried, NULL, from_ns, now_ns, sink);
	w->carried_ns -= (int64_t)ns;
	w->carried = 0;
}

static void first_sample(struct estimator *w, const struct estimator_sample *now)
{
	take_account(w, now);
	begin_life(w);
	w->waiting = now->waiting;
	if (!now->waiting)
		return;
	w->current = w->initial = true;
	w->place = now->place;
	w->began_ns = now->at_ns;
	w->wait_ns = 0;
}

/* Off-CPU time since the last sample: by the account, or by the samples if there is none. */
static int64_t account(struct estimator *w, const struct estimator_sample *now,
	const struct estimator_sink *sink, struct estimator_sums *sums)
{
	uint64_t dt = gone_up(now->at_ns, w->at_ns), seen = by_samples(w, now, dt);
	uint64_t delay = gone_up(now->delay_ns, w->delay_ns);
	int64_t off;

	sums->estimated_ns += seen;
	if (!now->has_account || !w->has_account)
		return (int64_t)seen;
	if (delay)
		sink->delayed(sink->ctx, MAX(gone_up(now->slices, w->slices), 1), delay, now->at_ns);
	off = (int64_t)(dt - gone_up(now->run_ns, w->run_ns) - delay);
	/* signed: the next interval makes up for a lag of this one */
	sums->schedstat_ns += (uint64_t)off;
	return off;
}

void estimator_sample(struct estimator *w, const struct estimator_sample *now,
	const struct estimator_sink *sink, struct estimator_sums *sums)
{
	uint64_t from_ns = w->at_ns, dt;
	bool rescheduled = now->slices != w->slices;

	if (!w->begun) {
		first_sample(w, now);
		return;
	}
	dt = gone_up(now->at_ns, w->at_ns);
	w->carried_ns += account(w, now, sink, sums);
	w->carried += gone_up(now->voluntary, w->voluntary);
	if (now->same ? w->waiting : now->waiting) {
		if (now->same && w->current && w->carried_ns > 0) {
			w->wait_ns += (uint64_t)w->carried_ns;
			w->carried_ns = 0;
		} else if (!now->same) {
			settle_waiting(w, now, from_ns, sink);
		}
	} else if (!now->has_account) {
		settle_running(w, 0, from_ns, now->at_ns, sink);
	} else if (rescheduled) {
		settle_running(w, dt, from_ns, now->at_ns, sink);
	}
	take_account(w, now);
}

void estimator_disturbed(struct estimator *w, const struct estimator_sample *now, struct estimator_sums *sums)
{
	struct estimator_sample same = *now;
	uint64_t dt = gone_up(now->at_ns, w->at_ns);

	sums->estimated_ns += dt;
	sums->schedstat_ns += dt;
	w->carried_ns += (int64_t)dt;
	/* at the sample before, it was on its way back */
	if (!w->current) {
		w->current = true;
		w->place = now->place;
		w->began_ns = w->at_ns;
		w->wait_ns = 0;
	}
	if (w->carried_ns > 0) {
		w->wait_ns += (uint64_t)w->carried_ns;
		w->carried_ns = 0;
	}
	same.same = true;
	take_account(w, &same);
	w->waiting = true;
	w->carried = 0;
}

void estimator_exec(struct estimator *w, const struct estimator_sink *sink)
{
	if (w->waiting || !w->current)
		return;
	if (w->carried_ns > 0) {
		w->wait_ns += (uint64_t)w->carried_ns;
		w->carried_ns = 0;
	}
	finish(w, false, sink);
}

void estimator_end(
	struct estimator *w, bool open, const struct estimator_sink *sink, struct estimator_sums *sums)
{
	if (w->current && !w->waiting && w->carried_ns > 0) {
		/* the rest of the wait is in carried_ns, which may include a lag */
		sums->unsettled_ns += (uint64_t)w->carried_ns;
		w->carried_ns = 0;
	}
	finish(w, open && w->waiting, sink);
	if (w->carried)
		unseen(sink, NULL, w->carried, w->carried_ns > 0 ? (uint64_t)w->carried_ns : 0, w->at_ns,
			w->at_ns);
	else if (w->carried_ns > 0)
		sums->unsettled_ns += (uint64_t)w->carried_ns;
	*w = (struct estimator){ 0 };
}
