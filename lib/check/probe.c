/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/probe.h"
#include "base/clock.h"
#include "probe.skel.h"
#include "system/events.h"
#include "system/privileges.h"
#include "system/verifier.h"
#include "system/worker.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define DEPTH 127
#define GRACE_MS 100 /* for the child to exit by itself */

static int refused(const char *what, int code, struct err *e)
{
	static const int caps[] = { CAP_BPF, CAP_PERFMON };

	if (code == -EPERM || code == -EACCES)
		return priv_explain(what, code, caps, ARRAY_LEN(caps), e);
	return err_sys(e, code, "cannot %s", what);
}

/* The deepest stack that a stack map can hold here, in frames. */
static uint32_t max_depth(void)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_max_stack", "re");
	unsigned int max = DEPTH;

	if (f) {
		if (fscanf(f, "%u", &max) != 1)
			max = DEPTH;
		fclose(f);
	}
	return MAX(1, MIN(max, DEPTH));
}

int probe_stack_map(char *found, size_t cap, struct err *e)
{
	uint32_t depth = max_depth();
	/* one bucket: memory.accounting checks how much memory maps may use, and stackmap-test works with
	 * less */
	int fd = bpf_map_create(BPF_MAP_TYPE_STACK_TRACE, "probe", sizeof(uint32_t), depth * 8, 1, NULL);

	if (fd < 0)
		return refused("create a stack-trace map", fd, e);
	snprintf(found, cap, "a stack-trace map of %u frames can be created", depth);
	close(fd);
	return 0;
}

static int load(struct probe_bpf *skel, struct err *e)
{
	struct verifier_log log;
	struct stat st;
	int rc;

	if (stat("/proc/self/ns/pid", &st) != 0)
		return err_sys(e, -errno, "cannot determine the PID namespace");
	skel->rodata->ns_dev = st.st_dev;
	skel->rodata->ns_ino = st.st_ino;
	skel->rodata->tgid = (uint32_t)getpid();
	bpf_map__set_value_size(skel->maps.kernel_stacks, max_depth() * 8);
	bpf_map__set_value_size(skel->maps.user_stacks, max_depth() * 8);
	rc = verifier_log_open(&log, skel->obj, e);
	if (rc)
		return rc;
	rc = probe_bpf__load(skel);
	if (rc && !verifier_log_refused(&log, rc, 0, e))
		refused("load a program that takes stacks", rc, e);
	verifier_log_close(&log);
	return rc;
}

/* Sleep, which leaves the CPU, until the program has seen it. */
static bool be_seen(const struct probe_bpf *skel)
{
	const struct timespec nap = { .tv_nsec = 200000 };

	for (int i = 0; i < 1000; i++) {
		nanosleep(&nap, NULL);
		if (__atomic_load_n(&skel->bss->taken, __ATOMIC_ACQUIRE))
			return true;
	}
	return false;
}

/* The number of frames of stack ID in MAP; 0 if there is no such stack. */
static int frames(const struct bpf_map *map, long id)
{
	uint64_t ips[DEPTH] = { 0 };
	uint32_t key = (uint32_t)id;
	int n = 0;

	if (id < 0 || bpf_map_lookup_elem(bpf_map__fd(map), &key, ips) != 0)
		return 0;
	while (n < DEPTH && ips[n])
		n++;
	return n;
}

static int take(struct probe_bpf *skel, char *found, size_t cap, struct err *e)
{
	int rc = probe_bpf__attach(skel), kernel, user;

	if (rc)
		return refused("attach to a raw tracepoint", rc, e);
	if (!be_seen(skel))
		return err_set(e, -ENODATA, "a program on sched_switch never saw this process leave the CPU");
	kernel = frames(skel->maps.kernel_stacks, skel->bss->kernel_id);
	user = frames(skel->maps.user_stacks, skel->bss->user_id);
	if (!kernel || !user)
		return err_set(e, -ENODATA, "the %s stack came back empty (%s)", kernel ? "user" : "kernel",
			err_name((int)(kernel ? skel->bss->user_id : skel->bss->kernel_id)));
	snprintf(found, cap, "a kernel stack of %d frames and a user stack of %d were taken", kernel, user);
	return 0;
}

int probe_take_stack(char *found, size_t cap, struct err *e)
{
	struct probe_bpf *skel = probe_bpf__open();
	int rc;

	if (!skel)
		return err_sys(e, -errno, "cannot open a BPF program");
	rc = load(skel, e);
	if (!rc)
		rc = take(skel, found, cap, e);
	probe_bpf__destroy(skel);
	return rc;
}

int probe_process_events(char *found, size_t cap, struct err *e)
{
	struct procevents *p = NULL;
	int rc = procevents_open(&(struct procevents_opts){ 0 }, &p, e);

	if (rc)
		return rc;
	procevents_close(p);
	snprintf(found, cap, "the kernel reports new mappings, names and processes");
	return 0;
}

struct probe_run {
	struct probe_job job;
	struct worker *worker;
	size_t first; /* the first attempt of this child */
	size_t done;
	uint64_t last_ms; /* when the parent last saw progress: about when the current attempt began */
	uint64_t end_ms; /* deadline for all attempts; UINT64_MAX = none */
};

static uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}

static int silent(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level, (void)fmt, (void)ap;
	return 0;
}

/* One unit of work: start UNIT_PROCESSES processes, one after the other, and wait for their end. */
#define UNIT_PROCESSES 16
#define UNIT_NS 8000000 /* at most, on a machine of ordinary speed that also does other work */
#define SLOWEST 60

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

static uint64_t unit_ns(void)
{
	uint64_t begun = now_ns();

	for (int i = 0; i < UNIT_PROCESSES; i++)
		worker_try(nothing, NULL);
	return now_ns() - begun;
}

unsigned int probe_limit_ms(unsigned int ordinary_ms)
{
	uint64_t times = unit_ns() / UNIT_NS;

	return ordinary_ms * (unsigned int)MIN(MAX(times, 1), SLOWEST);
}

static int run_child(void *arg, int sock)
{
	const struct probe_run *run = arg;
	const struct probe_job *job = &run->job;
	pid_t parent = getppid();
	struct err message = { 0 };
	int entered;

	libbpf_set_print(silent);
	entered = job->enter ? job->enter(job->ctx, &message) : 0;
	if (child_bind(parent, NULL) != 0)
		return 1;
	for (size_t i = run->first; i < job->n; i++) {
		struct probe_result r;

		memset(&r, 0, sizeof(r));
		r.code = entered;
		r.err = message;
		alarm(job->limit_ms / 1000 + 2); /* in case the parent is stopped */
		if (!entered)
			r.code = job->attempt(job->ctx, i, r.found, sizeof(r.found), &r.err);
		if (worker_report(sock, &r, sizeof(r), -1, true) != 0)
			return 1;
	}
	return 0;
}

/* Start a child for the remaining attempts. */
static int begin(struct probe_run *run, struct err *e)
{
	const struct worker_opts opts = {
		.who = "this attempt", .reports = true, .run = run_child, .arg = run
	};

	run->first = run->done;
	run->last_ms = now_ms();
	return worker_start(&opts, &run->worker, e);
}

int probe_start_job(const struct probe_job *job, struct probe_run **ret, struct err *e)
{
	struct probe_run *run = calloc(1, sizeof(*run));
	int rc;

	if (!run)
		return err_nomem(e, "the live probes");
	run->job = *job;
	run->end_ms = job->total_ms ? now_ms() + job->total_ms : UINT64_MAX;
	rc = begin(run, e);
	if (rc)
		free(run);
	else
		*ret = run;
	return rc;
}

static int attempt_listed(void *ctx, size_t i, char *found, size_t cap, struct err *e)
{
	const probe_fn *list = ctx;

	return list[i](found, cap, e);
}

int probe_start(const probe_fn *list, size_t n, unsigned int limit_ms, struct probe_run **ret, struct err *e)
{
	const struct probe_job job = {
		.n = n,
		.attempt = attempt_listed,
		.ctx = (void *)(uintptr_t)list,
		.go_on = true,
		.limit_ms = limit_ms,
	};

	return probe_start_job(&job, ret, e);
}

/* The deadline of the current attempt. */
static uint64_t deadline_ms(const struct probe_run *run)
{
	return MIN(run->last_ms + run->job.limit_ms, run->end_ms);
}

/* Receive the next result; false if the child ended or its time is over. */
static bool receive(struct probe_run *run, struct probe_result *r)
{
	uint64_t now = now_ms(), end = deadline_ms(run);
	struct worker_reply reply;

	if (worker_receive(run->worker, now < end ? (int)(end - now) : 0, r, sizeof(*r), false, &reply) !=
			1 ||
		reply.len != sizeof(*r))
		return false;
	run->last_ms = now_ms();
	return true;
}

/* The result of the attempt during which the child ended, or was LATE. */
static void take_end(
	const struct probe_run *run, const struct worker_end *end, bool late, struct probe_result *r)
{
	*r = (struct probe_result){ 0 };
	if (late && now_ms() >= run->end_ms)
		r->code = err_set(&r->err, -ETIMEDOUT, "not over when all had had %u ms, and stopped",
			run->job.total_ms);
	else if (late)
		r->code =
			err_set(&r->err, -ETIMEDOUT, "not over after %u ms, and stopped", run->job.limit_ms);
	else
		r->code = err_set(&r->err, -ECHILD, "%s", end->why);
}

/* Collect the child's results. If it ends early, that becomes the result of the attempt that it was in. */
static void follow(struct probe_run *run, struct probe_result *results)
{
	const size_t n = run->job.n;
	struct worker_end end;
	bool late;

	while (run->done < n && receive(run, &results[run->done]))
		run->done++;
	late = run->done < n && now_ms() >= deadline_ms(run);
	worker_stop(run->worker, run->done < n && !late ? GRACE_MS : 0, &end);
	worker_free(run->worker);
	run->worker = NULL;
	if (run->done < n)
		take_end(run, &end, late, &results[run->done++]);
}

void probe_finish(struct probe_run *run, struct probe_result *results)
{
	struct err e = { 0 };

	if (!run)
		return;
	if (!results) {
		worker_stop(run->worker, 0, NULL);
		worker_free(run->worker);
		free(run);
		return;
	}
	follow(run, results);
	while (run->done < run->job.n) {
		if (!run->job.go_on) {
			results[run->done] = results[run->done - 1];
			run->done++;
			continue;
		}
		if (now_ms() < run->end_ms && begin(run, &e) == 0) {
			follow(run, results);
			continue;
		}
		if (!e.code)
			err_set(&e, -ETIMEDOUT, "not tried: the time was over");
		results[run->done++] = (struct probe_result){ .code = e.code, .err = e };
	}
	free(run);
}
