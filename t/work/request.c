/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests that pass through four threads, each of which waits for the next one, and what made up their time,
 *by the clock that each thread reads itself, before it wakes another. Prints lines "NAME NS": "elapsed", the
 *time of all requests, and of each thread what it worked on their path:
 *
 *	client	works, then sends the request
 *	server	has the keeper take a lock, works, then asks
 *	storage	which sleeps for 4 ms, works and answers; the server works, then waits for the lock until
 *	keeper	has worked and releases it; the server works and answers
 *
 * A request is between two waits of the client in next_request(). Where that is allowed, no other thread gets
 * their CPUs (SCHED_FIFO): a thread that is preempted when it has sent a request has not begun to wait for
 *it.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define REQUESTS 40
#define MS 1000000ull

enum { SERVER, STORAGE, KEEPER, CLIENT, ANSWER, QUEUES };

static int queue[QUEUES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t released; /* when the keeper began to release the lock */
static uint64_t client_ns, server_ns, storage_ns, keeper_ns;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void work(uint64_t ns)
{
	uint64_t end = now() + ns;

	while (now() < end)
		;
}

static void send_to(int who)
{
	uint64_t one = 1;

	if (write(queue[who], &one, sizeof(one)) != sizeof(one))
		abort();
}

static void receive(int who)
{
	uint64_t n;

	if (read(queue[who], &n, sizeof(n)) != sizeof(n))
		abort();
}

static void *run_server(void *unused)
{
	prctl(PR_SET_NAME, "server");
	for (int i = 0; i < REQUESTS; i++) {
		uint64_t t, locked;

		receive(SERVER);
		t = now();
		send_to(KEEPER);
		work(2 * MS);
		server_ns += now() - t;
		send_to(STORAGE);
		receive(ANSWER);
		t = now();
		work(1 * MS);
		server_ns += now() - t;
		t = now();
		pthread_mutex_lock(&lock);
		locked = now();
		/* unless it had released it already */
		keeper_ns += released > t ? released - t : 0;
		pthread_mutex_unlock(&lock);
		work(1 * MS);
		server_ns += now() - locked;
		send_to(CLIENT);
	}
	return unused;
}

static void *run_storage(void *unused)
{
	prctl(PR_SET_NAME, "storage");
	for (int i = 0; i < REQUESTS; i++) {
		uint64_t slept;

		receive(STORAGE);
		nanosleep(&(struct timespec){ .tv_nsec = 4 * MS }, NULL);
		slept = now();
		work(3 * MS);
		storage_ns += now() - slept;
		send_to(ANSWER);
	}
	return unused;
}

static void *run_keeper(void *unused)
{
	prctl(PR_SET_NAME, "keeper");
	for (int i = 0; i < REQUESTS; i++) {
		receive(KEEPER);
		pthread_mutex_lock(&lock);
		work(16 * MS);
		released = now();
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

void next_request(void);
void next_request(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 3 * MS }, NULL);
	__asm__ volatile("" ::: "memory");
}

int main(void)
{
	pthread_t threads[3];
	uint64_t elapsed = 0;

	prctl(PR_SET_NAME, "client");
	/* threads inherit it; two of them at most work at a time */
	if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 }) != 0)
		sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 });
	for (int i = 0; i < QUEUES; i++)
		queue[i] = eventfd(0, EFD_SEMAPHORE); /* each message by itself */
	if (pthread_create(&threads[0], NULL, run_server, NULL) ||
		pthread_create(&threads[1], NULL, run_storage, NULL) ||
		pthread_create(&threads[2], NULL, run_keeper, NULL))
		abort();
	for (int i = 0; i < REQUESTS; i++) {
		uint64_t t;

		next_request();
		t = now();
		work(2 * MS);
		client_ns += now() - t;
		send_to(SERVER);
		receive(CLIENT);
		elapsed += now() - t;
	}
	next_request();
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	printf("elapsed %llu\nclient %llu\nserver %llu\nstorage %llu\nkeeper %llu\n",
		(unsigned long long)elapsed, (unsigned long long)client_ns, (unsigned long long)server_ns,
		(unsigned long long)storage_ns, (unsigned long long)keeper_ns);
	return 0;
}
