/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/symwork.h"
#include "base/clock.h"
#include "system/sandbox.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#define FILES_MAX 4 /* of one task, .dwo files aside */

_Static_assert(sizeof(struct symwork_record) % 8 == 0, "answers are aligned to 8");

/* The descriptors that the tasks need, each once. */
struct fds {
	int *p;
	size_t n, cap;
	bool failed;
};

static uint64_t align8(uint64_t v)
{
	return (v + 7) & ~UINT64_C(7);
}

static void need(struct fds *fds, const struct elffile *f)
{
	if (!f || f->fd < 0)
		return;
	for (size_t i = 0; i < fds->n; i++)
		if (fds->p[i] == f->fd)
			return;
	if (base_grow(&fds->p, &fds->cap, fds->n + 1, sizeof(*fds->p)) != 0)
		fds->failed = true;
	else
		fds->p[fds->n++] = f->fd;
}

static void need_all(struct fds *fds, const struct symlook_input *in)
{
	need(fds, in->elf);
	need(fds, in->debug);
	need(fds, in->alt);
	need(fds, in->dwp);
	for (size_t i = 0; i < in->n_dwos; i++)
		need(fds, in->dwos[i].file);
}

/* F with the descriptor that it has in the sandbox. */
static const struct elffile *moved(const struct fds *fds, const struct elffile *f, struct elffile *copy)
{
	if (!f)
		return NULL;
	*copy = *f;
	for (size_t i = 0; i < fds->n && f->fd >= 0; i++)
		if (fds->p[i] == f->fd)
			copy->fd = SANDBOX_FD + 1 + (int)i;
	return copy;
}

/* LOOK with the files as they are here. */
static int look(const struct symwork *w, const struct fds *fds, const struct symlook_input *task,
	uint8_t **ret, size_t *len, struct err *e)
{
	struct symlook_input in = *task;
	struct elffile copies[FILES_MAX];
	_cleanup_free_ struct elffile *dwo_copies = calloc(in.n_dwos + 1, sizeof(*dwo_copies));
	_cleanup_free_ struct symlook_dwo *dwos = calloc(in.n_dwos + 1, sizeof(*dwos));

	if (!dwos || !dwo_copies)
		return err_nomem(e, "files");
	in.elf = moved(fds, in.elf, &copies[0]);
	in.debug = moved(fds, in.debug, &copies[1]);
	in.alt = moved(fds, in.alt, &copies[2]);
	in.dwp = moved(fds, in.dwp, &copies[3]);
	for (size_t i = 0; i < in.n_dwos; i++) {
		dwos[i].id = task->dwos[i].id;
		dwos[i].file = moved(fds, task->dwos[i].file, &dwo_copies[i]);
	}
	in.dwos = dwos;
	return w->look(&in, ret, len, e);
}

static int put(const void *bytes, size_t len, uint64_t at)
{
	const uint8_t *p = bytes;

	for (size_t done = 0; done < len;) {
		ssize_t n = pwrite(SANDBOX_FD, p + done, len - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

/* Where the next one goes; 0 when it cannot be handed over. */
static uint64_t answer(uint64_t at, struct symwork_record *r, const uint8_t *bytes, const struct err *e)
{
	const uint64_t behind = at + sizeof(*r);

	if (!r->error)
		r->error = put(bytes, r->len, behind);
	if (r->error) {
		r->len = 0;
		snprintf(r->why, sizeof(r->why), "%.*s", (int)sizeof(r->why) - 1,
			e->msg[0] ? e->msg : "the answer cannot be handed over");
	}
	return put(r, sizeof(*r), at) ? 0 : behind + align8(r->len);
}

static void work(const struct symwork *w, const struct fds *fds)
{
	uint64_t at = 0;

	for (size_t i = 0; i < w->n && (at || !i); i++) {
		struct symwork_record r = { .magic = SYMWORK_MAGIC, .number = (uint32_t)i };
		uint64_t began = now_on(CLOCK_PROCESS_CPUTIME_ID);
		struct err e = { 0 };
		uint8_t *bytes = NULL;
		size_t len = 0;

		r.error = look(w, fds, w->tasks[i], &bytes, &len, &e);
		r.len = len;
		r.ns = now_on(CLOCK_PROCESS_CPUTIME_ID) - began;
		at = answer(at, &r, bytes, &e);
		free(bytes);
	}
}

/* As _exit(2), under which a sanitizer would look for leaks by calls that are not allowed. */
__attribute__((noreturn)) static void leave(int code)
{
	for (;;)
		syscall(SYS_exit_group, code);
}

void symwork_run(const struct symwork *w)
{
	struct fds fds = { 0 };
	struct sandbox_opts box = { .keep_fd = w->out,
		.parent = w->parent,
		.comm = "symbols",
		.memory_bytes = w->memory_bytes,
		.file_bytes = w->file_bytes };
	struct symwork_record no = { .magic = SYMWORK_MAGIC };
	struct err e = { 0 };

	for (size_t i = 0; i < w->n; i++)
		need_all(&fds, w->tasks[i]);
	box.more_fds = fds.p;
	box.n_more = fds.n;
	no.error = fds.failed ? err_nomem(&e, "files") : sandbox_enter(&box, &e);
	if (no.error) {
		answer(0, &no, NULL, &e);
		leave(1);
	}
	work(w, &fds);
	leave(0);
}

static int get(int fd, void *to, uint64_t len, uint64_t at)
{
	uint8_t *p = to;

	for (uint64_t done = 0; done < len;) {
		ssize_t n = pread(fd, p + done, len - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EPROTO;
		done += (uint64_t)n;
	}
	return 0;
}

int symwork_next(
	int fd, uint64_t size, uint32_t number, uint64_t *at, struct symwork_record *ret, uint8_t **bytes)
{
	int rc;

	*bytes = NULL;
	if (size < *at || size - *at < sizeof(*ret))
		return -ENOENT;
	rc = get(fd, ret, sizeof(*ret), *at);
	if (rc)
		return rc;
	if (!ret->magic)
		return -ENOENT;
	*at += sizeof(*ret);
	if (ret->magic != SYMWORK_MAGIC || ret->number != number || ret->len > size - *at || ret->error > 0 ||
		ret->error < -4095 || (ret->error && ret->len) || !memchr(ret->why, 0, sizeof(ret->why)))
		return -EPROTO;
	if (ret->error)
		return 0;
	*bytes = malloc(ret->len + 1);
	if (!*bytes)
		return -ENOMEM;
	rc = get(fd, *bytes, ret->len, *at);
	*at += align8(ret->len);
	return rc;
}
