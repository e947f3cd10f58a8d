/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/syscall_filter.h"
#include "base/fs.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define PROGRAM_BYTES_MAX (BPF_MAXINSNS * sizeof(struct sock_filter))

static int add_rules(scmp_filter_ctx c, const struct syscall_rule *rules, size_t n)
{
	int rc = seccomp_attr_set(c, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

	for (size_t i = 0; i < n && !rc; i++) {
		const struct syscall_rule *r = &rules[i];
		uint32_t action;

		if (r->call < 0)
			continue;
		action = r->error ? SCMP_ACT_ERRNO((uint32_t)r->error) : SCMP_ACT_ALLOW;

		rc = seccomp_rule_add_exact_array(c, action, r->call, r->n, r->when);
	}
	return rc;
}

/* libseccomp 2.5 exports programs to files only. */
static int export(scmp_filter_ctx c, struct sock_fprog *ret, struct err *e)
{
	_cleanup_close_ int fd = memfd_create("syscall-filter", MFD_CLOEXEC);
	char *code;
	size_t len;
	int rc = fd < 0 ? -errno : seccomp_export_bpf(c, fd);

	if (rc)
		return err_sys(e, rc, "cannot make a filter of system calls");
	rc = readfd_all(fd, PROGRAM_BYTES_MAX, &code, &len, e);
	if (rc)
		return rc;
	ret->filter = (struct sock_filter *)code;
	ret->len = (unsigned short)(len / sizeof(*ret->filter));
	return 0;
}

int syscall_filter_make(
	const struct syscall_rule *rules, size_t n, int otherwise, struct sock_fprog *ret, struct err *e)
{
	scmp_filter_ctx c;
	int rc;

	*ret = (struct sock_fprog){ 0 };
	if (prctl(PR_GET_SECCOMP) < 0 && errno == EINVAL)
		return 0;
	c = seccomp_init(otherwise ? SCMP_ACT_ERRNO((uint32_t)otherwise) : SCMP_ACT_KILL_PROCESS);
	if (!c)
		return err_nomem(e, "a filter of system calls");
	rc = add_rules(c, rules, n);
	rc = rc ? err_sys(e, rc, "cannot make a filter of system calls") : export(c, ret, e);
	seccomp_release(c);
	return rc;
}

void syscall_filter_free(struct sock_fprog *f)
{
	free(f->filter);
	*f = (struct sock_fprog){ 0 };
}

int syscall_filter_install(const struct sock_fprog *f, struct err *e)
{
	if (f->len && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, f, 0, 0) != 0 && errno != EINVAL)
		return err_sys(e, -errno, "cannot filter system calls");
	return 0; /* EINVAL: a kernel without such filters */
}

int syscall_filter_install_all(const struct sock_fprog *f, struct err *e)
{
	if (f->len && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, f) != 0 &&
		errno != EINVAL)
		return err_sys(e, -errno, "cannot filter system calls");
	return 0;
}
