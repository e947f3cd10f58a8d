/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "system/private_user.h"
#include "system/privileges.h"
#include "system/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define MEMORY (UINT64_C(64) << 20)
#define FILE_BYTES 100000

static volatile char *shared; /* memory shared with the parent */

/* _exit(2), but without a sanitizer's leak check, whose system calls are not allowed. */
static void leave(int code)
{
	syscall(SYS_exit_group, code);
}

/* Start a child that enters a sandbox, keeps FD and exits with the result of FN. Returns its PID. */
static pid_t begin(int fd, int (*fn)(void))
{
	struct sandbox_opts o = { .keep_fd = fd,
		.parent = getpid(),
		.comm = "in-a-box",
		.memory_bytes = MEMORY,
		.file_bytes = FILE_BYTES };
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		leave(sandbox_enter(&o, NULL) ? 99 : fn());
	return pid;
}

static int end(pid_t pid)
{
	int status = -1;

	return waitpid(pid, &status, 0) == pid ? status : -1;
}

static int a_file(void)
{
	return memfd_create("file", MFD_CLOEXEC);
}

static int run(int (*fn)(void))
{
	_cleanup_close_ int fd = a_file();

	return end(begin(fd, fn));
}

static bool exits(int (*fn)(void), int with)
{
	int status = run(fn);

	if (!WIFEXITED(status) || WEXITSTATUS(status) != with)
		tap_diag("wait status 0x%x", (unsigned int)status);
	return WIFEXITED(status) && WEXITSTATUS(status) == with;
}

/* --- calls that kill the process --- */

static int call_open(void)
{
	return open("/etc/passwd", O_RDONLY);
}

static int call_stat(void)
{
	struct stat st;

	return (int)syscall(SYS_newfstatat, AT_FDCWD, "/etc/passwd", &st, 0);
}

static int call_socket(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

static int call_execve(void)
{
	char *argv[] = { (char[]){ "true" }, NULL };

	return execve("/bin/true", argv, argv + 1);
}

static int call_kill(void)
{
	return kill(getppid(), 0);
}

static int call_ptrace(void)
{
	return (int)syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0);
}

static int call_fork(void)
{
	return (int)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static int call_read(void)
{
	char byte;

	return (int)read(SANDBOX_FD, &byte, 1);
}

static int call_write(void)
{
	return (int)write(1, "x", 1);
}

static int call_memfd(void)
{
	return (int)syscall(SYS_memfd_create, "x", 0);
}

static int call_prctl(void)
{
	return prctl(PR_SET_DUMPABLE, 1);
}

static int call_limits(void)
{
	struct rlimit l = { 1, 1 };

	return setrlimit(RLIMIT_NOFILE, &l);
}

static int call_bpf(void)
{
	return (int)syscall(SYS_bpf, 0, NULL, 0);
}

static int call_ioctl(void)
{
	return (int)syscall(SYS_ioctl, SANDBOX_FD, 0, 0);
}

static int call_fcntl(void)
{
	return fcntl(SANDBOX_FD, F_ADD_SEALS, F_SEAL_SEAL);
}

static int map_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

static int make_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? 1 : mprotect(p, 4096, PROT_READ | PROT_EXEC);
}

static int map_file(void)
{
	return mmap(NULL, 4096, PROT_READ, MAP_SHARED, SANDBOX_FD, 0) == MAP_FAILED;
}

static int map_file_privately(void)
{
	return mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, SANDBOX_FD, 0) == MAP_FAILED;
}

static int map_shared(void)
{
	return mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

#ifdef __x86_64__
static int call_x32(void)
{
	return (int)syscall(0x40000000 | SYS_close, 0);
}

static int call_32(void)
{
	long rc = 3; /* read on i386, close on x86-64 */

	__asm__ volatile("int $0x80" : "+a"(rc) : "b"(99), "c"(0), "d"(0) : "memory");
	return (int)rc;
}
#endif

static const struct {
	const char *name;
	int (*fn)(void);
} deadly[] = {
	{ "opening a file", call_open },
	{ "looking up a file by its path", call_stat },
	{ "creating a socket", call_socket },
	{ "execve", call_execve },
	{ "kill", call_kill },
	{ "ptrace", call_ptrace },
	{ "fork", call_fork },
	{ "read, which moves a shared file offset,", call_read },
	{ "write", call_write },
	{ "memfd_create", call_memfd },
	{ "prctl", call_prctl },
	{ "setrlimit", call_limits },
	{ "bpf", call_bpf },
	{ "ioctl", call_ioctl },
	{ "fcntl", call_fcntl },
	{ "mapping executable memory", map_code },
	{ "making memory executable", make_code },
	{ "mapping a file", map_file },
	{ "mapping a file privately", map_file_privately },
	{ "mapping shared memory", map_shared },
#ifdef __x86_64__
	{ "a system call of another ABI (x32)", call_x32 },
#endif
};

static void kills(struct tap *t)
{
	for (size_t i = 0; i < ARRAY_LEN(deadly); i++) {
		int status = run(deadly[i].fn);

		tap_ok(t, WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "%s kills the process",
			deadly[i].name);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
			tap_diag("wait status 0x%x", (unsigned int)status);
	}
#ifdef __x86_64__
	{
		int status = run(call_32);

		/* a kernel without 32-bit calls has no such trap */
		tap_ok(t, WIFSIGNALED(status) && (WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGSEGV),
			"a 32-bit system call kills the process");
	}
#endif
}

/* --- what is allowed, and its limits --- */

static int files(void)
{
	char text[8] = "";
	struct stat st;

	if (pwrite(SANDBOX_FD, "abcdef", 6, 10) != 6 || pread(SANDBOX_FD, text, 6, 10) != 6)
		return 1;
	if (ftruncate(SANDBOX_FD, 13) != 0 || syscall(SYS_fstat, SANDBOX_FD, &st) != 0 || st.st_size != 13)
		return 2;
	return memcmp(text, "abcdef", 6) == 0 && close(SANDBOX_FD) == 0 ? 0 : 3;
}

#ifndef __SANITIZE_ADDRESS__ /* it needs more memory itself, and ends the process when it gets none */
static int memory(void)
{
	for (size_t n = 1; n < 32u << 20; n *= 3) {
		char *p = malloc(n), *q;

		if (!p)
			return 1;
		memset(p, 1, n);
		q = realloc(p, 2 * n / 3 + 1);
		if (!q)
			return 2;
		free(q);
	}
	return 0;
}

static int too_much_memory(void)
{
	void *last = NULL;
	size_t mib = 0;

	for (; mib < 256; mib++) {
		void **p = malloc(1 << 20);

		if (!p)
			break;
		*p = last;
		last = p;
	}
	/* the allocator's own data takes a little of the limit */
	return last && mib >= 32 && mib <= 64 ? 0 : 1;
}
#endif

static int too_large_a_file(void)
{
	if (pwrite(SANDBOX_FD, "x", 1, FILE_BYTES - 1) != 1)
		return 1;
	if (pwrite(SANDBOX_FD, "x", 1, FILE_BYTES) != -1 || errno != EFBIG)
		return 2;
	return ftruncate(SANDBOX_FD, FILE_BYTES + 1) == -1 && errno == EFBIG ? 0 : 3;
}

static int odds(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_MONOTONIC, &ts) != 0 || syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts) != 0)
		return 1;
	return syscall(SYS_getrandom, &ts, sizeof(ts), 0) == sizeof(ts) ? 0 : 2;
}

static int write_shared(void)
{
	shared[0] = 1;
	return 0;
}

/*
 * Blocks below and above the sizes that the allocator maps by default and in a
 * sandbox. Together they are above its trim threshold, and larger than one heap
 * of a thread's arena (64 MiB).
 */
static int shrinking_memory(void)
{
	static const size_t sizes[] = {
		100000,
		1 << 20,
#ifndef __SANITIZE_ADDRESS__ /* it keeps freed blocks, which then reach the limit of memory */
		20 << 20,
		40 << 20,
#endif
	};
	void *p[8];

	for (size_t round = 0; round < 3 * ARRAY_LEN(sizes); round++) {
		const size_t size = sizes[round % ARRAY_LEN(sizes)];

		for (size_t i = 0; i < ARRAY_LEN(p); i++)
			if ((p[i] = malloc(size)))
				memset(p[i], 1, 100000);
		for (size_t i = ARRAY_LEN(p); i-- > 0;)
			free(p[i]);
	}
	return 0;
}

static void *begin_there(void *fn)
{
	int (*work)(void) = *(int (**)(void))fn;
	void *first = malloc(64); /* the first malloc(3) of a thread gives it an arena of its own */
	bool good = first && exits(work, 0);

	free(first);
	return good ? fn : NULL;
}

/* Does FN return 0 in a sandboxed child that a thread has forked? */
static bool of_a_thread(int (*fn)(void))
{
	pthread_t thread;
	void *good = NULL;

	return pthread_create(&thread, NULL, begin_there, &fn) == 0 && pthread_join(thread, &good) == 0 &&
	       good;
}

static void allows(struct tap *t)
{
	int status;

	tap_ok(t, exits(files, 0),
		"reading and writing at an offset, fstat, ftruncate and close are allowed");
	tap_ok(t, exits(odds, 0), "reading the time and random bytes is allowed");
#ifndef __SANITIZE_ADDRESS__
	tap_ok(t, exits(memory, 0), "allocations of all sizes within the limit are allowed");
	tap_ok(t, exits(too_much_memory, 0),
		"an allocation beyond the memory limit fails and does not kill the process");
#endif
	tap_ok(t, exits(too_large_a_file, 0),
		"writing a file beyond the limit is an error and does not kill the process");
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	status = run(write_shared);
	tap_ok(t, WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV && !shared[0],
		"memory shared with the parent is inaccessible");
	munmap((void *)(uintptr_t)shared, 4096);
}

/* --- the sandboxed process seen from outside --- */

static int wait_for_ever(void)
{
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	sendmsg(SANDBOX_FD, &m, 0);
	return (int)recvmsg(SANDBOX_FD, &m, 0);
}

static void read_whole(pid_t pid, const char *file, char *text, size_t cap)
{
	char path[64];
	_cleanup_fclose_ FILE *f = NULL;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	f = fopen(path, "re");
	n = f ? fread(text, 1, cap - 1, f) : 0;
	text[n] = '\0';
}

static unsigned long long field(const char *text, const char *name, int base)
{
	const char *p = strstr(text, name);

	return p ? strtoull(p + strlen(name), NULL, base) : ~0ULL;
}

static void nothing(int sig)
{
	(void)sig;
}

/* SIG's bit in a set of signals of /proc/PID/status. */
static unsigned long long bit(int sig)
{
	return 1ULL << (sig - 1);
}

static void looks(struct tap *t, bool root)
{
	const unsigned long long ignored =
		bit(SIGHUP) | bit(SIGINT) | bit(SIGQUIT) | bit(SIGTERM) | bit(SIGPIPE) | bit(SIGXFSZ);
	char text[8192], byte, path[64];
	struct priv_status s;
	struct stat st = { 0 };
	sigset_t all, old;
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		abort();
	if (root && setgroups(1, &(gid_t){ 4 }) != 0)
		abort();
	signal(SIGUSR1, nothing);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = begin(pair[1], wait_for_ever);
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(pair[1]);
	tap_ok(t, recv(pair[0], &byte, 1, 0) == 1, "a sandboxed child can use its socket");
	read_whole(pid, "status", text, sizeof(text));
	tap_ok(t, strncmp(text, "Name:\tin-a-box\n", 15) == 0, "the child has the requested name");
	tap_ok(t,
		priv_status_parse(text, &s) == 0 && !s.effective && !s.permitted && !s.inheritable &&
			!s.ambient,
		"the child has no capability");
	if (root) {
		tap_ok(t, !s.bounding, "the child's bounding set is empty");
		tap_ok(t,
			s.uid == PRIVATE_USER_BASE + (uint32_t)getpid() &&
				field(text, "\nGid:\t", 10) == s.uid,
			"the child runs as a user and group that are the parent's alone");
		tap_ok(t, strstr(text, "\nGroups:\t \n") || strstr(text, "\nGroups:\t\n"),
			"the child has no supplementary groups");
	}
	tap_ok(t, s.no_new_privs == 1 && s.seccomp == 2, "no_new_privs and seccomp are in force");
	/* libc keeps signals 32 and 33 to itself, so they are inherited from whatever started this program */
	tap_ok(t, (field(text, "\nSigIgn:\t", 16) & ~(bit(32) | bit(33))) == ignored,
		"the child ignores signals that a terminal or a manager sends");
	tap_ok(t, !field(text, "\nSigCgt:\t", 16) && !field(text, "\nSigBlk:\t", 16),
		"the child has none of the parent's signal handlers and an empty mask");
	read_whole(pid, "limits", text, sizeof(text));
	tap_eq_u64(t, field(text, "\nMax open files", 10), SANDBOX_FD + 1 + SANDBOX_FDS,
		"the child's limit of open files is small");
	read_whole(pid, "oom_score_adj", text, sizeof(text));
	tap_eq_str(t, text, "1000\n", "the child's oom_score_adj is the maximum");
	read_whole(pid, "stat", text, sizeof(text));
	tap_ok(t, getsid(pid) == pid, "the child has a session of its own");
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	tap_ok(t, stat(path, &st) == 0 && st.st_uid == 0,
		"the child is undumpable: no core dump, and no access for other processes");
	close(pair[0]);
	tap_eq_u64(t, end(pid), 0, "the child exits when the parent closes the socket");
	signal(SIGUSR1, SIG_DFL);
}

/* The parent has descriptors with high numbers; the child gets none of its standard streams. */
static void holds_no_descriptors(struct tap *t)
{
	char path[64], target[64], byte;
	int pair[2], n = 0, nulls = 0, sockets = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		abort();
	dup2(pair[1], 700);
	dup2(1, 701);
	pid = begin(700, wait_for_ever);
	close(pair[1]);
	close(700);
	close(701);
	if (recv(pair[0], &byte, 1, 0) != 1)
		abort();
	for (int fd = 0; fd < 1024; fd++) {
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
		len = readlink(path, target, sizeof(target) - 1);
		if (len < 0)
			continue;
		target[len] = '\0';
		n++;
		nulls += fd < SANDBOX_FD && strcmp(target, "/dev/null") == 0;
		sockets += fd == SANDBOX_FD && strncmp(target, "socket:", 7) == 0;
	}
	if (geteuid() != 0)
		tap_skip(t, "the child's only descriptors are its socket and three of /dev/null",
			"not root: the child is undumpable");
	else
		tap_ok(t, n == 4 && nulls == 3 && sockets == 1,
			"the child's only descriptors are its socket and three of /dev/null");
	close(pair[0]);
	end(pid);
}

/* A child of ours is the parent of the sandboxed process and is killed. */
static void ends_with_parent(struct tap *t)
{
	struct sandbox_opts o = { .parent = 1, .comm = "x", .memory_bytes = MEMORY, .file_bytes = 1 };
	int pair[2], fds[2], pidfd = -1, status;
	struct pollfd p = { .events = POLLIN };
	pid_t parent, box = 0;
	char byte;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 || pipe2(fds, O_CLOEXEC) != 0)
		abort();
	fflush(stdout);
	parent = fork();
	if (parent == 0) {
		box = begin(pair[1], wait_for_ever);
		if (write(fds[1], &box, sizeof(box)) != sizeof(box))
			_exit(1);
		pause();
	}
	if (read(fds[0], &box, sizeof(box)) == sizeof(box) && recv(pair[0], &byte, 1, 0) == 1)
		pidfd = (int)syscall(SYS_pidfd_open, box, 0);
	kill(parent, SIGKILL);
	end(parent);
	close(pair[1]);
	p.fd = pidfd;
	tap_ok(t, pidfd >= 0 && poll(&p, 1, 30000) == 1, "the child dies with its parent");
	if (pidfd >= 0)
		syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	close(pidfd);
	close(pair[0]);
	close(fds[0]);
	close(fds[1]);

	fflush(stdout);
	parent = fork();
	if (parent == 0) {
		o.keep_fd = a_file();
		o.parent = getpid();
		leave(sandbox_enter(&o, NULL) == -ESRCH ? 0 : 1);
	}
	status = end(parent);
	tap_eq_u64(t, status, 0, "a child whose parent is gone already is refused with ESRCH");
}

static void needs_its_descriptor(struct tap *t)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct sandbox_opts o = { .keep_fd = 999, .parent = getppid(), .comm = "x" };
		struct err e = { 0 };

		leave(sandbox_enter(&o, &e) == -EMFILE && e.msg[0] ? 0 : 1);
	}
	status = end(pid);
	tap_eq_u64(t, status, 0, "a sandbox with a closed descriptor to keep is refused");
}

static bool is_open(int fd)
{
	char byte;

	return pread(fd, &byte, 1, 0) >= 0 || errno != EBADF;
}

/*
 * Keep four files whose old numbers overlap their new ones. Each file holds its number as a
 * digit. Returns a bit for each wrong one.
 */
static int keep_four(void)
{
	struct sandbox_opts o = {
		.parent = getppid(), .comm = "x", .memory_bytes = MEMORY, .file_bytes = FILE_BYTES
	};
	int more[3], bad = 0;

	for (int i = 3; i >= 0; i--) { /* the last file has the number that the first one gets */
		char byte = (char)('0' + i);
		int fd = a_file();

		if (fd < 0 || write(fd, &byte, 1) != 1)
			return 98;
		*(i ? &more[i - 1] : &o.keep_fd) = fd;
	}
	o.more_fds = more;
	o.n_more = ARRAY_LEN(more);
	if (sandbox_enter(&o, NULL) != 0)
		return 99;
	for (int i = 0; i < 4; i++) {
		char byte = 0;

		bad |= pread(SANDBOX_FD + i, &byte, 1, 0) != 1 || byte != '0' + i ? 1 << i : 0;
	}
	return bad | (is_open(SANDBOX_FD + 4) ? 16 : 0);
}

static void keeps_several(struct tap *t)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		closefrom(3);
		leave(keep_four());
	}
	tap_eq_u64(t, (uint64_t)end(pid), 0, "four descriptors are kept in order, and no others");
}

/* The same checks as an ordinary user. */
static void works_for_users(struct tap *t)
{
	int status;
	pid_t pid;

	if (geteuid() != 0) {
		tap_skip(t, "an ordinary user's child gets the same sandbox",
			"not root: the tests above were just that");
		return;
	}
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct tap mine = { 0 };

		if (setresgid(1234, 1234, 1234) != 0 || setresuid(1234, 1234, 1234) != 0)
			_exit(1);
		/* its lines are not tests of this program */
		if (!freopen("/dev/null", "w", stdout))
			_exit(1);
		/* a change of user makes a process undumpable until it execs */
		prctl(PR_SET_DUMPABLE, 1);
		looks(&mine, false);
		kills(&mine);
		allows(&mine);
		leave(mine.failed != 0 ? 1 : 0);
	}
	status = end(pid);
	tap_eq_u64(t, status, 0, "an ordinary user's child gets the same sandbox");
}

int main(void)
{
	struct tap t = { 0 };

	kills(&t);
	allows(&t);
	looks(&t, geteuid() == 0);
	holds_no_descriptors(&t);
	ends_with_parent(&t);
	needs_its_descriptor(&t);
	keeps_several(&t);
	works_for_users(&t);
	/* last, because a process that has had a thread behaves differently */
	tap_ok(&t, of_a_thread(shrinking_memory),
		"a child forked by a thread can free memory without being killed");
	return tap_done(&t);
}
