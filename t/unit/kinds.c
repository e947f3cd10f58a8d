/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of symbols/kinds.h: waits with stacks as Linux, glibc and runtimes have them, and what a person
 * would call them; rules that are wrong.
 */
#include "symbols/kinds.h"
#include "base/tap.h"
#include "capture/writer.h"

#include <errno.h>
#include <string.h>

#define KERNEL UINT64_C(0xffffffff81000000)
#define USER UINT64_C(0x500000000000)
#define STEP 0x100 /* bytes of a function */
#define NAMES 512
#define R 0
#define S 1
#define D 2
#define T 4
#define I 0x402

static struct tap t;
static const char *tmp;

struct wait {
	const char *want;
	uint32_t tid, state, flags;
	const char *kernel, *user; /* functions, innermost first, with ';' between them */
};

#define THREAD ";start_thread;__clone3"

/* One thread each, so that none of them has a loop but where it is said. */
static const struct wait waits[] = {
	{ "lock", 1, S, 0, "futex_do_wait;__x64_sys_futex",
		"__lll_lock_wait;pthread_mutex_lock;work" THREAD },
	{ "sleep", 1, S, 0, "hrtimer_nanosleep;__x64_sys_clock_nanosleep", "clock_nanosleep;rest" THREAD },
	{ "lock", 2, S, 0, "futex_do_wait;__x64_sys_futex", "pthread_rwlock_rdlock;get;work" THREAD },
	{ "condition", 3, S, 0, "futex_do_wait;__x64_sys_futex",
		"__futex_abstimed_wait_common;pthread_cond_wait@@GLIBC_2.3.2;answer;ask;work" THREAD },
	{ "sleep", 3, S, 0, "hrtimer_nanosleep;__x64_sys_nanosleep", "nanosleep;rest;work" THREAD },
	{ "condition", 3, S, 0, "futex_do_wait;__x64_sys_futex",
		"__futex_abstimed_wait_common64;__futex_abstimed_wait_common;__pthread_clockjoin_ex;end;"
		"main" },
	{ "condition", 3, S, 0, "futex_do_wait;__x64_sys_futex",
		"[libc.so.6+0x8bbb0];pthread_join;end;main" },
	{ "condition", 3, S, 0, "futex_do_wait;__x64_sys_futex",
		"[libc.so.6+0x8bbb0];pthread_timedjoin_np;end;main" },
	{ "condition", 3, S, 0, "futex_do_wait;__x64_sys_futex", "[libc.so.6+0x8bbb0];thrd_join;end;main" },
	{ "idle", 4, S, 0, "futex_do_wait;__x64_sys_futex",
		"__futex_abstimed_wait_common;pthread_cond_wait@@GLIBC_2.3.2;work" THREAD },
	{ "disk-read", 4, D, 0, "io_schedule;filemap_get_pages;filemap_read;ksys_read;__x64_sys_read",
		"read;job;work" THREAD },
	{ "idle", 5, S, 0, "ep_poll;__x64_sys_epoll_wait", "epoll_wait;loop;main" },
	{ "fsync", 5, D, 0, "folio_wait_bit_common;jbd2_log_wait_commit;do_fsync;__x64_sys_fdatasync",
		"fdatasync;flush;serve;loop;main" },
	{ "poll", 6, S, 0, "do_poll.constprop.0;__x64_sys_poll", "poll;wait_for_answer;request;main" },
	{ "net-receive", 6, S, 0, "sk_wait_data;tcp_recvmsg_locked;__x64_sys_recvfrom", "recv;read_it;main" },
	{ "idle", 7, S, 0, "inet_csk_accept;__x64_sys_accept4", "accept4;serve;main" },
	{ "child", 7, S, 0, "do_wait;kernel_wait4;__x64_sys_wait4", "wait4;reap;serve;main" },
	{ "accept", 8, S, 0, "inet_csk_accept;__x64_sys_accept", "accept;next_peer;handshake;main" },
	{ "disk-write", 8, D, 0, "balance_dirty_pages;ext4_file_write_iter;__x64_sys_write",
		"write;log;main" },
	{ "swap", 9, D, 0, "folio_wait_bit_common;do_swap_page;handle_mm_fault;exc_page_fault", "use;main" },
	{ "page-fault", 9, S, 0, "handle_userfault;handle_mm_fault;exc_page_fault", "touch;main" },
	{ "disk-read", 9, D, 0, "io_schedule;filemap_fault;__do_fault;handle_mm_fault;exc_page_fault",
		"jump;main" },
	{ "pipe", 10, S, 0, "anon_pipe_read;vfs_read;ksys_read;__x64_sys_read", "read;get_line;main" },
	{ "net-send", 10, S, 0, "sk_stream_wait_memory;tcp_sendmsg;__x64_sys_sendto", "send;answer;main" },
	{ "net-receive", 10, S, 0, "unix_stream_read_generic;__x64_sys_read", "read;from_peer;main" },
	{ "stopped", 11, T, 0, "do_signal_stop;get_signal", "anything;main" },
	{ "scheduler", 12, 0, CAPTURE_SAMPLE_PREEMPTED, "asm_sysvec_apic_timer_interrupt", "loop;main" },
	{ "scheduler", 12, R, 0, "exit_to_user_mode_loop;do_syscall_64;entry_SYSCALL_64", "write;loop;main" },
	{ "scheduler", 12, R, 0, "filemap_read;ksys_read;__x64_sys_read", "read;loop;main" },
	{ "throttled", 13, R, 0, "throttle_cfs_rq_work;task_work_run", "loop;main" },
	{ "throttled", 13, 0, CAPTURE_SAMPLE_THROTTLED, "exit_to_user_mode_loop;do_syscall_64", "loop;main" },
	{ "throttled", 13, D, 0, "throttle_cfs_rq_work;task_work_run", "loop;main" },
	{ "lock", 14, D, 0, "rwsem_down_read_slowpath;down_read;do_user_addr_fault_lock", "use;main" },
	{ "lock", 15, S, 0, "futex_do_wait;__x64_sys_futex",
		"__pthread_cond_timedwait;take_gil;PyEval_RestoreThread;_PyEval_EvalFrameDefault;main" },
	{ "futex", 16, S, 0, "futex_do_wait;__x64_sys_futex", "syscall;my_own_lock;work;main" },
	{ "sleep", 16, S, 0, "hrtimer_nanosleep;__x64_sys_nanosleep", "syscall;my_own_nap;main" },
	{ "idle", 17, S, 0, "ep_poll;__x64_sys_epoll_wait", "epoll_wait;aeApiPoll;aeMain;main" },
	{ "unknown", 18, S, 0, "something_new;__x64_sys_quite_new", "something;main" },
	{ "unknown", 19, S, 0, "", "" },
	{ "disk-read", 20, D, 0, "[wait channel folio_wait_bit_common];[syscall pread64]", "" },
	{ "sleep", 21, S, 0, "[wait channel hrtimer_nanosleep];[syscall 35]", "" },
	{ "idle", 22, S, 0, "futex_do_wait;__x64_sys_futex",
		"__futex_wait;pthread_cond_wait;Unsafe_Park;jdk.internal.misc.Unsafe.park;java.util."
		"concurrent.locks."
		"LockSupport.park;java.util.concurrent.ThreadPoolExecutor.getTask;java.lang.Thread."
		"run" THREAD },
	{ "lock", 23, S, 0, "futex_do_wait;__x64_sys_futex",
		"pthread_cond_wait;Unsafe_Park;java.util.concurrent.locks.LockSupport.park;"
		"java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire;app.Bank.pay;java.lang.Thread."
		"run" },
	{ "net-receive", 24, S, 0, "do_poll.constprop.0;do_sys_poll;__x64_sys_poll",
		"__poll;send_dg;__res_context_send;__res_context_query;_nss_dns_gethostbyname4_r;getaddrinfo;"
		"find_host;main" },
	/* without the functions of the C library that are not exported, and where nothing else is done */
	{ "net-receive", 25, S, 0, "do_poll.constprop.0;do_sys_poll;__x64_sys_poll",
		"poll;[libc.so.6+0x130a40];getaddrinfo;main" },
	{ "poll", 26, S, 0, "do_poll.constprop.0;do_sys_poll;__x64_sys_poll",
		"poll;my_getaddrinfo;serve;main" },
	{ "sleep", 26, S, 0, "hrtimer_nanosleep;__x64_sys_nanosleep", "nanosleep;rest;main" },
	{ "idle", 27, S, 0, "futex_do_wait;__x64_sys_futex",
		"pthread_cond_timedwait;os::PlatformMonitor::wait(long);Monitor::wait_without_safepoint_"
		"check(long);"
		"WatcherThread::sleep() const;WatcherThread::run()" THREAD },
	{ "sleep", 27, S, 0, "hrtimer_nanosleep;__x64_sys_nanosleep", "nanosleep;other" THREAD },
	{ "scheduler", 100, R, 0, "worker_thread;kthread;ret_from_fork", "" },
	/* what the system call's arguments say */
	{ "sleep", 28, S, CAPTURE_SAMPLE_TIMED | CAPTURE_SAMPLE_NO_DESCRIPTORS, "do_poll;__x64_sys_poll",
		"poll;main" },
	{ "idle", 29, S, CAPTURE_SAMPLE_TIMED, "do_poll;__x64_sys_poll", "poll;main" },
	{ "idle", 30, S, CAPTURE_SAMPLE_NO_DESCRIPTORS, "do_poll;__x64_sys_poll", "poll;main" },
	{ "condition", 31, S, CAPTURE_SAMPLE_TIMED, "futex_do_wait;__x64_sys_futex",
		"__new_sem_wait_slow64;main" },
	{ "idle", 32, S, 0, "futex_do_wait;__x64_sys_futex", "__new_sem_wait_slow64;main" },
	{ "idle", 33, S, CAPTURE_SAMPLE_TIMED, "futex_do_wait;__x64_sys_futex",
		"__new_sem_wait_slow64;main" },
	{ "idle", 33, S, CAPTURE_SAMPLE_TIMED, "futex_wait_queue;__x64_sys_futex",
		"__new_sem_wait_slow64;main" },
	{ "signal", 34, S, CAPTURE_SAMPLE_TIMED, "do_sigtimedwait;__x64_sys_rt_sigtimedwait",
		"sigtimedwait;main" },
	{ "idle", 35, S, 0, "do_sigtimedwait;__x64_sys_rt_sigtimedwait", "sigtimedwait;main" },
	{ "idle", 100, I, 0, "worker_thread;kthread;ret_from_fork", "" },
	{ "idle", 101, S, 0, "kswapd;kthread;ret_from_fork", "" },
};

static char *names[NAMES];
static uint32_t n_names;

static uint32_t name_id(const char *name, size_t len)
{
	for (uint32_t i = 0; i < n_names; i++)
		if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
			return i;
	if (n_names == NAMES)
		abort();
	names[n_names] = strndup(name, len);
	return n_names++;
}

static struct cap_stack stack_of(
	uint32_t id, enum cap_stack_kind kind, const char *functions, uint64_t *frames)
{
	struct cap_stack s = {
		.id = id, .kind = (uint8_t)kind, .verdict = VERDICT_COMPLETE, .frames = frames
	};
	const uint64_t base = kind == CAPTURE_STACK_KERNEL ? KERNEL : USER;

	for (const char *p = functions; *p;) {
		const size_t len = strcspn(p, ";");

		frames[s.len++] = base + (uint64_t)name_id(p, len) * STEP + 2;
		p += len + (p[len] == ';');
	}
	if (!s.len) {
		s.verdict = VERDICT_FAILED;
		s.reason = REASON_NOT_RECORDED;
	}
	return s;
}

/* Each wait as a sample of its own: its stacks are 2 * i and 2 * i + 1. */
static void write_capture(const char *path, const struct wait *w, size_t n)
{
	static const struct cap_host host = { .sysname = "Linux",
		.release = "6.18.0",
		.version = "#1",
		.machine = "x86_64",
		.hostname = "there",
		.boot_id = "another",
		.recorder = "kinds",
		.page_size = 4096 };
	struct cap_writer *out;
	uint64_t frames[64];
	struct err e;

	if (cap_writer_open(path, true, &out, &e) != 0)
		abort();
	cap_writer_host(out, &host);
	cap_writer_proc(out, &(struct cap_proc){ .id = 0, .tgid = 1, .comm = "prog", .exe = "/bin/prog" });
	cap_writer_proc(out,
		&(struct cap_proc){
			.id = 1, .tgid = 100, .comm = "kthread", .exe = "", .flags = CAPTURE_PROC_KTHREAD });
	for (uint32_t i = 0; i < n; i++) {
		struct cap_stack s = stack_of(2 * i, CAPTURE_STACK_KERNEL, w[i].kernel, frames);

		cap_writer_stack(out, &s);
		s = stack_of(2 * i + 1, CAPTURE_STACK_USER, w[i].user, frames);
		cap_writer_stack(out, &s);
	}
	for (uint32_t i = 0; i < n_names; i++) {
		cap_writer_ksym(out, &(struct cap_ksym){ .start = KERNEL + (uint64_t)i * STEP,
					     .end = KERNEL + (uint64_t)i * STEP + STEP,
					     .name = names[i],
					     .module = "" });
		cap_writer_jit(out, &(struct cap_jit){ .proc = 0,
					    .kind = CAPTURE_JIT_PERFMAP,
					    .to_ns = UINT64_MAX,
					    .start = USER + (uint64_t)i * STEP,
					    .end = USER + (uint64_t)i * STEP + STEP,
					    .name = names[i],
					    .file = "" });
	}
	for (uint32_t i = 0; i < n; i++)
		cap_writer_sample(out, &(struct cap_sample){ .proc = w[i].tid >= 100,
					       .tid = w[i].tid,
					       .kstack = 2 * i,
					       .ustack = 2 * i + 1,
					       .state = w[i].state,
					       .flags = w[i].flags,
					       .total_ns = 5,
					       .count = 1,
					       .max_ns = 5 });
	for (uint32_t i = 0; i < n; i++)
		cap_writer_waker(out, &(struct cap_waker){ .id = i + 1,
					      .flags = CAPTURE_WAKER_INTERRUPT,
					      .proc = CAPTURE_NONE,
					      .kstack = 2 * i,
					      .ustack = 2 * i + 1 });
	if (cap_writer_finish(out, &(struct cap_trailer){ .stop_ns = 10, .why = "end" }, &e) != 0)
		abort();
	cap_writer_close(out);
}

struct found {
	struct cap_reader *c;
	struct resolve *r;
	struct stackids *stacks;
	struct wait_printer_record records[ARRAY_LEN(waits)];
	struct wait_printer_waker
		wakers[ARRAY_LEN(waits)]; /* the stacks of the waits, as those of interrupts */
};

/* The kinds of N waits W by K. */
static void find(struct found *f, const struct kinds *k, const struct wait *w, size_t n)
{
	const struct resolve_opts opts = { 0 };
	char path[512];
	struct err e;

	snprintf(path, sizeof(path), "%s/kinds.cap", tmp);
	write_capture(path, w, n);
	memset(f, 0, sizeof(*f));
	if (cap_reader_load(path, &f->c, &e) != 0 || !f->c->complete || f->c->n_samples != n ||
		resolve_open(f->c, &opts, &f->r, &e) != 0 || stackids_new(f->c, f->r, &f->stacks) != 0)
		abort();
	for (size_t i = 0; i < n; i++) {
		f->records[i].sample = &f->c->samples[i];
		if (stackids_kernel(f->stacks, f->records[i].sample, &f->records[i].kernel) != 0 ||
			stackids_user(f->stacks, f->records[i].sample, &f->records[i].user) != 0)
			abort();
	}
	for (size_t i = 0; i < n; i++) {
		const struct cap_sample at = { .kstack = f->c->wakers[i].kstack };

		if (stackids_kernel(f->stacks, &at, &f->wakers[i].kernel) != 0)
			abort();
	}
	if (resolve_run(f->r, &e) != 0 || kinds_find(k,
						  &(struct wait_printer){ .c = f->c,
							  .r = f->r,
							  .stacks = f->stacks,
							  .records = f->records,
							  .n_records = n,
							  .wakers = f->wakers },
						  &e) != 0)
		abort();
}

static void found_free(struct found *f)
{
	stackids_free(f->stacks);
	resolve_close(f->r);
	cap_reader_free(f->c);
}

static void usual_rules(void)
{
	struct found f;
	struct kinds *k;
	struct err e;

	tap_ok(&t, kinds_load(NULL, &k, &e) == 0, "the usual rules are rules");
	find(&f, k, waits, ARRAY_LEN(waits));
	for (size_t i = 0; i < ARRAY_LEN(waits); i++)
		tap_eq_str(&t, f.records[i].kind, waits[i].want,
			waits[i].user[0] ? waits[i].user : waits[i].kernel);
	found_free(&f);
	kinds_free(k);
}

/* What ends a wait: the kernel stack of an interrupt, as of Linux 6.18. */
static const struct wait interrupts[] = {
	{ "timer", 1, S, 0,
		"hrtimer_wakeup;__hrtimer_run_queues;hrtimer_interrupt;sysvec_apic_timer_interrupt", "" },
	{ "timer", 2, S, 0, "process_timeout;call_timer_fn;run_timer_softirq;handle_softirqs;irq_exit_rcu",
		"" },
	{ "disk", 3, S, 0, "bio_endio;blk_mq_end_request;virtblk_done;vring_interrupt;common_interrupt", "" },
	{ "network", 4, S, 0, "sock_def_readable;tcp_rcv_established;net_rx_action;common_interrupt", "" },
	{ NULL, 5, S, 0, "irq_work_run;sysvec_irq_work", "" },
};

static void kinds_of_interrupts(void)
{
	struct found f;
	struct kinds *k;
	struct err e;

	if (kinds_load(NULL, &k, &e) != 0)
		abort();
	find(&f, k, interrupts, ARRAY_LEN(interrupts));
	for (size_t i = 0; i < ARRAY_LEN(interrupts); i++) {
		if (interrupts[i].want)
			tap_eq_str(&t, f.wakers[i].kind, interrupts[i].want, interrupts[i].kernel);
		else
			tap_ok(&t, !f.wakers[i].kind, "another interrupt has no kind");
	}
	tap_ok(&t, strcmp(f.records[0].kind, "timer") != 0, "a rule of interrupts is not of waits");
	found_free(&f);
	kinds_free(k);
}

static const char *rules_file(const char *text)
{
	static char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/rules", tmp);
	f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		abort();
	return path;
}

/* Load TEXT as rules and find the kind of wait W. */
static void own_rule(const char *text, const struct wait *w, const char *name)
{
	struct kinds *k = NULL;
	struct found f;
	struct err e;

	if (kinds_load(rules_file(text), &k, &e) != 0) {
		tap_ok(&t, false, "%s: %s", name, e.msg);
		return;
	}
	find(&f, k, w, 1);
	tap_eq_str(&t, f.records[0].kind, w->want, name);
	found_free(&f);
	kinds_free(k);
}

static void own_rules(void)
{
	struct wait w = { "ours", 1, S, 0, "ep_poll;__x64_sys_epoll_wait", "epoll_wait;my_queue_get;main" };

	own_rule("# nothing\n\n  ours user=my_queue_*  # of ours\n", &w, "a rule of the user's comes first");
	own_rule("ours user=*queue*", &w, "a name is found in the middle; the last line needs no newline");
	own_rule("ours user=*_get kernel=other|ep_poll syscall=epoll_wait state=SD", &w,
		"all conditions of a rule hold, each by one of its names");
	own_rule("ours user=my_queue_get user=main", &w, "two conditions on one stack");
	own_rule("other state=D\nother user=my_queue\nother user=queue_get\nother kernel=main\n"
		 "other preempted\nother interrupt\nother kthread\nother user=my_queue_get user=nobody\n"
		 "other syscall=epoll\nours loop",
		&w, "rules with a condition that does not hold are passed over");
	w.want = "idle";
	own_rule("call user=my_queue_get", &w, "what only waits for its caller can be said too");
}

static void refused(const char *text, const char *want)
{
	struct kinds *k = NULL;
	struct err e = { 0 };
	int rc = kinds_load(rules_file(text), &k, &e);

	tap_ok(&t, rc == -EINVAL && !k && strstr(e.msg, want) && strstr(e.msg, "line ") && e.hint[0],
		"refused: %s", want);
}

static void wrong_rules(void)
{
	static char many[16 * 4200];
	char text[4096] = "kind", *p;
	struct kinds *k = NULL;
	struct err e = { 0 };

	refused("Lock user=x", "'Lock' is not a kind");
	refused("lock", "'lock' has no condition");
	refused("ok user=f\nlock user", "line 2 of");
	refused("lock user", "'user' is not a condition");
	refused("lock frame=x", "'frame' is not a condition");
	refused("lock state=", "'state' is not a condition");
	refused("lock user=", "a name is missing");
	refused("lock user=a||b", "a name is missing");
	refused("lock user=**", "a name is missing");
	refused("lock module=libc.so.6", "'module=' does not go with 'lock'");
	refused("call kernel=schedule", "'kernel=' does not go with 'call'");
	for (int i = 0; i < 9; i++)
		strcat(text, " user=x");
	refused(text, "at most 8 conditions");
	p = stpcpy(many, "lock user=x");
	for (int i = 0; i < 4200; i++)
		p = stpcpy(p, "|y");
	refused(many, "more than 4096 names");
	tap_ok(&t, kinds_load("/nonexistent/rules", &k, &e) == -ENOENT && strstr(e.msg, "/nonexistent/rules"),
		"a file that is not there is named");
	tap_ok(&t, kinds_load("/proc/self/exe", &k, &e) < 0 && strstr(e.msg, "ot a table of rules"),
		"a program is not a table of rules");
	tap_ok(&t, kinds_load("/", &k, &e) == -EISDIR && strstr(e.msg, "cannot read '/'"),
		"a folder is not a table of rules");
}

int main(void)
{
	char dir[] = "/tmp/stacktools-kinds.XXXXXX";

	tmp = mkdtemp(dir);
	if (!tmp)
		abort();
	usual_rules();
	kinds_of_interrupts();
	own_rules();
	wrong_rules();
	if (chdir(tmp) == 0) {
		unlink("kinds.cap");
		unlink("rules");
	}
	rmdir(tmp);
	for (uint32_t i = 0; i < n_names; i++)
		free(names[i]);
	return tap_done(&t);
}
