/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to a worker and their replies, malformed replies, and workers that fail. */
#include "base/clock.h"
#include "base/tap.h"
#include "system/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define WHO "the process under test"

/* --- a worker that does what the request's first letter says --- */

struct said {
	uint32_t number;
	int32_t error;
	char text[300];
};

/* A message made by hand, of LEN bytes. */
static void say(int sock, uint32_t number, int32_t error, size_t len)
{
	struct said s = { .number = number, .error = error };

	memset(s.text, 'x', sizeof(s.text));
	send(sock, &s, len, MSG_NOSIGNAL);
}

static int sock_of_child = -1;

static int serve(void *ctx, const void *request, size_t len, int *fds, struct worker_answer *a)
{
	const char *q = request;
	const int sock = sock_of_child;

	(void)ctx;
	switch (len ? *q : 0) {
	case 'a': /* replies with the request itself */
		a->bytes = request;
		a->len = len;
		return 0;
	case 'e':
		return err_set(&a->err, -EBADMSG, "the request is bad");
	case 'E': /* an error whose message is longer than any reply */
		memset(a->err.msg, 'y', sizeof(a->err.msg) - 1);
		return -EBADMSG;
	case 'f': /* a descriptor */
		a->fd = memfd_create("reply", MFD_CLOEXEC);
		return a->fd < 0 || pwrite(a->fd, "from it", 7, 0) != 7 ? -EIO : 0;
	case 'r': { /* reads from the descriptors of the request */
		static char text[2];

		if (fds[0] < 0 || fds[1] < 0 || pread(fds[0], text, 1, 0) != 1 ||
			pread(fds[1], text + 1, 1, 0) != 1)
			return -EBADF;
		a->bytes = text;
		a->len = 2;
		return 0;
	}
	case 'n': /* a reply with another number */
		say(sock, 77, 0, 8);
		return 0;
	case '0': /* reports a second time that it has begun */
		say(sock, 0, 0, 8);
		return 0;
	case '+': /* an error code that does not exist */
		say(sock, 1, 5, 8);
		return 0;
	case '-':
		say(sock, 1, -5000, 8);
		return 0;
	case 'h': /* less than a header */
		say(sock, 1, 0, 5);
		return 0;
	case 'l': /* more than the caller has room for */
		say(sock, 1, 0, 8 + 100);
		return 0;
	case 'L': /* more than any buffer has room for */
		say(sock, 1, 0, sizeof(struct said));
		return 0;
	case 's':
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
		return 0;
	case 'x':
		syscall(SYS_exit_group, 3);
		return 0;
	case 'q': /* closes its socket but does not exit */
		close(sock);
		for (;;)
			pause();
	case 'z':
		for (;;)
			pause();
	default:
		return -EPERM;
	}
}

static int run(void *arg, int sock)
{
	char request[64];

	sock_of_child = sock;
	worker_serve(sock, request, sizeof(request), serve, arg);
	return 0;
}

static struct worker *start(void)
{
	const struct worker_opts o = { .who = WHO, .run = run };
	struct worker *w = NULL;
	struct err e = { 0 };

	if (worker_start(&o, &w, &e) != 0)
		abort();
	return w;
}

static void serves(struct tap *t)
{
	struct worker *w = start();
	char reply[8] = "", text[16] = "";
	int files[2] = { memfd_create("a", 0), memfd_create("b", 0) }, fd = -1;
	struct worker_reply r;
	struct worker_stats st;
	struct err e = { 0 };

	tap_ok(t, worker_ready(w, NULL) == 0 && worker_has_begun(w) && worker_pid(w),
		"a worker starts and is ready");
	tap_ok(t,
		worker_call(w, "abc", 3, reply, sizeof(reply), NULL, NULL) == 3 && strcmp(reply, "abc") == 0,
		"a request gets its reply");
	tap_ok(t,
		worker_call(w, "e", 1, reply, sizeof(reply), NULL, &e) == -EBADMSG &&
			strcmp(e.msg, "the request is bad") == 0,
		"an error has its code and a message, which may be longer than the reply buffer");
	tap_ok(t, worker_call(w, "E", 1, reply, sizeof(reply), NULL, &e) == -EBADMSG && strlen(e.msg) == 255,
		"a long error message is truncated");
	tap_ok(t,
		worker_call(w, "f", 1, NULL, 0, &fd, NULL) == 0 && pread(fd, text, 7, 0) == 7 &&
			strcmp(text, "from it") == 0,
		"a reply may carry a descriptor");
	tap_ok(t, fcntl(fd, F_GETFD) & FD_CLOEXEC, "a received descriptor is close-on-exec");
	close(fd);
	tap_ok(t, worker_call(w, "f", 1, NULL, 0, NULL, NULL) == 0 && fcntl(fd, F_GETFD) < 0,
		"an unexpected descriptor is closed");
	tap_ok(t,
		pwrite(files[0], "A", 1, 0) == 1 && pwrite(files[1], "B", 1, 0) == 1 &&
			worker_send(w, "r", 1, files, 2) == 0 &&
			worker_receive(w, -1, reply, sizeof(reply), false, &r) == 1 && r.len == 2 &&
			memcmp(reply, "AB", 2) == 0,
		"a request may carry two descriptors");
	tap_ok(t, worker_receive(w, 0, reply, sizeof(reply), false, &r) == 0,
		"without a request there is no reply");
	memset(text, 'a', sizeof(text));
	for (int i = 0; i < 5; i++)
		worker_send(w, "a12345" + (i ? 0 : 0), (size_t)(i + 1), NULL, 0);
	for (size_t i = 1; i <= 5; i++)
		if (worker_receive(w, -1, reply, sizeof(reply), false, &r) != 1 || r.len != i)
			tap_ok(t, false, "reply %zu", i);
	tap_ok(t, true, "pending requests get their replies in order");
	tap_ok(t, worker_call(w, (char[200]){ "a" }, 200, reply, sizeof(reply), NULL, NULL) == -EPERM,
		"a request that is too long is refused");
	tap_ok(t, worker_call(w, "?", 1, reply, sizeof(reply), NULL, NULL) == -EPERM,
		"an unknown request is refused");
	worker_stats(w, &st);
	tap_ok(t, st.requested == 7 && !st.lost && !st.why[0], "calls are counted");
	worker_free(w);
	close(files[0]);
	close(files[1]);
	tap_ok(t, waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD,
		"no process is left after worker_free()");
}

/* The request LETTER fails, and the worker ends with TEXT in the message. A restarted worker works. */
static void fails(struct tap *t, const char *letter, const char *text, const char *name)
{
	struct worker *w = start();
	struct worker_stats st;
	char reply[8];
	struct err e = { 0 };
	bool ok = worker_call(w, letter, 1, reply, sizeof(reply), NULL, &e) == -ENOTCONN &&
		  strstr(e.msg, WHO) && strstr(e.msg, text) && !worker_pid(w) && worker_fd(w) < 0;

	ok = ok && worker_call(w, "a", 1, reply, sizeof(reply), NULL, &e) == -ENOTCONN && strstr(e.msg, text);
	worker_stats(w, &st);
	ok = ok && st.lost == 2 && strstr(st.why, text);
	if (ok && worker_restart(w, NULL) == 0)
		ok = worker_call(w, "a", 1, reply, sizeof(reply), NULL, NULL) == 1;
	if (!tap_ok(t, ok, "%s ends the worker, and it can be restarted", name))
		tap_diag("%s", e.msg);
	worker_free(w);
}

static void is_not_believed(struct tap *t)
{
	fails(t, "n", "sent a malformed reply and was killed", "a reply with another number");
	fails(t, "0", "sent a malformed reply", "a second message that it has begun");
	fails(t, "+", "sent a malformed reply", "a positive error code");
	fails(t, "-", "sent a malformed reply", "an unknown error code");
	fails(t, "h", "sent a malformed reply", "half a header");
	fails(t, "l", "sent a malformed reply", "a reply longer than the buffer");
	fails(t, "L", "sent a malformed reply", "a reply longer than any buffer");
	fails(t, "s", "was killed by SIGSEGV", "a crash");
	fails(t, "x", "ended with status 3", "an exit");
	fails(t, "q", "did not end and was killed", "closing the socket");
}

static void is_limited(struct tap *t)
{
	struct worker *w = start();
	const uint64_t from_ns = now_ns();
	char reply[8];
	struct err e = { 0 };

	worker_limit(w, from_ns + UINT64_C(5000000000));
	tap_ok(t, worker_call(w, "a", 1, reply, sizeof(reply), NULL, NULL) == 1,
		"calls within the limit have their replies");
	worker_limit(w, now_ns() + 50000000);
	tap_ok(t,
		worker_call(w, "z", 1, reply, sizeof(reply), NULL, &e) == -ENOTCONN &&
			strstr(e.msg, "did not reply and was killed") &&
			now_ns() - from_ns < UINT64_C(9000000000),
		"one that would last longer stops the worker, long before its ten seconds are over");
	worker_limit(NULL, 1);
	worker_free(w);
}

/* --- workers that cannot begin, that report, or that work without messages --- */

static int cannot(void *arg, struct err *e)
{
	(void)arg;
	return err_set(e, -ENOTUNIQ, "there is another one");
}

static int report(void *arg, int sock)
{
	(void)arg;
	for (char i = 'a'; i < 'd'; i++)
		if (worker_report(sock, &i, 1, -1, true) != 0)
			return 1;
	return 0;
}

static int report_numbered(void *arg, int sock)
{
	(void)arg;
	say(sock, 1, 0, 9);
	return 0;
}

static int quit(void *arg, int sock)
{
	(void)sock;
	return *(int *)arg;
}

static int spin(void *arg, int sock)
{
	(void)arg, (void)sock;
	for (;;)
		__asm__ volatile("" ::: "memory");
	return 0;
}

static int standard_streams(void *arg, int sock)
{
	char byte;

	(void)arg, (void)sock;
	return read(0, &byte, 1) != 0 || write(1, "x", 1) != 1 || write(2, "x", 1) != 1;
}

static void begins(struct tap *t)
{
	const struct worker_opts o = { .who = WHO, .prepare = cannot, .run = run };
	struct worker *w = NULL;
	struct err e = { 0 };

	tap_ok(t,
		worker_start(&o, &w, NULL) == 0 && worker_ready(w, &e) == -ENOTUNIQ &&
			strstr(e.msg, WHO " could not begin: there is another one") && !worker_pid(w),
		"a worker that cannot begin says why");
	worker_free(w);
	tap_ok(t,
		worker_start(&o, &w, NULL) == 0 && worker_call(w, "a", 1, NULL, 0, NULL, &e) == -ENOTCONN &&
			strstr(e.msg, "there is another one"),
		"a call of a worker that cannot begin says why");
	worker_free(w);
	tap_ok(t,
		worker_ready(NULL, NULL) == 0 &&
			worker_call(NULL, "a", 1, NULL, 0, NULL, NULL) == -ENOTCONN && !worker_pid(NULL),
		"a NULL worker is ready, has no PID and refuses calls");
	worker_free(NULL);
}

static void reports(struct tap *t)
{
	struct worker_opts o = { .who = WHO, .reports = true, .run = report };
	struct worker_reply r;
	struct worker *w = NULL;
	char got[4] = "";
	bool ok = worker_start(&o, &w, NULL) == 0;

	for (int i = 0; i < 3; i++)
		ok = ok && worker_receive(w, -1, got + i, 1, false, &r) == 1 && r.len == 1;
	tap_ok(t, ok && strcmp(got, "abc") == 0, "reports arrive without requests");
	tap_ok(t, worker_receive(w, -1, got, 1, false, &r) == -EPIPE,
		"after the reports the end of the worker is reported");
	worker_free(w);
	o.run = report_numbered;
	tap_ok(t, worker_start(&o, &w, NULL) == 0 && worker_receive(w, -1, got, 1, false, &r) == -EPROTO,
		"a reply instead of a report is a protocol error");
	worker_free(w);
}

static void is_waited_for(struct tap *t)
{
	int code = 0;
	struct worker_opts o = { .who = WHO, .run = quit, .arg = &code };
	struct worker *w = NULL;
	struct err e = { 0 };
	uint64_t began;

	tap_ok(t, worker_start(&o, &w, NULL) == 0 && worker_wait(w, 10, &e) == 0,
		"waiting for a worker that exits with status 0 succeeds");
	worker_free(w);
	code = 9;
	tap_ok(t,
		worker_start(&o, &w, NULL) == 0 && worker_wait(w, 10, &e) == -EIO &&
			strcmp(e.msg, WHO " ended with status 9") == 0,
		"waiting for a worker that fails gives its exit status");
	worker_free(w);
	o.run = spin;
	began = now_ns();
	tap_ok(t,
		worker_start(&o, &w, NULL) == 0 && worker_wait(w, 1, &e) == -ETIMEDOUT &&
			strcmp(e.msg, WHO " took longer than 1 s") == 0 && now_ns() - began >= 1000000000,
		"a worker that does not end in time is killed");
	worker_free(w);
	o.run = standard_streams;
	tap_ok(t, worker_start(&o, &w, NULL) == 0 && worker_wait(w, 10, &e) == 0,
		"the standard streams of a worker are /dev/null");
	worker_free(w);
}

static int nine(void *arg)
{
	return *(int *)arg;
}

static int crash(void *arg)
{
	(void)arg;
	signal(SIGSEGV, SIG_DFL);
	return raise(SIGSEGV);
}

static void tries(struct tap *t)
{
	int code = 9;

	tap_eq_u64(t, (uint64_t)worker_try(nine, &code), 9, "the exit status of a trial is its result");
	tap_ok(t, worker_try(crash, NULL) == -SIGSEGV, "a crash of a trial gives the negative signal number");
}

/* --- its sandbox --- */

static int look_around(void *ctx, const void *request, size_t len, int *fds, struct worker_answer *a)
{
	static char text[64];

	(void)ctx, (void)request, (void)len, (void)fds;
	/* getpid(2) is not a permitted system call */
	snprintf(text, sizeof(text), "%zd", pread(SANDBOX_FD + 1, text + 32, 4, 0));
	a->bytes = text;
	a->len = strlen(text) + 1;
	return 0;
}

static int confined(void *arg, int sock)
{
	(void)arg;
	worker_serve(sock, NULL, 0, look_around, NULL);
	return 0;
}

static int escapes(void *arg, int sock)
{
	(void)arg, (void)sock;
	return open("/etc/passwd", O_RDONLY);
}

static void is_confined(struct tap *t)
{
	int file = memfd_create("file", MFD_CLOEXEC);
	const struct sandbox_opts box = {
		.more_fds = &file, .n_more = 1, .comm = "in-a-box", .memory_bytes = 1 << 20, .file_bytes = 0
	};
	struct worker_opts o = { .who = WHO, .sandbox = &box, .run = confined };
	struct worker *w = NULL;
	char reply[64] = "";
	struct err e = { 0 };

	tap_ok(t,
		pwrite(file, "four", 4, 0) == 4 && worker_start(&o, &w, &e) == 0 &&
			worker_ready(w, &e) == 0 &&
			worker_call(w, NULL, 0, reply, sizeof(reply), NULL, &e) > 0 &&
			strcmp(reply, "4") == 0,
		"a sandboxed worker has its socket and the files that it was given");
	worker_free(w);
	o.run = escapes;
	tap_ok(t,
		worker_start(&o, &w, NULL) == 0 && worker_wait(w, 10, &e) == -EIO &&
			strstr(e.msg, "was killed at a system call that it may not make"),
		"a sandboxed worker is killed at a system call that it may not make: %s", e.msg);
	worker_free(w);
	close(file);
}

int main(void)
{
	struct tap t = { 0 };

	serves(&t);
	is_not_believed(&t);
	is_limited(&t);
	begins(&t);
	reports(&t);
	is_waited_for(&t);
	tries(&t);
	is_confined(&t);
	return tap_done(&t);
}
