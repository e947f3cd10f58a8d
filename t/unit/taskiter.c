/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs the recorder's iterator over processes, which reports the image of each
 * target, for one process and for all, through record/bpf.h.
 */
#include "base/tap.h"
#include "record/bpf.h"
#include "record/unwind_memory.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

struct seen {
	uint32_t pids[4096];
	size_t n;
};

static void take(void *ctx, const struct offcpu_ev_image *ev)
{
	struct seen *s = ctx;

	if (s->n < ARRAY_LEN(s->pids))
		s->pids[s->n++] = ev->tgid;
}

static bool has(const struct seen *s, pid_t pid)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->pids[i] == (uint32_t)pid)
			return true;
	return false;
}

static struct seen run(struct offcpu *o, pid_t pid, int *rc)
{
	struct seen s = { .n = 0 };
	const struct offcpu_sink sink = { .ctx = &s, .image = take };

	*rc = offcpu_images(o, (uint32_t)pid, &sink, NULL);
	return s;
}

static void *wait_long(void *arg)
{
	(void)arg;
	pause();
	return NULL;
}

/* A waiting child with three threads. */
static pid_t child(void)
{
	pid_t pid = fork();
	pthread_t t;

	if (pid)
		return pid;
	for (int i = 0; i < 2; i++)
		pthread_create(&t, NULL, wait_long, NULL);
	pause();
	_exit(0);
}

static void test(struct tap *t, struct offcpu *o, const pid_t pids[2], pid_t gone)
{
	struct seen s;
	int rc;

	s = run(o, pids[0], &rc);
	tap_ok(t, rc == 0 && has(&s, pids[0]), "the requested process is visited");
	tap_ok(t, s.n >= 1 && !has(&s, pids[1]),
		"another target is not visited when one process is requested");
	s = run(o, 0, &rc);
	if (!tap_ok(t, rc == 0 && has(&s, pids[0]) && has(&s, pids[1]), "with PID 0 every target is visited"))
		tap_diag("status %d, %zu processes, %d, %d", rc, s.n, has(&s, pids[0]), has(&s, pids[1]));
	s = run(o, gone, &rc);
	tap_ok(t, rc == 0 && !has(&s, gone), "a process that is gone is not visited");
}

int main(void)
{
	const struct unwindspace_opts opts = { .bytes = 2 * UNWIND_CHUNK_BYTES };
	struct offcpu_opts load = { .follow = true };
	struct unwindspace *space = NULL;
	struct unwindspace_fds fds;
	struct offcpu *o = NULL;
	struct tap t = { 0 };
	pid_t pids[2], gone = fork();
	struct err e = { 0 };
	int rc;

	if (gone == 0)
		_exit(0);
	waitpid(gone, NULL, 0);
	rc = unwindspace_open(&opts, &space, &e);
	if (!rc) {
		unwindspace_fds(space, &fds);
		load.tables = &fds;
		rc = offcpu_load(&load, &o, &e);
	}
	if (rc) {
		tap_skip(&t, "the processes that an iterator visits", "%s", e.msg);
		unwindspace_close(space);
		return tap_done(&t);
	}
	for (int i = 0; i < 2; i++) {
		pids[i] = child();
		rc = rc ? rc : offcpu_ask_pid(o, (uint32_t)pids[i], &e);
	}
	rc = rc ? rc : offcpu_attach(o, &e);
	if (tap_ok(&t, rc == 0, "the BPF programs are attached"))
		test(&t, o, pids, gone);
	else
		tap_diag("%s", e.msg);
	for (int i = 0; i < 2; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	offcpu_close(o);
	unwindspace_close(space);
	return tap_done(&t);
}
