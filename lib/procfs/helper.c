/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/helper.h"
#include "base/clock.h"
#include "base/text.h"
#include "system/drop.h"
#include "system/privileges.h"
#include "system/sandbox.h"

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
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

const char *procfile_name(enum procfile f)
{
	static const char *const names[PROCFILE_COUNT] = { "schedstat", "status", "stat", "syscall", "stack",
		"wchan", "schedstat", "cgroup", "exe" };

	return f < PROCFILE_COUNT ? names[f] : "";
}

/* The process or thread that the entry NAME of /proc or /proc/PID/task belongs to; 0 = none. */
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

struct helper {
	struct worker *worker;
	union helper_reply reply;
	struct helper_files_reply files; /* of helper_files_of() */
};

int helper_ready(struct helper *l, struct err *e)
{
	return l ? worker_ready(l->worker, e) : 0;
}

void helper_free(struct helper *l)
{
	if (l)
		worker_free(l->worker);
	free(l);
}

uint32_t helper_pid(const struct helper *l)
{
	return l ? worker_pid(l->worker) : 0;
}

uint64_t helper_cpu_ns(const struct helper *l)
{
	uint32_t pid = helper_pid(l);
	clockid_t clock;

	return pid && clock_getcpuclockid((pid_t)pid, &clock) == 0 ? now_on(clock) : 0;
}

void helper_stats(struct helper *l, struct worker_stats *ret)
{
	worker_stats(l ? l->worker : NULL, ret);
}

/* The length of the reply, or -errno: that of the reply, or -ENOTCONN and the like if there is none. */
static ssize_t ask(struct helper *l, const struct helper_request *q)
{
	return l ? worker_call(l->worker, q, sizeof(*q), &l->reply, sizeof(l->reply), NULL, NULL) : -ENOTCONN;
}

/* The N bytes at *AT of the reply F of LEN bytes to *RET, and *AT past them; false if there are fewer. */
static bool text_at(const struct helper_files_reply *f, size_t len, int32_t n, size_t *at, const char **ret)
{
	*ret = (const char *)f + *at;
	if (n <= 0)
		return true;
	if ((size_t)n > len - *at)
		return false;
	*at += (size_t)n;
	return true;
}

/* The texts of the reply F of LEN bytes: of how many threads, at most MOST, or -errno. */
static ssize_t unpack(const struct helper_files_reply *f, size_t len, size_t most, struct helper_texts *ret)
{
	size_t at = offsetof(struct helper_files_reply, text);
	bool there = len >= at && f->n && f->n <= most;

	for (uint32_t i = 0; there && i < f->n; i++) {
		ret[i] = (struct helper_texts){ .at_ns = f->threads[i].at_ns,
			.stack_from = f->threads[i].stack_from,
			.stack_len = f->threads[i].stack_len };
		memcpy(ret[i].len, f->threads[i].len, sizeof(ret[i].len));
		for (size_t k = 0; there && k < PROCFILE_COUNT; k++) {
			if (k == PROCFILE_AGAIN)
				there = text_at(f, len, ret[i].stack_len, &at, &ret[i].stack);
			there = there && text_at(f, len, ret[i].len[k], &at, &ret[i].text[k]);
		}
	}
	return there ? (ssize_t)f->n : -EPROTO;
}

ssize_t helper_files_of(
	struct helper *l, const struct helper_thread *threads, size_t n, struct helper_texts *ret)
{
	struct helper_request q = { .kind = HELPER_FILES, .n = (uint32_t)n, .keep = true };
	ssize_t len;

	if (!l)
		return -ENOTCONN;
	if (!n || n > HELPER_THREADS)
		return -EINVAL;
	memcpy(q.threads, threads, n * sizeof(*threads));
	len = worker_call(l->worker, &q, sizeof(q), &l->files, sizeof(l->files), NULL, NULL);
	len = len < 0 ? len : unpack(&l->files, (size_t)len, n, ret);
	for (ssize_t i = 0; i < len; i++)
		ret[i].files = threads[i].files;
	return len;
}

int helper_files(struct helper *l, uint32_t pid, uint32_t tid, unsigned int wanted, bool keep,
	struct helper_texts *ret)
{
	struct helper_request q = {
		.kind = HELPER_FILES, .n = 1, .keep = keep, .threads = { { pid, tid, wanted, false } }
	};
	ssize_t n = ask(l, &q);

	n = n < 0 ? n : unpack(&l->reply.files, (size_t)n, 1, ret);
	if (n < 0)
		return (int)n;
	ret->files = wanted;
	return 0;
}

void helper_forget(struct helper *l, uint32_t pid, uint32_t tid)
{
	ask(l, &(struct helper_request){ .kind = HELPER_FORGET, .pid = pid, .tid = tid });
}

int helper_list(struct helper *l, uint32_t pid, void (*fn)(void *ctx, uint32_t number), void *ctx)
{
	struct helper_request q = { .kind = HELPER_LIST, .pid = pid };
	uint32_t *numbers;
	size_t n;

	do {
		ssize_t len = ask(l, &q);

		if (len < 0)
			return (int)len;
		n = (size_t)len / sizeof(uint32_t);
		/* FN may send a request, which overwrites the reply */
		numbers = malloc((n + 1) * sizeof(*numbers));
		if (!numbers)
			return -ENOMEM;
		memcpy(numbers, l->reply.numbers, n * sizeof(*numbers));
		for (size_t i = 0; i < n; i++)
			fn(ctx, numbers[i]);
		q.arg += (uint32_t)n;
		free(numbers);
	} while (n == HELPER_NUMBERS);
	return 0;
}

/* The bytes of area I, LEN of them, to COPY. */
static int copy_area(struct helper *l, struct thread_copy *copy, uint32_t i, uint64_t len)
{
	ssize_t n = ask(l, &(struct helper_request){ .kind = HELPER_AREA, .arg = i });

	if (n < 0)
		return (int)n;
	if ((uint64_t)n != len)
		return -EPROTO;
	memcpy(copy->bytes[i], l->reply.bytes, (size_t)n);
	return 0;
}

/* Request a copy with Q, to COPY; of the reply, CALL and REPORTED are for the caller. */
static int copy_all(struct helper *l, struct helper_request *q, const uint64_t *wanted, size_t n,
	struct thread_copy *copy, struct quiet_copy_call *call, struct stop_copy_report *reported)
{
	size_t at = offsetof(struct helper_copy_reply, bytes);
	struct thread_copy_head head;
	ssize_t len;
	int rc = 0;

	thread_copy_reset(copy);
	q->n = (uint32_t)MIN(n, (size_t)HELPER_WANTED);
	for (uint32_t i = 0; i < q->n; i++)
		q->wanted[i] = wanted[i];
	len = ask(l, q);
	if (len < 0)
		return (int)len;
	if ((size_t)len < at)
		return -EPROTO;
	head = l->reply.copy.head;
	*call = l->reply.copy.call;
	*reported = l->reply.copy.reported;
	for (uint32_t i = 0; !rc && i < MIN(head.n_areas, (uint32_t)THREAD_COPY_AREAS); i++) {
		const uint64_t area = head.areas[i].len;

		if (area > sizeof(copy->bytes[i])) {
			rc = -EPROTO;
		} else if (area <= (size_t)len - at) {
			memcpy(copy->bytes[i], (const char *)&l->reply + at, (size_t)area);
			at += (size_t)area;
		} else {
			at = (size_t)len; /* which is overwritten */
			rc = copy_area(l, copy, i, area);
		}
	}
	if (!rc)
		copy->head = head;
	return rc;
}

int helper_quiet(struct helper *l, pid_t pid, pid_t tid, const uint64_t *wanted, size_t n,
	struct thread_copy *copy, struct quiet_copy_call *call)
{
	struct helper_request q = { .kind = HELPER_QUIET, .pid = (uint32_t)pid, .tid = (uint32_t)tid };
	struct stop_copy_report none;

	*call = (struct quiet_copy_call){ 0 };
	return copy_all(l, &q, wanted, n, copy, call, &none);
}

int helper_stop(struct helper *l, pid_t tid, const uint64_t *wanted, size_t n, struct thread_copy *copy,
	struct stop_copy_report *reported)
{
	struct helper_request q = { .kind = HELPER_STOP, .pid = (uint32_t)tid, .tid = (uint32_t)tid };
	struct quiet_copy_call none;

	*reported = (struct stop_copy_report){ .again = -1 };
	return copy_all(l, &q, wanted, n, copy, &none, reported);
}

ssize_t helper_memory(struct helper *l, pid_t pid, uint64_t addr, void *to, size_t len)
{
	struct helper_request q = { .kind = HELPER_MEMORY,
		.pid = (uint32_t)pid,
		.n = (uint32_t)MIN(len, (size_t)HELPER_BYTES),
		.wanted = { addr } };
	ssize_t n = ask(l, &q);

	if (n > 0)
		memcpy(to, l->reply.bytes, MIN((size_t)n, len));
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

int proc_view_list(struct helper *l, uint32_t pid, void (*fn)(void *ctx, uint32_t number), void *ctx)
{
	int rc = helper_list(l, pid, fn, ctx);

	return rc == -ENOTCONN ? list(pid, fn, ctx) : rc;
}

ssize_t proc_view_text(struct helper *l, uint32_t pid, uint32_t tid, enum procfile f, char *text, size_t cap)
{
	_cleanup_close_ int fd = -1;
	struct helper_texts requested;
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", pid, tid, procfile_name(f));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -errno : read(fd, text, cap);
	if (fd >= 0)
		return n < 0 ? -errno : n;
	if (helper_files(l, pid, tid, 1u << f, false, &requested) != 0)
		return n;
	n = requested.len[f];
	if (n > 0) {
		n = MIN(n, (ssize_t)cap);
		memcpy(text, requested.text[f], (size_t)n);
	}
	return n;
}

int thread_memory_quiet(const struct thread_memory *r, pid_t pid, pid_t tid, const uint64_t *wanted, size_t n,
	struct thread_copy *copy, struct quiet_copy_call *call)
{
	int rc = helper_quiet(r->helper, pid, tid, wanted, n, copy, call);

	return rc == -ENOTCONN ? quiet_copy_take(pid, tid, wanted, n, copy, call) : rc;
}

int thread_memory_stop(const struct thread_memory *r, pid_t tid, const uint64_t *wanted, size_t n,
	struct thread_copy *copy, struct stop_copy_report *reported)
{
	int rc = helper_stop(r->helper, tid, wanted, n, copy, reported);

	return rc == -ENOTCONN ? stop_copy_take(tid, wanted, n, copy, reported) : rc;
}

ssize_t thread_memory_memory(const struct thread_memory *r, pid_t pid, uint64_t addr, void *to, size_t len)
{
	ssize_t n = helper_memory(r->helper, pid, addr, to, len);
	struct iovec here = { to, len }, there = { (void *)(uintptr_t)addr, len };

	if (n != -ENOTCONN)
		return n;
	n = process_vm_readv(pid, &here, 1, &there, 1, 0);
	return n < 0 ? -errno : n;
}

bool thread_memory_word(const struct thread_memory *r, pid_t pid, uint64_t addr, uint64_t *ret)
{
	return thread_memory_memory(r, pid, addr, ret, sizeof(*ret)) == sizeof(*ret);
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

#define SLOTS 65536 /* threads whose files are kept open, by the last bits of their TID */
#define FILES_LEFT 64 /* descriptors for everything else */
#define FILES_MOST (2 * SLOTS)
#define MEMORY (64u << 20) /* bytes: stacks of the threads that stop others */
#ifdef __SANITIZE_ADDRESS__
#define MORE_MEMORY (UINT64_C(32) << 40) /* bytes of address space, for the sanitizer's shadow */
#else
#define MORE_MEMORY 0
#endif

_Static_assert(HELPER_BYTES == THREAD_COPY_AREA_BYTES, "an area is an answer");

struct slot {
	uint32_t pid, tid;
	int fd[PROCFILE_LOOK]; /* plus 1; 0 = not open */
};

struct work {
	bool memory;
	size_t n_open, max_open;
	struct slot slots[SLOTS];
	struct thread_copy copy;
	struct helper_request q;
	union helper_reply a;
	size_t len; /* of the reply */
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

/* The slot for the descriptors of a thread; closes those of another thread in it. */
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

/* Bytes to read of each file, and of all of a thread with its stack. */
#define SMALL_TEXT 1024
#define THREAD_TEXT (3 * PROCFILE_TEXT + PROCFILE_COUNT * SMALL_TEXT + HELPER_STACK)
_Static_assert(THREAD_TEXT <= HELPER_TEXT, "the first thread of a request fits in the reply");

static size_t most_of(enum procfile f)
{
	if (f == PROCFILE_EXE)
		return PROCFILE_EXE_BYTES;
	return f == PROCFILE_STATUS || f == PROCFILE_STACK || f == PROCFILE_CGROUP ? PROCFILE_TEXT
										   : SMALL_TEXT;
}

static int32_t read_file(
	struct work *w, struct slot *s, const struct helper_thread *t, enum procfile of, char *to)
{
	const enum procfile f = of == PROCFILE_AGAIN ? PROCFILE_SCHEDSTAT : of;
	bool kept = s && f < PROCFILE_LOOK && s->fd[f];
	int fd = kept ? s->fd[f] - 1 : open_file(t->pid, t->tid, f);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = pread(fd, to, most_of(f), 0);
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

/* Does stat, the LEN bytes at P, say that the thread runs, or has ended? Its name may contain ')' too. */
static bool is_no_wait(const char *p, size_t len)
{
	const char *close = memrchr(p, ')', len);

	return close && p + len - close > 2 && (close[2] == 'R' || close[2] == 'Z' || close[2] == 'X');
}

/* The files that need not be read, by the text of F at P. */
static unsigned int needless(enum procfile f, const char *p, int32_t len)
{
	const unsigned int wchan = 1u << PROCFILE_WCHAN,
			   place = wchan | 1u << PROCFILE_STACK | 1u << PROCFILE_AGAIN;

	if (len <= 0)
		return 0;
	if (f == PROCFILE_STAT && is_no_wait(p, (size_t)len))
		return place | 1u << PROCFILE_SYSCALL;
	if (f == PROCFILE_SYSCALL && *p == 'r')
		return place;
	return f == PROCFILE_STACK ? wchan : 0;
}

/* The memory of the stack of thread TID to TO, by the text of its syscall: its length, or -errno. */
static int32_t read_stack(uint32_t tid, const char *text, int32_t len, char *to, uint64_t *from)
{
	char call_text[SMALL_TEXT + 1];
	struct quiet_copy_call call;

	if (len <= 0)
		return len;
	snprintf(call_text, sizeof(call_text), "%.*s", (int)len, text);
	if (!quiet_copy_parse(call_text, &call))
		return -EAGAIN;
	return (int32_t)quiet_copy_stack((pid_t)tid, call.sp, to, HELPER_STACK, from);
}

/* Read what T asks for, as thread I of the reply, to TO: its length. */
static size_t serve_thread(struct work *w, const struct helper_thread *t, uint32_t i, char *to)
{
	struct slot *s = w->q.keep ? slot_of(w, t->pid, t->tid) : NULL;
	struct helper_files_reply *files = &w->a.files;
	int32_t *len = files->threads[i].len, *stack_len = &files->threads[i].stack_len;
	unsigned int wanted = t->files;
	const char *call = to;
	bool gone = false;
	size_t at = 0;

	files->threads[i].at_ns = now_ns();
	for (unsigned int f = 0; f < PROCFILE_COUNT; f++) {
		if (!(wanted >> f & 1))
			continue;
		if (f == PROCFILE_SYSCALL)
			call = to + at;
		/* before schedstat is read again, which shows whether it is that of the same wait */
		if (f == PROCFILE_AGAIN && t->stack) {
			*stack_len = read_stack(
				t->tid, call, len[PROCFILE_SYSCALL], to + at, &files->threads[i].stack_from);
			at += *stack_len > 0 ? (size_t)*stack_len : 0;
		}
		len[f] = read_file(w, s, t, f, to + at);
		wanted &= ~needless(f, to + at, len[f]);
		gone |= len[f] == -ESRCH;
		at += len[f] > 0 ? (size_t)len[f] : 0;
	}
	if (gone && s)
		close_slot(w, s);
	return at;
}

static int serve_files(struct work *w)
{
	struct helper_files_reply *files = &w->a.files;
	const uint32_t n = w->q.n;
	size_t at = 0;

	if (!n || n > HELPER_THREADS)
		return -EPERM;
	for (uint32_t i = 0; i < n; i++)
		if (!w->q.threads[i].pid || (w->q.threads[i].stack && !w->memory))
			return -EPERM;
	memset(files, 0, offsetof(struct helper_files_reply, text));
	while (files->n < n && at + THREAD_TEXT <= sizeof(files->text)) {
		at += serve_thread(w, &w->q.threads[files->n], files->n, files->text + at);
		files->n++;
	}
	w->len = offsetof(struct helper_files_reply, text) + at;
	return 0;
}

static int serve_forget(struct work *w)
{
	struct slot *s = &w->slots[w->q.tid % SLOTS];

	if (s->pid == w->q.pid && s->tid == w->q.tid)
		close_slot(w, s);
	return 0;
}

/* --- lists; with getdents64(2), because opendir(3) allocates memory --- */

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
	while (n < HELPER_NUMBERS && (got = syscall(SYS_getdents64, fd, bytes, sizeof(bytes))) > 0) {
		for (long at = 0; at < got && n < HELPER_NUMBERS;) {
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
	const struct helper_request *q = &w->q;
	struct helper_copy_reply *c = &w->a.copy;
	size_t at = 0;
	int rc;

	if (q->n > HELPER_WANTED)
		return -EPERM;
	memset(c, 0, offsetof(struct helper_copy_reply, bytes));
	rc = q->kind == HELPER_QUIET
		     ? quiet_copy_take((pid_t)q->pid, (pid_t)q->tid, q->wanted, q->n, &w->copy, &c->call)
		     : stop_copy_take((pid_t)q->tid, q->wanted, q->n, &w->copy, &c->reported);
	c->head = w->copy.head;
	for (uint32_t i = 0; i < c->head.n_areas && c->head.areas[i].len <= sizeof(c->bytes) - at; i++) {
		memcpy(c->bytes + at, w->copy.bytes[i], (size_t)c->head.areas[i].len);
		at += (size_t)c->head.areas[i].len;
	}
	w->len = offsetof(struct helper_copy_reply, bytes) + at;
	return rc;
}

static int serve_area(struct work *w)
{
	uint32_t i = w->q.arg;

	if (i >= MIN(w->copy.head.n_areas, (uint32_t)THREAD_COPY_AREAS))
		return -EPERM;
	w->len = (size_t)w->copy.head.areas[i].len;
	memcpy(w->a.bytes, w->copy.bytes[i], w->len);
	return 0;
}

static int serve_memory(struct work *w)
{
	struct iovec here = { w->a.bytes, w->q.n }, there = { (void *)(uintptr_t)w->q.wanted[0], w->q.n };
	ssize_t n;

	if (w->q.n > HELPER_BYTES)
		return -EPERM;
	n = process_vm_readv((pid_t)w->q.pid, &here, 1, &there, 1, 0);
	if (n < 0)
		return -errno;
	w->len = (size_t)n;
	return 0;
}

/* --- requests --- */

static const struct {
	int (*fn)(struct work *w);
	bool memory, of_process; /* of_process: PID must not be 0 */
} kinds[HELPER_KINDS] = {
	[HELPER_FILES] = { serve_files, false, false },
	[HELPER_FORGET] = { serve_forget, false, true },
	[HELPER_LIST] = { serve_list, false, false },
	[HELPER_QUIET] = { serve_copy, true, true },
	[HELPER_STOP] = { serve_copy, true, true },
	[HELPER_AREA] = { serve_area, true, false },
	[HELPER_MEMORY] = { serve_memory, true, true },
};

static int serve(struct work *w)
{
	uint32_t kind = w->q.kind;

	if (kind >= HELPER_KINDS || !kinds[kind].fn || (kinds[kind].memory && !w->memory) ||
		(kinds[kind].of_process && !w->q.pid))
		return -EPERM;
	return kinds[kind].fn(w);
}

/* A worker_fn; the request is already in W. */
static int answer(void *ctx, const void *request, size_t len, int *fds, struct worker_answer *a)
{
	struct work *w = ctx;
	int rc;

	(void)request, (void)fds;
	w->len = 0;
	rc = len == sizeof(w->q) ? serve(w) : -EPERM;
	a->bytes = &w->a;
	a->len = w->len;
	return rc;
}

/* --- its sandbox --- */

/* Nothing can be written or created. */
#define BASE_RULES                                                                                           \
	SYSCALL_ALLOW(pread64), SYSCALL_ALLOW(recvmsg), SYSCALL_ALLOW(sendmsg), SYSCALL_ALLOW(close),        \
		SYSCALL_ALLOW(getdents64), SYSCALL_ALLOW(rt_sigprocmask), SYSCALL_ALLOW(rt_sigreturn),       \
		SYSCALL_ALLOW(exit), SYSCALL_ALLOW(exit_group),                                              \
		SYSCALL_ALLOW(clock_gettime), /* where the vdso cannot read the clock */                     \
		SYSCALL_ALLOW_IF(                                                                            \
			openat, SYSCALL_BITS(2, O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND, O_RDONLY))

static const struct syscall_rule base_rules[] = { BASE_RULES };

/* Also: memory, and a thread that stops another one and ends (procfs/thread_copy.h). */
#define THREAD_FLAGS (CLONE_VM | CLONE_THREAD | CLONE_SIGHAND)
static const struct syscall_rule memory_rules[] = { BASE_RULES, SYSCALL_ALLOW(process_vm_readv),
	SYSCALL_ALLOW(read), SYSCALL_ALLOW(waitid), SYSCALL_ALLOW(futex), SYSCALL_ALLOW(set_robust_list),
	SYSCALL_ALLOW(rseq), SYSCALL_ALLOW(munmap), SYSCALL_ALLOW(madvise), SYSCALL_ALLOW(tgkill),
	SYSCALL_ALLOW(gettid), SYSCALL_ALLOW(getpid), SYSCALL_ALLOW(rt_sigaction), SYSCALL_ALLOW(brk),
	SYSCALL_ALLOW(restart_syscall), /* events of its children interrupt what it waits for */
#ifdef __SANITIZE_ADDRESS__
	SYSCALL_ALLOW(sched_getaffinity), SYSCALL_ALLOW(sigaltstack), /* its threads begin with these */
#endif
	/* clone3(2) has its flags in memory; on ENOSYS, the C library uses clone(2) */
	SYSCALL_REFUSE(clone3, ENOSYS), SYSCALL_ALLOW_IF(clone, SYSCALL_BITS(0, THREAD_FLAGS, THREAD_FLAGS)),
	SYSCALL_ALLOW_IF(mprotect, SYSCALL_BITS(2, PROT_EXEC, 0)),
	SYSCALL_ALLOW_IF_BOTH(
		mmap, SYSCALL_BITS(2, PROT_EXEC, 0), SYSCALL_BITS(3, MAP_ANONYMOUS, MAP_ANONYMOUS)),
	SYSCALL_ALLOW_IF(ptrace, SYSCALL_INT(0, PTRACE_SEIZE)),
	SYSCALL_ALLOW_IF(ptrace, SYSCALL_INT(0, PTRACE_INTERRUPT)),
	SYSCALL_ALLOW_IF(ptrace, SYSCALL_INT(0, DROP_PTRACE_REGISTERS)),
	SYSCALL_ALLOW_IF(ptrace, SYSCALL_INT(0, PTRACE_DETACH)),
	SYSCALL_ALLOW_IF(ptrace, SYSCALL_INT(0, PTRACE_POKEUSER)) };

/* The capabilities that the helper keeps, of those that this process has, as a bit set. */
static uint64_t helper_caps(void)
{
	static const int caps[] = { CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SYS_ADMIN };

	return priv_bits(caps, ARRAY_LEN(caps));
}

struct start {
	bool memory;
	struct work *work;
};

/* Runs in the helper before its filter, under which it may be unable to allocate memory. */
static int prepare(void *arg, struct err *e)
{
	struct start *s = arg;
	const size_t files = fdlimit_raise(FILES_MOST);

	s->work = calloc(1, sizeof(*s->work));
	if (!s->work)
		return err_nomem(e, "the files of threads");
	s->work->memory = s->memory;
	s->work->max_open = files > FILES_LEFT ? files - FILES_LEFT : 0;
	return 0;
}

static int run(void *arg, int sock)
{
	struct work *w = ((struct start *)arg)->work;

	worker_serve(sock, &w->q, sizeof(w->q), answer, w);
	return 0;
}

int helper_start(const struct helper_opts *o, struct helper **ret, struct err *e)
{
	const struct sandbox_opts box = { .comm = "thread-helper",
		.memory_bytes = MEMORY + MORE_MEMORY,
		.keep_caps = helper_caps(),
		.rules = o->memory ? memory_rules : base_rules,
		.n_rules = o->memory ? ARRAY_LEN(memory_rules) : ARRAY_LEN(base_rules) };
	struct start start = { .memory = o->memory };
	const struct worker_opts opts = { .who = "the process that samples threads",
		.sandbox = &box,
		.hurry = true,
		.prepare = prepare,
		.run = run,
		.arg = &start };
	struct helper *l;
	void *frame;
	int rc;

	*ret = NULL;
	if (!box.keep_caps)
		return 0;
	/* pthread_cancel(3) loads a library, which is impossible in the sandbox: this loads it now */
	if (o->memory)
		backtrace(&frame, 1);
	l = calloc(1, sizeof(*l));
	if (!l)
		return err_nomem(e, opts.who);
	rc = worker_start(&opts, &l->worker, e);
	if (rc)
		free(l);
	else
		*ret = l;
	return rc;
}

int procfs_priv_renounce(struct err *e)
{
	cap_t none = cap_init();
	int rc = none && cap_set_proc(none) == 0 ? 0 : -errno;

	if (none)
		cap_free(none);
	return rc ? err_sys(e, rc, "cannot give up the capabilities of this program") : 0;
}

static void start(struct procfs_priv *p, bool memory, struct err *why)
{
	const struct helper_opts without = { .memory = memory };
	const struct broker_opts open = { .no_bpf = true };
	int rc;

	p->helper_caps = helper_caps();
	p->broker_caps = broker_caps(&open);
	rc = helper_start(&without, &p->helper, why);
	rc = rc ? rc : broker_start(&open, &p->broker, why);
	rc = rc ? rc : helper_ready(p->helper, why);
	if (!rc)
		worker_ready(p->broker, why);
}

int procfs_priv_drop(struct procfs_priv *p, bool memory, struct err *why, struct err *e)
{
	void *frame;
	bool alone;

	*p = (struct procfs_priv){ 0 };
	*why = (struct err){ 0 };
	start(p, memory, why);
	/* without a helper this process looks at others by itself: under Landlock /proc would show none */
	alone = !helper_pid(p->helper);
	if (alone && memory)
		backtrace(&frame, 1); /* as in helper_start() */
	worker_first_without_memory();
	worker_hurry();
	return priv_drop_recorder(
		&(struct priv_drop_recorder_opts){ .alone = alone, .trace = alone && memory }, &p->dropped,
		e);
}

void procfs_priv_close(struct procfs_priv *p)
{
	helper_free(p->helper);
	worker_free(p->broker);
	p->helper = NULL;
	p->broker = NULL;
}

void procfs_priv_put(const struct procfs_priv *p, struct buf *b)
{
	priv_drop_put(&p->dropped, b);
	if (helper_pid(p->helper))
		priv_drop_put_child("the process that samples threads", p->helper_caps, b);
	if (worker_pid(p->broker))
		priv_drop_put_child("the process that opens files", p->broker_caps, b);
	buftext_str(b, "; ");
	sandbox_put(b);
}

bool procfs_priv_missed(struct procfs_priv *p, struct err *why)
{
	struct worker_stats helper, broker;

	helper_stats(p->helper, &helper);
	worker_stats(p->broker, &broker);
	if (p->reported || (!helper.why[0] && !broker.why[0]))
		return false;
	p->reported = true;
	err_set(why, -ENOTCONN, "%s", helper.why[0] ? helper.why : broker.why);
	return true;
}
