/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/task_layout.h"
#include "peek.h"
#include "peek.skel.h"
#include "system/kernel_btf.h"
#include "system/proc.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

const char *task_layout_name(enum task_layout_member m)
{
	static const char *const names[TASK_LAYOUT_MEMBERS] = { "task_struct.pid", "task_struct.tgid",
		"task_struct.comm", "task_struct.flags", "task_struct.start_boottime",
		"task_struct.group_leader", "task_struct.mm", "task_struct.stack", "task_struct.thread_pid",
		"task_struct.se.sum_exec_runtime", "task_struct.se.prev_sum_exec_runtime",
		"mm_struct.start_code", "mm_struct.start_stack", "pid.level", "pid.numbers",
		"pid_namespace.ns.inum", "task_struct.thread.fsbase" };

	return names[m];
}

/* Members that every recording requires. */
static const enum task_layout_member needed[] = { TASK_LAYOUT_PID, TASK_LAYOUT_TGID, TASK_LAYOUT_COMM,
	TASK_LAYOUT_FLAGS, TASK_LAYOUT_START, TASK_LAYOUT_LEADER, TASK_LAYOUT_MM, TASK_LAYOUT_START_CODE };

int task_layout_missing(const struct task_layout *shape)
{
	for (size_t i = 0; i < ARRAY_LEN(needed); i++)
		if (shape->at[needed[i]] < 0)
			return needed[i];
	return -1;
}

/*
 * kernel_peek - a reader of the kernel's memory: a BPF program that is run
 * without being attached (BPF_PROG_TEST_RUN of a raw tracepoint's program,
 * Linux 5.10).
 */

struct kernel_peek;

/* The arguments of the system call that kernel_peek_at() makes. */
struct kernel_peek_call {
	uint64_t number, arg[3];
};

#define TASK_INTERRUPTIBLE 1 /* include/linux/sched.h */
#define NAPS 20 /* a nap may end before the thread leaves the CPU, so try several */

struct kernel_peek {
	struct peek_bpf *skel;
	struct peek *shared; /* the BPF map, mapped; children share it */
	uint64_t args[2];
	union bpf_attr attr;
};

static void kernel_peek_close(struct kernel_peek *k);
static void kernel_peek_call(const struct kernel_peek *k, struct kernel_peek_call *ret);

/* On success release *RET with kernel_peek_close(). Needs CAP_BPF and CAP_PERFMON, but no BTF. */
static int kernel_peek_open(struct kernel_peek **ret, struct err *e)
{
	struct kernel_peek *k = calloc(1, sizeof(*k));
	int rc;

	if (!k)
		return err_nomem(e, "a read of the kernel's memory");
	k->shared = MAP_FAILED;
	k->skel = peek_bpf__open();
	rc = k->skel ? peek_bpf__load(k->skel) : -ENOMEM;
	if (!rc) {
		k->shared = mmap(NULL, sizeof(*k->shared), PROT_READ, MAP_SHARED,
			bpf_map__fd(k->skel->maps.peeked), 0);
		rc = k->shared == MAP_FAILED ? -errno : 0;
	}
	if (rc) {
		kernel_peek_close(k);
		return err_sys(e, rc, "cannot load a program that reads the kernel's memory");
	}
	k->attr.test.prog_fd = (uint32_t)bpf_program__fd(k->skel->progs.peek);
	k->attr.test.ctx_in = (uintptr_t)k->args;
	k->attr.test.ctx_size_in = sizeof(k->args);
	*ret = k;
	return 0;
}

static void kernel_peek_close(struct kernel_peek *k)
{
	if (!k)
		return;
	if (k->shared != MAP_FAILED)
		munmap(k->shared, sizeof(*k->shared));
	peek_bpf__destroy(k->skel);
	free(k);
}

/*
 * Read BYTES (a multiple of PEEK_PIECE, up to PEEK_MAX) at ADDR; 0 = the
 * calling thread's task. `len` of the result says how many of them could be
 * read. The result is valid until the next call in any thread or child process;
 * calls must not overlap. NULL with errno if the program cannot be run. Safe in
 * a child forked by a program with threads.
 */
static const struct peek *kernel_peek_at(struct kernel_peek *k, uint64_t addr, size_t bytes)
{
	k->args[0] = addr;
	k->args[1] = bytes;
	return syscall(SYS_bpf, BPF_PROG_TEST_RUN, &k->attr, sizeof(k->attr)) == 0 ? k->shared : NULL;
}

static void kernel_peek_call(const struct kernel_peek *k, struct kernel_peek_call *ret)
{
	*ret = (struct kernel_peek_call){ SYS_bpf,
		{ BPF_PROG_TEST_RUN, (uintptr_t)&k->attr, sizeof(k->attr) } };
}

/*
 * Does raw tracepoint sched_switch report which task leaves, and its state?
 * Tries it with this thread, which sleeps for a moment. 0 if the report was
 * right; else the kernel's -errno, or -ENOTSUP.
 */
static int kernel_peek_switch(struct kernel_peek *k)
{
	const struct timespec nap = { .tv_nsec = 100000 };
	const struct peek *p = kernel_peek_at(k, 0, PEEK_PIECE);
	struct bpf_link *link;

	if (!p)
		return -errno;
	k->skel->bss->watched = (uint32_t)p->pid_tgid;
	link = bpf_program__attach_raw_tracepoint(k->skel->progs.watch, "sched_switch");
	if (!link)
		return -errno;
	for (int i = 0; i < NAPS && !(p->left_state & TASK_INTERRUPTIBLE); i++)
		nanosleep(&nap, NULL);
	bpf_link__destroy(link);
	return p->left == p->task && (p->left_state & TASK_INTERRUPTIBLE) ? 0 : -ENOTSUP;
}

/*
 * task_sample - threads of this program: what is known about each, and the
 * bytes that the kernel keeps of it.
 *
 * Two threads of this process and a child process, with random names. They
 * sleep twice, until task_samples_end(), so that their tasks and what these
 * point to can be read meanwhile.
 */

#define KERNSAMPLES 3
#define TASK_SAMPLE_CHILD 2 /* the last one is a separate process */

struct task_sample {
	/* what is known */
	uint32_t own_tid; /* in this PID namespace */
	char comm[16];
	struct threadstat stat;
	/* CPU time by schedstat, in the first sleep and in the second */
	uint64_t ran_before, ran;
	/* from BPF's helpers */
	uint64_t task;
	uint32_t pid, tgid; /* in the initial PID namespace */
	/* the task's bytes; `again` some milliseconds later, `asleep` in the second sleep */
	size_t len;
	uint8_t bytes[PEEK_MAX], again[PEEK_MAX], asleep[PEEK_MAX];
	/*
	 * the kernel stack, and the offset in it of the user's registers that a
	 * system call saved; 0 = not found
	 */
	uint64_t stack, regs_from_stack;
	uint64_t tls; /* base of the thread's local storage; 0 = not known */
	int error; /* -errno if the sample could not be taken */
};

struct task_samples;

struct task_sample_job {
	struct task_samples *s;
	struct task_sample *of;
};

struct task_samples {
	struct task_sample *of; /* KERNSAMPLES */
	struct kernel_peek *peek;
	pthread_t threads[TASK_SAMPLE_CHILD];
	struct task_sample_job jobs[KERNSAMPLES];
	int n_threads;
	int child;
	int done[2], more[2], end[2]; /* pipes: a sample is ready; sleep once more; end */
};

#define PATIENCE_MS 15000
#define RAN_LOOKS 5000
#define STACK_PAGE 4096u
#define STACK_MIN 8192u
#define STACK_MAX 65536u
#define REGS_BYTES 512u /* the end of the stack, which contains the registers */

#define BYTES (KERNSAMPLES * sizeof(struct task_sample))

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

/* --- in the thread itself, or in the child, which may only make system calls --- */

#if defined(__x86_64__)
/*
 * Are these the registers of call C, which still hold its arguments? struct
 * pt_regs of x86-64: arch/x86/include/uapi/asm/ptrace.h.
 */
static bool is_call(const uint64_t *regs, const struct kernel_peek_call *c)
{
	enum { DX = 12, SI = 13, DI = 14, ORIG_AX = 15, CS = 17, SS = 20, USER_CS = 0x33, USER_SS = 0x2b };

	return regs[ORIG_AX] == c->number && regs[DI] == c->arg[0] && regs[SI] == c->arg[1] &&
	       regs[DX] == c->arg[2] && (regs[CS] & 0xffff) == USER_CS && (regs[SS] & 0xffff) == USER_SS;
}
#define REGS_WORDS 21

static uint64_t own_tls(void)
{
	enum { GET_FS = 0x1003 }; /* ARCH_GET_FS of arch/x86/include/uapi/asm/prctl.h */
	uint64_t base = 0;

	return syscall(SYS_arch_prctl, GET_FS, &base) == 0 ? base : 0;
}
#else
static uint64_t own_tls(void)
{
	return 0;
}

#if defined(__aarch64__)
/* struct pt_regs of arm64: arch/arm64/include/asm/ptrace.h. */
static bool is_call(const uint64_t *regs, const struct kernel_peek_call *c)
{
	enum { X8 = 8, ORIG_X0 = 34, SYSCALLNO = 35 };

	return regs[X8] == c->number && (uint32_t)regs[SYSCALLNO] == c->number && regs[0] == c->arg[0] &&
	       regs[ORIG_X0] == c->arg[0] && regs[1] == c->arg[1] && regs[2] == c->arg[2];
}
#define REGS_WORDS 36
#else
static bool is_call(const uint64_t *regs, const struct kernel_peek_call *c)
{
	(void)regs, (void)c;
	return false;
}
#define REGS_WORDS 1
#endif
#endif

/* Find the registers of this very system call in the last bytes of a stack at STACK of SIZE bytes. */
static bool regs_in(struct kernel_peek *k, struct task_sample *s, uint64_t stack, uint64_t size)
{
	const struct peek *p = kernel_peek_at(k, stack + size - REGS_BYTES, REGS_BYTES);
	struct kernel_peek_call call;
	uint64_t words[REGS_BYTES / 8];

	if (!p || p->len < REGS_BYTES)
		return false;
	memcpy(words, p->bytes, sizeof(words));
	kernel_peek_call(k, &call);
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
 * Goes page by page: a stack ends at a page that cannot be read, and memory
 * beyond that may belong to a device.
 */
static bool find_in(struct kernel_peek *k, struct task_sample *s, uint64_t stack)
{
	const struct peek *p;

	for (uint64_t size = STACK_PAGE; size <= STACK_MAX; size += STACK_PAGE) {
		p = kernel_peek_at(k, stack + size - STACK_PAGE, PEEK_PIECE);
		if (!p || !p->len)
			return false;
		if (size >= STACK_MIN && !(size & (size - 1)) && regs_in(k, s, stack, size))
			return true;
	}
	return false;
}

static void find_regs(struct kernel_peek *k, struct task_sample *s)
{
	uint64_t word;

	for (size_t at = 0; at + 8 <= s->len; at += 8) {
		memcpy(&word, s->bytes + at, 8);
		if ((int64_t)word < 0 && word % STACK_PAGE == 0 && find_in(k, s, word))
			return;
	}
}

static void take(struct kernel_peek *k, struct task_sample *s)
{
	const struct timespec nap = { .tv_nsec = 2000000 };
	const struct peek *p;

	s->own_tid = (uint32_t)syscall(SYS_gettid);
	s->tls = own_tls();
	prctl(PR_SET_NAME, s->comm);
	p = kernel_peek_at(k, 0, PEEK_MAX);
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
	p = kernel_peek_at(k, 0, PEEK_MAX);
	if (!p || p->len != s->len) {
		s->error = p ? -EFAULT : -errno;
		return;
	}
	memcpy(s->again, p->bytes, s->len);
	find_regs(k, s);
}

static void signal_and_wait(const struct task_samples *s, int fd)
{
	char byte = 0;

	if (write(s->done[1], &byte, 1) == 1)
		while (read(fd, &byte, 1) < 0 && errno == EINTR)
			;
}

static void sleep_twice(const struct task_samples *s)
{
	signal_and_wait(s, s->more[0]);
	signal_and_wait(s, s->end[0]);
}

static void *run(void *ctx)
{
	const struct task_sample_job *job = ctx;

	take(job->s->peek, job->of);
	sleep_twice(job->s);
	return NULL;
}

/* Clone without SIGCHLD, so that others who wait for children do not notice this one. */
static int start_child(struct task_samples *s)
{
	long pid = syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);

	if (pid)
		return pid < 0 ? -errno : (int)pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	take(s->peek, &s->of[TASK_SAMPLE_CHILD]);
	sleep_twice(s);
	_exit(0);
}

/* Samples are taken one at a time, because they share the map into which bytes are read. */
static int wait_for_one(const struct task_samples *s)
{
	struct pollfd fd = { .fd = s->done[0], .events = POLLIN };
	char byte;

	if (poll(&fd, 1, PATIENCE_MS) != 1 || read(s->done[0], &byte, 1) != 1)
		return -ETIMEDOUT;
	return 0;
}

static uint32_t own_tgid(const struct task_samples *s, int i)
{
	return i == TASK_SAMPLE_CHILD ? (uint32_t)s->child : (uint32_t)getpid();
}

static int begin_one(struct task_samples *s, int i)
{
	_Static_assert(TASK_SAMPLE_CHILD == KERNSAMPLES - 1, "the child is last");
	int rc;

	s->jobs[i] = (struct task_sample_job){ s, &s->of[i] };
	draw_name(s->of[i].comm);
	if (i == TASK_SAMPLE_CHILD) {
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
 * CPU time of sample I, which sleeps or is about to. It is complete, and no
 * longer changes, when the thread is off its CPU.
 */
static uint64_t ran(const struct task_samples *s, int i)
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

/* Let each thread run once, between two sleeps, and read its CPU time in both. */
static int sleep_again(struct task_samples *s)
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
		p = kernel_peek_at(s->peek, s->of[i].task, PEEK_MAX);
		if (p)
			memcpy(s->of[i].asleep, p->bytes, MIN(p->len, s->of[i].len));
	}
	return rc;
}

/* Call task_samples_end() even on failure. S must not be moved. */
static int task_samples_begin(struct task_samples *s, struct kernel_peek *peek, struct err *e)
{
	int rc = 0;

	*s = (struct task_samples){
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
	err_sys(e, rc, "cannot read the tasks of our own threads");
	if (rc == -EPERM)
		err_hint(e, "it needs BPF_PROG_TEST_RUN of bpf(2), which a seccomp filter may refuse");
	return rc;
}

static void close_pipe(int *fds)
{
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void task_samples_end(struct task_samples *s)
{
	const char bytes[KERNSAMPLES] = { 0 };

	/* closing the pipe is not enough: another process forked meanwhile may have it open too */
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
	*s = (struct task_samples){ 0 };
}

#define MM_BYTES 4096u
#define PID_BYTES 512u
#define NS_BYTES 512u
#define UPID_BYTES 16u /* int nr; struct pid_namespace *ns */
#define LEVEL_AT 4u /* in struct pid, after the reference count */
#define LEVELS_MAX 32u
#define TRIES 10

static uint32_t u32_at(const uint8_t *p, size_t at)
{
	uint32_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}

static uint64_t u64_at(const uint8_t *p, size_t at)
{
	uint64_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}

static bool is_pointer(uint64_t v)
{
	return (int64_t)v < 0 && v < UINT64_C(0xfffffffffffff000) && v % 8 == 0;
}

/* The input and output of a search. */
struct search {
	const struct task_samples *s;
	struct task_layout *shape;
	uint32_t inum; /* of this process's PID namespace */
};

static const struct task_sample *sample(const struct search *f, int i)
{
	return &f->s->of[i];
}

static uint64_t word(const struct search *f, int i, size_t at)
{
	return u64_at(sample(f, i)->bytes, at);
}

/* Does sample I have its own value at AT? */
typedef bool (*fits_fn)(const struct search *f, int i, size_t at);

/* The only offset, in steps of STEP, at which every sample has its own value; -1 = none, or several. */
static int only_place(const struct search *f, fits_fn fits, size_t step, size_t bytes)
{
	int found = -1, i;

	for (size_t at = 0; at + bytes <= sample(f, 0)->len; at += step) {
		for (i = 0; i < KERNSAMPLES && at + bytes <= sample(f, i)->len && fits(f, i, at); i++)
			;
		if (i < KERNSAMPLES)
			continue;
		if (found >= 0)
			return -1;
		found = (int)at;
	}
	return found;
}

static bool same_twice(const struct search *f, int i, size_t at, size_t bytes)
{
	return memcmp(sample(f, i)->bytes + at, sample(f, i)->again + at, bytes) == 0;
}

static bool fits_pid(const struct search *f, int i, size_t at)
{
	return u32_at(sample(f, i)->bytes, at) == sample(f, i)->pid && same_twice(f, i, at, 4);
}

static bool fits_tgid(const struct search *f, int i, size_t at)
{
	return u32_at(sample(f, i)->bytes, at) == sample(f, i)->tgid && same_twice(f, i, at, 4);
}

static bool fits_comm(const struct search *f, int i, size_t at)
{
	return memcmp(sample(f, i)->bytes + at, sample(f, i)->comm, 16) == 0;
}

static bool fits_start(const struct search *f, int i, size_t at)
{
	return word(f, i, at) - sample(f, i)->stat.start_boot_ns < THREADSTAT_TICK_NS &&
	       same_twice(f, i, at, 8);
}

static bool fits_stack(const struct search *f, int i, size_t at)
{
	return sample(f, i)->stack && word(f, i, at) == sample(f, i)->stack;
}

/*
 * start_time and start_boottime both fit: if the machine was never suspended,
 * they differ only by the time between two readings of the clocks.
 * start_boottime is read last, so it is the larger one. Times of the scheduler can be as
 * near to the start of every sample: the two that are next to each other are those.
 */
static int find_start(const struct search *f)
{
	int found = -1, pair = -1, last = -1, i;

	for (size_t at = 0; at + 8 <= sample(f, 0)->len; at += 8) {
		for (i = 0; i < KERNSAMPLES && at + 8 <= sample(f, i)->len && fits_start(f, i, at); i++)
			;
		if (i < KERNSAMPLES)
			continue;
		if (found >= 0 &&
			llabs((int64_t)(word(f, 0, at) - word(f, 0, (size_t)found))) > THREADSTAT_TICK_NS)
			return -1;
		if (last >= 0 && (size_t)last + 8 == at && word(f, 0, at) >= word(f, 0, (size_t)last))
			pair = pair < 0 ? (int)at : INT_MAX; /* not only one */
		last = (int)at;
		if (found < 0 || word(f, 0, at) >= word(f, 0, (size_t)found))
			found = (int)at;
	}
	return pair < 0 ? found : pair == INT_MAX ? -1 : pair;
}

static bool fits_tls(const struct search *f, int i, size_t at)
{
	return sample(f, i)->tls && word(f, i, at) == sample(f, i)->tls;
}

/* The child is its own leader; the threads have a leader with their process's id. */
static bool fits_leader(const struct search *f, int i, size_t at)
{
	const struct task_sample *k = sample(f, i);
	uint64_t leader = word(f, i, at);
	const struct peek *p;
	size_t pid_at = (size_t)f->shape->at[TASK_LAYOUT_PID],
	       tgid_at = (size_t)f->shape->at[TASK_LAYOUT_TGID];

	if (i == TASK_SAMPLE_CHILD)
		return leader == k->task;
	if (!is_pointer(leader) || leader == k->task || leader != word(f, 0, at))
		return false;
	p = kernel_peek_at(f->s->peek, leader, PEEK_MAX);
	return p && p->len > MAX(pid_at, tgid_at) + 4 && u32_at(p->bytes, pid_at) == k->tgid &&
	       u32_at(p->bytes, tgid_at) == k->tgid;
}

static bool fits_flags(const struct search *f, int i, size_t at)
{
	return u32_at(sample(f, i)->again, at) == sample(f, i)->stat.flags;
}

/*
 * All samples have the same flags, those of tasks that have not called exec.
 * The leader of the threads has called it, so its flags differ.
 */
static int find_flags(const struct search *f)
{
	int at = f->shape->at[TASK_LAYOUT_LEADER], found = -1, i;
	const struct peek *p = at < 0 ? NULL : kernel_peek_at(f->s->peek, word(f, 0, (size_t)at), PEEK_MAX);
	struct threadstat st;
	uint32_t pid = (uint32_t)getpid();

	if (!p || threadstat_read(pid, pid, &st) != 0)
		return -1;
	for (size_t i4 = 0; i4 + 4 <= MIN(p->len, sample(f, 0)->len); i4 += 4) {
		for (i = 0; i < KERNSAMPLES && i4 + 4 <= sample(f, i)->len && fits_flags(f, i, i4); i++)
			;
		if (i < KERNSAMPLES || u32_at(p->bytes, i4) != st.flags)
			continue;
		if (found >= 0)
			return -1;
		found = (int)i4;
	}
	return found;
}

/*
 * Find the offsets of start_code and start_stack in MM; false if it is not an
 * mm_struct of K's process. Takes the first offsets, because another mm_struct
 * of the same program may follow.
 */
static bool match_mm(const struct search *f, const struct task_sample *k, uint64_t mm, int at[2])
{
	const struct peek *p = is_pointer(mm) ? kernel_peek_at(f->s->peek, mm, MM_BYTES) : NULL;

	at[0] = at[1] = -1;
	if (!p || k->stat.start_code < 4096 || k->stat.start_stack < 4096)
		return false;
	for (size_t i = 0; i + 16 <= p->len; i += 8) {
		if (at[0] < 0 && u64_at(p->bytes, i) == k->stat.start_code &&
			u64_at(p->bytes, i + 8) == k->stat.end_code)
			at[0] = (int)i;
		if (at[1] < 0 && u64_at(p->bytes, i) == k->stat.start_stack)
			at[1] = (int)i;
	}
	return at[0] >= 0 && at[1] >= 0;
}

/* The first offset that fits is `mm`. The second, active_mm, is the same for tasks that have an mm. */
static void find_mm(const struct search *f)
{
	const struct task_sample *last = sample(f, TASK_SAMPLE_CHILD);
	int ours[2], its[2];

	for (size_t at = 0; at + 8 <= MIN(sample(f, 0)->len, last->len); at += 8) {
		if (word(f, 0, at) != word(f, 1, at) || word(f, 0, at) == word(f, TASK_SAMPLE_CHILD, at) ||
			!match_mm(f, sample(f, 0), word(f, 0, at), ours) ||
			!match_mm(f, last, word(f, TASK_SAMPLE_CHILD, at), its) ||
			memcmp(ours, its, sizeof(its)) != 0)
			continue;
		f->shape->at[TASK_LAYOUT_MM] = (int)at;
		f->shape->at[TASK_LAYOUT_START_CODE] = ours[0];
		f->shape->at[TASK_LAYOUT_START_STACK] = ours[1];
		return;
	}
}

/* A copy of what may be the struct pid of a sample. */
struct pid_copy {
	size_t len; /* 0 = it is not one */
	uint32_t level;
	uint8_t bytes[PID_BYTES];
};

static void copy_pid(const struct search *f, int i, uint64_t ptr, struct pid_copy *c)
{
	const struct peek *p = is_pointer(ptr) && ptr != sample(f, i)->task
				       ? kernel_peek_at(f->s->peek, ptr, PID_BYTES)
				       : NULL;

	c->len = p ? MIN(p->len, sizeof(c->bytes)) : 0;
	memcpy(c->bytes, p ? p->bytes : c->bytes, c->len);
	c->level = c->len >= 64 ? u32_at(c->bytes, LEVEL_AT) : UINT32_MAX;
	if (c->level > LEVELS_MAX)
		c->len = 0;
}

/* Can the numbers of sample I begin at AT? *NS is the namespace of the last one. */
static bool fits_numbers(const struct search *f, int i, const struct pid_copy *c, size_t at, uint64_t *ns)
{
	size_t last = at + c->level * UPID_BYTES;

	if (last + UPID_BYTES > c->len || u32_at(c->bytes, at) != sample(f, i)->pid ||
		u32_at(c->bytes, last) != sample(f, i)->own_tid || !is_pointer(u64_at(c->bytes, at + 8)))
		return false;
	*ns = u64_at(c->bytes, last + 8);
	return is_pointer(*ns);
}

/*
 * The offset of the numbers in the struct pid of every sample; -1 = none, or
 * several. The number alone is not enough: the inode number of pidfs, which is
 * counted as ids are, has a pointer behind it too (seen on 6.16). The namespace
 * is the same for all.
 */
static int find_numbers(const struct search *f, const struct pid_copy c[KERNSAMPLES], uint64_t *ret)
{
	int found = -1, i;

	for (size_t at = 8; at < PID_BYTES; at += 8) {
		uint64_t ns[KERNSAMPLES] = { 0 };

		for (i = 0; i < KERNSAMPLES && c[i].level == c[0].level; i++)
			if (!fits_numbers(f, i, &c[i], at, &ns[i]) || ns[i] != ns[0])
				break;
		if (i < KERNSAMPLES)
			continue;
		if (found >= 0)
			return -1;
		found = (int)at;
		*ret = ns[0];
	}
	return found;
}

/*
 * Find the inode number of the namespace at PTR. Takes the first place, because
 * a similar struct may follow in memory. If it were wrong, no task would appear
 * to be in the namespace.
 */
static void find_inum(const struct search *f, uint64_t ptr)
{
	const struct peek *p = kernel_peek_at(f->s->peek, ptr, NS_BYTES);

	for (size_t at = 0; p && at + 4 <= p->len; at += 4) {
		if (u32_at(p->bytes, at) == f->inum) {
			f->shape->at[TASK_LAYOUT_INUM] = (int)at;
			return;
		}
	}
}

static void find_thread_pid(const struct search *f)
{
	struct pid_copy c[KERNSAMPLES];
	uint64_t ns = 0;
	int numbers;

	for (size_t at = 0; at + 8 <= sample(f, 0)->len; at += 8) {
		int i = 0;

		for (; i < KERNSAMPLES; i++) {
			copy_pid(f, i, word(f, i, at), &c[i]);
			if (!c[i].len)
				break;
		}
		numbers = i == KERNSAMPLES ? find_numbers(f, c, &ns) : -1;
		if (numbers < 0)
			continue;
		f->shape->at[TASK_LAYOUT_THREAD_PID] = (int)at;
		f->shape->at[TASK_LAYOUT_LEVEL] = LEVEL_AT;
		f->shape->at[TASK_LAYOUT_NUMBERS] = numbers;
		f->shape->ns_level = c[0].level;
		f->shape->ns_inum = f->inum;
		find_inum(f, ns);
		return;
	}
}

static void search_regs(const struct search *f)
{
	int at = only_place(f, fits_stack, 8, 8);
	uint64_t regs = sample(f, 0)->regs_from_stack;

	for (int i = 0; i < KERNSAMPLES; i++)
		if (sample(f, i)->regs_from_stack != regs)
			return;
	if (at < 0 || !regs)
		return;
	f->shape->at[TASK_LAYOUT_STACK] = at;
	f->shape->regs_from_stack = (uint32_t)regs;
}

static bool fits_ran(const struct search *f, int i, size_t at)
{
	return sample(f, i)->ran && u64_at(sample(f, i)->asleep, at) == sample(f, i)->ran;
}

/* Does AT hold the CPU time that the thread had when it was last put on the CPU? */
static bool shows_ran_before(const struct search *f, size_t at)
{
	bool shown = false;

	for (int i = 0; i < KERNSAMPLES; i++) {
		uint64_t before = u64_at(sample(f, i)->asleep, at);

		if (before > sample(f, i)->ran || before < sample(f, i)->ran_before)
			return false;
		shown = shown || (before == sample(f, i)->ran_before && before != sample(f, i)->ran);
	}
	return shown;
}

/*
 * Find the CPU time, and what it was when the thread was last put on the CPU.
 * The second follows the first directly or, before Linux 6.6, follows vruntime.
 * The thread was last put on the CPU after its first sleep, unless it was
 * preempted since: a place that no sample confirms is rejected.
 */
static void find_ran(const struct search *f)
{
	int at = only_place(f, fits_ran, 8, 24);
	bool next = at >= 0 && shows_ran_before(f, (size_t)at + 8);
	bool behind = at >= 0 && shows_ran_before(f, (size_t)at + 16);

	if (next == behind)
		return;
	f->shape->at[TASK_LAYOUT_RAN] = at;
	f->shape->at[TASK_LAYOUT_RAN_BEFORE] = at + (next ? 8 : 16);
}

static void find_all(const struct search *f)
{
	int *at = f->shape->at;

	at[TASK_LAYOUT_PID] = only_place(f, fits_pid, 4, 4);
	at[TASK_LAYOUT_TGID] = only_place(f, fits_tgid, 4, 4);
	at[TASK_LAYOUT_COMM] = only_place(f, fits_comm, 1, 16);
	at[TASK_LAYOUT_FLAGS] = only_place(f, fits_flags, 4, 4);
	at[TASK_LAYOUT_START] = find_start(f);
	if (at[TASK_LAYOUT_PID] >= 0 && at[TASK_LAYOUT_TGID] >= 0)
		at[TASK_LAYOUT_LEADER] = only_place(f, fits_leader, 8, 8);
	at[TASK_LAYOUT_FLAGS] = find_flags(f);
	find_mm(f);
	search_regs(f);
	find_thread_pid(f);
	find_ran(f);
	at[TASK_LAYOUT_TLS] = only_place(f, fits_tls, 8, 8);
}

static int try_once(struct kernel_peek *peek, struct task_layout *shape, struct err *e)
{
	struct search f = { .shape = shape };
	struct task_samples s;
	struct stat st;
	int rc = task_samples_begin(&s, peek, e);

	*shape = (struct task_layout){ 0 };
	for (int i = 0; i < TASK_LAYOUT_MEMBERS; i++)
		shape->at[i] = -1;
	f.s = &s;
	f.inum = stat("/proc/self/ns/pid", &st) == 0 ? (uint32_t)st.st_ino : 0;
	if (!rc)
		find_all(&f);
	task_samples_end(&s);
	return rc;
}

/* Another place may fit all samples by chance. So try again: other tasks lie elsewhere. */
int task_layout_trial_run(struct task_layout *ret, struct err *e)
{
	struct kernel_peek *peek = NULL;
	int rc = kernel_peek_open(&peek, e);

	for (int i = 0; i < TRIES && !rc; i++) {
		rc = try_once(peek, ret, e);
		if (!rc && task_layout_missing(ret) < 0 && ret->at[TASK_LAYOUT_RAN] >= 0)
			break;
	}
	if (!rc)
		ret->raw_switch = kernel_peek_switch(peek);
	kernel_peek_close(peek);
	return rc;
}

#define STRUCT_BYTES 16384 /* of the structs that are written, and at most of those that are read */
#define MEMBERS_MAX 4096

enum { TASK, ENTITY, MM, PID, UPID, NS, NS_COMMON, THREAD, STRUCTS };

static const char *const structs[STRUCTS] = { "task_struct", "sched_entity", "mm_struct", "pid", "upid",
	"pid_namespace", "ns_common", "thread_struct" };

enum type { T_U32, T_U64, T_POINTER, T_COMM, T_UPIDS };

static const struct {
	int of;
	const char *name;
	enum type type;
} members[TASK_LAYOUT_MEMBERS] = { [TASK_LAYOUT_PID] = { TASK, "pid", T_U32 },
	[TASK_LAYOUT_TGID] = { TASK, "tgid", T_U32 },
	[TASK_LAYOUT_COMM] = { TASK, "comm", T_COMM },
	[TASK_LAYOUT_FLAGS] = { TASK, "flags", T_U32 },
	[TASK_LAYOUT_START] = { TASK, "start_boottime", T_U64 },
	[TASK_LAYOUT_LEADER] = { TASK, "group_leader", T_POINTER },
	[TASK_LAYOUT_MM] = { TASK, "mm", T_POINTER },
	[TASK_LAYOUT_STACK] = { TASK, "stack", T_POINTER },
	[TASK_LAYOUT_THREAD_PID] = { TASK, "thread_pid", T_POINTER },
	[TASK_LAYOUT_RAN] = { ENTITY, "sum_exec_runtime", T_U64 },
	[TASK_LAYOUT_RAN_BEFORE] = { ENTITY, "prev_sum_exec_runtime", T_U64 },
	[TASK_LAYOUT_START_CODE] = { MM, "start_code", T_U64 },
	[TASK_LAYOUT_START_STACK] = { MM, "start_stack", T_U64 },
	[TASK_LAYOUT_LEVEL] = { PID, "level", T_U32 },
	[TASK_LAYOUT_NUMBERS] = { PID, "numbers", T_UPIDS },
	[TASK_LAYOUT_INUM] = { NS_COMMON, "inum", T_U32 },
	[TASK_LAYOUT_TLS] = { THREAD, "fsbase", T_U64 } };

/* BTF type ids: of members by enum type, and of structs. */
struct types {
	int id[T_UPIDS + 1], of[STRUCTS], u8, u32;
};

static void add_types(struct btf *btf, struct types *t)
{
	t->u8 = btf__add_int(btf, "char", 1, BTF_INT_CHAR);
	t->u32 = t->id[T_U32] = btf__add_int(btf, "unsigned int", 4, 0);
	t->id[T_U64] = btf__add_int(btf, "unsigned long", 8, 0);
	t->id[T_POINTER] = btf__add_ptr(btf, 0);
	t->id[T_COMM] = btf__add_array(btf, t->u32, t->u8, 16);
	t->of[UPID] = btf__add_struct(btf, structs[UPID], UPID_BYTES);
	btf__add_field(btf, "nr", t->u32, 0, 0);
	btf__add_field(btf, "ns", t->id[T_POINTER], 64, 0);
	t->id[T_UPIDS] = btf__add_array(btf, t->u32, t->of[UPID], 1);
}

static bool is_of(enum task_layout_member m, int of)
{
	return members[m].of == of;
}

static int write_struct(struct btf *btf, struct types *t, const struct task_layout *shape, int of)
{
	int rc = t->of[of] = btf__add_struct(btf, structs[of], STRUCT_BYTES);

	for (enum task_layout_member m = 0; m < TASK_LAYOUT_MEMBERS && rc > 0; m++)
		if (is_of(m, of) && shape->at[m] >= 0)
			rc = btf__add_field(btf, members[m].name, t->id[members[m].type],
				     (uint32_t)shape->at[m] * 8, 0)
				     ? -ENOMEM
				     : 1;
	/* nested structs are put at offset 0: offsets of their members count from the outer struct */
	if (rc > 0 && of == NS)
		rc = btf__add_field(btf, "ns", t->of[NS_COMMON], 0, 0) ? -ENOMEM : 1;
	if (rc > 0 && of == TASK)
		rc = btf__add_field(btf, "se", t->of[ENTITY], 0, 0) ||
				     btf__add_field(btf, "thread", t->of[THREAD], 0, 0)
			     ? -ENOMEM
			     : 1;
	return rc > 0 ? 0 : rc;
}

int task_layout_btf_write(const struct task_layout *shape, int fd, struct err *e)
{
	static const int order[] = { ENTITY, THREAD, TASK, MM, PID, NS_COMMON, NS };
	struct btf *btf = btf__new_empty();
	struct types t = { 0 };
	const void *bytes = NULL;
	uint32_t size = 0;
	int rc = btf ? 0 : -ENOMEM;

	if (!rc)
		add_types(btf, &t);
	for (size_t i = 0; i < ARRAY_LEN(order) && !rc; i++)
		rc = write_struct(btf, &t, shape, order[i]);
	if (!rc)
		bytes = btf__raw_data(btf, &size);
	if (!rc && (!bytes || write(fd, bytes, size) != (ssize_t)size))
		rc = -ENOMEM;
	btf__free(btf);
	return rc ? err_sys(e, rc, "cannot write down where the kernel keeps what") : 0;
}

/*
 * The byte offset of member NAME in struct ID, or in its unnamed members; -1 =
 * it has none. *LEFT bounds the members that are visited, because a file may
 * nest them without end.
 */
static int find_member(const struct btf *btf, uint32_t id, const char *name, int *left)
{
	const struct btf_type *t = btf__type_by_id(btf, id);
	int at;

	if (!t || !btf_is_composite(t))
		return -1;
	for (uint16_t i = 0; i < btf_vlen(t) && (*left)-- > 0; i++) {
		const struct btf_member *m = btf_members(t) + i;
		const char *its = btf__name_by_offset(btf, m->name_off);
		uint32_t off = btf_member_bit_offset(t, i) / 8;

		if (off >= STRUCT_BYTES)
			continue;
		if (its && strcmp(its, name) == 0)
			return (int)off;
		at = its && *its ? -1 : find_member(btf, m->type, name, left);
		if (at >= 0)
			return (int)off + at;
	}
	return -1;
}

static int offset_of(const struct btf *btf, int of, const char *name)
{
	int id = btf__find_by_name_kind(btf, structs[of], BTF_KIND_STRUCT), left = MEMBERS_MAX;

	return id > 0 ? find_member(btf, (uint32_t)id, name, &left) : -1;
}

/* The offset of M according to BTF; a nested struct adds its own offset. */
static int reported(const struct btf *btf, enum task_layout_member m)
{
	int at = offset_of(btf, members[m].of, members[m].name), outer = 0;

	if (members[m].of == NS_COMMON)
		outer = offset_of(btf, NS, "ns");
	if (members[m].of == ENTITY)
		outer = offset_of(btf, TASK, "se");
	if (members[m].of == THREAD)
		outer = offset_of(btf, TASK, "thread");
	return at < 0 || outer < 0 ? -1 : at + outer;
}

static int compare(const struct task_layout *shape, const struct btf *btf, const char *file, struct err *e)
{
	if (shape->at[TASK_LAYOUT_PID] < 0 || shape->at[TASK_LAYOUT_TGID] < 0 ||
		shape->at[TASK_LAYOUT_COMM] < 0)
		return err_set(e, -EINVAL, "cannot determine whether '%s' is of the running kernel", file);
	for (enum task_layout_member m = 0; m < TASK_LAYOUT_MEMBERS; m++) {
		int at = reported(btf, m);

		if (shape->at[m] < 0 || at == shape->at[m])
			continue;
		err_set(e, -EINVAL, "'%s' is of another kernel: this one has %s at byte %d", file,
			task_layout_name(m), shape->at[m]);
		err_hint(e, "give the BTF of the kernel that runs, 'uname -r' names it, or leave --btf out");
		return -EINVAL;
	}
	return 0;
}

int task_layout_btf_read(const struct task_layout *shape, const char *file, int fd, struct err *e)
{
	struct kernel_types_name names[STRUCTS];
	char path[32];
	struct btf *btf;
	int rc;

	for (int i = 0; i < STRUCTS; i++)
		names[i] = (struct kernel_types_name){ .name = structs[i], .kind = BTF_KIND_STRUCT };
	rc = kernel_types_read(file, names, ARRAY_LEN(names), fd, e);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	btf = btf__parse(path, NULL);
	if (!btf)
		return err_sys(e, -errno, "'%s' is not understood", file);
	rc = compare(shape, btf, file, e);
	btf__free(btf);
	return rc;
}
