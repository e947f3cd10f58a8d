/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * waits - threads whose waits are known.
 *
 * Each thread has its own name and waits in one way. At its end it prints
 *
 * 	NAME TID COUNT REQUESTED MEASURED OFF OFF_MOST
 *
 * the number of waits; the least time that it had to wait, and the time that it
 * waited by its own clock; and its whole time off the CPU, including runnable
 * time: its wall-clock time minus the CPU time in
 * /proc/PID/task/TID/schedstat, OFF while it ran in this file, OFF_MOST from
 * its creation until it was gone. Times are nanoseconds.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ull

struct self {
	const char *name;
	long tid;
	uint64_t count, requested, measured;
	uint64_t created;
	uint64_t wall, cpu; /* at the beginning, later the difference until the end */
	uint64_t cpu_all; /* since it was created */
	uint64_t off_most; /* 0 = it is not gone yet */
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * CPU time of this thread as the scheduler accounts it: reading the clock
 * updates it. Does not use stdio: threads would wait for malloc's locks, which
 * is not measured.
 */
static uint64_t schedstat_ns(void)
{
	int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	char text[128];
	ssize_t n;

	clock_ns(CLOCK_THREAD_CPUTIME_ID);
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		exit(1);
	close(fd);
	text[n] = '\0';
	return strtoull(text, NULL, 10);
}

static void begin(struct self *s, const char *name)
{
	prctl(PR_SET_NAME, name);
	*s = (struct self){ .name = name, .tid = syscall(SYS_gettid), .created = s->created };
	s->cpu = schedstat_ns();
	s->wall = clock_ns(CLOCK_MONOTONIC);
}

static void end(struct self *s)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), cpu = schedstat_ns();

	s->cpu_all = cpu;
	s->wall = now - s->wall;
	s->cpu = cpu - s->cpu;
}

static void print(const struct self *s)
{
	printf("%s %ld %llu %llu %llu %llu %llu\n", s->name, s->tid, (unsigned long long)s->count,
		(unsigned long long)s->requested, (unsigned long long)s->measured,
		(unsigned long long)(s->wall - s->cpu), (unsigned long long)s->off_most);
}

static void pause_ns(uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };

	nanosleep(&ts, NULL);
}

#define MEASURED(s, requested_ns, call)                                                                      \
	do {                                                                                                 \
		uint64_t t0_ = clock_ns(CLOCK_MONOTONIC);                                                    \
		call;                                                                                        \
		(s)->measured += clock_ns(CLOCK_MONOTONIC) - t0_;                                            \
		(s)->requested += (requested_ns);                                                            \
		(s)->count++;                                                                                \
	} while (0)

static void *short_sleeps(void *arg)
{
	struct self *s = arg;

	begin(s, "w-short");
	for (int i = 0; i < 40; i++)
		MEASURED(s, 25 * MS, pause_ns(25 * MS));
	end(s);
	return NULL;
}

static void *long_sleep(void *arg)
{
	struct self *s = arg;

	begin(s, "w-long");
	MEASURED(s, 1000 * MS, pause_ns(1000 * MS));
	end(s);
	return NULL;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *mutex_waiter(void *arg)
{
	struct self *s = arg;

	begin(s, "w-mutex");
	MEASURED(s, 0, pthread_mutex_lock(&lock));
	pthread_mutex_unlock(&lock);
	end(s);
	return NULL;
}

static pthread_mutex_t cond_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int cond_set;

static void *cond_waiter(void *arg)
{
	struct self *s = arg;

	begin(s, "w-cond");
	pthread_mutex_lock(&cond_lock);
	while (!cond_set)
		MEASURED(s, 0, pthread_cond_wait(&cond, &cond_lock));
	pthread_mutex_unlock(&cond_lock);
	end(s);
	return NULL;
}

static int feed[2];

static void *pipe_reader(void *arg)
{
	struct self *s = arg;
	ssize_t got = 1;
	char c;

	begin(s, "w-pipe");
	while (got == 1)
		MEASURED(s, 0, got = read(feed[0], &c, 1));
	end(s);
	return NULL;
}

static uint32_t turn;

static long wait_while(uint32_t value)
{
	return syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

/* Two threads: one holds the turn for 10 ms and hands it over, while the other one waits. */
static void *ping_pong(void *arg)
{
	struct self *s = arg;
	uint32_t me = s->count != 0;

	begin(s, me ? "w-pong" : "w-ping");
	for (int i = 0; i < 40; i++) {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != me) {
			long rc;

			MEASURED(s, 0, rc = wait_while(!me));
			s->count -= rc != 0; /* the turn has changed already */
		}
		MEASURED(s, 10 * MS, pause_ns(10 * MS));
		__atomic_store_n(&turn, !me, __ATOMIC_RELEASE);
		syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	end(s);
	return NULL;
}

/* Works for 5 ms and sleeps for 15 ms, alternately. */
static void *worker(void *arg)
{
	struct self *s = arg;

	begin(s, "w-work");
	for (int i = 0; i < 40; i++) {
		uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 5 * MS;

		while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
			;
		MEASURED(s, 15 * MS, pause_ns(15 * MS));
	}
	end(s);
	return NULL;
}

/* Wait until the thread of S blocks: if it got no CPU time before the byte is written, it would not wait. */
static void until_blocked(const struct self *s)
{
	char path[64], text[256], *state;
	ssize_t n;
	int fd;

	do {
		pause_ns(MS);
		snprintf(path, sizeof(path), "/proc/self/task/%ld/stat",
			__atomic_load_n(&s->tid, __ATOMIC_ACQUIRE));
		fd = open(path, O_RDONLY | O_CLOEXEC);
		n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
		if (fd >= 0)
			close(fd);
		text[n > 0 ? n : 0] = '\0';
		state = strrchr(text, ')');
	} while (!state || strncmp(state, ") S", 3) != 0);
}

/* Wait until the threads are gone: one may be preempted in its exit, after it last read its clocks. */
static void until_gone(struct self *selves, int n)
{
	int left = n;

	for (; left; pause_ns(2 * MS))
		for (struct self *s = selves; s < selves + n; s++) {
			long tid = __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE);

			if (!tid || s->off_most || syscall(SYS_tgkill, getpid(), tid, 0) == 0)
				continue;
			s->off_most = clock_ns(CLOCK_MONOTONIC) - s->created - s->cpu_all;
			left--;
		}
}

int main(void)
{
	void *(*const run[])(void *) = { short_sleeps, long_sleep, mutex_waiter, cond_waiter, pipe_reader,
		ping_pong, ping_pong, worker };
	enum { N = sizeof(run) / sizeof(run[0]) };
	struct self selves[N] = { [6].count = 1 };
	pthread_t t[N];

	if (pipe(feed))
		return 1;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < N; i++) {
		selves[i].created = clock_ns(CLOCK_MONOTONIC);
		if (pthread_create(&t[i], NULL, run[i], &selves[i]) != 0)
			return 1;
	}
	for (int i = 0; i < 8; i++) {
		pause_ns(100 * MS);
		until_blocked(&selves[4]);
		if (write(feed[1], "x", 1) != 1)
			return 1;
	}
	pthread_mutex_unlock(&lock);
	pthread_mutex_lock(&cond_lock);
	cond_set = 1;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&cond_lock);
	close(feed[1]);
	until_gone(selves, N);
	for (int i = 0; i < N; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < N; i++)
		print(&selves[i]);
	return 0;
}
