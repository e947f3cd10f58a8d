/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stops - threads that would notice being stopped.
 *
 * Each thread waits in one way repeatedly until stdin ends, and prints
 *
 * 	NAME COUNT EINTR EARLY LONGEST SHORTEST ERROR
 *
 * the number of waits, of those that ended with EINTR, and of those that ended
 * early or without the expected event; the longest and shortest wait in
 * milliseconds; and the errno of the last wait that failed. All waits take
 * PERIOD_MS. The last two lines count signals: "signals COUNT" the unexpected
 * ones, "requested COUNT" SIGRTMIN, which is sent on purpose. All code has frame
 * pointers, so that a walk needs the registers of the threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_MS 40
#define PERIOD_NS (PERIOD_MS * 1000000l)

static volatile int over;
static volatile int signals, requested;
static const struct timespec period = { 0, PERIOD_NS };

static uint64_t now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Another thread causes the event that a thread waits for, PERIOD_MS later. */
struct made {
	int read_fd, write_fd; /* any two descriptors or numbers */
	sem_t go;
	void (*make)(struct made *m);
};

static void *maker(void *arg)
{
	struct made *m = arg;
	struct timespec until;

	/* until the process ends: a thread that posted just before the end still waits for its event */
	for (;;) {
		while (sem_wait(&m->go) != 0)
			;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += PERIOD_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
			;
		m->make(m);
	}
	return NULL;
}

static void begin_maker(struct made *m, void (*make)(struct made *))
{
	pthread_t t;

	m->make = make;
	sem_init(&m->go, 0, 0);
	pthread_create(&t, NULL, maker, m);
	pthread_detach(t);
}

static void make_byte(struct made *m)
{
	if (write(m->write_fd, "12345678", 8) != 8)
		abort();
}

static void make_post(struct made *m)
{
	struct sembuf up = { .sem_op = 1 };

	semop(m->write_fd, &up, 1);
}

static void make_message(struct made *m)
{
	struct {
		long type;
		char text[4];
	} text = { 1, "ab" };

	msgsnd(m->write_fd, &text, 2, 0);
}

static void make_exit(struct made *m)
{
	kill(m->write_fd, SIGKILL);
}

static void make_unlock(struct made *m)
{
	flock(m->write_fd, LOCK_UN);
}

static int queue, sems, timed_sems;

/* --- the ways: 0 if the wait ended as expected, else errno --- */

#define WAY(name) static int name(struct made *m)
#define TIMED_OUT(rc) ((rc) == 0 ? 0 : errno)

WAY(in_nanosleep)
{
	(void)m;
	return TIMED_OUT(nanosleep(&period, NULL));
}

WAY(in_clock_nanosleep)
{
	(void)m;
	return clock_nanosleep(CLOCK_MONOTONIC, 0, &period, NULL);
}

WAY(in_futex)
{
	int word = 1;

	(void)m;
	return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, &period, NULL, 0) == -1 && errno == ETIMEDOUT
		       ? 0
		       : errno;
}

WAY(in_poll)
{
	(void)m;
	return TIMED_OUT(poll(NULL, 0, PERIOD_MS));
}

WAY(in_ppoll)
{
	sigset_t none;

	(void)m;
	sigemptyset(&none);
	return TIMED_OUT(ppoll(NULL, 0, &period, &none));
}

/* Like ppoll(2), with a time limit that the kernel cannot write to. */
WAY(in_raw_ppoll)
{
	(void)m;
	return TIMED_OUT((int)syscall(SYS_ppoll, NULL, 0, &period, NULL, 8));
}

WAY(in_select)
{
	struct timeval tv = { 0, PERIOD_MS * 1000 };

	(void)m;
	return TIMED_OUT(select(0, NULL, NULL, NULL, &tv));
}

WAY(in_pselect)
{
	(void)m;
	return TIMED_OUT(pselect(0, NULL, NULL, NULL, &period, NULL));
}

WAY(in_epoll_wait)
{
	struct epoll_event ev;
	int fd = epoll_create1(0), rc = epoll_wait(fd, &ev, 1, PERIOD_MS), error = errno;

	(void)m;
	close(fd);
	return rc == 0 ? 0 : error;
}

WAY(in_epoll_pwait2)
{
	struct epoll_event ev;
	int fd = epoll_create1(0), rc = (int)syscall(SYS_epoll_pwait2, fd, &ev, 1, &period, NULL, 8);
	int error = errno;

	(void)m;
	close(fd);
	return rc == 0 || error == ENOSYS ? 0 : error;
}

WAY(in_semtimedop)
{
	struct sembuf down = { .sem_op = -1 };

	(void)m;
	return semtimedop(timed_sems, &down, 1, &period) == -1 && errno == EAGAIN ? 0 : errno;
}

WAY(in_sigtimedwait)
{
	sigset_t one;

	(void)m;
	sigemptyset(&one);
	sigaddset(&one, SIGRTMAX);
	return sigtimedwait(&one, NULL, &period) == -1 && errno == EAGAIN ? 0 : errno;
}

WAY(in_timerfd)
{
	struct itimerspec in = { .it_value = period };
	int fd = timerfd_create(CLOCK_MONOTONIC, 0), error = 0;
	uint64_t n;

	(void)m;
	timerfd_settime(fd, 0, &in, NULL);
	if (read(fd, &n, 8) != 8)
		error = errno;
	close(fd);
	return error;
}

WAY(in_recv_timeout)
{
	char text[8];

	return recv(m->read_fd, text, 8, 0) == -1 && errno == EAGAIN ? 0 : errno;
}

WAY(in_read)
{
	char text[8];

	sem_post(&m->go);
	return read(m->read_fd, text, 8) == 8 ? 0 : errno ? errno : EIO;
}

WAY(in_epoll_for_ever)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int fd = epoll_create1(0), rc, error;
	char text[8];

	epoll_ctl(fd, EPOLL_CTL_ADD, m->read_fd, &ev);
	sem_post(&m->go);
	rc = epoll_wait(fd, &ev, 1, -1);
	error = errno;
	while (read(m->read_fd, text, 8) != 8)
		;
	close(fd);
	return rc == 1 ? 0 : rc == 0 ? EIO : error;
}

WAY(in_semop)
{
	struct sembuf down = { .sem_op = -1 };

	sem_post(&m->go);
	return TIMED_OUT(semop(sems, &down, 1));
}

WAY(in_msgrcv)
{
	struct {
		long type;
		char text[4];
	} text;

	sem_post(&m->go);
	return msgrcv(queue, &text, 4, 0, 0) == 2 ? 0 : errno;
}

WAY(in_wait)
{
	int status;

	m->write_fd = fork();
	if (m->write_fd == 0) {
		pause();
		_exit(0);
	}
	sem_post(&m->go);
	return waitpid(m->write_fd, &status, 0) == m->write_fd && WIFSIGNALED(status) ? 0 : errno;
}

WAY(in_flock)
{
	int rc;

	flock(m->write_fd, LOCK_EX);
	sem_post(&m->go);
	rc = flock(m->read_fd, LOCK_EX);
	if (rc == 0)
		flock(m->read_fd, LOCK_UN);
	return TIMED_OUT(rc);
}

static const struct way {
	const char *name;
	int (*wait)(struct made *m);
	char needs; /* p pipe, s socket with timeout, e eventfd, l two open files, q semaphore, m queue */
	void (*make)(struct made *m);
} ways[] = {
	{ "nanosleep", in_nanosleep, 0, NULL },
	{ "clock_nanosleep", in_clock_nanosleep, 0, NULL },
	{ "futex", in_futex, 0, NULL },
	{ "poll", in_poll, 0, NULL },
	{ "ppoll", in_ppoll, 0, NULL },
	{ "raw_ppoll", in_raw_ppoll, 0, NULL },
	{ "select", in_select, 0, NULL },
	{ "pselect", in_pselect, 0, NULL },
	{ "epoll_wait", in_epoll_wait, 0, NULL },
	{ "epoll_pwait2", in_epoll_pwait2, 0, NULL },
	{ "semtimedop", in_semtimedop, 0, NULL },
	{ "sigtimedwait", in_sigtimedwait, 0, NULL },
	{ "timerfd", in_timerfd, 0, NULL },
	{ "recv_timeout", in_recv_timeout, 's', NULL },
	{ "read", in_read, 'p', make_byte },
	{ "eventfd", in_read, 'e', make_byte },
	{ "epoll_for_ever", in_epoll_for_ever, 'p', make_byte },
	{ "semop", in_semop, 'q', make_post },
	{ "msgrcv", in_msgrcv, 'm', make_message },
	{ "wait", in_wait, 0, make_exit },
	{ "flock", in_flock, 'l', make_unlock },
};

#define N_WAYS (sizeof(ways) / sizeof(*ways))

static void prepare(const struct way *w, struct made *m)
{
	struct timeval limit = { 0, PERIOD_MS * 1000 };
	char name[] = "/tmp/stops.XXXXXX";
	int fds[2] = { -1, -1 };

	switch (w->needs) {
	case 'p':
		if (pipe(fds) != 0)
			abort();
		break;
	case 's':
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
			abort();
		setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		break;
	case 'e':
		fds[0] = fds[1] = eventfd(0, 0);
		break;
	case 'l':
		fds[0] = mkstemp(name);
		fds[1] = open(name, O_RDWR);
		unlink(name);
		break;
	case 'q':
		fds[1] = sems;
		break;
	case 'm':
		fds[1] = queue;
		break;
	default:
		break;
	}
	m->read_fd = fds[0];
	m->write_fd = fds[1];
	if (w->make)
		begin_maker(m, w->make);
}

struct self {
	const struct way *way;
	uint64_t count, eintr, early, longest, shortest;
	int error;
};

static void *thread(void *arg)
{
	struct self *s = arg;
	struct made *m = calloc(1, sizeof(*m)); /* its maker may outlive this thread */

	/*
	 * A socket's time limit counts timer ticks. If the host takes the CPU
	 * away, ticks come late and then all at once; this clock does the same.
	 */
	clockid_t clock = s->way->needs == 's' ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC;

	if (!m)
		abort();
	prepare(s->way, m);
	s->shortest = UINT64_MAX;
	while (!over) {
		uint64_t begin = now(clock), took;
		int error = s->way->wait(m);

		took = now(clock) - begin;
		s->count++;
		s->eintr += error == EINTR;
		/* an event from another thread follows that thread's clock; a tick is 4 ms at most */
		s->early += (error && error != EINTR) || took + 5000000 < (uint64_t)PERIOD_NS;
		s->longest = took > s->longest ? took : s->longest;
		s->shortest = took < s->shortest ? took : s->shortest;
		s->error = error ? error : s->error;
	}
	return NULL;
}

static void noted(int sig)
{
	if (sig == SIGRTMIN)
		__atomic_add_fetch(&requested, 1, __ATOMIC_RELAXED);
	else
		__atomic_add_fetch(&signals, 1, __ATOMIC_RELAXED);
}

int main(void)
{
	static struct self selves[N_WAYS];
	pthread_t threads[N_WAYS];
	char byte;

	sems = semget(IPC_PRIVATE, 1, 0600);
	timed_sems = semget(IPC_PRIVATE, 1, 0600);
	queue = msgget(IPC_PRIVATE, 0600);
	for (int sig = 1; sig < SIGRTMAX; sig++) {
		struct sigaction sa = { .sa_handler = noted, .sa_flags = SA_RESTART };

		if (sig != SIGCHLD && sig != SIGABRT && sig != SIGSEGV)
			sigaction(sig, &sa, NULL);
	}
	for (size_t i = 0; i < N_WAYS; i++) {
		selves[i].way = &ways[i];
		pthread_create(&threads[i], NULL, thread, &selves[i]);
	}
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) < 0 && errno == EINTR)
		;
	over = 1;
	for (size_t i = 0; i < N_WAYS; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < N_WAYS; i++)
		printf("%s %lu %lu %lu %lu %lu %d\n", ways[i].name, selves[i].count, selves[i].eintr,
			selves[i].early, selves[i].longest / 1000000, selves[i].shortest / 1000000,
			selves[i].error);
	printf("signals %d\nrequested %d\n", signals, requested);
	semctl(sems, 0, IPC_RMID);
	semctl(timed_sems, 0, IPC_RMID);
	msgctl(queue, IPC_RMID, NULL);
	return 0;
}
