/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "../lib/self.h"
#include "base/tap.h"
#include "system/sandbox.h"
#include "unwind/table.h"
#include "unwind/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#define LINE 64 /* bytes of a table made here: the first bytes of the file */

static char top[64];

/* --- a compiler that does what the file says in its first byte --- */

/* The message as system/worker.c sends it. */
static int say(uint32_t number, int32_t error, size_t len)
{
	struct {
		uint32_t number;
		int32_t error;
		uint64_t len;
	} a = { number, error, len };
	struct iovec iov = { &a, sizeof(a) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	return sendmsg(SANDBOX_FD, &m, 0) > 0 ? 0 : -errno;
}

__attribute__((noreturn)) static void spin(void)
{
	for (;;)
		__asm__ volatile("" ::: "memory");
}

static int fill_memory(struct err *e)
{
	for (size_t n = 0; n < (1 << 20); n++) {
		char *p = malloc(1 << 16);

		if (!p)
			return err_nomem(e, "everything");
		memset(p, 1, 1 << 16);
	}
	return 0;
}

static int hand_out(int fd, char what, uint8_t **ret, size_t *len)
{
	*len = what == '0' ? 0 : LINE;
	*ret = calloc(1, *len + 1);
	if (!*ret)
		return -ENOMEM;
	if (pread(fd, *ret, *len, 0) < 0)
		return -errno;
	return 0;
}

static int misbehave(char what, struct err *e)
{
	switch (what) {
	case 's':
		__builtin_trap();
		return 0;
	case 'a':
		abort();
	case 'x':
		syscall(SYS_exit_group, 3); /* under a sanitizer _exit() would look for leaks first */
		return 0;
	case 'o':
		return open("/etc/passwd", O_RDONLY);
	case 'k':
		return kill(getppid(), SIGKILL);
	case 'h':
		spin();
	case 'c': /* closes its socket but does not exit */
		close(SANDBOX_FD);
		spin();
	case 'n': /* an answer to no request */
		return say(12345, 0, LINE);
	case 'r': /* ready a second time */
		return say(0, 0, 0);
	case 'p': /* an error code that does not exist */
		return say(1, 5, 0);
	case 't': { /* half a message */
		struct iovec iov = { &what, 1 };
		struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

		return sendmsg(SANDBOX_FD, &m, 0) == 1 ? 0 : -errno;
	}
	case 'e': /* keeps writing to the table after handing it over */
		if (ftruncate(SANDBOX_FD + 2, LINE) != 0 || say(1, 0, LINE) != 0)
			return -EIO;
		for (bool odd = false;; odd = !odd) {
			if (pwrite(SANDBOX_FD + 2, odd ? "?" : "!", 1, 0) != 1)
				return -EIO;
		}
	case 'l': /* announces a table but hands over none */
		return say(1, 0, 4096);
	case 'm':
		return fill_memory(e);
	default:
		return err_set(e, -EBADMSG, "is not a file of this kind: '%c'", what);
	}
}

static int write_to(int fd, struct err *e)
{
	return pwrite(fd, "?", 1, 0) < 0 ? err_set(e, -errno, "cannot be written to") : 0;
}

static int by_content(int fd, uint8_t **ret, size_t *len, struct err *e)
{
	char what = 0;
	int rc = pread(fd, &what, 1, 0) == 1 ? 0 : -EIO;

	if (!rc)
		rc = what == 'w'                  ? write_to(fd, e)
		     : what == 'g' || what == '0' ? hand_out(fd, what, ret, len)
						  : misbehave(what, e);
	close(fd);
	return rc;
}

/* --- helpers --- */

static int file_with(const char *text)
{
	char path[128];
	int fd, again;

	snprintf(path, sizeof(path), "%s/file.XXXXXX", top);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		abort();
	again = open(path, O_RDONLY | O_CLOEXEC);
	close(fd);
	unlink(path);
	return again;
}

static void ask(struct table_worker *w, const char *text, uint64_t cookie)
{
	_cleanup_close_ int fd = file_with(text);

	if (table_worker_ask(w, fd, cookie, NULL) != 0)
		abort();
}

static struct table_worker *open_with(unsigned int mib, unsigned int seconds)
{
	struct table_worker_opts o = { .memory_bytes = (uint64_t)mib << 20, .seconds = seconds };
	struct table_worker *w = NULL;
	struct err e = { 0 };

	if (table_worker_open_with(&o, by_content, &w, &e) != 0) {
		printf("Bail out! %s\n", e.msg);
		exit(1);
	}
	return w;
}

/* Is the next answer for COOKIE, with error CODE and TEXT in its message, or for CODE 0 the table TEXT? */
static bool answers(struct table_worker *w, uint64_t cookie, int code, const char *text)
{
	struct table_worker_answer a;
	struct err e = { 0 };
	int rc = table_worker_next(w, -1, &a, &e);
	bool ok = rc == 1 && a.cookie == cookie && a.error == code;

	if (ok && code)
		ok = strstr(a.why, text) && !a.bytes && !a.len;
	else if (ok)
		ok = a.len == LINE && strcmp((const char *)a.bytes, text) == 0;
	if (!ok)
		tap_diag("%d %s, cookie %llu, error %d, %s", rc, e.msg, (unsigned long long)a.cookie, a.error,
			a.why);
	return ok;
}

/*
 * Is a file that begins with WHAT answered with CODE and TEXT, and the next one with its table? REPLACED:
 * whether another process does the latter.
 */
static bool survives(const char *what, int code, const char *text, bool replaced)
{
	struct table_worker *w = open_with(64, 0);
	pid_t pid = table_worker_pid(w);
	bool ok;

	ask(w, what, 1);
	ask(w, "good", 2);
	ok = answers(w, 1, code, text) && answers(w, 2, 0, "good") && !table_worker_pending(w);
	ok = ok && (table_worker_pid(w) != pid) == replaced;
	table_worker_close(w);
	return ok;
}

/* Under a sanitizer a failing malloc(3) ends the process. */
static bool survives_greed(void)
{
#ifdef __SANITIZE_ADDRESS__
	return true;
#else
	return survives("m", -ENOMEM, "out of memory", false);
#endif
}

/* --- the tests --- */

static void compiles(struct tap *t)
{
	struct table_worker *w = open_with(0, 0);
	struct table_worker_answer a;
	int fd = file_with("good one");

	tap_ok(t, table_worker_next(w, -1, &a, NULL) == 0,
		"without a request there is no answer to wait for");
	tap_ok(t, table_worker_ask(w, fd, 77, NULL) == 0 && table_worker_pending(w) == 1,
		"a file is accepted and pending");
	close(fd);
	tap_ok(t, answers(w, 77, 0, "good one"),
		"the answer has the table and the cookie, though the caller closed the file");
	tap_ok(t, table_worker_next(w, 0, &a, NULL) == 0 && !table_worker_pending(w),
		"each request is answered once");
	ask(w, "good", 1);
	ask(w, "?", 2);
	ask(w, "great", 3);
	tap_ok(t, table_worker_pending(w) == 3, "three requests are pending at once");
	tap_ok(t,
		answers(w, 1, 0, "good") && answers(w, 2, -EBADMSG, "is not a file of this kind: '?'") &&
			answers(w, 3, 0, "great"),
		"requests are answered in order, and a compiler's error with its message");
	ask(w, "good", 4);
	tap_ok(t, table_worker_next(w, -1, &a, NULL) == 1 && (uintptr_t)a.bytes % 8 == 0,
		"a table is aligned to 8 bytes");
	table_worker_close(w);
	table_worker_close(NULL);
}

static void compiles_elf(struct tap *t)
{
	struct table_worker *w = NULL;
	struct table_worker_answer a;
	struct unwindtab view;
	struct err e = { 0 };
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int text = file_with("no ELF file");

	tap_ok(t, table_worker_open(NULL, &w, &e) == 0, "a worker starts without options");
	table_worker_ask(w, fd, 5, NULL);
	table_worker_ask(w, text, 6, NULL);
	if (!tap_ok(t, table_worker_next(w, -1, &a, NULL) == 1 && a.cookie == 5 && !a.error,
		    "the library's compiler accepts an ELF file"))
		tap_diag("%d %s", a.error, a.why);
	tap_ok(t, a.bytes && unwindtab_view(a.bytes, a.len, &view, NULL) == 0,
		"the ELF file is compiled into a valid table");
	tap_ok(t, table_worker_next(w, -1, &a, NULL) == 1 && a.cookie == 6 && a.error && a.why[0],
		"a file that is not ELF gives an error with a message");
	table_worker_close(w);
}

static void is_attacked(struct tap *t)
{
	tap_ok(t, survives("s", -EIO, "killed by SIGILL", true),
		"a crash fails one file, and a new worker compiles the next");
	tap_ok(t, survives("a", -EIO, "system call", true), "a call of abort() fails one file");
	tap_ok(t, survives("x", -EIO, "status 3", true), "a call of exit_group() fails one file");
	tap_ok(t, survives("o", -EIO, "system call", true), "opening a file kills the worker");
	tap_ok(t, survives("k", -EIO, "system call", true), "trying to kill the parent kills the worker");
	tap_ok(t, survives("c", -EIO, "did not end and was killed", true),
		"a worker that closes its socket but does not exit is killed");
	tap_ok(t, survives("n", -EIO, "malformed", true), "an answer to no request is rejected");
	tap_ok(t, survives("r", -EIO, "malformed", true), "a second ready message is rejected");
	tap_ok(t, survives("p", -EIO, "malformed", true), "an error code that does not exist is rejected");
	tap_ok(t, survives("t", -EIO, "malformed", true), "a truncated answer is rejected");
	tap_ok(t, survives("l", -EIO, "did not hand over", true),
		"an announced table that was not handed over is rejected");
	tap_ok(t, survives("0", -EIO, "did not hand over", true), "an empty table is rejected");
	tap_ok(t, survives_greed(), "running out of memory is an error and does not kill the worker");
}

/* The table that the caller sees never changes. */
static void is_cheated(struct tap *t)
{
	struct table_worker *w = open_with(0, 0);
	struct table_worker_answer a;
	unsigned int changes = 0;
	char was;

	ask(w, "e", 1);
	if (table_worker_next(w, -1, &a, NULL) == 1 && a.bytes) {
		was = *(const volatile char *)a.bytes;
		for (int i = 0; i < 1000; i++, usleep(20))
			changes += was != *(const volatile char *)a.bytes;
	}
	tap_ok(t, a.bytes && !changes, "the worker cannot change a table after handing it over");
	table_worker_close(w);
}

static void is_slow(struct tap *t)
{
	struct table_worker *w = open_with(0, 1);
	struct pollfd p = { .fd = table_worker_fd(w), .events = POLLIN };
	struct table_worker_answer a;
	pid_t pid = table_worker_pid(w);
	int rc;

	ask(w, "h", 1);
	ask(w, "good", 2);
	do
		rc = poll(&p, 1, 60000);
	while (rc > 0 && table_worker_next(w, 0, &a, NULL) == 0);
	tap_ok(t, rc == 1 && a.cookie == 1 && a.error == -ETIMEDOUT && strstr(a.why, "long"),
		"a file that takes too long fails, and poll(2) reports it");
	tap_ok(t, answers(w, 2, 0, "good") && table_worker_pid(w) != pid && table_worker_fd(w) == p.fd,
		"another process compiles the next file, behind the same descriptor");
	table_worker_close(w);
}

static bool idle_death(struct table_worker *w)
{
	struct pollfd p = { .fd = table_worker_fd(w), .events = POLLIN };

	kill(table_worker_pid(w), SIGKILL);
	return poll(&p, 1, 60000) == 1;
}

/* Messages that a worker sent before it died are read first: continue until PID is replaced. */
static int next_worker(struct table_worker *w, pid_t pid, struct err *e)
{
	struct table_worker_answer a;
	int rc = 0;

	while (rc == 0 && table_worker_pid(w) == pid)
		rc = table_worker_next(w, 0, &a, e);
	return rc;
}

static void dies_idle(struct tap *t)
{
	struct table_worker *w = open_with(0, 0);
	struct table_worker_answer a;
	struct err e = { 0 };
	int rc = 0, deaths = 0;

	tap_ok(t, idle_death(w) && next_worker(w, table_worker_pid(w), &e) == 0,
		"a worker that dies while idle is replaced");
	ask(w, "good", 1);
	tap_ok(t, answers(w, 1, 0, "good") && !table_worker_over(w),
		"the replacement of a dead worker compiles files");
	for (; deaths < 3 && rc == 0; deaths++)
		rc = idle_death(w) ? next_worker(w, table_worker_pid(w), &e) : -1;
	tap_ok(t, rc == -EIO && deaths == 3 && strstr(e.msg, "stays alive") && strstr(e.msg, "SIGKILL"),
		"after three deaths in a row while idle no worker is started");
	tap_ok(t,
		table_worker_over(w) && table_worker_next(w, -1, &a, &e) == -EIO && table_worker_pid(w) == 0,
		"the error is permanent");
	e = (struct err){ 0 };
	tap_ok(t,
		table_worker_ask(w, STDIN_FILENO, 2, &e) == -EIO && strstr(e.msg, "SIGKILL") &&
			table_worker_pending(w) == 0,
		"further requests fail for the same reason");
	table_worker_close(w);
}

static void ignores_signals(struct tap *t)
{
	static const int sent[] = { SIGINT, SIGHUP, SIGTERM, SIGQUIT, SIGPIPE };
	struct table_worker *w = open_with(0, 0);
	pid_t pid = table_worker_pid(w);

	ask(w, "good", 1);
	answers(w, 1, 0, "good");
	for (size_t i = 0; i < ARRAY_LEN(sent); i++)
		kill(pid, sent[i]);
	ask(w, "good", 2);
	tap_ok(t, answers(w, 2, 0, "good") && table_worker_pid(w) == pid,
		"signals from a terminal or a manager do not end the worker");
	table_worker_close(w);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms = 1;
}

static void is_interrupted(struct tap *t)
{
	struct table_worker *w = open_with(0, 60);
	struct itimerval often = { { 0, 20000 }, { 0, 20000 } }, never = { 0 };
	struct sigaction act = { .sa_handler = on_alarm }, old;
	struct table_worker_answer a;
	int rc;

	ask(w, "h", 1);
	sigaction(SIGALRM, &act, &old);
	setitimer(ITIMER_REAL, &often, NULL);
	rc = table_worker_next(w, -1, &a, NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &old, NULL);
	tap_ok(t, rc == 0 && alarms && table_worker_pending(w) == 1,
		"a signal interrupts the wait for an answer");
	tap_ok(t, table_worker_next(w, 10, &a, NULL) == 0, "the wait for an answer ends after its timeout");
	table_worker_close(w);
}

static void refuses(struct tap *t)
{
	struct table_worker *w = open_with(0, 0);
	char path[128];
	int pair[2], fd;
	struct err e = { 0 };

	if (pipe2(pair, O_CLOEXEC) != 0)
		abort();
	tap_ok(t, table_worker_ask(w, pair[0], 1, &e) == -EMEDIUMTYPE && strstr(e.msg, "regular"),
		"a pipe is refused");
	close(pair[0]);
	close(pair[1]);
	fd = open("/", O_RDONLY | O_CLOEXEC);
	tap_ok(t, table_worker_ask(w, fd, 1, &e) == -EMEDIUMTYPE, "a directory is refused");
	close(fd);
	tap_ok(t, table_worker_ask(w, fd, 1, &e) == -EBADF, "a closed descriptor is refused");
	tap_ok(t, table_worker_pending(w) == 0, "refused requests are not pending");
	snprintf(path, sizeof(path), "%s/writable", top);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "w", 1) != 1)
		abort();
	table_worker_ask(w, fd, 1, NULL);
	tap_ok(t, answers(w, 1, -EBADF, "written to"),
		"the worker cannot write to a file that the caller can write to");
	close(fd);
	fd = open(path, O_PATH | O_CLOEXEC);
	table_worker_ask(w, fd, 2, NULL);
	tap_ok(t, answers(w, 2, -EBADF, "written to"),
		"the worker can read a file that the caller opened with O_PATH");
	close(fd);
	unlink(path);
	table_worker_close(w);
}

static void leaks_nothing(struct tap *t)
{
	size_t before = self_open_files(), good = 0;
	struct table_worker *w = open_with(0, 0);
	struct table_worker_answer a;

	for (uint64_t i = 0; i < 200; i++)
		ask(w, i % 50 == 20 ? "x" : "good", i);
	for (uint64_t i = 0; i < 200 && table_worker_next(w, -1, &a, NULL) == 1; i++)
		good += a.cookie == i && (a.error == 0) == (i % 50 != 20);
	tap_eq_u64(t, good, 200, "200 requests, four of which kill the worker, are answered in order");
	ask(w, "good", 1);
	ask(w, "good", 2);
	table_worker_close(w);
	tap_eq_u64(t, self_open_files(), before,
		"no descriptor stays open, whether its request was answered or not");
	tap_ok(t, waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "no process is left");
}

/* Run out of descriptors. Returns a bit for each failed check. */
static int few_descriptors(void)
{
	struct rlimit few = { 48, 48 };
	struct table_worker *w = open_with(0, 0);
	int fd = file_with("good"), bad = 0;
	struct err e = { 0 };
	uint64_t requested = 0;

	if (setrlimit(RLIMIT_NOFILE, &few) != 0)
		return 128;
	while (requested < 100 && table_worker_ask(w, fd, requested, &e) == 0)
		requested++;
	bad |= requested < 8 || requested == 100 || e.code != -EMFILE || !e.hint[0] ? 1 : 0;
	for (uint64_t i = 0; i < requested; i++)
		bad |= !answers(w, i, 0, "good") ? 2 : 0;
	bad |= table_worker_pending(w) || table_worker_ask(w, fd, 1, NULL) != 0 || !answers(w, 1, 0, "good")
		       ? 4
		       : 0;
	table_worker_close(w);
	return bad;
}

static void runs_out_of_descriptors(struct tap *t)
{
	int bad = self_apart(few_descriptors);

	tap_ok(t, !(bad & 129), "without free descriptors a request is refused with a hint");
	tap_ok(t, !(bad & 130), "the requests before it are answered");
	tap_ok(t, !(bad & 132), "requests are accepted again afterwards");
}

static int bare(void)
{
	struct table_worker *w;
	int bad;

	close(0);
	close(1);
	close(2);
	w = open_with(0, 0);
	ask(w, "good", 1);
	bad = !answers(w, 1, 0, "good");
	table_worker_close(w);
	return bad;
}

static int as_user(void)
{
	bool ok;

	if (geteuid() == 0 && (setresgid(1234, 1234, 1234) != 0 || setresuid(1234, 1234, 1234) != 0))
		return 2;
	ok = survives("s", -EIO, "killed by SIGILL", true) && survives("o", -EIO, "system call", true) &&
	     survives_greed();
	return !ok;
}

/* Root of a user namespace that has no user "nobody". */
static int as_nominal_root(void)
{
	char map[32];
	int fd;

	snprintf(map, sizeof(map), "0 %u 1", geteuid());
	if (unshare(CLONE_NEWUSER) != 0)
		return 77;
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, map, strlen(map)) < 0)
		return 77;
	close(fd);
	return !(survives("s", -EIO, "killed by SIGILL", true) && survives("o", -EIO, "system call", true));
}

/* A kernel without seccomp: files cannot be opened there either, because no descriptor is left. */
static int without_seccomp(void)
{
	return !self_refuse(SYS_prctl, PR_SET_SECCOMP, EINVAL) ||
	       !(survives("s", -EIO, "killed by SIGILL", true) && survives_greed());
}

static int cannot_begin(void)
{
	struct table_worker *w;
	struct table_worker_answer a;
	struct err e = { 0 };
	bool ok;

	if (!self_refuse(SYS_prctl, PR_SET_PDEATHSIG, EACCES))
		return 2;
	w = open_with(0, 0);
	ask(w, "good", 1);
	ok = table_worker_next(w, -1, &a, &e) == -EIO &&
	     strstr(e.msg, "bind a process to its parent: Permission");
	ok = ok && table_worker_over(w) && table_worker_pending(w) == 0;
	table_worker_close(w);
	return !ok;
}

static int without_processes(void)
{
	struct table_worker *w = NULL;
	struct err e = { 0 };

	if (!self_refuse(SYS_clone, 0x1200011, EAGAIN))
		return 77;
	return !(table_worker_open_with(NULL, by_content, &w, &e) == -EAGAIN &&
		 strstr(e.msg, "cannot start") && !w);
}

static void in_odd_places(struct tap *t)
{
	int rc;

	tap_eq_u64(t, self_apart(bare), 0, "the worker works without standard input, output and error");
	tap_eq_u64(t, self_apart(as_user), 0, "the worker works for an ordinary user");
	rc = self_apart(as_nominal_root);
	if (rc == 77)
		tap_skip(t, "the worker works in a user namespace", "user namespaces are unavailable");
	else
		tap_eq_u64(t, rc, 0, "the worker works in a user namespace without the user nobody");
	tap_eq_u64(t, self_apart(without_seccomp), 0, "the worker works on a kernel without seccomp");
	tap_eq_u64(t, self_apart(cannot_begin), 0, "a worker that cannot enter its sandbox reports why");
	tap_eq_u64(t, self_apart(without_processes), 0, "a failing clone(2) is reported");
}

/* A child of ours stands for the recorder and is killed. */
static void ends_with_parent(struct tap *t)
{
	pid_t pid = 0;
	struct pollfd p = { .events = POLLIN };
	int fds[2];
	pid_t parent;

	if (pipe2(fds, O_CLOEXEC) != 0)
		abort();
	fflush(stdout);
	parent = fork();
	if (parent == 0) {
		struct table_worker *w = open_with(0, 0);

		ask(w, "good", 1);
		answers(w, 1, 0, "good");
		ask(w, "h", 2);
		pid = table_worker_pid(w);
		if (write(fds[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
		pause();
	}
	if (read(fds[0], &pid, sizeof(pid)) != sizeof(pid))
		abort();
	p.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	kill(parent, SIGKILL);
	waitpid(parent, NULL, 0);
	tap_ok(t, p.fd >= 0 && poll(&p, 1, 60000) == 1, "a worker that compiles a file dies with its parent");
	close(p.fd);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	struct tap t = { 0 };

	snprintf(top, sizeof(top), "%s/stacktools-tabworker.XXXXXX", P_tmpdir);
	if (!mkdtemp(top) || chmod(top, 0777) != 0)
		return 1;
	compiles(&t);
	compiles_elf(&t);
	is_attacked(&t);
	is_cheated(&t);
	is_slow(&t);
	dies_idle(&t);
	ignores_signals(&t);
	is_interrupted(&t);
	refuses(&t);
	runs_out_of_descriptors(&t);
	in_odd_places(&t);
	ends_with_parent(&t);
	leaks_nothing(&t);
	rmdir(top);
	return tap_done(&t);
}
