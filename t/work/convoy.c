/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * convoy - eight threads answer requests, each of which needs a price from a cache with one lock. A price
 * that is old is loaded again, which takes 10 ms, and the lock is held meanwhile: while one thread loads a
 * price, all others queue, also those whose price is fresh.
 *
 *   convoy [fixed]	runs until it is stopped; prints each second how many requests were answered
 *
 * fixed: the lock is held only to look a price up and to store it.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 8, PRICES = 64, LOAD_MS = 10, FRESH_MS = 500 };

struct price {
	long cents;
	long loaded_ms; /* when; 0 = never */
};

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static struct price cache[PRICES];
static bool fixed;
static unsigned long answered; /* requests */

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void nap_ms(long ms)
{
	const struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

/* Stands for a query of a distant database. */
static long load_price(unsigned int article)
{
	nap_ms(LOAD_MS);
	return 100 + (long)article;
}

static bool is_fresh(unsigned int article)
{
	return cache[article].loaded_ms && now_ms() - cache[article].loaded_ms < FRESH_MS;
}

static void store_price(unsigned int article, long cents)
{
	cache[article].cents = cents;
	cache[article].loaded_ms = now_ms();
}

static long price_of(unsigned int article)
{
	long cents;

	pthread_mutex_lock(&cache_lock);
	if (!is_fresh(article)) {
		if (fixed)
			pthread_mutex_unlock(&cache_lock);
		cents = load_price(article);
		if (fixed)
			pthread_mutex_lock(&cache_lock);
		store_price(article, cents);
	}
	cents = cache[article].cents;
	pthread_mutex_unlock(&cache_lock);
	return cents;
}

static void answer_request(unsigned int *random)
{
	price_of((unsigned int)rand_r(random) % PRICES);
	nap_ms(2); /* stands for the client */
	__atomic_add_fetch(&answered, 1, __ATOMIC_RELAXED);
}

static void *request_thread(void *arg)
{
	unsigned int random = *(const unsigned int *)arg;

	for (;;)
		answer_request(&random);
	return NULL;
}

int main(int argc, char **argv)
{
	static unsigned int numbers[THREADS];
	pthread_t id;

	fixed = argc == 2 && strcmp(argv[1], "fixed") == 0;
	if (argc > 2 || (argc == 2 && !fixed)) {
		fprintf(stderr, "usage: convoy [fixed]\n");
		return 64;
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		if (pthread_create(&id, NULL, request_thread, &numbers[i]) != 0) {
			fprintf(stderr, "convoy: cannot start a thread\n");
			return 2;
		}
	}
	printf("ready: process %d\n", getpid());
	for (;;) {
		fflush(stdout);
		sleep(1);
		printf("%lu requests in a second\n", __atomic_exchange_n(&answered, 0, __ATOMIC_RELAXED));
	}
}
