/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of procevents_*() of system/events.h with the kernel's events of child processes. */
#include "../lib/self.h"
#include "base/tap.h"
#include "system/events.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

/* more events of one CPU than fit in its buffer, of 4 MiB at most, even if they are the smallest ones */
#define MANY 100000

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

static void count_any(void *ctx, const struct procevent *ev)
{
	uint64_t *n = ctx;

	n[ev->type == PROCEVENT_LOST] += ev->type == PROCEVENT_LOST ? ev->lost : ev->type == PROCEVENT_COMM;
}

static void new_name(void)
{
	prctl(PR_SET_NAME, "last");
}

/* Causes more events than fit in the buffers, of which none is reported. */
static void before_the_start(struct tap *t, struct procevents *p)
{
	uint64_t n[2] = { 0 };

	for (int i = 0; i < MANY; i++)
		prctl(PR_SET_NAME, i & 1 ? "odd" : "even");
	procevents_drain(p, false, count_any, n);
	tap_eq_u64(t, n[0] + n[1], 0, "before the start no event is reported, and none is lost");
	tap_ok(t, procevents_start(p, NULL) == 0, "events begin");
	n[0] = n[1] = 0;
	new_name();
	procevents_drain(p, false, count_any, n);
	tap_ok(t, n[0] > 0 && !n[1], "after the start events are reported");
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
	tap_ok(t, s.forks == 1 && !s.stranger, "a fork is reported with its parent");
	tap_ok(t, s.comms == 1 && strcmp(s.comm, "new\nname") == 0,
		"a new name is reported with all of its bytes");
	tap_ok(t, s.execs == 1 && strcmp(s.exec_name, "true") == 0, "an exec is reported with the new name");
	tap_ok(t, s.maps >= 2 && s.libc, "the mappings of a new image are reported");
	tap_ok(t, s.exits == 1, "an exit is reported");
	tap_ok(t,
		before <= s.fork_ns && s.fork_ns < s.exec_ns && s.exec_ns < s.map_ns &&
			s.map_ns < s.exit_ns && s.exit_ns <= after,
		"fork, exec, mapping and exit have ascending times of CLOCK_MONOTONIC");
	tap_ok(t, s.ordered, "the events of all CPUs are in order");
	tap_ok(t, !s.lost, "no event was lost");
	s.forks = 0;
	procevents_drain(p, false, take, &s);
	tap_ok(t, !s.forks, "an event is reported only once");
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
	tap_ok(t, s.forks == 1 && s.exits == 1, "events of 20 ms ago are reported by a drain that settles");
}

/* The kernel reports this to the event with build IDs first, and only mappings of that one are used. */
static void new_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
}

/* A loss is reported before the next event of its CPU. Returns the CPUs that were allowed before. */
static cpu_set_t stay_on_cpu(void)
{
	cpu_set_t here, before;

	CPU_ZERO(&here);
	CPU_SET((unsigned int)sched_getcpu(), &here);
	sched_getaffinity(0, sizeof(before), &before);
	sched_setaffinity(0, sizeof(here), &here);
	return before;
}

/* Cause more events than fit in the buffer. NEXT causes another event when there is room again. */
static void overflow(struct tap *t, struct procevents *p, void (*next)(void), const char *what)
{
	uint64_t n[2] = { 0 };
	struct pollfd pfd = { .fd = procevents_fd(p), .events = POLLIN };
	cpu_set_t before = stay_on_cpu();

	procevents_drain(p, false, count_any, n);
	n[0] = n[1] = 0;
	for (int i = 0; i < MANY; i++)
		prctl(PR_SET_NAME, i & 1 ? "odd" : "even");
	tap_ok(t, poll(&pfd, 1, 0) == 1, "the descriptor is readable when a buffer is full");
	/* the kernel reports how many were lost before the next record that fits */
	procevents_drain(p, false, count_any, n);
	next();
	procevents_drain(p, false, count_any, n);
	tap_ok(t, n[1] > 0, "lost events are reported before %s", what);
	tap_ok(t, n[0] + n[1] >= MANY + (next == new_name),
		"reported and lost events are together at least as many as were caused");
	sched_setaffinity(0, sizeof(before), &before);
}

/* Drain P until its descriptor is not readable. */
static void empty(struct procevents *p)
{
	struct seen s = { .ordered = true };
	struct pollfd pfd = { .fd = procevents_fd(p), .events = POLLIN };

	for (int i = 0; i < 100 && poll(&pfd, 1, 0) == 1; i++)
		procevents_drain(p, false, take, &s);
}

/* More events than fit in the buffer, which is emptied now and then. */
static void gathering(struct tap *t, struct procevents *p)
{
	uint64_t n[2] = { 0 };

	empty(p);
	for (int i = 0; i < MANY; i++) {
		prctl(PR_SET_NAME, i & 1 ? "odd" : "even");
		if (i % 100 == 0)
			procevents_gather(p);
	}
	procevents_drain(p, false, count_any, n);
	tap_eq_u64(t, n[1], 0, "no event is lost if the buffers are emptied in time");
	tap_ok(t, n[0] >= MANY, "the next drain reports every event");
}

/* Without a drain, what is gathered does not grow without end. */
static void gathering_too_much(struct tap *t, struct procevents *p)
{
	enum { N = 900000, RECORD = 48 };
	uint64_t n[2] = { 0 };
	cpu_set_t before = stay_on_cpu();

	empty(p);
	for (int i = 0; i < N; i++) {
		prctl(PR_SET_NAME, i & 1 ? "odd" : "even");
		if (i % 100 == 0)
			procevents_gather(p);
	}
	procevents_drain(p, false, count_any, n);
	new_name();
	procevents_drain(p, false, count_any, n);
	tap_ok(t, n[1] > 0 && n[0] * RECORD < 40u << 20, "events beyond 32 MiB and the buffers are not kept");
	tap_ok(t, n[0] + n[1] >= N, "each of them is counted as lost");
	sched_setaffinity(0, sizeof(before), &before);
}

struct at_once {
	uint32_t pid;
	unsigned int maps;
	bool others;
};

static void take_at_once(void *ctx, const struct procevent *ev)
{
	struct at_once *a = ctx;

	/* other processes may exec meanwhile */
	a->others = a->others ||
		    (ev->type != PROCEVENT_MMAP && (ev->type != PROCEVENT_EXEC || ev->pid == a->pid));
	a->maps += ev->pid == a->pid;
}

/* Wait until P is readable, at most one second. */
static bool readable(struct procevents *p)
{
	struct pollfd pfd = { .fd = procevents_fd(p), .events = POLLIN };

	return poll(&pfd, 1, 1000) == 1;
}

static void prompt(struct tap *t)
{
	struct at_once a = { .pid = (uint32_t)getpid() };
	struct seen s = { .ordered = true, .pid = a.pid };
	struct procevents *p = NULL;
	void *code;

	if (procevents_open(true, &p, NULL) != 0 || procevents_start(p, NULL) != 0) {
		tap_skip(t, "prompt events", "they cannot be opened");
		procevents_close(p);
		return;
	}
	procevents_at_once(p, take_at_once, &a);
	empty(p);
	a.maps = 0;
	code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	tap_ok(t, readable(p), "a single mapping makes the descriptor readable with PROMPT");
	procevents_drain(p, true, take, &s);
	tap_ok(t, a.maps == 1 && !a.others,
		"the mapping is reported at once, and other events of this process are not");
	for (int i = 0; i < 1000 && (procevents_pending(p) || !s.maps); i++) {
		usleep(1000);
		procevents_drain(p, true, take, &s);
	}
	tap_eq_u64(t, s.maps, 1, "the mapping is reported again in its order");
	tap_eq_u64(t, a.maps, 1, "the mapping is reported at once only one time");
	tap_ok(t, !procevents_pending(p), "no event is kept back afterwards");
	munmap(code, 4096);
	procevents_close(p);
}

/* Without PROMPT the descriptor does not become readable for a few events. */
static void lazy(struct tap *t, struct procevents *p)
{
	struct pollfd pfd = { .fd = procevents_fd(p), .events = POLLIN };
	void *code;

	empty(p);
	code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	tap_ok(t, poll(&pfd, 1, 20) == 0,
		"without PROMPT the descriptor is not readable after a single mapping");
	munmap(code, 4096);
}

/*
 * A user who may lock only as much memory as kernel.perf_event_mlock_kb allows, and of whom no other process
 * runs: the kernel counts the memory of all of a user's processes together.
 */
static int as_limited_user(void)
{
	const uid_t own = 3000000 + (uid_t)getpid();
	const struct rlimit none = { 0 };
	struct procevents *p;
	cap_t caps;

	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 || setresuid(own, own, own) != 0)
		return 77;
	caps = cap_get_proc();
	for (cap_value_t c = 0; caps && c <= cap_max_bits(); c++) {
		cap_flag_value_t may = CAP_CLEAR;

		if (c != CAP_IPC_LOCK && cap_get_flag(caps, c, CAP_PERMITTED, &may) == 0)
			cap_set_flag(caps, CAP_EFFECTIVE, 1, &c, may);
	}
	if (!caps || cap_set_proc(caps) != 0 || setrlimit(RLIMIT_MEMLOCK, &none) != 0)
		return 2;
	cap_free(caps);
	if (procevents_open(false, &p, NULL) != 0)
		return 1;
	procevents_close(p);
	return 0;
}

static void without_memory_to_lock(struct tap *t)
{
	static const char name[] = "events are opened if no memory can be locked, with smaller buffers";
	int rc = self_apart(as_limited_user);

	if (rc == 77)
		tap_skip(t, name, "cannot become another user");
	else
		tap_eq_u64(t, rc, 0, name);
}

int main(void)
{
	struct tap t = { 0 };
	struct procevents *p;
	struct err e;
	int rc = procevents_open(false, &p, &e);

	procevents_close(NULL);
	if (rc == -EACCES || rc == -EPERM) {
		tap_ok(&t, e.msg[0] && e.hint[0], "the error says what is missing, with a hint");
		tap_skip(&t, "events", "%s", e.msg);
		return tap_done(&t);
	}
	tap_ok(&t, rc == 0, "events on every CPU are opened");
	if (rc)
		return tap_done(&t);
	before_the_start(&t, p);
	one_life(&t, p);
	settling(&t, p);
	lazy(&t, p);
	gathering(&t, p);
	gathering_too_much(&t, p);
	overflow(&t, p, new_name, "a new name");
	overflow(&t, p, new_process, "a new process");
	procevents_close(p);
	without_memory_to_lock(&t);
	prompt(&t);
	return tap_done(&t);
}
