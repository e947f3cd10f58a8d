/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/output.h"
#include "base/result.h"
#include "capture/writer.h"

#include <errno.h>
#include <sys/stat.h>

/* A worker_fn: a request of one byte is for the ring; the reply is a struct err, for its hint, and the
 * descriptor. */
static int make(void *ctx, const void *request, size_t len, int *fds, struct worker_answer *a)
{
	const struct output *o = ctx;

	(void)request, (void)fds;
	a->fd = len ? result_file_scratch(o->path, &a->err) : cap_writer_create(o->path, o->force, &a->err);
	a->bytes = &a->err;
	a->len = sizeof(a->err);
	return 0;
}

static int run(void *arg, int sock)
{
	char request;

	worker_serve(sock, &request, sizeof(request), make, arg);
	return 0;
}

void output_start(struct output *o, const char *path, bool force)
{
	const struct worker_opts opts = { .who = "the process that makes the output",
		.keep_stdio = true,
		.exposed = true,
		.run = run,
		.arg = o };
	struct stat st;

	*o = (struct output){ .path = path, .force = force, .fd = -1, .ring = -1 };
	/* the private user that the recorder becomes may not reach it */
	o->fifo = stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
	worker_start(&opts, &o->worker, NULL);
}

int output_early(struct output *o, bool ring, struct err *e)
{
	if (o->worker)
		return 0;
	if (ring) {
		o->ring = result_file_scratch(o->path, e);
		if (o->ring < 0)
			return o->ring;
	}
	o->fd = cap_writer_create(o->path, o->force, e);
	return o->fd < 0 ? o->fd : 0;
}

/* Waits without a time limit, but for Ctrl-C: a FIFO waits for its reader. */
static int ask(struct output *o, bool ring, struct err *e)
{
	struct worker_reply r = { .fd = -1 };
	struct err why = { 0 };
	int rc = worker_send(o->worker, "", ring, NULL, 0);

	rc = rc ? rc : worker_receive(o->worker, -1, &why, sizeof(why), true, &r);
	if (rc == 0)
		return err_set(e, -EINTR,
			o->fifo ? "interrupted while '%s' waited for a reader"
				: "interrupted before '%s' was made",
			o->path);
	if (rc != 1)
		return err_set(e, -EPIPE, "the process that makes the output has ended");
	if (r.fd >= 0)
		return r.fd;
	if (r.len != sizeof(why) || why.code >= 0)
		return err_sys(e, -EMFILE, "cannot take over the output");
	why.msg[sizeof(why.msg) - 1] = why.hint[sizeof(why.hint) - 1] = '\0';
	if (e)
		*e = why;
	return why.code;
}

int output_take(struct output *o, int *ring, struct err *e)
{
	int fd;

	if (ring) {
		*ring = o->worker ? ask(o, true, e) : TAKE_FD(o->ring);
		if (*ring < 0)
			return *ring;
	}
	fd = o->worker ? ask(o, false, e) : TAKE_FD(o->fd);
	output_close(o);
	if (fd < 0 && ring)
		close(*ring);
	return fd;
}

void output_close(struct output *o)
{
	if (o->fd >= 0)
		close(o->fd);
	if (o->ring >= 0)
		close(o->ring);
	o->fd = o->ring = -1;
	worker_free(o->worker);
	o->worker = NULL;
}
