/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/broker.h"
#include "offcpu_abi.h"
#include "system/privileges.h"
#include "system/proc.h"
#include "system/sandbox.h"
#include "system/seccomp.h"
#include "unwind_abi.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

struct opener {
	struct asker *asker;
};

/*
 * Over SOCK, the opener's from now on, to its process PID (0 = none of ours,
 * for tests). *RET is the caller's.
 */
static int opener_new(int sock, pid_t pid, struct opener **ret, struct err *e)
{
	struct opener *o = calloc(1, sizeof(*o));
	int rc;

	if (!o) {
		close(sock);
		return err_nomem(e, "the opener");
	}
	rc = asker_new(sock, pid, &o->asker, e);
	if (rc)
		free(o);
	else
		*ret = o;
	return rc;
}

int opener_ready(struct opener *o, struct err *e)
{
	return o ? asker_ready(o->asker, "the process that opens files", e) : 0;
}

void opener_free(struct opener *o)
{
	if (o)
		asker_free(o->asker);
	free(o);
}

uint32_t opener_pid(const struct opener *o)
{
	return o ? asker_pid(o->asker) : 0;
}

int opener_ask(struct opener *o, struct openwire_request *q, struct openwire_answer *a, int *fd)
{
	const size_t head = offsetof(struct openwire_answer, path);
	int got = -1, rc = 0;
	ssize_t n = asker_ask(o ? o->asker : NULL, q,
		offsetof(struct openwire_request, path) + strlen(q->path) + 1, a, sizeof(*a) - 1, &got);

	if (n < 0)
		return (int)n;
	((char *)a)[MAX((size_t)n, head)] = '\0';
	rc = (size_t)n < head ? -EPROTO : a->error;
	if (got >= 0 && (rc || !fd)) {
		close(got);
		got = -1;
	}
	if (fd)
		*fd = got;
	return rc;
}

/* A descriptor, with the status where ST is not NULL. */
static int ask_fd(struct opener *o, struct openwire_request *q, struct stat *st)
{
	struct openwire_answer a;
	int fd = -1, rc = opener_ask(o, q, &a, &fd);

	if (rc)
		return rc;
	if (st)
		*st = a.st;
	return fd >= 0 ? fd : -EMFILE; /* no room for it here */
}

static int ask_stat(struct opener *o, struct openwire_request *q, struct stat *st)
{
	struct openwire_answer a;
	int rc = opener_ask(o, q, &a, NULL);

	if (!rc)
		*st = a.st;
	return rc;
}

int opener_proc(struct opener *o, enum openwire_kind kind, uint32_t pid)
{
	struct openwire_request q = { .kind = kind, .pid = pid };

	return ask_fd(o, &q, NULL);
}

int opener_maps_exe(struct opener *o, uint32_t pid, char **exe)
{
	struct openwire_request q = { .kind = OPENWIRE_MAPS, .pid = pid, .arg = 1 };
	struct openwire_answer a;
	int fd = -1, rc = opener_ask(o, &q, &a, &fd);

	*exe = rc == 0 && a.path[0] ? strdup(a.path) : NULL;
	return rc ? rc : fd >= 0 ? fd : -EMFILE;
}

int opener_mapping(struct opener *o, uint32_t pid, uint64_t start, uint64_t end, struct stat *st)
{
	struct openwire_request q = { .kind = OPENWIRE_MAPPING, .pid = pid, .start = start, .end = end };

	return ask_fd(o, &q, st);
}

int opener_mapping_stat(struct opener *o, uint32_t pid, uint64_t start, uint64_t end, struct stat *st)
{
	struct openwire_request q = {
		.kind = OPENWIRE_MAPPING, .pid = pid, .status_only = 1, .start = start, .end = end
	};

	return ask_stat(o, &q, st);
}

static int ask_path(struct opener *o, uint32_t pid, const char *path, bool status_only, struct stat *st)
{
	struct openwire_request q = { .kind = OPENWIRE_PATH, .pid = pid, .status_only = status_only };

	if ((size_t)snprintf(q.path, sizeof(q.path), "%s", path) >= sizeof(q.path))
		return -ENAMETOOLONG;
	return status_only ? ask_stat(o, &q, st) : ask_fd(o, &q, st);
}

int opener_path(struct opener *o, uint32_t pid, const char *path, struct stat *st)
{
	return ask_path(o, pid, path, false, st);
}

int opener_path_stat(struct opener *o, uint32_t pid, const char *path, struct stat *st)
{
	return ask_path(o, pid, path, true, st);
}

int opener_tmp_stat(struct opener *o, uint32_t pid, struct stat *st)
{
	struct openwire_request q = { .kind = OPENWIRE_TMP, .pid = pid };

	return ask_stat(o, &q, st);
}

int opener_perf_map(struct opener *o, uint32_t pid, uint32_t number, struct stat *st)
{
	struct openwire_request q = { .kind = OPENWIRE_PERF_MAP, .pid = pid, .arg = number };

	return ask_fd(o, &q, st);
}

int opener_bpf_map(struct opener *o, enum openwire_kind kind, uint32_t n)
{
	struct openwire_request q = { .kind = kind, .arg = n };

	return ask_fd(o, &q, NULL);
}

void opener_stats(struct opener *o, struct asker_stats *ret)
{
	asker_stats(o ? o->asker : NULL, ret);
}

#define AGG_MOST (1u << 22) /* elements; record/bpf.c asks for no more */

/* --- what can be asked for; all on the stack: the filter leaves no memory to be had --- */

struct reply {
	struct openwire_answer a;
	int fd; /* that goes with it; -1 = none */
};

typedef int serve_fn(const struct openwire_request *q, struct reply *r);

/* FD, or -1 and errno, becomes the answer. */
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

static int serve_maps(const struct openwire_request *q, struct reply *r)
{
	char path[64];

	if (q->arg)
		read_exe(q->pid, r); /* who asks notices */
	snprintf(path, sizeof(path), "/proc/%u/maps", q->pid);
	return hand_over(r, open(path, O_RDONLY | O_CLOEXEC));
}

static int serve_status(const struct openwire_request *q, struct reply *r)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/status", q->pid);
	return hand_over(r, open(path, O_RDONLY | O_CLOEXEC));
}

/* The regular file that FD, of O_PATH, is of, for reading: opening a device can have effects, a FIFO waits.
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

static int serve_mapping(const struct openwire_request *q, struct reply *r)
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

/* Not a core: that is somebody's memory. */
static bool is_program(int fd)
{
	unsigned char head[18];

	return pread(fd, head, sizeof(head), 0) == sizeof(head) && memcmp(head, ELFMAG, SELFMAG) == 0 &&
	       (head[16] == ET_EXEC || head[16] == ET_DYN) && head[17] == 0;
}

static int serve_path(const struct openwire_request *q, struct reply *r)
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

/* /tmp may be a link, inside its root. */
static int open_tmp(uint32_t pid)
{
	_cleanup_close_ int root = open_root(pid);

	return root < 0 ? -1 : open_below(root, "tmp", O_DIRECTORY, 0);
}

static int serve_tmp(const struct openwire_request *q, struct reply *r)
{
	_cleanup_close_ int fd = open_tmp(q->pid);

	return fd >= 0 && fstat(fd, &r->a.st) == 0 ? 0 : -errno;
}

static int serve_perf_map(const struct openwire_request *q, struct reply *r)
{
	_cleanup_close_ int tmp = open_tmp(q->pid), fd = -1;
	char name[64];

	if (tmp < 0)
		return -errno;
	snprintf(name, sizeof(name), "perf-%u.map", q->arg);
	fd = openat(tmp, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return open_regular(fd, false, r);
}

/* The call itself: libbpf would look for features first, by other calls. */
static int create_map(union bpf_attr *attr, const char *name)
{
	snprintf(attr->map_name, sizeof(attr->map_name), "%s", name);
	return (int)syscall(SYS_bpf, BPF_MAP_CREATE, attr, sizeof(*attr));
}

static int serve_agg_map(const struct openwire_request *q, struct reply *r)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_HASH,
		.key_size = sizeof(struct offcpu_key),
		.value_size = sizeof(struct offcpu_value),
		.max_entries = q->arg };

	return q->arg && q->arg <= AGG_MOST ? hand_over(r, create_map(&attr, "agg")) : -EPERM;
}

static int serve_chunk_map(const struct openwire_request *q, struct reply *r)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = sizeof(uint32_t),
		.value_size = UNWIND_CHUNK_BYTES,
		.max_entries = 1,
		.map_flags = BPF_F_MMAPABLE };

	(void)q;
	return hand_over(r, create_map(&attr, "unwind_chunk"));
}

static const struct {
	serve_fn *fn;
	bool of_process; /* PID 0 is nobody */
} kinds[OPENWIRE_KINDS] = {
	[OPENWIRE_MAPS] = { serve_maps, true },
	[OPENWIRE_STATUS] = { serve_status, true },
	[OPENWIRE_MAPPING] = { serve_mapping, true },
	[OPENWIRE_PATH] = { serve_path, false },
	[OPENWIRE_TMP] = { serve_tmp, false },
	[OPENWIRE_PERF_MAP] = { serve_perf_map, false },
	[OPENWIRE_AGG_MAP] = { serve_agg_map, false },
	[OPENWIRE_CHUNK_MAP] = { serve_chunk_map, false },
};

/* --- the talk --- */

/* N bytes came: is that a request? */
static bool is_request(const struct openwire_request *q, ssize_t n)
{
	const ssize_t head = offsetof(struct openwire_request, path);

	return n > head && n <= (ssize_t)sizeof(*q) && q->path[n - head - 1] == '\0' &&
	       strlen(q->path) == (size_t)(n - head - 1);
}

static int serve(const struct openwire_request *q, struct reply *r)
{
	if (q->kind >= OPENWIRE_KINDS || !kinds[q->kind].fn || (kinds[q->kind].of_process && !q->pid))
		return -EPERM;
	return kinds[q->kind].fn(q, r);
}

static bool send_reply(int sock, struct reply *r)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec v = { &r->a, offsetof(struct openwire_answer, path) + strlen(r->a.path) };
	struct msghdr h = { .msg_iov = &v, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (r->fd >= 0) {
		h.msg_control = &control;
		h.msg_controllen = sizeof(control.space);
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &r->fd, sizeof(int));
	}
	return sendmsg(sock, &h, MSG_NOSIGNAL) >= 0;
}

/* Until the recorder has gone. */
static void serve_all(int sock)
{
	struct openwire_request q;
	bool sent = true;

	while (sent) {
		struct iovec v = { &q, sizeof(q) };
		struct msghdr h = { .msg_iov = &v, .msg_iovlen = 1 };
		struct reply r = { .fd = -1 };
		ssize_t n = recvmsg(sock, &h, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		if (is_request(&q, n) && !(h.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
			r.a.number = q.number;
			r.a.error = serve(&q, &r);
		} else {
			r.a.error = -EPERM;
		}
		sent = send_reply(sock, &r);
		if (r.fd >= 0)
			close(r.fd);
	}
}

/* --- its sandbox --- */

#ifdef SECCODE_ARCH
static struct sock_filter calls[] = { SECCODE_BEGIN, SECCODE_CALL(recvmsg), SECCODE_CALL(sendmsg),
	SECCODE_CALL(close), SECCODE_CALL(fstat), SECCODE_CALL(newfstatat), SECCODE_CALL(readlinkat),
	SECCODE_CALL(pread64), SECCODE_CALL(openat2), SECCODE_CALL(rt_sigprocmask),
	SECCODE_CALL(rt_sigreturn), SECCODE_CALL(exit), SECCODE_CALL(exit_group),
	/* nothing to be written or made; openat2 has its flags in memory, where no filter looks */
	SECCODE_WHEN(BPF_JEQ, SYS_openat, 0, 4), SECCODE_LOAD(args[2]),
	SECCODE_WHEN(BPF_JSET, O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND, 0, 1), SECCODE_KILL, SECCODE_PERMIT,
	SECCODE_WHEN(BPF_JEQ, SYS_bpf, 0, 3), SECCODE_LOAD(args[0]),
	SECCODE_WHEN(BPF_JEQ, BPF_MAP_CREATE, 0, 1), SECCODE_PERMIT, SECCODE_KILL };
static const struct sock_fprog filter = { .len = ARRAY_LEN(calls), .filter = calls };
#define FILTER (&filter)
#else
#define FILTER NULL
#endif

uint64_t openchild_caps(const struct openchild_opts *o)
{
	static const int caps[] = { CAP_BPF, CAP_CHECKPOINT_RESTORE, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH };
	const size_t from = o->no_bpf ? 1 : 0, to = o->owner_only ? 2 : ARRAY_LEN(caps);

	return caps_bits(caps + from, to - from);
}

__attribute__((noreturn)) static void work(const void *arg, int sock, pid_t parent)
{
	const struct openchild_opts *o = arg;
	const struct sandbox_opts box = { .keep_fd = sock,
		.parent = parent,
		.comm = "file-opener",
		.memory_bytes = 8 << 20,
		.keep_caps = openchild_caps(o),
		.filter = FILTER };
	struct reply r = { .fd = -1 };

	/* who asks waits for it */
	runsoon();
	/* the first message says that it is there: opener_ready() */
	r.a.error = sandbox_enter(&box, NULL);
	if (send_reply(SANDBOX_FD, &r) && !r.a.error)
		serve_all(SANDBOX_FD);
	/* not _exit(2), under which a sanitizer would look for leaks */
	syscall(SYS_exit_group, 0);
	__builtin_unreachable();
}

int openchild_start(const struct openchild_opts *o, struct opener **ret, struct err *e)
{
	pid_t pid;
	int sock;

	*ret = NULL;
	if (!openchild_caps(o))
		return 0;
	pid = sandbox_start("opens files", work, o, &sock, e);
	return pid < 0 ? pid : opener_new(sock, pid, ret, e);
}

/* By a call that sees processes which /proc may hide: for one that is gone nobody need be asked. */
static bool is_gone(uint32_t pid)
{
	return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

int procaccess_open(struct opener *o, enum openwire_kind kind, uint32_t pid)
{
	char path[64];
	int fd, asked;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, kind == OPENWIRE_MAPS ? "maps" : "status");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	fd = -errno;
	if (is_gone(pid))
		return -ESRCH;
	asked = opener_proc(o, kind, pid);
	return asked == -ENOTCONN ? fd : asked;
}

int procaccess_maps(struct opener *o, uint32_t pid, int (*fn)(void *ctx, const struct procmap *m), void *ctx,
	struct err *e)
{
	_cleanup_close_ int fd = procaccess_open(o, OPENWIRE_MAPS, pid);

	return procmaps_each_of(fd, pid, fn, ctx, e);
}

int procaccess_maps_exe(struct opener *o, uint32_t pid, char **exe)
{
	char *path = NULL;
	int fd;

	if (!*exe)
		*exe = procinfo_exe(pid);
	if (*exe || is_gone(pid))
		return procaccess_open(o, OPENWIRE_MAPS, pid);
	/* what may not be read here is not to be asked for twice */
	fd = opener_maps_exe(o, pid, &path);
	if (fd == -ENOTCONN)
		return procaccess_open(NULL, OPENWIRE_MAPS, pid);
	if (path)
		procinfo_strip_deleted(path);
	*exe = path;
	return fd;
}

uint32_t procaccess_living(struct opener *o, uint32_t pid)
{
	uint32_t shown = procinfo_living(pid);
	int fd;

	if (shown || is_gone(pid))
		return shown;
	fd = opener_proc(o, OPENWIRE_STATUS, pid);
	if (fd < 0)
		return 0;
	return procinfo_lives(fd) ? pid : 0;
}
