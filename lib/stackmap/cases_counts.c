/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rule: every run of the program is counted once, under the id of its stack or, if the stack could not
 * be stored, under the error. So for each chain, either all calls are counted under its id, or all of them
 * are collisions.
 *
 * Every call is a run, except those that the kernel misses: while a thread is preempted inside the program
 * (since Linux 7.2 this can happen to programs at raw tracepoints of system calls), the program does not run
 * on that CPU. The kernel counts the misses, including those of other processes, so they are an upper bound
 * for the missing runs; if it counts none, every call must be counted.
 */
#include "stackmap/cases.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#define FAMILIES 4 /* the chains that do not recurse */
#define CALLS 1000 /* by each thread */
#define ENTRIES 16384 /* collisions of 4 stacks are rare; the check allows for them */

struct worker {
	enum chain_family family;
	unsigned int calls;
};

/* The same caller in every thread, so that each chain is one stack. */
static __attribute__((noinline)) void work(const struct worker *k)
{
	for (unsigned int i = 0; i < k->calls; i++) {
		struct chain_walk w = { .family = k->family, .trigger = CHAIN_GETPGID };

		chain_run(&w);
	}
}

static void *work_thread(void *arg)
{
	work(arg);
	return NULL;
}

/* Call each chain once, one after the other; then run THREADS threads for each of them. */
static int run_workers(struct stackshot *s, unsigned int threads)
{
	struct worker workers[FAMILIES];
	pthread_t ids[FAMILIES * 8];
	unsigned int n = 0;
	int code = 0;

	stackshot_count_start(s);
	for (unsigned int f = 0; f < FAMILIES; f++) {
		/* not in parallel: if two stacks race for one bucket, both could seem to be stored */
		workers[f] = (struct worker){ .family = (enum chain_family)f, .calls = 1 };
		work(&workers[f]);
		workers[f].calls = CALLS;
	}
	while (!code && n < FAMILIES * threads) {
		code = -pthread_create(&ids[n], NULL, work_thread, &workers[n % FAMILIES]);
		n += code == 0;
	}
	for (unsigned int i = 0; i < n; i++)
		pthread_join(ids[i], NULL);
	stackshot_count_stop(s);
	return code;
}

struct sums {
	uint64_t by_family[FAMILIES], collisions, total;
};

/* The chain that a stack belongs to; FAMILIES if none. */
static unsigned int family_of(const uint64_t *frames, size_t n)
{
	const char *name = n > 1 ? chain_name(frames[1], NULL) : NULL;

	for (unsigned int f = 0; name && f < FAMILIES; f++) {
		struct chain_walk w = { .family = (enum chain_family)f };

		if (strcmp(name, chain_expect(&w, 1)) == 0)
			return f;
	}
	return FAMILIES;
}

/* Add up the counts of each chain, by looking up each id's stack in the other map. */
static bool sum_up(struct stackcase_report *r, const struct stackshot *s, struct sums *sums)
{
	uint64_t frames[STACKCASE_DEPTH], count;
	int fd = stackshot_counts_fd(s);
	int32_t key, *prev = NULL;
	unsigned int f;
	char text[256];

	while (bpf_map_get_next_key(fd, prev, &key) == 0) {
		prev = &key;
		if (bpf_map_lookup_elem(fd, &key, &count) != 0)
			return stackcase_fail(r, "the count of %d is gone: %s", key, err_name(errno));
		sums->total += count;
		if (key < 0) {
			stackcase_detail(r, "%" PRIu64 " times %s", count,
				stackerr_text(STACKERR_GET_ID, key, text, sizeof(text)));
			sums->collisions += key == -EEXIST ? count : 0;
			continue;
		}
		f = family_of(frames, stackcase_frames(r, s, key, frames));
		if (f == FAMILIES)
			return stackcase_fail(r, "id %d is not one of our stacks", key);
		stackcase_detail(r, "%" PRIu64 " times id %d: %s", count, key, chain_name(frames[1], NULL));
		sums->by_family[f] += count;
	}
	return true;
}

/* ARG: the number of threads for each chain. */
static void run_counts(struct stackcase_report *r, const struct stackcase_env *env, const void *arg)
{
	CLEANUP(stackshot_close_p)
	struct stackshot *s = stackcase_open(
		r, env, (struct stackshot_opts){ .type = STACKSHOT_RAW_TP, .entries = ENTRIES, .depth = 16 });
	unsigned int threads = *(const unsigned int *)arg;
	uint64_t each = (uint64_t)threads * CALLS + 1, lost = 0, missed, all = FAMILIES * each;
	struct sums sums = { .total = 0 };
	int code;

	if (!s)
		return;
	code = run_workers(s, threads);
	if (code) {
		stackcase_skip(r, "cannot start %u threads: %s", FAMILIES * threads, strerror(-code));
		return;
	}
	missed = stackshot_misses(s);
	if (!sum_up(r, s, &sums))
		return;
	for (unsigned int f = 0; f < FAMILIES; f++) {
		struct chain_walk w = { .family = (enum chain_family)f };

		lost += sums.by_family[f] == 0 ? each : 0;
		if (sums.by_family[f] > each || (sums.by_family[f] && sums.by_family[f] + missed < each))
			stackcase_fail(r,
				"%s was called %" PRIu64 " times and counted %" PRIu64
				"; the kernel missed %" PRIu64,
				chain_expect(&w, 1), each, sums.by_family[f], missed);
	}
	if (sums.total > all || sums.total + missed < all || sums.collisions > lost ||
		sums.collisions + missed < lost)
		stackcase_fail(r,
			"%" PRIu64 " calls: %" PRIu64 " counted, %" PRIu64 " collisions, want %" PRIu64
			"; the kernel missed %" PRIu64,
			all, sums.total, sums.collisions, lost, missed);
	stackcase_pass(r,
		"%u threads, %d chains of %" PRIu64 " calls: %" PRIu64 " counted, %" PRIu64
		" of them collisions; the kernel missed %" PRIu64,
		FAMILIES * threads, FAMILIES, each, sums.total, sums.collisions, all - sums.total);
}

static const unsigned int one = 1, two = 2;

static const struct stackcase cases[] = {
	{ "counts: one thread for each chain adds up exactly", run_counts, &one },
	{ "counts: threads that share their stacks add up exactly", run_counts, &two },
};

const struct stackcase_set countcases = { cases, ARRAY_LEN(cases) };
