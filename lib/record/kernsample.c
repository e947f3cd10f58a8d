/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/kernsample.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define PATIENCE_MS 15000
#define RAN_LOOKS 5000
#define STACK_PAGE 4096u
#define STACK_MIN 8192u
#define STACK_MAX 65536u
#define REGS_BYTES 512u /* at the end of the stack: they are in there */

#define BYTES (KERNSAMPLES * sizeof(struct kernsample))

static void draw_name(char name[16])
{
	uint8_t random[15];

	if (getrandom(random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		for (size_t i = 0; i < sizeof(random); i++)
			random[i] = (uint8_t)((uint64_t)clock() * (i + 7) >> i);
	for (size_t i = 0; i < sizeof(random); i++)
		name[i] = (char)('a' + random[i] % 26);
	name[15] = '\0';
}

/* --- in the thread itself, or in the child, which may do nothing but system calls --- */

#if defined(__x86_64__)
/* struct pt_regs of x86-64: arch/x86/include/uapi/asm/ptrace.h. The call is still in its registers. */
static bool is_call(const uint64_t *regs, const struct kernpeek_call *c)
{
	enum { DX = 12, SI = 13, DI = 14, ORIG_AX = 15, CS = 17, SS = 20, USER_CS = 0x33, USER_SS = 0x2b };

	return regs[ORIG_AX] == c->number && regs[DI] == c->arg[0] && regs[SI] == c->arg[1] &&
	       regs[DX] == c->arg[2] && (regs[CS] & 0xffff) == USER_CS && (regs[SS] & 0xffff) == USER_SS;
}
#define REGS_WORDS 21
#else
static bool is_call(const uint64_t *regs, const struct kernpeek_call *c)
{
	(void)regs, (void)c;
	return false;
}
#define REGS_WORDS 1
#endif

/* The registers of the call that reads them, in the last bytes of a stack at STACK of SIZE bytes. */
static bool regs_in(struct kernpeek *k, struct kernsample *s, uint64_t stack, uint64_t size)
{
	const struct peek *p = kernpeek_at(k, stack + size - REGS_BYTES, REGS_BYTES);
	struct kernpeek_call call;
	uint64_t words[REGS_BYTES / 8];

	if (!p || p->len < REGS_BYTES)
		return false;
	memcpy(words, p->bytes, sizeof(words));
	kernpeek_call(k, &call);
	for (size_t i = 0; i + REGS_WORDS <= ARRAY_LEN(words); i++) {
		if (!is_call(words + i, &call))
			continue;
		s->stack = stack;
		s->regs_from_stack = size - REGS_BYTES + i * 8;
		return true;
	}
	return false;
}

/*
 * From page to page: a stack ends at one that cannot be read, and what lies
 * beyond that may be a device's.
 */
static bool find_in(struct kernpeek *k, struct kernsample *s, uint64_t stack)
{
	const struct peek *p;

	for (uint64_t size = STACK_PAGE; size <= STACK_MAX; size += STACK_PAGE) {
		p = kernpeek_at(k, stack + size - STACK_PAGE, PEEK_PIECE);
		if (!p || !p->len)
			return false;
		if (size >= STACK_MIN && !(size & (size - 1)) && regs_in(k, s, stack, size))
			return true;
	}
	return false;
}

static void find_regs(struct kernpeek *k, struct kernsample *s)
{
	uint64_t word;

	for (size_t at = 0; at + 8 <= s->len; at += 8) {
		memcpy(&word, s->bytes + at, 8);
		if ((int64_t)word < 0 && word % STACK_PAGE == 0 && find_in(k, s, word))
			return;
	}
}

static void take(struct kernpeek *k, struct kernsample *s)
{
	const struct timespec nap = { .tv_nsec = 2000000 };
	const struct peek *p;

	s->own_tid = (uint32_t)syscall(SYS_gettid);
	prctl(PR_SET_NAME, s->comm);
	p = kernpeek_at(k, 0, PEEK_MAX);
	if (!p || !p->len) {
		s->error = p ? -EFAULT : -errno;
		return;
	}
	s->task = p->task;
	s->pid = (uint32_t)p->pid_tgid;
	s->tgid = (uint32_t)(p->pid_tgid >> 32);
	s->len = p->len;
	memcpy(s->bytes, p->bytes, p->len);
	nanosleep(&nap, NULL);
	p = kernpeek_at(k, 0, PEEK_MAX);
	if (!p || p->len != s->len) {
		s->error = p ? -EFAULT : -errno;
		return;
	}
	memcpy(s->again, p->bytes, s->len);
	find_regs(k, s);
}

static void tell_and_wait(const struct kernsamples *s, int fd)
{
	char byte = 0;

	if (write(s->done[1], &byte, 1) == 1)
		while (read(fd, &byte, 1) < 0 && errno == EINTR)
			;
}

static void sleep_twice(const struct kernsamples *s)
{
	tell_and_wait(s, s->more[0]);
	tell_and_wait(s, s->end[0]);
}

static void *run(void *ctx)
{
	const struct kernsample_job *job = ctx;

	take(job->s->peek, job->of);
	sleep_twice(job->s);
	return NULL;
}

/* Without SIGCHLD: whoever else has children is not to hear of this one. */
static int start_child(struct kernsamples *s)
{
	long pid = syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);

	if (pid)
		return pid < 0 ? -errno : (int)pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	take(s->peek, &s->of[KERNSAMPLE_CHILD]);
	sleep_twice(s);
	_exit(0);
}

/* One at a time: they share the place where bytes are read to. */
static int wait_for_one(const struct kernsamples *s)
{
	struct pollfd fd = { .fd = s->done[0], .events = POLLIN };
	char byte;

	if (poll(&fd, 1, PATIENCE_MS) != 1 || read(s->done[0], &byte, 1) != 1)
		return -ETIMEDOUT;
	return 0;
}

static uint32_t own_tgid(const struct kernsamples *s, int i)
{
	return i == KERNSAMPLE_CHILD ? (uint32_t)s->child : (uint32_t)getpid();
}

static int begin_one(struct kernsamples *s, int i)
{
	_Static_assert(KERNSAMPLE_CHILD == KERNSAMPLES - 1, "the child is last");
	int rc;

	s->jobs[i] = (struct kernsample_job){ s, &s->of[i] };
	draw_name(s->of[i].comm);
	if (i == KERNSAMPLE_CHILD) {
		rc = s->child = start_child(s);
		rc = rc < 0 ? rc : 0;
	} else {
		rc = -pthread_create(&s->threads[i], NULL, run, &s->jobs[i]);
		s->n_threads += rc == 0;
	}
	if (!rc)
		rc = wait_for_one(s);
	if (!rc)
		rc = s->of[i].error;
	if (!rc)
		rc = threadstat_read(own_tgid(s, i), s->of[i].own_tid, &s->of[i].stat);
	return rc;
}

/*
 * CPU time of sample I, who sleeps, or is about to. It is complete when the
 * thread is off its CPU, and stays.
 */
static uint64_t ran(const struct kernsamples *s, int i)
{
	const struct timespec moment = { .tv_nsec = 200000 };
	const uint32_t tgid = own_tgid(s, i), tid = s->of[i].own_tid;
	uint64_t now = 0, before;

	for (int n = 0; n < RAN_LOOKS; n++) {
		bool off = threadstat_is_off_cpu(tgid, tid);

		before = now;
		now = threadstat_ran(tgid, tid);
		if (off && now == before)
			break;
		nanosleep(&moment, NULL);
	}
	return now;
}

/* Each has run once between two sleeps. */
static int sleep_again(struct kernsamples *s)
{
	const char bytes[KERNSAMPLES] = { 0 };
	int rc = 0;

	for (int i = 0; i < KERNSAMPLES; i++)
		s->of[i].ran_before = ran(s, i);
	if (write(s->more[1], bytes, sizeof(bytes)) < 0)
		return -errno;
	for (int i = 0; i < KERNSAMPLES && !rc; i++)
		rc = wait_for_one(s);
	for (int i = 0; i < KERNSAMPLES; i++) {
		const struct peek *p;

		s->of[i].ran = ran(s, i);
		p = kernpeek_at(s->peek, s->of[i].task, PEEK_MAX);
		if (p)
			memcpy(s->of[i].asleep, p->bytes, MIN(p->len, s->of[i].len));
	}
	return rc;
}

int kernsamples_begin(struct kernsamples *s, struct kernpeek *peek, struct err *e)
{
	int rc = 0;

	*s = (struct kernsamples){
		.peek = peek, .child = -1, .done = { -1, -1 }, .more = { -1, -1 }, .end = { -1, -1 }
	};
	s->of = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s->of == MAP_FAILED) {
		s->of = NULL;
		return err_nomem(e, "bytes of tasks");
	}
	if (pipe2(s->done, O_CLOEXEC) != 0 || pipe2(s->more, O_CLOEXEC) != 0 || pipe2(s->end, O_CLOEXEC) != 0)
		return err_sys(e, -errno, "cannot create a pipe");
	for (int i = 0; i < KERNSAMPLES && !rc; i++)
		rc = begin_one(s, i);
	if (!rc)
		rc = sleep_again(s);
	if (!rc)
		return 0;
	err_sys(e, rc, "cannot look at the tasks of threads of our own");
	if (rc == -EPERM)
		err_hint(e, "it takes BPF_PROG_TEST_RUN of bpf(2), which a seccomp filter may refuse");
	return rc;
}

static void close_pipe(int *fds)
{
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

void kernsamples_end(struct kernsamples *s)
{
	const char bytes[KERNSAMPLES] = { 0 };

	/* not by closing it: another process that was forked meanwhile may have it too */
	if (s->end[1] >= 0 &&
		(write(s->more[1], bytes, sizeof(bytes)) < 0 || write(s->end[1], bytes, sizeof(bytes)) < 0))
		return;
	for (int i = 0; i < s->n_threads; i++)
		pthread_join(s->threads[i], NULL);
	if (s->child > 0) {
		kill(s->child, SIGKILL);
		waitpid(s->child, NULL, __WALL);
	}
	close_pipe(s->done);
	close_pipe(s->more);
	close_pipe(s->end);
	if (s->of)
		munmap(s->of, BYTES);
	*s = (struct kernsamples){ 0 };
}
