/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process of another user is read by root first, and by the helper after root dropped all privileges. */
#include "../lib/raw-request.h"
#include "base/clock.h"
#include "base/tap.h"
#include "procfs/helper.h"
#include "system/drop.h"
#include "system/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define USER 1234
#define SECRET "what another user has in memory"

/* The process of the other user: a fork of this one that is blocked in read(2) after it wrote SECRET. */
struct other {
	pid_t pid;
	int out; /* write end of its pipe: it ends when this is closed */
	char *page; /* has the same address in both processes */
};

static struct other start_other(void)
{
	struct other o = { .page = NULL };
	int in[2], ready[2];
	char byte;

	o.page = calloc(1, 4096);
	if (!o.page || pipe2(in, O_CLOEXEC) != 0 || pipe2(ready, O_CLOEXEC) != 0)
		abort();
	fflush(stdout);
	o.pid = fork();
	if (o.pid == 0) {
		close(in[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (setresgid(USER, USER, USER) != 0 || setresuid(USER, USER, USER) != 0)
			_exit(1);
		prctl(PR_SET_DUMPABLE, 1);
		strcpy(o.page, SECRET);
		_exit(write(ready[1], "x", 1) != 1 || read(in[0], &byte, 1) != 0);
	}
	close(in[0]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		abort();
	close(ready[0]);
	o.out = in[1];
	return o;
}

/* The text of each of its files, read with our own permissions. */
struct seen {
	ssize_t len[PROCFILE_COUNT];
	char text[PROCFILE_COUNT][PROCFILE_TEXT];
};

static void see(pid_t pid, struct seen *s)
{
	for (unsigned int f = 0; f < PROCFILE_COUNT; f++)
		s->len[f] = proc_view_text(NULL, (uint32_t)pid, (uint32_t)pid, f, s->text[f],
			f == PROCFILE_EXE ? PROCFILE_EXE_BYTES : PROCFILE_TEXT);
}

static void await_read(pid_t pid)
{
	char text[256] = "";

	for (int i = 0; i < 5000 && strncmp(text, "0 ", 2) != 0; i++) {
		usleep(1000);
		if (proc_view_text(
			    NULL, (uint32_t)pid, (uint32_t)pid, PROCFILE_SYSCALL, text, sizeof(text)) <= 0)
			*text = '\0';
	}
}

static bool status_of(uint32_t pid, struct priv_status *st)
{
	char text[8192];
	ssize_t n = proc_view_text(NULL, pid, pid, PROCFILE_STATUS, text, sizeof(text) - 1);

	text[n < 0 ? 0 : n] = '\0';
	return priv_status_parse(text, st) == 0;
}

static void is_confined(struct tap *t, const struct helper *l)
{
	const uint64_t three = UINT64_C(1) << CAP_SYS_PTRACE | UINT64_C(1) << CAP_DAC_READ_SEARCH |
			       UINT64_C(1) << CAP_SYS_ADMIN;
	struct priv_status st = { 0 };

	tap_ok(t, status_of(helper_pid(l), &st), "the helper has a status in /proc");
	tap_eq_u64(
		t, st.permitted, three, "the helper is permitted the three capabilities for reading threads");
	tap_eq_u64(t, st.effective, three, "the helper has these capabilities in effect");
	tap_ok(t, !st.bounding && !st.ambient && !st.inheritable,
		"the helper cannot gain or pass on capabilities");
	tap_ok(t, st.no_new_privs == 1 && st.seccomp == 2,
		"the helper has a seccomp filter and no_new_privs");
	tap_ok(t, getsid((pid_t)helper_pid(l)) == (pid_t)helper_pid(l), "the helper is in its own session");
}

static bool equal(const struct helper_texts *a, const struct seen *b, enum procfile f)
{
	return a->len[f] == b->len[f] && memcmp(a->text[f], b->text[f], (size_t)a->len[f]) == 0;
}

static uint32_t start_spinning(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (volatile int on = 1; on;)
			;
	}
	return (uint32_t)pid;
}

static void looks(struct tap *t, struct helper *l, const struct other *o, const struct seen *root)
{
	const uint32_t pid = (uint32_t)o->pid, spins = start_spinning();
	struct helper_texts got;
	static struct seen own;
	unsigned int all = (1u << PROCFILE_COUNT) - 1;
	bool same = true;

	see(o->pid, &own);
	tap_ok(t, own.len[PROCFILE_SYSCALL] < 0 && own.len[PROCFILE_STACK] < 0,
		"without privileges, the system call and stack of another user's thread are hidden");
	tap_ok(t, root->len[PROCFILE_SYSCALL] > 0 && root->len[PROCFILE_STACK] > 0,
		"root can read the system call and stack of another user's thread");
	for (int i = 0; i < 3; i++) {
		same = same && helper_files(l, pid, pid, all, i > 0, &got) == 0;
		for (unsigned int f = 0; same && f < PROCFILE_COUNT; f++)
			same = f == PROCFILE_WCHAN ? got.len[f] == 0 : equal(&got, root, f);
	}
	tap_ok(t, same, "the helper's texts are those that root read, without wchan as there is a stack");
	tap_ok(t,
		helper_files(l, pid, pid, 1u << PROCFILE_WCHAN, true, &got) == 0 &&
			equal(&got, root, PROCFILE_WCHAN) && got.len[PROCFILE_STAT] == 0,
		"if only wchan is requested, it is read, and nothing else");
	helper_forget(l, pid, pid);
	helper_forget(l, pid, pid + 1);
	tap_ok(t, helper_files(l, pid, pid, all, true, &got) == 0 && equal(&got, root, PROCFILE_STAT),
		"a forgotten thread can be read again");
	tap_ok(t,
		helper_files(l, spins, spins, all & ~(1u << PROCFILE_STAT), false, &got) == 0 &&
			got.len[PROCFILE_SYSCALL] > 0 &&
			memcmp(got.text[PROCFILE_SYSCALL], "running", 7) == 0 && !got.len[PROCFILE_STACK] &&
			!got.len[PROCFILE_WCHAN] && !got.len[PROCFILE_AGAIN],
		"neither stack nor wchan of a running thread is read");
	tap_ok(t,
		helper_files(l, spins, spins, all, false, &got) == 0 && got.len[PROCFILE_STAT] > 0 &&
			!got.len[PROCFILE_SYSCALL] && !got.len[PROCFILE_STACK] && !got.len[PROCFILE_AGAIN],
		"nor its system call, if stat was read, which says that it runs");
	kill((pid_t)spins, SIGKILL);
	waitpid((pid_t)spins, NULL, 0);
	tap_ok(t,
		helper_files(l, 4194305, 4194305, all, true, &got) == 0 &&
			got.len[PROCFILE_STAT] == -ENOENT && got.len[PROCFILE_STACK] == -ENOENT,
		"the files of a missing thread are -ENOENT");
}

/* The texts of the other user's blocked thread, which root has read too. */
static bool are_its(const struct helper_texts *got, const struct seen *root)
{
	bool same = got->at_ns && !got->len[PROCFILE_WCHAN];

	for (unsigned int f = 0; same && f < PROCFILE_COUNT; f++)
		same = f == PROCFILE_WCHAN || equal(got, root, f);
	return same;
}

/* Requests for several threads: some that are missing or end, and more than a reply has room for. */
static void looks_at_many(struct tap *t, struct helper *l, const struct other *o, const struct seen *root)
{
	const uint32_t pid = (uint32_t)o->pid, all = (1u << PROCFILE_COUNT) - 1, spins = start_spinning();
	const struct helper_thread three[] = { { pid, pid, all, false }, { 4194305, 4194305, all, false },
		{ pid, pid, 1u << PROCFILE_STAT, false } },
				   two[] = { { spins, spins, all, false }, { pid, pid, all, false } };
	struct helper_thread many[HELPER_THREADS + 1];
	static struct helper_texts got[HELPER_THREADS + 1];
	uint64_t began = now_ns();
	size_t done = 0, replies = 0;
	bool same = true;
	ssize_t n = helper_files_of(l, three, 3, got);

	tap_ok(t,
		n == 3 && are_its(&got[0], root) && got[1].len[PROCFILE_STAT] == -ENOENT &&
			got[1].len[PROCFILE_STACK] == -ENOENT && equal(&got[2], root, PROCFILE_STAT) &&
			!got[2].len[PROCFILE_STATUS] && !got[0].stack_len,
		"one request has the files of several threads, each its own, and -ENOENT for a missing one");
	tap_ok(t,
		n == 3 && began <= got[0].at_ns && got[0].at_ns <= got[1].at_ns &&
			got[1].at_ns <= got[2].at_ns && got[2].at_ns <= now_ns(),
		"each thread has the time at which its files were read");
	n = helper_files_of(l, two, 2, got);
	tap_ok(t, n == 2 && got[0].len[PROCFILE_STATUS] > 0 && are_its(&got[1], root),
		"the files of a running and a blocked thread are read");
	kill((pid_t)spins, SIGKILL);
	waitpid((pid_t)spins, NULL, 0);
	n = helper_files_of(l, two, 2, got);
	tap_ok(t,
		n == 2 && got[0].len[PROCFILE_SCHEDSTAT] == -ESRCH && got[0].len[PROCFILE_STAT] == -ESRCH &&
			are_its(&got[1], root),
		"a thread that has ended in between is -ESRCH, and the files of the others are read");
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = (struct helper_thread){ pid, pid, all, false };
	for (; same && done < HELPER_THREADS; done += (size_t)n, replies++) {
		n = helper_files_of(l, many, HELPER_THREADS - done, got);
		same = n > 0 && (size_t)n <= HELPER_THREADS - done;
		for (ssize_t i = 0; i < n; i++)
			same = same && are_its(&got[i], root);
	}
	tap_ok(t, same && done == HELPER_THREADS && replies > 1,
		"of more threads than fit in a reply, it has the first ones in full: %zu in %zu replies",
		done, replies);
	tap_ok(t,
		helper_files_of(l, many, 0, got) == -EINVAL &&
			helper_files_of(l, many, HELPER_THREADS + 1, got) == -EINVAL,
		"a request for no thread, or for too many, is not sent");
	many[1].stack = true;
	tap_ok(t, helper_files_of(l, many, 2, got) == -EPERM,
		"the memory of stacks is refused by a helper that may not read memory");
	helper_forget(l, pid, pid);
}

struct numbers {
	uint32_t *at;
	size_t n, cap;
};

static void note(void *ctx, uint32_t number)
{
	struct numbers *s = ctx;

	if (base_grow(&s->at, &s->cap, s->n + 1, sizeof(*s->at)) == 0)
		s->at[s->n++] = number;
}

static bool has(const struct numbers *s, uint32_t number)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->at[i] == number)
			return true;
	return false;
}

static void *pause_thread(void *arg)
{
	pause();
	return arg;
}

static void lists(struct tap *t, struct helper *l, const struct other *o)
{
	struct numbers all = { 0 }, own = { 0 }, none = { 0 };
	pthread_t threads[20];

	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		if (pthread_create(&threads[i], NULL, pause_thread, NULL) != 0)
			abort();
	tap_ok(t,
		helper_list(l, 0, note, &all) == 0 && has(&all, (uint32_t)o->pid) && has(&all, 1) &&
			has(&all, (uint32_t)getpid()),
		"the helper lists processes");
	tap_ok(t,
		helper_list(l, (uint32_t)getpid(), note, &own) == 0 && own.n == 21 &&
			has(&own, (uint32_t)getpid()),
		"the helper lists the threads of a process");
	tap_ok(t, helper_list(l, 4194305, note, &none) == -ENOENT && !none.n,
		"listing the threads of a missing process is -ENOENT");
	tap_ok(t, proc_view_list(NULL, 0, note, &none) == 0 && none.n && has(&none, 1),
		"without a helper, processes are listed with our own permissions");
	for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
		pthread_cancel(threads[i]);
		pthread_join(threads[i], NULL);
	}
	free(all.at);
	free(own.at);
	free(none.at);
}

/* The stacks' memory beside the files, compared with COPY of the blocked thread. */
static void reads_stacks(
	struct tap *t, struct helper *l, const struct other *o, const struct thread_copy *copy)
{
	const uint32_t pid = (uint32_t)o->pid, spins = start_spinning(), all = (1u << PROCFILE_COUNT) - 1,
		       once = all & ~(1u << PROCFILE_AGAIN), call = all & ~(1u << PROCFILE_SYSCALL);
	const struct helper_thread threads[] = { { pid, pid, all, true }, { spins, spins, all, true },
		{ pid, pid, once, true }, { pid, pid, call, true }, { 4194305, 4194305, all, true },
		{ pid, pid, all, false } };
	static struct helper_texts got[ARRAY_LEN(threads)];
	ssize_t n = helper_files_of(l, threads, ARRAY_LEN(threads), got);
	size_t len = n > 0 && got[0].stack_len > 0 ? (size_t)got[0].stack_len : 0;

	tap_ok(t,
		n == ARRAY_LEN(threads) && len &&
			len == MIN(copy->head.areas[0].len, (uint64_t)HELPER_STACK) &&
			got[0].stack_from == copy->head.areas[0].from &&
			memcmp(got[0].stack, copy->bytes[0], len) == 0 && got[0].len[PROCFILE_AGAIN] > 0 &&
			got[0].len[PROCFILE_AGAIN] == got[0].len[PROCFILE_SCHEDSTAT] &&
			memcmp(got[0].text[PROCFILE_AGAIN], got[0].text[PROCFILE_SCHEDSTAT],
				(size_t)got[0].len[PROCFILE_AGAIN]) == 0,
		"the stack of a blocked thread is copied between two readings of schedstat");
	tap_ok(t, n == ARRAY_LEN(threads) && !got[1].stack_len && !got[1].len[PROCFILE_AGAIN],
		"that of a running thread is not");
	tap_ok(t,
		n == ARRAY_LEN(threads) && !got[2].stack_len && !got[3].stack_len && got[4].stack_len < 0 &&
			!got[5].stack_len && got[5].len[PROCFILE_CGROUP] > 0,
		"nor one without the second schedstat, its system call or a thread, or that was not "
		"requested");
	kill((pid_t)spins, SIGKILL);
	waitpid((pid_t)spins, NULL, 0);
	helper_forget(l, pid, pid);
}

static void reads_memory(struct tap *t, struct helper *l, const struct other *o)
{
	static struct thread_copy copy;
	const uint64_t wanted[] = { (uint64_t)(uintptr_t)o->page, 16 };
	struct quiet_copy_call call = { 0 };
	struct stop_copy_report reported = { 0 };
	char text[sizeof(SECRET)] = "";
	char status[8192];
	ssize_t n;

	tap_ok(t,
		helper_memory(l, o->pid, wanted[0], text, sizeof(text)) == sizeof(text) &&
			strcmp(text, SECRET) == 0,
		"the helper reads memory of another user's process");
	tap_ok(t, helper_memory(l, o->pid, 16, text, 8) == -EFAULT, "reading unmapped memory is -EFAULT");
	tap_ok(t, helper_memory(l, 4194305, wanted[0], text, 8) == -ESRCH,
		"reading memory of a missing process is -ESRCH");
	tap_ok(t,
		helper_quiet(l, o->pid, o->pid, wanted, 2, &copy, &call) == 0 && call.number == 0 &&
			copy.head.n_areas == 2 && copy.head.areas[1].from == wanted[0] &&
			strcmp((char *)copy.bytes[1], SECRET) == 0 &&
			copy.head.regs[THREAD_COPY_SP] == call.sp,
		"a blocked thread is copied: its call, its stack, and the requested memory");
	reads_stacks(t, l, o, &copy);
	tap_ok(t,
		helper_stop(l, o->pid, wanted, 1, &copy, &reported) == 0 && copy.head.all &&
			copy.head.regs[THREAD_COPY_PC] == call.pc && copy.head.n_areas == 2 &&
			reported.stopped_ns && reported.again == -1,
		"a thread is stopped for a moment and its registers are copied");
	for (int i = 0; i < 20; i++)
		if (helper_stop(l, o->pid, wanted, 1, &copy, &reported) != 0)
			tap_ok(t, false, "the thread can be stopped again, repetition %d", i);
	n = proc_view_text(
		NULL, (uint32_t)o->pid, (uint32_t)o->pid, PROCFILE_STATUS, status, sizeof(status) - 1);
	status[n < 0 ? 0 : n] = '\0';
	tap_ok(t, strstr(status, "\nTracerPid:\t0\n") != NULL, "the thread has no tracer afterwards");
	tap_ok(t, helper_stop(l, 4194305, NULL, 0, &copy, &reported) == -ESRCH,
		"stopping a missing thread is -ESRCH");
	tap_ok(t, helper_quiet(l, o->pid, 4194305, NULL, 0, &copy, &call) == -ENOENT && !copy.head.n_areas,
		"copying a missing thread is -ENOENT");
}

/* Q is a good request for the files of one thread. */
static void refuses_threads(struct tap *t, int sock, struct helper_request q)
{
	static const uint32_t counts[] = { 0, HELPER_THREADS + 1, 1u << 31, UINT32_MAX };
	bool all = true;

	for (uint32_t i = 1; i < HELPER_THREADS; i++)
		q.threads[i] = q.threads[0];
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		q.n = counts[i];
		all = all && send_raw(sock, &q, sizeof(q)) == -EPERM;
	}
	tap_ok(t, all, "a request for the files of no thread, or of too many, is refused");
	q.n = HELPER_THREADS;
	tap_eq_u64(t, send_raw(sock, &q, sizeof(q)), 0, "one for as many as possible is answered");
	q.threads[HELPER_THREADS - 1].pid = 0;
	tap_eq_u64(
		t, send_raw(sock, &q, sizeof(q)), -EPERM, "one of which a thread is of process 0 is refused");
}

static void refuses(struct tap *t, int sock, bool memory, pid_t pid)
{
	struct helper_request q = { .pid = (uint32_t)pid, .tid = (uint32_t)pid };
	_cleanup_free_ char *large = calloc(1, 1 << 16);
	bool all = true;

	for (uint32_t kind = 0; kind < 1000; kind++) {
		q.kind = kind;
		if (kind == 0 || kind >= HELPER_KINDS || (!memory && kind >= HELPER_QUIET))
			all = all && send_raw(sock, &q, sizeof(q)) == -EPERM;
	}
	q.kind = UINT32_MAX;
	tap_ok(t, all && send_raw(sock, &q, sizeof(q)) == -EPERM, "an unknown request%s is refused",
		memory ? "" : ", or one for memory without that permission,");
	q.pid = 0;
	for (uint32_t kind = 1; kind < HELPER_KINDS; kind++) {
		q.kind = kind;
		if (kind != HELPER_LIST && kind != HELPER_AREA)
			all = all && send_raw(sock, &q, sizeof(q)) == -EPERM;
	}
	tap_ok(t, all, "a request for process 0 is refused");
	tap_ok(t,
		send_raw(sock, "", 0) == -EPERM && send_raw(sock, "x", 1) == -EPERM &&
			send_raw(sock, &q, sizeof(q) - 1) == -EPERM,
		"an incomplete request is refused");
	if (large)
		tap_eq_u64(
			t, send_raw(sock, large, 1 << 16), -EPERM, "a request that is too long is refused");
	q.pid = (uint32_t)pid;
	if (memory) {
		q.n = UINT32_MAX;
		for (uint32_t kind = HELPER_QUIET; kind < HELPER_KINDS; kind++) {
			q.kind = kind;
			q.arg = UINT32_MAX;
			all = all && send_raw(sock, &q, sizeof(q)) == -EPERM;
		}
		tap_ok(t, all, "a request for more than there is room for is refused");
	}
	q = (struct helper_request){
		.kind = HELPER_FILES, .n = 1, .threads = { { (uint32_t)pid, (uint32_t)pid, UINT32_MAX, 0 } }
	};
	tap_eq_u64(t, send_raw(sock, &q, sizeof(q)), 0, "unknown files in a request are ignored");
	refuses_threads(t, sock, q);
	q = (struct helper_request){ .kind = HELPER_LIST, .arg = UINT32_MAX };
	tap_eq_u64(t, send_raw(sock, &q, sizeof(q)), 0, "a request after refused ones is answered");
}

static void ends(struct tap *t, struct helper *l)
{
	struct worker_stats st;
	struct helper_texts got;

	tap_ok(t, helper_cpu_ns(l) > 0, "the helper's CPU time is reported");
	/* of 0, this process would be killed itself */
	if (helper_pid(l))
		kill((pid_t)helper_pid(l), SIGKILL);
	tap_ok(t,
		helper_files(l, 1, 1, 1, false, &got) == -ENOTCONN &&
			helper_list(l, 0, note, NULL) == -ENOTCONN,
		"requests to a killed helper fail at once with -ENOTCONN");
	helper_stats(l, &st);
	tap_ok(t, strstr(st.why, "was killed by SIGKILL") && st.lost == 2 && st.requested,
		"the failed calls are counted and the reason is reported: %s", st.why);
	tap_ok(t, !helper_pid(l) && !helper_cpu_ns(l), "a killed helper has no PID and no CPU time");
	tap_ok(t, helper_files(NULL, 1, 1, 1, false, &got) == -ENOTCONN,
		"a request without a helper is -ENOTCONN");
}

/* Start a helper. Returns our end of its socket, or -1. */
static int start(bool memory, struct helper **l)
{
	/* the socket will get the lowest free descriptor */
	int sock = fcntl(0, F_DUPFD, 3);

	close(sock);
	return helper_start(&(struct helper_opts){ .memory = memory }, l, NULL) == 0 &&
			       helper_ready(*l, NULL) == 0
		       ? sock
		       : -1;
}

int main(void)
{
	static struct seen root;
	struct helper *without = NULL, *with = NULL;
	struct priv_drop dropped;
	struct other o;
	int sock_without, sock_with;
	struct tap t = { 0 };
	pthread_attr_t large;

	if (geteuid() != 0 || !priv_have(CAP_SYS_PTRACE) || !priv_have(CAP_SYS_ADMIN)) {
		puts("1..0 # SKIP not root, or without CAP_SYS_PTRACE or CAP_SYS_ADMIN");
		return 0;
	}
	/* thread stacks larger than the memory that the helper may use */
	pthread_attr_init(&large);
	pthread_attr_setstacksize(&large, 256 << 20);
	pthread_setattr_default_np(&large);
	o = start_other();
	await_read(o.pid);
	see(o.pid, &root);
	sock_without = start(false, &without);
	sock_with = start(true, &with);
	tap_ok(&t, sock_without >= 0 && sock_with >= 0,
		"a helper starts, and another one that may read memory");
	tap_ok(&t,
		priv_drop_now(&(struct priv_drop_opts){ .paths = true, .private_user = true }, &dropped,
			NULL) == 0 &&
			!dropped.kept,
		"all privileges are dropped");
	is_confined(&t, without);
	is_confined(&t, with);
	looks(&t, without, &o, &root);
	looks_at_many(&t, without, &o, &root);
	lists(&t, without, &o);
	refuses(&t, sock_without, false, o.pid);
	reads_memory(&t, with, &o);
	refuses(&t, sock_with, true, o.pid);
	ends(&t, without);
	ends(&t, with);
	helper_free(without);
	helper_free(with);
	close(o.out);
	tap_ok(&t, waitpid(o.pid, NULL, 0) == o.pid, "the process that was read ends normally");
	free(o.page);
	return tap_done(&t);
}
