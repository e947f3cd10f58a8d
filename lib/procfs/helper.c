/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/helper.h"
#include "base/clock.h"
#include "base/text.h"
#include "system/privileges.h"
#include "system/sandbox.h"
#include "system/seccomp.h"

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

const char *procfile_name(enum procfile f)
{
	static const char *const names[PROCFILE_COUNT] = { "schedstat", "status", "stat", "syscall", "stack",
		"wchan", "cgroup", "exe" };

	return f < PROCFILE_COUNT ? names[f] : "";
}

/* The process or thread that an entry of /proc or /proc/PID/task named NAME is of; 0 = of none. */
static uint32_t procfile_number(const char *name)
{
	uint64_t v = 0;

	for (const char *p = name; *p; p++) {
		if (*p < '0' || *p > '9' || v > UINT32_MAX / 16)
			return 0;
		v = v * 10 + (uint64_t)(*p - '0');
	}
	return (uint32_t)v;
}

#define LOOKWIRE_HEAD offsetof(struct lookwire_answer, files)

struct looker {
	struct asker *asker;
	struct lookwire_answer answer;
};

/* Over SOCK, the looker's from now on, to its process PID (0 = none of ours, for tests). *RET is the
 * caller's. */
static int looker_new(int sock, pid_t pid, struct looker **ret, struct err *e)
{
	struct looker *l = calloc(1, sizeof(*l));
	int rc;

	if (!l) {
		close(sock);
		return err_nomem(e, "the looker");
	}
	rc = asker_new(sock, pid, &l->asker, e);
	if (rc)
		free(l);
	else
		*ret = l;
	return rc;
}

int looker_ready(struct looker *l, struct err *e)
{
	return l ? asker_ready(l->asker, "the process that looks at threads", e) : 0;
}

void looker_free(struct looker *l)
{
	if (l)
		asker_free(l->asker);
	free(l);
}

uint32_t looker_pid(const struct looker *l)
{
	return l ? asker_pid(l->asker) : 0;
}

uint64_t looker_cpu_ns(const struct looker *l)
{
	uint32_t pid = looker_pid(l);
	clockid_t clock;

	return pid && clock_getcpuclockid((pid_t)pid, &clock) == 0 ? now_on(clock) : 0;
}

void looker_stats(struct looker *l, struct asker_stats *ret)
{
	asker_stats(l ? l->asker : NULL, ret);
}

/* How many bytes the answer has behind its head, or -errno: its own, or that there is none. */
static ssize_t ask(struct looker *l, struct lookwire_request *q)
{
	ssize_t n;

	if (!l)
		return -ENOTCONN;
	n = asker_ask(l->asker, q, sizeof(*q), &l->answer, sizeof(l->answer), NULL);
	if (n < 0)
		return n;
	return l->answer.error ? l->answer.error : n - (ssize_t)LOOKWIRE_HEAD;
}

int looker_files(struct looker *l, uint32_t pid, uint32_t tid, unsigned int wanted, bool keep,
	struct looker_texts *ret)
{
	struct lookwire_request q = {
		.kind = LOOKWIRE_FILES, .pid = pid, .tid = tid, .arg = wanted, .keep = keep
	};
	ssize_t n = ask(l, &q);
	const struct lookwire_files *f;
	size_t at = offsetof(struct lookwire_files, text);

	if (n < 0)
		return (int)n;
	f = &l->answer.files;
	for (size_t i = 0; i < PROCFILE_COUNT; i++) {
		ret->len[i] = (size_t)n < at ? -EPROTO : f->len[i];
		ret->text[i] = (const char *)f + at;
		if (ret->len[i] <= 0)
			continue;
		if ((size_t)ret->len[i] > (size_t)n - at)
			return -EPROTO;
		at += (size_t)ret->len[i];
	}
	return 0;
}

void looker_forget(struct looker *l, uint32_t pid, uint32_t tid)
{
	ask(l, &(struct lookwire_request){ .kind = LOOKWIRE_FORGET, .pid = pid, .tid = tid });
}

int looker_list(struct looker *l, uint32_t pid, void (*fn)(void *ctx, uint32_t number), void *ctx)
{
	struct lookwire_request q = { .kind = LOOKWIRE_LIST, .pid = pid };
	uint32_t *numbers;
	size_t n;

	do {
		ssize_t len = ask(l, &q);

		if (len < 0)
			return (int)len;
		n = (size_t)len / sizeof(uint32_t);
		/* FN may ask for something else */
		numbers = malloc((n + 1) * sizeof(*numbers));
		if (!numbers)
			return -ENOMEM;
		memcpy(numbers, l->answer.numbers, n * sizeof(*numbers));
		for (size_t i = 0; i < n; i++)
			fn(ctx, numbers[i]);
		q.arg += (uint32_t)n;
		free(numbers);
	} while (n == LOOKWIRE_NUMBERS);
	return 0;
}

/* The answer to Q, a copy that COPY gets the bytes of too. */
static int copy_all(struct looker *l, struct lookwire_request *q, const uint64_t *wanted, size_t n,
	struct ptcopy *copy, struct lookwire_copy *ret)
{
	ssize_t len;

	ptcopy_reset(copy);
	q->n = (uint32_t)MIN(n, (size_t)LOOKWIRE_WANTED);
	for (uint32_t i = 0; i < q->n; i++)
		q->wanted[i] = wanted[i];
	len = ask(l, q);
	if (len < 0)
		return (int)len;
	if (len != sizeof(*ret))
		return -EPROTO;
	*ret = l->answer.copy;
	for (uint32_t i = 0; i < MIN(ret->head.n_areas, (uint32_t)PTCOPY_AREAS); i++) {
		struct lookwire_request area = { .kind = LOOKWIRE_AREA, .arg = i };

		len = ask(l, &area);
		if (len < 0)
			return (int)len;
		if ((uint64_t)len != ret->head.areas[i].len || len > (ssize_t)sizeof(copy->bytes[i]))
			return -EPROTO;
		memcpy(copy->bytes[i], l->answer.bytes, (size_t)len);
	}
	copy->head = ret->head;
	return 0;
}

int looker_quiet(struct looker *l, pid_t pid, pid_t tid, const uint64_t *wanted, size_t n,
	struct ptcopy *copy, struct ptquiet_call *call)
{
	struct lookwire_request q = { .kind = LOOKWIRE_QUIET, .pid = (uint32_t)pid, .tid = (uint32_t)tid };
	struct lookwire_copy got = { 0 };
	int rc = copy_all(l, &q, wanted, n, copy, &got);

	*call = got.call;
	return rc;
}

int looker_stop(struct looker *l, pid_t tid, const uint64_t *wanted, size_t n, struct ptcopy *copy,
	struct ptstop_told *told)
{
	struct lookwire_request q = { .kind = LOOKWIRE_STOP, .pid = (uint32_t)tid, .tid = (uint32_t)tid };
	struct lookwire_copy got = { .told = { .again = -1 } };
	int rc = copy_all(l, &q, wanted, n, copy, &got);

	*told = got.told;
	return rc;
}

ssize_t looker_memory(struct looker *l, pid_t pid, uint64_t addr, void *to, size_t len)
{
	struct lookwire_request q = { .kind = LOOKWIRE_MEMORY,
		.pid = (uint32_t)pid,
		.n = (uint32_t)MIN(len, (size_t)LOOKWIRE_BYTES),
		.wanted = { addr } };
	ssize_t n = ask(l, &q);

	if (n > 0)
		memcpy(to, l->answer.bytes, MIN((size_t)n, len));
	return n;
}

static int list(uint32_t pid, void (*fn)(void *ctx, uint32_t number), void *ctx)
{
	char path[64] = "/proc";
	struct dirent *d;
	DIR *dir;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((d = readdir(dir))) {
		uint32_t number = procfile_number(d->d_name);

		if (number)
			fn(ctx, number);
	}
	closedir(dir);
	return 0;
}

int procreach_list(struct looker *l, uint32_t pid, void (*fn)(void *ctx, uint32_t number), void *ctx)
{
	int rc = looker_list(l, pid, fn, ctx);

	return rc == -ENOTCONN ? list(pid, fn, ctx) : rc;
}

ssize_t procreach_text(struct looker *l, uint32_t pid, uint32_t tid, enum procfile f, char *text, size_t cap)
{
	_cleanup_close_ int fd = -1;
	struct looker_texts asked;
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", pid, tid, procfile_name(f));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -errno : read(fd, text, cap);
	if (fd >= 0)
		return n < 0 ? -errno : n;
	if (looker_files(l, pid, tid, 1u << f, false, &asked) != 0)
		return n;
	n = asked.len[f];
	if (n > 0) {
		n = MIN(n, (ssize_t)cap);
		memcpy(text, asked.text[f], (size_t)n);
	}
	return n;
}

int ptreach_quiet(const struct ptreach *r, pid_t pid, pid_t tid, const uint64_t *wanted, size_t n,
	struct ptcopy *copy, struct ptquiet_call *call)
{
	int rc = looker_quiet(r->looker, pid, tid, wanted, n, copy, call);

	return rc == -ENOTCONN ? ptquiet_take(pid, tid, wanted, n, copy, call) : rc;
}

int ptreach_stop(const struct ptreach *r, pid_t tid, const uint64_t *wanted, size_t n, struct ptcopy *copy,
	struct ptstop_told *told)
{
	int rc = looker_stop(r->looker, tid, wanted, n, copy, told);

	return rc == -ENOTCONN ? ptstop_take(tid, wanted, n, copy, told) : rc;
}

ssize_t ptreach_memory(const struct ptreach *r, pid_t pid, uint64_t addr, void *to, size_t len)
{
	ssize_t n = looker_memory(r->looker, pid, addr, to, len);
	struct iovec here = { to, len }, there = { (void *)(uintptr_t)addr, len };

	if (n != -ENOTCONN)
		return n;
	n = process_vm_readv(pid, &here, 1, &there, 1, 0);
	return n < 0 ? -errno : n;
}

bool ptreach_word(const struct ptreach *r, pid_t pid, uint64_t addr, uint64_t *ret)
{
	return ptreach_memory(r, pid, addr, ret, sizeof(*ret)) == sizeof(*ret);
}

size_t fdlimit_raise(size_t most)
{
	struct rlimit rl;
	rlim_t before;

	if (getrlimit(RLIMIT_NOFILE, &rl) != 0)
		return 0;
	before = rl.rlim_cur;
	if (before < MIN(rl.rlim_max, (rlim_t)most)) {
		rl.rlim_cur = MIN(rl.rlim_max, (rlim_t)most);
		if (setrlimit(RLIMIT_NOFILE, &rl) != 0)
			rl.rlim_cur = before;
	}
	return (size_t)MIN(rl.rlim_cur, (rlim_t)SIZE_MAX);
}

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

/* Besides: a thread that stops another one, and ends (procfs/thread_copy.h). */
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

/* The capabilities that it keeps, as a bit set, of those that this process has. */
static uint64_t lookchild_caps(void)
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

int procpriv_renounce(struct err *e)
{
	cap_t none = cap_init();
	int rc = none && cap_set_proc(none) == 0 ? 0 : -errno;

	if (none)
		cap_free(none);
	return rc ? err_sys(e, rc, "cannot give up the capabilities of this program") : 0;
}

static void start(struct procpriv *p, bool memory, struct err *why)
{
	const struct lookchild_opts look = { .memory = memory };
	const struct openchild_opts open = { .no_bpf = true };
	int rc;

	p->looker_caps = lookchild_caps();
	p->opener_caps = openchild_caps(&open);
	rc = lookchild_start(&look, &p->looker, why);
	rc = rc ? rc : openchild_start(&open, &p->opener, why);
	rc = rc ? rc : looker_ready(p->looker, why);
	if (!rc)
		opener_ready(p->opener, why);
}

int procpriv_drop(struct procpriv *p, bool memory, struct err *why, struct err *e)
{
	*p = (struct procpriv){ 0 };
	*why = (struct err){ 0 };
	start(p, memory, why);
	/* whoever has to look himself must not be under Landlock: no other process would be shown */
	return looker_pid(p->looker) ? privdrop_recorder(0, &p->dropped, e)
				     : privdrop_now(&(struct privdrop_opts){ .paths = true }, &p->dropped, e);
}

void procpriv_close(struct procpriv *p)
{
	looker_free(p->looker);
	opener_free(p->opener);
	p->looker = NULL;
	p->opener = NULL;
}

void procpriv_put(const struct procpriv *p, struct buf *b)
{
	privdrop_put(&p->dropped, b);
	if (looker_pid(p->looker))
		privdrop_put_child("the process that looks at threads", p->looker_caps, b);
	if (opener_pid(p->opener))
		privdrop_put_child("the process that opens files", p->opener_caps, b);
	buftext_str(b, "; ");
	sandbox_put(b);
}

bool procpriv_missed(struct procpriv *p, struct err *why)
{
	struct asker_stats looker, opener;

	looker_stats(p->looker, &looker);
	opener_stats(p->opener, &opener);
	if (p->told || (!looker.why[0] && !opener.why[0]))
		return false;
	p->told = true;
	err_set(why, -ENOTCONN, "the process that %s is gone: %s",
		looker.why[0] ? "looks at threads" : "opens files", looker.why[0] ? looker.why : opener.why);
	return true;
}
