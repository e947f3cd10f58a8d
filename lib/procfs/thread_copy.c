/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/thread_copy.h"
#include "base/clock.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#if defined(__aarch64__)
#define THREAD_COPY_BELOW_SP 0
#else
#define THREAD_COPY_BELOW_SP 128 /* bytes that belong to a leaf function, by the x86-64 ABI */
#endif

#define PAGE 4096u
#define PIECES (THREAD_COPY_AREA_BYTES / PAGE + 1)

void thread_copy_reset(struct thread_copy *c)
{
	c->head = (struct thread_copy_head){ 0 };
}

/* A transfer ends between pieces. One piece per page: so all up to the first missing page is read. */
static size_t pages(uint64_t from, size_t len, struct iovec pieces[PIECES])
{
	size_t n = 0;

	for (size_t take; len; from += take, len -= take) {
		take = MIN(len, (size_t)(PAGE - from % PAGE));
		pieces[n++] = (struct iovec){ (void *)(uintptr_t)from, take };
	}
	return n;
}

/* Copy LEN bytes from FROM on to TO, or as far as they are mapped: their number, or -errno. */
static ssize_t read_memory(pid_t id, uint64_t from, void *to, size_t len)
{
	struct iovec there[PIECES], here = { to, len };
	ssize_t n;

	if (UINT64_MAX - from < len)
		return -EFAULT;
	n = process_vm_readv(id, &here, 1, there, pages(from, len, there), 0);
	return n > 0 ? n : n < 0 ? -errno : -EFAULT;
}

/* Add the area that read_memory() has read, N bytes; false with errno if it has not. */
static bool add_area(struct thread_copy *c, uint64_t from, ssize_t n)
{
	if (n < 0) {
		errno = (int)-n;
		return false;
	}
	c->head.areas[c->head.n_areas++] = (struct thread_copy_area){ .from = from, .len = (uint64_t)n };
	return true;
}

bool thread_copy_area(struct thread_copy *c, pid_t id, uint64_t from)
{
	uint32_t i = c->head.n_areas;

	return add_area(c, from,
		i < THREAD_COPY_AREAS ? read_memory(id, from, c->bytes[i], THREAD_COPY_AREA_BYTES) : -ENOSPC);
}

ssize_t quiet_copy_stack(pid_t tid, uint64_t sp, void *to, size_t len, uint64_t *from)
{
	ssize_t n = -EFAULT;

	*from = sp - THREAD_COPY_BELOW_SP;
	if (sp > THREAD_COPY_BELOW_SP)
		n = read_memory(tid, *from, to, len);
	if (n > 0)
		return n;
	/* the page below SP may be a guard page */
	*from = sp;
	return read_memory(tid, sp, to, len);
}

/* The first area of a copy is that of its stack, by its SP. */
static bool thread_copy_stack(struct thread_copy *c, pid_t id)
{
	uint64_t from;
	ssize_t n = quiet_copy_stack(
		id, c->head.regs[THREAD_COPY_SP], c->bytes[0], THREAD_COPY_AREA_BYTES, &from);

	return add_area(c, from, n);
}

#define EXT_ARG 8 /* IORING_ENTER_EXT_ARG: there may be a time limit */

bool quiet_copy_parse(const char *text, struct quiet_copy_call *ret)
{
	uint64_t *a;
	int n;

	*ret = (struct quiet_copy_call){ .number = -1 };
	a = ret->args;
	n = sscanf(text,
		"%" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
		" %" SCNx64,
		&ret->number, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &ret->sp, &ret->pc);
	if (n == 3 && ret->number == -1) {
		ret->sp = a[0];
		ret->pc = a[1];
		a[0] = a[1] = 0;
		return true;
	}
	return n == 9;
}

static int read_whole(pid_t pid, pid_t tid, const char *file, char *text, size_t cap)
{
	_cleanup_close_ int fd = -1;
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, cap - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return n ? 0 : -ESRCH;
}

/* How often the thread has been given a CPU. */
static int runs(pid_t pid, pid_t tid, uint64_t *ret)
{
	char text[128];
	int rc = read_whole(pid, tid, "schedstat", text, sizeof(text));

	if (rc)
		return rc;
	return sscanf(text, "%*u %*u %" SCNu64, ret) == 1 ? 0 : -ENODATA;
}

void quiet_copy_begin(struct thread_copy *c, const struct quiet_copy_call *call)
{
	thread_copy_reset(c);
	c->head.regs[THREAD_COPY_SP] = call->sp;
	c->head.regs[THREAD_COPY_PC] = call->pc;
	c->head.regs[THREAD_COPY_CALL] = (uint64_t)call->number;
#if defined(__x86_64__)
	c->head.regs[THREAD_COPY_AX] = (uint64_t)-ENOSYS; /* as inside a call */
#endif
}

int quiet_copy_take(pid_t pid, pid_t tid, const uint64_t *wanted, size_t n, struct thread_copy *copy,
	struct quiet_copy_call *call)
{
	uint64_t before, after;
	char text[256];
	int rc = runs(pid, tid, &before);

	thread_copy_reset(copy);
	rc = rc ? rc : read_whole(pid, tid, "syscall", text, sizeof(text));
	if (rc)
		return rc;
	if (!quiet_copy_parse(text, call))
		return -EAGAIN;
	quiet_copy_begin(copy, call);
	/* SP may not point to memory; then there is no stack to copy */
	if (!thread_copy_stack(copy, tid) && errno != EFAULT)
		return -EAGAIN;
	for (size_t i = 0; i < n; i++)
		thread_copy_area(copy, tid, wanted[i]);
	rc = runs(pid, tid, &after);
	return rc ? rc : before == after ? 0 : -EAGAIN;
}

#if defined(__aarch64__)
bool quiet_copy_is_timed(const struct quiet_copy_call *c, bool narrow)
{
	(void)narrow;
	switch (c->number) {
	case -1: /* no call */
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_restart_syscall:
	case SYS_futex:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_ppoll:
	case SYS_pselect6:
	case SYS_rt_sigsuspend:
		return false;
	default:
		return true;
	}
}
#else
/* System call numbers of i386: arch/x86/entry/syscalls/syscall_32.tbl. */
enum { I386_CLOSE = 6, I386_IPC = 117, I386_SEMTIMEDOP = 4 /* first argument of ipc */ };

static bool is_timed_i386(const struct quiet_copy_call *c)
{
	switch (c->number) {
	case I386_IPC:
		return (c->args[0] & 0xffff) == I386_SEMTIMEDOP && c->args[5] != 0;
	case 256: /* epoll_wait */
	case 319: /* epoll_pwait */
		return (int32_t)c->args[3] >= 0;
	case 420: /* semtimedop_time64 */
	case 441: /* epoll_pwait2 */
		return c->args[3] != 0;
	case 177: /* rt_sigtimedwait */
	case 421: /* rt_sigtimedwait_time64 */
		return c->args[2] != 0;
	case 247: /* io_getevents */
	case 385: /* io_pgetevents */
	case 416: /* io_pgetevents_time64 */
		return c->args[4] != 0;
	case 426: /* io_uring_enter */
		return c->args[3] & EXT_ARG;
	default:
		return false;
	}
}

bool quiet_copy_is_timed(const struct quiet_copy_call *c, bool narrow)
{
	if (narrow)
		return is_timed_i386(c);
	switch (c->number) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return (int32_t)c->args[3] >= 0;
	case SYS_epoll_pwait2:
	case SYS_semtimedop:
		return c->args[3] != 0;
	case SYS_rt_sigtimedwait:
		return c->args[2] != 0;
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		return c->args[4] != 0;
	case SYS_io_uring_enter:
		return c->args[3] & EXT_ARG;
	default:
		return false;
	}
}
#endif

#define STOP_COPY_WAIT_MS 200

#define STACK_BYTES (256u << 10) /* stack size of the thread that stops another */
#define ERESTARTNOHAND 514 /* include/linux/errno.h of Linux: restart if no handler has run */

struct stop {
	pid_t tid;
	const uint64_t *wanted;
	size_t n;
	struct thread_copy *copy;
	struct stop_copy_report *reported;
	int rc;
};

#if defined(__x86_64__)
#define USER32_CS 0x23 /* of a thread that executes i386 code */
#define WORD_IS(field, word) (offsetof(struct user_regs_struct, field) == 8 * (word))
_Static_assert(WORD_IS(rax, THREAD_COPY_AX) && WORD_IS(orig_rax, THREAD_COPY_CALL) &&
		       WORD_IS(rip, THREAD_COPY_PC) && WORD_IS(rsp, THREAD_COPY_SP) &&
		       WORD_IS(ss, THREAD_COPY_REGS - 1),
	"it begins as struct pt_regs");

/* Not PTRACE_GETREGSET, which has another form for a thread that executes i386 code. */
static int take_registers(struct stop *s, struct user_regs_struct *r)
{
	if (ptrace(PTRACE_GETREGS, s->tid, NULL, r) != 0)
		return -errno;
	s->copy->head = (struct thread_copy_head){ .all = 1, .tls = r->fs_base };
	memcpy(s->copy->head.regs, r, sizeof(s->copy->head.regs));
	return 0;
}

/*
 * The kernel restarts a call that returns one of its internal codes. Give it such
 * a code if the call returned EINTR. If there is a handler to run, the program
 * gets EINTR, as it would have without the stop.
 */
static void begin_again(struct stop *s, const struct user_regs_struct *r)
{
	const bool narrow = r->cs == USER32_CS;

	if ((int64_t)r->orig_rax < 0 || (int64_t)r->rax != -EINTR ||
		r->orig_rax == (narrow ? I386_CLOSE : SYS_close))
		return;
	if (ptrace(PTRACE_POKEUSER, s->tid, (void *)offsetof(struct user_regs_struct, rax),
		    (void *)(intptr_t)-ERESTARTNOHAND) != 0)
		return;
	s->reported->again = (int64_t)r->orig_rax;
	s->reported->again_arg = narrow ? (uint32_t)r->rbx : r->rdi;
}
#elif defined(__aarch64__)
static int take_registers(struct stop *s, struct user_regs_struct *r)
{
	struct iovec all = { r, sizeof(*r) };

	if (ptrace(PTRACE_GETREGSET, s->tid, (void *)NT_PRSTATUS, &all) != 0)
		return -errno;
	if (all.iov_len != sizeof(*r))
		return -ENOEXEC; /* the registers of 32-bit Arm code */
	s->copy->head = (struct thread_copy_head){ .all = 1 };
	memcpy(s->copy->head.regs, r, sizeof(*r));
	s->copy->head.regs[THREAD_COPY_CALL] =
		(uint64_t)-1; /* the stop has ended it, or it will be restarted */
	return 0;
}

/* See quiet_copy_is_timed(). */
static void begin_again(struct stop *s, const struct user_regs_struct *r)
{
	(void)s, (void)r;
}
#else
/* The register words (THREAD_COPY_*) and the way to restart a call are not known. */
static int take_registers(struct stop *s, struct user_regs_struct *r)
{
	(void)s, (void)r;
	return -ENOEXEC;
}

static void begin_again(struct stop *s, const struct user_regs_struct *r)
{
	(void)s, (void)r;
}
#endif

static int copy_all(struct stop *s)
{
	struct user_regs_struct r = { 0 };
	int rc = take_registers(s, &r);

	if (rc)
		return rc;
	begin_again(s, &r);
	if (!thread_copy_stack(s->copy, s->tid))
		return errno == ESRCH ? -ESRCH : 0; /* a walk without memory has one frame */
	for (size_t i = 0; i < s->n; i++)
		thread_copy_area(s->copy, s->tid, s->wanted[i]);
	return 0;
}

/* Wait only for stops: the end of a child of ours must be left for the code that waits for it. */
static int await_stop(pid_t tid, siginfo_t *si)
{
	int rc;

	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	do
		rc = waitid(P_PID, (id_t)tid, si, WSTOPPED | __WALL);
	while (rc != 0 && errno == EINTR);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return rc == 0 ? 0 : errno == ECHILD ? -ESRCH : -errno;
}

static void *stop(void *arg)
{
	struct stop *s = arg;
	uint64_t begin;
	siginfo_t si;
	long sig;
	int rc;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	if (ptrace(PTRACE_SEIZE, s->tid, NULL, NULL) != 0) {
		s->rc = -errno;
		return NULL;
	}
	begin = now_ns();
	if (ptrace(PTRACE_INTERRUPT, s->tid, NULL, NULL) != 0) {
		s->rc = -errno;
		return NULL;
	}
	rc = await_stop(s->tid, &si);
	if (!rc) {
		rc = copy_all(s);
		/* deliver a signal that was pending; our stop, or a job's, has an event instead */
		sig = si.si_status >> 8 ? 0 : si.si_status & 0x7f;
		ptrace(PTRACE_DETACH, s->tid, NULL, (void *)sig);
		s->reported->stopped_ns = now_ns() - begin;
	}
	s->rc = rc;
	return NULL;
}

static void in(struct timespec *until, uint64_t ms)
{
	uint64_t at = now_ns() + ms * 1000000;

	*until = (struct timespec){ .tv_sec = (time_t)(at / 1000000000), .tv_nsec = (long)(at % 1000000000) };
}

int stop_copy_take(pid_t tid, const uint64_t *wanted, size_t n, struct thread_copy *copy,
	struct stop_copy_report *reported)
{
	struct stop s = {
		.tid = tid, .wanted = wanted, .n = n, .copy = copy, .reported = reported, .rc = -ETIMEDOUT
	};
	struct timespec until;
	pthread_attr_t small;
	sigset_t all, old;
	pthread_t thread;
	int rc;

	*reported = (struct stop_copy_report){ .again = -1 };
	thread_copy_reset(copy);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	/* the default size is set by the user, and may be more than the caller may allocate */
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_BYTES);
	rc = pthread_create(&thread, &small, stop, &s);
	pthread_attr_destroy(&small);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		return -rc;
	in(&until, STOP_COPY_WAIT_MS);
	if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) != 0) {
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	return s.rc;
}
