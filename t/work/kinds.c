/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kinds - threads that wait in one way each, by which they are named, until stdin ends.
 *
 * Each of them also does something else between its waits, from another function, as programs do: then only
 * what is called from the thread's loop itself is a wait for work ("idle").
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int over;
static const char *file;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void nap(long ms)
{
	const struct timespec ts = { .tv_nsec = ms * 1000000 };

	nanosleep(&ts, NULL);
}

static void named(const char *name)
{
	prctl(PR_SET_NAME, name);
}

static void *sleeper(void *arg)
{
	named("sleep");
	while (!over)
		nap(20);
	return arg;
}

/* --- locks and conditions --- */

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, box = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t requested = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static int question, answer;

static void *holder(void *arg)
{
	named("holder");
	while (!over) {
		pthread_mutex_lock(&held);
		nap(10);
		pthread_mutex_unlock(&held);
		nap(1);
	}
	return arg;
}

static void use_table(void)
{
	pthread_mutex_lock(&held);
	pthread_mutex_unlock(&held);
}

static void *locker(void *arg)
{
	named("lock");
	while (!over)
		use_table();
	return arg;
}

static void ask(void)
{
	pthread_mutex_lock(&box);
	question = 1;
	pthread_cond_signal(&requested);
	while (!answer && !over)
		pthread_cond_wait(&answered, &box);
	answer = 0;
	pthread_mutex_unlock(&box);
}

static void *requester(void *arg)
{
	named("condition");
	while (!over) {
		ask();
		nap(1);
	}
	return arg;
}

static void do_job(void)
{
	nap(5);
}

/* Waits for its next job in its loop. */
static void *worker(void *arg)
{
	named("idle");
	pthread_mutex_lock(&box);
	while (!over) {
		while (!question && !over)
			pthread_cond_wait(&requested, &box);
		question = 0;
		pthread_mutex_unlock(&box);
		do_job();
		pthread_mutex_lock(&box);
		answer = 1;
		pthread_cond_signal(&answered);
	}
	pthread_cond_broadcast(&answered);
	pthread_mutex_unlock(&box);
	return arg;
}

/* --- files, pipes, processes --- */

static void flush_log(int fd)
{
	if (pwrite(fd, "x", 1, 0) != 1 || fsync(fd) != 0)
		die(file);
}

static void *flusher(void *arg)
{
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	named("fsync");
	if (fd < 0)
		die(file);
	while (!over) {
		flush_log(fd);
		nap(1);
	}
	close(fd);
	return arg;
}

static int line[2];

static void *writer(void *arg)
{
	named("writer");
	while (!over) {
		nap(10);
		if (write(line[1], "x", 1) != 1)
			die("write");
	}
	close(line[1]);
	return arg;
}

static int get_line(void)
{
	char c;

	return read(line[0], &c, 1) == 1;
}

static void *reader(void *arg)
{
	named("pipe");
	while (get_line())
		nap(1);
	return arg;
}

static void run_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		nap(10);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		die("fork");
}

static void *parent(void *arg)
{
	named("child");
	while (!over) {
		run_child();
		nap(1);
	}
	return arg;
}

static void *short_life(void *arg)
{
	nap(10);
	return arg;
}

static void join_one(void)
{
	pthread_t id;

	if (pthread_create(&id, NULL, short_life, NULL) != 0 || pthread_join(id, NULL) != 0)
		die("pthread_create");
}

static void *joiner(void *arg)
{
	named("join");
	while (!over) {
		join_one();
		nap(1);
	}
	return arg;
}

/* --- network --- */

static struct sockaddr_in place;

static int listener(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(place);

	memset(&place, 0, sizeof(place));
	place.sin_family = AF_INET;
	place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (void *)&place, sizeof(place)) != 0 || listen(fd, 8) != 0 ||
		getsockname(fd, (void *)&place, &len) != 0)
		die("socket");
	return fd;
}

static int request(int fd)
{
	char c;

	return write(fd, "x", 1) == 1 && read(fd, &c, 1) == 1;
}

static void *client(void *arg)
{
	named("net-receive");
	while (!over) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0 || connect(fd, (void *)&place, sizeof(place)) != 0)
			die("connect");
		request(fd);
		close(fd);
		nap(5);
	}
	return arg;
}

static void serve(int fd)
{
	char c;

	if (read(fd, &c, 1) == 1) {
		nap(10);
		if (write(fd, "x", 1) != 1)
			die("write");
	}
}

/* Accepts in its loop: waits for work. Its own name is that of what it does between. */
static void *server(void *arg)
{
	int fd = *(int *)arg;

	named("server");
	for (;;) {
		int peer = accept(fd, NULL, NULL);

		if (peer < 0 || over)
			break;
		serve(peer);
		close(peer);
	}
	return arg;
}

static void wait_ready(void)
{
	struct pollfd p = { .fd = line[0], .events = POLLHUP };

	poll(&p, 1, 10);
}

static void *poller(void *arg)
{
	named("poll");
	while (!over) {
		wait_ready();
		nap(1);
	}
	return arg;
}

int main(int argc, char **argv)
{
	static void *(*const threads[])(void *) = { sleeper, holder, locker, requester, worker, flusher,
		writer, reader, parent, joiner, client, server, poller };
	enum { N = sizeof(threads) / sizeof(threads[0]) };
	pthread_t ids[N];
	int listening, fd;
	char c;

	if (argc != 2)
		return 64;
	file = argv[1];
	signal(SIGPIPE, SIG_IGN);
	if (pipe2(line, O_CLOEXEC) != 0)
		die("pipe");
	listening = listener();
	for (int i = 0; i < N; i++)
		if (pthread_create(&ids[i], NULL, threads[i], &listening) != 0)
			die("pthread_create");
	printf("%d\n", getpid());
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	over = 1;
	pthread_mutex_lock(&box);
	pthread_cond_broadcast(&requested);
	pthread_cond_broadcast(&answered);
	pthread_mutex_unlock(&box);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	connect(fd, (void *)&place, sizeof(place));
	for (int i = 0; i < N; i++)
		pthread_join(ids[i], NULL);
	return 0;
}
