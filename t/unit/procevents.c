/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of procevents_*() of system/events.h with the kernel's events of child processes. */
#include "../lib/self.h"
#include "base/tap.h"
#include "system/events.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
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

/* How many interrupts other CPUs than the first had to call a function there; 0 = /proc does not say. */
static uint64_t function_calls(void)
{
	FILE *f = fopen("/proc/interrupts", "re");
	char line[4096];
	uint64_t sum = 0;

	while (f && fgets(line, sizeof(line), f)) {
		char *at = strchr(line, ':'), *end;

		if (!at || !strstr(line, "Function call interrupts"))
			continue;
		strtoull(at + 1, &at, 10);
		for (uint64_t n = strtoull(at, &end, 10); end != at; n = strtoull(at, &end, 10)) {
			sum += n;
			at = end;
		}
	}
	if (f)
		fclose(f);
	return sum;
}

#define INTERRUPTS 200

/* A process that runs on CPU: one that is idle need not be interrupted to call a function. */
static pid_t run_on(int cpu)
{
	cpu_set_t one;
	pid_t pid = fork();

	if (pid)
		return pid;
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sched_setaffinity(0, sizeof(one), &one);
	for (;;)
		;
}

/* P, of the whole machine or of some processes: each other CPU is interrupted. */
static void interrupting(struct tap *t, struct procevents *p, const char *what)
{
	const int cpus = get_nprocs();
	cpu_set_t before, first;
	uint64_t calls;
	bool all = true;
	pid_t pids[64];

	if (cpus > (int)(sizeof(pids) / sizeof(pids[0]))) {
		tap_skip(t, what, "too many CPUs");
		return;
	}
	if (cpus < get_nprocs_conf()) {
		tap_ok(t, !procevents_interrupt(p), "%s: with a CPU offline not all can be interrupted",
			what);
		return;
	}
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	sched_getaffinity(0, sizeof(before), &before);
	if (sched_setaffinity(0, sizeof(first), &first) != 0) {
		tap_skip(t, what, "the first CPU is not ours");
		return;
	}
	for (int cpu = 1; cpu < cpus; cpu++)
		pids[cpu] = run_on(cpu);
	usleep(50000);
	calls = function_calls();
	for (int i = 0; i < INTERRUPTS; i++)
		all = all && procevents_interrupt(p);
	calls = function_calls() - calls;
	for (int cpu = 1; cpu < cpus; cpu++) {
		kill(pids[cpu], SIGKILL);
		waitpid(pids[cpu], NULL, 0);
	}
	sched_setaffinity(0, sizeof(before), &before);
	tap_ok(t, all && calls >= INTERRUPTS * (uint64_t)(cpus - 1), "%s: each CPU is interrupted", what);
}

/* Before their start, and without events, nothing is interrupted. */
static void not_interrupting(struct tap *t, struct procevents *p)
{
	tap_ok(t, !procevents_interrupt(p) && !procevents_interrupt(NULL),
		"before the start no CPU is interrupted");
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

static bool is_readable(struct procevents *p, int timeout_ms)
{
	struct pollfd pfd = { .fd = procevents_fd(p), .events = POLLIN };

	return poll(&pfd, 1, timeout_ms) == 1;
}

/* Wait until P is readable, at most one second. */
static bool readable(struct procevents *p)
{
	return is_readable(p, 1000);
}

static void prompt(struct tap *t)
{
	struct at_once a = { .pid = (uint32_t)getpid() };
	struct seen s = { .ordered = true, .pid = a.pid };
	struct procevents *p = NULL;
	void *code;

	if (procevents_open(&(struct procevents_opts){ .prompt = true }, &p, NULL) != 0 ||
		procevents_start(p, NULL) != 0) {
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
	if (procevents_open(&(struct procevents_opts){ 0 }, &p, NULL) != 0)
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

/* --- the events of some processes --- */

/* A process that does what it is told by single letters, and answers each. */
struct puppet {
	pid_t pid;
	int to, from;
};

static void map_code(size_t pages)
{
	void *p = mmap(NULL, pages * 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p != MAP_FAILED)
		munmap(p, pages * 4096);
}

static void *threads_life(void *arg)
{
	map_code(3);
	return arg;
}

static pthread_mutex_t until = PTHREAD_MUTEX_INITIALIZER;

static void *wait_and_map(void *arg)
{
	pthread_mutex_lock(&until);
	map_code(5);
	pthread_mutex_unlock(&until);
	return arg;
}

static void *stays(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* m: map code; s: a thread that stays; t: a thread maps code; f: a child maps code; w: a thread that waits
 * until g; x: execute true.
 */
static void obey(char order)
{
	static pthread_t waiting;
	pthread_t thread;
	pid_t child;

	if (order == 'm')
		map_code(2);
	if (order == 't' && pthread_create(&thread, NULL, threads_life, NULL) == 0)
		pthread_join(thread, NULL);
	if (order == 'f') {
		child = fork();
		if (child == 0) {
			map_code(4);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	if (order == 'w') {
		pthread_mutex_lock(&until);
		pthread_create(&waiting, NULL, wait_and_map, NULL);
	}
	if (order == 'g') {
		pthread_mutex_unlock(&until);
		pthread_join(waiting, NULL);
	}
	if (order == 's')
		pthread_create(&thread, NULL, stays, NULL);
	if (order == 'x')
		execl("/bin/true", "true", NULL);
}

static void puppet_start(struct puppet *u)
{
	int to[2], from[2];
	char order;

	if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
		abort();
	fflush(stdout);
	u->pid = fork();
	if (u->pid == 0) {
		close(to[1]);
		close(from[0]);
		while (read(to[0], &order, 1) == 1) {
			obey(order);
			if (write(from[1], &order, 1) != 1)
				break;
		}
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	u->to = to[1];
	u->from = from[0];
}

/* Waits until it is done; x ends it. */
static void puppet_do(struct puppet *u, char order)
{
	char done;

	if (write(u->to, &order, 1) == 1 && read(u->from, &done, 1) < 0)
		abort();
}

static void puppet_end(struct puppet *u)
{
	close(u->to);
	close(u->from);
	waitpid(u->pid, NULL, 0);
}

struct maps_seen {
	const struct puppet *of;
	unsigned int of_pages[6]; /* of this process or what it started, by size of the mapping */
	unsigned int others, forks, threads, execs, exits, lost;
};

static void take_some(void *ctx, const struct procevent *ev)
{
	struct maps_seen *s = ctx;
	const uint64_t pages = (ev->end - ev->start) / 4096;

	s->forks += ev->type == PROCEVENT_FORK && ev->parent == (uint32_t)s->of->pid && ev->pid != ev->parent;
	s->threads += ev->type == PROCEVENT_FORK && ev->pid == ev->parent;
	s->execs += ev->type == PROCEVENT_EXEC;
	s->exits += ev->type == PROCEVENT_EXIT;
	s->lost += ev->type == PROCEVENT_LOST;
	s->others += ev->type != PROCEVENT_FORK && ev->pid != (uint32_t)s->of->pid;
	if (ev->type == PROCEVENT_MMAP && pages < ARRAY_LEN(s->of_pages) && strcmp(ev->text, "//anon") == 0)
		s->of_pages[pages]++;
}

static void drain_some(struct procevents *p, const struct puppet *of, struct maps_seen *s)
{
	*s = (struct maps_seen){ .of = of };
	procevents_drain(p, false, take_some, s);
}

static size_t ended_of(const struct puppet *u, struct procevents *p)
{
	struct maps_seen s;
	const uint64_t end_ns = now_ns() + UINT64_C(60000000000);
	const size_t before = self_open_files();

	/* once a second at most */
	do {
		usleep(10000);
		drain_some(p, u, &s);
	} while (self_open_files() == before && now_ns() < end_ns);
	return self_open_files();
}

static void some(struct tap *t, bool children)
{
	const struct procevents_opts opts = { .prompt = true, .some = true, .children = children };
	const char *what = children ? "some processes and what they start" : "some processes alone";
	struct puppet one, other;
	struct procevents *p = NULL;
	struct maps_seen s;
	size_t before;
	bool new = false;

	puppet_start(&one);
	puppet_start(&other);
	puppet_do(&one, 'w'); /* a thread that runs already */
	before = self_open_files();
	tap_ok(t, procevents_open(&opts, &p, NULL) == 0 && !procevents_of_all(p), "events of %s are opened",
		what);
	if (!p)
		return;
	tap_ok(t, procevents_add(p, (uint32_t)one.pid, &new, NULL) == 0 && new, "a process is added");
	tap_ok(t, procevents_add(p, (uint32_t)one.pid, &new, NULL) == 0 && !new,
		"the second time it is not new");
	puppet_do(&one, 'm');
	drain_some(p, &one, &s);
	tap_ok(t, !s.of_pages[2], "nothing is reported before the start");
	tap_ok(t, procevents_start(p, NULL) == 0, "events begin");
	for (int i = 0; i < 100; i++) {
		puppet_do(&other, 'm');
		puppet_do(&other, 'f');
	}
	puppet_do(&other, 't');
	drain_some(p, &one, &s);
	tap_ok(t, !s.others && !s.threads && !s.of_pages[2] && !s.of_pages[3] && !s.of_pages[4],
		"%s: nothing of another process is reported", what);
	tap_ok(t, !is_readable(p, 0), "%s: nothing makes the descriptor readable, meanwhile", what);
	interrupting(t, p, what);
	drain_some(p, &one, &s);
	puppet_do(&one, 'm');
	tap_ok(t, is_readable(p, 10000), "%s: a mapping makes it readable", what);
	drain_some(p, &one, &s);
	tap_ok(t, s.of_pages[2] == 1, "%s: a mapping is reported, once", what);
	puppet_do(&one, 'g');
	drain_some(p, &one, &s);
	tap_ok(t, s.of_pages[5] == 1, "%s: a mapping by a thread that ran already is reported", what);
	puppet_do(&one, 't');
	drain_some(p, &one, &s);
	tap_ok(t, s.of_pages[3] == 1 && s.threads == 1, "%s: a new thread is reported, and what it maps",
		what);
	puppet_do(&one, 'f');
	drain_some(p, &one, &s);
	tap_ok(t, s.of_pages[4] == children, "%s: what a child maps is%s reported", what,
		children ? "" : " not");
	tap_ok(t, s.forks == 1, "%s: its fork is reported", what);
	/* this thread inherited events, and gets some of its own */
	puppet_do(&one, 'w');
	tap_ok(t, procevents_add(p, (uint32_t)one.pid, &new, NULL) == 0 && new, "a new thread can be added");
	puppet_do(&one, 'g');
	drain_some(p, &one, &s);
	tap_ok(t, s.of_pages[5] == 1, "%s: two events of a thread report a mapping once", what);
	puppet_do(&one, 'x');
	waitpid(one.pid, NULL, 0);
	drain_some(p, &one, &s);
	tap_ok(t, s.execs == 1, "%s: an exec is reported", what);
	tap_ok(t, !s.lost, "%s: no event was lost", what);
	tap_ok(t, ended_of(&one, p) == before + 1 + (size_t)get_nprocs(),
		"%s: the descriptors of threads that ended are closed, those of the buffers are not", what);
	tap_ok(t, procevents_add(p, (uint32_t)one.pid, &new, NULL) == 0 && !new,
		"a process that ended is not new");
	procevents_close(p);
	tap_eq_u64(t, self_open_files(), before, "all descriptors are closed");
	puppet_end(&one);
	puppet_end(&other);
}

/* The one that started others has ended: they are followed still. */
static void orphans(struct tap *t)
{
	const struct procevents_opts opts = { .some = true, .children = true };
	struct procevents *p = NULL;
	struct maps_seen s;
	struct puppet u;
	int order[2], done[2];
	pid_t parent;
	char c = 0;

	if (pipe2(order, O_CLOEXEC) != 0 || pipe2(done, O_CLOEXEC) != 0)
		abort();
	fflush(stdout);
	parent = fork();
	if (parent == 0) {
		close(order[1]);
		close(done[0]);
		if (read(order[0], &c, 1) != 1 || fork() != 0)
			_exit(0);
		while (read(order[0], &c, 1) == 1) {
			map_code(5);
			if (write(done[1], &c, 1) != 1)
				break;
		}
		_exit(0);
	}
	u.pid = parent;
	tap_ok(t,
		procevents_open(&opts, &p, NULL) == 0 &&
			procevents_add(p, (uint32_t)parent, NULL, NULL) == 0 &&
			procevents_start(p, NULL) == 0,
		"a process that will end is followed");
	if (!p || write(order[1], &c, 1) != 1)
		return;
	waitpid(parent, NULL, 0);
	/* long enough to look for descriptors of ended threads */
	for (int i = 0; i < 120; i++) {
		usleep(10000);
		drain_some(p, &u, &s);
	}
	if (write(order[1], &c, 1) != 1 || read(done[0], &c, 1) != 1)
		abort();
	drain_some(p, &u, &s);
	tap_eq_u64(t, s.of_pages[5], 1, "what it started is followed after its end");
	close(order[1]);
	close(order[0]);
	close(done[0]);
	close(done[1]);
	procevents_close(p);
}

/* With too few descriptors for the threads of a process: events of the whole machine. */
static int with_few_files(void)
{
	const struct procevents_opts opts = { .some = true };
	struct procevents *p = NULL;
	struct puppet one;
	struct maps_seen s;
	bool all;

	puppet_start(&one);
	if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 64, 64 }) != 0 ||
		procevents_open(&opts, &p, NULL) != 0 ||
		procevents_add(p, (uint32_t)one.pid, NULL, NULL) != 0)
		return 1;
	all = procevents_of_all(p);
	if (procevents_start(p, NULL) != 0)
		return 2;
	puppet_do(&one, 'm');
	drain_some(p, &one, &s);
	puppet_end(&one);
	procevents_close(p);
	return all && s.of_pages[2] == 1 ? 0 : 3;
}

struct opener {
	unsigned int n;
	int refused; /* -errno; 0 = open */
};

static int open_for(void *ctx, const struct procevent_how *how, int32_t tid, uint32_t cpu)
{
	struct opener *o = ctx;

	o->n++;
	return o->refused ? o->refused : procevent_open(how, tid, cpu);
}

/* A process that is added later, when this one may open no events any more. */
static void opened_by(struct tap *t)
{
	const struct procevents_opts opts = { .some = true, .children = true };
	const unsigned int cpus = (unsigned int)get_nprocs();
	struct puppet one, many;
	struct procevents *p = NULL;
	struct opener o = { 0 };
	struct maps_seen s;
	struct err e = { 0 };
	bool new = false;

	puppet_start(&one);
	puppet_start(&many);
	if (procevents_open(&opts, &p, NULL) != 0 || procevents_add(p, (uint32_t)getpid(), NULL, NULL) != 0 ||
		procevents_start(p, NULL) != 0)
		abort();
	procevents_open_by(p, open_for, &o);
	tap_ok(t, procevents_add(p, (uint32_t)one.pid, &new, NULL) == 0 && new &&o.n == cpus,
		"another one opens the events of a process that is added later");
	puppet_do(&one, 'm');
	drain_some(p, &one, &s);
	tap_ok(t, s.of_pages[2] == 1, "what it maps from then on is reported, once");
	o.refused = -EACCES;
	tap_ok(t, procevents_add(p, (uint32_t)many.pid, &new, &e) == -EACCES && e.msg[0] && !new,
		"that they are refused is an error");
	o = (struct opener){ 0 };
	for (unsigned int i = 0; i * cpus <= 1024; i++)
		puppet_do(&many, 's');
	tap_ok(t,
		procevents_add(p, (uint32_t)many.pid, NULL, NULL) == 0 && procevents_of_all(p) && o.n <= 1024,
		"for more than 1024 events, those of the whole machine are enabled");
	puppet_do(&many, 'm');
	drain_some(p, &many, &s);
	tap_ok(t, s.of_pages[2] == 1, "what that process maps is reported");
	procevents_close(p);
	puppet_end(&many);
	puppet_end(&one);
}

int main(void)
{
	struct tap t = { 0 };
	struct procevents *p;
	struct err e;
	int rc = procevents_open(&(struct procevents_opts){ 0 }, &p, &e);

	procevents_close(NULL);
	if (rc == -EACCES || rc == -EPERM) {
		tap_ok(&t, e.msg[0] && e.hint[0], "the error says what is missing, with a hint");
		tap_skip(&t, "events", "%s", e.msg);
		return tap_done(&t);
	}
	tap_ok(&t, rc == 0, "events on every CPU are opened");
	if (rc)
		return tap_done(&t);
	not_interrupting(&t, p);
	before_the_start(&t, p);
	interrupting(&t, p, "events of the whole machine");
	one_life(&t, p);
	settling(&t, p);
	lazy(&t, p);
	gathering(&t, p);
	gathering_too_much(&t, p);
	overflow(&t, p, new_name, "a new name");
	overflow(&t, p, new_process, "a new process");
	procevents_close(p);
	without_memory_to_lock(&t);
	some(&t, true);
	some(&t, false);
	orphans(&t);
	opened_by(&t);
	tap_eq_u64(&t, self_apart(with_few_files), 0,
		"where descriptors do not suffice for each thread, events are those of the whole machine");
	prompt(&t);
	return tap_done(&t);
}
