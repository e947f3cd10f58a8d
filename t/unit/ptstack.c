/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Without arguments: the tests. Else a sampler for other tests:
 *
 *	ptstack PID [TIMES [PAUSE_US]]
 *
 * takes the stack of each thread that often, prints those of the last time,
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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define THREADS_MAX 4096

/* As _exit(2), under which a sanitizer would look for leaks. */
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

static void print_stats(const struct ptstack_stats *s)
{
	printf("stacks %" PRIu64 "\nstops %" PRIu64 "\nstopped_us %" PRIu64 "\nlongest_us %" PRIu64
	       "\nquiet %" PRIu64 "\nspared %" PRIu64 "\nagain %" PRIu64 "\nwalkers_died %" PRIu64 "\n",
		s->stacks, s->stops, s->stopped_ns / 1000, s->longest_ns / 1000, s->quiet, s->spared,
		s->again, s->walkers_died);
	for (enum ptwhy why = 0; why < PTWHY_COUNT; why++)
		if (s->refused[why])
			printf("refused.%s %" PRIu64 "\n", ptwhy_name(why), s->refused[why]);
}

/* By the rights of the test. */
static const struct ptreach own_rights;

static int sample(uint32_t pid, unsigned long times, unsigned long pause_us)
{
	static uint32_t tids[THREADS_MAX];
	struct ptstack_stats stats;
	struct ptstack *p;
	struct err e = { 0 };

	if (ptstack_open(&own_rights, pid, &p, &e) != 0) {
		printf("error %u %s %s\n", pid, err_name(e.code), e.msg);
		return 2;
	}
	for (unsigned long i = 0; i < times; i++) {
		size_t n = threads_of(pid, tids);

		for (size_t k = 0; k < n; k++) {
			struct cap_stack s;
			int rc;

			e = (struct err){ 0 };
			rc = ptstack_take(p, tids[k], &s, &e);
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
	ptstack_stats(p, &stats);
	print_stats(&stats);
	ptstack_close(p);
	return 0;
}

/* --- children --- */

static pid_t child(void (*fn)(void))
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
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

/* The register that libc's wrapper keeps is not on the stack: the walk needs a stop. */
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

static void vforks(void)
{
	if (vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			syscall(SYS_pause);
	}
}

/* A field of /proc/PID/status; "" where there is none. */
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

/* A process whose name is COMM among our children; 0 = none. */
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

static struct ptstack *open_or_die(pid_t pid)
{
	struct ptstack *p;
	struct err e;

	if (ptstack_open(&own_rights, (uint32_t)pid, &p, &e) != 0) {
		tap_diag("%s", e.msg);
		leave(1);
	}
	return p;
}

/* --- one process, in each state --- */

static void blocked(struct tap *t)
{
	pid_t pid = child(sleeps);
	struct ptstack *p = open_or_die(pid);
	struct ptstack_stats s;
	struct cap_stack stack;
	struct err e = { 0 };
	int rc;

	until_state(pid, 'S');
	rc = ptstack_take(p, (uint32_t)pid, &stack, &e);
	tap_ok(t, !rc && stack.len > 2 && stack.kind == CAP_STACK_USER, "a blocked thread has a stack%s%s",
		rc ? ": " : "", e.msg);
	tap_ok(t, tracer(pid) == 0 && state(pid) == 'S', "and is traced by nobody, and blocked, afterwards");
	ptstack_stats(p, &s);
	tap_eq_u64(t, s.stacks, 1, "which is counted");
	ptstack_close(p);
	end(pid);
}

static void needs_registers(struct tap *t)
{
	pid_t pid = child(sleeps_by_fp);
	struct ptstack *p = open_or_die(pid);
	struct ptstack_stats s;
	struct cap_stack stack;
	int rc;

	until_state(pid, 'S');
	rc = ptstack_take(p, (uint32_t)pid, &stack, NULL);
	ptstack_stats(p, &s);
	tap_ok(t,
		!rc && stack.verdict == CAP_COMPLETE && s.stops >= 1 && s.longest_ns &&
			s.stopped_ns >= s.longest_ns,
		"one whose walk needs a register is stopped, and the time of that is told");
	ptstack_close(p);
	end(pid);
}

static void running(struct tap *t)
{
	pid_t pid = child(spins);
	struct ptstack *p = open_or_die(pid);
	struct ptstack_stats s;
	struct cap_stack stack;
	int rc = ptstack_take(p, (uint32_t)pid, &stack, NULL);

	ptstack_stats(p, &s);
	tap_ok(t, !rc && stack.verdict == CAP_COMPLETE && s.stops >= 1, "one that runs is stopped");
	tap_ok(t, state(pid) == 'R' && tracer(pid) == 0, "and runs on");
	ptstack_close(p);
	end(pid);
}

static void stopped(struct tap *t)
{
	pid_t pid = child(sleeps_by_fp);
	struct ptstack *p = open_or_die(pid);
	struct cap_stack stack;
	int rc = 0, status_word;

	until_state(pid, 'S');
	kill(pid, SIGSTOP);
	until_state(pid, 'T');
	waitpid(pid, &status_word, WUNTRACED);
	for (int i = 0; i < 20; i++)
		rc |= ptstack_take(p, (uint32_t)pid, &stack, NULL);
	until_state(pid, 'T');
	tap_ok(t, !rc && stack.verdict == CAP_COMPLETE, "a job that is stopped has a stack");
	tap_ok(t, state(pid) == 'T' && tracer(pid) == 0, "and stays stopped");
	kill(pid, SIGCONT);
	until_state(pid, 'S');
	tap_ok(t, state(pid) == 'S', "until it is told to continue");
	ptstack_close(p);
	end(pid);
}

#define SIGNALS 60000u
static volatile unsigned int *handled; /* shared with the child: how many, and whether it is ready */

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

/* A real-time signal is queued: each one comes, or is refused to its sender. */
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
	struct ptstack *p;

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
		stops += ptstack_take(p, (uint32_t)pid, &stack, NULL) == 0;
	for (int i = 0; i < 20000 && *handled < SIGNALS; i++)
		usleep(1000);
	tap_eq_u64(t, *handled, SIGNALS, "each signal that is sent meanwhile comes, once");
	tap_diag("%u stops meanwhile", stops);
	munmap((void *)(uintptr_t)handled, 4096);
	ptstack_close(p);
	end(pid);
}

static void in_vfork(struct tap *t)
{
	pid_t pid = child(vforks);
	struct ptstack *p = open_or_die(pid);
	struct ptstack_stats s;
	struct cap_stack stack;
	uint64_t began;
	int rc;

	until_state(pid, 'D');
	began = now_ns();
	rc = ptstack_take(p, (uint32_t)pid, &stack, NULL);
	ptstack_stats(p, &s);
	tap_ok(t, !rc && stack.len >= 1 && stack.verdict == CAP_STOPPED && s.refused[PTWHY_LATE] == 1,
		"one that cannot be stopped (vfork) has what can be read, and is counted");
	tap_ok(t, now_ns() - began < UINT64_C(5000000000), "nobody waits for it");
	tap_eq_u64(t, tracer(pid), 0, "nor is it traced");
	ptstack_close(p);
	end(pid);
}

static void traced(struct tap *t)
{
	pid_t pid = child(sleeps_by_fp), other;
	struct ptstack *p = open_or_die(pid);
	struct ptstack_stats s;
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
	rc = ptstack_take(p, (uint32_t)pid, &stack, &e);
	ptstack_stats(p, &s);
	tap_ok(t, !rc && stack.len && stack.verdict == CAP_STOPPED && stack.reason == CAP_R_REGISTER,
		"one that is traced by somebody else has what can be read without a stop");
	tap_ok(t, s.refused[PTWHY_TRACED] == 1 && !s.stops, "and the refusal is counted by its reason");
	tap_eq_u64(t, ptwhy_tell(pid, pid, -EPERM, false, &e), PTWHY_TRACED, "which is that");
	tap_ok(t, strstr(e.msg, "traced by process") && e.hint[0], "the message tells by whom: %s", e.msg);
	end(other);
	ptstack_close(p);
	end(pid);
}

static void gone(struct tap *t)
{
	pid_t pid = child(sleeps);
	struct ptstack *p = open_or_die(pid), *none = NULL;
	struct ptstack_stats s;
	struct cap_stack stack;
	struct err e = { 0 };

	tap_eq_u64(t, (uint64_t)-ptstack_take(p, (uint32_t)getpid(), &stack, &e), ESRCH,
		"a thread of another process is none of this one");
	end(pid);
	tap_eq_u64(t, (uint64_t)-ptstack_take(p, (uint32_t)pid, &stack, &e), ESRCH,
		"a process that has ended is gone");
	ptstack_stats(p, &s);
	tap_eq_u64(t, s.refused[PTWHY_GONE], 2, "which is counted");
	ptstack_close(p);
	tap_ok(t,
		ptstack_open(&own_rights, (uint32_t)pid, &none, &e) == -ESRCH && strstr(e.msg, "no process"),
		"and cannot be opened: %s", e.msg);
}

static void kernel_thread(struct tap *t)
{
	struct ptstack *p;
	struct cap_stack stack;
	struct err e = { 0 };
	char text[8192];
	int rc;

	if (strncmp(status(2, "Name:\t", text), "kthreadd", 8) != 0) {
		tap_skip(t, "a kernel thread has no user stack", "none is seen from here");
		return;
	}
	p = open_or_die(2);
	rc = ptstack_take(p, 2, &stack, &e);
	tap_ok(t, rc < 0 && strstr(e.msg, "kernel"), "a kernel thread has no user stack: %s", e.msg);
	ptstack_close(p);
}

static void reads_clocks(void)
{
	struct timespec ts;

	for (;;)
		clock_gettime(CLOCK_MONOTONIC, &ts);
}

/* Of a mapping of PID: its range. */
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
	struct ptstack *p = open_or_die(pid);
	uint64_t from = 0, to = 0;
	struct cap_stack stack;
	int inside = 0, complete = 0;

	mapping(pid, "[vdso]", &from, &to);
	for (int i = 0; i < 2000 && inside < 20; i++) {
		if (ptstack_take(p, (uint32_t)pid, &stack, NULL) != 0 || stack.frames[0] < from ||
			stack.frames[0] >= to)
			continue;
		inside++;
		complete += stack.verdict == CAP_COMPLETE;
	}
	tap_ok(t, inside >= 20 && complete == inside, "walks go out of the vdso (%d of %d)", complete,
		inside);
	ptstack_close(p);
	end(pid);
}

static int told[2]; /* a pipe: what is to exec, and when */

static void execs_when_told(void)
{
	char *argv[] = { (char[]){ "sleep" }, (char[]){ "1000" }, NULL };
	char c;

	if (read(told[0], &c, 1) == 1)
		execvp(argv[0], argv);
}

static void exec(struct tap *t)
{
	pid_t pid = pipe2(told, O_CLOEXEC) == 0 ? child(execs_when_told) : 0;
	struct ptstack *p = open_or_die(pid);
	struct cap_stack before, after;
	char text[8192];
	int rc;

	until_state(pid, 'S');
	rc = ptstack_take(p, (uint32_t)pid, &before, NULL);
	tap_ok(t, !rc && before.verdict == CAP_COMPLETE, "a process has stacks before exec");
	if (write(told[1], "", 1) != 1)
		leave(1);
	for (int i = 0; i < 5000 && strncmp(status(pid, "Name:\t", text), "sleep", 5) != 0; i++)
		usleep(1000);
	usleep(100000);
	until_state(pid, 'S');
	rc = ptstack_take(p, (uint32_t)pid, &after, NULL);
	tap_ok(t, !rc && after.verdict == CAP_COMPLETE && after.len > 3,
		"and those of its new program after it");
	ptstack_close(p);
	end(pid);
	close(told[0]);
	close(told[1]);
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
	} cases[] = { { deep, CAP_COMPLETE, "a stack larger than an area is copied by more of them" },
		{ deeper, CAP_TRUNCATED, "one that is too large is cut, and says so" } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		pid_t pid = child(cases[i].fn);
		struct ptstack *p = open_or_die(pid);
		struct cap_stack stack;
		int rc;

		until_state(pid, 'S');
		rc = ptstack_take(p, (uint32_t)pid, &stack, NULL);
		tap_ok(t, !rc && stack.verdict == cases[i].verdict && stack.len > 100, "%s (%u frames)",
			cases[i].name, stack.len);
		ptstack_close(p);
		end(pid);
	}
}

/* --- without privileges --- */

static void as_nobody(void)
{
	if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
		leave(99);
	/* a change of user has made it undumpable, and so nobody's business */
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
	struct ptstack *p = open_or_die(pid);
	struct cap_stack stack;
	struct err e = { 0 };
	int rc = ptstack_take(p, (uint32_t)pid, &stack, &e);

	ptstack_close(p);
	if (rc < 0 && strstr(e.msg, what) && e.hint[0])
		return 0;
	tap_diag("%d %s", rc, e.msg);
	return 1;
}

static int own(void)
{
	pid_t pid = child(sleeps_by_fp);
	struct ptstack *p = open_or_die(pid);
	struct cap_stack stack;
	int rc;

	until_state(pid, 'S');
	rc = ptstack_take(p, (uint32_t)pid, &stack, NULL);
	ptstack_close(p);
	end(pid);
	return !rc && stack.verdict == CAP_COMPLETE ? 0 : 1;
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
	rc = refusal(pid, "does not let itself");
	end(pid);
	return rc;
}

/* The message alone: this kernel may have no Yama. In a mount namespace /proc says that there is one. */
static int yama(void)
{
	pid_t pid = child(sleeps);
	struct err e = { 0 };
	int bad =
		ptwhy_tell(pid, pid, -EPERM, false, &e) != PTWHY_YAMA || !strstr(e.hint, "only descendants");

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

static void unprivileged(struct tap *t)
{
	static const struct {
		const char *name;
		int (*fn)(void);
		bool root; /* needs one to be told from */
	} cases[] = { { "an ordinary user has the stacks of his own processes", own, false },
		{ "not those of others, and is told so", others, true },
		{ "nor of those that are not dumpable", undumpable, false },
		{ "what Yama forbids is told with its remedies", yama, true } };

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

/* --- the walker --- */

static void walker_is_confined(struct tap *t)
{
	pid_t pid = child(sleeps), walker;
	struct ptstack *p = open_or_die(pid);
	struct cap_stack stack;
	char text[8192];

	until_state(pid, 'S');
	ptstack_take(p, (uint32_t)pid, &stack, NULL);
	walker = child_called("stack-walks");
	tap_ok(t, walker > 0, "a process walks");
	tap_ok(t,
		strtoull(status(walker, "\nCapEff:\t", text), NULL, 16) == 0 &&
			strtoull(status(walker, "\nCapPrm:\t", text), NULL, 16) == 0 &&
			*status(walker, "\nNoNewPrivs:\t", text) == '1' &&
			*status(walker, "\nSeccomp:\t", text) == '2',
		"it has no capability, and a filter of system calls");
	ptstack_close(p);
	tap_eq_u64(t, (uint64_t)child_called("stack-walks"), 0, "it ends with what it walks for");
	end(pid);
}

static void walker_dies(struct tap *t)
{
	pid_t pid = child(sleeps), walker;
	struct ptstack *p = open_or_die(pid);
	struct cap_stack stack;
	struct err e = { 0 };
	int good = 0, bad = 0, rc = 0;

	until_state(pid, 'S');
	for (int i = 0; i < 10; i++) {
		good += ptstack_take(p, (uint32_t)pid, &stack, NULL) == 0 && stack.verdict == CAP_COMPLETE;
		walker = child_called("stack-walks");
		if (walker > 0)
			kill(walker, SIGKILL);
		e = (struct err){ 0 };
		rc = ptstack_take(p, (uint32_t)pid, &stack, &e);
		bad += rc != 0;
		if (i == 0)
			tap_ok(t, rc == -EIO && strstr(e.msg, "Killed"),
				"a walker that dies costs a stack: %s", e.msg);
	}
	tap_eq_u64(t, (uint64_t)good, 4, "it is begun again, a few times");
	tap_eq_u64(t, (uint64_t)bad, 10, "not for ever");
	tap_ok(t, rc == -EIO && strstr(e.msg, "has ended 4 times"), "and that is told: %s", e.msg);
	tap_ok(t, state(pid) == 'S' && tracer(pid) == 0, "nothing of it reaches the process");
	ptstack_close(p);
	end(pid);
}

static void walker_hangs(struct tap *t)
{
	pid_t pid = child(sleeps), walker;
	struct ptstack *p = open_or_die(pid);
	struct cap_stack stack;
	struct err e = { 0 };
	uint64_t began;
	int rc;

	until_state(pid, 'S');
	ptstack_take(p, (uint32_t)pid, &stack, NULL);
	walker = child_called("stack-walks");
	kill(walker, SIGSTOP);
	until_state(walker, 'T');
	began = now_ns();
	rc = ptstack_take(p, (uint32_t)pid, &stack, &e);
	tap_ok(t, rc == -ETIMEDOUT && now_ns() - began < UINT64_C(8000000000), "one that hangs is ended: %s",
		e.msg);
	tap_ok(t, kill(walker, 0) != 0, "and is gone");
	rc = ptstack_take(p, (uint32_t)pid, &stack, &e);
	tap_ok(t, !rc && stack.verdict == CAP_COMPLETE, "the next stack has a new one");
	ptstack_close(p);
	end(pid);
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

/* Walk from a hundred places of the file, wherever it says that it is. */
static int walk_it(struct ptchild *c, struct ptcopy *copy, int copy_fd, const struct ptwire_request *map,
	int fd, unsigned int *seed)
{
	struct ptwire_answer a;
	struct err e;

	if (!c->pid && ptchild_start(c, copy_fd, &e) != 0)
		leave(1);
	if (ptchild_tell(c, &(struct ptwire_request){ .what = PTWIRE_FORGET }, -1, &e) != 0 ||
		ptchild_tell(c, map, fd, &e) != 0)
		return 1;
	for (int i = 0; i < 100; i++) {
		copy->head.regs[PTCOPY_PC] = map->start + (uint64_t)rand_r(seed) % (map->end - map->start);
		if (ptchild_walk(c, &a, &e) != 0)
			return 1;
		if (!a.verdict || a.verdict > CAP_STOPPED)
			leave(2);
	}
	return 0;
}

static void hostile(struct tap *t)
{
	const char *runs = getenv("HOSTILE_RUNS");
	unsigned int n = runs ? (unsigned int)strtoul(runs, NULL, 10) : 60, seed = 4711, died = 0;
	_cleanup_close_ int exe = open("/bin/sh", O_RDONLY | O_CLOEXEC);
	struct ptwire_request map = { .what = PTWIRE_MAP, .start = 0x555555554000 };
	int copy_fd = memfd_create("copy", MFD_CLOEXEC);
	struct ptchild c = { .sock = -1 };
	struct ptcopy *copy;
	uint8_t *good, *bad;
	const Elf64_Phdr *ph;
	struct stat st;

	if (exe < 0 || fstat(exe, &st) != 0 || ftruncate(copy_fd, sizeof(*copy)) != 0)
		leave(1);
	good = malloc((size_t)st.st_size);
	bad = malloc((size_t)st.st_size);
	copy = mmap(NULL, sizeof(*copy), PROT_READ | PROT_WRITE, MAP_SHARED, copy_fd, 0);
	if (!good || !bad || copy == MAP_FAILED || pread(exe, good, (size_t)st.st_size, 0) != st.st_size)
		leave(1);
	ph = (const Elf64_Phdr *)(const void *)(good + ((const Elf64_Ehdr *)(const void *)good)->e_phoff);
	while (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X))
		ph++;
	map.start += ph->p_offset & ~UINT64_C(4095);
	map.end = map.start + ph->p_filesz;
	map.offset = ph->p_offset & ~UINT64_C(4095);
	copy->head.known = PTCOPY_ALL;
	copy->head.n_areas = 1;
	copy->head.areas[0] = (struct ptcopy_area){ .from = 0x7ffe00000000, .len = PTCOPY_AREA_BYTES };
	copy->head.regs[PTCOPY_SP] = 0x7ffe00001000;
	for (size_t i = 0; i + 8 <= PTCOPY_AREA_BYTES; i += 8) {
		uint64_t word = i % 3 ? 0x7ffe00000000 + i + 16
				      : map.start + (uint64_t)rand_r(&seed) % (map.end - map.start);

		memcpy(copy->bytes[0] + i, &word, 8);
	}
	for (unsigned int i = 0; i < n; i++) {
		size_t len = (size_t)st.st_size;
		int fd;

		memcpy(bad, good, len);
		damage(bad, len, &seed);
		if (i % 4 == 0)
			len = (size_t)rand_r(&seed) % len + 1;
		fd = memfd_of(bad, len);
		died += (unsigned int)walk_it(&c, copy, copy_fd, &map, fd, &seed);
		close(fd);
	}
	tap_diag("the walker ended %u times", died);
	tap_ok(t, true, "%u damaged files are walked in, or end the walker", n);
	ptchild_stop(&c);
	munmap(copy, sizeof(*copy));
	close(copy_fd);
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
	struct ptstack *p = open_or_die(pid);
	uint64_t began = now_ns();
	struct ptstack_stats s = { 0 };
	struct cap_stack stack;
	struct err e;
	int odd = 0;

	/* longer where the machine is busy */
	while (now_ns() - began < UINT64_C(1500000000) ||
		(s.stacks <= 50 && now_ns() - began < UINT64_C(60000000000))) {
		size_t n = threads_of((uint32_t)pid, tids);

		for (size_t i = 0; i < n; i++) {
			int rc = ptstack_take(p, tids[i], &stack, &e);

			/* on a machine that is busy one may not stop in time */
			if (rc && rc != -ESRCH && rc != -ETIMEDOUT && !odd++)
				tap_diag("%s", e.msg);
		}
		ptstack_stats(p, &s);
	}
	tap_ok(t, !odd && s.stacks > 50, "threads that end while they are looked at are gone, and no more");
	tap_diag("%" PRIu64 " stacks, %" PRIu64 " gone, %" PRIu64 " stops", s.stacks, s.refused[PTWHY_GONE],
		s.stops);
	tap_ok(t, state(pid) != 't' && tracer(pid) == 0, "their process goes on");
	ptstack_close(p);
	end(pid);
}

static void samples_for_ever(pid_t pid)
{
	struct ptstack *p = open_or_die(pid);
	struct cap_stack stack;

	for (;;)
		ptstack_take(p, (uint32_t)pid, &stack, NULL);
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
		/* half of them in the middle of a stop */
		for (int k = 0; i % 2 && k < 20000 && tracer(pid) == 0; k++)
			;
		hit += tracer(pid) != 0;
		end(sampler);
		for (int k = 0; k < 1000 && (tracer(pid) || state(pid) != 'R'); k++)
			usleep(1000);
		left += tracer(pid) || state(pid) != 'R';
	}
	tap_diag("%u of 40 were killed while they traced", hit);
	tap_ok(t, hit > 0 && !left, "nothing stays stopped when the recorder is killed in the middle");
	end(pid);
}

/* --- /proc/PID/task/TID/syscall --- */

static void calls(struct tap *t)
{
	struct ptquiet_call c;

	tap_ok(t, !ptquiet_parse("running\n", &c), "a running thread is in no call");
	tap_ok(t, !ptquiet_parse("", &c) && !ptquiet_parse("1 2 3 4", &c), "nor is what is no such line");
	tap_ok(t,
		ptquiet_parse("-1 0x7ffe10 0x401000\n", &c) && c.number == -1 && c.sp == 0x7ffe10 &&
			c.pc == 0x401000,
		"one may be blocked in no system call");
	tap_ok(t,
		ptquiet_parse("232 0x5 0x7ffd 0x10 0xffffffff 0x0 0x0 0x7ffcb0 0x7f0010\n", &c) &&
			c.number == 232 && c.args[0] == 5 && c.sp == 0x7ffcb0 && c.pc == 0x7f0010,
		"number, arguments, SP and PC");
	tap_ok(t, !ptquiet_is_timed(&c), "epoll_wait without a time limit can be begun again");
	c.args[3] = 1000;
	tap_ok(t, ptquiet_is_timed(&c), "with one it cannot");
}

int main(int argc, char **argv)
{
	struct tap t = { 0 };

	if (argc > 1)
		return sample((uint32_t)strtoul(argv[1], NULL, 10), argc > 2 ? strtoul(argv[2], NULL, 10) : 1,
			argc > 3 ? strtoul(argv[3], NULL, 10) : 0);
	calls(&t);
	blocked(&t);
	needs_registers(&t);
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
	walker_is_confined(&t);
	walker_dies(&t);
	walker_hangs(&t);
	hostile(&t);
	vanishing(&t);
	recorder_dies(&t);
	return tap_done(&t);
}
