/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "record/unwind_memory.h"

#include <string.h>

#define BITS 777 /* not a multiple of a word's bits */
#define STEPS 20000

/* The reference: one byte per number, searched one number at a time. */
static bool model_take(uint8_t *taken, uint32_t n, uint32_t *at)
{
	for (uint32_t i = 0, run = 0; i < BITS; i++) {
		run = taken[i] ? 0 : run + 1;
		if (run < n)
			continue;
		*at = i + 1 - n;
		memset(taken + *at, 1, n);
		return true;
	}
	return false;
}

struct run {
	uint32_t at, n;
};

static void test_model(struct tap *t)
{
	uint8_t taken[BITS] = { 0 };
	struct run runs[BITS];
	struct bitrun b;
	uint32_t n_runs = 0, wrong = 0, refused = 0;

	srand(7);
	if (bitrun_open(&b, BITS) != 0)
		return;
	for (int i = 0; i < STEPS; i++) {
		uint32_t n = 1 + (uint32_t)rand() % (rand() % 8 ? 20 : 200), at = 0, want = 0;

		if (rand() % 100 < 48 && n_runs) {
			struct run *r = &runs[(uint32_t)rand() % n_runs];

			bitrun_give(&b, r->at, r->n);
			memset(taken + r->at, 0, r->n);
			*r = runs[--n_runs];
			continue;
		}
		bool there = model_take(taken, n, &want);

		wrong += bitrun_take(&b, n, &at) != there || at != want;
		refused += !there;
		if (there)
			runs[n_runs++] = (struct run){ at, n };
	}
	tap_eq_u64(t, wrong, 0, "20,000 random steps agree with a model");
	tap_ok(t, refused > 100, "some of the random steps do not fit into the range");
	while (n_runs--)
		bitrun_give(&b, runs[n_runs].at, runs[n_runs].n);
	tap_eq_u64(t, b.used, 0, "nothing is taken after everything is given back");
	tap_ok(t, bitrun_take(&b, BITS, &(uint32_t){ 0 }),
		"the whole range is one run after everything is given back");
	bitrun_close(&b);
}

static void test_edges(struct tap *t)
{
	struct bitrun b;
	uint32_t at = 99;

	if (bitrun_open(&b, 64) != 0)
		return;
	tap_ok(t, !bitrun_take(&b, 65, &at), "a run longer than the range does not fit");
	tap_ok(t, bitrun_take(&b, 64, &at) && at == 0, "a run as long as the range fits");
	tap_ok(t, !bitrun_take(&b, 1, &at), "a full range has no room for a run of one");
	bitrun_give(&b, 63, 1);
	tap_ok(t, !bitrun_take(&b, 2, &at), "one free number is no room for a run of two");
	tap_ok(t, bitrun_take(&b, 1, &at) && at == 63, "the last number of the range is used");
	bitrun_give(&b, 0, 1);
	bitrun_give(&b, 62, 2);
	tap_ok(t, bitrun_take(&b, 2, &at) && at == 62, "a run that fits nowhere earlier goes to the end");
	bitrun_close(&b);
	bitrun_close(&b);
	tap_ok(t, bitrun_open(&b, 1) == 0 && bitrun_take(&b, 1, &at) && at == 0 && !bitrun_take(&b, 1, &at),
		"a range of one number has room for one");
	bitrun_close(&b);
}

int main(void)
{
	struct tap t = { 0 };

	test_edges(&t);
	test_model(&t);
	return tap_done(&t);
}
