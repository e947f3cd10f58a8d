/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/lookchild.h"
#include "procfs/fdlimit.h"
#include "system/privileges.h"
#include "system/sandbox.h"
#include "system/seccomp.h"
#include "system/worker.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define SLOTS 65536 /* threads whose files are kept open, by the last bits of their number */
#define FILES_LEFT 64 /* of the descriptors that there may be: for everything else */
#define FILES_MOST (2 * SLOTS)
#define MEMORY (64u << 20) /* stacks of the threads that stop others */
#ifdef __SANITIZE_ADDRESS__
#define MORE_MEMORY (UINT64_C(32) << 40) /* of addresses, for its shadow */
#else
#define MORE_MEMORY 0
#endif

_Static_assert(LOOKWIRE_BYTES == PTCOPY_AREA_BYTES, "an area is an answer");

struct slot {
	uint32_t pid, tid;
	int fd[PROCFILE_LOOK]; /* and 1; 0 = not open */
};

struct work {
	int sock;
	bool memory;
	size_t n_open, max_open;
	struct slot slots[SLOTS];
	struct ptcopy copy;
	struct lookwire_request q;
	struct lookwire_answer a;
	size_t len; /* of the answer, behind its head */
};

/* --- files --- */

static void close_slot(struct work *w, struct slot *s)
{
	for (size_t i = 0; i < PROCFILE_LOOK; i++) {
		if (!s->fd[i])
			continue;
		close(s->fd[i] - 1);
		w->n_open--;
	}
	*s = (struct slot){ 0 };
}

/* Where descriptors of that thread are kept. */
static struct slot *slot_of(struct work *w, uint32_t pid, uint32_t tid)
{
	struct slot *s = &w->slots[tid % SLOTS];

	if (s->pid != pid || s->tid != tid) {
		close_slot(w, s);
		*s = (struct slot){ .pid = pid, .tid = tid };
	}
	return s;
}

static int open_file(uint32_t pid, uint32_t tid, enum procfile f)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", pid, tid, procfile_name(f));
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int32_t read_file(struct work *w, struct slot *s, enum procfile f, char *to)
{
	const size_t cap = f == PROCFILE_EXE ? PROCFILE_EXE_BYTES : PROCFILE_TEXT;
	bool kept = s && f < PROCFILE_LOOK && s->fd[f];
	int fd = kept ? s->fd[f] - 1 : open_file(w->q.pid, w->q.tid, f);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = pread(fd, to, cap, 0);
	n = n < 0 ? -errno : n;
	if (kept)
		return (int32_t)n;
	if (s && f < PROCFILE_LOOK && n >= 0 && w->n_open < w->max_open) {
		s->fd[f] = fd + 1;
		w->n_open++;
	} else {
		close(fd);
	}
	return (int32_t)n;
}

/* What the text of F at P makes needless. */
static unsigned int needless(enum procfile f, const char *p, int32_t len)
{
	const unsigned int wchan = 1u << PROCFILE_WCHAN, place = wchan | 1u << PROCFILE_STACK;

	if (f == PROCFILE_SYSCALL && len > 0 && *p == 'r')
		return place;
	return f == PROCFILE_STACK && len > 0 ? wchan : 0;
}

static int serve_files(struct work *w)
{
	struct slot *s = w->q.keep ? slot_of(w, w->q.pid, w->q.tid) : NULL;
	struct lookwire_files *files = &w->a.files;
	unsigned int wanted = w->q.arg;
	size_t at = 0;
	bool gone = false;

	for (unsigned int f = 0; f < PROCFILE_COUNT; f++) {
		files->len[f] = 0;
		if (!(wanted >> f & 1))
			continue;
		files->len[f] = read_file(w, s, f, files->text + at);
		wanted &= ~needless(f, files->text + at, files->len[f]);
		gone |= files->len[f] == -ESRCH;
		at += files->len[f] > 0 ? (size_t)files->len[f] : 0;
	}
	if (gone && s)
		close_slot(w, s);
	w->len = offsetof(struct lookwire_files, text) + at;
	return 0;
}

static int serve_forget(struct work *w)
{
	struct slot *s = &w->slots[w->q.tid % SLOTS];

	if (s->pid == w->q.pid && s->tid == w->q.tid)
		close_slot(w, s);
	return 0;
}

/* --- lists; by the system call, for opendir(3) takes memory --- */

struct entry { /* getdents64(2) */
	uint64_t inode;
	int64_t offset;
	uint16_t len;
	uint8_t type;
	char name[];
};

static int serve_list(struct work *w)
{
	char path[64] = "/proc", bytes[8192] __attribute__((aligned(8)));
	_cleanup_close_ int fd = -1;
	uint32_t seen = 0;
	size_t n = 0;
	long got;

	if (w->q.pid)
		snprintf(path, sizeof(path), "/proc/%u/task", w->q.pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (n < LOOKWIRE_NUMBERS && (got = syscall(SYS_getdents64, fd, bytes, sizeof(bytes))) > 0) {
		for (long at = 0; at < got && n < LOOKWIRE_NUMBERS;) {
			const struct entry *d = (const void *)(bytes + at);
			uint32_t number = procfile_number(d->name);

			if (number && seen++ >= w->q.arg)
				w->a.numbers[n++] = number;
			at += d->len;
		}
	}
	w->len = n * sizeof(uint32_t);
	return 0;
}

/* --- memory --- */

static int serve_copy(struct work *w)
{
	const struct lookwire_request *q = &w->q;
	struct lookwire_copy *c = &w->a.copy;
	int rc;

	if (q->n > LOOKWIRE_WANTED)
		return -EPERM;
	*c = (struct lookwire_copy){ 0 };
	rc = q->kind == LOOKWIRE_QUIET
		     ? ptquiet_take((pid_t)q->pid, (pid_t)q->tid, q->wanted, q->n, &w->copy, &c->call)
		     : ptstop_take((pid_t)q->tid, q->wanted, q->n, &w->copy, &c->told);
	c->head = w->copy.head;
	w->len = sizeof(*c);
	return rc;
}

static int serve_area(struct work *w)
{
	uint32_t i = w->q.arg;

	if (i >= MIN(w->copy.head.n_areas, (uint32_t)PTCOPY_AREAS))
		return -EPERM;
	w->len = (size_t)w->copy.head.areas[i].len;
	memcpy(w->a.bytes, w->copy.bytes[i], w->len);
	return 0;
}

static int serve_memory(struct work *w)
{
	struct iovec here = { w->a.bytes, w->q.n }, there = { (void *)(uintptr_t)w->q.wanted[0], w->q.n };
	ssize_t n;

	if (w->q.n > LOOKWIRE_BYTES)
		return -EPERM;
	n = process_vm_readv((pid_t)w->q.pid, &here, 1, &there, 1, 0);
	if (n < 0)
		return -errno;
	w->len = (size_t)n;
	return 0;
}

/* --- the talk --- */

static const struct {
	int (*fn)(struct work *w);
	bool memory, of_process; /* PID 0 is nobody */
} kinds[LOOKWIRE_KINDS] = {
	[LOOKWIRE_FILES] = { serve_files, false, true },
	[LOOKWIRE_FORGET] = { serve_forget, false, true },
	[LOOKWIRE_LIST] = { serve_list, false, false },
	[LOOKWIRE_QUIET] = { serve_copy, true, true },
	[LOOKWIRE_STOP] = { serve_copy, true, true },
	[LOOKWIRE_AREA] = { serve_area, true, false },
	[LOOKWIRE_MEMORY] = { serve_memory, true, true },
};

static int serve(struct work *w)
{
	uint32_t kind = w->q.kind;

	if (kind >= LOOKWIRE_KINDS || !kinds[kind].fn || (kinds[kind].memory && !w->memory) ||
		(kinds[kind].of_process && !w->q.pid))
		return -EPERM;
	return kinds[kind].fn(w);
}

static bool answer(struct work *w)
{
	size_t len = LOOKWIRE_HEAD + (w->a.error ? 0 : w->len);
	struct iovec v = { &w->a, len };
	struct msghdr h = { .msg_iov = &v, .msg_iovlen = 1 };

	return sendmsg(w->sock, &h, MSG_NOSIGNAL) == (ssize_t)len;
}

/* Until the recorder has gone. */
static void serve_all(struct work *w)
{
	do {
		struct iovec v = { &w->q, sizeof(w->q) };
		struct msghdr h = { .msg_iov = &v, .msg_iovlen = 1 };
		ssize_t n;

		do
			n = recvmsg(w->sock, &h, 0);
		while (n < 0 && errno == EINTR);
		if (n <= 0)
			return;
		w->len = 0;
		w->a.number = w->q.number;
		w->a.error =
			n == sizeof(w->q) && !(h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ? serve(w) : -EPERM;
	} while (answer(w));
}

/* --- its sandbox --- */

#ifdef SECCODE_ARCH
/* nothing to be written or made */
#define OPEN_TO_READ                                                                                         \
	SECCODE_WHEN(BPF_JEQ, SYS_openat, 0, 4), SECCODE_LOAD(args[2]),                                      \
		SECCODE_WHEN(BPF_JSET, O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND, 0, 1), SECCODE_KILL,        \
		SECCODE_PERMIT
#define COMMON                                                                                               \
	SECCODE_BEGIN, SECCODE_CALL(pread64), SECCODE_CALL(recvmsg), SECCODE_CALL(sendmsg),                  \
		SECCODE_CALL(close), SECCODE_CALL(getdents64), SECCODE_CALL(rt_sigprocmask),                 \
		SECCODE_CALL(rt_sigreturn), SECCODE_CALL(exit), SECCODE_CALL(exit_group), OPEN_TO_READ

static struct sock_filter looks[] = { COMMON, SECCODE_KILL };

/* Besides: a thread that stops another one, and ends (ptstop.h). */
#define THREAD_FLAGS (CLONE_VM | CLONE_THREAD | CLONE_SIGHAND)
#define WITH(request) SECCODE_WHEN(BPF_JEQ, (request), 0, 1), SECCODE_PERMIT
static struct sock_filter looks_into[] = { COMMON, SECCODE_CALL(process_vm_readv), SECCODE_CALL(read),
	SECCODE_CALL(waitid), SECCODE_CALL(futex), SECCODE_CALL(set_robust_list), SECCODE_CALL(rseq),
	SECCODE_CALL(munmap), SECCODE_CALL(madvise), SECCODE_CALL(clock_gettime), SECCODE_CALL(tgkill),
	SECCODE_CALL(gettid), SECCODE_CALL(getpid), SECCODE_CALL(rt_sigaction), SECCODE_CALL(brk),
	SECCODE_CALL(restart_syscall), /* what its children do interrupts what it waits for */
#ifdef __SANITIZE_ADDRESS__
	SECCODE_CALL(sched_getaffinity), SECCODE_CALL(sigaltstack), /* which its threads begin with */
#endif
	/* whose flags are in memory: the C library has another one for a kernel without it */
	SECCODE_WHEN(BPF_JEQ, SYS_clone3, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	SECCODE_WHEN(BPF_JEQ, SYS_clone, 0, 5), SECCODE_LOAD(args[0]), SECCODE_MASK(THREAD_FLAGS),
	SECCODE_WHEN(BPF_JEQ, THREAD_FLAGS, 1, 0), SECCODE_KILL, SECCODE_PERMIT,
	SECCODE_WHEN(BPF_JEQ, SYS_mprotect, 0, 4), SECCODE_LOAD(args[2]),
	SECCODE_WHEN(BPF_JSET, PROT_EXEC, 0, 1), SECCODE_KILL, SECCODE_PERMIT,
	SECCODE_WHEN(BPF_JEQ, SYS_mmap, 0, 6), SECCODE_LOAD(args[2]), SECCODE_WHEN(BPF_JSET, PROT_EXEC, 2, 0),
	SECCODE_LOAD(args[3]), SECCODE_WHEN(BPF_JSET, MAP_ANONYMOUS, 1, 0), SECCODE_KILL, SECCODE_PERMIT,
	SECCODE_WHEN(BPF_JEQ, SYS_ptrace, 0, 12), SECCODE_LOAD(args[0]), WITH(PTRACE_SEIZE),
	WITH(PTRACE_INTERRUPT), WITH(PTRACE_GETREGSET), WITH(PTRACE_DETACH), WITH(PTRACE_POKEUSER),
	SECCODE_KILL, SECCODE_KILL };
static const struct sock_fprog filter = { .len = ARRAY_LEN(looks), .filter = looks };
static const struct sock_fprog filter_into = { .len = ARRAY_LEN(looks_into), .filter = looks_into };
#define FILTER(memory) ((memory) ? &filter_into : &filter)
#else
#define FILTER(memory) NULL
#endif

uint64_t lookchild_caps(void)
{
	static const int caps[] = { CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SYS_ADMIN };

	return caps_bits(caps, ARRAY_LEN(caps));
}

__attribute__((noreturn)) static void work(const void *arg, int sock, pid_t parent)
{
	const struct lookchild_opts *o = arg;
	const struct sandbox_opts box = { .keep_fd = sock,
		.parent = parent,
		.comm = "thread-looker",
		.memory_bytes = MEMORY + MORE_MEMORY,
		.keep_caps = lookchild_caps(),
		.filter = FILTER(o->memory) };
	const size_t files = fdlimit_raise(FILES_MOST);
	struct work *w = calloc(1, sizeof(*w));

	if (w) {
		/* who asks waits for it */
		runsoon();
		w->sock = SANDBOX_FD;
		w->memory = o->memory;
		w->max_open = files > FILES_LEFT ? files - FILES_LEFT : 0;
		/* the first message says that it is there: looker_ready() */
		w->a.error = sandbox_enter(&box, NULL);
		if (answer(w) && !w->a.error)
			serve_all(w);
	}
	/* not _exit(2), under which a sanitizer would look for leaks */
	syscall(SYS_exit_group, 0);
	__builtin_unreachable();
}

int lookchild_start(const struct lookchild_opts *o, struct looker **ret, struct err *e)
{
	void *frame;
	pid_t pid;
	int sock;

	*ret = NULL;
	if (!lookchild_caps())
		return 0;
	/* pthread_cancel(3) loads a library, which cannot be loaded there: so does this */
	if (o->memory)
		backtrace(&frame, 1);
	pid = sandbox_start("looks at threads", work, o, &sock, e);
	return pid < 0 ? pid : looker_new(sock, pid, ret, e);
}
