/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recorder's programs on a kernel whose structs have changed: the real
 * programs are loaded into the running kernel, with a copy of its BTF in which
 * a member has another name.
 */
#include "base/base.h"
#include "base/err.h"
#include "base/tap.h"
#include "record/bpf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define BTF_MAX (64 << 20)

/* Make a copy of the kernel's BTF in which every name MEMBER is changed. Returns a descriptor, or -1. */
static int without(const char *member, char path[32])
{
	_cleanup_close_ int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
	_cleanup_free_ char *bytes = malloc(BTF_MAX);
	int copy = memfd_create("btf", MFD_CLOEXEC);
	size_t len = 0, name = strlen(member) + 1;
	ssize_t n = 1;

	while (fd >= 0 && bytes && n > 0 && len < BTF_MAX) {
		n = read(fd, bytes + len, BTF_MAX - len);
		len += n > 0 ? (size_t)n : 0;
	}
	for (size_t i = 1; i + name <= len; i++)
		if (!bytes[i - 1] && memcmp(bytes + i, member, name) == 0)
			bytes[i] = '_';
	if (!len || copy < 0 || write(copy, bytes, len) != (ssize_t)len)
		return -1;
	snprintf(path, 32, "/proc/self/fd/%d", copy);
	return copy;
}

struct load {
	int rc;
	struct err e;
	char limits[512];
};

static struct load load_without(const char *member)
{
	struct offcpu_opts opts = { .all = true };
	struct load l = { .rc = -ENODATA };
	struct offcpu *o = NULL;
	char path[32];
	int fd = without(member, path);

	if (fd < 0)
		return l;
	opts.btf_file = path;
	l.rc = offcpu_load(&opts, &o, &l.e);
	if (!l.rc)
		snprintf(l.limits, sizeof(l.limits), "%s", offcpu_limits(o));
	if (!l.rc && offcpu_attach(o, &l.e) != 0)
		l.rc = -EIO;
	offcpu_close(o);
	close(fd);
	return l;
}

/* Without an optional member its feature is off and that is reported; everything else works. */
static void test_spared(struct tap *t, const char *member)
{
	struct load l = load_without(member);
	char want[64];

	if (!tap_ok(t, l.rc == 0, "without '%s' the programs load and attach", member))
		tap_diag("%s; %s", l.e.msg, l.e.hint);
	snprintf(want, sizeof(want), "has no member '%s'", member);
	if (!tap_ok(t, strstr(l.limits, want) != NULL, "the feature that is off is reported with its member"))
		tap_diag("limits: %s", l.limits);
}

static void test_needed(struct tap *t, const char *member)
{
	struct load l = load_without(member);
	char want[64];

	snprintf(want, sizeof(want), "has no member '%s'", member);
	tap_ok(t, l.rc != 0 && l.rc != -ENODATA, "without '%s' the programs do not load", member);
	if (!tap_ok(t, strstr(l.e.hint, want) != NULL, "the hint names the missing member"))
		tap_diag("%s; %s", l.e.msg, l.e.hint);
}

int main(void)
{
	struct tap t = { 0 };
	struct load as_it_is = load_without("no such member");

	if (as_it_is.rc) {
		tap_skip(&t, "kernels without some members", "%s", as_it_is.e.msg);
		return tap_done(&t);
	}
	tap_ok(&t, !as_it_is.limits[0], "with all members no feature is off");
	test_spared(&t, "on_cpu");
	test_spared(&t, "prev_sum_exec_runtime");
	test_needed(&t, "start_code");
	return tap_done(&t);
}
