/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Without arguments it runs the tests. With arguments it is a sampler for other tests:
 *
 *	user_stacks PID [TIMES [PAUSE_US]]
 *
 * takes the stack of each thread TIMES times, prints the stacks of the last round,
 *
 *	thread TID VERDICT REASON		#N ADDRESS ['!' if exact]
 *	error TID NAME-OF-ERRNO MESSAGE
 *	hint TEXT
 *
 * and then the counters.
 */
#include "base/clock.h"
#include "base/tap.h"
#include "procfs/thread_copy.h"
#include "procfs/user_stacks.h"
#include "system/sandbox.h"
#include "unwind/compile.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define THREADS_MAX 4096

/* _exit(2), but without the leak check that a sanitizer adds to it. */
__attribute__((noreturn)) static void leave(int code)
{
	syscall(SYS_exit_group, code);
	__builtin_unreachable();
}

/* --- the sampler --- */

static size_t threads_of(uint32_t pid, uint32_t *tids)
{
	struct dirent *d;
	char path[64];
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	while (dir && n < THREADS_MAX && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			tids[n++] = (uint32_t)strtoul(d->d_name, NULL, 10);
	if (dir)
		closedir(dir);
	return n;
}

static void print_stack(uint32_t tid, const struct cap_stack *s)
{
	uint32_t exact = 0;

	printf("thread %u %s %s\n", tid, capture_verdict_name(s->verdict), capture_reason_name(s->reason));
	for (uint32_t i = 0; i < s->len; i++) {
		bool is = exact < s->n_exact && s->exact[exact] == i;

		exact += is;
		printf("#%u 0x%016" PRIx64 "%s\n", i, s->frames[i], is ? " !" : "");
	}
}

static void print_stats(const struct user_stacks_stats *s)
{
	printf("stacks %" PRIu64 "\nstops %" PRIu64 "\nstopped_us %" PRIu64 "\nlongest_us %" PRIu64
	       "\nquiet %" PRIu64 "\nspared %" PRIu64 "\nagain %" PRIu64 "\n",
		s->stacks, s->stops, s->stopped_ns / 1000, s->longest_ns / 1000, s->quiet, s->spared,
		s->again);
	for (enum thread_refusal why = 0; why < THREAD_REFUSAL_COUNT; why++)
		if (s->refused[why])
			printf("refused.%s %" PRIu64 "\n", thread_refusal_name(why), s->refused[why]);
}

static void print_tables(const struct walktables_stats *s)
{
	printf("files %" PRIu64 "\nfailed %" PRIu64 " %s\nbare %" PRIu64 "\nworker_lost %" PRIu64 "\n",
		s->files, s->source.failed, s->source.why, s->source.bare, s->source.worker_lost);
}

/* Reads memory with the permissions of this process. */
static const struct thread_memory own_rights;

/* The tables of this process: a child cannot use its parent's worker. */
static struct walktables *tables;
static pid_t tables_of;

static struct walktables *own_tables(void)
{
	struct err e;

	if (tables_of == getpid())
		return tables;
	tables_of = getpid();
	if (walktables_open(&(struct walktables_opts){ 0 }, &tables, &e) == 0)
		return tables;
	printf("Bail out!  %s\n", e.msg);
	fflush(stdout);
	leave(1);
}

static void close_tables(void)
{
	walktables_close(tables);
	tables_of = 0;
}

static int sample(uint32_t pid, unsigned long times, unsigned long pause_us)
{
	static uint32_t tids[THREADS_MAX];
	struct walktables_stats made;
	struct user_stacks_stats stats;
	struct user_stacks *p;
	struct err e = { 0 };

	if (user_stacks_open(&own_rights, own_tables(), pid, &p, &e) != 0) {
		printf("error %u %s %s\n", pid, err_name(e.code), e.msg);
		return 2;
	}
	for (unsigned long i = 0; i < times; i++) {
		size_t n = threads_of(pid, tids);

		for (size_t k = 0; k < n; k++) {
			struct cap_stack s;
			int rc;

			e = (struct err){ 0 };
			rc = user_stacks_take(p, tids[k], &s, &e);
			if (i + 1 < times)
				continue;
			if (!rc)
				print_stack(tids[k], &s);
			else
				printf("error %u %s %s\nhint %s\n", tids[k], err_name(rc), e.msg, e.hint);
		}
		if (pause_us)
			usleep((useconds_t)pause_us);
	}
	user_stacks_stats(p, &stats);
	print_stats(&stats);
	walktables_stats(own_tables(), &made);
	print_tables(&made);
	user_stacks_close(p);
	close_tables();
	return 0;
}

/* --- children --- */

static pid_t child(void (*fn)(void))
{
	const pid_t parent = getpid();
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (child_bind(parent, NULL) == 0)
			fn();
		leave(0);
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void sleeps(void)
{
	for (;;)
		pause();
}

/* libc's wrapper keeps the frame pointer in a register, not on the stack, so the walk needs a stop. */
__attribute__((noinline, optimize("no-omit-frame-pointer"))) static void sleeps_by_fp(void)
{
	volatile char room[64];

	for (;;) {
		room[0] = 0;
		syscall(SYS_pause);
		room[1] = room[0];
	}
}

static void spins(void)
{
	for (volatile unsigned long n = 0;; n++)
		;
}

/* The parent may be killed before its child, which may wait for a CPU, has asked to end with it. */
static void vforks(void)
{
	const pid_t parent = getpid();

	if (vfork() == 0) {
		if (child_bind(parent, NULL) != 0)
			_exit(1);
		for (;;)
			syscall(SYS_pause);
	}
}

/* A field of /proc/PID/status; "" if there is none. */
static const char *status(pid_t pid, const char *name, char text[8192])
{
	_cleanup_close_ int fd = -1;
	char path[64], *at;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, 8191);
	text[MAX(n, 0)] = '\0';
	at = strstr(text, name);
	return at ? at + strlen(name) : "";
}

static char state(pid_t pid)
{
	char text[8192];

	return *status(pid, "\nState:\t", text);
}

static unsigned long tracer(pid_t pid)
{
	char text[8192];

	return strtoul(status(pid, "\nTracerPid:\t", text), NULL, 10);
}

static void until_state(pid_t pid, char want)
{
	for (int i = 0; i < 5000 && state(pid) != want; i++)
		usleep(1000);
}

/* The PID of a child of ours that is named COMM; 0 = none. */
static pid_t child_called(const char *comm)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	char text[8192];
	pid_t found = 0;

	while (dir && !found && (d = readdir(dir))) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);

		if (pid > 0 && strtol(status(pid, "\nPPid:\t", text), NULL, 10) == getpid() &&
			strncmp(status(pid, "Name:\t", text), comm, strlen(comm)) == 0)
			found = pid;
	}
	if (dir)
		closedir(dir);
	return found;
}

static struct user_stacks *open_with(struct walktables *t, pid_t pid)
{
	struct user_stacks *p;
	struct err e;

	if (user_stacks_open(&own_rights, t, (uint32_t)pid, &p, &e) != 0) {
		tap_diag("%s", e.msg);
		leave(1);
	}
	return p;
}

static struct user_stacks *open_or_die(pid_t pid)
{
	return open_with(own_tables(), pid);
}

/* --- one process, in each state --- */

static void blocked(struct tap *t)
{
	pid_t pid = child(sleeps);
	struct user_stacks *p = open_or_die(pid);
	struct user_stacks_stats s;
	struct cap_stack stack;
	struct err e = { 0 };
	int rc;

	until_state(pid, 'S');
	rc = user_stacks_take(p, (uint32_t)pid, &stack, &e);
	tap_ok(t, !rc && stack.len > 2 && stack.kind == CAPTURE_STACK_USER,
		"a blocked thread has a stack%s%s", rc ? ": " : "", e.msg);
	until_state(pid, 'S'); /* a stop wakes the thread, which then restarts its call */
	tap_ok(t, tracer(pid) == 0 && state(pid) == 'S',
		"the thread is blocked again afterwards and has no tracer");
	user_stacks_stats(p, &s);
	tap_eq_u64(t, s.stacks, 1, "the stack is counted");
	user_stacks_close(p);
	end(pid);
}

static void needs_registers(struct tap *t)
{
	pid_t pid = child(sleeps_by_fp);
	struct user_stacks *p = open_or_die(pid);
	struct user_stacks_stats s;
	struct cap_stack stack;
	int rc;

	until_state(pid, 'S');
	rc = user_stacks_take(p, (uint32_t)pid, &stack, NULL);
	user_stacks_stats(p, &s);
	tap_ok(t,
		!rc && stack.verdict == VERDICT_COMPLETE && s.stops >= 1 && s.longest_ns &&
			s.stopped_ns >= s.longest_ns,
		"a thread whose walk needs a register is stopped, and the time of the stop is reported");
	user_stacks_close(p);
	end(pid);
}

/* A walk of the copy MADE of child PID, which is blocked, finds the COMPLETE stack that a copy of our own
 * gave. */
static bool walks_copied(struct user_stacks *p, pid_t pid, const struct user_stacks_copy *made,
	const struct cap_stack *complete)
{
	struct cap_stack stack;

	return user_stacks_take_copied(p, (uint32_t)pid, made, &stack, NULL) == 0 &&
	       stack.verdict == VERDICT_COMPLETE && stack.len == complete->len &&
	       memcmp(stack.frames, complete->frames, stack.len * sizeof(*stack.frames)) == 0;
}

static void copied(struct tap *t)
{
	pid_t pid = child(sleeps);
	struct user_stacks *p = open_or_die(pid);
	static struct thread_copy copy;
	static uint64_t frames[512];
	struct user_stacks_copy made = { .bytes = copy.bytes[0] };
	struct user_stacks_stats before, after;
	struct cap_stack stack, part;
	int rc;

	until_state(pid, 'S');
	rc = user_stacks_take(p, (uint32_t)pid, &stack, NULL);
	if (!rc && stack.len <= ARRAY_LEN(frames))
		memcpy(frames, stack.frames, stack.len * sizeof(*frames));
	stack.frames = frames;
	until_state(pid, 'S');
	rc = rc ? rc : quiet_copy_take(pid, pid, NULL, 0, &copy, &made.call);
	made.from = copy.head.areas[0].from;
	made.len = (size_t)copy.head.areas[0].len;
	tap_ok(t, !rc && stack.verdict == VERDICT_COMPLETE && walks_copied(p, pid, &made, &stack),
		"a copy that was made before gives the same stack");
	made.len = MIN(made.len, (size_t)192);
	tap_ok(t, !rc && walks_copied(p, pid, &made, &stack), "what the copy lacks is read of the thread");
	made.call.pc = 0;
	rc = rc ? rc : user_stacks_take_copied(p, (uint32_t)pid, &made, &part, NULL);
	tap_ok(t, !rc && part.len == 1 && part.frames[0] == 0, "the copy says where the walk begins");
	user_stacks_stats(p, &before);
	made.call.pc = frames[0];
	made.call.sp = 16;
	made.len = 0;
	rc = rc ? rc : user_stacks_take_copied(p, (uint32_t)pid, &made, &part, NULL);
	user_stacks_stats(p, &after);
	tap_ok(t, !rc && part.len == 1 && part.frames[0] == frames[0] && after.stops == before.stops,
		"a copy whose SP does not point to memory has one frame, and the thread is not stopped for "
		"it");
	user_stacks_close(p);
	end(pid);
}

static void running(struct tap *t)
{
	pid_t pid = child(spins);
	struct user_stacks *p = open_or_die(pid);
	struct user_stacks_stats s;
	struct cap_stack stack;
	int rc = user_stacks_take(p, (uint32_t)pid, &stack, NULL);

	user_stacks_stats(p, &s);
	tap_ok(t, !rc && stack.verdict == VERDICT_COMPLETE && s.stops >= 1,
		"a running thread is stopped and has a complete stack");
	tap_ok(t, state(pid) == 'R' && tracer(pid) == 0,
		"a running thread runs on after its stack was taken and has no tracer");
	user_stacks_close(p);
	end(pid);
}

static void stopped(struct tap *t)
{
	pid_t pid = child(sleeps_by_fp);
	struct user_stacks *p = open_or_die(pid);
	struct cap_stack stack;
	int rc = 0, status_word;

	until_state(pid, 'S');
	kill(pid, SIGSTOP);
	until_state(pid, 'T');
	waitpid(pid, &status_word, WUNTRACED);
	for (int i = 0; i < 20; i++)
		rc |= user_stacks_take(p, (uint32_t)pid, &stack, NULL);
	until_state(pid, 'T');
	tap_ok(t, !rc && stack.verdict == VERDICT_COMPLETE, "a stopped job (SIGSTOP) has a complete stack");
	tap_ok(t, state(pid) == 'T' && tracer(pid) == 0, "the job stays stopped after its stack was taken");
	kill(pid, SIGCONT);
	until_state(pid, 'S');
	tap_ok(t, state(pid) == 'S', "SIGCONT continues the job");
	user_stacks_close(p);
	end(pid);
}

#define SIGNALS 60000u
static volatile unsigned int *handled; /* shared with the child: [0] signals handled, [1] child is ready */

static void handle(int sig)
{
	(void)sig;
	++*handled;
}

static void takes_signals(void)
{
	signal(SIGRTMIN, handle);
	handled[1] = 1;
	spins();
}

/* Real-time signals are queued: each one is delivered, or sigqueue(3) fails with EAGAIN. */
static void send_signals(pid_t pid)
{
	for (unsigned int sent = 0; sent < SIGNALS;) {
		if (sigqueue(pid, SIGRTMIN, (union sigval){ .sival_int = 0 }) == 0)
			sent++;
		else if (errno != EAGAIN)
			leave(1);
		if (sent % 16 == 0)
			for (volatile int i = 0; i < 1000; i++)
				;
	}
	leave(0);
}

static void signalled(struct tap *t)
{
	int status_word = 1;
	unsigned int stops = 0;
	struct cap_stack stack;
	pid_t pid, sender;
	struct user_stacks *p;

	handled = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (handled == MAP_FAILED)
		leave(1);
	pid = child(takes_signals);
	p = open_or_die(pid);
	for (int i = 0; i < 20000 && !handled[1]; i++)
		usleep(1000);
	sender = fork();
	if (sender == 0)
		send_signals(pid);
	while (waitpid(sender, &status_word, WNOHANG) == 0)
		stops += user_stacks_take(p, (uint32_t)pid, &stack, NULL) == 0;
	for (int i = 0; i < 20000 && *handled < SIGNALS; i++)
		usleep(1000);
	tap_eq_u64(t, *handled, SIGNALS, "each signal sent during the stops is delivered once");
	tap_diag("%u stops while signals were sent", stops);
	munmap((void *)(uintptr_t)handled, 4096);
	user_stacks_close(p);
	end(pid);
}

static void in_vfork(struct tap *t)
{
	pid_t pid = child(vforks);
	struct user_stacks *p = open_or_die(pid);
	struct user_stacks_stats s;
	struct cap_stack stack;
	uint64_t began;
	int rc;

	until_state(pid, 'D');
	began = now_ns();
	rc = user_stacks_take(p, (uint32_t)pid, &stack, NULL);
	user_stacks_stats(p, &s);
	tap_ok(t,
		!rc && stack.len >= 1 && stack.verdict == VERDICT_STOPPED &&
			s.refused[THREAD_REFUSAL_LATE] == 1,
		"a thread that cannot be stopped (vfork) has the frames that can be read, and is counted");
	tap_ok(t, now_ns() - began < UINT64_C(5000000000),
		"an attempt to stop a thread in vfork ends within 5 seconds");
	tap_eq_u64(t, tracer(pid), 0, "no tracer stays attached to a thread that cannot be stopped");
	user_stacks_close(p);
	end(pid);
}

static void traced(struct tap *t)
{
	pid_t pid = child(sleeps_by_fp), other;
	struct user_stacks *p = open_or_die(pid);
	struct user_stacks_stats s;
	struct cap_stack stack;
	struct err e = { 0 };
	int rc;

	fflush(stdout);
	other = fork();
	if (other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0)
			leave(1);
		sleeps();
	}
	for (int i = 0; i < 5000 && !tracer(pid); i++)
		usleep(1000);
	until_state(pid, 'S');
	rc = user_stacks_take(p, (uint32_t)pid, &stack, &e);
	user_stacks_stats(p, &s);
	tap_ok(t, !rc && stack.len && stack.verdict == VERDICT_STOPPED && stack.reason == REASON_REGISTER,
		"a thread that another process traces has the frames that need no stop");
	tap_ok(t, s.refused[THREAD_REFUSAL_TRACED] == 1 && !s.stops,
		"the refusal is counted under its reason");
	tap_eq_u64(t, thread_refusal_explain(pid, pid, -EPERM, false, &e), THREAD_REFUSAL_TRACED,
		"the reason of the refusal is that the thread is traced");
	tap_ok(t, strstr(e.msg, "traced by process") && e.hint[0], "the message names the tracer: %s", e.msg);
	end(other);
	user_stacks_close(p);
	end(pid);
}

static void gone(struct tap *t)
{
	pid_t pid = child(sleeps);
	struct user_stacks *p = open_or_die(pid), *none = NULL;
	struct user_stacks_stats s;
	struct cap_stack stack;
	struct err e = { 0 };

	tap_eq_u64(t, (uint64_t)-user_stacks_take(p, (uint32_t)getpid(), &stack, &e), ESRCH,
		"a thread of another process gives ESRCH");
	end(pid);
	tap_eq_u64(t, (uint64_t)-user_stacks_take(p, (uint32_t)pid, &stack, &e), ESRCH,
		"a process that has ended gives ESRCH");
	user_stacks_stats(p, &s);
	tap_eq_u64(t, s.refused[THREAD_REFUSAL_GONE], 2,
		"threads of other and of ended processes are counted as gone");
	user_stacks_close(p);
	tap_ok(t,
		user_stacks_open(&own_rights, own_tables(), (uint32_t)pid, &none, &e) == -ESRCH &&
			strstr(e.msg, "no process"),
		"a process that has ended cannot be opened: %s", e.msg);
}

static void kernel_thread(struct tap *t)
{
	struct user_stacks *p;
	struct cap_stack stack;
	struct err e = { 0 };
	char text[8192];
	int rc;

	if (strncmp(status(2, "Name:\t", text), "kthreadd", 8) != 0) {
		tap_skip(t, "a kernel thread has no user stack", "kthreadd is not visible here");
		return;
	}
	p = open_or_die(2);
	rc = user_stacks_take(p, 2, &stack, &e);
	tap_ok(t, rc < 0 && strstr(e.msg, "kernel"), "a kernel thread has no user stack: %s", e.msg);
	user_stacks_close(p);
}

static void reads_clocks(void)
{
	struct timespec ts;

	for (;;)
		clock_gettime(CLOCK_MONOTONIC, &ts);
}

/* The address range of the mapping NAME of PID. */
static bool mapping(pid_t pid, const char *name, uint64_t *start, uint64_t *stop_at)
{
	_cleanup_fclose_ FILE *f = NULL;
	char line[512];

	snprintf(line, sizeof(line), "/proc/%d/maps", pid);
	f = fopen(line, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, name))
			return sscanf(line, "%" SCNx64 "-%" SCNx64, start, stop_at) == 2;
	return false;
}

static void in_vdso(struct tap *t)
{
	pid_t pid = child(reads_clocks);
	struct user_stacks *p = open_or_die(pid);
	uint64_t from = 0, to = 0;
	struct cap_stack stack;
	int inside = 0, complete = 0;

	mapping(pid, "[vdso]", &from, &to);
	for (int i = 0; i < 2000 && inside < 20; i++) {
		if (user_stacks_take(p, (uint32_t)pid, &stack, NULL) != 0 || stack.frames[0] < from ||
			stack.frames[0] >= to)
			continue;
		inside++;
		complete += stack.verdict == VERDICT_COMPLETE;
	}
	tap_ok(t, inside >= 20 && complete == inside, "walks from inside the vdso are complete (%d of %d)",
		complete, inside);
	user_stacks_close(p);
	end(pid);
}

static int reported[2]; /* a pipe: at a byte the child execs */

static void execs_when_signalled(void)
{
	char *argv[] = { (char[]){ "sleep" }, (char[]){ "1000" }, NULL };
	char c;

	if (read(reported[0], &c, 1) == 1)
		execvp(argv[0], argv);
}

static void exec(struct tap *t)
{
	pid_t pid = pipe2(reported, O_CLOEXEC) == 0 ? child(execs_when_signalled) : 0;
	struct user_stacks *p = open_or_die(pid);
	struct cap_stack before, after;
	char text[8192];
	int rc;

	until_state(pid, 'S');
	rc = user_stacks_take(p, (uint32_t)pid, &before, NULL);
	tap_ok(t, !rc && before.verdict == VERDICT_COMPLETE,
		"a process has a complete stack before it execs");
	if (write(reported[1], "", 1) != 1)
		leave(1);
	for (int i = 0; i < 5000 && strncmp(status(pid, "Name:\t", text), "sleep", 5) != 0; i++)
		usleep(1000);
	usleep(100000);
	until_state(pid, 'S');
	rc = user_stacks_take(p, (uint32_t)pid, &after, NULL);
	tap_ok(t, !rc && after.verdict == VERDICT_COMPLETE && after.len > 3,
		"a process has a complete stack of its new program after it execs");
	user_stacks_close(p);
	end(pid);
	close(reported[0]);
	close(reported[1]);
}

__attribute__((noinline, optimize("no-optimize-sibling-calls"))) static void goes_down(unsigned int n)
{
	volatile char room[1000];

	room[0] = (char)n;
	if (n)
		goes_down(n - 1);
	else
		pause();
	room[1] = room[0];
}

static void deep(void)
{
	goes_down(100);
}

static void deeper(void)
{
	goes_down(600);
}

static void depths(struct tap *t)
{
	static const struct {
		void (*fn)(void);
		uint8_t verdict;
		const char *name;
	} cases[] = { { deep, VERDICT_COMPLETE, "a stack larger than one area is copied in several areas" },
		{ deeper, VERDICT_TRUNCATED, "a stack that is too large is truncated and marked as such" } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		pid_t pid = child(cases[i].fn);
		struct user_stacks *p = open_or_die(pid);
		struct cap_stack stack;
		int rc;

		until_state(pid, 'S');
		rc = user_stacks_take(p, (uint32_t)pid, &stack, NULL);
		tap_ok(t, !rc && stack.verdict == cases[i].verdict && stack.len > 100, "%s (%u frames)",
			cases[i].name, stack.len);
		user_stacks_close(p);
		end(pid);
	}
}

/* --- without privileges --- */

static void as_nobody(void)
{
	if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
		leave(99);
	/* the change of user made the process undumpable, and so no other process could read it */
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void undumpable_sleeps(void)
{
	prctl(PR_SET_DUMPABLE, 0);
	sleeps();
}

static int refusal(pid_t pid, const char *what)
{
	struct user_stacks *p = open_or_die(pid);
	struct cap_stack stack;
	struct err e = { 0 };
	int rc = user_stacks_take(p, (uint32_t)pid, &stack, &e);

	user_stacks_close(p);
	close_tables();
	if (rc < 0 && strstr(e.msg, what) && e.hint[0])
		return 0;
	tap_diag("%d %s", rc, e.msg);
	return 1;
}

static int own(void)
{
	pid_t pid = child(sleeps_by_fp);
	struct user_stacks *p = open_or_die(pid);
	struct cap_stack stack;
	int rc;

	until_state(pid, 'S');
	rc = user_stacks_take(p, (uint32_t)pid, &stack, NULL);
	user_stacks_close(p);
	end(pid);
	return !rc && stack.verdict == VERDICT_COMPLETE ? 0 : 1;
}

static int others(void)
{
	return refusal(getppid(), "belongs to");
}

static int undumpable(void)
{
	pid_t pid = child(undumpable_sleeps);
	int rc;

	until_state(pid, 'S');
	usleep(10000);
	rc = refusal(pid, "does not allow itself");
	end(pid);
	return rc;
}

/* Only the message: this kernel may have no Yama. In a mount namespace /proc shows a ptrace_scope. */
static int yama(void)
{
	pid_t pid = child(sleeps);
	struct err e = { 0 };
	int bad = thread_refusal_explain(pid, pid, -EPERM, false, &e) != THREAD_REFUSAL_YAMA ||
		  !strstr(e.hint, "only descendants");

	end(pid);
	if (bad)
		tap_diag("%s (%s)", e.msg, e.hint);
	return bad;
}

static bool pretend_yama(void)
{
	_cleanup_close_ int fd = -1;

	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount("none", "/proc/sys/kernel", "tmpfs", 0, NULL) != 0 ||
		mkdir("/proc/sys/kernel/yama", 0755) != 0)
		return false;
	fd = open("/proc/sys/kernel/yama/ptrace_scope", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	return fd >= 0 && write(fd, "1\n", 2) == 2;
}

/* --- the process that makes the tables --- */

static void worker_is_confined(struct tap *t)
{
	pid_t pid = child(sleeps), worker;
	struct user_stacks *p;
	struct cap_stack stack;
	char text[8192];

	close_tables();
	p = open_or_die(pid);
	until_state(pid, 'S');
	user_stacks_take(p, (uint32_t)pid, &stack, NULL);
	worker = child_called("unwind-tables");
	tap_ok(t, worker > 0 && worker == walktables_worker(own_tables()),
		"a worker process makes the unwind tables");
	tap_ok(t,
		strtoull(status(worker, "\nCapEff:\t", text), NULL, 16) == 0 &&
			strtoull(status(worker, "\nCapPrm:\t", text), NULL, 16) == 0 &&
			*status(worker, "\nNoNewPrivs:\t", text) == '1' &&
			*status(worker, "\nSeccomp:\t", text) == '2',
		"the worker has no capability and a seccomp filter");
	user_stacks_close(p);
	close_tables();
	tap_eq_u64(
		t, (uint64_t)child_called("unwind-tables"), 0, "the worker ends when its tables are closed");
	end(pid);
}

static void worker_dies(struct tap *t)
{
	pid_t pid = child(sleeps);
	struct user_stacks *p = open_or_die(pid);
	struct walktables_stats s;
	struct cap_stack stack;
	int good = 0;

	until_state(pid, 'S');
	for (int i = 0; i < 3; i++) {
		pid_t worker = walktables_worker(own_tables());

		kill(worker, SIGKILL);
		until_state(worker, 'Z');
		good += user_stacks_take(p, (uint32_t)pid, &stack, NULL) == 0 &&
			stack.verdict == VERDICT_COMPLETE;
	}
	walktables_stats(own_tables(), &s);
	tap_ok(t, good == 3 && s.files >= 2 && !s.source.failed,
		"a worker that dies while idle is replaced, and no table fails");
	until_state(pid, 'S'); /* see blocked() */
	tap_ok(t, state(pid) == 'S' && tracer(pid) == 0,
		"the sampled process does not notice the worker's death");
	user_stacks_close(p);
	close_tables();
	end(pid);
}

static Elf64_Ehdr bad_head; /* of this program: the file at which the test compilers die or hang */

static bool is_bad(int fd)
{
	Elf64_Ehdr h;

	return pread(fd, &h, sizeof(h), 0) == sizeof(h) && memcmp(&h, &bad_head, sizeof(h)) == 0;
}

static int compile_dying(int fd, uint8_t **ret, size_t *len, struct err *e)
{
	if (is_bad(fd))
		__builtin_trap();
	return unwindcomp_fd(fd, ret, len, e);
}

static int compile_hanging(int fd, uint8_t **ret, size_t *len, struct err *e)
{
	while (is_bad(fd))
		__asm__ volatile("" ::: "memory");
	return unwindcomp_fd(fd, ret, len, e);
}

/*
 * Walk a stack whose first frame is in libc, the others in this program and in libc again. REASON: why the
 * walk ends early, unless the value taken for a frame pointer happens to lead to a zero.
 */
static struct walktables_stats walk_with(
	struct tap *t, const struct walktables_opts *o, uint8_t reason, uint64_t within_ns, const char *name)
{
	pid_t pid = child(sleeps);
	struct walktables_stats s;
	struct walktables *with;
	struct cap_stack stack;
	struct user_stacks *p;
	uint64_t began;
	int rc;

	if (walktables_open(o, &with, NULL) != 0)
		leave(1);
	p = open_with(with, pid);
	until_state(pid, 'S');
	began = now_ns();
	rc = user_stacks_take(p, (uint32_t)pid, &stack, NULL);
	began = now_ns() - began;
	if (!tap_ok(t,
		    !rc && began < within_ns &&
			    (!reason ? stack.verdict == VERDICT_COMPLETE
				     : stack.verdict == VERDICT_UNVERIFIED ||
						    (stack.verdict == VERDICT_STOPPED &&
							    stack.reason == reason)),
		    "%s", name))
		tap_diag("%d %s %s, %" PRIu64 " ms", rc, capture_verdict_name(stack.verdict),
			capture_reason_name(stack.reason), began / 1000000);
	user_stacks_close(p);
	walktables_stats(with, &s);
	walktables_close(with);
	end(pid);
	return s;
}

#define S UINT64_C(1000000000)

static void bad_files(struct tap *t)
{
	_cleanup_close_ int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct walktables_stats s;

	if (exe < 0 || pread(exe, &bad_head, sizeof(bad_head), 0) != sizeof(bad_head))
		leave(1);
	s = walk_with(t, &(struct walktables_opts){ .compile = compile_dying }, REASON_NO_FRAME_POINTER,
		20 * S, "a file that kills the worker has no table");
	tap_ok(t, s.source.failed == 1 && s.files >= 2 && strstr(s.source.why, "killed by SIGILL"),
		"other files have tables if one kills the worker, and that one is counted: %s", s.source.why);
	s = walk_with(t, &(struct walktables_opts){ .compile = compile_hanging, .seconds = 1 },
		REASON_NO_FRAME_POINTER, 20 * S, "a file that takes the worker too long has no table");
	tap_ok(t, s.source.failed == 1 && s.files >= 2 && strstr(s.source.why, "too long"),
		"a file that takes too long is counted as failed: %s", s.source.why);
	s = walk_with(t, &(struct walktables_opts){ .compile = compile_hanging, .seconds = 600 },
		REASON_NOT_READY, 20 * S, "the walk does not wait for a slow worker");
	tap_ok(t, !s.source.failed, "a table that is not ready yet is not counted as failed");
	s = walk_with(t, &(struct walktables_opts){ .bytes = 1 }, REASON_DROPPED, 20 * S,
		"tables beyond the limit are dropped");
	tap_ok(t, s.dropped >= 1 && !s.bytes, "dropped tables are counted");
}

static void from_cache(struct tap *t)
{
	char dir[] = "/tmp/user_stacks-XXXXXX", command[64];
	struct walktables_stats s;

	if (!mkdtemp(dir))
		leave(1);
	setenv("STACKTOOLS_CACHE", dir, 1);
	s = walk_with(
		t, &(struct walktables_opts){ 0 }, 0, 60 * S, "a stack is complete with newly made tables");
	tap_eq_u64(t, s.source.cached, 0, "no table is taken from an empty disk cache");
	s = walk_with(t, &(struct walktables_opts){ .compile = compile_dying }, 0, 60 * S,
		"a stack is complete with tables from the disk cache");
	tap_ok(t, s.source.cached >= 2 && !s.source.failed,
		"the second run takes its tables from the disk cache");
	setenv("STACKTOOLS_CACHE", "", 1);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (system(command) != 0)
		tap_diag("cannot remove %s", dir);
}

/* While no process can be created, tables are not ready. */
static int without_worker(void)
{
	struct rlimit none = { 0, 0 }, was;
	pid_t pid = child(sleeps);
	struct user_stacks *p = open_or_die(pid);
	struct walktables_stats s;
	struct cap_stack stack;
	int rc;

	until_state(pid, 'S');
	kill(walktables_worker(own_tables()), SIGKILL);
	until_state(walktables_worker(own_tables()), 'Z');
	getrlimit(RLIMIT_NPROC, &was);
	none.rlim_max = was.rlim_max;
	setrlimit(RLIMIT_NPROC, &none);
	rc = user_stacks_take(p, (uint32_t)pid, &stack, NULL);
	walktables_stats(own_tables(), &s);
	rc = rc || stack.reason != REASON_NOT_READY || s.source.worker_lost != 1 || !s.source.worker_why[0];
	setrlimit(RLIMIT_NPROC, &was);
	rc = rc || user_stacks_take(p, (uint32_t)pid, &stack, NULL) != 0 || stack.verdict != VERDICT_COMPLETE;
	if (rc)
		tap_diag("%s, lost %" PRIu64 ": %s", capture_reason_name(stack.reason), s.source.worker_lost,
			s.source.worker_why);
	user_stacks_close(p);
	close_tables();
	end(pid);
	return rc;
}

static void unprivileged(struct tap *t)
{
	static const struct {
		const char *name;
		int (*fn)(void);
		bool root; /* must start as root */
	} cases[] = { { "an ordinary user can take the stacks of his own processes", own, false },
		{ "an ordinary user cannot take stacks of another user, with a message", others, true },
		{ "an ordinary user cannot take stacks of an undumpable process", undumpable, false },
		{ "a refusal by Yama is reported with a hint", yama, true },
		{ "without a worker tables are not ready; they are once one can start", without_worker,
			true } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int status_word = -1;
		pid_t pid;

		if (cases[i].root && geteuid() != 0) {
			tap_skip(t, cases[i].name, "not root");
			continue;
		}
		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			if (cases[i].fn == yama && !pretend_yama())
				leave(98);
			as_nobody();
			leave(cases[i].fn());
		}
		waitpid(pid, &status_word, 0);
		tap_eq_u64(t, (uint64_t)status_word, 0, cases[i].name);
	}
}

/* --- hostile files --- */

static int memfd_of(const uint8_t *bytes, size_t len)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	if (fd < 0 || pwrite(fd, bytes, len, 0) != (ssize_t)len)
		leave(1);
	return fd;
}

static void damage(uint8_t *bytes, size_t len, unsigned int *seed)
{
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)(const void *)bytes;
	int n = 1 + rand_r(seed) % 8;

	for (int i = 0; i < n; i++) {
		size_t at = (size_t)rand_r(seed) % len;

		switch (rand_r(seed) % 3) {
		case 0: /* headers */
			at %= 1024;
			break;
		case 1: /* section headers */
			at = (h->e_shoff + at % 4096) % len;
			break;
		default:
			break;
		}
		bytes[at] = rand_r(seed) % 4 ? (uint8_t)rand_r(seed) : 0xff;
	}
}

struct bad_file {
	struct walktables *tables;
	uint32_t file;
	uint64_t start, end, offset;
	uint64_t wait_ns;
};

static enum snapwalk_code find_bad(void *ctx, uint64_t pc, const struct unwind_rule **rule)
{
	struct bad_file *f = ctx;

	if (pc < f->start || pc >= f->end)
		return SNAPWALK_NO_MAPPING;
	return walktables_rule(f->tables, f->file, pc - f->start + f->offset, &f->wait_ns, rule);
}

static bool code_bad(void *ctx, uint64_t addr, uint64_t *word)
{
	const struct bad_file *f = ctx;

	*word = addr % 3 ? UINT64_C(0xe8) << 24 : 0;
	return addr >= f->start && addr < f->end;
}

#define STACK_AT UINT64_C(0x7ffe00000000)
#define STACK_WORDS 8192

/* Walk from 100 places of the file, over a stack of addresses in the file and in the stack itself. */
static void walk_it(struct bad_file *f, const uint64_t *words, unsigned int *seed)
{
	const struct snapwalk_opts opts = { .depth = 512, .find = find_bad, .code = code_bad, .ctx = f };
	const struct snapwalk_area area = {
		.bytes = (const uint8_t *)words, .from = STACK_AT, .len = STACK_WORDS * sizeof(*words)
	};
	const struct snapwalk_memory memory = { .areas = &area, .n = 1 };
	__u64 regs[OFFCPU_SNAPSHOT_REGS], frames[512];
	struct snapwalk_end ended;

	for (int i = 0; i < 100; i++) {
		for (size_t k = 0; k < ARRAY_LEN(regs); k++)
			regs[k] = STACK_AT + (uint64_t)rand_r(seed) % (STACK_WORDS * 8) / 8 * 8;
		regs[THREAD_COPY_PC] = f->start + (uint64_t)rand_r(seed) % (f->end - f->start);
		snapwalk(&opts, regs, &memory, frames, &ended);
		if (!ended.verdict || ended.verdict > VERDICT_STOPPED || ended.len > 512)
			leave(2);
	}
}

static void hostile(struct tap *t)
{
	const char *runs = getenv("HOSTILE_RUNS");
	unsigned int n = runs ? (unsigned int)strtoul(runs, NULL, 10) : 60, seed = 4711;
	_cleanup_close_ int exe = open("/bin/sh", O_RDONLY | O_CLOEXEC);
	struct bad_file f = { .tables = own_tables(), .start = 0x555555554000 };
	static uint64_t words[STACK_WORDS];
	struct walktables_stats s;
	uint8_t *good, *bad;
	const Elf64_Phdr *ph;
	struct stat st;

	if (exe < 0 || fstat(exe, &st) != 0)
		leave(1);
	good = malloc((size_t)st.st_size);
	bad = malloc((size_t)st.st_size);
	if (!good || !bad || pread(exe, good, (size_t)st.st_size, 0) != st.st_size)
		leave(1);
	ph = (const Elf64_Phdr *)(const void *)(good + ((const Elf64_Ehdr *)(const void *)good)->e_phoff);
	while (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X))
		ph++;
	f.offset = ph->p_offset & ~UINT64_C(4095);
	f.start += f.offset;
	f.end = f.start + ph->p_filesz;
	for (size_t i = 0; i < STACK_WORDS; i++)
		words[i] =
			i % 3 ? STACK_AT + 8 * i + 16 : f.start + (uint64_t)rand_r(&seed) % (f.end - f.start);
	for (unsigned int i = 0; i < n; i++) {
		size_t len = (size_t)st.st_size;
		int fd;

		memcpy(bad, good, len);
		damage(bad, len, &seed);
		if (i % 4 == 0)
			len = (size_t)rand_r(&seed) % len + 1;
		fd = memfd_of(bad, len);
		f.file = walktables_add(f.tables, NULL, fd);
		f.wait_ns = 60 * S;
		close(fd);
		walk_it(&f, words, &seed);
	}
	walktables_stats(f.tables, &s);
	tap_diag("%" PRIu64 " files failed, %" PRIu64 " had nothing, %" PRIu64 " rows", s.source.failed,
		s.source.bare, s.rows);
	tap_ok(t, s.files >= n && s.rows, "walks through %u damaged files end with a valid verdict", n);
	free(good);
	free(bad);
}

/* --- threads that come and go, recorders that die --- */

static void *short_life(void *arg)
{
	usleep((useconds_t)(uintptr_t)arg);
	return NULL;
}

static void crowd(void)
{
	for (uintptr_t n = 0;; n++) {
		pthread_t threads[8];

		for (uintptr_t i = 0; i < ARRAY_LEN(threads); i++)
			if (pthread_create(
				    &threads[i], NULL, short_life, (void *)((n * 7 + i * 131) % 1500)) != 0)
				leave(1);
		for (size_t i = 0; i < ARRAY_LEN(threads); i++)
			pthread_join(threads[i], NULL);
	}
}

static void vanishing(struct tap *t)
{
	static uint32_t tids[THREADS_MAX];
	pid_t pid = child(crowd);
	struct user_stacks *p = open_or_die(pid);
	uint64_t began = now_ns();
	struct user_stacks_stats s = { 0 };
	struct cap_stack stack;
	struct err e;
	int odd = 0;

	/* longer if the machine is busy */
	while (now_ns() - began < UINT64_C(1500000000) ||
		(s.stacks <= 50 && now_ns() - began < UINT64_C(60000000000))) {
		size_t n = threads_of((uint32_t)pid, tids);

		for (size_t i = 0; i < n; i++) {
			int rc = user_stacks_take(p, tids[i], &stack, &e);

			/* on a busy machine a thread may not stop in time */
			if (rc && rc != -ESRCH && rc != -ETIMEDOUT && !odd++)
				tap_diag("%s", e.msg);
		}
		user_stacks_stats(p, &s);
	}
	tap_ok(t, !odd && s.stacks > 50,
		"a thread that ends while it is sampled gives a stack, ESRCH or ETIMEDOUT");
	tap_diag("%" PRIu64 " stacks, %" PRIu64 " gone, %" PRIu64 " stops", s.stacks,
		s.refused[THREAD_REFUSAL_GONE], s.stops);
	tap_ok(t, state(pid) != 't' && tracer(pid) == 0,
		"their process is neither stopped nor traced afterwards");
	user_stacks_close(p);
	end(pid);
}

static void samples_for_ever(pid_t pid)
{
	struct user_stacks *p = open_or_die(pid);
	struct cap_stack stack;

	for (;;)
		user_stacks_take(p, (uint32_t)pid, &stack, NULL);
}

static void recorder_dies(struct tap *t)
{
	pid_t pid = child(spins);
	unsigned int seed = 1, left = 0, hit = 0;

	for (int i = 0; i < 40; i++) {
		pid_t sampler;

		fflush(stdout);
		sampler = fork();
		if (sampler == 0)
			samples_for_ever(pid);
		usleep(20000 + (useconds_t)(rand_r(&seed) % 3000));
		/* kill half of the samplers in the middle of a stop */
		for (int k = 0; i % 2 && k < 20000 && tracer(pid) == 0; k++)
			;
		hit += tracer(pid) != 0;
		end(sampler);
		for (int k = 0; k < 1000 && (tracer(pid) || state(pid) != 'R'); k++)
			usleep(1000);
		left += tracer(pid) || state(pid) != 'R';
	}
	tap_diag("%u of 40 were killed while they traced", hit);
	tap_ok(t, hit > 0 && !left, "the sampled process runs on when the recorder is killed during a stop");
	end(pid);
}

/* --- /proc/PID/task/TID/syscall --- */

static void calls(struct tap *t)
{
	struct quiet_copy_call c;

	tap_ok(t, !quiet_copy_parse("running\n", &c), "a running thread is not in a system call");
	tap_ok(t, !quiet_copy_parse("", &c) && !quiet_copy_parse("1 2 3 4", &c),
		"an empty line and one with too few fields are rejected");
	tap_ok(t,
		quiet_copy_parse("-1 0x7ffe10 0x401000\n", &c) && c.number == -1 && c.sp == 0x7ffe10 &&
			c.pc == 0x401000,
		"a thread can be blocked outside a system call");
	tap_ok(t,
		quiet_copy_parse("232 0x5 0x7ffd 0x10 0xffffffff 0x0 0x0 0x7ffcb0 0x7f0010\n", &c) &&
			c.number == 232 && c.args[0] == 5 && c.sp == 0x7ffcb0 && c.pc == 0x7f0010,
		"number, arguments, SP and PC are parsed");
	tap_ok(t, !quiet_copy_is_timed(&c, false), "epoll_wait without a timeout is not a timed call");
	c.args[3] = 1000;
	tap_ok(t, quiet_copy_is_timed(&c, false), "epoll_wait with a timeout is a timed call");
	tap_ok(t, !quiet_copy_is_timed(&c, true), "in an i386 program that number is another call");
	c.number = 256;
	tap_ok(t, quiet_copy_is_timed(&c, true) && !quiet_copy_is_timed(&c, false),
		"epoll_wait of an i386 program with a timeout is a timed call");
}

int main(int argc, char **argv)
{
	struct tap t = { 0 };

	if (argc > 1)
		return sample((uint32_t)strtoul(argv[1], NULL, 10), argc > 2 ? strtoul(argv[2], NULL, 10) : 1,
			argc > 3 ? strtoul(argv[3], NULL, 10) : 0);
	setenv("STACKTOOLS_CACHE", "", 1);
	calls(&t);
	blocked(&t);
	needs_registers(&t);
	copied(&t);
	running(&t);
	stopped(&t);
	signalled(&t);
	in_vfork(&t);
	traced(&t);
	gone(&t);
	kernel_thread(&t);
	in_vdso(&t);
	exec(&t);
	depths(&t);
	unprivileged(&t);
	worker_is_confined(&t);
	worker_dies(&t);
	bad_files(&t);
	from_cache(&t);
	hostile(&t);
	vanishing(&t);
	recorder_dies(&t);
	close_tables();
	return tap_done(&t);
}
