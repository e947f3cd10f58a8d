/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/broker.h"
#include "offcpu_abi.h"
#include "system/privileges.h"
#include "system/proc.h"
#include "system/sandbox.h"
#include "unwind_abi.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define WHO "the process that opens files"

int broker_ask(struct worker *o, const struct broker_request *q, struct broker_reply *a, int *fd)
{
	const size_t head = offsetof(struct broker_reply, path);
	ssize_t n = worker_call(o, q, offsetof(struct broker_request, path) + strlen(q->path) + 1, a,
		sizeof(*a) - 1, fd, NULL);

	if (n < 0)
		return (int)n;
	((char *)a)[MAX((size_t)n, head)] = '\0';
	if ((size_t)n >= head)
		return 0;
	if (fd && *fd >= 0)
		close(*fd);
	return -EPROTO;
}

/* A descriptor, and the file's status if ST is not NULL. */
static int ask_fd(struct worker *o, struct broker_request *q, struct stat *st)
{
	struct broker_reply a;
	int fd = -1, rc = broker_ask(o, q, &a, &fd);

	if (rc)
		return rc;
	if (st)
		*st = a.st;
	return fd >= 0 ? fd : -EMFILE; /* no free descriptor here to receive it */
}

static int ask_stat(struct worker *o, struct broker_request *q, struct stat *st)
{
	struct broker_reply a;
	int rc = broker_ask(o, q, &a, NULL);

	if (!rc)
		*st = a.st;
	return rc;
}

int broker_proc(struct worker *o, enum broker_kind kind, uint32_t pid)
{
	struct broker_request q = { .kind = kind, .pid = pid };

	return ask_fd(o, &q, NULL);
}

int broker_maps_exe(struct worker *o, uint32_t pid, char **exe)
{
	struct broker_request q = { .kind = BROKER_MAPS, .pid = pid, .arg = 1 };
	struct broker_reply a;
	int fd = -1, rc = broker_ask(o, &q, &a, &fd);

	*exe = rc == 0 && a.path[0] ? strdup(a.path) : NULL;
	return rc ? rc : fd >= 0 ? fd : -EMFILE;
}

int broker_mapping(struct worker *o, uint32_t pid, uint64_t start, uint64_t end, struct stat *st)
{
	struct broker_request q = { .kind = BROKER_MAPPING, .pid = pid, .start = start, .end = end };

	return ask_fd(o, &q, st);
}

int broker_mapping_stat(struct worker *o, uint32_t pid, uint64_t start, uint64_t end, struct stat *st)
{
	struct broker_request q = {
		.kind = BROKER_MAPPING, .pid = pid, .status_only = 1, .start = start, .end = end
	};

	return ask_stat(o, &q, st);
}

static int ask_path(struct worker *o, uint32_t pid, const char *path, bool status_only, struct stat *st)
{
	struct broker_request q = { .kind = BROKER_PATH, .pid = pid, .status_only = status_only };

	if ((size_t)snprintf(q.path, sizeof(q.path), "%s", path) >= sizeof(q.path))
		return -ENAMETOOLONG;
	return status_only ? ask_stat(o, &q, st) : ask_fd(o, &q, st);
}

int broker_path(struct worker *o, uint32_t pid, const char *path, struct stat *st)
{
	return ask_path(o, pid, path, false, st);
}

int broker_path_stat(struct worker *o, uint32_t pid, const char *path, struct stat *st)
{
	return ask_path(o, pid, path, true, st);
}

int broker_tmp_stat(struct worker *o, uint32_t pid, struct stat *st)
{
	struct broker_request q = { .kind = BROKER_TMP, .pid = pid };

	return ask_stat(o, &q, st);
}

int broker_perf_map(struct worker *o, uint32_t pid, uint32_t number, struct stat *st)
{
	struct broker_request q = { .kind = BROKER_PERF_MAP, .pid = pid, .arg = number };

	return ask_fd(o, &q, st);
}

int broker_bpf_map(struct worker *o, enum broker_kind kind, uint32_t n, bool wakers)
{
	struct broker_request q = { .kind = kind, .arg = n, .start = wakers };

	return ask_fd(o, &q, NULL);
}

int broker_event(struct worker *o, const struct procevent_how *how, int32_t tid, uint32_t cpu)
{
	struct broker_request q = { .kind = BROKER_EVENT,
		.pid = (uint32_t)tid,
		.arg = cpu,
		.start = how->prompt,
		.end = how->inherit_thread };

	return ask_fd(o, &q, NULL);
}

#define AGG_MOST (1u << 22) /* elements; record/bpf.c requests no more */

/* --- serving requests; everything is on the stack: the filter allows no allocation --- */

struct reply {
	struct broker_reply a;
	int fd; /* sent with it; -1 = none */
};

typedef int serve_fn(const struct broker_request *q, struct reply *r);

/* Reply with FD, or with errno if FD is -1. */
static int hand_over(struct reply *r, int fd)
{
	r->fd = fd;
	return fd < 0 ? -errno : 0;
}

static int read_exe(uint32_t pid, struct reply *r)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	n = readlinkat(AT_FDCWD, path, r->a.path, sizeof(r->a.path) - 1);
	if (n < 0)
		return -errno;
	r->a.path[n] = '\0';
	return 0;
}

static int serve_maps(const struct broker_request *q, struct reply *r)
{
	char path[64];

	if (q->arg)
		read_exe(q->pid, r); /* if it fails, `path` stays empty */
	snprintf(path, sizeof(path), "/proc/%u/maps", q->pid);
	return hand_over(r, open(path, O_RDONLY | O_CLOEXEC));
}

static int serve_status(const struct broker_request *q, struct reply *r)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/status", q->pid);
	return hand_over(r, open(path, O_RDONLY | O_CLOEXEC));
}

/*
 * Reopen FD, an O_PATH descriptor, for reading if it is a regular file: opening a
 * device can have side effects, and a FIFO blocks.
 */
static int open_regular(int fd, bool status_only, struct reply *r)
{
	char again[64];

	if (fd < 0 || fstat(fd, &r->a.st) != 0)
		return -errno;
	if (!S_ISREG(r->a.st.st_mode))
		return -EMEDIUMTYPE;
	if (status_only)
		return 0;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	return hand_over(r, open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

static int serve_mapping(const struct broker_request *q, struct reply *r)
{
	_cleanup_close_ int fd = -1;
	char path[96];

	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", q->pid, (unsigned long long)q->start,
		(unsigned long long)q->end);
	fd = open(path, O_PATH | O_CLOEXEC);
	return open_regular(fd, q->status_only, r);
}

static int open_root(uint32_t pid)
{
	char path[64] = "/";

	if (pid)
		snprintf(path, sizeof(path), "/proc/%u/root", pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int open_below(int dir, const char *path, int flags, unsigned int resolve)
{
	const struct open_how how = { .flags = (unsigned int)(flags | O_PATH | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve };

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/* Whether FD is an ELF program or library. A core is not: it holds the memory of a process. */
static bool is_program(int fd)
{
	unsigned char head[18];

	return pread(fd, head, sizeof(head), 0) == sizeof(head) && memcmp(head, ELFMAG, SELFMAG) == 0 &&
	       (head[16] == ET_EXEC || head[16] == ET_DYN) && head[17] == 0;
}

static int serve_path(const struct broker_request *q, struct reply *r)
{
	_cleanup_close_ int root = open_root(q->pid), fd = -1;
	int rc;

	if (root < 0)
		return -errno;
	fd = open_below(root, q->path, 0, RESOLVE_NO_SYMLINKS);
	rc = open_regular(fd, q->status_only, r);
	if (rc || r->fd < 0 || is_program(r->fd))
		return rc;
	close(r->fd);
	r->fd = -1;
	return -ENOEXEC;
}

/* /tmp may be a symbolic link within its root. */
static int open_tmp(uint32_t pid)
{
	_cleanup_close_ int root = open_root(pid);

	return root < 0 ? -1 : open_below(root, "tmp", O_DIRECTORY, 0);
}

static int serve_tmp(const struct broker_request *q, struct reply *r)
{
	_cleanup_close_ int fd = open_tmp(q->pid);

	return fd >= 0 && fstat(fd, &r->a.st) == 0 ? 0 : -errno;
}

static int serve_perf_map(const struct broker_request *q, struct reply *r)
{
	_cleanup_close_ int tmp = open_tmp(q->pid), fd = -1;
	char name[64];

	if (tmp < 0)
		return -errno;
	snprintf(name, sizeof(name), "perf-%u.map", q->arg);
	fd = openat(tmp, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return open_regular(fd, false, r);
}

/* Makes the system call directly: libbpf would first probe for features with other system calls. */
static int create_map(union bpf_attr *attr, const char *name)
{
	snprintf(attr->map_name, sizeof(attr->map_name), "%s", name);
	return (int)syscall(SYS_bpf, BPF_MAP_CREATE, attr, sizeof(*attr));
}

static int serve_agg_map(const struct broker_request *q, struct reply *r)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_HASH,
		.key_size = q->start ? sizeof(struct offcpu_key) : OFFCPU_KEY_BARE,
		.value_size = sizeof(struct offcpu_value),
		.max_entries = q->arg };

	return q->arg && q->arg <= AGG_MOST ? hand_over(r, create_map(&attr, "agg")) : -EPERM;
}

static int serve_chunk_map(const struct broker_request *q, struct reply *r)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = sizeof(uint32_t),
		.value_size = UNWIND_CHUNK_BYTES,
		.max_entries = 1,
		.map_flags = BPF_F_MMAPABLE };

	(void)q;
	return hand_over(r, create_map(&attr, "unwind_chunk"));
}

/* Not of the whole machine, nor on any CPU: then the number would be negative. */
static int serve_event(const struct broker_request *q, struct reply *r)
{
	const struct procevent_how how = { .prompt = q->start != 0, .inherit_thread = q->end != 0 };
	const bool named = q->pid <= INT32_MAX && q->arg <= INT32_MAX;
	const int fd = named ? procevent_open(&how, (int32_t)q->pid, q->arg) : -EPERM;

	if (fd < 0)
		return fd;
	r->fd = fd;
	return 0;
}

static const struct {
	serve_fn *fn;
	bool of_process; /* PID 0 is not valid */
} kinds[BROKER_KINDS] = {
	[BROKER_MAPS] = { serve_maps, true },
	[BROKER_STATUS] = { serve_status, true },
	[BROKER_MAPPING] = { serve_mapping, true },
	[BROKER_PATH] = { serve_path, false },
	[BROKER_TMP] = { serve_tmp, false },
	[BROKER_PERF_MAP] = { serve_perf_map, false },
	[BROKER_AGG_MAP] = { serve_agg_map, false },
	[BROKER_CHUNK_MAP] = { serve_chunk_map, false },
	[BROKER_EVENT] = { serve_event, true },
};

static bool is_request(const struct broker_request *q, size_t len)
{
	const size_t head = offsetof(struct broker_request, path);

	return len > head && q->path[len - head - 1] == '\0' && strlen(q->path) == len - head - 1;
}

static int serve(const struct broker_request *q, struct reply *r)
{
	if (q->kind >= BROKER_KINDS || !kinds[q->kind].fn || (kinds[q->kind].of_process && !q->pid))
		return -EPERM;
	return kinds[q->kind].fn(q, r);
}

/* A worker_fn. */
static int answer(void *ctx, const void *request, size_t len, int *fds, struct worker_answer *a)
{
	const struct broker_request *q = request;
	struct reply *r = ctx;
	int rc;

	(void)fds;
	*r = (struct reply){ .fd = -1 };
	rc = is_request(q, len) ? serve(q, r) : -EPERM;
	a->fd = r->fd;
	a->bytes = &r->a;
	a->len = offsetof(struct broker_reply, path) + strlen(r->a.path);
	return rc;
}

/* --- the sandbox --- */

static const struct syscall_rule calls[] = {
	SYSCALL_ALLOW(recvmsg),
	SYSCALL_ALLOW(sendmsg),
	SYSCALL_ALLOW(close),
	SYSCALL_ALLOW(fstat),
	SYSCALL_ALLOW(newfstatat),
	SYSCALL_ALLOW(readlinkat),
	SYSCALL_ALLOW(pread64),
	SYSCALL_ALLOW(openat2),
	SYSCALL_ALLOW(rt_sigprocmask),
	SYSCALL_ALLOW(rt_sigreturn),
	SYSCALL_ALLOW(exit),
	SYSCALL_ALLOW(exit_group),
	/* no writing or creating; the flags of openat2 are in memory, which a filter cannot read */
	SYSCALL_ALLOW_IF(openat, SYSCALL_BITS(2, O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND, O_RDONLY)),
	SYSCALL_ALLOW_IF(bpf, SYSCALL_INT(0, BPF_MAP_CREATE)),
	/* the last one: without broker_opts.events it is not one */
	SYSCALL_ALLOW_IF(perf_event_open, SYSCALL_INT(4, PERF_FLAG_FD_CLOEXEC)),
};

uint64_t broker_caps(const struct broker_opts *o)
{
	int caps[5] = { CAP_CHECKPOINT_RESTORE };
	size_t n = 1;

	if (!o->no_bpf)
		caps[n++] = CAP_BPF;
	if (!o->owner_only) {
		caps[n++] = CAP_SYS_PTRACE;
		caps[n++] = CAP_DAC_READ_SEARCH;
	}
	if (!o->owner_only && o->events)
		caps[n++] = CAP_PERFMON;
	return priv_bits(caps, n);
}

static int run(void *arg, int sock)
{
	struct broker_request q;
	struct reply r;

	(void)arg;
	worker_serve(sock, &q, sizeof(q), answer, &r);
	return 0;
}

int broker_start(const struct broker_opts *o, struct worker **ret, struct err *e)
{
	const struct sandbox_opts box = { .comm = "file-broker",
		.memory_bytes = 8 << 20,
		.keep_caps = broker_caps(o),
		.rules = calls,
		.n_rules = ARRAY_LEN(calls) - !o->events };

	*ret = NULL;
	if (!box.keep_caps)
		return 0;
	return worker_start(
		&(struct worker_opts){ .who = WHO, .sandbox = &box, .hurry = true, .run = run }, ret, e);
}

/* kill(2) sees processes that /proc may hide. For one that is gone, no request is needed. */
static bool is_gone(uint32_t pid)
{
	return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

int procaccess_open(struct worker *o, enum broker_kind kind, uint32_t pid)
{
	char path[64];
	int fd, requested;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, kind == BROKER_MAPS ? "maps" : "status");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	fd = -errno;
	if (is_gone(pid))
		return -ESRCH;
	requested = broker_proc(o, kind, pid);
	return requested == -ENOTCONN ? fd : requested;
}

int procaccess_maps(struct worker *o, uint32_t pid, int (*fn)(void *ctx, const struct procmap *m), void *ctx,
	struct err *e)
{
	_cleanup_close_ int fd = procaccess_open(o, BROKER_MAPS, pid);

	return procmaps_each_of(fd, pid, fn, ctx, e);
}

int procaccess_maps_exe(struct worker *o, uint32_t pid, char **exe)
{
	char *path = NULL;
	int fd;

	if (!*exe)
		*exe = procinfo_exe(pid);
	if (*exe || is_gone(pid))
		return procaccess_open(o, BROKER_MAPS, pid);
	/* we may not read it: one request for both files, not two */
	fd = broker_maps_exe(o, pid, &path);
	if (fd == -ENOTCONN)
		return procaccess_open(NULL, BROKER_MAPS, pid);
	if (path)
		procinfo_strip_deleted(path);
	*exe = path;
	return fd;
}

uint32_t procaccess_living(struct worker *o, uint32_t pid)
{
	uint32_t shown = procinfo_living(pid);
	int fd;

	if (shown || is_gone(pid))
		return shown;
	fd = broker_proc(o, BROKER_STATUS, pid);
	if (fd < 0)
		return 0;
	return procinfo_lives(fd) ? pid : 0;
}
