/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/ptquiet.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>

#define EXT_ARG 8 /* IORING_ENTER_EXT_ARG: there may be a time limit */

bool ptquiet_parse(const char *text, struct ptquiet_call *ret)
{
	uint64_t *a;
	int n;

	*ret = (struct ptquiet_call){ .number = -1 };
	a = ret->args;
	n = sscanf(text,
		"%" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
		" %" SCNx64,
		&ret->number, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &ret->sp, &ret->pc);
	if (n == 3 && ret->number == -1) {
		ret->sp = a[0];
		ret->pc = a[1];
		a[0] = a[1] = 0;
		return true;
	}
	return n == 9;
}

static int slurp(pid_t pid, pid_t tid, const char *file, char *text, size_t cap)
{
	_cleanup_close_ int fd = -1;
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, cap - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return n ? 0 : -ESRCH;
}

/* How often it has been given a CPU. */
static int runs(pid_t pid, pid_t tid, uint64_t *ret)
{
	char text[128];
	int rc = slurp(pid, tid, "schedstat", text, sizeof(text));

	if (rc)
		return rc;
	return sscanf(text, "%*u %*u %" SCNu64, ret) == 1 ? 0 : -ENODATA;
}

int ptquiet_take(pid_t pid, pid_t tid, const uint64_t *wanted, size_t n, struct ptcopy *copy,
	struct ptquiet_call *call)
{
	uint64_t before, after;
	char text[256];
	int rc = runs(pid, tid, &before);

	ptcopy_reset(copy);
	rc = rc ? rc : slurp(pid, tid, "syscall", text, sizeof(text));
	if (rc)
		return rc;
	if (!ptquiet_parse(text, call))
		return -EAGAIN;
	copy->head.regs[PTCOPY_SP] = call->sp;
	copy->head.regs[PTCOPY_PC] = call->pc;
	copy->head.known = 1u << PTCOPY_SP | 1u << PTCOPY_PC;
	if (!ptcopy_stack(copy, tid))
		return -EAGAIN;
	for (size_t i = 0; i < n; i++)
		ptcopy_area(copy, tid, wanted[i]);
	rc = runs(pid, tid, &after);
	return rc ? rc : before == after ? 0 : -EAGAIN;
}

bool ptquiet_is_timed(const struct ptquiet_call *c)
{
	switch (c->number) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return (int32_t)c->args[3] >= 0;
	case SYS_epoll_pwait2:
	case SYS_semtimedop:
		return c->args[3] != 0;
	case SYS_rt_sigtimedwait:
		return c->args[2] != 0;
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		return c->args[4] != 0;
	case SYS_io_uring_enter:
		return c->args[3] & EXT_ARG;
	default:
		return false;
	}
}
