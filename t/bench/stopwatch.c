/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stopwatch COMMAND... - prints "START STOP" in ms: the time from the launch of
 * COMMAND until one of its BPF programs at sched_switch has run, by the kernel's
 * run_cnt, and the time from SIGINT until COMMAND has ended. Ignores programs
 * that were loaded before.
 */
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* The ID of the newest program; IDs of programs only grow. */
static __u32 newest(void)
{
	__u32 id = 0, next;

	while (bpf_prog_get_next_id(id, &next) == 0)
		id = next;
	return id;
}

/* Is NAME that of a tool's program at sched_switch? A tool's iterators run earlier, and are ignored. */
static int of_switches(const char *name)
{
	return strstr(name, "sche") || strstr(name, "switch");
}

/* Has a program at sched_switch with an ID above LAST run? */
static int has_run(__u32 last)
{
	__u32 id = last, next;

	while (bpf_prog_get_next_id(id, &next) == 0) {
		struct bpf_prog_info info = { 0 };
		__u32 len = sizeof(info);
		int fd = bpf_prog_get_fd_by_id(next);
		int ran = fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &len) == 0 && info.run_cnt > 0 &&
			  of_switches(info.name);

		if (fd >= 0)
			close(fd);
		if (ran)
			return 1;
		id = next;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	__u32 last = newest();
	struct timespec tick = { .tv_nsec = 500000 };
	double t0, t1, t2;
	pid_t pid;

	if (argc < 2 || stats < 0)
		return 2;
	t0 = now_ms();
	pid = fork();
	if (pid == 0) {
		if (!freopen("/dev/null", "w", stdout))
			_exit(127);
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	while (!has_run(last) && now_ms() - t0 < 10000)
		nanosleep(&tick, NULL);
	t1 = now_ms();
	usleep(1000000);
	if (waitpid(pid, NULL, WNOHANG) == pid)
		return 1; /* it ended by itself */
	t2 = now_ms();
	/* COMMAND may miss a signal that arrives while it does not sleep: repeat it until it has ended */
	for (int i = 0; i < 100; i++) {
		kill(pid, SIGINT);
		for (int j = 0; j < 200; j++) {
			if (waitpid(pid, NULL, WNOHANG) == pid) {
				printf("%.1f %.1f\n", t1 - t0, now_ms() - t2);
				return 0;
			}
			nanosleep(&tick, NULL);
		}
	}
	kill(pid, SIGKILL);
	return 1;
}
