/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's own events of children that do what is expected of them. */
#include "procevents.h"
#include "tap.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

struct seen {
	uint32_t pid;
	unsigned int forks, execs, comms, maps, exits, lost;
	uint64_t last_ns;
	bool ordered, stranger;
	uint64_t fork_ns, exec_ns, map_ns, exit_ns;
	char exec_name[16], comm[16];
	bool libc;
};

static void take(void *ctx, const struct procevent *ev)
{
	struct seen *s = ctx;

	s->ordered = s->ordered && ev->time_ns >= s->last_ns;
	s->last_ns = ev->time_ns;
	if (ev->type == PROCEVENT_LOST)
		s->lost++;
	if (ev->pid != s->pid)
		return;
	switch (ev->type) {
	case PROCEVENT_FORK:
		s->forks++;
		s->fork_ns = ev->time_ns;
		s->stranger = ev->parent != (uint32_t)getpid();
		break;
	case PROCEVENT_EXEC:
		s->execs++;
		s->exec_ns = ev->time_ns;
		snprintf(s->exec_name, sizeof(s->exec_name), "%s", ev->text);
		break;
	case PROCEVENT_COMM:
		s->comms++;
		snprintf(s->comm, sizeof(s->comm), "%s", ev->text);
		break;
	case PROCEVENT_MMAP:
		s->maps++;
		if (!s->map_ns)
			s->map_ns = ev->time_ns;
		s->libc = s->libc || (strstr(ev->text, "/libc") && ev->inode && ev->prot & PROT_EXEC &&
					     ev->start < ev->end);
		break;
	case PROCEVENT_EXIT:
		s->exits++;
		s->exit_ns = ev->time_ns;
		break;
	default:
		break;
	}
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void one_life(struct tap *t, struct procevents *p)
{
	struct seen s = { .ordered = true };
	uint64_t before = now_ns(), after;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_NAME, "new\nname");
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	after = now_ns();
	s.pid = (uint32_t)pid;
	procevents_drain(p, false, take, &s);
	tap_ok(t, s.forks == 1 && !s.stranger, "a fork, with its parent");
	tap_ok(t, s.comms == 1 && strcmp(s.comm, "new\nname") == 0, "a new name, every byte of it");
	tap_ok(t, s.execs == 1 && strcmp(s.exec_name, "true") == 0, "an exec, with the new name");
	tap_ok(t, s.maps >= 2 && s.libc, "the mappings of the new image");
	tap_ok(t, s.exits == 1, "an exit");
	tap_ok(t,
		before <= s.fork_ns && s.fork_ns < s.exec_ns && s.exec_ns < s.map_ns &&
			s.map_ns < s.exit_ns && s.exit_ns <= after,
		"in this order, on the clock of CLOCK_MONOTONIC");
	tap_ok(t, s.ordered, "and so are all events of all CPUs");
	tap_ok(t, !s.lost, "nothing was lost");
	s.forks = 0;
	procevents_drain(p, false, take, &s);
	tap_ok(t, !s.forks, "events are handed out once");
}

static void settling(struct tap *t, struct procevents *p)
{
	struct seen s = { .ordered = true };
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	s.pid = (uint32_t)pid;
	usleep(20000);
	procevents_drain(p, true, take, &s);
	tap_ok(t, s.forks == 1 && s.exits == 1, "what is older than a moment is handed out while it settles");
}

static void count_any(void *ctx, const struct procevent *ev)
{
	uint64_t *n = ctx;

	n[ev->type == PROCEVENT_LOST] += ev->type == PROCEVENT_LOST ? ev->lost : ev->type == PROCEVENT_COMM;
}

static void overflow(struct tap *t, struct procevents *p)
{
	enum { N = 60000 };
	uint64_t n[2] = { 0 };
	struct pollfd pfd = { .fd = procevents_fd(p), .events = POLLIN };

	procevents_drain(p, false, count_any, n);
	n[0] = n[1] = 0;
	for (int i = 0; i < N; i++)
		prctl(PR_SET_NAME, i & 1 ? "odd" : "even");
	tap_ok(t, poll(&pfd, 1, 0) == 1, "a full buffer is readable");
	/* the kernel says how many were lost in front of the next record that fits */
	procevents_drain(p, false, count_any, n);
	prctl(PR_SET_NAME, "last");
	procevents_drain(p, false, count_any, n);
	tap_ok(t, n[1] > 0, "events that did not fit are told");
	tap_ok(t, n[0] + n[1] >= N + 1, "as many as there were");
}

int main(void)
{
	struct tap t = { 0 };
	struct procevents *p;
	struct err e;
	int rc = procevents_open(false, &p, &e);

	procevents_close(NULL);
	if (rc == -EACCES || rc == -EPERM) {
		tap_ok(&t, e.msg[0] && e.hint[0], "what is missing is said, with a hint");
		tap_skip(&t, "events", "%s", e.msg);
		return tap_done(&t);
	}
	tap_ok(&t, rc == 0, "a dummy event on every CPU");
	if (rc)
		return tap_done(&t);
	one_life(&t, p);
	settling(&t, p);
	overflow(&t, p);
	procevents_close(p);
	return tap_done(&t);
}
