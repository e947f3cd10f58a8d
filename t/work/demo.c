/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * demo - a small service that waits in all the usual ways, for the demo to
 * record. Each thread has a name, and each wait is in a function whose name
 * gives its reason.
 *
 *   demo [FILE]	runs until it is stopped; FILE is the journal that it syncs (default: one
 *			in this folder that has no name, so that none is left behind)
 *
 * sys() makes system calls through syscall(3), so no function of the C library
 * that calls others stands between a wait and the function that causes it. Locks
 * and conditions are the C library's.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER, queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t job_there = PTHREAD_COND_INITIALIZER;
static int queue_length;
static int log_pipe[2];
static int server_fd, client_fd;
static const char *journal_path;

static void die(const char *what)
{
	fprintf(stderr, "demo: %s: %s\n", what, strerror(errno));
	exit(2);
}

static long sys(long number, long a, long b, long c, long d)
{
	return syscall(number, a, b, c, d, 0L, 0L);
}

static void nap_ms(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	sys(SYS_nanosleep, (long)&ts, 0, 0, 0);
}

/* Four threads compete for one lock, and each holds it while it sleeps. */
static void lock_table(void)
{
	pthread_mutex_lock(&table);
}

static void unlock_table(void)
{
	pthread_mutex_unlock(&table);
}

static void hold_table(void)
{
	nap_ms(15);
}

static void update_table(void)
{
	lock_table();
	hold_table();
	unlock_table();
	nap_ms(1);
}

static void *table_thread(void *arg)
{
	for (;;)
		update_table();
	return arg;
}

/* A consumer that is mostly idle, and the producer that feeds it. */
static void wait_for_job(void)
{
	pthread_mutex_lock(&queue);
	while (queue_length == 0)
		pthread_cond_wait(&job_there, &queue);
	queue_length--;
	pthread_mutex_unlock(&queue);
}

static void *consumer_thread(void *arg)
{
	for (;;)
		wait_for_job();
	return arg;
}

static void put_job(void)
{
	pthread_mutex_lock(&queue);
	queue_length++;
	pthread_cond_signal(&job_there);
	pthread_mutex_unlock(&queue);
}

static void write_log(const char *line)
{
	if (sys(SYS_write, log_pipe[1], (long)line, (long)strlen(line), 0) < 0)
		die("cannot write to the log");
}

static void pace_producer(void)
{
	nap_ms(50);
}

static void *producer_thread(void *arg)
{
	for (;;) {
		pace_producer();
		put_job();
		write_log("job\n");
	}
	return arg;
}

/* The reader of a pipe that the producer writes to. */
static void read_log_line(void)
{
	char buf[64];

	if (sys(SYS_read, log_pipe[0], (long)buf, sizeof(buf), 0) < 0)
		die("cannot read the log");
}

static void *logger_thread(void *arg)
{
	for (;;)
		read_log_line();
	return arg;
}

/* Disk: append and wait until the data is written. */
static void sync_journal(int fd)
{
	if (sys(SYS_fsync, fd, 0, 0, 0) < 0)
		die("cannot sync the journal");
}

static void append_journal(int fd)
{
	static char block[65536];

	if (sys(SYS_pwrite64, fd, (long)block, sizeof(block), 0) < 0)
		die("cannot write the journal");
	sync_journal(fd);
}

static void *journal_thread(void *arg)
{
	char unnamed[] = "demo-XXXXXX";
	int fd = journal_path ? open(journal_path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600)
			      : mkstemp(unnamed);

	if (fd < 0 || (!journal_path && unlink(unnamed) < 0))
		die("cannot open the journal");
	for (;;)
		append_journal(fd);
	return arg;
}

/* Network: a client sends requests to a slow server over loopback. */
static void receive_answer(int fd)
{
	char answer[16];

	if (sys(SYS_read, fd, (long)answer, sizeof(answer), 0) <= 0)
		exit(0);
}

static void ask_server(int fd)
{
	if (sys(SYS_write, fd, (long)"?", 1, 0) < 0)
		exit(0);
	receive_answer(fd);
}

static void *client_thread(void *arg)
{
	for (;;)
		ask_server(client_fd);
	return arg;
}

static void compute_answer(void)
{
	nap_ms(30);
}

static void receive_request(int fd)
{
	char request[16];

	if (sys(SYS_read, fd, (long)request, sizeof(request), 0) <= 0)
		exit(0);
}

static void serve_request(int fd)
{
	receive_request(fd);
	compute_answer();
	if (sys(SYS_write, fd, (long)"!", 1, 0) < 0)
		exit(0);
}

static void *server_thread(void *arg)
{
	for (;;)
		serve_request(server_fd);
	return arg;
}

static void connect_loopback(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) < 0 || listen(fd, 1) < 0 ||
		getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
		die("cannot listen on the loopback");
	client_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client_fd < 0 || connect(client_fd, (struct sockaddr *)&addr, len) < 0)
		die("cannot connect to the loopback");
	server_fd = accept(fd, NULL, NULL);
	if (server_fd < 0)
		die("cannot accept");
	close(fd);
}

static void start(const char *name, void *(*run)(void *))
{
	pthread_t t;

	errno = pthread_create(&t, NULL, run, NULL);
	if (errno)
		die("cannot start a thread");
	pthread_setname_np(t, name);
}

static void wait_for_the_end(void)
{
	for (;;)
#ifdef SYS_pause
		sys(SYS_pause, 0, 0, 0, 0);
#else
		sys(SYS_ppoll, 0, 0, 0, 0);
#endif
}

int main(int argc, char **argv)
{
	if (argc > 1)
		journal_path = argv[1];
	if (pipe(log_pipe) < 0)
		die("cannot make a pipe");
	connect_loopback();
	start("table-1", table_thread);
	start("table-2", table_thread);
	start("table-3", table_thread);
	start("table-4", table_thread);
	start("consumer", consumer_thread);
	start("producer", producer_thread);
	start("logger", logger_thread);
	start("journal", journal_thread);
	start("client", client_thread);
	start("server", server_thread);
	printf("ready\n");
	fflush(stdout);
	wait_for_the_end();
}
