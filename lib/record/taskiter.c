/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/taskiter.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

static struct bpf_link *attach(struct bpf_program *prog, uint32_t pid)
{
	union bpf_iter_link_info info = { .task.pid = pid };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));
	struct bpf_link *link = pid ? bpf_program__attach_iter(prog, &opts) : NULL;

	return link ? link : bpf_program__attach_iter(prog, NULL);
}

static int read_all(
	int fd, size_t size, void (*take)(void *ctx, const void *record), void *ctx, struct err *e)
{
	char buf[16384];
	size_t have = 0, at;
	ssize_t n;

	while ((n = read(fd, buf + have, sizeof(buf) - have)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, -errno, "cannot read the task iterator");
		have += (size_t)n;
		for (at = 0; take && have - at >= size; at += size)
			take(ctx, buf + at);
		memmove(buf, buf + at, have - at);
		have = take ? have - at : 0;
	}
	return 0;
}

int taskiter_run(struct bpf_program *prog, uint32_t pid, size_t size,
	void (*take)(void *ctx, const void *record), void *ctx, struct err *e)
{
	struct bpf_link *link = attach(prog, pid);
	_cleanup_close_ int fd = -1;
	int rc;

	if (!link)
		return err_sys(e, -errno, "cannot attach the task iterator");
	fd = bpf_iter_create(bpf_link__fd(link));
	rc = fd < 0 ? err_sys(e, fd, "cannot create the task iterator") : read_all(fd, size, take, ctx, e);
	bpf_link__destroy(link);
	return rc;
}
