/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/ptreach.h"

#include <errno.h>
#include <sys/uio.h>

int ptreach_quiet(const struct ptreach *r, pid_t pid, pid_t tid, const uint64_t *wanted, size_t n,
	struct ptcopy *copy, struct ptquiet_call *call)
{
	int rc = looker_quiet(r->looker, pid, tid, wanted, n, copy, call);

	return rc == -ENOTCONN ? ptquiet_take(pid, tid, wanted, n, copy, call) : rc;
}

int ptreach_stop(const struct ptreach *r, pid_t tid, const uint64_t *wanted, size_t n, struct ptcopy *copy,
	struct ptstop_told *told)
{
	int rc = looker_stop(r->looker, tid, wanted, n, copy, told);

	return rc == -ENOTCONN ? ptstop_take(tid, wanted, n, copy, told) : rc;
}

ssize_t ptreach_memory(const struct ptreach *r, pid_t pid, uint64_t addr, void *to, size_t len)
{
	ssize_t n = looker_memory(r->looker, pid, addr, to, len);
	struct iovec here = { to, len }, there = { (void *)(uintptr_t)addr, len };

	if (n != -ENOTCONN)
		return n;
	n = process_vm_readv(pid, &here, 1, &there, 1, 0);
	return n < 0 ? -errno : n;
}

bool ptreach_word(const struct ptreach *r, pid_t pid, uint64_t addr, uint64_t *ret)
{
	return ptreach_memory(r, pid, addr, ret, sizeof(*ret)) == sizeof(*ret);
}
