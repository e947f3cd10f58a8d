/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/callprobe.h"
#include "system/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define UNKNOWN_CMD 0x7fff
#define UNKNOWN_FLAG (1UL << 31)

static int call_bpf(void)
{
	return syscall(SYS_bpf, UNKNOWN_CMD, (void *)1, 8) < 0 ? errno : 0;
}

/* An event that counts nothing, of this process in user space: for everyone, up to perf_event_paranoid=2. */
static int call_own_event(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.exclude_hv = 1 };

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) < 0 ? errno : 0;
}

static int call_perf(void)
{
	return syscall(SYS_perf_event_open, NULL, 0, -1, -1, UNKNOWN_FLAG) < 0 ? errno : 0;
}

/* The errno of CALL in a process of its own; -signal when that was killed, 0 when nobody knows. */
static int call_apart(int (*call)(void))
{
	const struct rlimit none = { 0 };
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &none);
		_exit(call());
	}
	if (pid < 0)
		return 0;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 0;
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static bool filtered(void)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");
	int mode = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Seccomp: %d", &mode) == 1)
			break;
	if (f)
		fclose(f);
	return mode > 0;
}

static int forbidden(const char *name, int code, struct err *e)
{
	if (code < 0)
		err_set(e, -EPERM, "%s is forbidden: who calls it is killed by signal %d (%s)", name, -code,
			sigabbrev_np(-code) ? sigabbrev_np(-code) : "unknown");
	else
		err_set(e, -EPERM,
			"%s is forbidden%s: a call that the kernel would answer otherwise gives %s", name,
			filtered() ? " by a seccomp filter" : ", perhaps by a security module",
			err_name(-code));
	err_hint(e, "docker run --security-opt seccomp=unconfined ..., or a profile that permits bpf and "
		    "perf_event_open; in Kubernetes: seccompProfile: {type: Unconfined}");
	return -EPERM;
}

static int unprivileged_disabled(void)
{
	FILE *f = fopen("/proc/sys/kernel/unprivileged_bpf_disabled", "re");
	int value = 0;

	if (f) {
		if (fscanf(f, "%d", &value) != 1)
			value = 0;
		fclose(f);
	}
	return value;
}

int callprobe_bpf(char *found, size_t cap, struct err *e)
{
	int code = call_apart(call_bpf);

	if (code == EFAULT || code == EINVAL || code == E2BIG) {
		snprintf(found, cap, "no filter refuses bpf()");
		return 0;
	}
	if (code == ENOSYS && !filtered()) {
		err_set(e, -ENOSYS, "the kernel has no bpf() system call");
		return err_hint(e, "boot a kernel built with CONFIG_BPF_SYSCALL=y");
	}
	if (code == EPERM && unprivileged_disabled() && !caps_allow(CAP_BPF)) {
		snprintf(found, cap,
			"bpf() is shut to who lacks CAP_BPF, so that a filter of it cannot be told");
		return 0;
	}
	return forbidden("bpf()", code, e);
}

int callprobe_perf(char *found, size_t cap, struct err *e)
{
	int code = call_apart(call_perf);

	if (code == EINVAL) {
		snprintf(found, cap, "no filter refuses perf_event_open()");
		return 0;
	}
	if (code == ENOSYS && !filtered()) {
		err_set(e, -ENOSYS, "the kernel has no perf_event_open() system call");
		return err_hint(e, "boot a kernel built with CONFIG_PERF_EVENTS=y");
	}
	return forbidden("perf_event_open()", code, e);
}

int callprobe_own_event(void)
{
	return call_apart(call_own_event);
}

static int read_task_file(const char *name)
{
	char path[64], buf[256];
	ssize_t n;
	int fd, rc = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)gettid(), name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, sizeof(buf));
	if (n < 0)
		rc = -errno;
	close(fd);
	return rc;
}

int callprobe_task_files(char *found, size_t cap, struct err *e)
{
	static const char *const names[] = { "status", "syscall", "wchan", "schedstat", "stack", "maps" };
	char yes[128] = "stat", no[128] = "";
	int rc = read_task_file("stat");

	if (rc) {
		err_sys(e, rc, "cannot read '/proc/self/task/TID/stat': not even procfs mode can record");
		return err_hint(e, "mount -t proc proc /proc");
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		bool can = read_task_file(names[i]) == 0;
		char *list = can ? yes : no;
		size_t len = strlen(list);

		snprintf(list + len, sizeof(yes) - len, "%s%s", len ? ", " : "", names[i]);
	}
	snprintf(found, cap, "of own threads %s can be read%s%s", yes, no[0] ? ", but not " : "", no);
	return 0;
}
